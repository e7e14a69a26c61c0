# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start a job as a process of its own, watch it, end it, and remove what it left. Private to the collection.

Runs inside the module on the host; the job lives on when the module and the controller are gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from typing import Mapping

from .._core import subprocesses
from .._core.context import Serve, staging_name
from .._core.errors import TransferFailed, staging_left
from .._core.json_shape import WrongShape
from .._core.state_folder import StateError
from .._core.subprocesses import pipe
from .._engine.net.ticket_file import OWN, PEER
from .request import Request
from .state import BENCHMARK, CONSISTENT, RUNNING, JobFolder, JobStatus, all_folders

_POLL = 0.02  # seconds between two looks at first; each lasts a fifth longer, up to half a second
_FORGOTTEN = 30 * 86400  # seconds without a change, after which nobody comes back for the state of a transfer


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
    ``kind`` is that of ``main``. Secrets go through a pipe; they are in no file, argument or environment.
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
    if left and folder.request.get("part") == CONSISTENT:
        from .consistent_job import left_over

        return {**folder.status, "state": "failed", "failure": left_over(left)}
    if left:
        return {**folder.status, "staging_left": True, "failure": str(staging_left(left))}
    return folder.status


def clean_up(folder: JobFolder) -> str:
    """Clear up after the dead job of a folder, whose request says what it made. Never call it while the job lives.

    A killed job leaves its one-time key, its daemon and that one's password, and its staging folder. Return why the
    staging folder stays, though the transfer succeeded, or dumps and snapshots of a backup stay; empty if all is gone,
    or is of use to a rerun.
    """
    request = folder.request
    if request.get("part") == BENCHMARK:
        from .benchmark_job import remove_temporary  # only here, as below: most executions need neither

        return remove_temporary(folder)
    if request.get("part") == CONSISTENT:
        from .consistent_job import undo_left

        return undo_left(folder)
    serve = request.get("serve") or {}
    if serve.get("ssh") == "system":
        _take_key_back(folder.transfer_id, serve)
    if request.get("settings", {}).get("method") == "rsyncd" and request.get("part") == "serve":
        from .._methods.rsyncd import server as rsyncd_server

        _end_daemon(folder)
        for path in rsyncd_server.password_files(folder.transfer_id):
            with contextlib.suppress(OSError):
                os.unlink(path)
    is_done = folder.side == "dest" and os.path.exists(folder.file("succeeded"))
    return _remove_staging(folder.transfer_id, request) if is_done else ""


def remove(folder: JobFolder) -> None:
    """Remove the folder of a dead job, unless it has the list of dumps and snapshots that cannot be removed yet.

    Raises StateError.
    """
    if folder.request.get("part") != CONSISTENT or not clean_up(folder):
        folder.remove()


def remove_forgotten(now: float) -> None:
    """Remove what nobody came back for: folders of transfers, and leases; ``now``: seconds since 1970.

    What has arrived at the destinations stays, and a rerun goes on from there.
    """
    from .leases import remove_forgotten_leases  # only here: most executions start no job

    remove_forgotten_leases(now - _FORGOTTEN)
    for folder in all_folders():
        with contextlib.suppress(OSError, StateError):  # another user of this root is at it, or it stays
            if folder.last_change() < now - _FORGOTTEN and not folder.is_running():
                clean_up(folder)
                remove(folder)


def _remove_staging(transfer_id: str, request: Request) -> str:
    """Remove the staging folder that is left of a transfer that succeeded; return why it stays, empty if it is gone."""
    root, name = os.fsencode(request.get("root", "")), os.fsencode(staging_name(transfer_id))
    settings = request.get("settings", {})
    if settings.get("check", True) or not os.path.lexists(os.path.join(root, name)):  # the usual case
        return ""
    from .._tree import staging
    from .._tree.held_root import open_held, parse_probed

    probed = request.get("probed")
    try:
        root_fd = open_held(root, None if probed is None else parse_probed(probed))
        try:
            with contextlib.closing(staging.Staging(root, name, staging.owners_of(root, settings), root_fd)) as staged:
                return staged.settle(keep_partial=False)
        finally:
            os.close(root_fd)
    except (OSError, TransferFailed, WrongShape) as error:
        return str(error)


def _take_key_back(transfer_id: str, serve: Serve) -> None:
    from .._methods.ssh import authorized_keys

    try:
        user = pwd.getpwnam(serve["user"]) if serve.get("user") else pwd.getpwuid(os.geteuid())
        path = serve.get("authorized_keys") or os.path.join(user.pw_dir, ".ssh", "authorized_keys")
        authorized_keys.remove(path, transfer_id, user.pw_uid, user.pw_gid)
    except (KeyError, TransferFailed):  # the line opens nothing without its job, and the next run replaces it
        pass
    if os.geteuid() == 0:  # where the gate of another login user stood
        shutil.rmtree(f"/run/longhaul-{transfer_id}", ignore_errors=True)


def _end_daemon(folder: JobFolder) -> None:
    """End a daemon whose job and guard were both killed, where the process of that number is still ours."""
    try:
        with open(folder.file("rsyncd.pid"), encoding="ascii") as stream:
            pid = int(stream.read())
    except (OSError, ValueError):
        return
    if f"--config={folder.file('rsyncd.conf')}" in _command_line(pid):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return os.fsdecode(stream.read().replace(b"\0", b" "))
    except OSError:
        pass
    with contextlib.suppress(OSError):
        argv = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
        return os.fsdecode(subprocesses.run(argv).stdout)
    return ""
