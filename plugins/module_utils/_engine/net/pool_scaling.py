# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many data connections pay, by what was measured. Pure.

On a long line one connection carries no more than its window for each round trip, or what a policer or the hash of a
load balancer leaves it; so more connections carry more. Nobody knows that beforehand: twice as many are tried, kept
where the rate grew, and let go of where it did not. What is measured is disturbed by much else, so that only the second
vain trial in a row is the last one.
"""

from __future__ import annotations

from typing import NamedTuple

_WORTH = 1.1  # times the rate: what a trial must bring
_VAIN_TRIALS = 2  # in a row; then it stays as it is
# New connections fill buffers at once, and begin slowly then. So a rate is measured after a while, in two periods that
# follow each other, and counts when it hardly rises any more, or has risen for long.
_SETTLING_SECONDS = 1.5
_PERIOD_SECONDS = 1.0
_RISES = 1.05  # times the rate of the period before
_MOST_PERIODS = 8
_WAITS = 0.5  # share of its time that a connection waits for a network that is too slow for it
_BUSY = 0.85  # share of the processors from which on more connections would only share them
_LIMITED = 0.9  # share of bwlimit that counts as all of it


class Sample(NamedTuple):
    """What went through the connections in a short time, half a second or so."""

    seconds: float
    bytes: int
    waiting: float  # share of the connections' time that they waited for the network; may be 0 now and 2 then
    processor: float  # share of the processors that this end may use, and used
    engaged: bool  # all connections that there should be are there, and had something to do


class Growth:
    """Decides after each sample how many connections there should be; from ``begin`` to ``most``.

    ``limit`` are the bytes a second that are allowed, 0 for all.
    """

    def __init__(self, begin: int, most: int, limit: int = 0) -> None:
        self.count = self.kept = begin  # to ``kept`` a vain trial returns
        self._most, self._limit = most, limit
        self._rate = 0.0  # of those
        self._vain = 0
        self._settle()

    @property
    def over(self) -> bool:
        """Whether nothing will be tried any more."""
        return self._vain == _VAIN_TRIALS or self.kept == self._most

    def _settle(self) -> None:
        self._settling = _SETTLING_SECONDS
        self._periods = 0
        self._before: list[Sample] = []  # the period before
        self._samples: list[Sample] = []  # this one

    def take(self, sample: Sample) -> int:
        """Learn from a sample; gives how many connections there should be from now on."""
        if self.over:
            pass
        elif not sample.engaged:
            self._settle()
        elif self._settling > 0:
            self._settling -= sample.seconds
        else:
            self._measure(sample)
        return self.count

    def _measure(self, sample: Sample) -> None:
        self._samples.append(sample)
        if sum(one.seconds for one in self._samples) < _PERIOD_SECONDS:
            return
        before, now = self._before, self._samples
        self._before, self._samples = now, []
        self._periods += 1
        if before and (_rate(now) <= _RISES * _rate(before) or self._periods == _MOST_PERIODS):
            self._periods = 0
            self._decide(before + now)

    def _decide(self, samples: list[Sample]) -> None:
        rate = _rate(samples)
        if self.count == self.kept:
            self._rate = rate
        elif rate >= _WORTH * self._rate:
            self.kept, self._rate, self._vain = self.count, rate, 0
        else:
            self._vain += 1
            self.count = self.kept
            self._settle()
            return
        if not self.over and self._may_pay(samples, rate):
            self.count = min(self._most, 2 * self.kept)
            self._settle()

    def _may_pay(self, samples: list[Sample], rate: float) -> bool:
        """Whether the network is what is waited for, and nothing else is in the way."""
        if self._limit and rate >= _LIMITED * self._limit:
            return False
        seconds = sum(sample.seconds for sample in samples)
        waiting = sum(sample.waiting * sample.seconds for sample in samples)
        processor = sum(sample.processor * sample.seconds for sample in samples)
        return waiting >= _WAITS * seconds and processor < _BUSY * seconds


def _rate(samples: list[Sample]) -> float:
    return sum(sample.bytes for sample in samples) / sum(sample.seconds for sample in samples)
