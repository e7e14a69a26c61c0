# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a file has contents, and where only zeros that are stored nowhere. Private to the collection."""

from __future__ import annotations

import errno
import os
from typing import Iterator

_CANNOT = (errno.EINVAL, errno.ENOTSUP)
_ZEROS = bytes(1 << 20)


def segments(fd: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Give the stretches from ``start`` to ``end`` in their order, with whether there are contents. Raises OSError."""
    while start < end:
        data, hole = start, end
        if hasattr(os, "SEEK_DATA"):
            try:
                data = min(end, os.lseek(fd, start, os.SEEK_DATA))
                hole = min(end, os.lseek(fd, data, os.SEEK_HOLE)) if data < end else end
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                    data, hole = end, end
                elif error.errno not in _CANNOT:
                    raise
        if data > start:
            yield start, data, False
        if hole > data:
            yield data, hole, True
        start = hole


def write_zeros(fd: int, offset: int, count: int) -> None:
    """Let a stretch read as zeros, without storing them where there is a hole already. Raises OSError."""
    for start, end, holds in segments(fd, offset, offset + count):
        while holds and start < end:
            start += os.pwrite(fd, _ZEROS[: min(end - start, len(_ZEROS))], start)


def copy(source: int, target: int, offset: int, count: int, keep_holes: bool) -> None:
    """Copy a stretch between two open files, to the same place; without its holes where those are there already.

    Raises OSError, also where the source ends before.
    """
    for start, end, holds in segments(source, offset, offset + count):
        if not holds:
            if not keep_holes:
                write_zeros(target, start, end - start)
            continue
        while start < end:
            start += _copy_some(source, target, start, end - start)


def _copy_some(source: int, target: int, offset: int, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        try:
            moved = os.copy_file_range(source, target, count, offset, offset)
            if moved:
                return moved
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOSYS, *_CANNOT):
                raise
    data = os.pread(source, min(count, len(_ZEROS)), offset)
    if not data:
        raise OSError(errno.EIO, "the old version of the file became shorter")
    return os.pwrite(target, data, offset)
