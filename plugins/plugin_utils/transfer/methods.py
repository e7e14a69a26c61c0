# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which method a pair of hosts can use, which is the best, and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.detect_programs import SSH_METHODS
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import OLDEST

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import FULL, LINKING, NONE

SSH = SSH_METHODS  # that encrypt by ssh
BY_NAME = ("sftp", "scp")  # that auto never chooses, whatever a host says of itself
OLDEST_PYTHON = (3, 8)
UNENCRYPTED = ("rsyncd", "tar_nc")
OWN_WALK = ("stream", "tar_nc", *BY_NAME)  # the source is listed by the engine; by rsync with the others
OWN_PORT = ("stream", *UNENCRYPTED)  # the others use ssh's
METHODS = (*OWN_PORT, *SSH)


@dataclass(frozen=True)
class Choice:
    """A method, why it was taken, and what the user should know about it.

    ``tentative``: nobody named it, and where its port cannot be reached another method may take its place.
    """

    method: str
    reason: str
    warnings: tuple[str, ...] = ()
    tentative: bool = False


def _lacks(host: Endpoint, *programs: str) -> str:
    missing = [program for program in programs if program not in host.programs]
    return f"{host.name} has no {' and no '.join(missing)}: install what is missing" if missing else ""


def _no_sshd(serving: Endpoint) -> str:
    if serving.probe["sshd"]["listening"] or "sshd" in serving.programs:
        return ""
    return f"{serving.name} has no ssh server: install one"


def _rsync(driving: Endpoint, serving: Endpoint) -> str:
    lacking = _lacks(driving, "rsync", "ssh") or _lacks(serving, "rsync") or _no_sshd(serving)
    return lacking or _old_rsync(driving, serving)


def _rsyncd(driving: Endpoint, serving: Endpoint) -> str:
    return _lacks(driving, "rsync") or _lacks(serving, "rsync") or _old_rsync(driving, serving)


def _old_rsync(*hosts: Endpoint) -> str:
    for host in hosts:
        if host.rsync_version < OLDEST:
            found, needed = (".".join(map(str, version)) for version in (host.rsync_version, OLDEST))
            why = f"{needed} or newer is needed to count what was done: update it"
            return f"the rsync of {host.name} is {found}, and {why}"
    return ""


def _tar_nc(driving: Endpoint, serving: Endpoint) -> str:
    for host in (driving, serving):
        tar = host.programs.get("tar")
        if tar and not tar["flavour"]:
            return f"the tar of {host.name} is unknown ({tar['text']}): GNU tar or bsdtar is needed. Install one"
    return _lacks(driving, "tar") or _lacks(serving, "tar")


def _stream(driving: Endpoint, serving: Endpoint) -> str:
    for host in (driving, serving):
        if tuple(host.probe["python"]) < OLDEST_PYTHON:
            return f"the Python of {host.name} is older than {'.'.join(map(str, OLDEST_PYTHON))}: install a newer one"
    return ""


def no_stream(encryption: str, driving: Endpoint, serving: Endpoint) -> str:
    """Return why a pair cannot use the stream engine with this encryption; empty if it can."""
    return _stream(driving, serving) or (_no_tls(driving, serving) if encryption != "none" else "")


def _no_tls(*hosts: Endpoint) -> str:
    lacking = [host.name for host in hosts if not host.probe["tls13"]]
    return f"the Python of {' and '.join(lacking)} has no TLS 1.3" if lacking else ""


def _scp(driving: Endpoint, serving: Endpoint) -> str:
    return _lacks(driving, "ssh", "scp") or _no_sshd(serving)


def _sftp(driving: Endpoint, serving: Endpoint) -> str:
    return _lacks(driving, "ssh", "sftp") or _no_sshd(serving)


_OBSTACLES: dict[str, Callable[[Endpoint, Endpoint], str]] = {
    "stream": _stream,
    "rsync": _rsync,
    "rsyncd": _rsyncd,
    "tar_nc": _tar_nc,
    "scp": _scp,
    "sftp": _sftp,
}
_REASONS = {
    "stream": "it needs nothing but Python, uses several connections at once and resumes inside a file",
    "rsync": "both hosts have rsync, and ssh encrypts",
    "rsyncd": "the network is trusted (encryption: none), and both hosts have rsync",
    "tar_nc": "the network is trusted (encryption: none), and rsync is not on both hosts or its daemon has no root",
}


