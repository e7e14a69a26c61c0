# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prepare the consistent sources of a backup, hold them while they are read, and undo them. Private to the collection.

The control node ends the job when the transfers have ended. If it does not come back, the job undoes the sources on its
own, once nothing on this host has read them for a while. A job that was killed is cleaned up after by the next one.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Callable, TypeVar

from .._consistent.load import load_dumps
from .._consistent.made import MadeList
from .._consistent.preparation import prepare
from .._consistent.request import ConsistentRequest, parse_consistent, parse_load, parse_scratch_load
from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape, as_object
from .._model.paths import escape
from .reporter import Reporter
from .state import JobFolder, source_reader

if TYPE_CHECKING:
    from types import FrameType

_LIST = "made"  # in the job's folder
_MOST_LOADED = 100  # databases that are named
_Asked = TypeVar("_Asked")
_STEP = 1.0  # seconds between two looks at who reads the sources


class _StopRequest(Exception):
    """The control node ends the job."""


def run_consistent(folder: JobFolder, _secrets: dict[str, str], reporter: Reporter) -> int:
    """Be the job that has the sources until it is told to stop, or nobody reads them; return the exit code.

    Its state is serving while they are ready, and ``idle`` while nothing on this host reads them.
    """
    try:
        request = parse_consistent(folder.request)
    except WrongShape as error:
        raise TransferFailed(f"the job's request cannot be read: {error}. Run the task again") from error
    signal.signal(signal.SIGTERM, _stop)
    # A folder of dumps that it has locked tells this to others.
    made = MadeList(
        folder.file(_LIST), f"the backup to {folder.request.get('peer_name', '')} with the id {folder.transfer_id}"
    )
    reporter.progress.phase = "preparing"
    failure = ""
    try:
        reporter.set(state="running")
        prepare(request, made, reporter.progress)
        reporter.set(state="serving", idle=True)
        _hold(request, reporter)
    except _StopRequest:
        pass
    except TransferFailed as error:
        failure = str(error)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        left = made.undo()
    if failure or left:
        raise TransferFailed(". ".join([*([failure] if failure else []), *([left_over(left)] if left else [])]))
    reporter.set(state="finished")
    return 0


def _begin_load(folder: JobFolder, reporter: Reporter, parse: Callable[[object], _Asked]) -> _Asked:
    """Return what a job that loads dumps is asked for; from now on it runs until it is told to stop."""
    try:
        asked = parse(as_object(folder.request, "the request").get("load"))
    except WrongShape as error:
        raise TransferFailed(f"the job's request cannot be read: {error}. Run the task again") from error
    signal.signal(signal.SIGTERM, _stop)
    reporter.progress.phase = "loading dumps"
    reporter.set(state="running")
    return asked


def run_load(folder: JobFolder, _secrets: dict[str, str], reporter: Reporter) -> int:
    """Be the job that loads dumps that were restored; return the exit code."""
    asked = _begin_load(folder, reporter, parse_load)
    loaded: list[list[str]] = []

    def tell(name: str, new: str) -> None:
        loaded.append([escape(os.fsencode(one)) for one in (name, new)])
        reporter.status["loaded"] = loaded[:_MOST_LOADED]

    try:
        load_dumps(asked, reporter.progress, tell)
    except _StopRequest:
        raise TransferFailed("loading the dumps was stopped") from None
    reporter.set(state="finished")
    return 0


def run_drill(folder: JobFolder, _secrets: dict[str, str], reporter: Reporter) -> int:
    """Be the job that loads dumps into a server of a drill; return the exit code.

    Its state is serving once all are loaded, until it is told to stop, and then the server is gone with all it has.
    """
    from .._consistent.scratch_server import scratch_server  # a backup needs none

    asked = _begin_load(folder, reporter, parse_scratch_load)
    is_loaded = False
    try:
        with scratch_server(asked) as server:
            server.load(reporter.progress)
            is_loaded = True
            reporter.set(state="serving")
            server.hold()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself
    except _StopRequest:
        if not is_loaded:
            raise TransferFailed("loading the dumps was stopped") from None
    reporter.set(state="finished")
    return 0


def undo_left(folder: JobFolder) -> str:
    """Undo what a job has left, and return why something stays, which is in its list for the next time."""
    return MadeList(folder.file(_LIST)).undo()


def left_over(left: str) -> str:
    """Return the failure for dumps and snapshots that stay; ``left`` says which ones, and why."""
    return f"what was prepared for the backup cannot be removed: {left}. Remove it by hand"


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _StopRequest


def _hold(request: ConsistentRequest, reporter: Reporter) -> None:
    """Wait until nothing on this host has read the sources for as long as the request says."""
    trees = [os.path.realpath(os.fsencode(path)) for path in request.readers]  # as the requests of transfers have them
    read = time.monotonic()
    while time.monotonic() - read < request.undo_after:
        is_read = any(source_reader(tree, idle=False) for tree in trees)
        if is_read:
            read = time.monotonic()
        if reporter.status.get("idle") == is_read:
            reporter.set(idle=not is_read)
        time.sleep(min(_STEP, request.undo_after / 4))
