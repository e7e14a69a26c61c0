# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SFTP server of the method sftp: it knows the files of this transfer (``shard_files``), and no others.

There is no other name, no way to make, rename, link or remove one, and no attribute but the size to set.
"""

from __future__ import annotations

import errno
import itertools
import os
from typing import Callable, Iterator, Mapping

from ..._core.errors import ProtocolError
from ..._core.files import write_all
from .file_server import PeerPipe
from .sftp_protocol import (
    LIMITS,
    MAX_DATA,
    MAX_OFFSET,
    VERSION,
    Attributes,
    Close,
    Code,
    ExtendedRequest,
    FileStat,
    Init,
    Open,
    OpenFolder,
    Other,
    PacketBuffer,
    Read,
    ReadFolder,
    RealPath,
    Request,
    SetFileStat,
    SetStat,
    Stat,
    Write,
    attributes_answer,
    data_head,
    done,
    handle_answer,
    limits_answer,
    names_answer,
    parse_request,
    status,
    version,
)
from .shard_files import FILE_MODE, Files, OpenFile, OpenListing, RequestRefusal, parse_path

MAX_HANDLES = 16  # open at a time; OpenSSH's clients have two
_NAMES = 1000  # in one answer
_WAITING = 64 << 10  # bytes of answers that are sent together
_PARTS = 256  # of them
_CODES = {errno.ENOENT: Code.NO_SUCH_FILE, errno.EACCES: Code.PERMISSION_DENIED, errno.EPERM: Code.PERMISSION_DENIED}


class SftpSession:
    """One client: answers what it asks for. ``send`` takes the answers, several at once."""

    def __init__(self, files: Files, send: Callable[[list[bytes]], None], complain: Callable[[str], None]) -> None:
        self._files, self._send, self._complain = files, send, complain
        self._open: dict[bytes, OpenFile | OpenListing] = {}
        self._numbers = itertools.count(1)
        self._has_begun = False
        self._answers: list[bytes] = []
        self._waiting = 0
        self._handlers: Mapping[type, Callable[..., None]] = {
            Open: self._open_file,
            Close: self._close,
            Read: self._read,
            Write: self._write,
            Stat: self._stat,
            FileStat: self._file_stat,
            SetStat: self._set_stat,
            SetFileStat: self._set_file_stat,
            OpenFolder: self._open_folder,
            ReadFolder: self._read_folder,
            RealPath: self._real_path,
            ExtendedRequest: self._extended,
            Other: self._other,
        }

    def take(self, packets: Iterator[memoryview]) -> None:
        """Answer some requests. Raises ProtocolError for what is none."""
        for packet in packets:
            request = parse_request(packet)
            if self._has_begun:
                self._handle(request)
            elif isinstance(request, Init):
                self._begin(request)
            else:
                raise ProtocolError("a request before the beginning")
        self.flush()

    def _begin(self, request: Init) -> None:
        if request.version < VERSION:
            raise ProtocolError(f"version {request.version}, and {VERSION} is the oldest that is known here")
        self._has_begun = True
        self._answer(version())

    def _handle(self, request: Request) -> None:
        if isinstance(request, Init):
            raise ProtocolError("a second beginning")
        try:
            self._handlers[type(request)](request)
            return
        except RequestRefusal as refused:
            code, reason = refused.code, str(refused)
        except OSError as error:
            code, reason = _CODES.get(error.errno or 0, Code.FAILURE), error.strerror or str(error)
        if isinstance(request, (Open, Write, SetFileStat)):
            self._complain(f"{type(request).__name__.lower()} {getattr(request, 'path', b'')[:200]!r}: {reason}")
        self._answer(status(request.id, code, reason))

    def _answer(self, *parts: bytes) -> None:
        self._answers += parts
        self._waiting += sum(map(len, parts))
        if self._waiting >= _WAITING or len(self._answers) >= _PARTS:
            self.flush()

    def flush(self) -> None:
        """Send the answers that wait for more."""
        if self._answers:
            self._send(self._answers)
            self._answers, self._waiting = [], 0

    def close(self) -> None:
        """Close what the client has left open."""
        while self._open:
            self._open.popitem()[1].close()

    # requests

    def _hold(self, number: int, opened: OpenFile | OpenListing) -> None:
        handle = next(self._numbers).to_bytes(8, "big")[4:]
        self._open[handle] = opened
        self._answer(handle_answer(number, handle))

    def _room(self) -> None:
        if len(self._open) >= MAX_HANDLES:
            raise RequestRefusal(Code.FAILURE, f"{MAX_HANDLES} files are open, and no more may be")

    def _file(self, handle: bytes) -> OpenFile:
        file = self._open.get(handle)
        if not isinstance(file, OpenFile):
            raise RequestRefusal(Code.FAILURE, "no such file is open")
        return file

    def _open_file(self, request: Open) -> None:
        self._room()
        self._hold(request.id, self._files.open(parse_path(request.path), request.access))

    def _close(self, request: Close) -> None:
        opened = self._open.pop(request.handle, None)
        if opened is None:
            raise RequestRefusal(Code.FAILURE, "no such file is open")
        opened.close()
        self._answer(done(request.id))

    def _read(self, request: Read) -> None:
        file = self._file(request.handle)
        if file.limit is not None:
            raise RequestRefusal(Code.PERMISSION_DENIED, "it is open for writing")
        length = min(request.length, MAX_DATA)
        if request.offset > MAX_OFFSET - length:
            raise RequestRefusal(Code.FAILURE, f"no file reaches to byte {request.offset}")
        data = os.pread(file.fd, length, request.offset)
        if data:
            self._answer(data_head(request.id, len(data)), data)
        else:
            self._answer(status(request.id, Code.EOF))

    def _write(self, request: Write) -> None:
        data, offset = request.data, request.offset
        write_all(self._file(request.handle).writable_to(offset + len(data)), memoryview(data), offset)
        self._answer(done(request.id))

    def _stat(self, request: Stat) -> None:
        self._answer(attributes_answer(request.id, self._files.stat(parse_path(request.path))))

    def _file_stat(self, request: FileStat) -> None:
        size = os.fstat(self._file(request.handle).fd).st_size
        self._answer(attributes_answer(request.id, Attributes(FILE_MODE, size)))

    def _set_stat(self, request: SetStat) -> None:
        """Take what a client says of modes and times, and do nothing: the session decides on them."""
        self._files.stat(parse_path(request.path))
        if request.size is not None:
            raise RequestRefusal(Code.PERMISSION_DENIED, "only the size of an open file can be set")
        self._answer(done(request.id))

    def _set_file_stat(self, request: SetFileStat) -> None:
        fd = self._file(request.handle).writable_to(request.size or 0)
        if request.size is not None:
            os.ftruncate(fd, request.size)
        self._answer(done(request.id))

    def _open_folder(self, request: OpenFolder) -> None:
        self._room()
        self._hold(request.id, self._files.names(parse_path(request.path)))

    def _read_folder(self, request: ReadFolder) -> None:
        listing = self._open.get(request.handle)
        if not isinstance(listing, OpenListing):
            raise RequestRefusal(Code.FAILURE, "no such folder is open")
        names = list(itertools.islice(listing.names, _NAMES))
        self._answer(names_answer(request.id, names) if names else status(request.id, Code.EOF))

    def _real_path(self, request: RealPath) -> None:
        self._answer(names_answer(request.id, [(parse_path(request.path).name(), None)]))

    def _extended(self, request: ExtendedRequest) -> None:
        if request.name != LIMITS:
            raise RequestRefusal(Code.OP_UNSUPPORTED, "no such extension is known here")
        self._answer(limits_answer(request.id, MAX_HANDLES))

    def _other(self, request: Other) -> None:
        raise RequestRefusal(Code.OP_UNSUPPORTED, f"requests of kind {request.kind} have no part in a transfer")


def answer_requests(files: Files, pipe: PeerPipe) -> bool:
    """Answer a client to its end; return whether that was where it should be. Raises ProtocolError, OSError."""
    session = SftpSession(files, pipe.send, pipe.complain)
    buffer = PacketBuffer()
    try:
        while True:
            count = pipe.read_into(buffer.get_buffer())
            if not count:
                return buffer.is_empty
            buffer.buffer_updated(count)
            session.take(buffer.packets())
    finally:
        session.close()
