# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which job starts next: by priority, then the longest by what is known, under the limits. Pure.

A job that a limit keeps back waits with what it lacks, and is looked at again when some of that becomes free: so a
fleet of thousands costs no more for each job than a fleet of ten.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .limits import Limits, Pair, Resource


@dataclass(order=True, frozen=True)
class Waiting:
    """A job that waits; the least one comes first."""

    rank: tuple[int, float, int]  # see rank()
    name: str = field(compare=False)
    pair: Pair = field(compare=False)
    is_cutover: bool = field(default=False, compare=False)  # its source may be stopped


def rank(priority: int, size: float, number: int) -> tuple[int, float, int]:
    """Return the rank of a job: a higher ``priority`` first, then the larger ``size``, then the order of the list.

    ``size`` is what is known of how long it takes (seconds, or bytes: the same for all jobs), 0 if nothing is.
    """
    return (-priority, -size, number)


class Queue:
    """The jobs that wait, and what those that run use."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ready: list[Waiting] = []
        self._kept_back: dict[Resource, list[Waiting]] = defaultdict(list)
        self._freed: set[Resource] = set()  # for which a job may have been kept back that could start now
        self._used: Counter[Resource] = Counter()

    def add(self, job: Waiting) -> None:
        """Let a job wait for its turn."""
        heapq.heappush(self._ready, job)

    def next(self) -> Waiting | None:
        """Return the job that starts now, and count what it uses; None if none may start."""
        while heap := self._first():
            job = heapq.heappop(heap)
            lacking = next((one for one in job.pair.resources if not self._is_free(one)), None)
            if lacking is None:
                self._used.update(job.pair.resources)
                return job
            heapq.heappush(self._kept_back[lacking], job)
        return None

    def release(self, pair: Pair) -> None:
        """Count what a job no longer uses."""
        self._used.subtract(pair.resources)
        self._freed.update(pair.resources)

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return len(self._ready) + sum(map(len, self._kept_back.values()))

    def _first(self) -> list[Waiting]:
        """Return the heap with the first of all jobs that may start; empty if there is none."""
        self._freed = {one for one in self._freed if self._kept_back.get(one) and self._is_free(one)}
        heaps = [self._ready, *(self._kept_back[one] for one in self._freed)]
        return min((heap for heap in heaps if heap), key=lambda heap: heap[0], default=[])

    def _is_free(self, resource: Resource) -> bool:
        return self._used[resource] < self._limits.of(resource)


def time_of(limits: Limits, jobs: Iterable[Waiting], seconds: Mapping[str, float]) -> float:
    """Return how long it takes until all jobs have ended, if each takes its ``seconds``, by the order of the queue."""
    waiting, now = Queue(limits), 0.0
    running: list[tuple[float, Waiting]] = []
    for one in jobs:
        waiting.add(one)
    while True:
        while job := waiting.next():
            heapq.heappush(running, (now + seconds[job.name], job))
        if not running:
            return now
        now, ended = heapq.heappop(running)
        waiting.release(ended.pair)
