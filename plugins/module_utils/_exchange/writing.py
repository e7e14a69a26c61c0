# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a file of content that is all there. Private to the collection."""

from __future__ import annotations

import os

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new(folder_fd: int, name: bytes, mode: int, content: memoryview) -> int:
    """Make a file that is not there yet, in an open directory; its fd is the caller's to close.

    Raises OSError, FileExistsError among others; what was begun is gone then.
    """
    fd = os.open(name, _NEW_FILE, mode, dir_fd=folder_fd)
    try:
        left = len(content)
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
