# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of earlier snapshots that need not be sent again (``link_dest``)."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Container, Sequence

from ..._core.files import hash_and_close
from ..._model.entry import REGULAR, Entry
from ..._tree.change_times import KnownChanges
from ..._tree.compare import ATTRIBUTES, NONE
from ..._tree.dirfd import Root
from ..._tree.inode import exchanged
from ..._tree.time_units import units_of
from .apply import Applier
from .decide import EntryFacts, OlderFile
from .new_file import copy_file

_NO_LINKS = (errno.EMLINK, errno.EXDEV)  # a file system's limit, or another mount


class LinkDest:
    """Finds a file in the ``link_dest`` folders, in their order, and links it.

    The paths of ``exclude`` are none of theirs.
    """

    def __init__(
        self,
        folders: Sequence[bytes | int],
        exclude: Container[bytes],
        applier: Applier,
        changes: KnownChanges | None = None,
    ) -> None:
        self._applier, self._decider, self._exclude, self._changes = applier, applier.decider, exclude, changes
        self._roots = [Root(folder) for folder in folders]
        self._times = [units_of(root.fd) for root in self._roots]

    def roots_for(self, path: bytes) -> list[Root]:
        """Return the folders whose file of a path may be used, or blocks of it."""
        return [] if path in self._exclude else self._roots

    def find(self, entry: Entry) -> OlderFile | None:
        """Return the first file of the same path, size and time."""
        best = None
        for number, (root, times) in enumerate(zip(self.roots_for(entry.path), self._times)):
            try:
                old = root.lstat(entry.path, self._applier.wants_xattrs)
            except OSError:  # a folder that a bad disk cannot read
                continue
            if old is None or old.type != REGULAR:
                continue
            action = self._decider.compare_entry(entry, old, times=times).action
            if action == NONE or (action == ATTRIBUTES and best is None):
                has_changed = self._changes.has_changed(number, entry) if self._changes is not None else False
                best = OlderFile(root, old, times, action == NONE, has_changed)
            if action == NONE:
                break
        return best

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
        return True

    def close(self) -> None:
        """Close what is open."""
        for root in self._roots:
            root.close()


def has_content(root: Root, path: bytes, expected: Entry | None, source_sum: str | None) -> bool:
    """Return whether a file, the one ``expected``, has the source's content, whose hash is known. Raises OSError."""
    return bool(source_sum) and hash_and_close(root.open_file(path, expected)).hex() == source_sum
