# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SFTP server of the methods sftp and scp: it knows the files of this transfer, and no others.

To the client there is a folder ``view-SHARD`` for each shard that is under way, with the shard's files by their
numbers (see ``shard_list``). A source lets them be read, a destination lets them be written, up to the size that was
planned. There is no other name, no way to make, rename, link or remove one, and no attribute but the size to set. What
a name stands for is opened from a folder that is held open, without following a symbolic link.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
from typing import Callable, Collection, Iterator, Mapping, NamedTuple

from ..._engine.net.control_channel import enlarge_pipe
from ..._engine.net.rate_limit import TokenBucket
from ..._tree.dirfd import Root
from .fd_symlinks import view_name
from .sftp_protocol import (
    LIMITS,
    MAX_DATA,
    MAX_OFFSET,
    VERSION,
    Access,
    Attributes,
    Close,
    Code,
    Extended,
    FileStat,
    Init,
    Open,
    OpenFolder,
    Other,
    PacketBuffer,
    ProtocolError,
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
    handle_answer,
    limits_answer,
    names_answer,
    parse_request,
    status,
    version,
)
from .shard_list import Listed, ShardLists

MAX_HANDLES = 16  # open at a time; OpenSSH's clients have two
_NUMBER = rb"(0|[1-9][0-9]{0,9})"
_PATH = re.compile(rb"|\.|/|(?:\./|/)?view-%s(?:/%s)?/?" % (_NUMBER, _NUMBER))
_FOLDER = Attributes(stat.S_IFDIR | 0o700, 0)
_FILE_MODE = stat.S_IFREG | 0o600
_NAMES = 1000  # in one answer
_WAITING = 64 << 10  # bytes of answers that are sent together
_PARTS = 256  # of them
_COMPLAINTS = 10  # of one session, for the client's standard error: its own words do not say why
_CODES = {errno.ENOENT: Code.NO_SUCH_FILE, errno.EACCES: Code.PERMISSION_DENIED, errno.EPERM: Code.PERMISSION_DENIED}


class Refused(Exception):
    """A request is answered with an error; the session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Place(NamedTuple):
    """What a path of the client's means: a file, a shard's folder (no number), or the folder of all."""

    shard: int | None
    number: int | None

    def name(self) -> bytes:
        """Return it as an absolute path."""
        parts = [] if self.shard is None else [view_name(self.shard).encode()]
        return b"/" + b"/".join(parts if self.number is None else [*parts, b"%d" % self.number])


def parse_path(path: bytes) -> Place:
    """Return what a path means; raise Refused for one that means nothing in a transfer."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise Refused(Code.PERMISSION_DENIED, f"{path[:200]!r} is no part of this transfer")
    shard, number = found.groups()
    return Place(None if shard is None else int(shard), None if number is None else int(number))


class OpenFile:
    """A file that the client has open: for reading (``limit`` is None), or for writing up to ``limit`` bytes."""

    def __init__(self, fd: int, limit: int | None) -> None:
        self.fd, self.limit = fd, limit

    def writable_to(self, end: int) -> int:
        """Return the descriptor for a change that reaches to ``end``; raise Refused."""
        if self.limit is None:
            raise Refused(Code.PERMISSION_DENIED, "it is open for reading")
        if end > self.limit:
            raise Refused(Code.FAILURE, f"it is planned with {self.limit} bytes, and byte {end} was to be written")
        return self.fd

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)


class OpenListing:
    """A folder whose names the client asks for."""

    def __init__(self, names: Iterator[tuple[bytes, Attributes]]) -> None:
        self.names = names

    def close(self) -> None:
        """Nothing is open."""


class Files:
    """What one side lets its peer do with the files of the shards under way."""

    def __init__(self, lists: ShardLists, top: bytes | int) -> None:
        self._lists, self._root = lists, Root(top)

    def close(self) -> None:
        """Close what is open."""
        self._root.close()

    def _listed(self, place: Place) -> Listed:
        if place.shard is None or place.number is None:
            raise Refused(Code.FAILURE, "it is a folder")
        found = self._lists.read(place.shard).get(place.number)
        if found is None:
            raise Refused(Code.NO_SUCH_FILE, "no such file is wanted now")
        return found

    def stat(self, place: Place) -> Attributes:
        """Return the attributes of a place; raise Refused or OSError."""
        if place.number is not None:
            return Attributes(_FILE_MODE, self._size(self._listed(place)))
        if place.shard is not None and not self._lists.read(place.shard):
            raise Refused(Code.NO_SUCH_FILE, "no such shard is under way")
        return _FOLDER

    def _size(self, listed: Listed) -> int:
        raise NotImplementedError

    def open(self, place: Place, access: int) -> OpenFile:
        """Open a file; raise Refused or OSError."""
        raise NotImplementedError

    def names(self, place: Place) -> OpenListing:
        """List a folder; raise Refused."""
        raise NotImplementedError


