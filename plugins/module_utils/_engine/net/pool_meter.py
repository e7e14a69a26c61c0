# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure what the data connections carry, and have as many as pay.

Nothing of this is imported before a transfer has taken a moment: most are over by then.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ..._core import time_accounting
from .path_meter import PathMeter, look_at
from .pool_scaling import Growth, Sample
from .smoothing import smoothed

if TYPE_CHECKING:
    from .data_connection import DataConnection
    from .pool import ConnectionPool

SAMPLE_SECONDS = 0.5


def grow(streams: ConnectionPool, over: threading.Event, side: str, most: int, limit: int) -> None:
    """Try more connections until no more pay, or ``over`` is set; see Growth."""
    growth = Growth(streams.count, most, limit)
    sends = side == "source"
    meter = _Meter(time_accounting.SEND if sends else time_accounting.RECEIVE)
    while not growth.over and not streams.refused and not over.wait(SAMPLE_SECONDS):
        sample = meter.read(streams.links(), streams.count)
        count = growth.take(sample._replace(bears_losses=sends and bool(streams.congestion)))
        streams.resize(count, meter.rates)
        streams.proven = growth.kept


class _Meter:
    """Takes samples; ``occupation`` is what the connections' threads do while they wait for the network."""

    def __init__(self, occupation: str) -> None:
        self._occupation = occupation
        self._passed: dict[DataConnection, int] = {}
        self.rates: dict[int, float] = {}  # bytes a second of each connection, by its number
        self._path = PathMeter()
        self._at, self._waited, self._processor, _cores = self._look()

    def _look(self) -> tuple[float, float, float, int]:
        account = time_accounting.account()
        wall, processor = account["roles"].get(time_accounting.LINK, {}).get(self._occupation, (0.0, 0.0))
        return time.monotonic(), wall - processor, account["processor"], account["cores"]

    def read(self, links: list[DataConnection], wanted: int) -> Sample:
        """Return what happened since the last time."""
        at, waited, processor, cores = self._look()
        seconds = max(at - self._at, 1e-9)
        # Each link is looked at once: its thread goes on meanwhile.
        looks = [(link, link.at_rest, link.passed - link.held()) for link in links]
        moved = [passed - self._passed.get(link, 0) for link, _at_rest, passed in looks]
        self.rates = {
            link.number: smoothed(self.rates.get(link.number), max(0, count) / seconds, seconds)
            for link, count in zip(links, moved)
        }
        engaged = all(count or not at_rest for count, (_link, at_rest, _passed) in zip(moved, looks))
        sample = Sample(
            seconds=seconds,
            bytes=sum(moved),
            waiting=(waited - self._waited) / (seconds * max(1, len(links))),  # known when the waiting is over
            processor=(processor - self._processor) / (seconds * cores),
            engaged=engaged and len(links) == wanted,
            path=self._path.take(look_at(links)),
            least=min(self.rates.values(), default=0.0) / max(sum(self.rates.values()), 1.0),
        )
        self._passed = {link: passed for link, _at_rest, passed in looks}
        self._at, self._waited, self._processor = at, waited, processor
        return sample
