# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hard links across the whole tree: which name comes first, and which wait for it."""

from __future__ import annotations

from typing import NamedTuple

from ..._model.entry import Entry


class Follower(NamedTuple):
    """A further name of a file."""

    entry: Entry
    leader: bytes  # the path of its first name
    is_ready: bool  # whether that is in place
    is_new: bool  # whether it was made or replaced in this run, so that no older name can be linked to it


class _Group:
    __slots__ = ("is_done", "is_new", "leader", "seen", "waiting")

    def __init__(self, leader: bytes) -> None:
        self.leader = leader
        self.is_done = False
        self.is_new = False
        self.seen = 1
        self.waiting: list[Entry] = []


class LinkBook:
    """Knows, by device and inode, the files with several names. A group that is complete is forgotten.

    The first name of a group is dealt with as any file; the others become links to it when it is in place.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[int, int], _Group] = {}

    def meet(self, entry: Entry) -> Follower | None:
        """Take note of a name; gives None if it is the first one (or the only one) of its file."""
        key = entry.link_id
        if key is None:
            return None
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = _Group(entry.path)
            return None
        if group.leader == entry.path:  # it comes again
            return None
        group.seen += 1
        if group.is_done and group.seen >= entry.nlink:
            del self._groups[key]
        elif not group.is_done:
            group.waiting.append(entry)
        return Follower(entry, group.leader, group.is_done, group.is_new)

    def has_all_names(self, entry: Entry) -> bool:
        """Whether all names of an entry's file have come."""
        group = self._groups.get(entry.link_id) if entry.link_id else None
        return group is None or group.seen >= entry.nlink

    def waiting(self, entry: Entry) -> list[Entry]:
        """Return the names that wait for the first one of an entry's file."""
        group = self._groups.get(entry.link_id) if entry.link_id else None
        return group.waiting if group else []

    def done(self, entry: Entry, is_new: bool) -> list[Follower]:
        """A name is in place; where it was the first one, gives those that waited for it."""
        key = entry.link_id
        group = self._groups.get(key) if key else None
        if key is None or group is None or group.leader != entry.path:
            return []
        group.is_done, group.is_new = True, is_new
        waiting, group.waiting = group.waiting, []
        if group.seen >= entry.nlink:
            del self._groups[key]
        return [Follower(waits, group.leader, True, is_new) for waits in waiting]

    def orphans(self) -> list[Entry]:
        """Return, at the end, the names whose first name never came."""
        return [entry for group in self._groups.values() for entry in group.waiting]
