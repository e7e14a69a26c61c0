# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of many pairs says while it runs: a line for each pair where they are few, else one for all.

The lines come less often the longer the run takes, so that their number is bounded whatever its length. Where the
callback longhaul.fleet.progress shows the run, it is told instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import NamedTuple

from ..common.host_text import one_line
from ..common.units import amounts, progress_line
from ..transfer.status import Status
from ..transfer.watching import Speaker
from .progress_file import PairProgress, ProgressLog, ProgressSnapshot, ProgressWriter
from .progress_view import fleet_line

FEW = 8  # running pairs, of which each has a line of its own
_MANY = 20  # jobs in all; of no more than so many each has its own lines, of more only one at its end
_MOST_NOTES = 100  # of many jobs, such as that a step is tried again
_SOONEST, _LATEST = 5.0, 3600.0  # seconds between two times at which lines are shown
_SHARE = 0.05  # of the time that the run has taken so far, that passes between them
_TOO_SOON = 0.5  # seconds between two figures, from which no rate can be told
_PUBLISHED = 1.0  # seconds between two snapshots, at least


class Output(Enum):
    """How much a run shows, as the variable longhaul_output has it."""

    QUIET = "quiet"  # the end of each job, and what failed
    NORMAL = "normal"
    VERBOSE = "verbose"  # whole reports of jobs that failed, too


class Activity(NamedTuple):
    """What a job does now."""

    phase: str  # in a column of nine characters
    words: str = ""  # in a line; empty: as its hosts say


class ProgressPrinter:
    """Shows how far the running transfers are. ``now`` are the seconds of the machine's monotonic clock.

    Comparisons are watched in other threads (``watched``), all else happens in the main one.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        now: Callable[[], float],
        total: int,
        activity_of: Callable[[str], Activity] = lambda _name: Activity(""),
        publisher: ProgressWriter | None = None,
        output: Output = Output.NORMAL,
        log: ProgressLog | None = None,
    ) -> None:
        """Take where lines go, a clock, how many jobs there are, what each does, and where snapshots and events go."""
        self._say, self._now, self._total, self._activity_of = say, now, total, activity_of
        self._publisher = publisher if publisher and publisher.is_watched else None
        self._output, self._log = output, log or ProgressLog("", say, write=False)
        self._lock = threading.RLock()
        self._ended = self._failed = 0
        self._began, self._next = now(), now() + _SOONEST
        self._published = 0.0
        self._running: Mapping[str, Status] = {}
        self._watched: dict[str, Status] = {}
        self._pairs: dict[str, tuple[Status, PairProgress]] = {}  # by name: the status that was last told, and as what
        self._logged: dict[str, PairProgress] = {}
        self._told: set[str] = set()
        self._notes = 0
        self.is_many = total > _MANY

    def ended(self, failed: bool, name: str = "") -> None:
        """Count a job that has ended."""
        with self._lock:
            self._ended += 1
            self._failed += failed
            if name:
                self._log.ended(name, failed)
            if self._publisher:
                self._publish()

    def progress(self, running: Mapping[str, Status]) -> None:
        """Show how far the transfers are, by their names, if it is time to."""
        with self._lock:
            self._running = dict(running)
            self._show()

    def watched(self, name: str, status: Status | None) -> None:
        """Take how far a comparison of a job is; None: it has ended."""
        with self._lock:
            if status is None:
                self._watched.pop(name, None)
            else:
                self._watched[name] = status
                self._show()

    def speaker(self, name: str) -> Speaker:
        """Return where the transfer of a job tells its lines, and how far its comparison is."""
        return Speaker(self.tell_of_one, partial(self.watched, name))

    def _show(self) -> None:
        running = {**self._running, **self._watched}
        self._pairs = {name: one for name, one in self._pairs.items() if name in running}
        for name in running if self._log.is_wanted else ():
            self._write(self._pair(name, running[name]))
        if self._publisher:
            self._publish()
            return
        if self._output is Output.QUIET:
            return
        is_time = self._now() >= self._next
        if is_time:
            self._next = self._now() + min(_LATEST, max(_SOONEST, _SHARE * (self._now() - self._began)))
        if len(running) <= FEW and not self.is_many:
            for name, status in running.items():
                pair = self._pair(name, status)
                key = f"{name} {pair.phase}"  # each phase of a job is told at once
                if is_time or key not in self._told:
                    self._told.add(key)
                    self._say(progress_line(name, status.progress, pair.rate, pair.paused, pair.activity))
        elif is_time:
            self._say(fleet_line(self._snapshot()))

    def tell_of_one(self, line: str) -> None:
        """Show what one transfer says on its way, if that is not one line for each of many."""
        if not self.is_many and self._output is not Output.QUIET:
            self._say(line)

    def note(self, line: str) -> None:
        """Show what a person should know of one job at once; of many jobs, only the first such lines."""
        if self._output is Output.QUIET:
            return
        self._notes += 1
        if not self.is_many or self._notes <= _MOST_NOTES:
            self._say(line)
        elif self._notes == _MOST_NOTES + 1:
            self._say("More lines like these are not shown")

    def close(self) -> None:
        """Show no more: the run has ended."""
        if self._publisher:
            self._publisher.close()

    def _write(self, pair: PairProgress) -> None:
        """Append how far a job is to the log, unless that was done a moment ago."""
        before = self._logged.get(pair.name)
        if before is None or pair.at - before.at >= _PUBLISHED or pair.phase != before.phase:
            self._logged[pair.name] = pair
            self._log.progress(pair)

    def _publish(self) -> None:
        if self._publisher and self._now() - self._published >= _PUBLISHED:
            self._published = self._now()
            self._publisher.publish(self._snapshot())

    def _snapshot(self) -> ProgressSnapshot:
        pairs = [self._pair(name, status) for name, status in {**self._running, **self._watched}.items()]
        return ProgressSnapshot(self._total, self._ended, self._failed, pairs)

    def _pair(self, name: str, status: Status) -> PairProgress:
        """Return how far a transfer is; its rate is that since it was told before."""
        now, progress = self._now(), status.progress
        said = one_line(progress.phase)
        activity = Activity(said[:9], said) if name in self._watched else self._activity_of(name)
        before, pair = self._pairs.get(name, (None, None))
        if pair is not None and pair.phase != activity.phase:
            pair = None  # the rate of what ran before
        if pair is not None and (before is status or now - pair.at < _TOO_SOON):
            return pair
        done = amounts(progress).done
        rate = None if pair is None else max(0, done - pair.amounts.done) / (now - pair.at)
        totals = (progress.bytes_done, progress.bytes_total, progress.files_done)
        more = (progress.files_total, activity.words, progress.current)
        pair = PairProgress(name, activity.phase, *totals, rate, status.paused, now, *more)
        self._pairs[name] = (status, pair)
        return pair
