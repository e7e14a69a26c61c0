# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether packing pays on this link, by what was measured on it. Pure. Private to the collection.

What counts is how many bytes of files leave in a second, with the time for packing and the time that the link takes.
Both ways are tried in turn; the better one goes on, and the other is tried again from time to time.
"""

from __future__ import annotations

TRIAL_BYTES = 16 << 20  # of files, until a way is judged: more than the buffers of a connection hold
AGAIN_BYTES = 4 << 30  # until the slower way is tried again
_FRESH = 0.05  # the share of a new measurement in what is known
_HOPELESS = 2  # times slower: a trial ends at once


class Gain:
    """Says for each piece whether to pack it; learns from ``record``. ``always``: pack, whatever is measured."""

    def __init__(self, always: bool = False) -> None:
        self._always = always
        self._rates = {False: 0.0, True: 0.0}  # bytes a second, by whether they were packed
        self._trying: bool | None = False
        self._bytes, self._seconds = 0, 0.0  # of the trial
        self._since = 0  # bytes since the last trial

    @property
    def pack(self) -> bool:
        """Whether to pack the next piece."""
        if self._always:
            return True
        return self._trying if self._trying is not None else self._rates[True] > self._rates[False]

    def record(self, packed: bool, count: int, seconds: float) -> None:
        """Take note that ``count`` bytes of files left in so much time, from before packing until they were sent."""
        if self._trying is None:
            self._since += count
            # A line changes while a transfer runs: what was measured long ago must not count for ever.
            self._rates[packed] += _FRESH * (count / max(seconds, 1e-9) - self._rates[packed])
            if self._since >= AGAIN_BYTES:
                self._begin(not self.pack)
        elif packed == self._trying:
            self._bytes += count
            self._seconds += seconds
            rate = self._bytes / max(self._seconds, 1e-9)
            other = self._rates[not packed]
            if self._bytes >= TRIAL_BYTES or rate * _HOPELESS < other:
                self._rates[packed] = rate
                self._trying = None
                self._since = 0
                if not other:
                    self._begin(not packed)

    def _begin(self, packed: bool) -> None:
        self._trying, self._bytes, self._seconds = packed, 0, 0.0
