# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who a control node is to the hosts, and the claims of its runs.

What hosts know it by belongs to its state folder, so that a run after a killed one is the same to them. It belongs to
the machine as well: two machines that share the folder, or a copy of it, are two.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import pwd
import re
import secrets
from collections.abc import Mapping

from .claims import Process, claim, release

_NAME = ".controller"
_RANDOM = re.compile(r"[0-9a-f]{32}\Z")


def controller_id(folder: str, *, write: bool = True) -> str:
    """Return the id of this control node with its state folder; empty if it has none yet and nothing is written.

    Raises OSError, and ValueError if the file that it is made of holds something else.
    """
    path = os.path.join(folder, "state", _NAME)
    try:
        if write:
            os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        with open(os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640), "r+" if write else "r") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX if write else fcntl.LOCK_SH)  # several workers may be the first
            known = stream.read(100).strip()
            if not known and write:
                known = secrets.token_hex(16)
                stream.write(f"{known}\n")
                stream.flush()
                os.fsync(stream.fileno())
    except FileNotFoundError:
        return ""
    if known and not _RANDOM.match(known):
        raise ValueError(f"{path} holds no id of a control node: remove it")
    return hashlib.sha256(f"{known} {_machine()}".encode()).hexdigest()[:32] if known else ""


def started_by(variables: Mapping[str, object]) -> str:
    """Return who started the run, by the variables of a task: the user of an automation controller, or of this node."""
    for name in ("awx_user_name", "tower_user_name"):
        if variables.get(name):
            return str(variables[name])
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    behind = os.environ.get("SUDO_USER")
    return f"{f'{behind} as ' if behind else ''}{user}@{platform.node()}"


class Claims:
    """The claims of this run of ansible-playbook on jobs, against other runs here with the same state folder."""

    def __init__(self, folder: str, process: Process) -> None:
        """Take the state folder, and the process that lives as long as the run."""
        self._folder, self._process = os.path.join(folder, "state", ".claims"), process

    def take(self, job: str) -> None:
        """Claim a job. Raises Held if another run lives that has claimed it, and OSError."""
        claim(self._path(job), self._process, "working on this job")

    def release(self, job: str) -> None:
        """Let other runs have a job."""
        with contextlib.suppress(OSError):
            release(self._path(job), self._process)

    def _path(self, job: str) -> str:
        # A claim says nothing to another machine, and must not be overwritten by it.
        return os.path.join(self._folder, f"{job}-{hashlib.sha256(_machine().encode()).hexdigest()[:8]}.json")


def _machine() -> str:
    """Return what tells this machine from others that have the same folder."""
    identity = ""
    with contextlib.suppress(OSError):
        with open("/etc/machine-id", encoding="ascii", errors="replace") as stream:
            identity = stream.read(64).strip()
    return f"{platform.node()} {identity}"
