# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small files travel whole, many in one frame of the conversation. Pure. Private to the collection.

Nothing is between them: both ends know the order and the sizes from the shard's entries. No file is in two frames.
"""

from __future__ import annotations

import zlib
from typing import Any, Iterator

from .._exchange import frames
from .._exchange.frames import MAX_DATA, Frame, FrameError, Payload
from .._exchange.messages import inflate
from .._tree.entry import Entry
from .gain import Gain

SMALL_BYTES = 256 << 10  # up to this a file travels in a bundle
BUNDLE_BYTES = MAX_DATA
_SAMPLE = 64 << 10
WORTH = 0.85  # what is left of the sample must be less than this, or packing does not pay


def fits(entry: Entry) -> bool:
    """Whether a regular file travels in a bundle: both ends decide it by the size alone."""
    return entry.size <= SMALL_BYTES


class Packer:
    """Packs bundles where the settings say so and it pays."""

    def __init__(self, compress: dict[str, Any]) -> None:
        self._level = _level(compress)
        self._paid = False  # the last bundle shrank, so the next one needs no sample
        self.gain = Gain(always=not compress.get("auto"))

    def pack(self, data: Payload) -> tuple[int, Payload]:
        """Give the frame's type and payload."""
        if self._level and self.gain.pack and (self._paid or pays(data)):
            packed = zlib.compress(data, self._level)
            self._paid = len(packed) < WORTH * len(data)
            if len(packed) < len(data):
                return frames.DEFLATED, packed
        return frames.DATA, data


def _level(compress: dict[str, Any]) -> int:
    """Give zlib's level; 0: no compression."""
    if not compress.get("algorithm"):
        return 0
    level = compress.get("level")
    return level if isinstance(level, int) and 1 <= level <= 9 else 1


def pays(data: Payload) -> bool:
    """Whether packing data like this saves enough, judged by a sample from its middle; never for encrypted data."""
    start = max(0, (len(data) - _SAMPLE) // 2)
    sample = data[start : start + _SAMPLE]
    return len(sample) > 0 and len(zlib.compress(sample, 1)) < WORTH * len(sample)


def contents(arrived: list[Frame], files: list[tuple[int, Entry]]) -> Iterator[tuple[int, memoryview]]:
    """Give the position and content of each file that travelled; raises FrameError where they do not fit together."""
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
            bundle = memoryview(inflate(frame.payload) if frame.type == frames.DEFLATED else frame.payload)
            start, end, length = 0, entry.size, len(bundle)
            if end > length:
                raise FrameError("a bundle ends inside a file")
        yield index, bundle[start:end]
        start = end
    if start < length or next(waiting, None) is not None:
        raise FrameError("more arrived of a shard's small files than was announced")
