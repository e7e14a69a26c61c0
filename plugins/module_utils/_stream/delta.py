# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a large file need not travel, because the destination's old version has it at the same place.

Private to the collection. The destination hashes its version in aligned blocks; the source hashes the same blocks of
its own while it reads, and says "same" instead of sending them. So in-place changes and appends cost what changed.
Content that moved within the file is sent: finding it is rsync's strength.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from typing import Any, NamedTuple

from .._exchange.frames import FrameError

SUM_BYTES = 16
_SAMPLED = 64  # blocks of a file that are looked at, spread over it
_FEWEST = 16  # blocks of a file; with fewer there is nothing to gain
_MOVED = 1 / 8  # at most this part of the sampled blocks is in its place where content has moved
_SMALLEST, _LARGEST = 32 << 10, 8 << 20  # bytes of a block
_MOST = 1 << 18  # blocks of one file; what is behind them is sent


class Sums(NamedTuple):
    """The hashes of a file's whole blocks, one behind the other."""

    block: int  # bytes
    sums: bytes

    def at(self, offset: int) -> bytes:
        """Give the hash of the block that begins at ``offset``; empty where there is none."""
        if offset % self.block:
            return b""
        start = offset // self.block * SUM_BYTES
        return self.sums[start : start + SUM_BYTES]


def block_size(size: int) -> int:
    """Choose the block for a file of ``size`` bytes: the smallest power of two with which its hashes are few enough."""
    block = _SMALLEST
    while block < _LARGEST and size > block * _MOST:
        block *= 2
    return block


def hash_block(data: bytes | memoryview, key: str) -> bytes:
    """Hash one block; ``key`` is the transfer's id, so that nobody can prepare two blocks with one hash for all."""
    return hashlib.blake2b(data, digest_size=SUM_BYTES, key=key.encode()).digest()


def sums_of(fd: int, size: int, key: str) -> Sums:
    """Hash an open file of which ``size`` bytes are of interest. Raises OSError."""
    block = block_size(size)
    found = []
    for number in range(min(size // block, _MOST)):
        data = os.pread(fd, block, number * block)
        if len(data) < block:
            break
        found.append(hash_block(data, key))
    return Sums(block, b"".join(found))


def has_moved(fd: int, size: int, sums: Sums, key: str) -> bool:
    """Whether a file of a size like its old version's has hardly any block of it in the same place.

    Then its content was moved, or replaced altogether: some blocks are looked at, and it cannot tell. Raises OSError.
    """
    blocks, old = size // sums.block, len(sums.sums) // SUM_BYTES
    if min(blocks, old) < _FEWEST or not old / 2 <= blocks <= old * 2:
        return False
    looked_at = range(0, min(blocks, old), max(1, min(blocks, old) // _SAMPLED))
    equal = sum(
        hash_block(os.pread(fd, sums.block, number * sums.block), key) == sums.at(number * sums.block)
        for number in looked_at
    )
    return equal <= _MOVED * len(looked_at)


def pack(sums: Sums) -> dict[str, Any]:
    """Give plain data for a message."""
    return {"block": sums.block, "sums": base64.b64encode(sums.sums).decode()}


def parse(values: Any) -> Sums:
    """Read what ``pack`` made; raises FrameError."""
    try:
        block, sums = values["block"], base64.b64decode(values["sums"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise FrameError(f"the hashes of a file cannot be read: {error}") from error
    if not isinstance(block, int) or not _SMALLEST <= block <= _LARGEST or block & (block - 1):
        raise FrameError(f"the hashes of a file are of blocks of {block} bytes")
    if len(sums) % SUM_BYTES or len(sums) > _MOST * SUM_BYTES:
        raise FrameError("the hashes of a file are cut short, or too many")
    return Sums(block, sums)
