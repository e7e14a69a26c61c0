# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give a file its holes back. Private to the collection."""

from __future__ import annotations

import os
from typing import Iterator

_CHUNK = 1 << 20
_BLOCK = 4096  # what file systems allocate by
_ZEROS = bytes(_CHUNK)


def make_sparse(folder_fd: int, name: bytes) -> None:
    """Rewrite a file without storing blocks of zeros, where it has any; its metadata are set afterwards.

    Raises OSError; the file is then as it was.
    """
    copy = name[:240] + b".sparse"
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder_fd)
    try:
        target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
        try:
            offset = 0
            while True:
                data = os.pread(source, _CHUNK, offset)
                if not data:
                    break
                for start, end in _filled(data):
                    while start < end:
                        start += os.pwrite(target, data[start:end], offset + start)
                offset += len(data)
            os.ftruncate(target, offset)
            os.rename(copy, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        except OSError:
            os.unlink(copy, dir_fd=folder_fd)
            raise
        finally:
            os.close(target)
    finally:
        os.close(source)


def _filled(data: bytes) -> Iterator[tuple[int, int]]:
    """Give the stretches, in whole blocks, that are not all zeros."""
    if data == _ZEROS[: len(data)]:
        return
    start = -1
    for at in range(0, len(data), _BLOCK):
        block = data[at : at + _BLOCK]
        empty = block == _ZEROS[: len(block)]
        if empty and start >= 0:
            yield start, at
            start = -1
        elif not empty and start < 0:
            start = at
    if start >= 0:
        yield start, len(data)
