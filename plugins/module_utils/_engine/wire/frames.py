# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The frames of the conversation: bytes in, frames out, no I/O.

A frame is ``type`` (1 byte), ``length`` (4 bytes, big endian), the payload and a check. A data frame is checked by
CRC-32: that finds corruption. Every other frame decides something; where the two ends share a key it carries a MAC
(BLAKE2b, 16 bytes) over a running number, so that it can be neither forged, repeated nor moved. Without a key (inside
ssh, which does all this itself) it is checked by CRC-32 too. Inside TLS frames need no check of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from enum import IntEnum
from typing import Iterator, NamedTuple, Union

VERSION = 1
MAX_MESSAGE = 1 << 20  # bytes of a control frame's payload, but for those that name files
MAX_DATA = 1 << 20  # bytes of one data frame's payload


class FrameKind(IntEnum):
    """The first byte of a frame; see docs/stream-protocol.md."""

    HELLO = 1
    SHARD = 2
    WANT = 3
    ACK = 4
    HASH = 5
    SUMS = 6
    READY = 7
    FETCHED = 8
    SENT = 9
    SCANNED = 10
    SUMMARY = 11
    FAILED = 12
    PING = 13
    BYE = 14
    GOT = 15
    FEWER = 16
    TOTAL = 17
    PACE = 18
    BLOCKS = 19
    BEGIN = 20
    RAW = 21
    END = 22
    DATA = 30
    DEFLATED = 31
    ZSTD = 32


_KINDS = {int(kind): kind for kind in FrameKind}
DATA_TYPES = frozenset({FrameKind.DATA, FrameKind.DEFLATED, FrameKind.ZSTD})
CONTROL_TYPES = frozenset(FrameKind) - DATA_TYPES
MAX_BYTES = {  # of a frame's payload, by its kind
    **dict.fromkeys(FrameKind, MAX_MESSAGE),
    **dict.fromkeys(DATA_TYPES, MAX_DATA),
    FrameKind.SHARD: 24 << 20,  # the largest record behind as many others as the source gathers
    FrameKind.WANT: 16 << 20,  # hashes of the blocks of large files, and ranges of them
    **dict.fromkeys((FrameKind.ACK, FrameKind.SENT), 8 << 20),  # a reason for each file
    FrameKind.SUMMARY: 32 << 20,  # the paths of what was changed
}

BUFFER_BYTES = 256 << 10
_DIRECT = 64 << 10  # bytes of a frame that is read to where it stays, if it is not there yet
_STEP = (1 << 20) + 64  # bytes of such a frame for which there is room at once: all of a data frame
_REUSED = MAX_DATA // 2  # bytes of a data frame whose memory is worth to be kept for another one

Payload = Union[bytes, bytearray, memoryview]

_HEADER = struct.Struct("!BI")
_NUMBER = struct.Struct("!Q")
_CRC = struct.Struct("!I")
_MAC_BYTES = 16


class FrameError(Exception):
    """What arrived is not what a peer sends."""


class DamagedFrame(FrameError):
    """What arrived is no frame: nothing more can be read of this connection."""


class Frame(NamedTuple):
    """One message of the conversation."""

    kind: FrameKind
    payload: Payload

    def dump(self) -> Payload:
        """Return the payload."""
        return self.payload


class _FrameCheck:
    """Makes the checks of one direction; both ends count the control frames."""

    def __init__(self, key: bytes | None, needed: bool) -> None:
        self._key, self._needed = key, needed
        self._number = 0

    def size(self, kind: FrameKind) -> int:
        if not self._needed:
            return 0
        return _MAC_BYTES if self._key is not None and kind in CONTROL_TYPES else _CRC.size

    def make(self, kind: FrameKind, header: bytes, payload: Payload) -> bytes:
        if not self._needed:
            return b""
        if self._key is None or kind in DATA_TYPES:
            return _CRC.pack(zlib.crc32(payload, zlib.crc32(header)))
        mac = hashlib.blake2b(_NUMBER.pack(self._number) + header, key=self._key, digest_size=_MAC_BYTES)
        mac.update(payload)
        self._number += 1
        return mac.digest()


class FrameEncoder:
    """Turns messages into bytes, for one direction of one connection. ``checks``: as both ends agreed."""

    def __init__(self, key: bytes | None = None, checks: bool = True) -> None:
        self._check = _FrameCheck(key, checks)

    def parts(self, kind: FrameKind, payload: Payload = b"") -> tuple[bytes, Payload, bytes]:
        """Return header, payload and check, so that a large payload need not be copied to be written."""
        limit = MAX_BYTES[kind]
        if len(payload) > limit:
            raise FrameError(f"a frame of {len(payload)} bytes is longer than the {limit} that are allowed")
        header = _HEADER.pack(kind, len(payload))
        return header, payload, self._check.make(kind, header, payload)

    def encode(self, kind: FrameKind, payload: bytes = b"") -> bytes:
        """Return the whole frame."""
        return b"".join(self.parts(kind, payload))