class SourceFiles(Files):
    """A source: the files can be read, and the folder of a shard listed."""

    def _size(self, listed: Listed) -> int:
        return listed.size

    def open(self, place: Place, access: int) -> OpenFile:
        """Open a regular file below the source's root for reading."""
        if access != Access.READ:
            raise Refused(Code.PERMISSION_DENIED, "a source is only read from")
        return OpenFile(self._root.open_file(self._listed(place).path), None)

    def names(self, place: Place) -> OpenListing:
        """List the numbers of a shard."""
        if place.shard is None or place.number is not None:
            raise Refused(Code.PERMISSION_DENIED, "only the folder of a shard can be listed")
        listed = self._lists.read(place.shard)
        return OpenListing((b"%d" % number, Attributes(_FILE_MODE, file.size)) for number, file in listed.items())


class DestinationFiles(Files):
    """A destination: the files can be written, each up to its planned size. ``owners`` are who may own a file."""

    def __init__(self, lists: ShardLists, top: bytes | int, owners: Collection[int]) -> None:
        super().__init__(lists, top)
        self._owners = owners

    def _size(self, listed: Listed) -> int:
        parent, name = self._root.open_parent(listed.path)
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        self._check(found)
        return found.st_size

    def _check(self, found: os.stat_result) -> None:
        """Refuse what this transfer has not made: it might be part of something else."""
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid not in self._owners:
            raise Refused(Code.PERMISSION_DENIED, "what is in its place is not a file that this transfer made")

    def names(self, _place: Place) -> OpenListing:
        """No client asks for what it brings itself."""
        raise Refused(Code.PERMISSION_DENIED, "nothing can be listed at a destination")

    def open(self, place: Place, access: int) -> OpenFile:
        """Open a staged file for writing; it is made where an earlier run has left nothing of it.

        Appending means nothing here, since each piece says where it belongs.
        """
        if not access & Access.WRITE or access & (Access.READ | Access.EXCLUSIVE):
            raise Refused(Code.PERMISSION_DENIED, "a destination is only written to")
        listed = self._listed(place)
        parent, name = self._root.open_parent(listed.path)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return OpenFile(os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=parent), listed.size)
        except FileExistsError:
            self._check(os.stat(name, dir_fd=parent, follow_symlinks=False))
        file = OpenFile(os.open(name, flags, dir_fd=parent), listed.size)
        try:
            self._check(os.fstat(file.fd))
            if access & Access.TRUNCATE:
                os.ftruncate(file.fd, 0)
        except BaseException:
            file.close()
            raise
        return file


