# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file with the change times (ctime) of a source's files, beside their copies. Private to the collection.

A program can set a file's size and modification time to what they were, but not its change time. So where that differs
from the one in such a file, only the contents say whether the copy is still right.

The file is a stream of frames: a head (type, number of paths, length of the data, check) and the data. ``S``, without
data, begins the list of one transfer; only the last list of a file counts. ``T`` has, compressed by zlib, the times in
nanoseconds (8 bytes each, little endian) and the paths, with zeros between them, in the order of a walk. The check is
BLAKE2b (8 bytes) over the frame's place in the file, the rest of its head and its data. What a kill cut short is left
out: then a time is not known.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import zlib
from typing import Sequence

from .._core.files import write_all
from .._model.entry import Entry
from .._model.paths import order

_START, _TIMES = b"S", b"T"
_CHECK_BYTES = 8
_HEAD = struct.Struct(f"<cII{_CHECK_BYTES}s")
_PLACE = struct.Struct("<Q")
_TIME_BYTES = 8
_FULL_COUNT, _FULL_BYTES = 4096, 1 << 20  # paths, or bytes of them, after which a frame is written
_MOST = 64 << 20  # bytes of unpacked data
_RANGE = range(-(1 << 63), 1 << 63)
_COMPRESSION = 1  # the fastest: names compress well enough


SAME, CHANGED, UNKNOWN = "same", "changed", "unknown"


class KnownChanges:
    """The change times that a transfer into a snapshot knows: from earlier snapshots, and from an interrupted run.

    It also writes those of the snapshot. A time goes into that list only if the copy that is there then, now or once
    this transfer is complete, is of that time or later, so a kill at any moment leaves no time that is too new.
    """

    def __init__(self, own_fd: int, older_fds: Sequence[int], writes: bool) -> None:
        """Take the open file of the snapshot, and those beside the folders of link_dest; -1 stands for none.

        Raise OSError.
        """
        self._interrupted = ChangeTimes(own_fd) if own_fd >= 0 else None
        self._older = [ChangeTimes(fd) if fd >= 0 else None for fd in older_fds]
        self._writer = ChangeTimesWriter(own_fd) if writes and own_fd >= 0 else None

    def compare(self, entry: Entry) -> str:
        """Compare the next file of the walk with the interrupted run: SAME, CHANGED or UNKNOWN. Raise OSError.

        If it is UNKNOWN, nothing is written: see ``keep``.
        """
        known = self._interrupted.find(entry.path) if self._interrupted is not None else None
        if known is None:
            return UNKNOWN
        self._add(entry.path, known)
        return SAME if known == entry.ctime_ns else CHANGED

    def has_changed(self, number: int, entry: Entry) -> bool | None:
        """Return whether a file may have changed since the snapshot in a folder of link_dest; None: nobody knows.

        A snapshot without a list was made by another method, or by a version before 0.3.0: nothing is known then.
        """
        older = self._older[number]
        return None if older is None else older.find(entry.path) != entry.ctime_ns

    def keep(self, entry: Entry) -> None:
        """Write the change time of a file. Raise OSError."""
        self._add(entry.path, entry.ctime_ns)

    def _add(self, path: bytes, change_ns: int) -> None:
        if self._writer is not None:
            self._writer.add(path, change_ns)

    def close(self) -> None:
        """Write what is left, also of the interrupted run, where this one ended early."""
        with contextlib.suppress(OSError):  # what is not written down is compared next time
            while self._interrupted is not None and (rest := self._interrupted.rest()):
                for path, change_ns in rest:
                    self._add(path, change_ns)
            if self._writer is not None:
                self._writer.flush()


