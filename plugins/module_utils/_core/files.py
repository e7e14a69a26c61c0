# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Questions about files: the hash of one, its holes, and the existing part of a path."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import AnyStr, Callable, Iterator

ALGORITHMS = ("blake2b", "sha256")  # 32 bytes each; which is faster depends on the processor
BUFFER = 1 << 20  # bytes that are read at once
_LEAST = 4096
_NO_HOLES = (errno.EINVAL, errno.ENOTSUP)  # a file system that cannot tell


def new_hash(algorithm: str) -> hashlib.blake2b | hashlib._Hash:
    """Return what hashes contents by an algorithm, to 32 bytes. Raises ValueError for one that is not known."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"the hash algorithm '{algorithm}' is not known here; known are {', '.join(ALGORITHMS)}")
    return hashlib.blake2b(digest_size=32) if algorithm == "blake2b" else hashlib.sha256()


def hash_and_close(
    fd: int,
    algorithm: str = "blake2b",
    buffer: bytearray | None = None,
    count: Callable[[int], None] | None = None,
) -> bytes:
    """Hash what a file that was just opened holds, 32 bytes, and close it. Raises OSError.

    ``buffer`` is room to read into, which the caller uses for one file after the other. ``count`` is told again and
    again how many bytes were read.
    """
    try:
        digest = new_hash(algorithm)
        if buffer is None:  # as large as a small file needs it: memory costs time
            buffer = bytearray(min(BUFFER, max(_LEAST, os.fstat(fd).st_size + 1)))
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        view = memoryview(buffer)
        while True:
            read = os.readv(fd, [view])
            if not read:
                return digest.digest()
            digest.update(view[:read])
            if count is not None:
                count(read)
    finally:
        os.close(fd)


def segments(fd: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the stretches from ``start`` to ``end`` in their order, with whether there are contents. Raises OSError."""
    while start < end:
        data, hole = start, end
        if hasattr(os, "SEEK_DATA"):
            try:
                data = min(end, os.lseek(fd, start, os.SEEK_DATA))
                hole = min(end, os.lseek(fd, data, os.SEEK_HOLE)) if data < end else end
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                    data, hole = end, end
                elif error.errno not in _NO_HOLES:
                    raise
        if data > start:
            yield start, data, False
        if hole > data:
            yield data, hole, True
        start = hole


def write_all(fd: int, data: memoryview, offset: int) -> None:
    """Write all of the data at a place of an open file. Raises OSError."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written


def rewound(directory: int) -> int:
    """Return an open directory, set to its beginning, to be listed as it is now.

    btrfs lists through one what was there when it was opened or rewound last, since Linux 6.5 (btrfs_opendir).
    """
    os.lseek(directory, 0, os.SEEK_SET)
    return directory


def missing_of(path: AnyStr) -> list[AnyStr]:
    """Return what does not exist of a path: itself, and then those of its parents that are missing, too."""
    missing = []
    while not os.path.lexists(path) and path != os.path.dirname(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def nearest_existing(path: AnyStr) -> AnyStr:
    """Return the path, or the nearest of its parents that exists."""
    missing = missing_of(path)
    return os.path.dirname(missing[-1]) if missing else path
