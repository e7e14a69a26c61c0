# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs of Ansible that this process starts cost this machine: processor time, processes, memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import threading
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.module_utils._core.die_with_parent import descendants

_ADOPT_ORPHANS = 36  # of prctl: PR_SET_CHILD_SUBREAPER
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def adopt_orphans() -> None:
    """Become the parent of what Ansible leaves behind, such as ssh masters: else nobody could tell what it costs."""
    ctypes.CDLL(None, use_errno=True).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)


def used_here() -> float:
    """Return the processor seconds of what this process started and that ended, and of the ssh masters it adopted."""
    with contextlib.suppress(ChildProcessError):
        while True:  # workers that ansible-playbook did not wait for
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or not _is_ansible(found.si_pid):
                break
            os.waitpid(found.si_pid, 0)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(ticks_of, _masters()))


def used_by(process: int) -> float:
    """Return the processor seconds of a process that runs, of all that it started, and of the adopted ssh masters."""
    there = [process, *descendants(process)]
    return sum(ticks_of(Path(f"/proc/{one}"), waited=True) for one in there) + sum(map(ticks_of, _masters()))


def _is_ansible(pid: int) -> bool:
    """Whether a process that has ended was one of Ansible's or an ssh of its."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith(("ansible", "ssh", "sftp"))
    return False


def _masters() -> list[Path]:
    """Return the folders in /proc of the ssh masters, which became children of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[1] == str(os.getpid()) and (folder / "comm").read_text().strip() == "ssh":
                found.append(folder)
    return found


def ticks_of(folder: Path, waited: bool = False) -> float:
    """Return the processor seconds of a process; with ``waited`` those of its children, too, that have ended."""
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if waited else 13])) / _TICKS


class Sampler:
    """Looks once a second at a process and its descendants; a context manager.

    ``processes`` and ``memory`` (bytes, without what they share) are the most that there were at one time; the
    connections of ssh are not among them.
    """

    def __init__(self) -> None:
        self.root = 0  # the process; 0: none
        self.processes = self.memory = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_ended: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(1):
            if self.root:
                sizes = [size for size in map(_private_bytes, [self.root, *descendants(self.root)]) if size is not None]
                self.processes = max(self.processes, len(sizes))
                self.memory = max(self.memory, sum(sizes))


def _private_bytes(process: int) -> int | None:
    """Return what a process has in memory of its own; None for a connection of ssh, and for one that is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if Path(f"/proc/{process}/comm").read_text().strip() != "ssh":
            size = Path(f"/proc/{process}/statm").read_text().split()
            return (int(size[1]) - int(size[2])) * _PAGE
    return None
