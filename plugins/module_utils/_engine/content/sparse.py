# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files with holes: how they are copied, made and taken away."""

from __future__ import annotations

import errno
import os
from typing import Iterator

from ..._core.files import segments
from .clone import punch

_CHUNK = 1 << 20
_BLOCK = 4096  # what file systems allocate by
_ZEROS = bytes(_CHUNK)
_CANNOT = (errno.EINVAL, errno.ENOTSUP)


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


def allocate(folder_fd: int, name: bytes, size: int, expected: os.stat_result) -> os.stat_result:
    """Store the holes of a file as zeros, where the file system can; return what it is then.

    Raises OSError, also where the name does not stand for the file ``expected`` any more.
    """
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        if not os.path.samestat(os.fstat(fd), expected):
            raise OSError(errno.ESTALE, "another file took its place while it was written to")
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(fd, 0, size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENODEV, errno.ENOSYS):
                    raise
        return os.fstat(fd)
    finally:
        os.close(fd)


def write_filled(fd: int, content: memoryview) -> None:
    """Write what is to be the whole content of an empty file, without storing its blocks of zeros. Raises OSError."""
    size, end = len(content), 0
    for at in range(0, size, _CHUNK):
        for first, last in _filled(bytes(content[at : at + _CHUNK])):
            start, end = at + first, at + last
            while start < end:
                start += os.pwrite(fd, content[start:end], start)
    if end < size:
        os.ftruncate(fd, size)


def _filled(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the stretches, in whole blocks, that are not all zeros."""
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


def write_zeros(fd: int, offset: int, count: int) -> None:
    """Let a stretch read as zeros, without storing them where that can be done without. Raises OSError."""
    for start, end, holds in segments(fd, offset, offset + count):
        if not holds or punch(fd, start, end - start):
            continue
        while start < end:
            start += os.pwrite(fd, _ZEROS[: min(end - start, len(_ZEROS))], start)


def copy(source: int, target: int, offset: int, count: int, keep_holes: bool) -> None:
    """Copy a stretch between two open files, to the same place; without its holes where those are there already.

    Raises OSError, also where the source ends before.
    """
    status = os.fstat(source)
    has_holes = status.st_blocks * 512 < status.st_size  # else they are not looked for, which takes its time
    stop = offset + count
    for start, end, holds in segments(source, offset, stop) if has_holes else [(offset, stop, True)]:
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
