# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A limit on the bytes a second that all threads of an end, or all its processes, send together."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from typing import Callable

from ..._core import time_accounting
from ..._core.errors import TransferFailed
from .ticket_file import Tickets

BURST = 10  # a burst is at most what may be sent in a second, divided by this
NAP = 0.1  # seconds between two looks while nothing may be sent
_SHARE = 40  # of a second: how much of the rate is granted at once, at least
_PIECES = 20  # a second, at least, that are sent under the limit: the kernel sends each at once, or at that rate
_STORED = struct.Struct("!dd")


def refill(tokens: float, since: float, rate: int, count: int) -> tuple[float, int]:
    """Return how many tokens are left of ``tokens`` after ``since`` seconds, and how many of ``count`` are granted.

    Less than ``count`` is granted only where that is worth a fortieth of a second, so that pieces do not become small.
    Pure.
    """
    burst = max(1.0, rate / BURST)
    tokens = min(burst, tokens + max(0.0, since) * rate)
    granted = min(count, int(tokens))
    if granted < min(count, max(1, rate // _SHARE)):
        return tokens, 0
    return tokens - granted, granted


class _Memory:
    """The tokens of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens, self._last = 0.0, time.monotonic()

    def grant(self, rate: int, count: int) -> int:
        with self._lock:
            now = time.monotonic()
            self._tokens, granted = refill(self._tokens, now - self._last, rate, count)
            self._last = now
            return granted


class _Shared:
    """The tokens of all processes that use the same file; the clock is that of the system."""

    def __init__(self, path: str) -> None:
        self._path, self._fd = path, -1

    def grant(self, rate: int, count: int) -> int:
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            now, stored = time.monotonic(), os.pread(self._fd, _STORED.size, 0)
            tokens, last = _STORED.unpack(stored) if len(stored) == _STORED.size else (0.0, now)
            tokens, granted = refill(tokens, now - last, rate, count)
            os.pwrite(self._fd, _STORED.pack(tokens, now), 0)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        return granted


class TokenBucket:
    """Lets so many bytes a second through as the limit in force says, and a tenth of a second's worth in a burst.

    ``rate`` is the transfer's own limit (0: none), which ``tickets`` may overrule; they may let nothing through at all
    for a while. ``check`` is called while somebody waits: it raises what ends the waiting. Where ``shared`` names a
    file, all processes that name it have one limit together.
    """

    def __init__(
        self,
        rate: int,
        tickets: Tickets | None = None,
        check: Callable[[], None] = lambda: None,
        shared: str = "",
    ) -> None:
        self._own, self._tickets, self.check = rate, tickets, check
        self._tokens = _Shared(shared) if shared else _Memory()
        self._over = threading.Event()

    @property
    def rate(self) -> int:
        """The limit in force, 0 for none."""
        return self._tickets.read().limit(self._own) if self._tickets is not None else self._own

    @property
    def is_paused(self) -> bool:
        """Whether nothing may be sent now."""
        return self._tickets is not None and self._tickets.read().paused

    def piece(self, most: int, least: int) -> int:
        """Return how many bytes are sent at once: ``most``, or less where that would take long under the limit."""
        rate = self.rate
        return max(least, min(most, rate // _PIECES)) if rate else most

    def grant(self, count: int) -> int:
        """Return how many of ``count`` bytes may be sent now, without waiting; 0: ask again soon."""
        if self.is_paused:
            return 0
        rate = self.rate
        return self._tokens.grant(rate, count) if rate else count

    def take(self, count: int) -> None:
        """Wait until ``count`` bytes may be sent; raises TransferFailed after ``close``, and what ``check`` raises."""
        count -= self.grant(count)
        if count <= 0:
            return
        before = time_accounting.switch(time_accounting.THROTTLED)
        try:
            while count > 0:
                self._nap(count)
                count -= self.grant(count)
        finally:
            time_accounting.switch(before)

    def hold(self) -> None:
        """Wait while nothing may be sent at all."""
        if self.is_paused:
            before = time_accounting.switch(time_accounting.THROTTLED)
            try:
                while self.is_paused:
                    self._nap(0)
            finally:
                time_accounting.switch(before)

    def _nap(self, needed: int) -> None:
        self.check()
        rate = self.rate
        seconds = min(NAP, needed / rate, 1 / _SHARE) if needed and rate else NAP
        if self._over.wait(seconds):
            raise TransferFailed("the transfer ended while contents were on their way")

    def close(self) -> None:
        """End the waiting of all threads with TransferFailed."""
        self._over.set()
