# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which programs each method runs, and what must be known of them.

Each look costs a process or two, so only the programs of the methods in question are looked at.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Iterable

from .._core.subprocesses import find_program, run_command

SSH_METHODS = ("rsync", "sftp", "scp")  # the best first
_PROGRAMS = {  # at either end: who connects is decided when both have been looked at
    "stream": (),
    "rsync": ("rsync", "ssh", "sshd"),
    "rsyncd": ("rsync",),
    "tar_nc": ("tar", "nc"),
    "scp": ("ssh", "scp", "sshd"),
    "sftp": ("ssh", "sftp", "sftp_server", "sshd"),
}


def programs_of(methods: Iterable[str]) -> list[str]:
    """Name the programs that the methods run, each once."""
    return list(dict.fromkeys(program for method in methods for program in _PROGRAMS[method]))


def look_at_programs(methods: Iterable[str]) -> dict[str, Any]:
    """Give what is known of each program that one of the methods may run; a missing one has no key."""
    found = {}
    for name in programs_of(methods):
        path = find_program(name.replace("_", "-"))  # sftp_server: the keys are identifiers
        if path:
            found[name] = {"path": path, **_LOOKS.get(name, _nothing_more)(path)}
    return found


def _nothing_more(_path: str) -> dict[str, Any]:
    return {}


def _rsync(path: str) -> dict[str, Any]:
    text = run_command([path, "--version"])
    version = re.search(r"version v?(\d+)\.(\d+)\.(\d+)", text)
    lists = re.search(r"^Compress list:\n\s*(.*)$", text, re.MULTILINE)
    return {
        "version": [int(part) for part in version.groups()] if version else [0, 0, 0],
        "compress": lists.group(1).split() if lists else ["zlib"],
        "acls": "no ACLs" not in text,
        "xattrs": "no xattrs" not in text,
    }


def _tar(path: str) -> dict[str, Any]:
    from .copy.tar_command import detect  # only here, as below: most transfers need neither

    text = run_command([path, "--version"])
    return {"flavour": detect(text), "text": text.split("\n")[0]}


def _nc(path: str) -> dict[str, Any]:
    from .copy.netcat import detect

    return {"dialect": detect(run_command([path, "-h"]), os.uname().sysname)}


def _ssh(path: str) -> dict[str, Any]:
    from .ssh.sshd_config import parse_sshd_config

    return {
        "version": run_command([path, "-V"]).strip(),
        "ciphers": run_command([path, "-Q", "cipher"]).split(),
        "configured": parse_sshd_config(run_command([path, "-G", "longhaul.invalid"])).get("ciphers", []),
    }


def _scp(path: str) -> dict[str, Any]:
    """Say whether ``-O`` (the old protocol) is among the single-letter flags that scp names in its usage."""
    flags = re.search(r"usage: scp \[-([A-Za-z0-9]+)\]", run_command([path]))
    return {"legacy_flag": flags is not None and "O" in flags.group(1)}


_LOOKS: dict[str, Callable[[str], dict[str, Any]]] = {
    "rsync": _rsync,
    "tar": _tar,
    "nc": _nc,
    "ssh": _ssh,
    "scp": _scp,
}
