# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until the disk has what was written, so that a loss of power does not take it away."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Iterator

from .mounts import MOUNTINFO, is_on, parse_mounts

_MOUNTS_ITSELF = "autofs"  # by being opened


def sync_file_system(fd: int) -> None:
    """Wait until everything that was written to the file system of an open file or directory is on the disk.

    Raises OSError if the kernel says that something was not written (Linux 5.8 and newer says so). Elsewhere than on
    Linux it is ``sync()``, which on some systems only begins to write.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) == 0:
                return
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
    os.sync()


def sync_tree(root: str) -> None:
    """Wait for all file systems that a tree is on: that of its root, a real path, and those that are mounted inside it.

    Raises OSError as sync_file_system does, and where the root cannot be opened.
    """
    _sync_path(root)
    for point in _mounted_inside(root):
        with contextlib.suppress(FileNotFoundError):  # unmounted, and removed, by now
            _sync_path(point)


def _sync_path(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:  # who may only write there cannot name its file system: wait for all of them
        os.sync()
        return
    try:
        sync_file_system(fd)
    finally:
        os.close(fd)


def _mounted_inside(root: str) -> Iterator[str]:
    """Yield one mount point inside a folder for each file system that is mounted there."""
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as file:
            found = list(parse_mounts(file.read()))
    except FileNotFoundError:  # not on Linux, where sync_file_system waits for everything
        return
    inside = (one for one in found if one.point != root and is_on(one.point, root) and one.kind != _MOUNTS_ITSELF)
    yield from {one.device: one.point for one in inside}.values()
