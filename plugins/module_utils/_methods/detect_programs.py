# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that each method runs, and their versions and features.

Each look costs a process or two, so only the programs of the methods in question are looked at.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, cast

from .._core.rsync_vulnerabilities import NEWEST_FIX, TRANSFER, open_vulnerabilities, rsync_changelog, version_of
from .._core.subprocesses import find_program, run_command

if TYPE_CHECKING:
    from typing import TypedDict

    class Program(TypedDict):
        path: str

    class Rsync(Program):
        version: list[int]
        compress: list[str]  # algorithms
        acls: bool
        xattrs: bool
        holes: list[str]  # marks of its known vulnerabilities

    class Tar(Program):
        flavour: str | None  # gnu or bsd; None: another one
        text: str  # what it says of itself

    class Netcat(Program):
        dialect: str | None

    class Ssh(Program):
        version: str
        ciphers: list[str]  # that it knows
        configured: list[str]  # that the host's configuration offers

    class Scp(Program):
        legacy_flag: bool  # whether -O, the protocol of rcp, is among its flags

    class Programs(TypedDict, total=False):
        """What is known of each program; a missing one has no key."""

        rsync: Rsync
        tar: Tar
        nc: Netcat
        ssh: Ssh
        scp: Scp
        sftp: Program
        sshd: Program


SSH_METHODS = ("rsync", "sftp", "scp")  # the best first
_PROGRAMS = {  # at either end: who connects is decided when both have been looked at
    "stream": (),
    "rsync": ("rsync", "ssh", "sshd"),
    "rsyncd": ("rsync",),
    "tar_nc": ("tar", "nc"),
    "scp": ("ssh", "scp", "sshd"),
    "sftp": ("ssh", "sftp", "sshd"),
}


def programs_of(methods: Iterable[str]) -> list[str]:
    """Name the programs that the methods run, each once."""
    return list(dict.fromkeys(program for method in methods for program in _PROGRAMS[method]))


def look_at_programs(methods: Iterable[str]) -> Programs:
    """Return what is known of each program that one of the methods may run."""
    found: dict[str, Program] = {}
    for name in programs_of(methods):
        path = find_program(name)
        if path:
            found[name] = _LOOKS.get(name, _nothing_more)(path)
    return cast("Programs", found)


def _nothing_more(path: str) -> Program:
    return {"path": path}


def _rsync(path: str) -> Rsync:
    text = run_command([path, "--version"])
    version = version_of(text)
    lists = re.search(r"^Compress list:\n\s*(.*)$", text, re.MULTILINE)
    return {
        "path": path,
        "version": list(version),
        "compress": lists.group(1).split() if lists else ["zlib"],
        "acls": "no ACLs" not in text,
        "xattrs": "no xattrs" not in text,
        "holes": [
            hole.mark
            for hole in open_vulnerabilities(version, rsync_changelog() if version < NEWEST_FIX else "", TRANSFER)
        ],
    }


def _tar(path: str) -> Tar:
    from .copy.tar_command import detect  # only here, as below: most transfers need neither

    text = run_command([path, "--version"])
    return {"path": path, "flavour": detect(text), "text": text.split("\n")[0]}


def _nc(path: str) -> Netcat:
    from .copy.netcat import detect

    return {"path": path, "dialect": detect(run_command([path, "-h"]), os.uname().sysname)}


def _ssh(path: str) -> Ssh:
    from .ssh.sshd_config import parse_sshd_config

    return {
        "path": path,
        "version": run_command([path, "-V"]).strip(),
        "ciphers": run_command([path, "-Q", "cipher"]).split(),
        "configured": parse_sshd_config(run_command([path, "-G", "longhaul.invalid"])).get("ciphers", []),
    }


def _scp(path: str) -> Scp:
    """Return whether ``-O``, rcp's protocol, is among the flags that scp names in its usage."""
    usage = re.search(r"usage: scp \[-([A-Za-z0-9]+)\]", run_command([path]))
    flags = usage.group(1) if usage else ""
    return {"path": path, "legacy_flag": "O" in flags}


_LOOKS: Mapping[str, Callable[[str], Program]] = {
    "rsync": _rsync,
    "tar": _tar,
    "nc": _nc,
    "ssh": _ssh,
    "scp": _scp,
}
