# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep what must wait: for the first name of a file, for all names of it, or until a place is free."""

from __future__ import annotations

import array
import contextlib
import os
from typing import Iterator, NamedTuple

from ..._model.entry import Entry
from ..._model.entry_codec import Decoder, encode
from .decide import Action, EntryFacts
from .disk_stack import RecordFile

_IS_NEW = 1
_SEEN_SHIFT, _SEEN_BITS = 1, 32
_PLACE_SHIFT = _SEEN_SHIFT + _SEEN_BITS


class Pending(NamedTuple):
    """An entry that waits, and what is known of it."""

    entry: Entry
    facts: EntryFacts | None = None  # of one that is decided on when all names are known
    action: Action | None = None  # of one that waits for its place
    staged: tuple[int, bytes] | None = None  # its content has arrived: a folder, and a name there
    leader: bytes | None = None  # of a further name of a file: the path of its first name
    is_ready: bool = False  # whether that is in place
    is_new: bool = False  # whether it was made or replaced in this run, so that no older name can be linked to it

    def discard(self) -> None:
        """Remove what is staged, if that was not put in place."""
        if self.staged is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.staged[1], dir_fd=self.staged[0])


class _LinkGroup:
    """A file of the source whose first name is not in place yet."""

    __slots__ = ("change", "leader", "seen", "waiting")

    def __init__(self, leader: int) -> None:
        self.leader = leader  # the place of its path
        self.seen = 1
        self.waiting: array.array[int] | None = None  # the places of the names that came meanwhile
        self.change: Pending | None = None  # of attributes, which waits for all names


class _PlacedGroup(NamedTuple):
    """A file whose first name is in place, and of which names are missing; kept as one number."""

    leader: int  # the place of its path
    seen: int
    is_new: bool

    def pack(self) -> int:
        return self.leader << _PLACE_SHIFT | min(self.seen, (1 << _SEEN_BITS) - 1) << _SEEN_SHIFT | int(self.is_new)

    @classmethod
    def unpack(cls, number: int) -> _PlacedGroup:
        seen = number >> _SEEN_SHIFT & (1 << _SEEN_BITS) - 1
        return cls(number >> _PLACE_SHIFT, seen, bool(number & _IS_NEW))


class DeferredActions:
    """All that waits. Files with several names are known by device and inode; a file of which all came is forgotten.

    The first name of a file is dealt with as any file; the others become links to it when it is in place.

    A tree may have millions of files with other names outside of it, and a hostile source names as many as it likes. So
    paths are kept in a file where they are many. What stays in memory is a hundred bytes for each file of which names
    are missing, and eight for each name that waits. ``folder``: a private one, for that file.
    """

    def __init__(self, folder: str) -> None:
        self._groups: dict[tuple[int, int], _LinkGroup] = {}
        self._placed: dict[int, dict[int, int]] = {}  # by device and inode
        self._records = RecordFile(folder)
        self._places: dict[bytes, Pending] = {}

    def _group(self, entry: Entry) -> _LinkGroup | None:
        key = entry.link_id
        return self._groups.get(key) if key else None

    def add_name(self, entry: Entry) -> Pending | None:
        """Take note of a name. None: it is the first one (or the only one) of its file.

        Raises OSError if the disk takes no more.
        """
        key = entry.link_id
        if key is None:
            return None
        group = self._groups.get(key)
        if group is None:
            return self._add_to_placed(entry)
        leader = self._records.get(group.leader)
        if leader == entry.path:  # it comes again
            return None
        place = self._records.put(encode(entry))
        group.seen += 1
        if group.waiting is None:
            group.waiting = array.array("Q")
        group.waiting.append(place)
        return Pending(entry, leader=leader)

    def _add_to_placed(self, entry: Entry) -> Pending | None:
        of_device = self._placed.setdefault(entry.dev, {})
        number = of_device.get(entry.ino)
        if number is None:
            self._groups[entry.dev, entry.ino] = _LinkGroup(self._records.put(entry.path))
            return None
        placed = _PlacedGroup.unpack(number)
        leader = self._records.get(placed.leader)
        if leader == entry.path:
            return None
        placed = placed._replace(seen=placed.seen + 1)
        if placed.seen >= entry.nlink:
            del of_device[entry.ino]
            self._forget_records()
        else:
            of_device[entry.ino] = placed.pack()
        return Pending(entry, leader=leader, is_ready=True, is_new=placed.is_new)

    def _forget_records(self) -> None:
        if not self._groups and not any(self._placed.values()):
            self._records.clear()

    def _read(self, places: array.array[int] | None) -> Iterator[Entry]:
        for place in places or ():
            yield from Decoder().feed(self._records.get(place))

    def names_waiting(self, entry: Entry) -> Iterator[Entry]:
        """Yield the names that wait for the first one of an entry's file."""
        group = self._group(entry)
        return self._read(group.waiting if group else None)

    def mark_done(self, entry: Entry, is_new: bool) -> Iterator[Pending]:
        """Take note that a name is in place. Yield those that waited for it, if it was the first one; take all."""
        key = entry.link_id
        group = self._groups.get(key) if key else None
        if key is None or group is None:
            return
        leader = self._records.get(group.leader)
        if leader != entry.path:
            return
        del self._groups[key]
        if group.seen < entry.nlink:
            self._placed.setdefault(entry.dev, {})[entry.ino] = _PlacedGroup(group.leader, group.seen, is_new).pack()
        for waits in self._read(group.waiting):
            yield Pending(waits, leader=leader, is_ready=True, is_new=is_new)
        self._forget_records()

    def orphans(self) -> Iterator[Entry]:
        """Yield, at the end, the names whose first name never came."""
        for group in self._groups.values():
            yield from self._read(group.waiting)

    def defer_change(self, pending: Pending) -> Pending | None:
        """Let a change of attributes wait until all names of the file are known. Return it if they are."""
        group = self._group(pending.entry)
        if group is not None:
            group.change = pending
        return self.take_change(pending.entry)

    def take_change(self, entry: Entry) -> Pending | None:
        """Return the change that waits for the names of an entry's file, if all of them have come."""
        group = self._group(entry)
        if group is None or group.seen < entry.nlink:
            return None
        change, group.change = group.change, None
        return change

    def take_changes(self) -> list[Pending]:
        """Return, at the end, the changes that wait for names that never came."""
        return [group.change for group in self._groups.values() if group.change is not None]

    def defer_place(self, pending: Pending) -> None:
        """Let an entry wait until its place is free."""
        self._places[pending.entry.path] = pending

    def take_places(self) -> Iterator[Pending]:
        """Yield what waits for a place, in the order in which it came."""
        while self._places:
            yield self._places.pop(next(iter(self._places), b""))

    def close(self) -> None:
        """Remove what still waits."""
        for pending in self.take_places():
            pending.discard()
        self._records.close()
