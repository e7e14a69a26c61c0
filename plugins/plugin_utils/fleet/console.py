# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of many pairs says while it runs: a line for each pair where they are few, else one for all.

The lines come less often the longer the run takes, so that their number is bounded whatever its length. Where the
callback longhaul.fleet.progress shows the run, it is told instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..common.units import progress_line
from ..transfer.status import Status
from .progress_file import PairProgress, ProgressSnapshot, ProgressWriter
from .progress_view import fleet_line

FEW = 8  # running pairs, of which each has a line of its own
_MANY = 20  # jobs in all; of no more than so many each has its own lines, of more only one at its end
_MOST_NOTES = 100  # of many jobs, such as that a step is tried again
_SOONEST, _LATEST = 5.0, 3600.0  # seconds between two times at which lines are shown
_SHARE = 0.05  # of the time that the run has taken so far, that passes between them
_TOO_SOON = 0.5  # seconds between two figures, from which no rate can be told
_PUBLISHED = 1.0  # seconds between two snapshots, at least


class ProgressPrinter:
    """Shows how far the running transfers are. ``now`` are the seconds of the machine's monotonic clock."""

    def __init__(
        self,
        say: Callable[[str], None],
        now: Callable[[], float],
        total: int,
        phase_of: Callable[[str], str] = lambda _name: "",
        publisher: ProgressWriter | None = None,
    ) -> None:
        """Take where lines go, a clock, how many jobs there are, the phase of each, and where snapshots go."""
        self._say, self._now, self._total, self._phase_of = say, now, total, phase_of
        self._publisher = publisher if publisher and publisher.is_watched else None
        self._ended = self._failed = 0
        self._began, self._next = now(), now() + _SOONEST
        self._published = 0.0
        self._running: Mapping[str, Status] = {}
        self._pairs: dict[str, tuple[Status, PairProgress]] = {}  # by name: the status that was last told, and as what
        self._told: set[str] = set()
        self._notes = 0
        self.is_many = total > _MANY

    def ended(self, failed: bool) -> None:
        """Count a job that has ended."""
        self._ended += 1
        self._failed += failed
        if self._publisher:
            self._publish()

    def progress(self, running: Mapping[str, Status]) -> None:
        """Show how far the transfers are, by their names, if it is time to."""
        self._running = dict(running)
        self._pairs = {name: one for name, one in self._pairs.items() if name in running}
        if self._publisher:
            self._publish()
            return
        is_time = self._now() >= self._next
        if is_time:
            self._next = self._now() + min(_LATEST, max(_SOONEST, _SHARE * (self._now() - self._began)))
        if len(running) <= FEW and not self.is_many:
            for name, status in running.items():
                pair = self._pair(name, status)
                if is_time or name not in self._told:
                    self._told.add(name)
                    self._say(progress_line(name, status.progress, pair.rate, pair.paused))
        elif is_time:
            self._say(fleet_line(self._snapshot()))

    def tell_of_one(self, line: str) -> None:
        """Show what one transfer says on its way, if that is not one line for each of many."""
        if not self.is_many:
            self._say(line)

    def note(self, line: str) -> None:
        """Show what a person should know of one job at once; of many jobs, only the first such lines."""
        self._notes += 1
        if not self.is_many or self._notes <= _MOST_NOTES:
            self._say(line)
        elif self._notes == _MOST_NOTES + 1:
            self._say("More lines like these are not shown")

    def close(self) -> None:
        """Show no more: the run has ended."""
        if self._publisher:
            self._publisher.close()

    def _publish(self) -> None:
        if self._publisher and self._now() - self._published >= _PUBLISHED:
            self._published = self._now()
            self._publisher.publish(self._snapshot())

    def _snapshot(self) -> ProgressSnapshot:
        pairs = [self._pair(name, status) for name, status in self._running.items()]
        return ProgressSnapshot(self._total, self._ended, self._failed, pairs)

    def _pair(self, name: str, status: Status) -> PairProgress:
        """Return how far a transfer is; its rate is that since it was told before."""
        now, progress = self._now(), status.progress
        before, pair = self._pairs.get(name, (None, None))
        if pair is not None and (before is status or now - pair.at < _TOO_SOON):
            return pair
        rate = None if pair is None else max(0, progress.bytes_done - pair.bytes_done) / (now - pair.at)
        totals = (progress.bytes_done, progress.bytes_total, progress.files_done)
        pair = PairProgress(name, self._phase_of(name), *totals, rate, status.paused, now)
        self._pairs[name] = (status, pair)
        return pair
