# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An inode, held by a descriptor while its attributes are set. Private to the collection.

Whoever may write to a folder can exchange a name in it between a look and a chown by root, which then gives away
another file. So the file itself is held, must be the one that was looked at, and is changed through its descriptor.

On Linux that is an O_PATH descriptor, which opens nothing and needs no permission; the calls go through
``/proc/self/fd/N``, which leads to that very inode, a symlink included. Other systems hold regular files and
directories by an ordinary descriptor. They cannot hold a symlink or a special file, nor a file that its user may not
open: these are changed by name, right after the check.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import stat

from .._model.entry import Entry, entry_from_stat
from . import xattr

HAS_PROC = hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def exchanged() -> OSError:
    """Return the error for a name that no longer stands for what it stood for."""
    return OSError(errno.ESTALE, "something else took its place while it was worked on; nothing of that was changed")


def is_same(status: os.stat_result, expected: Entry) -> bool:
    """Return whether the open file is the one of ``lstat``, and no newer inode with the same number."""
    return (status.st_dev, status.st_ino, status.st_uid, status.st_gid) == (
        expected.dev,
        expected.ino,
        expected.uid,
        expected.gid,
    )


def may_have_writer(fd: int) -> bool:
    """Return whether a file may be open for writing, or mapped so; True where the system cannot tell.

    ``fd`` is open for reading alone. The kernel refuses a read lease while there is a writer. Only the owner of the
    file gets one, and root with CAP_LEASE. Opening the file meanwhile sends a signal that is ignored.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return True
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    return False


class Inode:
    """What a name in an open directory (``b"."``: the directory itself) stands for; a context manager.

    Raises OSError if it cannot be held, or is not the one ``expected``.
    """

    def __init__(self, parent_fd: int, name: bytes, expected: Entry | None = None) -> None:
        self._parent, self._name = parent_fd, name
        self._fd = os.open(name, os.O_PATH | _FLAGS, dir_fd=parent_fd) if HAS_PROC else _open(parent_fd, name)
        self._proc = b"/proc/self/fd/%d" % self._fd
        try:
            if expected is not None and not is_same(self.status(), expected):
                raise exchanged()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Inode:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def status(self) -> os.stat_result:
        """Return what it is now."""
        if self._fd < 0:
            return os.stat(self._name, dir_fd=self._parent, follow_symlinks=False)
        return os.fstat(self._fd)

    def entry(self, path: bytes, xattrs: bool = False) -> Entry:
        """Return it as an entry, without the target of a symlink."""
        return entry_from_stat(path, self.status(), b"", xattr.read_at(self._proc) if xattrs else ())

    def chown(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one as it is."""
        if HAS_PROC:
            os.chown(self._proc, uid, gid)
        elif self._fd >= 0:
            os.fchown(self._fd, uid, gid)
        else:
            os.chown(self._name, uid, gid, dir_fd=self._parent, follow_symlinks=False)

    def chmod(self, mode: int) -> None:
        """Set the permission bits; a symlink is refused, not followed (OSError)."""
        if HAS_PROC:
            os.chmod(self._proc, mode)
        elif self._fd >= 0:
            os.fchmod(self._fd, mode)
        else:
            os.chmod(self._name, mode, dir_fd=self._parent, follow_symlinks=False)

    def set_times(self, accessed_ns: int, modified_ns: int) -> None:
        """Set both times."""
        times = (accessed_ns, modified_ns)
        if HAS_PROC:
            os.utime(self._proc, ns=times)
        elif self._fd >= 0:
            os.utime(self._fd, ns=times)
        else:
            os.utime(self._name, ns=times, dir_fd=self._parent, follow_symlinks=False)

    def may_have_writer(self) -> bool:
        """Return whether somebody may still write to this regular file, which is its user's own."""
        if not HAS_PROC:
            return True
        fd = os.open(self._proc, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return may_have_writer(fd)
        finally:
            os.close(fd)

    def set_xattr(self, key: bytes, value: bytes) -> None:
        """Set one extended attribute. Raises OSError, with ENOTSUP if there are none."""
        xattr.write_at(self._proc, key, value)

    def remove_xattr(self, key: bytes) -> None:
        """Remove one extended attribute; it is no error when it is gone already."""
        xattr.remove_at(self._proc, key)


def _open(parent_fd: int, name: bytes) -> int:
    """Open a regular file or a directory without O_PATH; -1 for what can only be reached by its name."""
    before = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
    if not (stat.S_ISREG(before.st_mode) or stat.S_ISDIR(before.st_mode)):
        return -1
    for access in (os.O_RDONLY, os.O_WRONLY):
        with contextlib.suppress(PermissionError, IsADirectoryError):
            fd = os.open(name, access | _FLAGS, dir_fd=parent_fd)
            if os.path.samestat(os.fstat(fd), before):
                return fd
            os.close(fd)
            raise exchanged()
    return -1
