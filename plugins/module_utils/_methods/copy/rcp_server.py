# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scp of the serving end: it knows the files of one shard of this transfer, and no others.

The driving end's scp sees a folder ``view-SHARD`` with the shard's files by their numbers (see ``shard_list``), which a
source sends and a destination takes, each up to the size that was planned. It speaks the protocol of rcp,
which every scp speaks, and which has no other requests: no name to make, rename, link or remove.

The sender says a line for each folder (``D0755 0 NAME``) and file (``C0644 SIZE NAME``), and ``E`` at the end of a
folder. After a file's line come its bytes and a zero. The receiver acknowledges the beginning, each line and each file
by a zero. Either says instead of a zero what went wrong: a byte 1, or 2 where it gives up, and a line.

Each acknowledgement costs a round trip if one waits for it. So a destination gives those for all files at once: then it
must take what comes, and what went wrong it says at the end. A source waits once for each file, since a client that
cannot open a file takes what follows for the next line.
"""

from __future__ import annotations

import os
import re
from typing import Callable, NamedTuple, Union

from ..._core.errors import ProtocolError
from .fd_symlinks import shard_of, view_name
from .file_server import PeerPipe
from .sftp_protocol import Access
from .shard_files import Files, OpenFile, RequestRefusal, ServedPath, parse_path

OK = b"\0"
END = b"E\n"
MAX_LINE = 2048  # bytes; OpenSSH's own limit
MAX_SIZE = (1 << 63) - 1
_RECORD = re.compile(rb"([CD])[0-7]{4} (0|[1-9][0-9]{0,18}) ([^/]+)")
_BUFFER = 256 << 10
_AHEAD = 16 << 10  # acknowledgements at once, at most: a pipe holds them all
_SKIPPED = 64 << 20  # bytes of one file that are sent or read only to be thrown away


class RcpFolder(NamedTuple):
    """``D`` message: what follows is in this folder."""

    name: bytes


class RcpFile(NamedTuple):
    """``C`` message: a file of this size follows; the peer must acknowledge it."""

    size: int
    name: bytes


class RcpEnd(NamedTuple):
    """``E`` message: the folder is complete."""


class Complaint(NamedTuple):
    """Something went wrong at the peer."""

    text: bytes


RcpMessage = Union[RcpFolder, RcpFile, RcpEnd, Complaint]


def parse_record(line: bytes) -> RcpMessage:
    """Return what a line says, which comes without its line feed. Raises ProtocolError."""
    if line == END[:-1]:
        return RcpEnd()
    if line[:1] in (b"\1", b"\2"):
        return Complaint(line[1:])
    found = _RECORD.fullmatch(line)
    if found is None:
        raise ProtocolError(f"a line that is none of scp's: {line[:100]!r}")
    kind, size, name = found.groups()
    if int(size) > MAX_SIZE:
        raise ProtocolError(f"a file of {size.decode()} bytes")
    return RcpFolder(name) if kind == b"D" else RcpFile(int(size), name)


def folder_line(name: bytes) -> bytes:
    """Return what begins a folder, which only its owner may enter."""
    return b"D0700 0 %s\n" % name


def file_line(size: int, name: bytes) -> bytes:
    """Return what comes before a file's bytes."""
    return b"C0600 %d %s\n" % (size, name)


