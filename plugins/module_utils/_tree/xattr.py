# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extended attributes, never those behind a symlink. Private to the collection.

They are read of a name in an open directory: Linux offers no ``*xattrat`` that Python knows, so the way leads through
``/proc/self/fd/N/name``, which is resolved from the open directory, and the last component is not followed. They are
written to what is held (see ``inode``), by ``/proc/self/fd/N``. POSIX ACLs are extended attributes
too (``system.posix_acl_access``, ``system.posix_acl_default``). Where a system has no such calls (FreeBSD), or
a file system no attributes, there are none.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
import threading

ACL_PREFIX = b"system.posix_acl_"
ACCESS_ACL, DEFAULT_ACL = ACL_PREFIX + b"access", ACL_PREFIX + b"default"
CAPABILITY = b"security.capability"
_CLONE_FS = 0x200  # <linux/sched.h>
_NAMESPACES = (b"user.", b"trusted.", b"security.", ACL_PREFIX)
_UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS)
_GONE = errno.ENODATA if hasattr(errno, "ENODATA") else errno.ENOENT

SUPPORTED = hasattr(os, "getxattr") and os.path.isdir("/proc/self/fd")


def _where(parent_fd: int, name: bytes) -> bytes:
    return b"/proc/self/fd/%d/%s" % (parent_fd, name)


class _Thread(threading.local):
    has_own_folder = False  # a working directory that no other thread shares
    here: object = None  # what the caller calls the directory that it is in


_thread = _Thread()


def quicken() -> None:
    """Let this thread read attributes faster, in half the time: give it a working directory of its own.

    Then a name is reached from there, instead of through /proc. Linux only, and only where the system permits it; the
    thread's working directory means nothing afterwards.
    """
    if SUPPORTED and sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            _thread.has_own_folder = ctypes.CDLL(None).unshare(_CLONE_FS) == 0


def read(parent_fd: int, name: bytes, here: object = None) -> tuple[tuple[bytes, bytes], ...]:
    """Read all extended attributes that a copy can carry, sorted by name; none if there cannot be any.

    ``here`` is an object that the caller has for this very directory and no other: then what is read of one directory
    after the other costs less. Raises OSError if the file system has them but they cannot be read.
    """
    if not SUPPORTED:
        return ()
    try:
        if _thread.has_own_folder:
            if here is None or _thread.here is not here:
                _thread.here = None  # whatever happens now
                os.fchdir(parent_fd)
                _thread.here = here
            where = name
        else:
            where = _where(parent_fd, name)
        names = os.listxattr(where, follow_symlinks=False)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return ()
        raise
    return _values(where, names, follow=False) if names else ()


def read_at(held: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Read them as :func:`read` does, of what is held: ``/proc/self/fd/N`` leads to that very inode."""
    if not SUPPORTED:
        return ()
    try:
        names = os.listxattr(held)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return ()
        raise
    return _values(held, names, follow=True) if names else ()


def _values(where: bytes, names: list[str], follow: bool) -> tuple[tuple[bytes, bytes], ...]:
    found = []
    for text in names:
        key = os.fsencode(text)
        if not key.startswith(_NAMESPACES):
            continue
        try:
            found.append((key, os.getxattr(where, key, follow_symlinks=follow)))
        except OSError as error:
            if error.errno not in (_GONE, *_UNSUPPORTED):
                raise
    return tuple(sorted(found))


def write_at(held: bytes, key: bytes, value: bytes) -> None:
    """Set one extended attribute of what is held. Raises OSError, with ENOTSUP if there are none."""
    if not SUPPORTED:
        raise OSError(errno.ENOTSUP, "this system has no extended attributes for Python")
    os.setxattr(held, key, value)


def remove_at(held: bytes, key: bytes) -> None:
    """Remove one extended attribute of what is held; it is no error when it is gone already."""
    if not SUPPORTED:
        return
    try:
        os.removexattr(held, key)
    except OSError as error:
        if error.errno != _GONE:
            raise
