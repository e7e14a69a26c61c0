# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The number of data connections: ``Growth`` decides by what ``grow`` measures.

Most transfers are over before this is imported.

On a long line one connection carries no more than its window for each round trip, or what a policer or the hash of a
load balancer leaves it; so more connections carry more. Nobody knows that beforehand: twice as many are tried, kept
where the rate grew, and let go of where it did not. What is measured is disturbed by much else, so that only the second
vain trial in a row is the last one.

Where packets are lost although nothing waits in a queue, the losses and not the line hold each connection back. Then
there are soon as many as there may be, and no trial on a line that is that noisy could tell more: what they carried
together is compared once with what there was before, and they go again only where they carried clearly less.

Where packets of a long line wait in a queue, the line is full, and each connection takes its share from others that use
it. They are given up, the slowest first, up to half of them at once, as long as the queue has room for what they had
under way: the rest grow into that, and the line stays full. That goes on when no more are tried, or when an earlier
transfer had found that as many pay as there may be: the line may have changed. Where some bear losses, as the line
loses packets whatever its load, the queue is theirs alone, and those that are given up would leave it to nobody.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ..._core import time_accounting
from ..._model.rate import smoothed
from .tcp_stats import NOTHING, LastQueue, Path, PathMeter, joined, sample_links

if TYPE_CHECKING:
    from .data_connection import DataConnection
    from .pool import ConnectionPool

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
_ROUND_TRIPS = 5  # in which a rate is measured, at least
_COSTS = 0.85  # times the rate before: what is clearly less
_AS_MUCH = 0.95  # times the rate before: what is no less
_WAIT_SECONDS = 10.0  # until one is given up again after some were missed; each time twice as long
_TAKEN = 0.7  # times the rate before: what is left at least where others took the part of one that was given up
_PATIENCE = 5.0  # seconds in which the rest may grow into the part of one that was given up
_ROOM = 0.9  # share of what fills the line that must be under way without the one that is given up


class PoolSample(NamedTuple):
    """Measurement of the connections over a short time, half a second or so."""

    seconds: float
    bytes: int
    waiting: float  # share of the connections' time that they waited for the network; may be 0 now and 2 then
    processor: float  # share of the processors that this end may use, and used
    engaged: bool  # all connections that there should be are there, and had something to do
    path: Path = NOTHING
    least: float = 1.0  # share of what goes through all connections that goes through the slowest one
    bears_losses: bool = False  # some have a congestion control that does: the line loses packets whatever its load


