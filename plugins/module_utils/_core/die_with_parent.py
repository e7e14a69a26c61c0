# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that end with the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import Any, Callable

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def follow_parent(folder: int | None = None) -> Callable[[], None]:
    """Return a ``preexec_fn`` that has the kernel end the program (SIGTERM) when its parent is gone, killed or not.

    Linux only; elsewhere it does nothing. The kernel takes the *thread* that starts the program for the parent, so
    that thread must live as long as the program. ``folder`` is an open directory for it to work in, whatever its
    name leads to by now.
    """
    parent, ask = os.getpid(), _prctl()

    def set_up() -> None:
        if not _follow(parent, signal.SIGTERM, ask):
            os._exit(1)
        if folder is not None:
            os.fchdir(folder)

    return set_up


def follow(parent: int) -> bool:
    """Have the kernel kill this very process when its parent is gone; gives whether that is still there."""
    return _follow(parent, signal.SIGKILL, _prctl())


def _prctl() -> Any:
    return ctypes.CDLL(None, use_errno=True).prctl if sys.platform.startswith("linux") else None


def _follow(parent: int, end: signal.Signals, prctl: Any) -> bool:
    if prctl is None:
        return True
    prctl(_PR_SET_PDEATHSIG, int(end), 0, 0, 0)
    return os.getppid() == parent  # or it went before we asked


def descendants(pid: int) -> list[int]:
    """Return the processes below ``pid``, nearest first; none if there is no /proc to tell."""
    children: dict[int, list[int]] = {}
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            with suppress(OSError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name, in parentheses, may hold anything; the parent is the second field after it.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    below = list(children.get(pid, []))
    for child in below:  # grows while it is walked
        below += children.get(child, [])
    return below


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