class Session:
    """One client: answers what it asks for. ``send`` takes the answers, several at once."""

    def __init__(self, files: Files, send: Callable[[list[bytes]], None], complain: Callable[[str], None]) -> None:
        self._files, self._send, self._tell = files, send, complain
        self._open: dict[bytes, OpenFile | OpenListing] = {}
        self._numbers = itertools.count(1)
        self._complaints = _COMPLAINTS
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
            Extended: self._extended,
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
        except Refused as refused:
            code, reason = refused.code, str(refused)
        except OSError as error:
            code, reason = _CODES.get(error.errno or 0, Code.FAILURE), error.strerror or str(error)
        if isinstance(request, (Open, Write, SetFileStat)):
            self._complain(f"{type(request).__name__.lower()} {getattr(request, 'path', b'')[:200]!r}: {reason}")
        self._answer(status(request.id, code, reason))

    def _complain(self, text: str) -> None:
        if self._complaints:
            self._complaints -= 1
            self._tell(text)

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
            raise Refused(Code.FAILURE, f"{MAX_HANDLES} files are open, and no more may be")

    def _file(self, handle: bytes) -> OpenFile:
        file = self._open.get(handle)
        if not isinstance(file, OpenFile):
            raise Refused(Code.FAILURE, "no such file is open")
        return file

    def _open_file(self, request: Open) -> None:
        self._room()
        self._hold(request.id, self._files.open(parse_path(request.path), request.access))

    def _close(self, request: Close) -> None:
        opened = self._open.pop(request.handle, None)
        if opened is None:
            raise Refused(Code.FAILURE, "no such file is open")
        opened.close()
        self._answer(status(request.id, Code.OK))

    def _read(self, request: Read) -> None:
        file = self._file(request.handle)
        if file.limit is not None:
            raise Refused(Code.PERMISSION_DENIED, "it is open for writing")
        length = min(request.length, MAX_DATA)
        if request.offset > MAX_OFFSET - length:
            raise Refused(Code.FAILURE, f"no file reaches to byte {request.offset}")
        data = os.pread(file.fd, length, request.offset)
        if data:
            self._answer(data_head(request.id, len(data)), data)
        else:
            self._answer(status(request.id, Code.EOF))

    def _write(self, request: Write) -> None:
        data, offset = request.data, request.offset
        fd = self._file(request.handle).writable_to(offset + len(data))
        while data:
            written = os.pwrite(fd, data, offset)
            data, offset = data[written:], offset + written
        self._answer(status(request.id, Code.OK))

    def _stat(self, request: Stat) -> None:
        self._answer(attributes_answer(request.id, self._files.stat(parse_path(request.path))))

    def _file_stat(self, request: FileStat) -> None:
        size = os.fstat(self._file(request.handle).fd).st_size
        self._answer(attributes_answer(request.id, Attributes(_FILE_MODE, size)))

    def _set_stat(self, request: SetStat) -> None:
        """Take what a client says of modes and times, and do nothing: the session decides on them."""
        self._files.stat(parse_path(request.path))
        if request.size is not None:
            raise Refused(Code.PERMISSION_DENIED, "only the size of an open file can be set")
        self._answer(status(request.id, Code.OK))

    def _set_file_stat(self, request: SetFileStat) -> None:
        fd = self._file(request.handle).writable_to(request.size or 0)
        if request.size is not None:
            os.ftruncate(fd, request.size)
        self._answer(status(request.id, Code.OK))

    def _open_folder(self, request: OpenFolder) -> None:
        self._room()
        self._hold(request.id, self._files.names(parse_path(request.path)))

    def _read_folder(self, request: ReadFolder) -> None:
        listing = self._open.get(request.handle)
        if not isinstance(listing, OpenListing):
            raise Refused(Code.FAILURE, "no such folder is open")
        names = list(itertools.islice(listing.names, _NAMES))
        self._answer(names_answer(request.id, names) if names else status(request.id, Code.EOF))

    def _real_path(self, request: RealPath) -> None:
        self._answer(names_answer(request.id, [(parse_path(request.path).name(), None)]))

    def _extended(self, request: Extended) -> None:
        if request.name != LIMITS:
            raise Refused(Code.OP_UNSUPPORTED, "no such extension is known here")
        self._answer(limits_answer(request.id, MAX_HANDLES))

    def _other(self, request: Other) -> None:
        raise Refused(Code.OP_UNSUPPORTED, f"requests of kind {request.kind} have no part in a transfer")


class SftpServer:
    """What the serving end runs for one SFTP client, in a process of its own (see ``ssh.service.Work``).

    ``make_files`` and ``make_bucket`` are called there; ``keeps`` are the descriptors that it needs.
    """

    def __init__(
        self,
        make_files: Callable[[], Files],
        keeps: tuple[int, ...],
        make_bucket: Callable[[], TokenBucket] = lambda: TokenBucket(0),
    ) -> None:
        self._make_files, self.keeps, self._make_bucket = make_files, keeps, make_bucket

    def __call__(self, stdin: int, stdout: int) -> int:
        for fd in (stdin, stdout):
            os.set_blocking(fd, True)
            enlarge_pipe(fd)
        files, bucket = self._make_files(), self._make_bucket()

        def answer(parts: list[bytes]) -> None:
            bucket.take(sum(map(len, parts)))
            _write_all(stdout, parts)

        session = Session(files, answer, _complain)
        buffer = PacketBuffer()
        try:
            while True:
                count = os.readv(stdin, [buffer.get_buffer()])
                if not count:
                    break
                bucket.take(count)
                buffer.buffer_updated(count)
                session.take(buffer.packets())
            return 0 if buffer.is_empty else 1
        except ProtocolError as error:
            _complain(f"protocol error: {error}. The session ends")
            return 1
        except (BrokenPipeError, ConnectionResetError):
            return 1
        finally:
            session.close()
            files.close()


def _write_all(fd: int, parts: list[bytes]) -> None:
    length = sum(map(len, parts))
    written = os.writev(fd, parts)
    if written < length:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]


def _complain(text: str) -> None:
    os.write(2, f"longhaul: {text}\n".encode("utf-8", "replace"))
