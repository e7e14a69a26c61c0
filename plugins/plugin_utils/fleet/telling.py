# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of many pairs says while it runs: a line for each pair as long as they are few, else one for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..status import Status
from ..units import format_bytes, progress_line

FEW = 8  # running pairs, of which each has a line of its own
_SOONEST, _LATEST, _GROWTH = 15.0, 300.0, 1.3  # seconds between two lines for all, and how that grows


class Teller:
    """Shows how far the running transfers are. ``now`` are the seconds of any clock."""

    def __init__(self, say: Callable[[str], None], now: Callable[[], float], total: int) -> None:
        """Take where lines go, a clock, and how many jobs there are."""
        self._say, self._now, self._total = say, now, total
        self._ended = self._failed = 0
        self._interval = _SOONEST
        self._next = now() + _SOONEST
        self._before: dict[str, tuple[float, int]] = {}  # when, and how many bytes were there

    def ended(self, failed: bool) -> None:
        """Count a job that has ended."""
        self._ended += 1
        self._failed += failed

    def progress(self, running: Mapping[str, Status]) -> None:
        """Show how far the transfers are, by their names, if it is time to."""
        if len(running) <= FEW:
            for name, status in running.items():
                self._tell_one(name, status)
        elif self._now() >= self._next:
            self._tell_all(running)
            self._interval = min(self._interval * _GROWTH, _LATEST)
            self._next = self._now() + self._interval
        self._before = {name: one for name, one in self._before.items() if name in running}

    def _tell_one(self, name: str, status: Status) -> None:
        rate = self._rate(name, status)
        if rate is not None or name not in self._before:
            self._say(progress_line(name, status.progress, rate))
            self._note(name, status)

    def _tell_all(self, running: Mapping[str, Status]) -> None:
        rates = [self._rate(name, status) or 0.0 for name, status in running.items()]
        for name, status in running.items():
            self._note(name, status)
        done = sum(status.progress.bytes_done for status in running.values())
        self._say(
            f"{self._ended} of {self._total} jobs have ended, {self._failed} of them failed; {len(running)} transfers "
            f"run: {format_bytes(done)} so far, {format_bytes(sum(rates))}/s"
        )

    def _note(self, name: str, status: Status) -> None:
        self._before[name] = (self._now(), status.progress.bytes_done)

    def _rate(self, name: str, status: Status) -> float | None:
        """Return the bytes a second since the last line about a transfer; None before the first one, or at once."""
        at, count = self._before.get(name, (self._now(), 0))
        seconds = self._now() - at
        return max(0, status.progress.bytes_done - count) / seconds if seconds > 0.5 else None
