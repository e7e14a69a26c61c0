# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The room of a file system, and what is told of one that has none."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from .context import Context
from .errors import TransferFailed
from .files import nearest_existing

FULL = (errno.ENOSPC, errno.EDQUOT)  # no space, no inodes, or no quota
_MARGIN, _MARGIN_SHARE = 1 << 30, 10  # bytes that stay free, or this part of the file system if that is less


class DiskRoom(NamedTuple):
    """Room of a file system for this user. Without a fixed number of inodes, theirs is None."""

    total: int  # bytes
    free: int
    inodes: int | None
    free_inodes: int | None
    is_read_only: bool


def find_room(place: str | bytes | int) -> DiskRoom:
    """Return the room of the file system of a path or an open file. Raises OSError."""
    found = os.statvfs(place)
    return DiskRoom(
        total=found.f_blocks * found.f_frsize,
        free=found.f_bavail * found.f_frsize,
        inodes=found.f_files or None,
        free_inodes=found.f_favail if found.f_files else None,
        is_read_only=bool(found.f_flag & os.ST_RDONLY),
    )


def usable_room(total: int, free: int) -> int:
    """Return how many of the ``free`` bytes of a file system may be used for what is soon removed again. Pure."""
    return free - min(_MARGIN, total // _MARGIN_SHARE)


def no_room(error: OSError, path: str) -> str:
    """Return what is told of an error of FULL at ``path``, or at the path that the error names."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else path
    return (
        f"{where} cannot be written on this host: {error.strerror}. Its file system has no space or no inodes left "
        "(see df and df -i): make room there, and run the same again"
    )


def full_disk(error: OSError, context: Context, found: str) -> TransferFailed:
    """Return what ends a transfer on the host where a disk is full: that of its state if the error names it.

    ``found`` says how it showed where it is the destination's.
    """
    is_state = isinstance(error.filename, str) and error.filename.startswith(context.folder)
    if context.side == "dest" and not is_state:
        return full(context.root, found)
    return TransferFailed(no_room(error, context.folder))


def full(root: bytes, found: str) -> TransferFailed:
    """Return what ends a transfer to ``root``, which has no room, where ``found`` says how that showed."""
    where = os.fsdecode(mount_point(root))
    return TransferFailed(
        f"the destination's disk is full ({found}): the file system mounted at {where} has no space or no inodes left "
        f"(see df {where} and df -i {where}), so {os.fsdecode(root)} is not complete. Make room there and run the "
        "transfer again; what is in place stays"
    )


def mount_point(path: bytes) -> bytes:
    """Return the folder at which the file system of a path begins, as far up as this user may look."""
    path = nearest_existing(os.path.realpath(path))
    try:
        device = os.lstat(path).st_dev
        while path != b"/" and os.lstat(os.path.dirname(path)).st_dev == device:
            path = os.path.dirname(path)
    except OSError:
        pass
    return path
