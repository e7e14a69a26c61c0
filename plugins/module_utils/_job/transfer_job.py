# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One end of a transfer, from its start to its end. Private to the collection."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import stat
import threading
import time
from typing import Any, Callable, Iterator

from .._core import time_accounting
from .._core.context import ChangeTimeFiles, Context, Server
from .._core.disk_full import FULL, full_disk
from .._core.errors import StagingLeft, TransferCancelled, TransferFailed, TransferPaused, staging_left
from .._core.host_name import numeric_address, plain
from .._core.outcome import Outcome
from .._core.settings import parse_settings
from .._methods import registry
from .._model.ticket import PAUSED
from .._snapshot import names
from .._tree.held_root import ProbedRoot, open_held
from .._tree.resolve import resolve
from .confine_job import confine_job
from .control_loop import ControlLoop, obey_tickets
from .reporter import Reporter
from .request import parse_transfer_request
from .state import JobFolder, destination_lock

FIRST_CONNECTION = 120.0  # seconds that a serving end waits for the driving end to come
AFTER_SUCCESS = 120.0  # seconds, at most, that it still listens: the driving end may have missed the last message
CHECK_INTERVAL = 0.1  # seconds
LOG_BYTES = 1 << 20  # of a job's log, at most
LOG_KEPT_BYTES = 256 << 10  # of the newest lines, where there are more
_COMPARES_NO_CHANGE_TIMES = ("rsync", "rsyncd")  # methods whose program knows none
_OWNER_FILE = b"owner"
_OTHER_ID = 1  # that is not root's
_LOG_LINE = 4000  # characters of one entry


def run_transfer(folder: JobFolder, secrets: dict[str, str], reporter: Reporter) -> int:
    """Be one end of the transfer that the folder's request describes; gives the exit code."""
    request = parse_transfer_request(folder.request)
    context = Context(
        side=request["side"],
        part=request["part"],
        root=os.fsencode(request["root"]),
        settings=parse_settings(request.get("settings")),
        folder=folder.path,
        peer=request.get("peer"),
        serve=request.get("serve"),
        secrets=secrets,
        progress=reporter.progress,
        log=JobLog(folder.file("log"), 2),
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: context.stop.set())
    if context.side == "source":
        context.root_fd = _open_source(context.root, request.get("probed"))
    else:
        context.older_fds = hold_older(context.settings["link_dest"])
    method = registry.load(context.settings["method"])
    with _explain_full(context), obey_tickets(context, reporter.set) as control:
        try:
            return _take_part(context, folder, request.get("probed"), method, reporter, control)
        except TransferFailed as error:
            if control.is_cancelled:
                raise TransferCancelled(str(error)) from error
            if control.failure or PAUSED in str(error):  # as the peer says
                raise TransferPaused(control.failure or str(error)) from error
            raise


