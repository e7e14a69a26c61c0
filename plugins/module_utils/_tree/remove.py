# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove a name of an open directory, a whole tree in any depth included. Private to the collection."""

from __future__ import annotations

import errno
import os
from typing import Callable, Iterator

from .._model.entry import DIRECTORY, Entry
from .._model.paths import escape, join
from .descent import Descent
from .metadata import chmod
from .stat_entry import stat_entry


class Removal:
    """Removes one name, and everything below it, without leaving it; its arguments are those of :meth:`Root.remove`."""

    def __init__(
        self,
        keep: Callable[[bytes, bool], bool] | None,
        on_removed: Callable[[bytes, str], None] | None,
        on_mount: Callable[[bytes], None] | None,
    ) -> None:
        self._keep = keep
        self._on_removed = on_removed
        self._on_mount = on_mount
        self._is_unseen = keep is None and on_removed is None  # nobody must know the type of what goes
        self._count = 0

    def remove(self, parent: int, name: bytes, path: bytes) -> int:
        """Remove the name in the open directory; gives how many entries went."""
        top = stat_entry(parent, name, path)
        if top.type != DIRECTORY:
            self._unlink(parent, top)
            return self._count
        descent = Descent(parent, path.rpartition(b"/")[0])
        try:
            here = descent.place
            if not self._enter(descent, top, here):
                return self._count
            waiting = [iter(descent.names())]
            went_in = [top]
            kept = [False]  # whether something stays in the directory
            while waiting:
                below = self._next(descent, waiting[-1], kept)
                if below is not None:
                    if not self._enter(descent, below, here):
                        kept[-1] = True
                        continue
                    waiting.append(iter(descent.names()))
                    went_in.append(below)
                    kept.append(False)
                    continue
                waiting.pop()
                descent.leave()
                gone = went_in.pop()
                if kept.pop():
                    kept[-1:] = [True]
                else:
                    self._unlink(descent.fd, gone)
        finally:
            descent.close()
        return self._count

    def _next(self, descent: Descent, names: Iterator[bytes], kept: list[bool]) -> Entry | None:
        """Remove what is no directory, up to the first directory to enter."""
        for name in names:
            if self._is_unseen and self._unlink_unseen(descent.fd, name):
                continue
            path = join(descent.path, name)
            try:
                entry = stat_entry(descent.fd, name, path)
            except FileNotFoundError:
                continue  # somebody else removed it
            if self._keep is not None and self._keep(path, entry.type == DIRECTORY):
                kept[-1] = True
            elif entry.type == DIRECTORY:
                return entry
            else:
                self._unlink(descent.fd, entry)
        return None

    def _unlink_unseen(self, parent: int, name: bytes) -> bool:
        """Take one name away without a look at it; False if it is still there, most likely a directory."""
        try:
            os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            return True  # somebody else removed it
        except OSError:
            return False
        self._count += 1
        return True

    def _enter(self, descent: Descent, folder: Entry, here: tuple[int, int]) -> bool:
        """Go down into a folder; False, and stay, where that is on another mount and may be kept."""
        name = os.path.basename(folder.path)
        try:
            descent.enter(name)
        except PermissionError:
            # A directory of one's own that forbids it: the same user may permit it.
            chmod(descent.fd, name, 0o700, folder)
            descent.enter(name)
        if descent.place == here:  # a folder of the same device may be mounted, too
            return True
        if self._on_mount is None:
            text = "another file system is mounted here, and what is in it is not removed: unmount it first"
            raise OSError(errno.EBUSY, text, escape(descent.path))
        self._on_mount(descent.path)
        descent.leave()
        return False

    def _unlink(self, parent: int, entry: Entry) -> None:
        """Take one name away, a directory only when it is empty."""
        take = os.rmdir if entry.type == DIRECTORY else os.unlink
        name = os.path.basename(entry.path)
        try:
            take(name, dir_fd=parent)
        except PermissionError:
            if os.fstat(parent).st_mode & 0o300 == 0o300:
                raise
            os.fchmod(parent, 0o700)  # a directory of one's own, as above
            take(name, dir_fd=parent)
        self._count += 1
        if self._on_removed is not None:
            self._on_removed(entry.path, entry.type)
