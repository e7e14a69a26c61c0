# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run one rsync to its end and read both of its outputs as they come."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Callable, Sequence

from ..._core import subprocesses
from ..._core.subprocesses import pipe
from .server_command import user_variables
from .watch import StallWatch

GRACE = 5.0  # seconds between the request to end and SIGKILL: time to keep what has arrived as a partial
_LOOK = 0.2  # seconds between looks at the stop event


def run(
    argv: Sequence[str],
    on_stdout: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None],
    *,
    stdin: bytes = b"",
    stop: threading.Event | None = None,
    limit: float | None = None,
    watch: StallWatch | None = None,
    keeps: Sequence[int] = (),
) -> int:
    """Run a program to its end; give its exit code, or the negative number of the signal that ended it.

    Both outputs are handed on in pieces as they come, and an empty piece at the end of each. ``stdin`` is all the
    program gets to read (less than a pipe holds), and ``keeps`` are the descriptors that it inherits. When ``stop`` is
    set, after ``limit`` seconds, or where ``watch`` says that it has stalled, it is ended, and so it is when the job
    dies. Raises OSError if it cannot be started. Call it from a thread that waits for it.
    """
    process = subprocesses.start(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        extra_environment=user_variables(),
        new_session=True,
        die_with_parent=True,
        pass_fds=keeps,
    )
    end = None if limit is None else time.monotonic() + limit
    try:
        with contextlib.suppress(BrokenPipeError), pipe(process.stdin) as waiting:
            waiting.write(stdin)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe(process.stdout), selectors.EVENT_READ, on_stdout)
            selector.register(pipe(process.stderr), selectors.EVENT_READ, on_stderr)
            while selector.get_map():
                for key, _events in selector.select(_LOOK):
                    data = os.read(key.fd, 1 << 16)
                    if watch is not None:
                        watch.heard()
                    if not data:
                        selector.unregister(key.fileobj)
                    key.data(data)
                is_due = (stop is not None and stop.is_set()) or (end is not None and time.monotonic() > end)
                if is_due or (watch is not None and watch.check(process.pid)):
                    end_group(process)
                    end = stop = watch = None  # and read on to the end of what it still says
        return process.wait()
    finally:
        end_group(process)
        pipe(process.stdout).close()
        pipe(process.stderr).close()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program that leads its own session, gently first, and then whatever is left of its children."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
