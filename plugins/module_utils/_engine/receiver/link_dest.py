# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that need not be sent again: of earlier snapshots (``link_dest``), or moved within the destination."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from typing import Container, Iterator, Sequence

from ..._core.context import FindMoved
from ..._core.files import hash_and_close
from ..._model.entry import LEAST_SOUGHT, REGULAR, Entry
from ..._model.time_units import TimeUnits
from ..._tree.change_times import KnownChanges
from ..._tree.compare import ATTRIBUTES, NONE
from ..._tree.dirfd import Root
from ..._tree.inode import exchanged
from ..._tree.time_units import units_of
from ..content import bundles
from .apply import Applier
from .apply_file import ENTRY_ERRORS
from .decide import Action, Do, EntryFacts, OlderFile
from .files_here import FilesHere
from .new_file import copy_file

_LOOKED_AT = 8  # files of the same size and time
_NO_LINKS = (errno.EMLINK, errno.EXDEV)  # a file system's limit, or another mount


class LinkDest:
    """Finds a file in the ``link_dest`` folders, in their order, and links it; or elsewhere in the destination.

    The paths of ``exclude`` are none of those folders.
    """

    def __init__(
        self,
        folders: Sequence[bytes | int],
        exclude: Container[bytes],
        applier: Applier,
        changes: KnownChanges | None = None,
        moved: Sequence[FindMoved | None] = (),
        here: FilesHere | None = None,
    ) -> None:
        """``moved``: what finds moved files in the folders, see Context; ``here``: in the destination."""
        self._applier, self._decider, self._exclude, self._changes = applier, applier.decider, exclude, changes
        self._roots = [Root(folder) for folder in folders]
        self._times = [units_of(root.fd) for root in self._roots]
        self._moved = [(root, times, find) for root, times, find in zip(self._roots, self._times, moved) if find]
        self._here = here
        if here is not None:
            self._moved.append((here.root, self._decider.times, here.find))

    def _roots_for(self, path: bytes) -> list[Root]:
        """Return the folders whose file of a path may be used, or blocks of it."""
        return [] if path in self._exclude else self._roots

    def find(self, entry: Entry) -> OlderFile | None:
        """Return the first file of the same path, size and time; else one whose content must be compared.

        That is a small one of the same path and size, or one that was moved from another path.
        """
        best = touched = None
        is_new = True
        for number, (root, times) in enumerate(zip(self._roots_for(entry.path), self._times)):
            try:
                old = root.lstat(entry.path, self._applier.wants_xattrs)
            except OSError:  # a folder that a bad disk cannot read
                continue
            if old is None or old.type != REGULAR:
                continue
            is_new = False
            action = self._decider.compare_entry(entry, old, times=times).action
            if action == NONE or (action == ATTRIBUTES and best is None):
                has_changed = self._changes.has_changed(number, entry) if self._changes is not None else False
                best = OlderFile(root, old, times, action == NONE, has_changed)
            if action == NONE:
                break
            if touched is None and bundles.fits(entry) and entry.size >= LEAST_SOUGHT and self._may_be(entry, old):
                touched = OlderFile(root, old, times, is_same=False, has_changed=True)
        return best or touched or self._find_moved(entry, is_new)

    def has_same(self, entry: Entry) -> bool:
        """Return whether one of the folders has the same at the path of an entry, by what lstat says."""
        for root, times in zip(self._roots_for(entry.path), self._times):
            with contextlib.suppress(OSError):
                old = root.lstat(entry.path, self._applier.wants_xattrs)
                if old is not None and self._decider.compare_entry(entry, old, times=times).action == NONE:
                    return True
        return False

    def _find_moved(self, entry: Entry, is_new: bool) -> OlderFile | None:
        """Return a file at another path that has the size and the time, or if it is small the size and the name.

        One that has all three is best. Of a large one that has another time blocks are taken, see ``bases``.
        """
        best, best_rank = None, (False, False)
        for root, times, old in self._sought(entry, is_new or not bundles.fits(entry)):
            rank = (old.mtime_ns == entry.mtime_ns, _name(old.path) == _name(entry.path))
            if rank > best_rank and (rank[0] or bundles.fits(entry)):
                is_same = self._decider.compare_entry(entry, old, times=times).action == NONE
                best, best_rank = OlderFile(root, old, times, is_same, has_changed=True), rank
            if all(rank):
                break
        return best

    def _sought(self, entry: Entry, is_reason: bool) -> Iterator[tuple[Root, TimeUnits, Entry]]:
        """Yield files at other paths that have the size, and the time or the name. ``is_reason``: see FindMoved."""
        for root, times, find in self._moved:
            found = find(entry.size, entry.mtime_ns, _name(entry.path), is_reason)
            for path in itertools.islice(found, _LOOKED_AT):
                if path in self._exclude:
                    continue
                with contextlib.suppress(OSError, ValueError):
                    old = root.lstat(path, self._applier.wants_xattrs)
                    is_like = old is not None and (old.mtime_ns == entry.mtime_ns or _name(path) == _name(entry.path))
                    if old is not None and is_like and old.type == REGULAR and self._may_be(entry, old):
                        yield root, times, old

    def _may_be(self, entry: Entry, old: Entry) -> bool:
        """Return whether a file can have the entry's content, and is not that of a user who could change it."""
        return (
            old.size == entry.size
            and not self._decider.is_foreign(entry, old)
            and not self._decider.grants_setid(entry, old)
        )

    def bases(self, entry: Entry) -> Iterator[tuple[Root, Entry | None]]:
        """Yield the folders whose file of the entry's path has blocks of it, then files at other paths."""
        for root in self._roots_for(entry.path):
            yield root, None
        for root, _times, old in self._sought(entry, is_reason=False):
            yield root, old

    def try_link(self, entry: Entry, facts: EntryFacts) -> bool:
        """Put a file in place: as a hard link where everything is equal, else as a copy. False: it must be sent.

        It is a copy, too, where the older tree has one file for several of the source, or where that can have no more
        names. A copy of another user's file, who could have changed that since, must have the source's hash.
        """
        older = facts.older
        if older is None:
            return False
        folder_fd, name = -1, self._applier.temporary_name()
        try:
            if not self._link(entry, facts.found, older):
                folder_fd = self._applier.stage_at(entry.path)
                copy_file(older.root, older.entry, folder_fd, name)
                if facts.source_sum and self._decider.disowns(entry, older.entry):
                    with Root(folder_fd) as staging:
                        if not has_content(staging, name, None, facts.source_sum):
                            raise exchanged()
                status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
                self._applier.finish_file(entry, facts.found, folder_fd, name, status)
        except OSError:
            if folder_fd >= 0:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder_fd)
            return False
        return True

    def _link(self, entry: Entry, found: Entry | None, older: OlderFile) -> bool:
        """Put the file in place as a hard link. False: it needs a copy, also where it cannot have so many names."""
        old = older.entry
        here = self._here if self._here is not None and older.root is self._here.root else None
        if here is not None and not (here.may_link and self._decider.keeps_links and entry.nlink == old.nlink == 1):
            return False
        is_named = entry.nlink > 1 and self._decider.keeps_links  # and gets all of its names
        if is_named and not self._applier.allows_names(entry.path, old.nlink + entry.nlink):
            return False
        if not (older.is_same and self._applier.claim(old.dev, old.ino)):
            return False
        self._applier.clear(entry, found)
        try:
            self._applier.place_link(older.root, old, entry.path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        if here is not None:
            here.note_link(entry, old)
        return True

    def separate(self) -> None:
        """Copy each file that was linked within the destination and whose old path was not deleted: two files again."""
        for entry, found in self._here.links_left() if self._here is not None else ():
            try:
                self._applier.do(Action(Do.NEW_INODE, found=found), entry)
            except ENTRY_ERRORS as error:
                self._applier.failed(entry.path, error)

    def close(self) -> None:
        """Close what is open."""
        if self._here is not None:
            self._here.close()
        for root in self._roots:
            root.close()


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def has_content(root: Root, path: bytes, expected: Entry | None, source_sum: str | None) -> bool:
    """Return whether a file, the one ``expected``, has the source's content, whose hash is known. Raises OSError."""
    return bool(source_sum) and hash_and_close(root.open_file(path, expected)).hex() == source_sum
