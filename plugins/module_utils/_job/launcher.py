# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start a job as a process of its own, watch it, and end it. Private to the collection.

Runs inside the module on the host; the job lives on when the module and the controller are gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Mapping

from .._core import subprocesses
from .._core.errors import staging_left
from .._core.state_folder import StateError
from .._core.subprocesses import pipe
from .._engine.net.ticket_file import OWN, PEER
from .cleanup import clean_up, remove_forgotten
from .state import RUNNING, JobFolder, JobStatus

_POLL = 0.02  # seconds between two looks at first; each lasts a fifth longer, up to half a second


def start(
    folder: JobFolder,
    engine: str,
    kind: str,
    request: Mapping[str, object],
    secrets: dict[str, str],
    until: tuple[str, ...],
    wait: float,
) -> JobStatus:
    """Start a job and give its status once it is in one of the states ``until``, has ended, or ``wait`` seconds passed.

    ``engine`` is the archive that it runs from, of which the job gets a copy: it outlives the module that starts it.
    ``kind`` is ``job`` or ``digest``. Secrets go through a pipe; they are in no file, argument or environment.
    Raises StateError if a job of this transfer and side is running already.
    """
    folder.create()
    os.utime(folder.path)  # it is not forgotten
    remove_forgotten(time.time())
    if folder.is_running():
        raise StateError(f"transfer {folder.transfer_id} is running already on this side ({folder.side})")
    clean_up(folder)
    for name in ("status.json", "succeeded", OWN, PEER):  # a ticket is for the job that ran
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder.file(name))
    folder.request = request
    own = folder.file("engine.pyz")
    shutil.copyfile(engine, f"{own}.{os.getpid()}")
    os.replace(f"{own}.{os.getpid()}", own)
    with open(folder.file("log"), "ab") as log:
        process = subprocesses.start(
            [sys.executable, "-I", "-S", "-B", own, kind, folder.path],  # it needs only what comes with Python
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            extra_environment=_environment(),
            new_session=True,
        )
    with contextlib.suppress(BrokenPipeError):  # it died at once: the log says why
        pipe(process.stdin).write(json.dumps(secrets).encode())
        pipe(process.stdin).close()
    return watch(folder, until, wait, process)


def _environment() -> dict[str, str]:
    """Return what a job needs beyond the environment of all programs: to find its user's folders where this does."""
    return subprocesses.own_variables("HOME", "USER", "LOGNAME", "XDG_STATE_HOME")


def watch(
    folder: JobFolder, until: tuple[str, ...], wait: float, process: subprocess.Popen[bytes] | None = None
) -> JobStatus:
    """Return the job's status once it is in one of the states ``until``, has ended, or ``wait`` seconds passed.

    ``until`` names states of a living job only: one that says that it has finished ends in the next moment. A job that
    died without a last word has the state ``died``, with the end of its log as ``failure``.
    """
    deadline, pause = time.monotonic() + wait, _POLL
    while True:
        alive = process.poll() is None if process else folder.is_running()
        status = folder.status
        state = status.get("state", "starting")
        if not alive and state in RUNNING:
            status = folder.status  # it may have spoken its last word in between
            if status.get("state", "starting") in RUNNING:
                return {**status, "state": "died", "failure": _last_words(folder), "alive": False}
        if not alive or state in until or time.monotonic() >= deadline:
            return {**status, "state": status.get("state", "starting"), "alive": alive}
        _wait(min(pause, max(0.0, deadline - time.monotonic())), process)
        pause = min(pause * 1.2, 0.5)


def _wait(seconds: float, process: subprocess.Popen[bytes] | None) -> None:
    """Let time pass, until the end of the process where that is ours."""
    if process is None:
        time.sleep(seconds)
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _last_words(folder: JobFolder) -> str:
    log = folder.log_tail().strip()[-1500:]
    said = f"Its log ends with: {log}" if log else "Its log is empty"
    return (
        "the transfer's job was killed, or its host was restarted. What has arrived is kept: run the task again, it "
        f"goes on where it stopped. {said}"
    )


def stop(folder: JobFolder, succeeded: bool, patience: float = 15.0) -> JobStatus:
    """End the job where it runs, and give its last status; ``succeeded`` lets it drop partial files.

    It is asked first, and killed only when it has not ended after ``patience`` seconds.
    """
    if succeeded and os.path.isdir(folder.path):
        folder.mark_succeeded()
    pid = folder.status.get("pid", 0)
    if pid and folder.is_running():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        watch(folder, (), patience)
        if folder.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            watch(folder, (), patience)
    left = "" if folder.is_running() else clean_up(folder)
    if left:
        return {**folder.status, "staging_left": True, "failure": str(staging_left(left))}
    return folder.status