@contextlib.contextmanager
def _explain_full(context: Context) -> Iterator[None]:
    """Say where there is no room, whatever needed it: the destination, or the folder of the transfer's state."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise full_disk(error, context, f"{error.strerror}") from error


def _take_part(
    context: Context,
    folder: JobFolder,
    probed: ProbedRoot | None,
    method: Any,
    reporter: Reporter,
    control: ControlLoop,
) -> int:
    """Serve or drive, and report how that ended; gives the exit code."""
    if context.part == "serve":
        with _destination(context, folder, probed):
            _serve(context, method, reporter, control)
        if control.failure:
            raise TransferPaused(control.failure)
        reporter.set(state="cancelled" if control.is_cancelled else "served")
        return 0
    outcome = Outcome()
    try:
        with _destination(context, folder, probed):
            _watch_disk(context)
            confinement = confine_job(context)
            control.start()
            reporter.set(state="running")
            time_accounting.begin()
            outcome = method.drive(context)
            outcome.confinement = confinement
            outcome.spent.setdefault(context.side, time_accounting.account())
            failed = bool(outcome.failure or outcome.errors_total)
            if not failed:
                folder.mark_succeeded()
    except StagingLeft as left:
        outcome.failure, failed = str(left), True
    if failed and control.is_cancelled:
        reporter.set(state="cancelled", outcome=outcome.as_dict())
    elif failed and (control.failure or PAUSED in outcome.failure):
        outcome.failure = control.failure or outcome.failure
        reporter.set(state="paused", outcome=outcome.as_dict())
    else:
        reporter.set(state="failed" if failed else "finished", outcome=outcome.as_dict())
    return int(failed)


def _watch_disk(context: Context) -> None:
    """Count the use of the disk below the root, and look at its ZFS pool, before a confined process cannot."""
    if context.root_fd >= 0:
        from .._core.disk_usage import DiskMeter

        time_accounting.watch_disk(DiskMeter(context.root_fd))


def _serve(context: Context, method: Any, reporter: Reporter, control: ControlLoop) -> None:
    context.serve["address"] = own_address(context.serve.get("address", ""))
    _watch_disk(context)
    confinement = confine_job(context)
    control.start()
    server = method.serve(context)
    try:
        server.ready["time_units"] = context.settings["time_units"]
        server.ready["mounts"] = context.settings["mounts"]
        reporter.set(state="serving", ready={"confinement": confinement, **server.ready})
        _wait_for_end(context, server, reporter)
    finally:
        server.close()


def own_address(address: str) -> str:
    """Return the numeric address to listen at; empty (any) where it is not this host's own, as behind a NAT."""
    try:
        found = socket.getaddrinfo(plain(address), 0, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    for family, kind, protocol, _name, target in found:
        try:
            with socket.socket(family, kind, protocol) as trial:
                trial.bind(target)
                return numeric_address(target)
        except OSError:
            continue
    return ""


def _wait_for_end(context: Context, server: Server, reporter: Reporter) -> None:
    """Wait until the job is told to stop, or the driving end is done or stayed away; report when it goes and comes."""
    patience = FIRST_CONNECTION
    seen = time.monotonic()
    was_active = has_begun = False
    while not context.stop.wait(CHECK_INTERVAL):
        is_active = server.active()
        if is_active:
            seen, patience = time.monotonic(), max(FIRST_CONNECTION, float(context.settings["timeout"]))
        elif server.has_succeeded and time.monotonic() - seen > min(AFTER_SUCCESS, float(context.settings["timeout"])):
            return
        elif time.monotonic() - seen > patience:
            context.log(f"nobody was connected for {patience:.0f} seconds: ending")
            return
        if is_active != was_active:
            was_active = is_active
            if not is_active:
                reporter.set(idle=True, spent=time_accounting.account())
                continue
            if not has_begun:
                has_begun = True
                time_accounting.begin()
            reporter.set(idle=False)


@contextlib.contextmanager
def _destination(context: Context, folder: JobFolder, probed: ProbedRoot | None) -> Iterator[None]:
    """Make the destination ready before, and put it in order after; does nothing for the source."""
    if context.side != "dest":
        yield
        return
    from .._tree import staging  # here, as below: a source never needs it
    from .._tree.time_units import learn_file_systems

    holder = f"transfer {context.settings['id']} (process {os.getpid()})"
    with destination_lock(context.root, holder) as taken_by:
        if taken_by is not None:
            raise TransferFailed(
                f"{taken_by} is writing to {os.fsdecode(context.root)} at this moment. Two transfers into one "
                "destination would undo each other's work: wait for it to end, or end that process"
            )
        if context.settings["check"]:
            try:
                context.root_fd = open_held(context.root, probed)
            except (FileNotFoundError, NotADirectoryError):  # predicted against nothing
                context.root = os.fsencode(os.path.join(folder.path, "empty"))
                os.makedirs(context.root, exist_ok=True)
            except OSError as error:
                raise TransferFailed(
                    f"the destination {os.fsdecode(context.root)} cannot be read: {error.strerror}. Use become, or fix "
                    "the permissions"
                ) from error
            else:
                learn_file_systems(context)
            with hold_beside(context):
                yield
            return
        succeeded = functools.partial(os.path.exists, folder.file("succeeded"))
        with _root(context, probed, succeeded):
            with contextlib.closing(staging.open_staging(context)) as staged:
                context.serve["leftover"] = staged.prepare(registry.leftover_adopter(context.settings["method"]))
                try:
                    require_owners(context)
                    learn_file_systems(context)
                    with hold_beside(context):
                        yield
                finally:
                    left = staged.settle(context.settings["partial"] and not succeeded())
                    if left:
                        context.log(left)
                if left and succeeded():
                    raise staging_left(left)


def require_owners(context: Context) -> None:
    """Try to give a file in the staging folder away, where the transfer must keep owners.

    A file system of another machine may refuse root what a local one allows it, and a whole tree that arrives with the
    wrong owners is no copy.
    Raises TransferFailed if the file system refuses, or keeps the old owner without an error. Does nothing for users
    other than root, who cannot give files away anywhere.
    """
    if os.geteuid() != 0 or not {"owner", "group"} & set(context.settings["preserve"]):
        return
    from .._tree.staging import open_staging

    reason = _owner_refusal(open_staging(context).temporary_fd)
    if reason:
        raise TransferFailed(
            f"the file system of {os.fsdecode(context.root)} does not keep owners ({reason}), as NFS with root_squash "
            "and CIFS without POSIX extensions do not. Nothing was written. Export it with no_root_squash, or set "
            "preserve without owner and group"
        )


def _owner_refusal(folder_fd: int) -> str:
    """Return why files in the folder cannot be given away; empty if they can."""
    fd = os.open(_OWNER_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
    try:
        os.fchown(fd, _OTHER_ID, _OTHER_ID)
        status = os.fstat(fd)
        return "" if (status.st_uid, status.st_gid) == (_OTHER_ID, _OTHER_ID) else "chown has no effect"
    except OSError as error:
        return f"chown: {error.strerror}"
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(_OWNER_FILE, dir_fd=folder_fd)


@contextlib.contextmanager
def hold_beside(context: Context) -> Iterator[None]:
    """Open what is kept beside the trees of snapshots, while this job may still open what is outside of the root.

    That is the change times of the source's files, and the manifests of the older trees.
    """
    if context.settings["method"] in _COMPARES_NO_CHANGE_TIMES:
        if not context.settings["check"] and context.root_fd >= 0:
            _remove_beside(context.root_fd, names.change_times_of(os.fsdecode(context.root)))
        yield
        return
    trees = [(fd, path) for fd, path in zip(context.older_fds or [], context.settings["link_dest"]) if fd >= 0]
    older = [_open_beside(fd, names.change_times_of(path), os.O_RDONLY) for fd, path in trees]
    manifests = [_open_manifest(fd, path) for fd, path in trees]
    place = names.change_times_of(os.fsdecode(context.root)) if context.root_fd >= 0 else None
    own = _open_beside(context.root_fd, place, os.O_RDONLY if context.settings["check"] else os.O_RDWR | os.O_CREAT)
    if max(own, *older, -1) >= 0:
        context.change_times = ChangeTimeFiles(own, older)
    if max(manifests, default=-1) >= 0:
        from .._snapshot.moved_files import MovedFiles  # most transfers need none

        context.moved = [
            MovedFiles(fd, (names.part_of(path) or (0, ""))[1]).find if fd >= 0 else None
            for fd, (_tree, path) in zip(manifests, trees)
        ]
    try:
        yield
    finally:
        context.change_times, context.moved = None, []
        for fd in (own, *older, *manifests):
            if fd >= 0:
                os.close(fd)


def _remove_beside(tree_fd: int, place: tuple[int, str] | None) -> None:
    """Remove a list that an interrupted run left: this run fills the tree without a look at it."""
    if place is None:
        return
    levels, name = place
    folder = "/".join([".."] * levels)
    with contextlib.suppress(FileNotFoundError):
        os.stat(f"{folder}/{names.FACTS}", dir_fd=tree_fd, follow_symlinks=False)  # else it is no snapshot
        os.unlink(f"{folder}/{name}", dir_fd=tree_fd)


def _open_beside(tree_fd: int, place: tuple[int, str] | None, flags: int) -> int:
    """Open the file of a tree that ``place`` names in the folder of its snapshot; -1 if there is none."""
    if place is None:
        return -1
    levels, name = place
    try:
        folder = os.open("/".join([".."] * levels), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=tree_fd)
    except FileNotFoundError:
        return -1
    try:
        if flags & os.O_CREAT:
            os.stat(names.FACTS, dir_fd=folder, follow_symlinks=False)  # else it is no snapshot that was begun
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise TransferFailed(
            f"{name} in the folder of the snapshot cannot be opened: {error.strerror}. It keeps the change times of "
            "the source's files: move it away if it is none of the collection's, and look into the log of the disk"
        ) from error
    finally:
        os.close(folder)


def _open_manifest(tree_fd: int, path: str) -> int:
    """Open the manifest of a tree; -1 if there is none, or it cannot be read: then files that were moved are sent."""
    with contextlib.suppress(TransferFailed):
        return _open_beside(tree_fd, names.manifest_of(path), os.O_RDONLY)
    return -1


@contextlib.contextmanager
def _root(context: Context, probed: ProbedRoot | None, succeeded: Callable[[], bool]) -> Iterator[None]:
    """Make and hold the destination's root; take it back where the transfer failed before anything arrived."""
    from .._core.files import missing_of
    from .._tree import staging

    root = os.fsdecode(context.root)
    unusable = TransferFailed(
        f"the destination {root} cannot be written to by user id {os.geteuid()} (permissions, or a read-only file "
        "system): nothing was transferred. Use become, or fix the permissions"
    )
    context.made = made = missing_of(context.root)
    try:
        context.root_fd = open_held(context.root, probed, make=True)
    except NotADirectoryError:
        raise TransferFailed(f"{root} is not a directory: name a directory as the destination") from None
    except OSError as error:
        if not made:
            raise unusable from error
        raise TransferFailed(f"the destination {root} cannot be made: {error.strerror}") from error
    try:
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=context.root_fd):
            raise unusable
        yield
    finally:
        if not succeeded():
            staging.take_back(made)


def _open_source(root: bytes, probed: ProbedRoot | None) -> int:
    """Hold the source's root."""
    try:
        return open_held(root, probed)
    except OSError as error:  # by its path alone it could lead elsewhere by now
        raise TransferFailed(f"the source {os.fsdecode(root)} cannot be read: {error.strerror}") from error


def hold_older(folders: list[str]) -> list[int]:
    """Open the folders of link_dest, and put their real paths into the list; -1 stands for one that is missing."""
    held = []
    for number, folder in enumerate(folders):
        found = resolve(os.fsencode(folder))
        folders[number] = os.fsdecode(found.real)
        if found.status is None or not stat.S_ISDIR(found.status.st_mode):
            os.close(found.fd)
            held.append(-1)
        else:
            held.append(found.fd)
    return held


class JobLog:
    """Appends to the log of a job, which the job has open as ``fd`` under the name ``path``; for any thread.

    Strangers and a hostile peer decide how often they do what is logged. So the oldest lines go if there are too many.
    """

    def __init__(self, path: str, fd: int) -> None:
        self._path, self._fd = path, fd
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Log a text."""
        line = text if len(text) <= _LOG_LINE else f"{text[:_LOG_LINE]} ..."
        with self._lock:
            os.write(self._fd, (line + "\n").encode(errors="surrogateescape"))
            if os.fstat(self._fd).st_size > LOG_BYTES:
                self._shorten()

    def _shorten(self) -> None:
        with open(self._path, "rb") as stream:
            stream.seek(-LOG_KEPT_BYTES, os.SEEK_END)
            stream.readline()  # the rest of a line
            kept = stream.read()
        os.ftruncate(self._fd, 0)  # it is open for appending
        os.write(self._fd, b"(earlier lines are gone)\n" + kept)
