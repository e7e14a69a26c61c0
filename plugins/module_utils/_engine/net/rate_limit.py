# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A limit on the bytes a second that all threads of an end send together."""

from __future__ import annotations

import threading
import time

from ..._core import time_accounting


class TokenBucket:
    """Lets ``rate`` bytes a second through (0: all), and at most a quarter of a second's worth in a burst."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._burst = rate / 4
        self._tokens = self._burst
        self._last = time.monotonic()
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Wait until ``count`` bytes may be sent."""
        if self._rate <= 0:
            return
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate) - count
            self._last = now
            wait = -self._tokens / self._rate
        if wait > 0:
            before = time_accounting.switch(time_accounting.THROTTLED)
            time.sleep(wait)
            time_accounting.switch(before)