class FrameDecoder:
    """Turns bytes, in whatever pieces they arrive, into frames. Raises DamagedFrame, and is of no use afterwards.

    A caller reads from a connection into ``get_buffer()``, and says with ``buffer_updated`` how much that was: so the
    payload of a large frame is read to where it stays. Such a payload is a bytearray (of a data frame a memoryview of
    one), that of a small frame bytes. A caller that needs a data frame's payload no longer may hand it to ``reuse``:
    fresh memory, which must be cleared first, costs time.
    """

    def __init__(self, key: bytes | None = None, checks: bool = True) -> None:
        self._check = _FrameCheck(key, checks)
        self._buffer = bytearray(BUFFER_BYTES)  # frames that are small, and the beginnings of others
        self._view = memoryview(self._buffer)
        self._end = 0  # of what is in the buffer
        self._header = b""  # of the frame that is read by itself
        self._large = bytearray()  # its payload and check, as far as there is room for them already
        self._size, self._filled = 0, 0  # what they will have, and have
        self._spare: list[bytearray] = []  # memory for data frames; threads may take from it and add to it

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        if not self._header:
            return self._view[self._end :]
        if self._filled == len(self._large):  # not before so much arrived: a length is only a claim
            self._large += bytes(min(_STEP, self._size - self._filled))
        return memoryview(self._large)[self._filled : self._size]

    def buffer_updated(self, count: int) -> Iterator[Frame]:
        """So many bytes are in the room; yield the frames that are complete by now."""
        if not self._header:
            self._end += count
            yield from self._small_frames()
            return
        self._filled += count
        if self._filled == self._size:
            header, large = self._header, self._large
            number, length = _HEADER.unpack(header)
            kind = _KINDS[number]
            check = bytes(memoryview(large)[length : self._size])
            payload: Payload = large
            if kind in DATA_TYPES:
                payload = memoryview(large)[:length]
            else:
                del large[length:]
            self._compare(kind, header, payload, check)
            self._header, self._large = b"", bytearray()
            yield Frame(kind, payload)

    def reuse(self, payload: Payload) -> None:
        """Take back the payload of a frame, which nobody may look at any more."""
        memory = payload.obj if isinstance(payload, memoryview) else None
        if isinstance(memory, bytearray) and len(memory) == _STEP:
            self._spare.append(memory)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take what arrived elsewhere, and yield the frames that are complete by now."""
        left = memoryview(data)
        while left:
            room = self.get_buffer()
            count = min(len(room), len(left))
            room[:count] = left[:count]
            left = left[count:]
            room.release()  # or what it belongs to could not be cut
            yield from self.buffer_updated(count)

    def _small_frames(self) -> Iterator[Frame]:
        view, start = self._view, 0
        try:
            while self._end - start >= _HEADER.size:
                number, length = _HEADER.unpack_from(view, start)
                kind = self._kind(number, length)
                body = start + _HEADER.size
                behind = body + length
                after = behind + self._check.size(kind)
                if self._end < after:
                    if after - start > _DIRECT:
                        self._begin_large(start, after - body)
                        start = self._end
                    break
                payload = bytes(view[body:behind])
                self._compare(kind, bytes(view[start:body]), payload, bytes(view[behind:after]))
                start = after
                yield Frame(kind, payload)
        finally:
            left = self._end - start
            if start and left:
                view[:left] = bytes(view[start : self._end])
            self._end = left

    def _begin_large(self, start: int, size: int) -> None:
        body = start + _HEADER.size
        self._header = bytes(self._view[start:body])
        self._size, self._filled = size, self._end - body
        if self._header[0] in DATA_TYPES and size > _REUSED:
            self._large = self._spare.pop() if self._spare else bytearray(_STEP)
        else:
            self._large = bytearray(min(size, max(_STEP, self._filled)))
        self._large[: self._filled] = self._view[body : self._end]

    def _compare(self, kind: FrameKind, header: bytes, payload: Payload, check: bytes) -> None:
        if not hmac.compare_digest(self._check.make(kind, header, payload), check):
            raise DamagedFrame(f"a {kind.name} frame ({len(payload)} bytes) arrived damaged: its check does not match")

    @property
    def pending(self) -> bool:
        """Whether an incomplete frame waits for its rest: a stream that ends now was cut."""
        return bool(self._end or self._header)

    @staticmethod
    def _kind(number: int, length: int) -> FrameKind:
        kind = _KINDS.get(number)
        if kind is None:
            raise DamagedFrame(f"unknown frame type {number}: the peer runs an incompatible version")
        limit = MAX_BYTES[kind]
        if length > limit:
            raise DamagedFrame(f"a {kind.name} frame that claims {length} bytes arrived; {limit} are allowed")
        return kind
