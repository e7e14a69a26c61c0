# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Capabilities of root that a process of a transfer keeps. Pure.

The table says what each is for; all that it does not name is dropped, what future kernels have included. Other users
have none to drop.
"""

from __future__ import annotations

from ..settings import Settings

# <linux/capability.h>
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID = 0, 1, 2, 3, 4
SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT, SYS_ADMIN = 6, 7, 10, 18, 21
SYS_RESOURCE, MKNOD, LEASE, SETFCAP, MAC_ADMIN = 24, 27, 28, 31, 33

# Read and list everything, and not change access times (O_NOATIME); write below folders of other users, too, as
# the state folder's may be. SYS_RESOURCE: root is not held to quotas and to the sizes of pipes.
_ALWAYS = frozenset([DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, SYS_RESOURCE])
# Give files away, keep setgid in a mode, and find out whether another user's file is open for writing.
_WRITING = frozenset([CHOWN, FSETID, LEASE])
# trusted.*, and what of security.* belongs to no module of the kernel, can only be seen and set with SYS_ADMIN;
# labels that the policy in force does not know (SELinux) with MAC_ADMIN.
_XATTRS = frozenset([SYS_ADMIN, MAC_ADMIN])
# A daemon of rsync changes its root folder, then its ids and groups, although to those that it has.
_CHROOT = frozenset([SYS_CHROOT, SETUID, SETGID])


def kept(settings: Settings, side: str, part: str, chroots: bool = False) -> frozenset[int]:
    """Return what a process keeps that reads or writes the tree on one side.

    ``chroots``: it starts an rsync that makes the tree its root folder.
    """
    preserve = settings["preserve"]
    found = set(_ALWAYS)
    if "xattrs" in preserve:
        found |= _XATTRS
    if side == "dest":
        found |= _WRITING
        if "xattrs" in preserve:
            found.add(SETFCAP)
        if "devices" in preserve:
            found.add(MKNOD)
    if part == "serve":
        found.add(NET_BIND_SERVICE)  # the port may be one below 1024
    return frozenset(found | _CHROOT if chroots else found)


def kept_by_reader(xattrs: bool) -> frozenset[int]:
    """Return what a process keeps that only reads a tree."""
    return _ALWAYS | _XATTRS if xattrs else _ALWAYS


def mask(numbers: frozenset[int]) -> int:
    """Return a set of capabilities as the kernel writes it."""
    return sum(1 << number for number in numbers)