class ChangeTimes:
    """Reads the last list of such a file. The descriptor is the caller's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        try:
            self._place, self._end = _last_list(fd)
        except OSError:  # a disk error: no time is known
            self._place = self._end = 0
        self._paths: list[bytes] = []
        self._times: Sequence[int] = ()
        self._next = 0

    def find(self, path: bytes) -> int | None:
        """Return the change time of a file; None if it is not known. Ask for paths in walk order."""
        number = self._next
        if number < len(self._paths) and self._paths[number] == path:  # nearly always
            self._next = number + 1
            return self._times[number]
        key = order(path)
        while True:
            while self._next < len(self._paths):
                found = self._paths[self._next]
                if found == path:
                    self._next += 1
                    return self._times[self._next - 1]
                if order(found) > key:
                    return None
                self._next += 1
            if not self._load():
                return None

    def rest(self) -> list[tuple[bytes, int]]:
        """Return the paths and times that are left of the frame at hand, or of the next one; empty at the end."""
        if self._next >= len(self._paths) and not self._load():
            return []
        found = list(zip(self._paths, self._times))[self._next :]
        self._next = len(self._paths)
        return found

    def _load(self) -> bool:
        """Read the next frame; False if there is none, or it is damaged."""
        if self._place >= self._end:
            return False
        try:
            kind, count, length, check = _HEAD.unpack(os.pread(self._fd, _HEAD.size, self._place))
            stored = os.pread(self._fd, length, self._place + _HEAD.size)
        except (OSError, struct.error):  # as where the check is wrong
            kind, count, length, check, stored = b"", 0, 0, b"", b""
        data = b""
        if check == _check(self._place, kind, count, stored):
            inflater = zlib.decompressobj()
            data = inflater.decompress(stored, _MOST)
        self._place += _HEAD.size + length
        size = count * _TIME_BYTES
        self._paths = data[size:].split(b"\0")
        self._next = 0
        if not count or len(self._paths) != count:  # a disk error: no time is known from here on
            self._paths, self._place = [], self._end
            return False
        self._times = struct.unpack(f"<{count}q", data[:size])
        return True


class ChangeTimesWriter:
    """Adds a list to such a file. The descriptor, for reading and writing, is the caller's."""

    def __init__(self, fd: int) -> None:
        """Begin the list, behind what there is; what a kill cut short goes. Raise OSError."""
        self._fd = fd
        self._place = _last_list(fd)[1]
        os.ftruncate(fd, self._place)
        self._paths: list[bytes] = []
        self._times: list[int] = []
        self._size = 0
        self._write(_START, 0, b"")

    def add(self, path: bytes, change_ns: int) -> None:
        """Add the change time of the next file of a walk. Raise OSError."""
        if change_ns not in _RANGE:
            return
        self._paths.append(path)
        self._times.append(change_ns)
        self._size += len(path)
        if len(self._paths) >= _FULL_COUNT or self._size >= _FULL_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is still in memory. Raise OSError."""
        if not self._paths:
            return
        data = struct.pack(f"<{len(self._times)}q", *self._times) + b"\0".join(self._paths)
        self._write(_TIMES, len(self._paths), zlib.compress(data, _COMPRESSION))
        self._paths, self._times, self._size = [], [], 0

    def _write(self, kind: bytes, count: int, stored: bytes) -> None:
        check = _check(self._place, kind, count, stored)
        frame = _HEAD.pack(kind, count, len(stored), check) + stored
        write_all(self._fd, memoryview(frame), self._place)
        self._place += len(frame)


def _check(place: int, kind: bytes, count: int, stored: bytes) -> bytes:
    digest = hashlib.blake2b(_PLACE.pack(place) + kind + _PLACE.pack(count), digest_size=_CHECK_BYTES)
    digest.update(stored)
    return digest.digest()


def _last_list(fd: int) -> tuple[int, int]:
    """Return where the frames of the last list begin, and where they end."""
    size = os.fstat(fd).st_size
    start = place = 0
    while place + _HEAD.size <= size:
        kind, count, length, check = _HEAD.unpack(os.pread(fd, _HEAD.size, place))
        behind = place + _HEAD.size + length
        if kind not in (_START, _TIMES) or behind > size:
            break
        if kind == _START:
            if length or check != _check(place, kind, count, b""):
                break
            start = behind
        place = behind
    return (start, place) if start else (place, place)
