# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Share ranges of two files, and make holes, on file systems that do so without moving data."""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from ..._core.disk_full import FULL

# <linux/fs.h> and <linux/falloc.h>. On these processors the bit of "write" in the number of an ioctl is another.
_WRITE = 0x80000000 if os.uname().machine.startswith(("alpha", "mips", "ppc", "powerpc", "sparc")) else 0x40000000
_FICLONE = _WRITE | 4 << 16 | 0x94 << 8 | 9  # btrfs, XFS, bcachefs, ZFS, NFS, CIFS and others, each as far as it can
_FS_IOC_UNRESVSP64 = _WRITE | 48 << 16 | ord("X") << 8 | 43  # all that have holes: the kernel makes a fallocate of it
_READ = 0x40000000 if _WRITE == 0x80000000 else 0x80000000
_FS_IOC_FSGETXATTR = _READ | 28 << 16 | ord("X") << 8 | 31
_FS_IOC_FSSETXATTR = _WRITE | 28 << 16 | ord("X") << 8 | 32
_FS_XFLAG_COWEXTSIZE = 0x00010000
_ATTRIBUTES = struct.Struct("@IIIII8s")  # struct fsxattr
_SPACE = struct.Struct("@hhqqiI4i")  # struct space_resv


def clone(source: int, target: int) -> bool:
    """Let an open file have the whole content of another one, whose space on the disk it shares. False: it cannot.

    Nothing is copied; what is written to either of them afterwards is not seen in the other one. Raises OSError if the
    file system is full.
    """
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in FULL:
            raise
        return False
    return True


def spread(fd: int, block: int) -> bool:
    """Let what is written into a clone take no more space than its blocks of ``block`` bytes. False: it does already.

    XFS takes 128 KiB for each place that is written to, and gives back what was not needed minutes later. With 0 the
    file is as it was. Only XFS knows this attribute.
    """
    if sys.platform != "linux":
        return False
    try:
        flags, extent, extents, project, _cow, rest = _ATTRIBUTES.unpack(
            fcntl.ioctl(fd, _FS_IOC_FSGETXATTR, bytes(_ATTRIBUTES.size))
        )
        flags = flags | _FS_XFLAG_COWEXTSIZE if block else flags & ~_FS_XFLAG_COWEXTSIZE
        fcntl.ioctl(fd, _FS_IOC_FSSETXATTR, _ATTRIBUTES.pack(flags, extent, extents, project, block, rest))
    except OSError:
        return False
    return True


def punch(fd: int, offset: int, count: int) -> bool:
    """Make a hole, which reads as zeros and takes no space. False: it cannot be made."""
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(fd, _FS_IOC_UNRESVSP64, _SPACE.pack(0, os.SEEK_SET, offset, count, 0, 0, 0, 0, 0, 0))
    except OSError:
        return False
    return True
