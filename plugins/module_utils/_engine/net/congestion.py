# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which connections get another congestion control, by what was measured. Pure.

Reno and Cubic take a lost packet for a full queue and slow down: on a long line that loses some whatever its load, each
connection carries a fraction of it. BBR goes by the rate that arrives. It is unfair to others where queues are short,
and brings nothing on a short clean line. So it is tried only where packets are lost while nothing waits in a queue,
with two connections at most, and stays only where these then carry more.

What an earlier transfer between the same hosts found is not looked for again: its connections begin with BBR. They keep
it as long as the line loses packets; where it does not any more, they get their own back, and the search begins again.
"""

from __future__ import annotations

from typing import Collection, Mapping, NamedTuple

from .path import NOTHING, LastQueue, Path, joined

CANDIDATE = "bbr"
MOST = 2  # connections that have it
_LOOK_SECONDS, _LOOK_ROUND_TRIPS = 1.0, 5  # before a trial, at least
_LOOK_PACKETS = 30
_TRIAL_SECONDS, _TRIAL_ROUND_TRIPS = 4.0, 10
_WORTH = 1.2  # times the rate before


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
        self._begun: set[int] = set()  # those that had it from the beginning, and are not judged yet
        self._kept: set[int] = set()
        self._has_failed = False
        self._queue = LastQueue()

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self._has_failed or len(self._kept) >= MOST

    @property
    def kept(self) -> bool:
        """Whether a connection keeps the candidate."""
        return bool(self._kept)

    def take(self, looks: Mapping[int, Look]) -> list[Change]:
        """Learn from a look at the connections; return what changes."""
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
        have = {number for number, look in looks.items() if look.has_candidate}
        begun = sorted(have - self._kept - self._before.keys())
        room = max(0, MOST - len(self._kept) - len(self._before))  # another may have come meanwhile
        self._begun = set(begun[:room])
        surplus = [Change(number, "") for number in begun[room:]]
        return [*surplus, *self._judge(), *self._judge_begun(), *([] if self.over else self._try())]

    def _judge(self) -> list[Change]:
        changes = []
        for number, before in list(self._before.items()):
            record = self._records.get(number, _EMPTY)
            if not _is_tried(record):
                continue
            del self._before[number]
            if record.rate >= _WORTH * before:
                self._kept.add(number)
            else:
                self._has_failed = True
                changes.append(Change(number, ""))
            self._records.pop(number)
        return changes

    def _judge_begun(self) -> list[Change]:
        changes = []
        for number in sorted(self._begun):
            record = self._records.get(number, _EMPTY)
            if not _is_tried(record):
                continue
            self._records.pop(number)
            if record.path.loses:
                self._kept.add(number)
            else:
                changes.append(Change(number, ""))
        self._begun -= self._kept | {change.number for change in changes}
        return changes

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
    """Whether a connection has had the candidate for long enough to be judged."""
    return record.seconds >= max(_TRIAL_SECONDS, _TRIAL_ROUND_TRIPS * record.path.min_rtt)
