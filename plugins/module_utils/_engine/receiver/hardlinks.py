# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hard links across the whole tree: which name comes first, and which wait for it.

A tree may have millions of files with other names outside of it, and a hostile source names as many as it likes. So
paths are kept in a file where they are many. What stays in memory is a hundred bytes for each file of which names are
missing, and eight for each name that waits.
"""

from __future__ import annotations

import array
from typing import Iterator, NamedTuple

from ..._model.entry import Entry
from ..._model.entry_codec import Decoder, encode
from .disk_stack import RecordFile

_IS_NEW = 1
_SEEN_SHIFT, _SEEN_BITS = 1, 32
_PLACE_SHIFT = _SEEN_SHIFT + _SEEN_BITS


class Follower(NamedTuple):
    """A further name of a file."""

    entry: Entry
    leader: bytes  # the path of its first name
    is_ready: bool  # whether that is in place
    is_new: bool  # whether it was made or replaced in this run, so that no older name can be linked to it


class _Group:
    """A file whose first name is not in place yet."""

    __slots__ = ("leader", "seen", "waiting")

    def __init__(self, leader: int) -> None:
        self.leader = leader  # the place of its path
        self.seen = 1
        self.waiting: array.array[int] | None = None  # the places of the names that came meanwhile


class _Placed(NamedTuple):
    """A file whose first name is in place, and of which names are missing; kept as one number."""

    leader: int  # the place of its path
    seen: int
    is_new: bool

    def pack(self) -> int:
        return self.leader << _PLACE_SHIFT | min(self.seen, (1 << _SEEN_BITS) - 1) << _SEEN_SHIFT | int(self.is_new)

    @classmethod
    def unpack(cls, number: int) -> _Placed:
        seen = number >> _SEEN_SHIFT & (1 << _SEEN_BITS) - 1
        return cls(number >> _PLACE_SHIFT, seen, bool(number & _IS_NEW))


class LinkBook:
    """Knows, by device and inode, the files with several names. A file of which all names came is forgotten.

    The first name of a file is dealt with as any file; the others become links to it when it is in place.
    ``folder``: a private one, for what is too much for the memory.
    """

    def __init__(self, folder: str) -> None:
        self._groups: dict[tuple[int, int], _Group] = {}
        self._placed: dict[int, dict[int, int]] = {}  # by device and inode
        self._records = RecordFile(folder)

    def meet(self, entry: Entry) -> Follower | None:
        """Take note of a name; gives None if it is the first one (or the only one) of its file.

        Raises OSError if the disk takes no more.
        """
        key = entry.link_id
        if key is None:
            return None
        group = self._groups.get(key)
        if group is None:
            return self._meet_placed(entry)
        leader = self._records.get(group.leader)
        if leader == entry.path:  # it comes again
            return None
        place = self._records.put(encode(entry))
        group.seen += 1
        if group.waiting is None:
            group.waiting = array.array("Q")
        group.waiting.append(place)
        return Follower(entry, leader, False, False)

    def _meet_placed(self, entry: Entry) -> Follower | None:
        of_device = self._placed.setdefault(entry.dev, {})
        number = of_device.get(entry.ino)
        if number is None:
            self._groups[entry.dev, entry.ino] = _Group(self._records.put(entry.path))
            return None
        placed = _Placed.unpack(number)
        leader = self._records.get(placed.leader)
        if leader == entry.path:
            return None
        placed = placed._replace(seen=placed.seen + 1)
        if placed.seen >= entry.nlink:
            del of_device[entry.ino]
            self._forget_records()
        else:
            of_device[entry.ino] = placed.pack()
        return Follower(entry, leader, True, placed.is_new)

    def _forget_records(self) -> None:
        if not self._groups and not any(self._placed.values()):
            self._records.clear()

    def has_all_names(self, entry: Entry) -> bool:
        """Whether all names of an entry's file have come."""
        if entry.link_id is None:
            return True
        group = self._groups.get(entry.link_id)
        if group is not None:
            return group.seen >= entry.nlink
        number = self._placed.get(entry.dev, {}).get(entry.ino)
        return number is None or _Placed.unpack(number).seen >= entry.nlink

    def waiting(self, entry: Entry) -> Iterator[Entry]:
        """Yield the names that wait for the first one of an entry's file."""
        group = self._groups.get(entry.link_id) if entry.link_id else None
        return self._read(group.waiting if group else None)

    def _read(self, places: array.array[int] | None) -> Iterator[Entry]:
        for place in places or ():
            yield from Decoder().feed(self._records.get(place))

    def done(self, entry: Entry, is_new: bool) -> Iterator[Follower]:
        """A name is in place; where it was the first one, yields those that waited for it. Use it up at once."""
        key = entry.link_id
        group = self._groups.get(key) if key else None
        if key is None or group is None:
            return
        leader = self._records.get(group.leader)
        if leader != entry.path:
            return
        del self._groups[key]
        if group.seen < entry.nlink:
            self._placed.setdefault(entry.dev, {})[entry.ino] = _Placed(group.leader, group.seen, is_new).pack()
        for waits in self._read(group.waiting):
            yield Follower(waits, leader, True, is_new)
        self._forget_records()

    def orphans(self) -> Iterator[Entry]:
        """Yield, at the end, the names whose first name never came."""
        for group in self._groups.values():
            yield from self._read(group.waiting)

    def close(self) -> None:
        """Close what is open."""
        self._records.close()
