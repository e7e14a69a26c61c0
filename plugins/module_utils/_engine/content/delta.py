# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a large file need not be sent, because the destination's old version has it at the same place.

Private to the collection. The destination hashes its version in aligned blocks; the source hashes the same blocks of
its own while it reads, and says "same" instead of sending them. So in-place changes and appends cost what changed.
Content that moved within the file is sent: finding it is rsync's strength.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import os
import threading
import time
from typing import NamedTuple

from ..._core.files import ALGORITHMS
from ..._core.time_accounting import cores
from ..wire.frames import FrameError

SUM_BYTES = 16
_SAMPLED = 64  # blocks of a file that are looked at, spread over it
_FEWEST = 16  # blocks of a file; with fewer there is nothing to gain
_MOVED = 1 / 8  # at most this part of the sampled blocks is in its place where content has moved
_SMALLEST, _LARGEST = 32 << 10, 8 << 20  # bytes of a block
_MOST = 1 << 18  # blocks of one file; what is behind them is sent
_STRETCH = 4 << 20  # bytes that a thread hashes before it takes the next ones
_THREADS = 4  # at most, at one file


class Sums(NamedTuple):
    """The hashes of a file's whole blocks, one behind the other."""

    block: int  # bytes
    sums: bytes
    algorithm: str

    def at(self, offset: int) -> bytes:
        """Return the hash of the block that begins at ``offset``; empty if there is none."""
        if offset % self.block:
            return b""
        start = offset // self.block * SUM_BYTES
        return self.sums[start : start + SUM_BYTES]

    def match(self, fd: int, offset: int, key: str) -> bool:
        """Whether an open file has the block that begins at ``offset``, too. Raises OSError."""
        known = self.at(offset)
        return bool(known) and hash_block(os.pread(fd, self.block, offset), key, self.algorithm) == known


def block_size(size: int) -> int:
    """Choose the block for a file of ``size`` bytes: the smallest power of two with which its hashes are few enough."""
    block = _SMALLEST
    while block < _LARGEST and size > block * _MOST:
        block *= 2
    return block


def hash_block(data: bytes | memoryview, key: str, algorithm: str) -> bytes:
    """Hash one block; ``key`` is the transfer's id, so that nobody can prepare two blocks with one hash for all."""
    if algorithm == "sha256":
        digest = hashlib.sha256(key.encode())
        digest.update(data)
        return digest.digest()[:SUM_BYTES]
    return hashlib.blake2b(data, digest_size=SUM_BYTES, key=key.encode()).digest()


@functools.lru_cache(maxsize=1)
def quickest() -> str:
    """Return how this machine hashes quickest.

    SHA-256 is twice as fast as BLAKE2b where the processor has instructions for it, and half as fast where it has none.
    """
    data = bytes(128 << 10)

    def seconds(algorithm: str) -> float:
        begun = time.thread_time()
        hash_block(data, "", algorithm)
        return time.thread_time() - begun

    return min(ALGORITHMS, key=lambda algorithm: min(seconds(algorithm) for _time in range(3)))


def sums_of(fd: int, size: int, key: str) -> Sums:
    """Hash an open file of which ``size`` bytes are of interest, with all processors. Raises OSError."""
    block, algorithm = block_size(size), quickest()
    count, at_once = min(size // block, _MOST), _STRETCH // block or 1
    found: dict[int, bytes] = {}
    failed: list[OSError] = []
    firsts = iter(range(0, count, at_once))

    def work() -> None:
        try:
            for first in firsts:
                data = memoryview(os.pread(fd, min(at_once, count - first) * block, first * block))
                whole = range(0, len(data) - block + 1, block)
                found[first] = b"".join(hash_block(data[at : at + block], key, algorithm) for at in whole)
        except OSError as error:
            failed.append(error)

    others = min(_THREADS, cores(), count // at_once) - 1
    threads = [threading.Thread(target=work, daemon=True) for _other in range(others)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    sums = []
    for first in range(0, count, at_once):
        sums.append(found[first])
        if len(found[first]) < min(at_once, count - first) * SUM_BYTES:
            break  # it became shorter meanwhile
    return Sums(block, b"".join(sums), algorithm)


def has_moved(fd: int, size: int, sums: Sums, key: str) -> bool:
    """Whether a file of a size like its old version's has hardly any block of it in the same place.

    Then its content was moved, or replaced altogether: some blocks are looked at, and it cannot tell. Raises OSError.
    """
    blocks, old = size // sums.block, len(sums.sums) // SUM_BYTES
    if min(blocks, old) < _FEWEST or not old / 2 <= blocks <= old * 2:
        return False
    looked_at = range(0, min(blocks, old), max(1, min(blocks, old) // _SAMPLED))
    equal = sum(sums.match(fd, number * sums.block, key) for number in looked_at)
    return equal <= _MOVED * len(looked_at)


def pack(sums: Sums) -> dict[str, object]:
    """Return plain data for a message."""
    return {"block": sums.block, "sums": base64.b64encode(sums.sums).decode(), "algorithm": sums.algorithm}


def parse(values: object) -> Sums:
    """Read what ``pack`` made; raises FrameError."""
    if not isinstance(values, dict):
        raise FrameError("the hashes of a file cannot be read")
    try:
        block, algorithm = values["block"], values["algorithm"]
        sums = base64.b64decode(values["sums"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise FrameError(f"the hashes of a file cannot be read: {error}") from error
    if not isinstance(block, int) or not _SMALLEST <= block <= _LARGEST or block & (block - 1):
        raise FrameError(f"the hashes of a file are of blocks of {block} bytes")
    if len(sums) % SUM_BYTES or len(sums) > _MOST * SUM_BYTES:
        raise FrameError("the hashes of a file are cut short, or too many")
    if algorithm not in ALGORITHMS:
        raise FrameError("the hashes of a file are of a kind that is not known here")
    return Sums(block, sums, algorithm)
