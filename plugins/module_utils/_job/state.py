# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state folder of a transfer on a host, and the locks that show whether it runs.

Private to the collection. One folder a transfer and side: ``<state root>/<id>/<side>``, mode 0700. Nothing secret is
ever written there. A job runs while it holds the ``flock`` on its ``lock`` file, so a dead process, a reused process id
or a reboot can never look like a running job.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Iterator, Mapping, cast

from .._core.errors import TransferFailed
from .._core.json_shape import well_formed
from .._core.state_folder import StateError, private_folder, state_root
from .request import Request, parse_request

if TYPE_CHECKING:
    from typing import TypedDict

    from .._core.context import Peer, ProgressData

    class JobStatus(TypedDict, total=False):
        """What a job last said of itself. ``alive`` and what follows it are added by who asks."""

        # starting, running, serving, served, finished, failed, paused, cancelled; died is what the launcher says
        state: str
        pid: int
        started: float  # seconds since 1970, like the next two
        updated: float
        ended: float
        failure: str
        unreachable: bool  # it failed because its peer could not be reached
        lost: bool  # it failed because the connection to its peer broke for good
        idle: bool  # the serving end: its peer was connected, and is not any more
        spent: object  # by the serving end, since its peer came: time_accounting.Account
        staging_left: bool  # it failed because its staging folder could not be removed
        progress: ProgressData
        ticket: object  # the one of this side that is in force: Ticket.dump
        paused: bool  # by the ticket of either side
        bwlimit: int  # bytes a second that are allowed, 0 for all
        ready: Peer  # by the serving end
        outcome: object  # of a transfer: Outcome.as_dict
        digest: object  # of a tree that was compared
        owners: object  # of a tree whose owners were counted
        benchmark: object  # what was measured
        loaded: list[list[str]]  # databases with their new names
        alive: bool
        log: str  # its end
        then: list[object]  # results of the steps that followed
        then_seconds: float

    class JobInfo(TypedDict):
        """A transfer of this user on this host, as transfer_info returns it."""

        id: str
        side: str
        part: str
        method: str
        peer: str  # inventory host
        root: str
        state: str  # interrupted where the job died
        pid: int
        started: float
        updated: float  # when it last wrote its status
        paused: bool
        bwlimit: int  # bytes a second
        failure: str  # why it failed
        progress: JobProgress

    class JobProgress(ProgressData, total=False):
        """How far a job is, with what transfer_info adds; empty while an early job has not written it yet."""

        rate: int  # bytes a second
        eta: int | None  # seconds that are left

else:  # making such classes takes time at each job's start
    JobStatus = JobInfo = JobProgress = dict

SIDES = ("source", "dest")
BENCHMARK = "benchmark"  # the part of a job that measures, and is no transfer
CONSISTENT = "consistent"  # that of one which has the consistent sources of a backup
RUNNING = ("starting", "running", "serving")  # states of a job that has not ended
_LOCK_ATTEMPTS, _LOCK_PAUSE = 10, 0.05  # seconds
_CLAIM_ATTEMPTS = 200


