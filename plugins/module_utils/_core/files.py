# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several packages ask of files: the hash of one, and what exists of a path."""

from __future__ import annotations

import hashlib
import os
from typing import AnyStr

ALGORITHMS = ("blake2b", "sha256")  # 32 bytes each; which is faster depends on the processor
BUFFER = 1 << 20  # bytes that are read at once
_LEAST = 4096


def new_hash(algorithm: str) -> hashlib.blake2b | hashlib._Hash:
    """Return what hashes contents by an algorithm, to 32 bytes. Raises ValueError for one that is not known."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"the hash algorithm '{algorithm}' is not known here; known are {', '.join(ALGORITHMS)}")
    return hashlib.blake2b(digest_size=32) if algorithm == "blake2b" else hashlib.sha256()


def hash_and_close(fd: int, algorithm: str = "blake2b", buffer: bytearray | None = None) -> bytes:
    """Hash what a file that was just opened holds, 32 bytes, and close it. Raises OSError.

    ``buffer`` is room to read into, which the caller uses for one file after the other.
    """
    try:
        digest = new_hash(algorithm)
        if buffer is None:  # as large as a small file needs it: memory costs time
            buffer = bytearray(min(BUFFER, max(_LEAST, os.fstat(fd).st_size + 1)))
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        view = memoryview(buffer)
        while True:
            count = os.readv(fd, [view])
            if not count:
                return digest.digest()
            digest.update(view[:count])
    finally:
        os.close(fd)


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
