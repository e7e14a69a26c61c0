# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run something that waits for a host, for so long at most.

A connection plugin of Ansible waits for its program, ssh or a shell, without limit, and nothing can interrupt it. So it
waits in a thread of its own, and when the time is over, the program is ended by its process id.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
_GRACE = 2.0  # seconds for the thread to notice that its process has ended


class DeadlinePassed(Exception):
    """It did not end in time."""


def run_with_deadline(do: Callable[[], T], seconds: float | None) -> T:
    """Return what ``do`` returns, or raise what it raises. None: it has no deadline.

    Raises DeadlinePassed after ``seconds``, once the processes have ended that ``do`` waits for.
    """
    if seconds is None:
        return do()
    future: Future[T] = Future()
    context = contextvars.copy_context()  # where ansible-core keeps what it knows of the task

    def work() -> None:
        try:
            future.set_result(context.run(do))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=work, name="deadline", daemon=True)
    thread.start()
    thread.join(seconds)
    if future.done():
        return future.result()
    for process in _with_descendants(_awaited(thread)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    thread.join(_GRACE)
    raise DeadlinePassed


def _awaited(thread: threading.Thread) -> list[int]:
    """Return the ids of the processes that a thread has started and waits for."""
    frame = sys._current_frames().get(thread.ident or 0)
    found = []
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, subprocess.Popen) and value.returncode is None:
                found.append(value.pid)
        frame = frame.f_back
    return found


def _with_descendants(processes: Iterable[int]) -> list[int]:
    """Return processes and, where /proc tells, those that they have started: a shell of a local connection has some."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
            parent = int(stat.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = list(processes)
    for one in found:  # grows
        found += children.get(one, [])
    return found
