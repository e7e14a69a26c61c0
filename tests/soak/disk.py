# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees as data to trees on disk."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import socket
import stat
from pathlib import Path

from .tree import BLOCK, CHARACTER, FIFO, FILE, FOLDER, SOCKET, SYMLINK, Inode, Tree


def make(tree: Tree, root: Path) -> None:
    """Make a tree on disk; needs root, since owners and devices are among what is made."""
    top = os.fsencode(root)
    os.makedirs(top, exist_ok=True)
    first: dict[int, bytes] = {}
    for path in sorted(tree.names):
        number = tree.names[path]
        place = os.path.join(top, path) if path else top
        if number in first:
            os.link(first[number], place, follow_symlinks=False)
            continue
        first[number] = place
        _make_entry(tree.inodes[number], place)
    for number, place in sorted(first.items(), key=lambda item: item[1], reverse=True):  # what is in a folder first
        _set_attributes(tree.inodes[number], place)


def _make_entry(inode: Inode, place: bytes) -> None:
    if inode.kind == FILE:
        with open(place, "xb") as file:
            for at, length, number in inode.data:
                file.seek(at)
                file.write(_noise(number)[:length] * 1 if length <= 4096 else _long(number, length))
            file.truncate(inode.size)
    elif inode.kind == FOLDER:
        with contextlib.suppress(FileExistsError):  # the root
            os.mkdir(place)
    elif inode.kind == SYMLINK:
        os.symlink(inode.target, place)
    elif inode.kind == SOCKET:
        folder = os.open(os.path.dirname(place), os.O_RDONLY)
        try:  # a name of any length
            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind(b"/proc/self/fd/%d/.s" % folder)
            os.rename(b".s", os.path.basename(place), src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)
    else:
        kinds = {FIFO: stat.S_IFIFO, CHARACTER: stat.S_IFCHR, BLOCK: stat.S_IFBLK}
        os.mknod(place, kinds[inode.kind] | 0o600, inode.device)


@functools.lru_cache(maxsize=None)
def _noise(number: int) -> bytes:
    return random.Random(number).randbytes(4096)


@functools.lru_cache(maxsize=64)
def _long(number: int, length: int) -> bytes:
    return random.Random(-number).randbytes(length)


def _set_attributes(inode: Inode, place: bytes) -> None:
    os.chown(place, inode.uid, inode.gid, follow_symlinks=False)
    if inode.kind != SYMLINK:
        os.chmod(place, inode.mode)
    for name, value in inode.xattrs:
        os.setxattr(place, name, value, follow_symlinks=False)
    os.utime(place, ns=(inode.mtime, inode.mtime), follow_symlinks=False)
