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
from ..._tree.compare import ATTRIBUTES, NONE
from ..._tree.dirfd import Root
from ..._tree.inode import exchanged
from ..._tree.time_units import units_of
from .apply import Applier
from .new_file import copy_file

_NO_LINKS = (errno.EMLINK, errno.EXDEV)  # a file system's limit, or another mount


class LinkDest:
    """Finds a file in the ``link_dest`` folders, in their order, and links it; ``roots`` are those that exist.

    The paths of ``exclude`` are none of theirs.
    """

    def __init__(self, folders: Sequence[bytes | int], exclude: Container[bytes], applier: Applier) -> None:
        self._applier, self._exclude = applier, exclude
        self.roots = [Root(folder) for folder in folders]
        self.times = {root: units_of(root.fd) for root in self.roots}

    def roots_for(self, path: bytes) -> list[Root]:
        """Return the folders whose file of a path may be used."""
        return [] if path in self._exclude else self.roots

    def candidate(self, entry: Entry) -> tuple[Root, Entry] | None:
        """Return the first folder that has a file of the same path, size and time."""
        best = None
        for root in self.roots_for(entry.path):
            try:
                old = root.lstat(entry.path, self._applier.wants_xattrs)
            except OSError:  # a folder that a bad disk cannot read
                continue
            if old is None or old.type != REGULAR:
                continue
            action = self._applier.judge(entry, old, times=self.times[root]).action
            if action == NONE:
                return root, old
            if action == ATTRIBUTES and best is None:
                best = root, old
        return best

    def take(
        self, entry: Entry, found: Entry | None, source: tuple[Root, Entry], source_sum: str | None = None
    ) -> bool:
        """Put the file in place: as a hard link where everything is equal, else as a copy. False: it must be sent.

        It is a copy, too, where the older tree has one file for several of the source, or where that can have no more
        names. ``source_sum`` is the hash of the source's content: a copy of another user's file, who could have changed
        that since, must have it.
        """
        root, old = source
        folder_fd, name = -1, self._applier.temporary_name()
        try:
            if not self._link(entry, found, source):
                folder_fd = self._applier.stage_at(entry.path)
                copy_file(root, old, folder_fd, name)
                if source_sum and self._applier.disowns(entry, old):
                    with Root(folder_fd) as staging:
                        if hash_and_close(staging.open_file(name)).hex() != source_sum:
                            raise exchanged()
                status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
                self._applier.finish_file(entry, found, folder_fd, name, status)
        except OSError:
            if folder_fd >= 0:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder_fd)
            return False
        return True

    def _link(self, entry: Entry, found: Entry | None, source: tuple[Root, Entry]) -> bool:
        """Put the file in place as a hard link. False: it needs a copy, also where it cannot have so many names."""
        root, old = source
        verdict = self._applier.judge(entry, old, times=self.times[root])
        if verdict.action != NONE or not self._applier.has_room_for_names(entry, old):
            return False
        if not self._applier.claims(old.dev, old.ino):
            return False
        self._applier.clear(entry, found)
        try:
            self._applier.place_link(root, old, entry.path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def close(self) -> None:
        """Close what is open."""
        for root in self.roots:
            root.close()
