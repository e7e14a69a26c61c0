# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file of the source an inode with several names stands for at the destination, and how many names it has.

Names that share an inode at the destination may be of separate files at the source. The first one that is kept claims
the inode; the others need inodes of their own, or each would get the attributes of all others in turn.
"""

from __future__ import annotations

from ..._model.entry import Entry


class Claims:
    """Remembers who claimed which inode. Only inodes with several names are worth it."""

    def __init__(self) -> None:
        self._owners: dict[tuple[int, int], object] = {}
        self._names: dict[tuple[int, int], int] = {}

    def see(self, found: Entry) -> None:
        """Take note of how many names an inode has, before this run takes it any."""
        self._names.setdefault((found.dev, found.ino), found.nlink)

    def names_of(self, found: Entry) -> int:
        """Return how many names an inode had when it was first seen."""
        return self._names.get((found.dev, found.ino), found.nlink)

    def take(self, entry: Entry, dev: int, ino: int) -> bool:
        """Claim an inode for the file of an entry. Return whether it is that file's, and no other's."""
        owner = entry.link_id or entry.path
        return self._owners.setdefault((dev, ino), owner) == owner
