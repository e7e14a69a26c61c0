# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of btrfs subvolumes, made and removed by the kernel's own calls: no path is looked up, no program is run.

Source: linux/btrfs.h (BTRFS_IOC_SNAP_CREATE_V2, BTRFS_IOC_SNAP_DESTROY, BTRFS_IOC_GET_SUBVOL_ROOTREF).
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import struct

from .._core.counted import counted
from .._core.errors import TransferFailed
from .._core.mounts import points_below
from .._tree.held_root import open_held
from .._tree.resolve import real_path
from .request import BtrfsSource

_OTHER_BITS = ("ppc", "mips", "sparc", "alpha")  # processors whose kernels have the direction of a call elsewhere
_WRITE, _BOTH = (4 << 29, 6 << 29) if platform.machine().startswith(_OTHER_BITS) else (1 << 30, 3 << 30)
_ARGUMENT = 4096  # bytes of each argument
_MAGIC = (_ARGUMENT << 16) | (0x94 << 8)
_SNAP_CREATE_V2, _SNAP_DESTROY, _SUBVOL_ROOTREF = _WRITE | _MAGIC | 23, _WRITE | _MAGIC | 15, _BOTH | _MAGIC | 61
_READ_ONLY = 1 << 1
_ROOT_INODE = 256  # of each subvolume
_LONGEST_NAME = 255
_REFERENCES = 255  # that one call returns at most
_NO_BTRFS = (errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP)


def make_snapshot(source: BtrfsSource, subvolume: int) -> None:
    """Make the read-only snapshot in an open subvolume. Raises OSError, FileExistsError if its name is taken."""
    name = os.fsencode(source.name)
    argument = struct.pack("=qQQ32x", subvolume, 0, _READ_ONLY) + name
    fcntl.ioctl(subvolume, _SNAP_CREATE_V2, bytearray(argument.ljust(_ARGUMENT, b"\0")), True)


def delete_snapshot(folder: int, name: bytes) -> None:
    """Delete a subvolume in an open folder. Raises OSError, and FileNotFoundError if it is not there."""
    os.stat(name, dir_fd=folder, follow_symlinks=False)
    if len(name) > _LONGEST_NAME:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    argument = struct.pack("=q", 0) + name
    fcntl.ioctl(folder, _SNAP_DESTROY, bytearray(argument.ljust(_ARGUMENT, b"\0")), True)


def count_nested(subvolume: int, own: bytes) -> int:
    """Return how many subvolumes lie directly in an open one, without the one of the name ``own``. Raises OSError."""
    argument = bytearray(_ARGUMENT)
    fcntl.ioctl(subvolume, _SUBVOL_ROOTREF, argument, True)
    found = argument[8 + 16 * _REFERENCES]
    try:
        is_own = os.stat(own, dir_fd=subvolume, follow_symlinks=False).st_ino == _ROOT_INODE
    except FileNotFoundError:
        is_own = False
    return int(found) - int(is_own)


def open_subvolume(source: BtrfsSource) -> tuple[bytes, int]:
    """Return the real path of a subvolume, and its fd, which is the caller's. Raises TransferFailed.

    What lies inside of it on another file system or subvolume would be empty in the snapshot, so it is refused unless
    the user leaves it out.
    """
    try:
        path = real_path(os.fsencode(source.subvolume))
        fd = open_held(path)
    except OSError as error:
        raise TransferFailed(f"the subvolume {source.subvolume} cannot be opened: {error.strerror}") from error
    try:
        _check(source, path, fd)
    except BaseException:
        os.close(fd)
        raise
    return path, fd


def require_in_subvolume(source: BtrfsSource, subvolume: int, live: str) -> None:
    """Raise TransferFailed if a live path is on another subvolume or file system than an open subvolume.

    A path that is missing is the business of who reads it. Raises OSError.
    """
    try:
        device = os.stat(live).st_dev
    except FileNotFoundError:
        return
    if device != os.fstat(subvolume).st_dev:
        raise TransferFailed(
            f"{live} is on another subvolume or file system than {source.subvolume}, so the snapshot does not have it. "
            "Give that subvolume an entry btrfs of its own, or back it up by another job"
        )


def _check(source: BtrfsSource, path: bytes, fd: int) -> None:
    if os.fstat(fd).st_ino != _ROOT_INODE:
        raise TransferFailed(
            f"{source.subvolume} is not the top folder of a btrfs subvolume. Set subvolume to the folder that is "
            "(btrfs subvolume show PATH names it)"
        )
    try:
        nested = count_nested(fd, os.fsencode(source.name))
    except OSError as error:
        if error.errno in _NO_BTRFS:
            raise TransferFailed(f"{source.subvolume} is on no btrfs, or its kernel is older than 4.18") from error
        raise
    if source.leave_out_nested:
        return
    mounted = points_below(os.fsdecode(path))
    if nested or mounted:
        what = counted(nested, "subvolume", "subvolumes") if nested else f"the mount point {mounted[0]}"
        raise TransferFailed(
            f"{source.subvolume} has {what} inside, of which its snapshot holds empty folders. Back them up by jobs of "
            "their own, and set leave_out_nested: true here"
        )
