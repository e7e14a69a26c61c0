# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a file of content that is all there, or of another file."""

from __future__ import annotations

import os

from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..content.clone import clone
from ..content.sparse import copy, write_filled

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new(folder_fd: int, name: bytes, mode: int, content: memoryview, sparse: bool = False) -> int:
    """Make a file that is not there yet, in an open directory; its fd is the caller's to close.

    ``sparse``: blocks of zeros are not stored. Raises OSError, FileExistsError among others; what was begun is gone
    then.
    """
    fd = os.open(name, _NEW_FILE, mode, dir_fd=folder_fd)
    try:
        left = 0 if sparse else len(content)
        if sparse:
            write_filled(fd, content)
        while left:
            written = os.write(fd, content)
            left -= written
            if left:
                content = content[written:]
    except BaseException:
        os.close(fd)
        os.unlink(name, dir_fd=folder_fd)
        raise
    return fd


def copy_file(root: Root, old: Entry, folder_fd: int, name: bytes) -> None:
    """Make a file in an open directory that has the content of one below a root, which was looked at before.

    It shares the blocks of that one where the file system can do so. Raises OSError, FileExistsError among others;
    what was begun is gone then.
    """
    source = root.open_file(old.path, old)
    try:
        fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder_fd)
        try:
            if not clone(source, fd):
                os.ftruncate(fd, old.size)
                copy(source, fd, 0, old.size, keep_holes=True)
        except BaseException:
            os.unlink(name, dir_fd=folder_fd)
            raise
        finally:
            os.close(fd)
    finally:
        os.close(source)
