# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Algorithms that an ssh client offers to each peer, and the reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .._core.errors import TransferFailed
from .ciphers import choose_ciphers
from .peers import InventoryHost, SshPeer

# What every OpenSSH since 6.5 has; for a prediction on a host where it is not installed yet.
USUAL = [
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
]
KEYWORDS = {"ciphers": "Ciphers", "macs": "MACs", "kex": "KexAlgorithms", "host_keys": "HostKeyAlgorithms"}
WORDS = {"ciphers": "cipher", "macs": "MAC", "kex": "key exchange", "host_keys": "type of host key"}


class Block(TypedDict):
    """What counts for some peers."""

    patterns: list[str]
    algorithms: dict[str, list[str]]  # by keyword of ssh_config
    options: dict[str, str]


class PeerReport(TypedDict):
    """Report on a peer."""

    cipher: str  # that will be used
    reason: str
    ciphers: list[str]


class ClientPlan(TypedDict):
    """Algorithms that a client offers to its peers; peers with the same ones share a block."""

    blocks: list[Block]
    peers: dict[str, PeerReport]
    problems: list[str]
    warnings: list[str]


def plan_client(
    peers: Sequence[SshPeer],
    local: Mapping[str, Any],
    offers: Mapping[str, Mapping[str, Any]],
    inventory: Mapping[str, InventoryHost] | None = None,
    ciphers: Sequence[str] = (),
) -> ClientPlan:
    """Return what the client offers to its peers.

    ``peers`` are what ``complete_peers`` returned, ``local`` what ssh_local_offer returns of this host, and ``offers``
    what each peer told by its name, or why it did not as ``msg``.
    """
    plan: ClientPlan = {"blocks": [], "peers": {}, "problems": [], "warnings": []}
    for peer in peers:
        name = peer["name"]
        offer = offers.get(name) or {}
        if "ciphers" not in offer:
            plan["warnings"].append(
                f"{name}: what it offers is not known: {offer.get('msg') or 'it was not asked.'} The ciphers are "
                "ordered for this host alone, and all that the client had stay in the list."
            )
            offer = {}
        known = (inventory or {}).get(name)
        one = _Peer(peer, local, offer, known["aes"] if known else None)
        algorithms = one.algorithms(ciphers)
        plan["problems"] += [f"{name}: {problem}" for problem in one.problems]
        plan["warnings"] += [f"{name}: {warning}" for warning in one.warnings]
        plan["peers"][name] = {"cipher": one.cipher, "reason": one.reason, "ciphers": algorithms["Ciphers"]}
        _add(plan["blocks"], peer, algorithms)
    return plan


def _add(blocks: list[Block], peer: SshPeer, algorithms: dict[str, list[str]]) -> None:
    for block in blocks:
        if (block["algorithms"], block["options"]) == (algorithms, peer["options"]):
            block["patterns"] += [pattern for pattern in peer["patterns"] if pattern not in block["patterns"]]
            return
    blocks.append({"patterns": list(peer["patterns"]), "algorithms": algorithms, "options": dict(peer["options"])})