def _write_json(path: str, data: Mapping[str, object]) -> None:
    """Replace a file in one step, so that a reader never sees half of it."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="ascii") as stream:
        json.dump(data, stream)
    os.replace(temporary, path)


def _read_json(path: str) -> object:
    try:
        with open(path, encoding="ascii") as stream:
            return cast(object, json.load(stream))
    except (OSError, ValueError):
        return {}


_STATUS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("state", "failure"), str),
    **dict.fromkeys(("unreachable", "lost", "idle", "staging_left", "paused"), bool),
    **dict.fromkeys(("started", "updated", "ended"), (int, float)),
    **dict.fromkeys(("progress", "ready", "ticket"), dict),
    **dict.fromkeys(("pid", "bwlimit"), int),
}


def parse_job_status(value: object) -> JobStatus:
    """Return what stands in ``status.json``, without what is not as JobStatus has it."""
    return cast(JobStatus, well_formed(value, _STATUS))


class JobFolder:
    """The folder of one side of one transfer."""

    def __init__(self, transfer_id: str, side: str) -> None:
        if side not in SIDES or not transfer_id.isalnum():
            raise ValueError(f"no such side or id: {side}, {transfer_id}")
        self.transfer_id = transfer_id
        self.side = side
        self.path = os.path.join(state_root(), transfer_id, side)

    def create(self) -> None:
        """Make the folder and those above it."""
        for path in (state_root(), os.path.dirname(self.path), self.path):
            private_folder(path)

    def file(self, name: str) -> str:
        """Return the path of a file in this folder."""
        return os.path.join(self.path, name)

    @property
    def request(self) -> Request:
        """What the job was asked to do; empty if there is none."""
        return parse_request(_read_json(self.file("request.json")))

    @request.setter
    def request(self, data: Mapping[str, object]) -> None:
        _write_json(self.file("request.json"), data)

    @property
    def status(self) -> JobStatus:
        """What the job last said of itself; empty if there is none."""
        return parse_job_status(_read_json(self.file("status.json")))

    @status.setter
    def status(self, data: JobStatus) -> None:
        _write_json(self.file("status.json"), data)

    def last_change(self) -> float:
        """Return when something in the folder changed last, in seconds since 1970. Raises OSError."""
        with os.scandir(self.path) as found:
            return max([os.stat(self.path).st_mtime, *(entry.stat(follow_symlinks=False).st_mtime for entry in found)])

    def mark_succeeded(self) -> None:
        """Leave word that the transfer succeeded: what is staged may go."""
        with open(self.file("succeeded"), "w", encoding="ascii"):
            pass

    def lock(self) -> int | None:
        """Take the lock and give its descriptor, to be kept open while the job lives; None if a job has it.

        Tries for a moment: who asks whether a job runs (``is_running``) has the lock while asking.
        """
        for _attempt in range(_LOCK_ATTEMPTS):
            descriptor = _take_lock(self.file("lock"))
            if descriptor is not None:
                return descriptor
            time.sleep(_LOCK_PAUSE)
        return None

    def is_running(self) -> bool:
        """Return whether a living job holds the lock."""
        try:
            descriptor = os.open(self.file("lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def log_tail(self, limit: int = 4000) -> str:
        """Return the end of what the job and its programs wrote, at most ``limit`` bytes."""
        try:
            with open(self.file("log"), "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - limit))
                return stream.read().decode(errors="surrogateescape")
        except OSError:
            return ""

    def remove(self) -> None:
        """Remove the folder, and those above it that are empty now.

        It is moved aside first: a process that still writes into it by its name finds nothing, and creates nothing.
        Raises StateError if it cannot be removed.
        """
        import shutil  # here, since it takes its time to import, and jobs need it never

        aside = os.path.join(state_root(), f".{self.transfer_id}-{self.side}-{os.getpid()}")
        try:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path, aside)
                shutil.rmtree(aside)
        except OSError as error:
            raise StateError(
                f"the state of a transfer that has ended cannot be removed: {error}. Remove {aside} by hand"
            ) from error
        for path in (os.path.dirname(self.path), os.path.join(state_root(), "locks"), state_root()):
            with contextlib.suppress(OSError):
                os.rmdir(path)


def _take_lock(path: str) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        try:
            same = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            same = False
        if same:
            return descriptor
        os.close(descriptor)  # the holder before us removed the file between our open and our lock: take the new one


def destination_key(root: bytes) -> str:
    """Return the name of the lock on a destination root."""
    return hashlib.sha256(root).hexdigest()[:32]


def destination_holder(root: bytes) -> str | None:
    """Return which transfer of this user writes to a destination root at this moment; None if none does."""
    path = os.path.join(state_root(), "locks", destination_key(root))
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            try:
                # Shared, so that two who ask do not take each other for a writer.
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return stream.read() or "another transfer"
    except OSError:
        pass  # no lock, no writer
    return None


@contextlib.contextmanager
def destination_lock(root: bytes, holder: str) -> Iterator[str | None]:
    """Hold the lock on a destination root; yields None when it is ours, else who has it.

    ``holder`` is told to the next one who finds it taken.
    """
    folder = os.path.join(state_root(), "locks")
    private_folder(state_root())
    private_folder(folder)
    path = os.path.join(folder, destination_key(root))
    descriptor = _take_lock(path)
    if descriptor is None:
        with open(path, encoding="utf-8", errors="replace") as stream:
            yield stream.read() or "another transfer"
        return
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder.encode(), 0)
        yield None
    finally:
        os.unlink(path)
        os.close(descriptor)


@contextlib.contextmanager
def benchmark_lock() -> Iterator[None]:
    """Hold the lock under which one benchmark of this user looks for others. Raises TransferFailed if it is not free.

    Processes hold it for a moment only.
    """
    folder = os.path.join(state_root(), "locks")
    private_folder(state_root())
    private_folder(folder)
    path = os.path.join(folder, BENCHMARK)
    for _attempt in range(_CLAIM_ATTEMPTS):
        descriptor = _take_lock(path)
        if descriptor is not None:
            break
        time.sleep(_LOCK_PAUSE)
    else:
        raise TransferFailed(f"{path} stays locked: another benchmark of this user hangs on this host. Look for it")
    try:
        yield
    finally:
        os.unlink(path)
        os.close(descriptor)


def all_folders() -> Iterator[JobFolder]:
    """Yield the folder of each transfer that this user has on this host, running or left behind."""
    try:
        names = sorted(os.listdir(state_root()))
    except OSError:
        return
    for name in names:
        for side in SIDES:
            if name != "locks" and name.isalnum() and os.path.isdir(os.path.join(state_root(), name, side)):
                yield JobFolder(name, side)


def source_reader(folder: bytes, idle: bool = True) -> str | None:
    """Return which transfer or comparison of this user reads below a folder at this moment; None if none does.

    One whose peer is gone counts if it may be ``idle``.
    """
    for job in all_folders():
        root = os.fsencode(job.request.get("root", ""))
        if job.side == "source" and (root + b"/").startswith(folder + b"/") and job.is_running():
            if not idle and job.status.get("idle"):
                continue
            return f"transfer {job.transfer_id} (process {job.status.get('pid', 0)})"
    return None


def list_jobs() -> list[JobInfo]:
    """Describe each transfer that this user has on this host."""
    jobs: list[JobInfo] = []
    for folder in all_folders():
        request, status = folder.request, folder.status
        if request.get("part") in (BENCHMARK, CONSISTENT):
            continue
        state = status.get("state", "starting")
        runs = state in RUNNING
        if runs and not folder.is_running():
            state, runs = "interrupted", False
        jobs.append(
            {
                "id": folder.transfer_id,
                "side": folder.side,
                "part": request.get("part", ""),
                "method": request.get("settings", {}).get("method", ""),
                "peer": request.get("peer_name", ""),
                "root": request.get("root", ""),
                "state": state,
                "pid": status.get("pid", 0),
                "started": status.get("started", 0),
                "updated": status.get("updated", 0),
                "paused": runs and status.get("paused", False),
                "bwlimit": status.get("bwlimit", 0),
                "failure": status.get("failure", ""),
                "progress": cast(JobProgress, status.get("progress", {})),
            }
        )
    return jobs
