# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SFTP as bytes, version 3, as a server sees it: requests in, answers out, no I/O.

Version 3 is what OpenSSH speaks (draft-ietf-secsh-filexfer-02, and OpenSSH's PROTOCOL for its extensions). A packet is
its length, its kind, and what belongs to that kind; all but the first have a number that the answer repeats.
"""

from __future__ import annotations

import enum
import struct
from typing import Iterable, Iterator, NamedTuple, Union

from ..._core.errors import ProtocolError

VERSION = 3
MAX_PACKET = 256 << 10  # bytes behind the length; OpenSSH's own limit
MAX_DATA = MAX_PACKET - 1024  # bytes of contents in one packet
MAX_HANDLE = 256  # bytes, as the protocol has it
MAX_OFFSET = (1 << 63) - 1
LIMITS = b"limits@openssh.com"
_BUFFER = 4 * MAX_PACKET

Bytes = Union[bytes, bytearray, memoryview]


class Kind(enum.IntEnum):
    """What a packet is."""

    INIT = 1
    VERSION = 2
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    LSTAT = 7
    FSTAT = 8
    SETSTAT = 9
    FSETSTAT = 10
    OPENDIR = 11
    READDIR = 12
    REMOVE = 13
    MKDIR = 14
    RMDIR = 15
    REALPATH = 16
    STAT = 17
    RENAME = 18
    READLINK = 19
    SYMLINK = 20
    STATUS = 101
    HANDLE = 102
    DATA = 103
    NAME = 104
    ATTRS = 105
    EXTENDED = 200
    EXTENDED_REPLY = 201


class Code(enum.IntEnum):
    """How a request ended."""

    OK = 0
    EOF = 1
    NO_SUCH_FILE = 2
    PERMISSION_DENIED = 3
    FAILURE = 4
    OP_UNSUPPORTED = 8


class Access:
    """What a file is opened for: bits. They are plain numbers, as these below, since each file is asked for them."""

    READ = 0x01
    WRITE = 0x02
    APPEND = 0x04
    CREATE = 0x08
    TRUNCATE = 0x10
    EXCLUSIVE = 0x20


class _Has:
    SIZE = 0x01
    OWNER = 0x02
    PERMISSIONS = 0x04
    TIMES = 0x08
    EXTENDED = 0x80000000


class Attributes(NamedTuple):
    """What is told of a file; no client needs more."""

    mode: int  # type and permissions
    size: int


class Init(NamedTuple):
    """The client's first packet."""

    version: int


class Open(NamedTuple):
    """Open a file."""

    id: int
    path: bytes
    access: int


class Close(NamedTuple):
    """Close what a handle stands for."""

    id: int
    handle: bytes


class Read(NamedTuple):
    """Read from a file."""

    id: int
    handle: bytes
    offset: int
    length: int


class Write(NamedTuple):
    """Write to a file. ``data`` is a part of the packet, and as short-lived."""

    id: int
    handle: bytes
    offset: int
    data: memoryview


class Stat(NamedTuple):
    """Ask for the attributes of a path (STAT and LSTAT)."""

    id: int
    path: bytes


class FileStat(NamedTuple):
    """Ask for the attributes of an open file."""

    id: int
    handle: bytes


class SetStat(NamedTuple):
    """Set attributes of a path; ``size`` is None if that is not among them."""

    id: int
    path: bytes
    size: int | None


class SetFileStat(NamedTuple):
    """Set attributes of an open file."""

    id: int
    handle: bytes
    size: int | None


class OpenFolder(NamedTuple):
    """Begin to list a folder."""

    id: int
    path: bytes


class ReadFolder(NamedTuple):
    """Ask for the next names of a folder."""

    id: int
    handle: bytes


class RealPath(NamedTuple):
    """Ask for the absolute form of a path."""

    id: int
    path: bytes


class ExtendedRequest(NamedTuple):
    """Ask for something by its name."""

    id: int
    name: bytes


class Other(NamedTuple):
    """Ask for something that this server has no part in."""

    id: int
    kind: int


Request = Union[
    Init,
    Open,
    Close,
    Read,
    Write,
    Stat,
    FileStat,
    SetStat,
    SetFileStat,
    OpenFolder,
    ReadFolder,
    RealPath,
    ExtendedRequest,
    Other,
]

_HEAD = struct.Struct(">BI")  # kind and number
_INT = struct.Struct(">I")
_LONG = struct.Struct(">Q")
_FOUR_HANDLE = struct.Struct(">BII4sQI")  # of READ and WRITE with a handle of four bytes, as this server makes them
_DONE = struct.Struct(">IBIII2sI")
_ANSWERS = frozenset((Kind.VERSION, Kind.STATUS, Kind.HANDLE, Kind.DATA, Kind.NAME, Kind.ATTRS, Kind.EXTENDED_REPLY))


class PacketBuffer:
    """Cuts a stream of bytes into packets. Read into ``get_buffer()``, and say with ``buffer_updated`` how much.

    It holds one packet of the largest size and what came with it, whatever the client says of lengths.
    """

    def __init__(self) -> None:
        self._view = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0

    def get_buffer(self) -> memoryview:
        """Return where the next bytes belong; it is never empty."""
        return self._view[self._end :]

    def buffer_updated(self, count: int) -> None:
        """So many bytes have been put there."""
        self._end += count

    @property
    def is_empty(self) -> bool:
        """Whether no part of a packet waits for its rest."""
        return self._start == self._end

    def packets(self) -> Iterator[memoryview]:
        """Yield the packets that are complete, without their lengths. Each is good until the next call of a method.

        Raises ProtocolError for a length that no packet has.
        """
        view = self._view
        while self._end - self._start >= 4:
            (length,) = _INT.unpack_from(view, self._start)
            if not 5 <= length <= MAX_PACKET:
                raise ProtocolError(f"a packet of {length} bytes: it must have 5 to {MAX_PACKET}")
            after = self._start + 4 + length
            if after > self._end:
                break
            packet = view[self._start + 4 : after]
            self._start = after
            yield packet
        self._make_room()

    def _make_room(self) -> None:
        """Move an unfinished packet to the beginning where its rest might not fit behind it."""
        if self._start == self._end:
            self._start = self._end = 0
        elif _BUFFER - self._start < 4 + MAX_PACKET:
            rest = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, len(rest)
            self._view[: self._end] = rest


class _Fields:
    """Takes the fields of a packet one after the other; raises ProtocolError if it is too short."""

    def __init__(self, packet: memoryview, kind: int) -> None:
        self._packet, self._kind, self._at = packet, kind, _HEAD.size

    def _unpack(self, layout: struct.Struct) -> int:
        try:
            (value,) = layout.unpack_from(self._packet, self._at)
        except struct.error:
            raise self._too_short() from None
        self._at += layout.size
        return int(value)

    def _too_short(self) -> ProtocolError:
        return ProtocolError(f"a packet of kind {self._kind} that ends too early")

    def uint32(self) -> int:
        """Return the next 32-bit number."""
        return self._unpack(_INT)

    def uint64(self) -> int:
        """Return the next 64-bit number."""
        return self._unpack(_LONG)

    def view(self) -> memoryview:
        """Return the next string as a part of the packet."""
        length = self.uint32()
        text = self._packet[self._at : self._at + length]
        if len(text) != length:
            raise self._too_short()
        self._at += length
        return text

    def text(self) -> bytes:
        """Return the next string."""
        return bytes(self.view())

    def handle(self) -> bytes:
        """Return the next string, which is a handle."""
        handle = self.text()
        if len(handle) > MAX_HANDLE:
            raise ProtocolError(f"a handle of {len(handle)} bytes: it must have no more than {MAX_HANDLE}")
        return handle

    def size_among_attributes(self) -> int | None:
        """Read attributes; of these only the size matters, if it is among them."""
        has = self.uint32()
        size = self.uint64() if has & _Has.SIZE else None
        for bit, numbers in ((_Has.OWNER, 2), (_Has.PERMISSIONS, 1), (_Has.TIMES, 2)):
            for _number in range(numbers if has & bit else 0):
                self.uint32()
        for _pair in range(self.uint32() if has & _Has.EXTENDED else 0):
            self.view()
            self.view()
        return size

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._packet):
            raise ProtocolError(f"a packet of kind {self._kind} with {len(self._packet) - self._at} bytes too many")


