# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether packing pays on this link, by what was measured on it. Pure.

What counts is how many bytes of files leave in a second, with the time for packing and the time that the link takes.
Both ways are tried in turn; the better one goes on, and the other is tried again from time to time. Packing comes
first: on a quick link that costs little time, and on a slow one the trial without it ends as soon as it shows what it
is. (The buffers of a connection take the first bytes at once, so that either way looks quicker than it is. With packing
that does not mislead: it is never quicker than the processor, and is better wherever that is quicker than the link.)
"""

from __future__ import annotations

TRIAL_BYTES = 16 << 20  # of files, until a way is judged: more than the buffers of a connection hold
AGAIN_BYTES = 4 << 30  # until the slower way is tried again
_REMEMBERED = 64 << 20  # bytes of which half are forgotten when they have been measured
_HOPELESS = 2  # times slower: a trial ends at once
_LEAST_BYTES = 2 << 20  # but not for one piece that had to wait for something else


class _Way:
    """How quick one way is: bytes by the time that all of them took, so that a piece that is small counts little."""

    def __init__(self) -> None:
        self.bytes, self.seconds = 0.0, 0.0

    @property
    def rate(self) -> float:
        return self.bytes / max(self.seconds, 1e-9)

    def add(self, count: int, seconds: float) -> None:
        # A line changes while a transfer runs: what was measured long ago must not count for ever.
        if self.bytes >= _REMEMBERED:
            self.bytes, self.seconds = self.bytes / 2, self.seconds / 2
        self.bytes, self.seconds = self.bytes + count, self.seconds + seconds


class Gain:
    """Decides for each piece whether to compress it; learns from ``record``. ``always``: compress regardless."""

    def __init__(self, always: bool = False) -> None:
        self._always = always
        self._ways = {False: _Way(), True: _Way()}  # by whether pieces are packed
        self._trying: bool | None = True
        self._since = 0  # bytes since the last trial

    @property
    def tries_without(self) -> bool:
        """Whether sending uncompressed is being tried: pieces must be small then, so that the trial ends soon."""
        return self._trying is False

    @property
    def pack(self) -> bool:
        """Whether to pack the next piece."""
        if self._always:
            return True
        return self._trying if self._trying is not None else self._ways[True].rate > self._ways[False].rate

    def record(self, packed: bool, count: int, seconds: float) -> None:
        """Take note that ``count`` bytes of files left in so much time, from before packing until they were sent."""
        if self._always:
            return
        way, other = self._ways[packed], self._ways[not packed]
        if self._trying is None:
            self._since += count
            way.add(count, seconds)
            if self._since >= AGAIN_BYTES:
                self._begin(not self.pack)
        elif packed == self._trying:
            way.add(count, seconds)
            is_hopeless = way.bytes >= _LEAST_BYTES and way.rate * _HOPELESS < other.rate
            if way.bytes >= TRIAL_BYTES or is_hopeless:
                self._trying = None
                self._since = 0
                if not other.bytes:
                    self._begin(not packed)

    def _begin(self, packed: bool) -> None:
        self._trying, self._ways[packed] = packed, _Way()
