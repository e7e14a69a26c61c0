# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of all that a preparation makes: written down before each is made, removed in reverse order.

The list is a file of the job, so a job that is killed leaves it for the one after it. A folder of dumps is locked for
as long as the job lives, so no job removes or replaces the dumps of another one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from typing import Collection, NamedTuple

from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape, as_object, member
from .._tree.dirfd import Root
from .._tree.held_root import open_held
from .btrfs import delete_snapshot

FILE, FOLDER, TREE, SNAPSHOT = "file", "folder", "tree", "snapshot"
MARK = ".made-by-longhaul"  # a folder with this file holds nothing but dumps; its lock belongs to their job
_LONGEST = 200  # bytes that a mark says of the job that has its lock
_GONE = (errno.ENOENT, errno.ENOTDIR)


class MadeEntry(NamedTuple):
    """A file, a folder, a folder with all in it, or a snapshot that a preparation makes."""

    kind: str
    folder: str  # that it is in: a path without symbolic links
    name: str

    @property
    def path(self) -> str:
        """Return its path."""
        return os.path.join(self.folder, self.name)


class MadeList:
    """The entries that exist or may exist, in the file of a job, and the folders of dumps that the job has locked.

    ``holder`` describes the job to others that find a folder locked.
    """

    def __init__(self, path: str, holder: str = "another backup") -> None:
        self._path, self._holder = path, holder
        self._locks: dict[str, int] = {}  # by the path of the folder

    def add(self, kind: str, folder: bytes, name: bytes) -> None:
        """Write down an entry that is about to be made."""
        line = json.dumps(MadeEntry(kind, os.fsdecode(folder), os.fsdecode(name))._asdict())
        with open(self._path, "a", encoding="ascii") as stream:
            stream.write(f"{line}\n")

    def lock(self, path: bytes, folder: int) -> None:
        """Lock an open folder of dumps, which has its mark, until all is undone.

        Raises TransferFailed if another job has it, and OSError.
        """
        lock, holder = _take_lock(folder)
        if lock is None:
            raise TransferFailed(
                f"{os.fsdecode(path)} has the dumps of {holder}, which is running. Set into of one of both to another "
                "folder, or run this backup again when that one has ended"
            )
        self._locks[os.fsdecode(path)] = lock
        os.ftruncate(lock, 0)
        os.pwrite(lock, os.fsencode(self._holder)[:_LONGEST], 0)

    def read(self) -> list[MadeEntry]:
        """Return the entries in the order in which they were made. A line that was cut off was for nothing yet."""
        try:
            with open(self._path, encoding="ascii") as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return []
        return [entry for entry in map(_parse, lines) if entry is not None]

    def undo(self) -> str:
        """Remove all entries that still exist, and the list. Return what cannot be removed, empty if nothing is left.

        A folder that holds something else by now stays. The locks end with this call.
        """
        left = [why for entry in reversed(self.read()) for why in [_remove(entry, self._locks)] if why]
        while self._locks:
            os.close(self._locks.popitem()[1])
        if not left:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
        return "; ".join(left)


def _parse(line: str) -> MadeEntry | None:
    try:
        values = as_object(json.loads(line), "an entry")
        entry = MadeEntry(member(values, "kind", str), member(values, "folder", str), member(values, "name", str))
    except (ValueError, WrongShape):
        return None
    return entry if "/" not in entry.name and entry.name not in ("", ".", "..") else None


def _take_lock(folder: int) -> tuple[int | None, str]:
    """Lock the mark in an open folder; return its descriptor, None and who has it if it is locked. Raises OSError."""
    lock = os.open(MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(MARK, dir_fd=folder, follow_symlinks=False)):
            return lock, ""
        holder = "another backup"  # that has just ended, and removed the mark
    except (BlockingIOError, PermissionError):
        holder = os.fsdecode(os.pread(lock, _LONGEST, 0)) or "another backup"
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None, holder


def _remove(entry: MadeEntry, locked: Collection[str]) -> str:
    """Remove an entry if it is there; return why it stays, empty if it is gone."""
    try:
        fd = open_held(os.fsencode(entry.folder))
    except OSError as error:
        return "" if error.errno in _GONE else f"{entry.path}: {error.strerror}"
    except TransferFailed as error:  # somebody exchanged a folder above it
        return f"{entry.path}: {error}"
    lock: int | None = None
    try:
        if entry.kind in (FILE, TREE) and entry.folder not in locked:
            with contextlib.suppress(FileNotFoundError):
                lock, holder = _take_lock(fd)
                if lock is None:
                    return f"{entry.path}: its folder has the dumps of {holder}, which is running"
        if entry.kind == FILE:
            os.unlink(entry.name, dir_fd=fd)
        elif entry.kind == SNAPSHOT:
            delete_snapshot(fd, os.fsencode(entry.name))
        elif entry.kind == TREE:
            with Root(fd) as root:
                root.remove(os.fsencode(entry.name))
        else:
            os.rmdir(entry.name, dir_fd=fd)
    except OSError as error:
        is_full = entry.kind == FOLDER and error.errno in (errno.ENOTEMPTY, errno.EEXIST)
        return "" if error.errno in _GONE or is_full else f"{entry.path}: {error.strerror}"
    finally:
        os.close(fd)
        if lock is not None:
            os.close(lock)
    return ""
