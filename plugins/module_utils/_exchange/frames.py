# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The frames of the conversation: bytes in, frames out, no I/O. Private to the collection.

A frame is ``type`` (1 byte), ``length`` (4 bytes, big endian), the payload and a check. A data frame is checked by
CRC-32: that finds corruption. Every other frame decides something; where the two ends share a key it carries a MAC
(BLAKE2b, 16 bytes) over a running number, so that it can be neither forged, repeated nor moved. Without a key (inside
ssh, which does all this itself) it is checked by CRC-32 too.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from typing import Iterator, NamedTuple

VERSION = 1
MAX_CONTROL = 64 << 20  # bytes of one control frame's payload
MAX_DATA = 1 << 20  # bytes of one data frame's payload

HELLO, SHARD, WANT, ACK, HASH, SUMS, READY, FETCHED, SENT, SCANNED, SUMMARY, FAILED, PING, BYE = range(1, 15)
GOT = 15
BEGIN, RAW, END = 20, 21, 22
DATA, DEFLATED = 30, 31

CONTROL_TYPES = frozenset(range(HELLO, GOT + 1)) | {BEGIN, RAW, END}
DATA_TYPES = frozenset({DATA, DEFLATED})

_HEADER = struct.Struct("!BI")
_NUMBER = struct.Struct("!Q")
_CRC = struct.Struct("!I")
_MAC_BYTES = 16


class FrameError(Exception):
    """What arrived is not what the other end of a conversation sends."""


class Frame(NamedTuple):
    """One message of the conversation."""

    type: int
    payload: bytes


class _Check:
    """Makes the checks of one direction; both ends count the control frames."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._number = 0

    def size(self, kind: int) -> int:
        return _MAC_BYTES if self._key is not None and kind in CONTROL_TYPES else _CRC.size

    def make(self, kind: int, header: bytes, payload: bytes) -> bytes:
        if self._key is None or kind in DATA_TYPES:
            return _CRC.pack(zlib.crc32(payload, zlib.crc32(header)))
        mac = hashlib.blake2b(_NUMBER.pack(self._number) + header, key=self._key, digest_size=_MAC_BYTES)
        mac.update(payload)
        self._number += 1
        return mac.digest()


class Encoder:
    """Turns messages into bytes, for one direction of one connection."""

    def __init__(self, key: bytes | None = None) -> None:
        self._check = _Check(key)

    def parts(self, kind: int, payload: bytes = b"") -> tuple[bytes, bytes, bytes]:
        """Give header, payload and check, so that a large payload need not be copied to be written."""
        limit = MAX_DATA if kind in DATA_TYPES else MAX_CONTROL
        if len(payload) > limit:
            raise FrameError(f"a frame of {len(payload)} bytes is longer than the {limit} that are allowed")
        header = _HEADER.pack(kind, len(payload))
        return header, payload, self._check.make(kind, header, payload)

    def encode(self, kind: int, payload: bytes = b"") -> bytes:
        """Give the whole frame."""
        return b"".join(self.parts(kind, payload))


class Decoder:
    """Turns bytes, in whatever pieces they arrive, into frames. Raises FrameError, and is of no use afterwards."""

    def __init__(self, key: bytes | None = None) -> None:
        self._check = _Check(key)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take what arrived, and yield the frames that are complete by now."""
        self._buffer += data
        buffer, start = self._buffer, 0
        try:
            while len(buffer) - start >= _HEADER.size:
                kind, length = _HEADER.unpack_from(buffer, start)
                self._refuse(kind, length)
                body = start + _HEADER.size
                end = body + length
                after = end + self._check.size(kind)
                if len(buffer) < after:
                    break
                with memoryview(buffer) as view:
                    payload = bytes(view[body:end])
                    expected = self._check.make(kind, bytes(view[start:body]), payload)
                    matches = hmac.compare_digest(expected, bytes(view[end:after]))
                if not matches:
                    raise FrameError(
                        f"a frame of type {kind} ({length} bytes) arrived damaged: its check does not match"
                    )
                start = after
                yield Frame(kind, payload)
        finally:
            del buffer[:start]

    @property
    def pending(self) -> bool:
        """Whether an incomplete frame waits for its rest: a stream that ends now was cut."""
        return bool(self._buffer)

    @staticmethod
    def _refuse(kind: int, length: int) -> None:
        if kind in DATA_TYPES:
            limit = MAX_DATA
        elif kind in CONTROL_TYPES:
            limit = MAX_CONTROL
        else:
            raise FrameError(f"a frame of the unknown type {kind} arrived: the other end speaks another language")
        if length > limit:
            raise FrameError(f"a frame that claims {length} bytes arrived; {limit} are allowed")
