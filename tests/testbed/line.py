# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A long line: what becomes of each packet on it. Pure; ``line_relay.py`` passes the packets."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass

LEAST_QUEUE = 32 << 10  # bytes
OVERTAKEN = 0.01  # seconds by which a packet that others overtake comes later


@dataclass(frozen=True)
class Line:
    """The same in both directions. Times are in seconds, shares between 0 and 1."""

    rtt: float = 0.0  # of a small packet on the idle line
    rate: int = 0  # bits a second; 0: as fast as the relay is
    loss: float = 0.0  # share of the packets that are lost, whatever the load
    burst: float = 1.0  # packets that are lost in a row, on average; 1: each by itself
    jitter: float = 0.0  # by which a packet comes later, at most; the order stays
    reorder: float = 0.0  # share of the packets that others overtake
    queue: int = 0  # bytes that wait for the line, at most; 0: as many as it carries in a round trip
    seed: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a line that cannot be."""
        if min(self.rtt, self.rate, self.jitter, self.queue) < 0:
            raise ValueError("the times, the rate and the queue of a line are not negative")
        if not (0 <= self.loss < 1 and 0 <= self.reorder < 1 and self.burst >= 1):
            raise ValueError("loss and reorder of a line are shares below 1, and a burst has at least one packet")

    @property
    def room(self) -> int:
        """The bytes that the queue holds."""
        return self.queue or max(LEAST_QUEUE, int(self.rate * self.rtt / 8))

    def dump(self) -> dict[str, float]:
        """Return the arguments that make an equal line."""
        return asdict(self)


class Way:
    """One direction of a line."""

    def __init__(self, line: Line, seed: int) -> None:
        self._line, self._random = line, random.Random(seed)
        self._free_at = 0.0  # when the line has sent what waits for it
        self._last = 0.0  # when the packet before arrives
        self._is_losing = False
        # The chances that a burst of losses begins, and ends, with a packet.
        self._ends = 1 / line.burst
        self._begins = line.loss * self._ends / (1 - line.loss)
        self.passed = self.bytes = self.lost = self.dropped = self.overtaken = 0

    def offer(self, now: float, size: int) -> float | None:
        """Return when a packet of ``size`` bytes that comes ``now`` arrives; None if it never does."""
        line = self._line
        begins = max(now, self._free_at)
        if line.rate:
            if (begins - now) * line.rate / 8 + size > line.room:
                self.dropped += 1
                return None
            self._free_at = begins + size * 8 / line.rate
        if self._loses():
            self.lost += 1
            return None
        self.passed += 1
        self.bytes += size
        arrives = (self._free_at if line.rate else now) + line.rtt / 2
        if line.jitter:
            arrives += self._random.random() * line.jitter
        if line.reorder and self._random.random() < line.reorder:
            self.overtaken += 1
            return arrives + OVERTAKEN
        self._last = arrives = max(arrives, self._last)
        return arrives

    def _loses(self) -> bool:
        """Whether the next packet is lost: a chain of two states, with bursts of a geometric length."""
        if not self._line.loss:
            return False
        if self._is_losing:
            self._is_losing = self._random.random() >= self._ends
        if not self._is_losing:
            self._is_losing = self._random.random() < self._begins
        return self._is_losing

    def counts(self) -> dict[str, int]:
        """Return what became of the packets, and the bytes of those that passed."""
        names = ("passed", "bytes", "lost", "dropped", "overtaken")
        return {name: getattr(self, name) for name in names}
