# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compression: whether it pays, the algorithm, and pieces of large files."""

from __future__ import annotations

import os
import zlib

from ..._core.settings import Compression
from ..wire.frames import FrameError, Payload
from ..wire.records import RecordKind
from . import zstd

TRIAL_BYTES = 16 << 20  # of files, until a way is judged: more than the buffers of a connection hold
AGAIN_BYTES = 4 << 30  # until the slower way is tried again
_REMEMBERED = 64 << 20  # bytes of which half are forgotten when they have been measured
_HOPELESS = 2  # times slower: a trial ends at once
_LEAST_BYTES = 2 << 20  # but not for one piece that had to wait for something else
_WORTH = 0.85  # what is left of data must be less than this, or packing does not pay
_SAMPLE = 64 << 10
# The quickest level of zlib. Of zstd's, the one below which little is won: measured with log lines, level 1 packs 440
# MB/s a core into 0.17, levels 2 and 3 pack 430 and 320 into 0.17 and 0.16, levels -1, -5 and -10 pack 440, 510 and 490
# into 0.22, 0.27 and 0.31. (zlib: 110 into 0.29.) With programs they are 340 into 0.46, 180 into 0.41 (3) and 540
# into 0.61 (-5). So one core with level 1 fills 1 Gbit/s and some cores 10 Gbit/s; where none does, nothing is packed.
_LEVEL = 1
PIECE_BYTES = 1 << 20  # packed at once
_ROUND = 32  # pieces until one is sampled again


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
    """Decides for each piece whether to compress it; learns from ``record``. ``always``: compress regardless. Pure.

    What counts is how many bytes of files leave in a second, with the time for packing and that which the link takes.
    Both ways are tried in turn; the better one goes on, and the other is tried again from time to time. Packing comes
    first: on a quick link that costs little time, and on a slow one the trial without it ends as soon as it shows what
    it is. (The buffers of a connection take the first bytes at once, so that either way looks quicker than it is. With
    packing that does not mislead: it is never quicker than the processor, and is better wherever that is quicker than
    the link.)
    """

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


class Algorithm:
    """Packs data in one way. ``zstd`` says which; false where the settings say none at all."""

    def __init__(self, compress: Compression) -> None:
        self._name = compress.get("algorithm")
        self.zstd = self._name == "zstd" and zstd.available()
        level = compress.get("level")
        level = level if isinstance(level, int) else _LEVEL
        self._level = level if self.zstd else max(1, min(9, level))
        self._paid = False

    def __bool__(self) -> bool:
        return bool(self._name)

    def compress(self, data: Payload) -> bytes | None:
        """Return the data compressed, or None if that saves too little to be worth while.

        Where the last data shrank, so that more of the kind may be expected, it needs no sample.
        """
        if not (self._paid or self._pays(data)):
            return None
        compressed = self._pack(data, self._level)
        self._paid = len(compressed) < _WORTH * len(data)
        return compressed

    def _pays(self, data: Payload) -> bool:
        """Return whether packing saves enough, by a sample from the middle of the data; never for encrypted data."""
        start = max(0, (len(data) - _SAMPLE) // 2)
        sample = data[start : start + _SAMPLE]
        return len(sample) > 0 and len(self._pack(sample, _LEVEL)) < _WORTH * len(sample)

    def _pack(self, data: Payload, level: int) -> bytes:
        return zstd.compress(data, level) if self.zstd else zlib.compress(data, level)


class Compressor:
    """Packs with the algorithm of the settings; samples what does not shrink now and then. For one thread."""

    def __init__(self, compress: Compression) -> None:
        self._algorithm = Algorithm(compress)
        self.active = bool(self._algorithm)
        self.gain = Gain(always=not compress.get("auto"))
        self._buffer = memoryview(bytearray(PIECE_BYTES if self.active else 0))
        self._skip = 0  # pieces that are sent as they are before one is sampled again

    def pack(self, fd: int, start: int, count: int) -> tuple[RecordKind, int, bytes] | None:
        """Return kind, bytes covered and packed data of a piece at ``start``; None if it is better sent as it is.

        Raises OSError.
        """
        if not self.gain.pack:
            return None
        if self._skip > 0:
            self._skip -= 1
            return None
        data = self._buffer[:count]
        packed = None if os.preadv(fd, [data], start) < len(data) else self._algorithm.compress(data)
        if packed is None:
            self._skip = _ROUND
            return None
        kind = RecordKind.ZSTD if self._algorithm.zstd else RecordKind.ZLIB
        return (kind, len(data), packed) if len(packed) < len(data) else None


def decompress(kind: RecordKind, data: Payload, length: int) -> Payload:
    """Undo it; raise FrameError if it is damaged or does not give exactly ``length`` bytes."""
    try:
        if kind == RecordKind.ZSTD:
            return zstd.decompress(data, length)
        engine = zlib.decompressobj()
        found = engine.decompress(data, length + 1)
    except (ValueError, zlib.error) as error:
        raise FrameError(f"packed contents cannot be unpacked: {error}") from error
    if len(found) != length or not engine.eof or engine.unused_data:
        raise FrameError(f"packed contents do not give the {length} bytes that were announced")
    return found