class Growth:
    """Decides after each sample how many connections there should be; it begins with ``begin``, and has up to ``most``.

    ``limit`` are the bytes a second that are allowed, 0 for all.
    """

    def __init__(self, begin: int, most: int, limit: int = 0) -> None:
        self.count = self.kept = begin  # to ``kept`` a vain trial returns
        self._most, self._limit = most, limit
        self._rate = 0.0  # of those
        self._vain = 0
        self._rtt = 0.0
        self._noisy: list[PoolSample] = []  # since the number last changed, on a line that loses packets
        self._fallback = 0  # how many there were before losses were seen; 0: none were, or that has been judged
        self._waits = 0.0  # seconds in which none is given up
        self._wait = _WAIT_SECONDS  # after the next one that is missed
        self._was_full = False
        self._is_long = True  # as far as is known: only on a long line they are given up
        self._queue = LastQueue()
        self._given_up = 0.0  # the rate before a connection was given up; 0: none was, or that has been judged
        self._patience = 0.0  # seconds until that is judged at the latest
        self._spared, self._at_once = 0, most  # how many were given up last, and how many may be
        self._settle()

    @property
    def over(self) -> bool:
        """Whether the number will not change any more."""
        return self._has_grown and (self.kept == 1 or not self._is_long)

    @property
    def _has_grown(self) -> bool:
        """Whether no more will be tried."""
        return self._vain == _VAIN_TRIALS or (self.kept == self._most and not self._fallback)

    def _settle(self) -> None:
        self._settling = max(_SETTLING_SECONDS, _ROUND_TRIPS * self._rtt)
        self._periods = 0
        self._before: list[PoolSample] = []  # the period before
        self._samples: list[PoolSample] = []  # this one

    def take(self, sample: PoolSample) -> int:
        """Learn from a sample; gives how many connections there should be from now on."""
        self._rtt, self._is_long = sample.path.rtt, sample.path.is_long
        self._queue.take(sample.seconds, sample.path)
        self._waits = max(0.0, self._waits - sample.seconds)
        if self.over:
            pass
        elif not sample.engaged:
            self._settle()
        elif not self._has_grown and self._is_starved(sample):
            self._multiply()
        elif self._settling > 0:
            self._settling -= sample.seconds
        else:
            self._measure(sample)
        return self.count

    def _is_starved(self, sample: PoolSample) -> bool:
        """Return whether losses have held all connections back for long enough since there were so many."""
        if self.kept == self._most or (self._limit and sample.bytes >= _LIMITED * self._limit * sample.seconds):
            return False
        self._noisy.append(sample)
        if sum(one.seconds for one in self._noisy) < max(_PERIOD_SECONDS, _ROUND_TRIPS * self._rtt):
            return False
        path, self._noisy = joined([one.path for one in self._noisy]), []
        return path.starves and not self._queue.is_recent

    def _multiply(self) -> None:
        if not self._fallback and self.count == self.kept and self._rate:
            self._fallback = self.kept
        self.count = self.kept = min(self._most, 2 * self.count)
        self._settle()

    def _measure(self, sample: PoolSample) -> None:
        self._samples.append(sample)
        if sum(one.seconds for one in self._samples) < max(_PERIOD_SECONDS, _ROUND_TRIPS * self._rtt):
            return
        before, now = self._before, self._samples
        self._before, self._samples = now, []
        self._periods += 1
        if self._yields(now) or self._has_grown:
            return
        if before and (_rate(now) <= _RISES * _rate(before) or self._periods == _MOST_PERIODS):
            self._periods = 0
            self._decide(before + now)

    def _decide(self, samples: list[PoolSample]) -> None:
        rate = _rate(samples)
        if self._fallback:
            if rate < _COSTS * self._rate:
                self.count = self.kept = self._fallback
                self._vain = _VAIN_TRIALS
            self._fallback = 0
        if self.count == self.kept:
            self._rate = rate
        elif rate >= _WORTH * self._rate:
            self.kept, self._rate, self._vain = self.count, rate, 0
        elif rate >= _COSTS * self._rate and joined([sample.path for sample in samples]).is_long:
            # Those that go would leave a gap, into which the others grow by a packet in a round trip.
            self.kept, self._vain = self.count, self._vain + 1
        else:
            self._vain += 1
            self.count = self.kept
            self._settle()
            return
        if not self._has_grown and not self._was_full and self._may_pay(samples, rate):
            self.count = min(self._most, 2 * self.kept)
            self._settle()

    def _yields(self, samples: list[PoolSample]) -> bool:
        """Have the slowest connections no more if the line stays full without them, or again if they are missed.

        Return whether the number changed.
        """
        if self.count != self.kept or self._fallback:
            return False
        rate, path = _rate(samples), joined([sample.path for sample in samples])
        before, self._given_up = self._given_up, 0.0
        self._patience -= sum(sample.seconds for sample in samples)
        if rate < _AS_MUCH * before and not path.is_full:
            if not self._is_missed(rate / before, path):
                self._given_up = before
                return False
            self.count = self.kept = self.kept + self._spared
            self._at_once = 1
            self._waits, self._wait = self._wait, 2 * self._wait
        else:
            spare = self._count_spare(path, samples[-1])
            if not spare:
                return False
            self._spared = spare
            self.count = self.kept = self.kept - spare
            self._given_up, self._was_full = rate, True
            self._patience = _PATIENCE
        self._settle()
        return True

    def _is_missed(self, left: float, path: Path) -> bool:
        """Return whether the rate fell after a connection was closed; ``left`` is its share of the rate before.

        Where packets still wait in a queue, others have its part.
        """
        if path.queues:
            return left < _TAKEN
        return left < _COSTS or self._patience <= 0

    def _count_spare(self, path: Path, last: PoolSample) -> int:
        """Return how many of the slowest connections the line stays full without."""
        if self.kept == 1 or self._waits > 0 or last.bears_losses or not (path.is_long and path.is_full):
            return 0
        needed = _ROOM * path.min_rtt / path.rtt  # of what is under way, and waits in the queue
        # The slowest have no more of it than their number says, and the very slowest may have much less.
        at_once = min(int((1 - needed) * self.kept), self.kept // 2, self._at_once)
        return at_once or int(1 - min(last.least, 1 / self.kept) >= needed)

    def _may_pay(self, samples: list[PoolSample], rate: float) -> bool:
        """Return whether more connections could raise the rate.

        They cannot if the rate limit, the processor or a full line is the bottleneck, or if the threads of the
        connections seldom wait for the network.
        """
        if self._limit and rate >= _LIMITED * self._limit:
            return False
        path = joined([sample.path for sample in samples])
        if path.is_long and path.queues:  # the line is full, and those that go again leave a gap that lasts
            return False
        seconds = sum(sample.seconds for sample in samples)
        waiting = sum(sample.waiting * sample.seconds for sample in samples)
        processor = sum(sample.processor * sample.seconds for sample in samples)
        return waiting >= _WAITS * seconds and processor < _BUSY * seconds


def _rate(samples: list[PoolSample]) -> float:
    return sum(sample.bytes for sample in samples) / sum(sample.seconds for sample in samples)


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

    def read(self, links: list[DataConnection], wanted: int) -> PoolSample:
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
        sample = PoolSample(
            seconds=seconds,
            bytes=sum(moved),
            waiting=(waited - self._waited) / (seconds * max(1, len(links))),  # known when the waiting is over
            processor=(processor - self._processor) / (seconds * cores),
            engaged=engaged and len(links) == wanted,
            path=self._path.take(sample_links(links)),
            least=min(self.rates.values(), default=0.0) / max(sum(self.rates.values()), 1.0),
        )
        self._passed = {link: passed for link, _at_rest, passed in looks}
        self._at, self._waited, self._processor = at, waited, processor
        return sample