def parse_request(packet: memoryview) -> Request:
    """Return what a client asks for. Raises ProtocolError for what is no request, or not whole."""
    kind, number = _HEAD.unpack_from(packet)
    if kind == Kind.WRITE or kind == Kind.READ:  # nearly all of them
        return _parse_contents(packet, kind, number)
    if kind in _ANSWERS:
        raise ProtocolError(f"a packet of kind {kind}, which is an answer")
    fields = _Fields(packet, kind)
    request: Request
    if kind == Kind.INIT:  # its number is the version; what follows are extensions
        return Init(number)
    if kind == Kind.OPEN:
        request = Open(number, fields.text(), fields.uint32())
        fields.size_among_attributes()
    elif kind == Kind.CLOSE:
        request = Close(number, fields.handle())
    elif kind in (Kind.STAT, Kind.LSTAT):
        request = Stat(number, fields.text())
    elif kind == Kind.FSTAT:
        request = FileStat(number, fields.handle())
    elif kind == Kind.SETSTAT:
        request = SetStat(number, fields.text(), fields.size_among_attributes())
    elif kind == Kind.FSETSTAT:
        request = SetFileStat(number, fields.handle(), fields.size_among_attributes())
    elif kind == Kind.OPENDIR:
        request = OpenFolder(number, fields.text())
    elif kind == Kind.READDIR:
        request = ReadFolder(number, fields.handle())
    elif kind == Kind.REALPATH:
        request = RealPath(number, fields.text())
    elif kind == Kind.EXTENDED:
        return ExtendedRequest(number, fields.text())
    else:
        return Other(number, kind)
    fields.end()
    return request


