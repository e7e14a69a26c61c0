# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide which methods a pair of hosts can run, and which its trust and encryption allow. Pure.

The rules are those of a transfer that names the method (transfer/methods, hosts/trust, transfer/rsync_trust).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import Settings
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.ciphers import choose_ciphers, source_offer

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import NONE, refuse_trusting_method
from ..transfer.methods import METHODS, OWN_PORT, SSH, UNENCRYPTED, no_stream, obstacle
from ..transfer.plan import PRESERVE
from ..transfer.rsync_trust import parse_floor, refuse_untrusted_rsync

TLS, PLAIN = "TLS", "plain"  # variants of stream
RANGE, FILE = "range", "file"  # at which a method resumes
_RESUMES = {"stream": RANGE, "rsync": RANGE, "rsyncd": RANGE, "tar_nc": FILE, "scp": FILE, "sftp": RANGE}
_NO_PORT = (
    "no connection between ports of the hosts could be measured: open a port (port, port_range), or use a method that "
    "runs over ssh"
)
_NOT_TRUSTED = "it does not encrypt, and the network is not declared to be trusted (encryption: none)"


@dataclass(frozen=True)
class PairRules:
    """The user's rules for a pair, and the direction in which it can connect."""

    encryption: str = "auto"  # as the option of transfer
    trust: str = "full"
    connect: str = "push"  # "push" or "pull"; empty: no port of either host can be reached
    has_rules: bool = False  # entries are filtered
    rsync_floor: str | None = None
    default_ciphers: tuple[str, ...] = ()  # that a plain ssh would offer to this very peer; empty: not known


@dataclass(frozen=True)
class Ability:
    """One method in one variant, and the reason why the pair cannot or may not run it, if there is one."""

    method: str
    variant: str = ""
    cipher: str = ""  # by its name in ProcessorMeasurement.ciphers; empty: not encrypted
    resumes: str = ""
    algorithms: tuple[str, ...] = ()  # of compression, the best first
    obstacle: str = ""  # the hosts cannot
    refusal: str = ""  # the pair's trust or encryption does not allow it

    @property
    def runs(self) -> bool:
        """Whether it can and may run."""
        return not (self.obstacle or self.refusal)


def find_abilities(source: Endpoint, dest: Endpoint, rules: PairRules) -> tuple[Ability, ...]:
    """Return every method in each of its variants. Both hosts were probed for all methods."""
    driving, serving = (dest, source) if rules.connect == "pull" else (source, dest)
    found = []
    for method in METHODS:
        for variant, cipher, hindered in _variants(method, driving, serving, rules.default_ciphers):
            encryption = "none" if variant == PLAIN else "required"
            why_not = no_stream(encryption, driving, serving) if method == "stream" else hindered
            if method in OWN_PORT and not rules.connect:
                why_not = why_not or _NO_PORT
            found.append(
                Ability(
                    method=method,
                    variant=variant,
                    cipher=cipher,
                    resumes=_RESUMES[method],
                    algorithms=_algorithms(method, source, dest),
                    obstacle=why_not,
                    refusal=_refusal(method, cipher, rules, driving, serving),
                )
            )
    return tuple(found)


def _variants(
    method: str, driving: Endpoint, serving: Endpoint, by_default: tuple[str, ...]
) -> list[tuple[str, str, str]]:
    """Return the variants of a method: the name, the cipher, and why none is there, if so."""
    if method == "stream":
        return [(TLS, "tls", ""), (PLAIN, "", "")]
    hindered = obstacle(method, driving, serving)
    if method in UNENCRYPTED:
        return [("", "", hindered)]
    if hindered:
        return [("", "ssh", hindered)]
    default, fastest, reason = _ciphers(driving, serving, by_default)
    names = [default, fastest] if method == "rsync" else [fastest]
    return [(name, name or "ssh", reason) for name in dict.fromkeys(names)]


def _ciphers(driving: Endpoint, serving: Endpoint, by_default: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the cipher that a plain ssh would take, the one that the collection takes, and why there is none."""
    client, server = driving.programs["ssh"], serving.probe["sshd"]["config"].get("ciphers")
    offer = source_offer(client["configured"] or client["ciphers"], client["ciphers"], ())
    default = next((name for name in by_default or offer if server is None or name in server), "")
    try:
        chosen, _why = choose_ciphers(offer, server, driving.probe["aes"] and serving.probe["aes"])
    except TransferFailed as error:
        return default, default, str(error)
    return default, chosen.split(",", maxsplit=1)[0], ""


def _algorithms(method: str, source: Endpoint, dest: Endpoint) -> tuple[str, ...]:
    if method == "stream":
        return ("zstd", "zlib") if source.probe["zstd"] and dest.probe["zstd"] else ("zlib",)
    if method in ("rsync", "rsyncd"):
        offers = [set(host.programs["rsync"]["compress"]) for host in (source, dest) if "rsync" in host.programs]
        return tuple(name for name in ("zstd", "zlib") if len(offers) == 2 and name in offers[0] & offers[1])
    return ("zlib",) if method == "tar_nc" else ()


def _refusal(method: str, cipher: str, rules: PairRules, driving: Endpoint, serving: Endpoint) -> str:
    """Return why the user's rules do not allow a method."""
    if not cipher and rules.encryption != "none":
        return _NOT_TRUSTED
    try:
        refuse_trusting_method(method, rules.trust)
        if method == "rsync" and rules.trust == NONE and "rsync" in driving.programs and "rsync" in serving.programs:
            refuse_untrusted_rsync(_settings(rules), parse_floor(rules.rsync_floor), driving, serving)
    except Refusal as error:
        return str(error)
    return ""


def _settings(rules: PairRules) -> Settings:
    """Return as much of a transfer's settings as decides about rsync between hosts that are not trusted."""
    told = {
        "trust": rules.trust,
        "rules": ["- *"] if rules.has_rules else [],
        "link_dest": [],
        "only": None,
        "streams": 1,
        "check": False,
        "rsync_opts": [],
        "preserve": list(PRESERVE),
        "numeric_ids": True,
        "owner_map": None,
    }
    return cast(Settings, told)


def is_encrypted(ability: Ability) -> bool:
    """Return whether the data is encrypted on its way."""
    return ability.method in SSH or ability.variant == TLS
