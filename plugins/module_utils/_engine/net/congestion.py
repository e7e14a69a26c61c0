# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choice of the congestion control of each connection, by what was measured. Pure.

Reno and Cubic take a lost packet for a full queue and slow down: on a long line that loses some whatever its load, each
connection carries a fraction of it. BBR goes by the rate that arrives. It is unfair to others where queues are short,
and brings nothing on a short clean line. So it is tried only where packets are lost while nothing waits in a queue,
with two connections at most, and stays only where these then carry more.

What an earlier transfer between the same hosts found is not looked for again: its connections begin with BBR. Whether
the line still is so is looked at soon, and then every few minutes. If it loses no packets any more, or only those that
a full queue has no room for (``LossProbe``), they get their own back, and the search begins again.
"""

from __future__ import annotations

from typing import Collection, Mapping, NamedTuple

from .tcp_stats import NOTHING, LastQueue, Path, joined

CANDIDATE = "bbr"
MOST = 2  # connections that have it
_LOOK_SECONDS, _LOOK_ROUND_TRIPS = 1.0, 5  # before a trial, at least
_LOOK_PACKETS = 30
_TRIAL_SECONDS, _TRIAL_ROUND_TRIPS = 4.0, 10
_WORTH = 1.2  # times the rate before
_SURE_SECONDS, _SURE_ROUND_TRIPS = 10.0, 30  # after which BBR has found the rate of a line
_AGAIN_SECONDS = 300.0  # after which those that keep it are looked at again
# While the line is probed with less than it carries
PROBE_SHARE = 0.5  # of its rate that each connection sends meanwhile
PROBE_NEW_SHARE = 0.25  # of the rate of all that those send together which come meanwhile: they would fill it again
_PROBE_SETTLED = 1  # round trips after which what is sent again is mostly no more of the time before
_PROBE_ROUND_TRIPS = 3  # of an empty queue, at least
_PROBE_SECONDS, _PROBE_PACKETS = 1.0, 1000  # one of which is enough to tell
_PROBE_MOST_SECONDS, _PROBE_MOST_ROUND_TRIPS = 6.0, 30


class Look(NamedTuple):
    """One connection since the last time."""

    seconds: float
    acked: int  # bytes
    path: Path
    engaged: bool  # it had something to do
    has_candidate: bool = False


class Change(NamedTuple):
    """A connection that gets another congestion control; ``name`` is empty for the one it had before."""

    number: int
    name: str


class _Record(NamedTuple):
    seconds: float
    acked: int
    path: Path

    @property
    def rate(self) -> float:
        return self.acked / self.seconds if self.seconds else 0.0


_EMPTY = _Record(0.0, 0, NOTHING)


class CongestionChoice:
    """Decides after each look at all connections, by their numbers, which of them change over."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}  # since a connection was last judged
        self._before: dict[int, float] = {}  # rates of those that are on trial
        self._begun: dict[int, float] = {}  # those that have it untried, and the seconds before their record
        self._kept: set[int] = set()
        self._confirmed = 0.0  # seconds since one was kept
        self._probe: LossProbe | None = None  # while the line is probed
        self._numbers: Collection[int] = ()  # of the connections there are
        self._has_failed = False
        self._queue = LastQueue()

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self._has_failed and not (self._kept or self._before or self._begun)

    @property
    def kept(self) -> bool:
        """Whether a connection keeps the candidate."""
        return bool(self._kept)

    @property
    def rates(self) -> Mapping[int, int]:
        """The bytes a second that connections may send for now, by their numbers; those that are missing, any."""
        return self._probe.rates(self._numbers) if self._probe else {}

    def take(self, looks: Mapping[int, Look]) -> list[Change]:
        """Learn from a look at the connections; return what changes."""
        self._numbers = looks.keys()
        for number, look in looks.items():
            if look.engaged:
                seconds, acked, path = self._records.get(number, _EMPTY)
                both = _Record(seconds + look.seconds, acked + look.acked, joined([path, look.path]))
                self._records[number] = both
        if looks:
            self._queue.take(*_together(looks.values()))
        for number in self._records.keys() - looks.keys():  # it was lost
            del self._records[number]
        for number in self._before.keys() - looks.keys():
            del self._before[number]
        self._kept &= looks.keys()
        self._confirmed += max((look.seconds for look in looks.values()), default=0.0)
        if self._kept and self._confirmed >= _AGAIN_SECONDS:
            self._records = {number: record for number, record in self._records.items() if number not in self._kept}
            self._kept.clear()
        have = {number for number, look in looks.items() if look.has_candidate}
        begun = sorted(have - self._kept - self._before.keys())
        room = max(0, MOST - len(self._kept) - len(self._before))  # another may have come meanwhile
        self._begun = {number: self._begun.get(number, 0.0) for number in begun[:room]}
        surplus = [Change(number, "") for number in begun[room:]]
        judged = self._evaluate_probe(self._probe, looks) if self._probe else self._evaluate_begun()
        changes = [*surplus, *self._evaluate(), *judged]
        return changes if self._probe or self._has_failed else [*changes, *self._try()]

    def _evaluate(self) -> list[Change]:
        changes = []
        for number, before in list(self._before.items()):
            record = self._records.get(number, _EMPTY)
            if not _is_tried(record):
                continue
            del self._before[number]
            if record.rate >= _WORTH * before:
                self._keep(number)
            else:
                self._has_failed = True
                changes.append(Change(number, ""))
            self._records.pop(number)
        return changes

    def _evaluate_probe(self, probe: LossProbe, looks: Mapping[int, Look]) -> list[Change]:
        found = probe.take(*_together(looks.values())) if looks else None
        if found is None and self._begun:
            return []
        self._probe = None
        return self._end_begun({number: bool(found) for number in self._begun})

    def _evaluate_begun(self) -> list[Change]:
        rates = {number: record.rate for number, record in self._records.items()}
        verdicts, is_unsure = {}, False
        for number in list(self._begun):
            record = self._records.get(number, _EMPTY)
            if not _is_tried(record):
                continue
            seconds, _acked, path = record
            if self._kept or not (path.is_long and path.loses and path.queues):
                verdicts[number] = path.is_long and path.loses
                continue
            self._begun[number] += seconds
            is_unsure = is_unsure or self._begun[number] >= max(_SURE_SECONDS, _SURE_ROUND_TRIPS * path.min_rtt)
            self._records.pop(number)
        if is_unsure:
            self._probe = LossProbe(rates)
        return self._end_begun(verdicts)

    def _end_begun(self, verdicts: Mapping[int, bool]) -> list[Change]:
        """Judge connections that began with the candidate: each keeps it, or gets its own back."""
        for number, keeps in verdicts.items():
            self._records.pop(number, None)
            self._begun.pop(number, None)
            if keeps:
                self._keep(number)
        return [Change(number, "") for number, keeps in sorted(verdicts.items()) if not keeps]

    def _keep(self, number: int) -> None:
        self._kept.add(number)
        self._confirmed = 0.0

    def _try(self) -> list[Change]:
        changes = []
        for number, record in sorted(self._records.items()):
            if record.seconds < max(_LOOK_SECONDS, _LOOK_ROUND_TRIPS * record.path.min_rtt):
                continue
            if record.path.packets < _LOOK_PACKETS:
                continue
            if number in self._kept or number in self._before or number in self._begun:
                continue
            self._records.pop(number)
            have = len(self._kept) + len(self._before) + len(self._begun)
            if record.path.starves and not self._queue.is_recent and have < MOST:
                self._before[number] = record.rate
                changes.append(Change(number, CANDIDATE))
        return changes


