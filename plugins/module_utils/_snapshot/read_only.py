# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the folders of a snapshot's tree immutable (chattr +i), and mutable again. Private to the collection.

In such a folder nobody, not even root, can add, remove, rename or replace a name, until the flag is taken off. Files
have no flag: a later snapshot links to them, which a flag would forbid. The root of the tree comes last, so its flag
says that all folders have theirs, whatever was killed. ``snapshot.json`` says beforehand that a snapshot becomes
read-only, so its removal knows that flags may have to go first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys

from .._model.entry import DIRECTORY
from .._tree.dirfd import ABSENT, Root
from .._tree.walk import walk
from .errors import Refused
from .repository import Series, SnapshotFolder

# <linux/fs.h>. The kernel takes an int, although the numbers of these calls have the size of a long. On these
# processors the bits of "read" and "write" in the number of an ioctl are others.
_IS_OTHER = os.uname().machine.startswith(("alpha", "mips", "ppc", "powerpc", "sparc"))
_READ, _WRITE = (0x40000000, 0x80000000) if _IS_OTHER else (0x80000000, 0x40000000)
_FS_IOC_GETFLAGS = _READ | struct.calcsize("l") << 16 | ord("f") << 8 | 1
_FS_IOC_SETFLAGS = _WRITE | struct.calcsize("l") << 16 | ord("f") << 8 | 2
_FS_IMMUTABLE_FL = 0x10
_FLAGS = struct.Struct("=I4x")
_HAVE_NONE = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_DENIED = (errno.EPERM, errno.EACCES)


def make_read_only(series: Series) -> tuple[bool, list[str]]:
    """Make the trees of all complete snapshots with ``read_only`` immutable; return whether any was not, and warnings.

    Where that fails, the first such snapshot tells why. The lock is the caller's.
    """
    changed = False
    warnings: list[str] = []
    for name in series.named():
        with contextlib.suppress(Refused, FileNotFoundError), series.snapshot(name) as snapshot:
            if not snapshot.facts().read_only:
                continue
            try:
                with snapshot.tree() as tree:
                    if _flags(tree.fd) & _FS_IMMUTABLE_FL:
                        continue
                    changed = True
                    series.step("read-only")
                    _set_all(tree, True)
            except OSError as error:
                warnings.append(
                    f"read_only is set, and the folders of {name} in {series.path} cannot be made immutable: "
                    f"{_why(error)}. The snapshot is complete, and can be changed as without read_only"
                )
                if error.errno in (*_HAVE_NONE, errno.EPERM):  # it would fail in all of them
                    break
    return changed, warnings[:1]


def make_writable(snapshot: SnapshotFolder) -> None:
    """Take the flags off before a snapshot is removed, if it may have any. Raises OSError.

    What this user may not open or change keeps its flag: whether it is in the way, the removal says.
    """
    try:
        if not snapshot.facts().read_only:
            return
    except Refused:  # the file is gone or damaged
        pass
    try:
        with snapshot.tree() as tree:
            _set_all(tree, False)
    except OSError as error:
        if error.errno not in (*ABSENT, *_HAVE_NONE, *_DENIED):  # where no folder can have a flag
            raise


def _set_all(tree: Root, is_immutable: bool) -> None:
    """Set the flag of all folders of a tree, or take it off where that is permitted. Raises OSError.

    The root has the flag only while all others have it: it gets it last, and loses it first.
    """
    top = os.fstat(tree.fd).st_dev
    if not is_immutable:
        _set(tree.fd, False)

    def fail(_path: bytes, error: OSError) -> None:
        if is_immutable:
            raise error

    for entry in walk(tree.fd, one_file_system=True, on_error=fail):
        if entry.type == DIRECTORY and entry.path and entry.dev == top:
            try:
                fd = tree.open_directory(entry.path)
                try:
                    _set(fd, is_immutable)
                finally:
                    os.close(fd)
            except OSError as error:
                if is_immutable or error.errno not in _DENIED:
                    raise
    if is_immutable:
        _set(tree.fd, True)


def _flags(fd: int) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "this system is not Linux")
    flags: int = _FLAGS.unpack(fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(_FLAGS.size)))[0]
    return flags


def _set(fd: int, is_immutable: bool) -> None:
    flags = _flags(fd)
    wanted = flags | _FS_IMMUTABLE_FL if is_immutable else flags & ~_FS_IMMUTABLE_FL
    if wanted != flags:
        fcntl.ioctl(fd, _FS_IOC_SETFLAGS, _FLAGS.pack(wanted))


def _why(error: OSError) -> str:
    if error.errno in _HAVE_NONE:
        return "the file system has no such flag (ext4, XFS and btrfs on Linux have it)"
    if error.errno in _DENIED:
        return "only root may do that (with the capability CAP_LINUX_IMMUTABLE, which containers often lack)"
    return error.strerror or str(error)
