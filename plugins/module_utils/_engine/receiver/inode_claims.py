# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file of the source an inode with several names stands for at the destination, and how many names it has.

Names that share an inode at the destination, or in an older tree of which files are linked, may be of separate files at
the source. The first one that is kept claims the inode; the others need inodes of their own, or each would get the
attributes of all others in turn.
"""

from __future__ import annotations

from ..._model.entry import Entry

_BITS = 10  # of an inode's number, by which those that are near to each other are told apart


class Claims:
    """Remembers which inodes are claimed. Only inodes with several names are worth it.

    Where files are linked from an older tree, that may be all files of a large one. Most of their numbers are near to
    each other, so that a bit for each takes little memory.
    """

    def __init__(self) -> None:
        self._claimed: dict[int, dict[int, int]] = {}  # by device, and the rest of the number
        self._names: dict[tuple[int, int], int] = {}

    def see(self, found: Entry) -> None:
        """Take note of how many names an inode has, before this run takes it any."""
        self._names.setdefault((found.dev, found.ino), found.nlink)

    def names_of(self, found: Entry) -> int:
        """Return how many names an inode had when it was first seen."""
        return self._names.get((found.dev, found.ino), found.nlink)

    def take(self, dev: int, ino: int) -> bool:
        """Claim an inode for a file of the source. Return whether it was no other's."""
        of_device = self._claimed.setdefault(dev, {})
        near, bit = ino >> _BITS, 1 << (ino & ((1 << _BITS) - 1))
        claimed = of_device.get(near, 0)
        of_device[near] = claimed | bit
        return not claimed & bit