class _Peer:
    """The decision for one peer; ``problems``, ``warnings``, ``cipher`` and ``reason`` say what came of it."""

    def __init__(self, peer: SshPeer, local: Mapping[str, Any], offer: Mapping[str, Any], aes: bool | None) -> None:
        self.legacy = peer["legacy"]
        self.local, self.offer, self.aes = local, offer, aes
        self.installed = local.get("installed", False)
        self.own = local["peers"][peer["name"]] if self.installed else {"ciphers": USUAL}
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.cipher = self.reason = ""

    def algorithms(self, wanted: Sequence[str]) -> dict[str, list[str]]:
        """Return the lists by keyword: always Ciphers, and the others where an old peer needs one."""
        ciphers = self._wanted(wanted) if wanted else self._ordered()
        chosen = {"Ciphers": ciphers}
        if self.offer and self.installed:
            for kind, keyword in KEYWORDS.items():
                self._complete(chosen, kind, keyword)
        elif self.legacy and self.installed:
            self.problems.append(
                "it is to use old algorithms, and which ones are decided by what it offers, but it did not tell. "
                "Run again when it answers, or take it out of ssh_client_peers."
            )
        first = self.negotiated(chosen["Ciphers"])
        self.reason = "the first that you named and that both ends have" if wanted else self._why()
        self.cipher = first
        return chosen

    def _complete(self, chosen: dict[str, list[str]], kind: str, keyword: str) -> None:
        """Add to ``chosen`` what an old peer needs where the two hosts share nothing of a kind."""
        have = list(chosen["Ciphers"] if kind == "ciphers" else self.own[kind])
        needless = kind == "macs" and _brings_its_own_mac(self.negotiated(chosen["Ciphers"]))
        if needless or any(name in self.offer[kind] for name in have) or self.problems:
            return
        added = self._old(kind)
        if added:
            chosen[keyword] = have + added
            self.warnings.append(f"the old {WORDS[kind]} {added[0]} is allowed for this peer, as you said.")

    def negotiated(self, ciphers: Sequence[str]) -> str:
        """Return the cipher that will be used: the client's first that the server takes (RFC 4253, section 7.1)."""
        return next((name for name in ciphers if not self.offer or name in self.offer["ciphers"]), "")

    def _ordered(self) -> list[str]:
        """Order what the client may offer, and leave nothing out: what worked before works afterwards."""
        have = list(self.own["ciphers"])
        try:
            first = choose_ciphers(have, None, self.local["aes"] and self.aes is not False)[0].split(",")
        except TransferFailed:  # nothing but old ones, so there is nothing to gain from the order
            first = []
        return first + [name for name in have if name not in first]

    def _why(self) -> str:
        there = {True: "the peer is quick at AES", False: "the peer is slow at AES", None: "the peer's is not known"}
        known = "the fastest that both ends offer" if self.offer else "the fastest that this end offers"
        return f"{known} ({self.local['aes_reason']}; {there[self.aes]})"

    def _wanted(self, wanted: Sequence[str]) -> list[str]:
        """Check the ciphers that the user named."""
        supported = self.local["supported"]["ciphers"] if self.installed else []
        allowed = list(self.own["ciphers"]) if self.installed else list(wanted)
        if self.legacy and not self._limited("ciphers"):
            allowed += supported
        unknown = [name for name in wanted if self.installed and name not in supported]
        banned = [name for name in wanted if name not in unknown and name not in allowed]
        if unknown:
            self.problems.append(
                f"ssh on this host does not know the cipher {', '.join(unknown)}. One unknown name in the "
                f"configuration breaks every ssh on the host, so nothing was written. It knows {', '.join(supported)}."
            )
        if banned:
            self.problems.append(
                f"the cipher {', '.join(banned)} is not among those that this host may use ({', '.join(allowed)}). A "
                "policy or the defaults of OpenSSH leave it out, and this role brings nothing back. Leave it out, or, "
                "where the peer has nothing newer, name the peer in ssh_client_legacy_peers."
            )
        chosen = list(dict.fromkeys(wanted))
        if self.offer and not unknown and not banned and not self.negotiated(chosen):
            self.problems.append(
                f"of the ciphers that you named ({', '.join(chosen)}) the peer takes none. It offers "
                f"{', '.join(self.offer['ciphers'])}."
            )
        return chosen

    def _limited(self, kind: str) -> bool:
        """Return whether somebody has limited the algorithms: a crypto policy, FIPS mode, an administrator."""
        return self.local["fips"] or list(self.own[kind]) != list(self.local["built_in"][kind])

    def _old(self, kind: str) -> list[str]:
        """Return the old algorithms that both ends have and that may be added; note a problem if there are none."""
        theirs = self.offer[kind]
        shared = [name for name in theirs if name in self.local["supported"][kind]]
        said = (
            f"the two hosts share no {WORDS[kind]} that is in use here. The peer offers {', '.join(theirs) or 'none'}. "
        )
        if not shared:
            self.problems.append(f"{said}This host's ssh has none of them at all. Update the peer's ssh server.")
        elif self._limited(kind):
            self.problems.append(
                f"{said}This host's own configuration or crypto policy limits what may be used, and this role adds "
                "nothing to that. Update the peer's ssh server, or change the policy."
            )
        elif not self.legacy:
            self.problems.append(
                f"{said}{', '.join(shared)} would work, but is old. Update the peer's ssh server, or name the peer in "
                "ssh_client_legacy_peers to allow it for this peer alone."
            )
        else:
            return sorted(shared, key=_age) if kind == "ciphers" else shared
        return []


def _age(cipher: str) -> tuple[bool, bool]:
    """Sort old ciphers: AES before the others, 3DES last (15 MiB/s)."""
    return cipher.startswith("3des"), not cipher.startswith("aes")


def _brings_its_own_mac(cipher: str) -> bool:
    return "-gcm" in cipher or "-poly1305" in cipher
