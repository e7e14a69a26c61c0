# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a line loses packets by itself, or because it is full: a look at it while less is sent than it carries. Pure.

A connection with BBR fills a short queue and goes on, so it meets losses on any line. While it sends half as much, the
queue drains; what is lost then, the line loses whatever its load. That is over before BBR, which goes by the highest
rate of ten round trips, takes it for the rate of the line.
"""

from __future__ import annotations

from typing import Collection, Mapping

from .path import NOTHING, Path, joined

SHARE = 0.5  # of its rate that each connection sends meanwhile
NEW_SHARE = 0.25  # of the rate of all that those send together which come meanwhile: they would fill the line again
_SETTLED = 1  # round trips after which what is sent again is mostly no more of the time before
_ROUND_TRIPS = 3  # of an empty queue, at least
_SECONDS, _PACKETS = 1.0, 1000  # one of which is enough to tell
_MOST_SECONDS, _MOST_ROUND_TRIPS = 6.0, 30


class EasedLook:
    """One such look."""

    def __init__(self, rates: Mapping[int, float]) -> None:
        """Take the bytes a second that each connection sent so far, by its number."""
        self._rates = {number: rate for number, rate in rates.items() if rate}
        self._lasted = self._empty = self._seen = 0.0  # seconds: since it began, of an empty queue, that count
        self._path = NOTHING

    def rates(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the bytes a second that those with these numbers may send meanwhile."""
        new = [number for number in numbers if number not in self._rates]
        for_new = NEW_SHARE * sum(self._rates.values()) / max(1, len(new))
        wanted = {number: SHARE * self._rates[number] if number in self._rates else for_new for number in numbers}
        return {number: int(rate) for number, rate in wanted.items() if rate >= 1}

    def take(self, seconds: float, path: Path) -> bool | None:
        """Learn what happened in the last seconds; return whether the line loses by itself, None if that is not known.

        A queue that does not drain is somebody else's, with whom the line is to be shared.
        """
        self._lasted += seconds
        if path.queues or not path.packets:
            self._empty, self._seen, self._path = 0.0, 0.0, NOTHING
        else:
            if self._empty >= _SETTLED * path.min_rtt:
                self._seen, self._path = self._seen + seconds, joined([self._path, path])
            self._empty += seconds
        is_told = self._seen >= _SECONDS or self._path.packets >= _PACKETS
        if is_told and self._seen >= _ROUND_TRIPS * path.min_rtt:
            return self._path.loses
        return False if self._lasted >= max(_MOST_SECONDS, _MOST_ROUND_TRIPS * path.min_rtt) else None
