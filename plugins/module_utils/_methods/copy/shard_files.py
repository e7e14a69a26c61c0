# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access of the peer's scp or sftp to the files of the shards under way.

To the peer there is a folder ``view-SHARD`` for each shard, with the shard's files by their numbers (see
``shard_list``). A source lets them be read, a destination lets them be written, up to the size that was planned. What a
name stands for is opened from a folder that is held open, without following a symbolic link.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Collection, Iterator, NamedTuple

from ..._tree.dirfd import Root
from .fd_symlinks import view_name
from .sftp_protocol import Access, Attributes, Code
from .shard_list import ServedFile, ShardLists

_NUMBER = rb"(0|[1-9][0-9]{0,9})"
_PATH = re.compile(rb"|\.|/|(?:\./|/)?view-%s(?:/%s)?/?" % (_NUMBER, _NUMBER))
_FOLDER = Attributes(stat.S_IFDIR | 0o700, 0)
FILE_MODE = stat.S_IFREG | 0o600


class RequestRefusal(Exception):
    """A request is answered with an error; the session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class ServedPath(NamedTuple):
    """Parsed path of a client: a file, a shard's folder (no number), or the folder of all."""

    shard: int | None
    number: int | None

    def name(self) -> bytes:
        """Return it as an absolute path."""
        parts = [] if self.shard is None else [view_name(self.shard).encode()]
        return b"/" + b"/".join(parts if self.number is None else [*parts, b"%d" % self.number])


def parse_path(path: bytes) -> ServedPath:
    """Return what a path means; raise RequestRefusal for one that means nothing in a transfer."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise RequestRefusal(Code.PERMISSION_DENIED, f"{path[:200]!r} is no part of this transfer")
    shard, number = found.groups()
    return ServedPath(None if shard is None else int(shard), None if number is None else int(number))


class OpenFile:
    """A file that the client has open: for reading (``limit`` is None), or for writing up to ``limit`` bytes."""

    def __init__(self, fd: int, limit: int | None) -> None:
        self.fd, self.limit = fd, limit

    def writable_to(self, end: int) -> int:
        """Return the descriptor for a change that reaches to ``end``; raise RequestRefusal."""
        if self.limit is None:
            raise RequestRefusal(Code.PERMISSION_DENIED, "it is open for reading")
        if end > self.limit:
            raise RequestRefusal(
                Code.FAILURE, f"it is planned with {self.limit} bytes, and byte {end} was to be written"
            )
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

    def _listed(self, place: ServedPath) -> ServedFile:
        if place.shard is None or place.number is None:
            raise RequestRefusal(Code.FAILURE, "it is a folder")
        found = self._lists.read(place.shard).get(place.number)
        if found is None:
            raise RequestRefusal(Code.NO_SUCH_FILE, "no such file is wanted now")
        return found

    def stat(self, place: ServedPath) -> Attributes:
        """Return the attributes of a place; raise RequestRefusal or OSError."""
        if place.number is not None:
            return Attributes(FILE_MODE, self._size(self._listed(place)))
        if place.shard is not None and not self._lists.read(place.shard):
            raise RequestRefusal(Code.NO_SUCH_FILE, "no such shard is under way")
        return _FOLDER

    def sizes(self, shard: int) -> dict[int, int]:
        """Return the planned sizes of a shard's files by their numbers; none if it is not under way."""
        return {number: listed.size for number, listed in self._lists.read(shard).items()}

    def _size(self, listed: ServedFile) -> int:
        raise NotImplementedError

    def open(self, place: ServedPath, access: int) -> OpenFile:
        """Open a file; raise RequestRefusal or OSError."""
        raise NotImplementedError

    def names(self, place: ServedPath) -> OpenListing:
        """List a folder; raise RequestRefusal."""
        raise NotImplementedError


class SourceFiles(Files):
    """A source: the files can be read, and the folder of a shard listed."""

    def _size(self, listed: ServedFile) -> int:
        return listed.size

    def open(self, place: ServedPath, access: int) -> OpenFile:
        """Open a regular file below the source's root for reading."""
        if access != Access.READ:
            raise RequestRefusal(Code.PERMISSION_DENIED, "a source is only read from")
        return OpenFile(self._root.open_file(self._listed(place).path), None)

    def names(self, place: ServedPath) -> OpenListing:
        """List the numbers of a shard."""
        if place.shard is None or place.number is not None:
            raise RequestRefusal(Code.PERMISSION_DENIED, "only the folder of a shard can be listed")
        sizes = self.sizes(place.shard)
        return OpenListing((b"%d" % number, Attributes(FILE_MODE, size)) for number, size in sizes.items())


class DestinationFiles(Files):
    """A destination: the files can be written, each up to its planned size. ``owners`` are who may own a file."""

    def __init__(self, lists: ShardLists, top: bytes | int, owners: Collection[int]) -> None:
        super().__init__(lists, top)
        self._owners = owners

    def _size(self, listed: ServedFile) -> int:
        parent, name = self._root.open_parent(listed.path)
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        self._check(found)
        return found.st_size

    def _check(self, found: os.stat_result) -> None:
        """Refuse what this transfer has not made: it might be part of something else."""
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid not in self._owners:
            raise RequestRefusal(Code.PERMISSION_DENIED, "what is in its place is not a file that this transfer made")

    def names(self, _place: ServedPath) -> OpenListing:
        """No client asks for what it brings itself."""
        raise RequestRefusal(Code.PERMISSION_DENIED, "nothing can be listed at a destination")

    def open(self, place: ServedPath, access: int) -> OpenFile:
        """Open a staged file for writing; it is made where an earlier run has left nothing of it.

        Appending means nothing here, since each piece says where it belongs.
        """
        if not access & Access.WRITE or access & (Access.READ | Access.EXCLUSIVE):
            raise RequestRefusal(Code.PERMISSION_DENIED, "a destination is only written to")
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