def _together(looks: Collection[Look]) -> tuple[float, Path]:
    """Return what happened on the line, and in which time."""
    return max(look.seconds for look in looks), joined([look.path for look in looks])


def _is_tried(record: _Record) -> bool:
    """Return whether a connection has had the candidate for long enough to be judged."""
    return record.seconds >= max(_TRIAL_SECONDS, _TRIAL_ROUND_TRIPS * record.path.min_rtt)


class LossProbe:
    """Find out whether a line loses packets by itself, or because it is full, while less is sent than it carries.

    A connection with BBR fills a short queue and goes on, so it meets losses on any line. While it sends half as much,
    the queue drains; what is lost then, the line loses whatever its load. That is over before BBR, which goes by the
    highest rate of ten round trips, takes it for the rate of the line.
    """

    def __init__(self, rates: Mapping[int, float]) -> None:
        """Take the bytes a second that each connection sent so far, by its number."""
        self._rates = {number: rate for number, rate in rates.items() if rate}
        self._lasted = self._empty = self._seen = 0.0  # seconds: since it began, of an empty queue, that count
        self._path = NOTHING

    def rates(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the bytes a second that those with these numbers may send meanwhile."""
        new = [number for number in numbers if number not in self._rates]
        for_new = PROBE_NEW_SHARE * sum(self._rates.values()) / max(1, len(new))
        wanted = {number: PROBE_SHARE * self._rates[number] if number in self._rates else for_new for number in numbers}
        return {number: int(rate) for number, rate in wanted.items() if rate >= 1}

    def take(self, seconds: float, path: Path) -> bool | None:
        """Learn what happened in the last seconds; return whether the line loses by itself, None if that is not known.

        A queue that does not drain is somebody else's, with whom the line is to be shared.
        """
        self._lasted += seconds
        if path.queues or not path.packets:
            self._empty, self._seen, self._path = 0.0, 0.0, NOTHING
        else:
            if self._empty >= _PROBE_SETTLED * path.min_rtt:
                self._seen, self._path = self._seen + seconds, joined([self._path, path])
            self._empty += seconds
        is_told = self._seen >= _PROBE_SECONDS or self._path.packets >= _PROBE_PACKETS
        if is_told and self._seen >= _PROBE_ROUND_TRIPS * path.min_rtt:
            return self._path.loses
        return False if self._lasted >= max(_PROBE_MOST_SECONDS, _PROBE_MOST_ROUND_TRIPS * path.min_rtt) else None
