# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The agent that reverts, waits and applies on the host, apart from Ansible. Private to the collection.

``checkpoint.pyz WHAT ROOT NAME ...``, where WHAT is

- ``timer TOKEN``: revert now, since the time is over
- ``wait TOKEN SECONDS``: revert after that many seconds, unless the checkpoint is gone by then
- ``now TOKEN``: revert, since it was asked for
- ``boot TOKEN``, ``late TOKEN``: revert after a boot, before or after the network was started
- ``apply TOKEN DELAY``: run the commands of ``apply.json`` after DELAY seconds, stopping at the first that fails
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from typing import Iterator, Sequence

from .checkpoint import Checkpoint
from .live import bring_back, capture, way_back
from .programs import run
from .request import CheckpointRequest, CommandResult
from .saved import restore
from .timer import remove_boot, stop_timer

COMMAND_TIMEOUT = 60.0  # seconds for one command of a manager
_STEP = 1.0  # seconds between two looks at whether the checkpoint is still there


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; see above."""
    what, root, name, token, *more = arguments
    checkpoint = Checkpoint(name, root)
    if what == "wait":
        return _wait(checkpoint, token, float(more[0]))
    if what == "apply":
        return _apply(checkpoint, token, float(more[0]))
    by = {"timer": "timer", "now": "request", "boot": "boot", "late": "boot"}[what]
    return revert(checkpoint, token, by, early=what == "boot")


def _armed(checkpoint: Checkpoint, token: str) -> bool:
    request = checkpoint.request
    return request is not None and request.token == token


def _wait(checkpoint: Checkpoint, token: str, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while _armed(checkpoint, token):
        left = deadline - time.monotonic()
        if left <= 0:
            return revert(checkpoint, token, "timer")
        time.sleep(min(_STEP, left))
    return 0


def revert(checkpoint: Checkpoint, token: str, by: str, early: bool = False) -> int:
    """Bring the saved state back; the exit code is 1 where something could not be brought back.

    ``early``: the network was not started yet, so that files and MTUs are all there is to do.
    """
    with checkpoint.locked(), contextlib.ExitStack() as stack:
        request = checkpoint.request
        if not request or request.token != token:
            return 0  # confirmed or reverted by somebody else
        stack.enter_context(_no_apply(checkpoint))
        errors, lost = [], False
        try:
            restore(request.files, checkpoint.files)
        except OSError as error:
            errors.append(
                f"not all files could be put back, and their contents are in {checkpoint.kept}/files: {error}"
            )
            lost = True
        if early:
            errors += _early(request)
        else:
            _delete_made(request)
            for argv in request.commands:
                ended = run(argv, COMMAND_TIMEOUT)
                if ended.code:  # the comparison below says whether it matters
                    sys.stderr.write(f"{' '.join(argv)} ended with {ended.code}: {ended.said}\n")
            errors += bring_back(request.state, request.made)
        remove_boot(checkpoint.name)
        if by != "timer":
            stop_timer(request.timer)
        checkpoint.close("reverted", by, errors, keep=lost)
    return int(bool(errors))


def _early(request: CheckpointRequest) -> list[str]:
    errors = []
    for argv in request.boot_commands:
        ended = run(argv, COMMAND_TIMEOUT)
        if ended.code:
            errors.append(f"{' '.join(argv)} ended with {ended.code}: {ended.said}")
    for argv in way_back(request.state, capture(list(request.state.links)), []):
        if "mtu" in argv:  # udev may have set it from a file of the change
            run(argv)
    return errors


def _delete_made(request: CheckpointRequest) -> None:
    """What the change made goes before the old configuration is taken up again."""
    state, made = request.state, request.made
    for _round in range(len(made)):
        for argv in way_back(state, capture([*state.links, *made]), made):
            if argv[:3] == ["ip", "link", "delete"] or "destroy" in argv:
                run(argv)


def _apply(checkpoint: Checkpoint, token: str, delay: float) -> int:
    """Run the commands that were left in the checkpoint's folder."""
    with open(os.path.join(checkpoint.folder, "apply.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        with contextlib.suppress(PermissionError):  # it leads its session already where a process was started
            os.setsid()
        time.sleep(delay)
        if not _armed(checkpoint, token):  # it was reverted while this process waited for the lock
            return 1
        job = checkpoint.applied
        for argv in job.commands:
            if not _armed(checkpoint, token):
                return 1
            begun = time.monotonic()
            ended = run(argv, COMMAND_TIMEOUT)
            one = CommandResult(argv, ended.code, ended.said[-2000:], time.monotonic() - begun)
            job = job._replace(results=(*job.results, one))
            if ended.code:
                break
            checkpoint.write_applied(job)
        checkpoint.write_applied(job._replace(finished=True))
    return 0


@contextlib.contextmanager
def _no_apply(checkpoint: Checkpoint) -> Iterator[None]:
    """End commands that still run, and let none begin: they would work against the way back."""
    with open(os.path.join(checkpoint.folder, "apply.lock"), "a+", encoding="ascii") as lock:
        for number in [signal.SIGTERM] * 30 + [signal.SIGKILL] * 30:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pass
            lock.seek(0)
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.killpg(int(lock.read()), number)
            time.sleep(0.1)
        yield
