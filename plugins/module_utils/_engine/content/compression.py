# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack pieces of large files where it pays, and unpack them."""

from __future__ import annotations

import os
import zlib

from ..._core.settings import Compression
from ..wire.frames import FrameError, Payload
from ..wire.records import RecordKind
from . import zstd
from .algorithm import Algorithm
from .compression_gain import Gain

PIECE_BYTES = 1 << 20  # packed at once
_ROUND = 32  # pieces until one is sampled again


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
