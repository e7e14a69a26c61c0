# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Open files to which ranges are written: the small files of a shard, or the old version of a large file."""

from __future__ import annotations

import errno
import os
import stat
from typing import Sequence

from ..._core.memory_file import MemoryFile
from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..._tree.inode import exchanged, is_same
from ..wire.ranges import Range, missing

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class IncomingFile:
    """An open file of a known size, to which several threads write. All of its methods may raise OSError."""

    fd: int
    size: int
    folder_fd = -1  # of the folder that it is in, where it has a name
    name = b""
    fresh = True  # everything that is not written reads as zeros
    is_cloned = False  # everything that is not written is what the old version has there
    have: Sequence[Range] = ()  # what is there already

    def begin_with(self, basis: int) -> None:
        """Begin with the whole of the old version, an open file; nothing to do where it is there already."""

    def take_same(self, basis: int, offset: int, count: int) -> None:
        """Take a stretch from the old version, an open file; nothing to do where it is there already."""

    def note(self, start: int, end: int) -> None:
        """A range was written."""

    def note_all_but(self, _bad: list[Range]) -> bool:
        """Let a rerun begin with all but these ranges; False if it cannot."""
        return False

    def sync(self) -> None:
        """Let what was noted reach the disk, where a journal says so then."""

    def close(self, complete: bool) -> None:
        """Close the descriptors."""
        raise NotImplementedError

    def remove(self) -> None:
        """Remove what is there of it."""
        raise NotImplementedError


class IncomingBundle(IncomingFile):
    """The small files of a shard, one behind the other in memory: ``size`` bytes."""

    def __init__(self, size: int, folder: str) -> None:
        self._memory = MemoryFile(folder)
        self.fd, self.size = self._memory.fd, size
        self._written: list[Range] = []

    def note(self, start: int, end: int) -> None:
        """A range was written; it may have been before, as a part of another one."""
        self._written.append((start, end))

    @property
    def is_whole(self) -> bool:
        """Whether everything was written."""
        return not missing(self._written, self.size)

    def read(self) -> bytes:
        """Return all of it."""
        return self._memory.read_all(self.size)

    def close(self, complete: bool = True) -> None:  # noqa: ARG002 - as a Partial has it
        """Free the memory."""
        self._memory.close()

    def remove(self) -> None:
        """Free the memory."""
        self.close()


class InPlace(IncomingFile):
    """The file at an entry's path, open for writing. Raise OSError if it must not, or cannot, be written to.

    It has what a Partial has, without a journal: the next run hashes the blocks of what is there, so what was written
    before an interruption is not sent again, and what never reached the disk is. While it is written to, the file has
    the time of the writing and not the source's, so that it is not taken for complete.

    ``found`` is what was looked at there. A file with several names is not written to: the others may be those of an
    older backup.
    """

    fresh = False  # what is there does not read as zeros

    def __init__(self, root: Root, entry: Entry, found: Entry) -> None:
        self._folder, _slash, self.name = entry.path.rpartition(b"/")
        self.size = entry.size
        self.folder_fd = -1  # open only for a file that is complete: many files are under way at once
        self._closed = False
        parent, name = root.open_parent(entry.path)
        self.fd = os.open(name, _FLAGS, dir_fd=parent)
        status = os.fstat(self.fd)
        if not is_same(status, found):
            self.close()
            raise exchanged()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            self.close()
            raise OSError(errno.EMLINK, "no regular file with one name")

    def complete(self, root: Root) -> None:
        """Let all of it, and no more, reach the disk before its time says that it is complete.

        Raises OSError, also where the name is another file's by now: that must not get this one's time.
        """
        os.ftruncate(self.fd, self.size)
        os.fdatasync(self.fd)
        self.folder_fd = root.open_directory(self._folder)
        found = os.stat(self.name, dir_fd=self.folder_fd, follow_symlinks=False)
        if not os.path.samestat(found, os.fstat(self.fd)):
            raise OSError(errno.ESTALE, "another file took its place while it was written to")

    def status(self) -> os.stat_result:
        """Return what it is now, whatever its name stands for."""
        return os.fstat(self.fd)

    def close(self, complete: bool = True) -> None:  # noqa: ARG002 - as a Partial has it
        """Close the descriptors."""
        if not self._closed:
            self._closed = True
            for fd in (self.fd, self.folder_fd):
                if fd >= 0:
                    os.close(fd)

    def remove(self) -> None:
        """Leave it: it is the file itself."""
        self.close()
