# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of a data connection, as bytes: no I/O.

A record is a head of fixed length, a MAC over the head, and ``size`` bytes behind it. The head says which bytes of
which file these are. The MAC (BLAKE2b, 16 bytes, over a running number and the head) is there in plain mode, where a
key came out of the handshake; inside TLS it is left out. What is behind the head is sent as it is, so that the kernel
can move it: contents are protected by TLS, or not at all (see docs/stream-protocol.md).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from enum import IntEnum
from typing import NamedTuple

from .frames import FrameError


class RecordKind(IntEnum):
    """The first byte of a record."""

    RAW = 1
    ZLIB = 2
    ZSTD = 3
    ZERO = 4
    SAME = 5
    DONE = 6
    BYE = 7


_KINDS = {int(kind): kind for kind in RecordKind}

MAX_RECORD = 8 << 20  # bytes of contents that one record stands for
MAX_RANGE = 64 << 20  # bytes from the first to the last record of a range
MAX_OFFSET = (1 << 63) - 1
PROOF_BYTES = 16  # which SAME brings

_HEAD = struct.Struct("!BQIQII")
_NUMBER = struct.Struct("!Q")
_MAC_BYTES = 16


class Record(NamedTuple):
    """The head of a record.

    RAW, ZLIB, ZSTD: contents follow, as they are or packed. ZERO: there are no contents, only zeros. SAME:
    the old version of the file at the destination has them at the same place; a proof follows. DONE: the range
    of ``length`` bytes at ``offset`` has been sent. BYE: nothing more comes on this connection.
    """

    kind: RecordKind
    shard: int = 0
    index: int = 0  # type: ignore[assignment]  # the file's position in its shard; tuple's index is hidden
    offset: int = 0
    length: int = 0  # bytes of the file
    size: int = 0  # bytes that follow


class Heads:
    """Makes or reads the heads of one direction of one connection; both ends count them."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._number = 0
        self.size = _HEAD.size + (_MAC_BYTES if key is not None else 0)  # bytes of a head with its MAC

    def _mac(self, head: bytes) -> bytes:
        if self._key is None:
            return b""
        self._number += 1
        text = _NUMBER.pack(self._number) + head
        return hashlib.blake2b(text, key=self._key, digest_size=_MAC_BYTES, person=b"longhaul head").digest()

    def encode(self, record: Record) -> bytes:
        """Return the bytes of the next head; raises FrameError for one that ``decode`` would refuse."""
        _check(record)
        head = _HEAD.pack(*record)
        return head + self._mac(head)

    def decode(self, data: bytes) -> Record:
        """Read the next head (``size`` bytes); raises FrameError, and is of no use afterwards."""
        if len(data) != self.size:
            raise FrameError(f"a head of {len(data)} bytes arrived, {self.size} are due")
        head, mac = data[: _HEAD.size], data[_HEAD.size :]
        if not hmac.compare_digest(self._mac(head), mac):
            raise FrameError("a head arrived damaged: its check does not match")
        number, *rest = _HEAD.unpack(head)
        kind = _KINDS.get(number)
        if kind is None:
            raise FrameError(f"unknown record kind {number}: the peer runs an incompatible version")
        record = Record(kind, *rest)
        _check(record)
        return record


def _check(record: Record) -> None:
    kind = record.kind
    limit = MAX_RANGE if kind in (RecordKind.DONE, RecordKind.ZERO, RecordKind.SAME) else MAX_RECORD
    if record.length > limit or record.offset > MAX_OFFSET - record.length:
        raise FrameError(f"a {kind.name} record for {record.length} bytes at {record.offset} is more than is allowed")
    if kind == RecordKind.RAW:
        is_right = record.size == record.length
    elif kind in (RecordKind.ZLIB, RecordKind.ZSTD):
        is_right = record.size <= record.length
    elif kind == RecordKind.SAME:
        is_right = record.size == PROOF_BYTES
    else:
        is_right = not record.size
    if not is_right:
        raise FrameError(f"a {kind.name} record for {record.length} bytes that brings {record.size}")
