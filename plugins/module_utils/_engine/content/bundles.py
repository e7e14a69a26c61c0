# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small files are sent whole, many in one frame of the conversation. Pure.

Nothing is between them: both ends know the order and the sizes from the shard's entries. No file is in two frames.
"""

from __future__ import annotations

import struct
from typing import Collection, Iterator

from ..._core.settings import Compression
from ..._model.entry import WHOLE_BYTES, Entry
from ..wire.frames import MAX_DATA, Frame, FrameError, FrameKind, Payload
from ..wire.messages import inflate
from . import zstd
from .compression import Algorithm, Gain

SMALL_BYTES = WHOLE_BYTES  # up to this a file is sent in a bundle
BUNDLE_BYTES = MAX_DATA
BESIDE_BYTES = 256 << 10  # of a shard's small files: from so many on the data connections are worth while
SHARD_BYTES = 8 << 20  # of contents, and one file more: the destination holds each shard's small files in memory
_LENGTH = struct.Struct("!I")  # of what zstd packed


def fits(entry: Entry) -> bool:
    """Return whether a regular file is sent in a bundle: both ends decide it by the size alone."""
    return entry.size <= SMALL_BYTES


def are_small(sizes: Collection[int]) -> bool:
    """Return whether files of these sizes are all sent in bundles."""
    return max(sizes, default=0) <= SMALL_BYTES


class Packer:
    """Packs bundles where the settings say so and it pays."""

    def __init__(self, compress: Compression) -> None:
        self._algorithm = Algorithm(compress)
        self.gain = Gain(always=not compress.get("auto"))

    def pack(self, data: Payload) -> tuple[FrameKind, Payload]:
        """Return the frame's type and payload."""
        if self._algorithm and self.gain.pack:
            packed = self._algorithm.compress(data)
            if packed is not None and len(packed) + _LENGTH.size < len(data):
                if self._algorithm.zstd:
                    return FrameKind.ZSTD, _LENGTH.pack(len(data)) + packed
                return FrameKind.DEFLATED, packed
        return FrameKind.DATA, data


def _unpack(frame: Frame) -> Payload:
    """Return the bundle that a frame holds; raises FrameError."""
    if frame.kind == FrameKind.DEFLATED:
        return inflate(frame.payload)
    if frame.kind != FrameKind.ZSTD:
        return frame.payload
    if len(frame.payload) < _LENGTH.size:
        raise FrameError("a bundle packed by zstd arrived without its length")
    (length,) = _LENGTH.unpack_from(frame.payload)
    if length > BUNDLE_BYTES:
        raise FrameError(f"a bundle of {length} bytes arrived; {BUNDLE_BYTES} are allowed")
    try:
        return zstd.decompress(memoryview(frame.payload)[_LENGTH.size :], length)
    except ValueError as error:
        raise FrameError(f"a bundle cannot be unpacked: {error}") from error


def contents(arrived: list[Frame], files: list[tuple[int, Entry]]) -> Iterator[tuple[int, memoryview]]:
    """Yield the position and content of each file that travelled; raise FrameError if they do not fit together."""
    waiting = iter(arrived)
    bundle = memoryview(b"")
    start = length = 0
    for index, entry in files:
        end = start + entry.size
        if end > length:
            if start < length:
                raise FrameError("a bundle ends inside a file")
            frame = next(waiting, None)
            if frame is None:
                raise FrameError("less arrived of a shard's small files than was announced")
            bundle = memoryview(_unpack(frame))
            start, end, length = 0, entry.size, len(bundle)
            if end > length:
                raise FrameError("a bundle ends inside a file")
        yield index, bundle[start:end]
        start = end
    if start < length or next(waiting, None) is not None:
        raise FrameError("more arrived of a shard's small files than was announced")
