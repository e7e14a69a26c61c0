# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watch the jobs of one host or both until they end, and tell how far they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress

from ..common.units import amounts, progress_line
from ..hosts.host_runner import ControllerGone, HostFailed, HostRunner, LeaseLost
from ..hosts.pair import run_parallel
from .status import Status, parse_status
from .steps import poll

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey

_INTERVALS = (1.0, 2.0, 3.0, 5.0)  # seconds between the first progress lines; the last one counts for all that follow
_LATER = 10.0
_RETRY = 3.0  # seconds after which a host that could not be asked is asked again

Running = Mapping[str, "tuple[HostRunner, JobKey]"]  # by side: the host of a job, and its folder there


class Speaker:
    """Takes the lines of a transfer for one of many jobs, and how far the jobs on its hosts are.

    Who shows many jobs at once makes lines of that when it is time to. A plain function in the place of a speaker gets
    a line at each look. It is called from several threads.
    """

    def __init__(self, say: Callable[[str], None], show: Callable[[Status | None], None]) -> None:
        """Take where lines go, and where a status goes; None: what was watched has ended."""
        self._say, self.show = say, show

    def __call__(self, line: str) -> None:
        self._say(line)


def watch(runner: HostRunner, folder: JobKey, label: str, say: Callable[[str], None], patience: float) -> Status:
    """Return the last status of the job in ``folder`` (``id`` and ``side``) once it has ended.

    ``say`` takes a line to show, or is a Speaker. The host may be out of the control node's reach for ``patience``
    seconds; after that HostFailed says that the transfer itself goes on.
    """
    try:
        return _watch_one(runner, folder, _show_by(say, label), patience)
    finally:
        if isinstance(say, Speaker):
            say.show(None)


def watch_all(
    running: Running, begun: Mapping[str, Status], label: str, say: Callable[[str], None], patience: float
) -> dict[str, Status]:
    """Return the last status of the jobs on both hosts; see watch. ``begun`` has what each side said at first.

    Both are asked at the same time, and shown as one, which is as far as the slower of them.
    """
    if not running:
        return {}
    lock, known, show = threading.Lock(), dict(begun), _show_by(say, label)
    news: set[str] = set()

    def tell(side: str, status: Status) -> None:
        with lock:
            known[side] = status
            news.add(side)
            if news >= {one for one in running if known[one].alive}:  # else the slower one seems to stand still
                news.clear()
                show(slower_of(known))

    def watch_side(side: str) -> Status:
        runner, folder = running[side]
        status = _watch_one(runner, folder, partial(tell, side), patience)
        with lock:
            known[side] = status
        return status

    works = {side: partial(watch_side, side) for side in running}
    try:
        return run_parallel(works)
    finally:
        if isinstance(say, Speaker):
            say.show(None)


def slower_of(statuses: Mapping[str, Status]) -> Status:
    """Return the status of two jobs as one. A job that has ended is as far as it can be. Pure."""
    running = [one for one in statuses.values() if one.alive] or list(statuses.values())
    last = min(running, key=lambda one: amounts(one.progress).done)
    progress = Progress()
    vars(progress).update(vars(last.progress))
    for name in ("bytes_total", "files_total"):
        setattr(progress, name, max(getattr(one.progress, name) for one in running))
    return replace(last, progress=progress, paused=any(one.paused for one in running))


def _show_by(say: Callable[[str], None], label: str) -> Callable[[Status], None]:
    """Return what shows a status: the speaker's own function, or one that makes a line of each."""
    if isinstance(say, Speaker):
        return say.show
    before: list[tuple[float, int]] = []

    def show(status: Status) -> None:
        now, done = time.monotonic(), amounts(status.progress).done
        rate = None
        if before:
            at, had = before.pop()
            rate = max(0, done - had) / max(now - at, 1e-3)
        before.append((now, done))
        say(progress_line(label, status.progress, rate, status.paused))

    return show


def _watch_one(runner: HostRunner, folder: JobKey, show: Callable[[Status], None], patience: float) -> Status:
    intervals = iter(_INTERVALS)
    reached = time.monotonic()
    while True:
        try:
            (said,) = runner.run(poll(folder, next(intervals, _LATER)))
        except (ControllerGone, LeaseLost):
            raise
        except HostFailed as error:
            if time.monotonic() - reached > patience:
                raise HostFailed(
                    f"{error}. The job on that host goes on without the control node; run the same task again to attach"
                ) from None
            runner.reset()
            time.sleep(_RETRY)
            continue
        reached = time.monotonic()
        status = parse_status(said)
        if not status.alive:
            return status
        show(status)
