# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stretches of a file, as (start, end) in bytes. Pure."""

from __future__ import annotations

from typing import Iterable, Iterator, Tuple

from .frames import FrameError

Range = Tuple[int, int]
MAX_RANGES = 1 << 16  # of one file in one message

_SMALLEST, _LARGEST = 4 << 20, 64 << 20
BUNDLE_RANGE = 1 << 20  # bytes of a bundle
STEP = 64 << 10  # bytes: a connection is given no less at once
SHARE_SECONDS = 1.0
SHARE_GROWTH = 8
_UNIT = 1 << 20  # ranges end at multiples of it, so that no block of a file system is in two


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Sort ranges and join those that touch; empty ones go."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def missing(have: Iterable[Range], size: int) -> list[Range]:
    """Return the ranges of a file of ``size`` bytes that are not in ``have``."""
    result, at = [], 0
    for start, end in merged(have):
        if start >= size:
            break
        if start > at:
            result.append((at, start))
        at = max(at, end)
    if at < size:
        result.append((at, size))
    return result


def at_most(count: int, ranges: list[Range]) -> list[Range]:
    """Return so many sorted ranges that hold these; what lies between the last ones is added."""
    return ranges if len(ranges) <= count else [*ranges[: count - 1], (ranges[count - 1][0], ranges[-1][1])]


def length(ranges: Iterable[Range]) -> int:
    """Return the bytes of ranges that do not overlap."""
    return sum(end - start for start, end in ranges)


def unit(size: int, streams: int) -> int:
    """Choose how long the ranges of a file of ``size`` bytes are, so that all streams have some of it."""
    each = size // max(1, 4 * streams)
    return max(_SMALLEST, min(_LARGEST, each - each % _UNIT))


def cut(ranges: Iterable[Range], most: int) -> Iterator[Range]:
    """Yield the same stretches in pieces of at most ``most`` bytes."""
    for start, end in ranges:
        while start < end:
            stop = min(end, start - start % _UNIT + most)
            yield start, stop
            start = stop


def first_part(piece: Range, most: int, step: int = STEP) -> Range:
    """Return the beginning of a range: about ``most`` bytes, up to a multiple of ``step``; all where that is less."""
    start, end = piece
    stop = start + max(most, step)
    stop -= stop % step
    return start, min(end, stop) if stop > start else end


def share(rate: float, before: int) -> int:
    """Choose how many bytes a connection is given next that carries ``rate`` bytes a second; ``before``: the last time.

    What it carries in a second: so the end of a file does not wait long for the slowest one. It grows in steps, since
    what a new connection seems to carry may have gone into buffers only.
    """
    return int(max(STEP, min(rate * SHARE_SECONDS, SHARE_GROWTH * max(before, STEP))))


def parse(values: object, size: int) -> list[Range]:
    """Read ranges that a message names; raises FrameError unless they are sorted, apart and inside the file."""
    if not isinstance(values, list) or len(values) > MAX_RANGES:
        raise FrameError("a message names the ranges of a file in a way that cannot be read")
    found: list[Range] = []
    for item in values:
        if not isinstance(item, list) or len(item) != 2 or not all(isinstance(number, int) for number in item):
            raise FrameError("a message names a range that is none")
        start, end = item
        if not (found[-1][1] if found else 0) <= start < end <= size:
            raise FrameError(f"a message names the range {start} to {end} of a file of {size} bytes")
        found.append((start, end))
    return found
