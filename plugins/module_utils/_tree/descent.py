# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A way down into a tree by directory fds that never leaves it. Private to the collection.

Every directory is opened relative to its parent's fd with O_NOFOLLOW, so a parent that is swapped for a
symlink cannot lead outside, and no path is ever too long. Only the deepest directories stay open: a tree of
3000 levels needs no more fds than one of 64, and a process that runs out of them gives its own back first.
"""

from __future__ import annotations

import errno
import os
from typing import Callable, TypeVar

from .._core.mounts import place_of
from .._model.paths import join

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MAX_OPEN = 64

OUT_OF_FDS = (errno.EMFILE, errno.ENFILE)
_Result = TypeVar("_Result")


def open_root(root: bytes | int) -> int:
    """Open a directory by its path, which must not end in a symlink, or once more by an fd; the fd is the caller's."""
    if isinstance(root, int):
        return os.open(b".", DIRECTORY_FLAGS, dir_fd=root)
    return os.open(root, DIRECTORY_FLAGS)


class _Level:
    """One directory on the way down."""

    __slots__ = ("fd", "identity", "name", "path")

    def __init__(self, path: bytes, name: bytes, fd: int, device: int, inode: int) -> None:
        self.path = path
        self.name = name
        self.fd = fd  # -1 while it is closed to spare fds
        self.identity = (device, inode)


class Descent:
    """The stack of directories from a root to where the reader is. Close it when done.

    The caller's ``root_fd`` stays the caller's.
    """

    def __init__(self, root_fd: int, path: bytes = b"") -> None:
        status = os.fstat(root_fd)
        self._levels = [_Level(path, b"", root_fd, status.st_dev, status.st_ino)]
        self._oldest = 1  # the shallowest level that may be open; the root is never closed here

    @property
    def fd(self) -> int:
        """The directory where the reader is."""
        return self._levels[-1].fd

    @property
    def here(self) -> object:
        """Return an object that stands for this directory, and for no other, as long as somebody holds it."""
        return self._levels[-1]

    @property
    def path(self) -> bytes:
        """Its path below the root."""
        return self._levels[-1].path

    @property
    def device(self) -> int:
        """Its ``st_dev``."""
        return self._levels[-1].identity[0]

    @property
    def place(self) -> tuple[int, int]:
        """Its ``place_of``."""
        return self._sparing(lambda: place_of(self.fd))

    @property
    def depth(self) -> int:
        """How many directories it is below the root."""
        return len(self._levels) - 1

    def enter(self, name: bytes) -> None:
        """Go down into a directory. Raises OSError, and stays, where it cannot be opened."""
        here = self._levels[-1]
        fd = self._sparing(lambda: os.open(name, DIRECTORY_FLAGS, dir_fd=here.fd))
        status = os.fstat(fd)
        self._levels.append(_Level(join(here.path, name), name, fd, status.st_dev, status.st_ino))
        if len(self._levels) - self._oldest > MAX_OPEN:
            self._give_back()

    def names(self) -> list[bytes]:
        """List the directory where the reader is, in byte order."""
        # An empty name is impossible and NUL is in none, so they can be turned into bytes together.
        found = "\0".join(self._sparing(lambda: os.listdir(self.fd)))
        return sorted(os.fsencode(found).split(b"\0")) if found else []

    def leave(self) -> None:
        """Go up again. Raise OSError if the directory above is no longer where it was; it is gone up all the same.

        After an error ``fd`` is -1, and the only way is further up.
        """
        below = self._levels.pop()
        here = self._levels[-1]
        try:
            if here.fd < 0:
                here.fd = self._again(below)
        finally:
            if below.fd >= 0:
                os.close(below.fd)
            self._oldest = min(self._oldest, max(1, len(self._levels) - 1))

    def close(self) -> None:
        """Close what is open; the root stays open, for it is the caller's."""
        for level in self._levels[1:]:
            if level.fd >= 0:
                os.close(level.fd)
        del self._levels[1:]

    def _sparing(self, call: Callable[[], _Result]) -> _Result:
        """Call, and when the process has no fds left give back one of ours and call again."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in OUT_OF_FDS or not self._give_back():
                    raise

    def _give_back(self) -> bool:
        """Close the shallowest directory that is open, other than the root and the one in use."""
        while self._oldest < len(self._levels) - 1:
            level = self._levels[self._oldest]
            self._oldest += 1
            if level.fd >= 0:
                os.close(level.fd)
                level.fd = -1
                return True
        return False

    def _again(self, below: _Level) -> int:
        """Open the deepest level once more: by ``..`` of the one below, else from the root down.

        Either way it must be the very directory it was, so a tree that is moved about meanwhile
        cannot lead elsewhere.
        """
        here = self._levels[-1]
        if below.fd >= 0:
            try:
                fd = os.open(b"..", DIRECTORY_FLAGS, dir_fd=below.fd)
            except OSError:
                pass  # the way from the root may still be open
            else:
                if _is(fd, here):
                    return fd
                os.close(fd)
        fd = os.dup(self._levels[0].fd)
        for level in self._levels[1:]:
            above = fd
            try:
                fd = os.open(level.name, DIRECTORY_FLAGS, dir_fd=above)
            finally:
                os.close(above)
        if not _is(fd, here):
            os.close(fd)
            raise OSError(errno.ESTALE, "the directory was moved or replaced while it was read")
        return fd


def _is(fd: int, level: _Level) -> bool:
    status = os.fstat(fd)
    return (status.st_dev, status.st_ino) == level.identity