def obstacle(method: str, driving: Endpoint, serving: Endpoint) -> str:
    """Return why a pair cannot use a method; empty if it can."""
    return _OBSTACLES[method](driving, serving)


def choose_method(
    wanted: str, encryption: str, driving: Endpoint, serving: Endpoint, unfit: Mapping[str, str], trust: str = FULL
) -> Choice:
    """Choose among the methods that the pair can use and that the options encryption and trust allow.

    ``unfit`` says of methods why this transfer cannot use them, for ``auto``. Raises Refusal if there is none, or
    where the one that was named cannot be used.
    """
    if wanted != "auto":
        return _named(wanted, encryption, driving, serving)
    if trust == NONE:
        return _untrusting(encryption, driving, serving, unfit)
    by_ssh = tuple(method for method in SSH if method not in BY_NAME)
    order = ("stream", *UNENCRYPTED, *by_ssh) if encryption == "none" else ("stream", *by_ssh)
    if set(order) <= set(unfit):
        unfit = {}  # options that belong to other methods: they are refused by name
    obstacles = {method: unfit.get(method) or obstacle(method, driving, serving) for method in order}
    obstacles["stream"] = obstacles["stream"] or no_stream(encryption, driving, serving)
    if "rsyncd" in obstacles and not serving.is_root:
        # Without chroot, which needs root, a daemon rewrites symlinks that lead out of the tree, so they are refused.
        obstacles["rsyncd"] = obstacles["rsyncd"] or f"a daemon on {serving.name} without root cannot keep all symlinks"
    for method in order:
        if not obstacles[method]:
            but = f", and stream does not fit: {obstacles['stream']}" if obstacles["stream"] else ""
            return Choice(method, _REASONS[method] + but, tentative=method in OWN_PORT)
    listed = "; ".join(f"{method}: {why}" for method, why in obstacles.items())
    advice = "Install rsync and an ssh server on both hosts"
    if encryption != "none":
        advice += ", or, where the network is trusted, set encryption: none"
    advice += f". Method {' or '.join(BY_NAME)} can be named"
    raise Refusal(f"no method fits this pair of hosts. {listed}. {advice}{_other_way(order, driving, serving)}")


def _untrusting(encryption: str, driving: Endpoint, serving: Endpoint, unfit: Mapping[str, str]) -> Choice:
    """Return the choice for hosts that are not trusted. What a host lacks is no reason to trust it more."""
    (method,) = LINKING  # the one that needs nothing of the hosts but Python and a port
    why = unfit.get(method) or no_stream(encryption, driving, serving)
    if why:
        raise Refusal(
            f"trust is none, so only method {method} is used unless another is named, and it cannot be: {why}. Correct "
            "that, or set trust: full if you trust root on both hosts"
        )
    return Choice(method, "the hosts need not trust each other with it (trust: none)")


def _named(method: str, encryption: str, driving: Endpoint, serving: Endpoint) -> Choice:
    if method in UNENCRYPTED and encryption == "required":
        raise Refusal(
            f"method {method} does not encrypt, and encryption is required: use one of stream, {', '.join(SSH)}, or "
            "leave method out"
        )
    why = no_stream(encryption, driving, serving) if method == "stream" else obstacle(method, driving, serving)
    if why:
        raise Refusal(
            f"method {method} cannot be used: {why}, or leave method out to use what is there"
            f"{_other_way((method,), driving, serving)}"
        )
    warnings: tuple[str, ...] = ()
    if method in UNENCRYPTED and encryption == "auto":
        warnings = (
            f"method {method} does not encrypt: who can listen on the network reads the data. "
            "Say encryption: none if the network is trusted, or leave method out",
        )
    return Choice(method, "it was chosen by name", warnings)


def _other_way(methods: tuple[str, ...], driving: Endpoint, serving: Endpoint) -> str:
    """Return the advice to connect in the other direction, if one of the methods could be used then."""
    if all(obstacle(method, driving=serving, serving=driving) for method in methods):
        return ""
    connect = "pull" if driving.side == "source" else "push"
    return f"; or let {serving.name} connect to {driving.name} (connect: {connect})"