def complaint(text: str) -> bytes:
    """Return what takes the place of a zero if something went wrong."""
    return b"\1longhaul: %s\n" % text.replace("\n", " ").encode("utf-8", "replace")[: MAX_LINE // 2]


class Stream:
    """What the peer sends, as lines and as contents. ``fill`` reads into a buffer, and returns 0 at the end."""

    def __init__(self, fill: Callable[[memoryview], int]) -> None:
        self._fill = fill
        self._bytes = bytearray(_BUFFER)
        self._view = memoryview(self._bytes)
        self._start = self._end = 0

    def line(self) -> bytes | None:
        """Return the next line without its line feed; None at the end. Raises ProtocolError."""
        while True:
            after = self._bytes.find(b"\n", self._start, min(self._end, self._start + MAX_LINE))
            if after >= 0:
                line = bytes(self._view[self._start : after])
                self._start = after + 1
                return line
            if self._end - self._start >= MAX_LINE:
                raise ProtocolError(f"a line of more than {MAX_LINE} bytes")
            if not self._more():
                if self._start < self._end:
                    raise ProtocolError("a line without an end")
                return None

    def some(self, most: int) -> memoryview:
        """Return the next bytes, at least one and no more than ``most``; good until the next call of a method."""
        if self._start == self._end and not self._more():
            raise ProtocolError("the end of the connection in the midst of a file")
        after = min(self._end, self._start + most)
        found = self._view[self._start : after]
        self._start = after
        return found

    def answer(self) -> Complaint | None:
        """Take an acknowledgement; return what the peer complains of instead. Raises ProtocolError."""
        kind = bytes(self.some(1))
        if kind == OK:
            return None
        if kind not in (b"\1", b"\2"):
            raise ProtocolError(f"an answer that begins with {kind!r}")
        return Complaint(self.line() or b"")

    def _more(self) -> int:
        if self._start == self._end:
            self._start = self._end = 0
        elif _BUFFER - self._start < MAX_LINE:
            rest = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, len(rest)
            self._view[: self._end] = rest
        count = self._fill(self._view[self._end :])
        self._end += count
        return count


class Sink:
    """A destination: takes the files of one shard."""

    def __init__(self, files: Files, pipe: PeerPipe) -> None:
        self._files, self._pipe, self._stream = files, pipe, Stream(pipe.read_into)
        self._view = b""
        self._left = 0  # files that may come yet
        self._ahead = 0  # acknowledgements that were sent before what they are for
        self._wrong = ""  # what went wrong first

    def run(self) -> bool:
        """Take what comes, to the end; return whether all of it was taken. Raises ProtocolError, OSError."""
        self._pipe.send([OK])
        has_begun = has_ended = False
        while True:
            line = self._stream.line()
            if line is None:
                return has_ended and not self._wrong
            record = parse_record(line)
            if isinstance(record, Complaint):
                self._say(f"the client: {record.text.decode(errors='replace')}")
            elif has_ended or isinstance(record, RcpFolder) == has_begun:
                raise ProtocolError(f"a {type(record).__name__.lower()} where none is due")
            elif isinstance(record, RcpFolder):
                has_begun = True
                self._begin(record)
            elif isinstance(record, RcpFile):
                self._take(record)
            else:
                has_ended = True
                self._pipe.send([complaint(self._wrong) if self._wrong else OK])

    def _begin(self, folder: RcpFolder) -> None:
        shard = shard_of(folder.name.decode("ascii", "replace"))
        if shard is None:
            raise ProtocolError(f"a folder {folder.name[:100]!r}, which is no part of this transfer")
        self._view = folder.name
        self._left = len(self._files.sizes(shard))
        self._pipe.send([OK])
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Send the acknowledgements for the files that are due, each for its line and its contents."""
        count = min(2 * self._left, _AHEAD) - self._ahead
        if count > 0 and self._ahead < _AHEAD // 2:
            self._pipe.send([OK * count])
            self._ahead += count

    def _take(self, file: RcpFile) -> None:
        if not self._left:
            raise ProtocolError("more files than were planned")
        self._left -= 1
        opened, limit = self._open(file)
        try:
            written = self._write(opened, file, limit)
            answer = self._stream.answer()
            if answer is not None:
                self._say(f"the client: {answer.text.decode(errors='replace')}")
                if opened is not None and written:
                    os.ftruncate(opened.fd, 0)  # what could not be read came as zeros
        finally:
            if opened is not None:
                opened.close()
        self._ahead -= 2
        self._acknowledge()

    def _open(self, file: RcpFile) -> tuple[OpenFile | None, int]:
        """Open a file; return it, and how much of it may come. It is None if nothing is wanted of it."""
        try:
            opened = self._files.open(parse_path(self._view + b"/" + file.name), Access.WRITE | Access.TRUNCATE)
        except RequestRefusal as refused:
            self._say(f"{file.name[:100]!r}: {refused}")
        except OSError as error:
            self._say(f"{file.name[:100]!r}: {error.strerror}")
        else:
            limit = opened.limit or 0
            if file.size > limit:
                self._say(f"{file.name[:100]!r}: it is planned with {limit} bytes, and has {file.size} now")
            return opened, limit
        return None, 0

    def _write(self, opened: OpenFile | None, file: RcpFile, limit: int) -> int:
        """Write what comes of a file; return how much was written."""
        offset, wanted = 0, min(file.size, limit)
        while offset < file.size:
            if opened is None or offset >= wanted:
                self._skip(file.size - offset)
                break
            data = self._stream.some(wanted - offset)
            try:
                while data:
                    count = os.write(opened.fd, data)
                    data, offset = data[count:], offset + count
            except OSError as error:
                self._say(f"{file.name[:100]!r}: {error.strerror}")
                self._skip(file.size - offset - len(data))
                break
        return min(offset, wanted)

    def _skip(self, count: int) -> None:
        if count > _SKIPPED:
            raise ProtocolError(f"{count} bytes come of which nothing is wanted")
        while count:
            count -= len(self._stream.some(count))

    def _say(self, text: str) -> None:
        self._wrong = self._wrong or text
        self._pipe.complain(text)


class ClientComplaint(Exception):
    """The client could not take something. It does not say whether a line or the contents before it."""


class RcpSource:
    """A source: sends the files of one shard."""

    def __init__(self, files: Files, pipe: PeerPipe) -> None:
        self._files, self._pipe, self._stream = files, pipe, Stream(pipe.read_into)
        self._is_whole = True
        self._unsent: list[bytes] = []  # what goes out with the next line
        self._due = 1  # acknowledgements that were not waited for: at first for the beginning

    def run(self, shard: int) -> bool:
        """Send all files; return whether all was sent and taken. Raises ProtocolError, OSError."""
        sizes = self._files.sizes(shard)
        try:
            self._say(folder_line(view_name(shard).encode()))
            for number, size in sizes.items():
                self._send(ServedPath(shard, number), size)
            self._say(END)
        except ClientComplaint:
            return False
        return self._is_whole

    def _say(self, line: bytes) -> None:
        """Send a line, and wait for its acknowledgement. Raises Complained."""
        self._pipe.send([*self._unsent, line])
        for _acknowledgement in range(self._due + 1):
            if self._stream.answer() is not None:
                raise ClientComplaint
        self._unsent, self._due = [], 0

    def _send(self, place: ServedPath, size: int) -> None:
        name = b"%d" % (place.number or 0)
        try:
            file = self._files.open(place, Access.READ)
        except RequestRefusal as refused:
            self._complain(place, str(refused))
            return
        except OSError as error:
            self._complain(place, error.strerror or str(error))
            return
        try:
            self._say(file_line(size, name))
            problem = self._send_contents(file, size)
        finally:
            file.close()
        if problem:
            self._complain(place, problem)
            self._due = 1
            self._say(file_line(0, name))  # the client truncates what it took for the file
        self._unsent.append(OK)
        self._due = 1

    def _send_contents(self, file: OpenFile, size: int) -> str:
        """Send so many bytes, the last of them with the next line; return why some are not the file's, or nothing."""
        offset = 0
        while offset < size:
            try:
                data = os.pread(file.fd, min(_BUFFER, size - offset), offset)
            except OSError as error:
                return self._fill(size - offset, error.strerror or str(error))
            if not data:
                return self._fill(size - offset, "it has become shorter")
            offset += len(data)
            if offset < size:
                self._pipe.send([data])
            else:
                self._unsent = [data]
        return ""

    def _fill(self, count: int, problem: str) -> str:
        """Send zeros for what cannot be read; return the problem. Raises Complained if there are too many."""
        if count > _SKIPPED:
            self._pipe.complain(problem)
            raise ClientComplaint
        while count:
            piece = min(count, _BUFFER)
            self._pipe.send([bytes(piece)])
            count -= piece
        return problem

    def _complain(self, place: ServedPath, problem: str) -> None:
        self._is_whole = False
        self._unsent.append(complaint(f"{place.number}: {problem}"))


def take_files(files: Files, pipe: PeerPipe) -> bool:
    """Take a shard's files from a client that sends them."""
    return Sink(files, pipe).run()


def send_files(shard: int, files: Files, pipe: PeerPipe) -> bool:
    """Send a shard's files to a client that asks for them."""
    return RcpSource(files, pipe).run(shard)