def _parse_contents(packet: memoryview, kind: int, number: int) -> Read | Write:
    try:
        _kind, _number, size, handle, offset, length = _FOUR_HANDLE.unpack_from(packet)
    except struct.error:
        size = 0
    if size == 4:
        if kind == Kind.READ and len(packet) == _FOUR_HANDLE.size:
            return Read(number, handle, offset, length)
        if kind == Kind.WRITE and len(packet) == _FOUR_HANDLE.size + length:
            return Write(number, handle, offset, packet[_FOUR_HANDLE.size :])
    fields = _Fields(packet, kind)
    handle, offset = fields.handle(), fields.uint64()
    request = (
        Read(number, handle, offset, fields.uint32())
        if kind == Kind.READ
        else Write(number, handle, offset, fields.view())
    )
    fields.end()
    return request


def _packet(kind: Kind, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return _INT.pack(1 + len(body)) + bytes((kind,)) + body


def _string(text: bytes) -> bytes:
    return _INT.pack(len(text)) + text


def version() -> bytes:
    """Return the answer to INIT, with the one extension that clients gain from."""
    return _packet(Kind.VERSION, _INT.pack(VERSION), _string(LIMITS), _string(b"1"))


def done(number: int) -> bytes:
    """Return that a request was fulfilled: most answers are this one."""
    return _DONE.pack(_DONE.size - _INT.size, Kind.STATUS, number, Code.OK, 2, b"OK", 0)


def status(number: int, code: Code, message: str = "") -> bytes:
    """Return how a request ended."""
    text = (message or code.name).encode("utf-8", "replace")
    return _packet(Kind.STATUS, _INT.pack(number), _INT.pack(code), _string(text), _string(b""))


def handle_answer(number: int, handle: bytes) -> bytes:
    """Return what stands for an open file or folder."""
    return _packet(Kind.HANDLE, _INT.pack(number), _string(handle))


def data_head(number: int, length: int) -> bytes:
    """Return what comes before so many bytes of a file."""
    return _INT.pack(9 + length) + _HEAD.pack(Kind.DATA, number) + _INT.pack(length)


def _attributes(attributes: Attributes | None) -> bytes:
    if attributes is None:
        return _INT.pack(0)
    head = _INT.pack(_Has.SIZE | _Has.PERMISSIONS)
    return head + _LONG.pack(attributes.size) + _INT.pack(attributes.mode)


def attributes_answer(number: int, attributes: Attributes) -> bytes:
    """Return the attributes that were asked for."""
    return _packet(Kind.ATTRS, _INT.pack(number), _attributes(attributes))


def names_answer(number: int, names: Iterable[tuple[bytes, Attributes | None]]) -> bytes:
    """Return names with what is known of each. A long form, as ``ls -l`` prints it, is due: the name stands for it."""
    entries = [_string(name) + _string(name) + _attributes(attributes) for name, attributes in names]
    return _packet(Kind.NAME, _INT.pack(number), _INT.pack(len(entries)), *entries)


def limits_answer(number: int, handles: int) -> bytes:
    """Return the largest packet, read and write that the server takes, and how many handles it gives at a time."""
    limits = (MAX_PACKET, MAX_DATA, MAX_DATA, handles)
    return _packet(Kind.EXTENDED_REPLY, _INT.pack(number), *(_LONG.pack(limit) for limit in limits))
