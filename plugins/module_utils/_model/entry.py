# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An entry of a file tree."""

from __future__ import annotations

import os
import stat
from typing import Container, Iterable, NamedTuple

REGULAR, DIRECTORY, SYMLINK, FIFO, SOCKET, BLOCK, CHARACTER = "f", "d", "l", "p", "s", "b", "c"

_TYPES = {
    stat.S_IFREG: REGULAR,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: SYMLINK,
    stat.S_IFIFO: FIFO,
    stat.S_IFSOCK: SOCKET,
    stat.S_IFBLK: BLOCK,
    stat.S_IFCHR: CHARACTER,
}
BLOCK_BYTES = 512  # of lstat's blocks, whatever the file system's are
WHOLE_BYTES = 256 << 10  # up to this a file counts, and is sent in a bundle, with its holes
LEAST_SOUGHT = 256  # bytes of a file that is sought at other paths: a smaller one costs no more to send

_FORMAT = 0o170000  # S_IFMT
_new_tuple = tuple.__new__


def special_types(words: Container[str]) -> frozenset[str]:
    """Return the types of special files that ``preserve`` keeps.

    ``devices`` is all of them, ``specials`` FIFOs and sockets alone, which a user can make, too.
    """
    if "devices" in words:
        return frozenset((FIFO, SOCKET, BLOCK, CHARACTER))
    return frozenset((FIFO, SOCKET) if "specials" in words else ())


class Entry(NamedTuple):
    """One name below a root, with everything that a copy of it must reproduce.

    Paths are bytes, relative to the root, without a leading ``./``; the root itself is ``b""``.
    Sizes are bytes, times are nanoseconds since 1970 (negative before), ``blocks`` are of 512 bytes.
    """

    path: bytes
    type: str
    mode: int  # permission bits, 0o7777
    uid: int
    gid: int
    size: int  # of a regular file; of a symlink the length of its target; else 0
    mtime_ns: int
    ctime_ns: int
    dev: int  # with ino: the identity that hard links share
    ino: int
    nlink: int
    rdev: int  # of a device node
    blocks: int  # fewer than size needs: the file is sparse
    target: bytes = b""  # of a symlink
    xattrs: tuple[tuple[bytes, bytes], ...] = ()  # sorted; POSIX ACLs are among them (system.posix_acl_*)

    @property
    def is_sparse(self) -> bool:
        """Whether fewer blocks are allocated than the size needs."""
        return self.type == REGULAR and self.blocks * BLOCK_BYTES < self.size

    @property
    def has_large_holes(self) -> bool:
        """Whether a file is sparse, and large enough for its holes to count."""
        return self.size > WHOLE_BYTES and self.is_sparse

    @property
    def content(self) -> int:
        """Bytes of a file without its holes, by its blocks (of a file system that compresses: after count_holes)."""
        if not self.has_large_holes:
            return self.size
        missing = -(-self.size // BLOCK_BYTES) - self.blocks
        return self.size if missing == 1 else max(0, self.size - missing * BLOCK_BYTES)

    @property
    def link_id(self) -> tuple[int, int] | None:
        """What all names of a file with more than one name share; None if there is one name only."""
        return (self.dev, self.ino) if self.nlink > 1 and self.type != DIRECTORY else None


def entry_from_stat(
    path: bytes,
    found: os.stat_result,
    target: bytes = b"",
    xattrs: tuple[tuple[bytes, bytes], ...] = (),
) -> Entry:
    """Make an entry of what ``lstat`` said about a path."""
    # This runs for every name of a tree: the first ten of lstat's values are cheapest to get together, and a named
    # tuple is made quickest as the tuple that it is.
    mode, ino, dev, nlink, uid, gid, size, _atime, _mtime, _ctime = found
    kind = _TYPES[mode & _FORMAT]
    return _new_tuple(
        Entry,
        (
            path,
            kind,
            mode & 0o7777,
            uid,
            gid,
            size if kind == REGULAR else len(target),
            found.st_mtime_ns,
            found.st_ctime_ns,
            dev,
            ino,
            nlink,
            found.st_rdev if kind in (BLOCK, CHARACTER) else 0,
            found.st_blocks,
            target,
            xattrs,
        ),
    )


def contents_of(entries: Iterable[Entry]) -> int:
    """Return the bytes in all the files, without holes."""
    return sum(entry.content for entry in entries if entry.type == REGULAR)
