# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run something that waits for a host, for so long at most, and for so much of what the host says.

A connection plugin of Ansible waits for its program, ssh or a shell, without limit, and nothing can interrupt it. So it
waits in a thread of its own, and when the time is over, the program is ended by its process id. The plugin keeps all
that the program prints in memory; the kernel counts what a thread reads.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
_NAME = "deadline"  # of the threads
_GRACE = 2.0  # seconds for the thread to notice that its process has ended
_LOOK = 0.2  # seconds between two looks at how much a thread has read


class DeadlinePassed(Exception):
    """It did not end in time."""


class ReadTooMuch(Exception):
    """It read more than it may."""


def run_with_deadline(do: Callable[[], T], seconds: float | None, most_bytes: int | None = None) -> T:
    """Return what ``do`` returns, or raise what it raises. None: it has no deadline, and no limit where /proc tells.

    Raises DeadlinePassed after ``seconds``, and ReadTooMuch after ``most_bytes``, once the processes have ended that
    ``do`` waits for.
    """
    if seconds is None and most_bytes is None:
        return do()
    future: Future[T] = Future()
    context = contextvars.copy_context()  # where ansible-core keeps what it knows of the task

    def work() -> None:
        try:
            future.set_result(context.run(do))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=work, name=_NAME, daemon=True)
    thread.start()
    end = None if seconds is None else time.monotonic() + seconds
    too_much = False
    while thread.is_alive() and not too_much:
        left = _LOOK if end is None else end - time.monotonic()
        if left <= 0:
            break
        thread.join(left if most_bytes is None else min(left, _LOOK))
        too_much = most_bytes is not None and _has_read(thread) > most_bytes
    if future.done():
        return future.result()
    for process in _with_descendants(_awaited(thread)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    thread.join(_GRACE)
    if too_much:
        raise ReadTooMuch
    raise DeadlinePassed


def _has_read(thread: threading.Thread) -> int:
    """Return how many bytes a thread has read so far; 0 where that is not known."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/io", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))
    except (OSError, StopIteration):
        return 0


def _awaited(thread: threading.Thread) -> list[int]:
    """Return the ids of the processes that a thread has started and waits for."""
    frame = sys._current_frames().get(thread.ident or 0)
    found = []
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, subprocess.Popen) and value.returncode is None:
                found.append(value.pid)
            elif isinstance(value, threading.Thread) and value is not thread and value.name == _NAME:
                found += _awaited(value)  # it waits for something with a deadline of its own
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
