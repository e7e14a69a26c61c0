# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack pieces of large files where it pays, and unpack them. Private to the collection."""

from __future__ import annotations

import os
import zlib
from typing import Any

from .._exchange.frames import FrameError
from .bundles import WORTH, pays
from .gain import Gain
from .records import ZLIB, ZSTD

PIECE_BYTES = 1 << 20  # packed at once
_ROUND = 32  # pieces until one is sampled again

try:
    from compression import zstd  # Python 3.14
except ImportError:
    zstd = None  # type: ignore[assignment]

ALGORITHMS = ("zstd", "zlib") if zstd is not None else ("zlib",)


class Packing:
    """Packs with the algorithm of the settings; keeps track of whether it pays for what comes."""

    def __init__(self, compress: dict[str, Any]) -> None:
        self._algorithm = compress.get("algorithm")
        level = compress.get("level")
        self._level = level if isinstance(level, int) else 1
        self.active = bool(self._algorithm)
        self.gain = Gain(always=not compress.get("auto"))
        self._paid = False  # the last piece shrank, so the next one needs no sample
        self._skip = 0  # pieces that are sent as they are before one is sampled again

    def pack(self, fd: int, start: int, count: int) -> tuple[int, int, bytes] | None:
        """Give kind, bytes covered and packed data of a piece at ``start``; None where it travels better as it is.

        Raises OSError.
        """
        if not self.gain.pack:
            return None
        if self._skip > 0:
            self._skip -= 1
            return None
        data = os.pread(fd, min(count, PIECE_BYTES), start)
        if len(data) < min(count, PIECE_BYTES) or not (self._paid or pays(data)):
            self._skip = _ROUND
            return None
        if self._algorithm == "zstd" and zstd is not None:
            kind, packed = ZSTD, zstd.compress(data, level=self._level)
        else:
            kind, packed = ZLIB, zlib.compress(data, max(1, min(9, self._level)))
        self._paid = len(packed) < WORTH * len(data)
        return (kind, len(data), packed) if len(packed) < len(data) else None


def unpack(kind: int, data: bytes, length: int) -> bytes:
    """Undo it; raises FrameError where it is damaged or does not give exactly ``length`` bytes."""
    if kind == ZSTD and zstd is None:
        raise FrameError("contents arrived in zstd, which the Python of this host does not have")
    engine = zstd.ZstdDecompressor() if kind == ZSTD else zlib.decompressobj()
    try:
        found = engine.decompress(data, length + 1)
    except Exception as error:
        raise FrameError(f"packed contents cannot be unpacked: {error}") from error
    if len(found) != length or not engine.eof:
        raise FrameError(f"packed contents do not give the {length} bytes that were announced")
    return found
