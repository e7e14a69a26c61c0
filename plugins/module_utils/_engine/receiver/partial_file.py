# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A large file on its way, and the journal of what of it is safe.

The data file has its full size from the start and is written to anywhere. A line of the journal says that a range is on
the disk: it is written after the data was synced. What the journal does not say, or says in a line that is torn or
damaged, is sent again. The journal counts only for the very file it was begun for (its inode number stands in it), and
the names belong to one version of the source's file, so nothing is ever mixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading

from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..content.clone import clone, spread
from ..content.sparse import copy
from ..wire.ranges import Range, merged, missing
from .incoming_file import IncomingFile

JOURNAL = b".ranges"
_LIMIT = 64 << 20  # bytes of a journal that are read
_CHECK_BYTES = 8


def partial_name(entry: Entry) -> bytes:
    """Name what is there of one version of a file: another version never goes on where it stopped."""
    identity = repr((entry.path, entry.size, entry.mtime_ns, entry.ctime_ns, entry.ino)).encode()
    return hashlib.blake2b(identity, digest_size=16).hexdigest().encode()


def encode_line(name: bytes, inode: int, start: int, end: int) -> bytes:
    """Return the journal's line for a range."""
    text = b"%d %d %d" % (inode, start, end)
    check = hashlib.blake2b(name + b" " + text, digest_size=_CHECK_BYTES).hexdigest().encode()
    return text + b" " + check + b"\n"


def decode(journal: bytes, name: bytes, inode: int, size: int) -> list[Range]:
    """Read a journal; whatever is not exactly a line of this file is left out."""
    found = []
    for line in journal.split(b"\n"):
        parts = line.split(b" ")
        if len(parts) != 4 or not all(part.isdigit() and len(part) < 20 for part in parts[:3]):
            continue
        start, end = int(parts[1]), int(parts[2])
        if 0 <= start < end <= size and line + b"\n" == encode_line(name, inode, start, end):
            found.append((start, end))
    return merged(found)


def _open_own(folder_fd: int, name: bytes, more: int = 0) -> int:
    """Open a file that this transfer made, or make it: what else has its name gives way, and is not opened."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | more
    owner = os.fstat(folder_fd).st_uid
    with contextlib.suppress(FileNotFoundError):
        if _is_own(os.stat(name, dir_fd=folder_fd, follow_symlinks=False), owner):
            fd = os.open(name, flags, dir_fd=folder_fd)
            if _is_own(os.fstat(fd), owner):
                return fd
            os.close(fd)
        with Root(folder_fd) as folder:
            folder.remove(name)
    return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder_fd)


def _is_own(status: os.stat_result, owner: int) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == owner


class Partial(IncomingFile):
    """One file on its way. Several threads write to ``fd``; ``note`` and ``sync`` keep the journal.

    Raises OSError if it cannot be made. ``folder_fd`` stays the caller's.
    """

    def __init__(self, folder_fd: int, entry: Entry, journal: bool) -> None:
        self.name = partial_name(entry)
        self.size = entry.size
        self.folder_fd = folder_fd
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._noted: list[Range] = []
        self._closed = False
        self.have: list[Range] = []
        self._journal = _open_own(folder_fd, self.name + JOURNAL, os.O_APPEND) if journal else -1
        try:
            self.fd = _open_own(folder_fd, self.name)
        except OSError:
            self._close_journal()
            raise
        status = os.fstat(self.fd)
        self._inode = status.st_ino
        if journal and status.st_size == entry.size:
            self.have = decode(os.pread(self._journal, _LIMIT, 0), self.name, self._inode, entry.size)
        self.fresh = not self.have  # everything that is not written reads as zeros
        self._is_spread = False
        self.is_cloned = False  # everything that is not written is what the old version has there
        if self.fresh:
            if journal:
                os.ftruncate(self._journal, 0)
            os.ftruncate(self.fd, 0)
            os.ftruncate(self.fd, entry.size)

    def begin_with(self, basis: int) -> None:
        """Begin with the whole of the old version, an open file, where its space on the disk can be shared.

        Raises OSError if the disk is full.
        """
        if self.fresh and clone(basis, self.fd):
            self.fresh, self.is_cloned = False, True
            os.ftruncate(self.fd, self.size)
            self._is_spread = spread(self.fd, os.fstatvfs(self.fd).f_bsize)

    def take_same(self, basis: int, offset: int, count: int) -> None:
        """Take a stretch from the old version, an open file. Raises OSError."""
        if not self.is_cloned:
            copy(basis, self.fd, offset, count, keep_holes=self.fresh)

    def note(self, start: int, end: int) -> None:
        """A range was written."""
        if self._journal >= 0:
            with self._lock:
                self._noted.append((start, end))

    def note_all_but(self, bad: list[Range]) -> bool:
        """Let a rerun begin with all but these ranges, where there is a journal; False if there is none."""
        if self._journal < 0:
            return False
        with self._lock:
            self._noted = missing(bad, self.size)
        os.ftruncate(self._journal, 0)
        self.close(complete=False)
        return True

    def sync(self) -> None:
        """Let what was noted reach the disk, and then write it down. Writers need not wait meanwhile."""
        with self._syncing:
            with self._lock:
                noted, self._noted = merged(self._noted), []
            if self._closed or not noted:
                return
            os.fdatasync(self.fd)
            os.write(self._journal, b"".join(encode_line(self.name, self._inode, start, end) for start, end in noted))

    def _close_journal(self) -> None:
        if self._journal >= 0:
            os.close(self._journal)

    def close(self, complete: bool) -> None:
        """Close the descriptors, and remove the journal of a complete file."""
        if not complete:
            with contextlib.suppress(OSError):
                self.sync()
        with self._syncing:
            if self._closed:
                return
            self._closed = True
            if self._is_spread:
                spread(self.fd, 0)
            self._close_journal()
            os.close(self.fd)
            if complete and self._journal >= 0:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.name + JOURNAL, dir_fd=self.folder_fd)

    def remove(self) -> None:
        """Remove what is there of it."""
        self.close(complete=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder_fd)
