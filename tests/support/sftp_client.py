# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An SFTP client that says whatever it likes, packet by packet. It shares no code with the server."""

from __future__ import annotations

import os
import struct
from typing import Iterator, NamedTuple

INIT, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT = 1, 3, 4, 5, 6, 7, 8, 9, 10
OPENDIR, READDIR, REMOVE, MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK, SYMLINK = range(11, 21)
STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED, EXTENDED_REPLY = 101, 102, 103, 104, 105, 200, 201
FOR_READING, FOR_WRITING, APPENDING, CREATING, TRUNCATING, EXCLUSIVE = 1, 2, 4, 8, 16, 32
NO_ATTRIBUTES = bytes(4)
OK = 0

# None of these is a file of a transfer in which shard 3 has the files 0 to 2.
FOREIGN = (
    *(b"/etc/passwd", b"../secret", b"view-3/../secret", b"view-3/../../outside/secret", b"/view-3/..", b".."),
    *(b"view-3//0", b"view-03/0", b"view-3/00", b"view-3/0/x", b"view-3/0\0", b"view-3/0\n", b"view-3/+0"),
    *(
        b"view-3/-1",
        b"view-3/99",
        b"view-9/0",
        b"VIEW-3/0",
        b"view-3/link",
        b"~/.ssh/authorized_keys",
        b"0",
        b"view-/0",
    ),
    *(b".longhaul-0123456789abcdef/tmp", b"partial", b"view-3/" + b"9" * 400, "view-3/٣".encode(), b"\xff" * 3000),
)
FOLDERS = (b"", b".", b"/", b"view-3", b"/view-3/")
EXTENSIONS = (
    *(b"posix-rename@openssh.com", b"hardlink@openssh.com", b"lsetstat@openssh.com", b"copy-data"),
    *(b"fsync@openssh.com", b"statvfs@openssh.com", b"expand-path@openssh.com", b"home-directory", b""),
)


class Answer(NamedTuple):
    """What a server said; ``code`` is that of a STATUS."""

    kind: int
    number: int
    rest: bytes

    @property
    def code(self) -> int | None:
        return struct.unpack_from(">I", self.rest)[0] if self.kind == STATUS else None

    @property
    def is_refused(self) -> bool:
        return self.kind == STATUS and self.code != OK

    @property
    def text(self) -> bytes:
        """The first string in it."""
        at = 4 if self.kind in (STATUS, NAME) else 0
        (length,) = struct.unpack_from(">I", self.rest, at)
        return self.rest[at + 4 : at + 4 + length]


def string(text: bytes) -> bytes:
    """Return a string as a field."""
    return struct.pack(">I", len(text)) + text


def packet(kind: int, *fields: bytes) -> bytes:
    """Return a packet."""
    body = bytes([kind]) + b"".join(fields)
    return struct.pack(">I", len(body)) + body


def request(kind: int, number: int, *fields: bytes) -> bytes:
    """Return a request."""
    return packet(kind, struct.pack(">I", number), *fields)


def writing(handle: bytes, offset: int, data: bytes) -> bytes:
    """Return the fields of WRITE."""
    return string(handle) + struct.pack(">Q", offset) + string(data)


def opening(path: bytes, access: int) -> bytes:
    """Return the fields of OPEN."""
    return string(path) + struct.pack(">I", access) + NO_ATTRIBUTES


def evil(access: int, outside: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield requests, by kind and fields, that nobody may be granted; ``access`` is what the side lets do."""
    wrong = FOR_WRITING if access == FOR_READING else FOR_READING
    paths = (*FOREIGN, outside, os.path.dirname(outside), b"view-3/" + outside)
    for path in paths:
        for bits in (FOR_READING, FOR_WRITING | CREATING | TRUNCATING, FOR_WRITING | APPENDING | CREATING, 0xFFFFFFFF):
            yield OPEN, opening(path, bits)
        for kind in (OPENDIR, READLINK, RMDIR, REMOVE):
            yield kind, string(path)
        if path not in FOLDERS:
            yield STAT, string(path)
            yield LSTAT, string(path)
        for kind in (SETSTAT, MKDIR):
            yield kind, string(path) + struct.pack(">II", 4, 0o6777)
    for path in (*FOLDERS, b"view-3/0"):
        for kind in (REMOVE, RMDIR, READLINK):
            yield kind, string(path)
        yield MKDIR, string(path) + NO_ATTRIBUTES
        yield SETSTAT, string(path) + struct.pack(">IQ", 1, 0)
        yield OPEN, opening(path, wrong)
        yield OPEN, opening(path, FOR_READING | FOR_WRITING | CREATING)
        yield OPEN, opening(path, wrong | EXCLUSIVE | CREATING)
        for other in (outside, b"view-3/1", b"../x"):
            for one, two in ((path, other), (other, path)):
                yield RENAME, string(one) + string(two)
                yield SYMLINK, string(one) + string(two)
                for name in EXTENSIONS:
                    yield EXTENDED, string(name) + string(one) + string(two)


class Client:
    """A connection to a server: what is written to one descriptor it reads, and answers on the other."""

    def __init__(self, to_server: int, from_server: int) -> None:
        self._to, self._from = to_server, from_server
        self._number = 0

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        while data:
            data = data[os.write(self._to, data) :]

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = os.read(self._from, length - len(data))
            if not more:
                raise EOFError(data)
            data += more
        return data

    def answer(self) -> Answer:
        """Read the next answer; raise EOFError if the server ended."""
        (length,) = struct.unpack(">I", self._read(4))
        body = self._read(length)
        return Answer(body[0], struct.unpack_from(">I", body, 1)[0], body[5:])

    def begin(self) -> Answer:
        """Say hello."""
        self.send(packet(INIT, struct.pack(">I", 3)))
        return self.answer()

    def ask(self, kind: int, *fields: bytes) -> Answer:
        """Send a request, and return its answer."""
        self._number += 1
        self.send(request(kind, self._number, *fields))
        found = self.answer()
        assert found.number == self._number, found
        return found

    def open(self, path: bytes, access: int) -> bytes:
        """Open a file; raise PermissionError if that is refused."""
        found = self.ask(OPEN, opening(path, access))
        if found.kind != HANDLE:
            raise PermissionError(found)
        return found.text

    def write(self, handle: bytes, offset: int, data: bytes) -> Answer:
        """Write."""
        return self.ask(WRITE, writing(handle, offset, data))

    def read(self, handle: bytes, offset: int, length: int) -> Answer:
        """Read."""
        return self.ask(READ, string(handle) + struct.pack(">QI", offset, length))

    def close(self, handle: bytes) -> Answer:
        """Close a file."""
        return self.ask(CLOSE, string(handle))
