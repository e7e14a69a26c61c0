# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An index of files by size and time, and by size and name. Pure.

It is small and inexact: what it finds may be another file, and must be compared.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Iterator

MOST_FILES = 1 << 21  # in an index; of a larger tree it has only the larger files
COARSER = 8  # by how much the least size of a file grows where there are more
_BUCKETS = 256  # each is sorted when it is first needed
_MASK = (1 << 32) - 1


class FileIndex:
    """Knows a number for each file, in 16 bytes: such as which record of a manifest it is."""

    def __init__(self) -> None:
        # Upper 32 bits: of the hash of a key; lower: the number.
        self._buckets = [array("Q") for _number in range(_BUCKETS)]
        self._is_sorted = [True] * _BUCKETS
        self.count = 0  # files

    def add(self, size: int, mtime_ns: int, name: bytes, number: int) -> None:
        """Add a file. ``number`` is less than 2^32."""
        self.count += 1
        for key in (hash((size, mtime_ns)) & _MASK, hash((size, name)) & _MASK):
            at = key % _BUCKETS
            self._buckets[at].append(key << 32 | number)
            self._is_sorted[at] = False

    def find(self, size: int, mtime_ns: int, name: bytes) -> Iterator[int]:
        """Yield the numbers of files with this size and time, then of those with this size and name."""
        for key in (hash((size, mtime_ns)) & _MASK, hash((size, name)) & _MASK):
            at = key % _BUCKETS
            if not self._is_sorted[at]:
                self._buckets[at] = array("Q", sorted(self._buckets[at]))
                self._is_sorted[at] = True
            bucket = self._buckets[at]
            for place in range(bisect_left(bucket, key << 32), len(bucket)):
                if bucket[place] >> 32 != key:
                    break
                yield bucket[place] & _MASK
