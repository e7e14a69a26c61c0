# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change a tree below a destination root, and nothing outside of it. Private to the collection.

Whatever a peer names is reached from the root's fd, one component after the other, never through a symlink.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections import OrderedDict
from typing import Callable

from .._core.files import rewound
from .._model.entry import BLOCK, CHARACTER, DIRECTORY, FIFO, SOCKET, Entry
from .._model.paths import components, escape
from .descent import DIRECTORY_FLAGS, OUT_OF_FDS, open_root
from .inode import exchanged, is_same
from .remove import Removal
from .stat_entry import stat_entry

_KINDS = {FIFO: stat.S_IFIFO, SOCKET: stat.S_IFSOCK, BLOCK: stat.S_IFBLK, CHARACTER: stat.S_IFCHR}
_CACHED = 32  # directories kept open
_FRESH = 1.0  # seconds; then a directory is looked up again, in case it was moved or replaced meanwhile
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class InTheWay(OSError):
    """Something of another type is where an entry belongs, and must not be removed."""


class Root:
    """A destination root, named by its path or an open fd. Use one for each thread, and close it (a context manager).

    Paths are relative to the root; all methods raise ValueError for one that a peer must not send (see
    :func:`paths.components`) and OSError where the file system refuses.
    """

    def __init__(self, root: bytes | int) -> None:
        self.path = b"" if isinstance(root, int) else root
        self.fd = open_root(root)
        self._open: OrderedDict[bytes, tuple[int, float]] = OrderedDict()  # directory -> (fd, when opened)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every fd."""
        self.forget()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def forget(self, path: bytes = b"") -> None:
        """Close the cached fds of a directory that is about to go, and of all below it."""
        below = path + b"/"
        for key in [key for key in self._open if not path or key == path or key.startswith(below)]:
            os.close(self._open.pop(key)[0])

    def open_parent(self, path: bytes) -> tuple[int, bytes]:
        """Return the fd of the directory that holds the path, and the name in it; for the root itself ``b"."``.

        The fd stays this object's: it is good until the next call of any method.
        Raises NotADirectoryError if a parent is no directory, or a symlink.
        """
        parts = components(path)
        if not parts:
            return self.fd, b"."
        return self._directory(parts[:-1]), parts[-1]

    def open_directory(self, path: bytes) -> int:
        """Open a directory below the root; the fd is the caller's to close."""
        return os.dup(self._directory(components(path)))

    def open_file(self, path: bytes, expected: Entry | None = None) -> int:
        """Open a regular file for reading; the fd is the caller's. Anything else is refused with OSError.

        So is a file that is not the one ``expected``, which was looked at before. A FIFO or a device is recognised
        before it is opened, and after it in case it came in between.
        """
        parent, name = self.open_parent(path)
        if stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            fd = os.open(name, flags, dir_fd=parent)
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode) and (expected is None or is_same(status, expected)):
                return fd
            os.close(fd)
            if expected is not None:
                raise exchanged()
        raise OSError(errno.EINVAL, "not a regular file (any more)", escape(path))

    def lstat(self, path: bytes, xattrs: bool = False) -> Entry | None:
        """Return the entry at the path, or None if there is none or no way leads to it."""
        try:
            parent, name = self.open_parent(path)
            return stat_entry(parent, name, path, xattrs)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def make_directory(self, path: bytes, mode: int = 0o700) -> None:
        """Make a directory, by default for its owner alone until its metadata are applied."""
        parent, name = self.open_parent(path)
        os.mkdir(name, mode, dir_fd=parent)

    def make_symlink(self, path: bytes, target: bytes) -> None:
        """Make a symlink; the target is kept as it is, wherever it leads."""
        if not target or b"\0" in target:
            raise ValueError(f"the symlink '{escape(path)}' has an impossible target")
        parent, name = self.open_parent(path)
        os.symlink(target, name, dir_fd=parent)

    def make_special(self, path: bytes, entry: Entry, mode: int = 0o600) -> None:
        """Make a FIFO, a socket or a device node (for which one must be root) of the entry's type."""
        if entry.type not in _KINDS:
            raise ValueError(f"'{escape(path)}' is of type '{entry.type}', which is no FIFO, socket or device")
        parent, name = self.open_parent(path)
        if entry.type == FIFO:
            os.mkfifo(name, mode, dir_fd=parent)
        else:
            os.mknod(name, _KINDS[entry.type] | mode, entry.rdev, dir_fd=parent)

    def hard_link(self, existing: Entry, path: bytes) -> None:
        """Add a hard link to an existing file, symlink or special file, which was looked at before."""
        parent, old_name = self.open_parent(existing.path)
        old_parent = os.dup(parent)
        try:
            parent, name = self.open_parent(path)
            os.link(old_name, name, src_dir_fd=old_parent, dst_dir_fd=parent, follow_symlinks=False)
            if not is_same(os.stat(name, dir_fd=parent, follow_symlinks=False), existing):
                os.unlink(name, dir_fd=parent)
                raise exchanged()
        finally:
            os.close(old_parent)

    def rename_into(self, staging_fd: int, name: bytes, path: bytes, expected: Entry | None = None) -> None:
        """Move a finished name from the staging directory to its place, over whatever file is there, in one step.

        A directory in the place must have been cleared away before (:meth:`clear_for`). ``expected``: the file that
        was looked at before the staging directory got this name for it.
        """
        parent, final = self.open_parent(path)
        status = os.stat(name, dir_fd=staging_fd, follow_symlinks=False)
        if expected is not None and not is_same(status, expected):
            raise exchanged()
        os.rename(name, final, src_dir_fd=staging_fd, dst_dir_fd=parent)
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            # rename() does nothing, with success, where both names are already the same file.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=staging_fd)

    def clear_for(self, entry: Entry, found: Entry | None, check: bool = False) -> None:
        """Make way for an entry where something of another type is in its place.

        Files that a rename replaces are left for it, so the place is never empty. Raises InTheWay for a
        directory with contents. With ``check`` nothing is removed.
        """
        if found is None or found.type == entry.type or DIRECTORY not in (found.type, entry.type):
            return
        if found.type == DIRECTORY:
            self._clear_directory(entry.path, check)
        elif not check:
            self.remove(entry.path)

    def remove(
        self,
        path: bytes,
        *,
        keep: Callable[[bytes, bool], bool] | None = None,
        on_removed: Callable[[bytes, str], None] | None = None,
        on_mount: Callable[[bytes], None] | None = None,
    ) -> int:
        """Remove what is at the path, a directory with everything in it; gives how many entries went.

        ``keep(path, is_dir)`` names what is left alone below a directory, which then stays, too.
        ``on_removed(path, type)`` hears of each. Raises FileNotFoundError if there is nothing, OSError where
        something cannot be removed. A mount point below is not entered but refused; kept, if ``on_mount`` hears of it.
        """
        if not path:
            raise ValueError("the root itself is never removed")
        self.forget(path)
        parent, name = self.open_parent(path)
        parent = os.dup(parent)  # on_removed may call other methods
        try:
            return Removal(keep, on_removed, on_mount).remove(parent, name, path)
        finally:
            os.close(parent)

    def _clear_directory(self, path: bytes, check: bool) -> None:
        if check:
            fd = self.open_directory(path)
            try:
                is_empty = not os.listdir(rewound(fd))
            finally:
                os.close(fd)
        else:
            self.forget(path)
            parent, name = self.open_parent(path)
            try:
                os.rmdir(name, dir_fd=parent)
                is_empty = True
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                is_empty = False
        if not is_empty:
            text = "cannot delete non-empty directory: the source has something else here"
            raise InTheWay(errno.ENOTEMPTY, text, escape(path))

    def _directory(self, parts: list[bytes]) -> int:
        """Return the cached fd of a directory, opening what is missing on the way from the nearest one open."""
        now = time.monotonic()
        known, fd = len(parts), self.fd
        while known:
            key = b"/".join(parts[:known])
            cached = self._open.get(key)
            if cached is not None:
                if now - cached[1] < _FRESH:
                    self._open.move_to_end(key)
                    fd = cached[0]
                    break
                os.close(self._open.pop(key)[0])
            known -= 1
        if known == len(parts):
            return fd
        fd = self._down(os.dup(fd), parts[known:])
        self._open[b"/".join(parts)] = (fd, now)
        while len(self._open) > _CACHED:
            os.close(self._open.popitem(last=False)[1][0])
        return fd

    def _down(self, fd: int, parts: list[bytes]) -> int:
        for part in parts:
            try:
                below = self._open_sparing(part, fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _open_sparing(self, name: bytes, parent: int) -> int:
        """Open a directory; where the process has no fds left, close the cached ones first."""
        try:
            return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno not in OUT_OF_FDS or not self._open:
                raise
        self.forget()
        return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
