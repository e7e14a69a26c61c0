# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rsyncd.conf of a daemon for one transfer. Source: rsyncd.conf(5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..rsync.conf_line import conf_line, yes_or_no

MODULE, USER = "longhaul", "longhaul"  # of a daemon that is started for one transfer
_TRUE = frozenset(["yes", "true", "1"])
_FALSE = frozenset(["no", "false", "0"])


def boolean(value: str | None, default: bool) -> bool:
    """Read a boolean as rsync does: what is badly formed leaves the default."""
    word = (value or "").lower()
    return True if word in _TRUE else False if word in _FALSE else default


@dataclass(frozen=True)
class DaemonPlan:
    """A daemon for one transfer."""

    path: str  # the root, canonical
    writable: bool
    as_root: bool
    numeric_ids: bool
    peers: tuple[str, ...]  # addresses that may connect; empty: any, the secret decides
    secrets_file: str
    folder: str  # for the log
    timeout: int  # seconds
    digest: str = ""  # the weakest that is accepted (3.5.0 and newer); empty: any


def daemon_conf(plan: DaemonPlan) -> str:
    """Write the configuration. Raise ValueError if a value cannot stand in this format.

    Only a plain chroot keeps symlinks as they are: without it the daemon rewrites absolute ones, or munges them.
    """
    options = [
        ("log file", f"{plan.folder}/rsyncd.log"),
        ("reverse lookup", "no"),
    ]
    module = [
        ("path", plan.path),
        ("use chroot", yes_or_no(plan.as_root)),
        ("munge symlinks", "no"),
        ("numeric ids", yes_or_no(plan.numeric_ids)),
        ("read only", yes_or_no(not plan.writable)),
        ("write only", yes_or_no(plan.writable)),
        ("list", "no"),
        ("auth users", f"{USER}:{'rw' if plan.writable else 'ro'}"),
        ("secrets file", plan.secrets_file),
        ("timeout", str(plan.timeout)),
        ("transfer logging", "no"),
    ]
    if plan.as_root:
        module += [("uid", "0"), ("gid", "0")]  # numbers: the group is named root, wheel or otherwise
    if plan.digest:
        module.append(("auth digest", plan.digest))
    if plan.peers:
        module += [("hosts allow", " ".join(plan.peers)), ("hosts deny", "*")]
    lines = [conf_line(name, value) for name, value in options] + [f"[{MODULE}]"]
    return "\n".join(lines + [conf_line(name, value) for name, value in module]) + "\n"
