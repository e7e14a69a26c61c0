# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of earlier snapshots that need not travel again (``link_dest``). Private to the collection."""

from __future__ import annotations

import contextlib
import os

from .._tree.compare import ATTRIBUTES, NONE
from .._tree.entry import REGULAR, Entry
from .._tree.place import Root
from .placer import Placer

_CHUNK = 1 << 20


class Snapshots:
    """Looks for a file in the ``link_dest`` folders, in their order, and takes it from there."""

    def __init__(self, folders: list[str], placer: Placer) -> None:
        self._placer = placer
        self._roots = [Root(os.fsencode(folder)) for folder in folders if os.path.isdir(folder)]

    def candidate(self, entry: Entry) -> tuple[Root, Entry] | None:
        """Give the first folder that has a file of the same path, size and time."""
        best = None
        for root in self._roots:
            old = root.lstat(entry.path, self._placer.wants_xattrs)
            if old is None or old.type != REGULAR:
                continue
            action = self._placer.judge(entry, old).action
            if action == NONE:
                return root, old
            if action == ATTRIBUTES and best is None:
                best = root, old
        return best

    def take(self, entry: Entry, found: Entry | None, source: tuple[Root, Entry], folder_fd: int) -> bool:
        """Put the file in place: as a hard link where everything is equal, else as a copy. False: it must travel."""
        root, old = source
        name = self._placer.temporary_name()
        try:
            if self._placer.judge(entry, old).action == NONE:
                parent, old_name = root.open_parent(old.path)
                os.link(old_name, name, src_dir_fd=parent, dst_dir_fd=folder_fd, follow_symlinks=False)
                self._placer.clear(entry, found)
                self._placer.root.rename_into(folder_fd, name, entry.path)
            else:
                self._copy(root, old, folder_fd, name)
                status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
                self._placer.finish_file(entry, found, folder_fd, name, status)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder_fd)
            return False
        return True

    @staticmethod
    def _copy(root: Root, old: Entry, folder_fd: int, name: bytes) -> None:
        import shutil  # here, since it takes its time to import, and hardly anything is copied

        with os.fdopen(root.open_file(old.path), "rb") as source:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
            with os.fdopen(fd, "wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)

    def close(self) -> None:
        """Give back what is open."""
        for root in self._roots:
            root.close()
