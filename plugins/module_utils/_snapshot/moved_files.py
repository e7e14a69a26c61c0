# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find files of an older snapshot that may have been moved, by its manifest. Private to the collection.

A manifest is not trusted here: the user of a path compares the content of the file.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from typing import Iterator

from .._model.entry import LEAST_SOUGHT
from .._model.entry_codec import ManifestError
from .._model.file_index import COARSER, MOST_FILES, FileIndex
from .manifest import BlockPlace, ManifestReader

_WORTH = 64  # bytes of a manifest that are worth to be read for one byte of a new file: it costs less than to send that
_BLOCKS = 8  # whose paths are kept: what was moved together is in few of them
_MOST_RECORDS = 1 << 32


class MovedFiles:
    """Finds paths by size and time, or by size and name. It reads the manifest when enough is asked for."""

    def __init__(self, fd: int, part: str = "", most_files: int = MOST_FILES, at_once: bool = False) -> None:
        """Take the open file of the manifest, the caller's; ``part``: the folder below which paths are asked for.

        With ``at_once`` the first file is worth to read the manifest.
        """
        self._file = open(fd, "rb", closefd=False)  # noqa: SIM115 - it closes nothing
        self._below = os.fsencode(part) + b"/" if part else b""
        self._most_files = most_files
        self._worth = 0 if at_once else os.fstat(fd).st_size // _WORTH
        self._wanted = 0  # bytes of the files that are a reason to look
        self._reader: ManifestReader | None = None
        self._index: FileIndex | None = None
        self._places: list[BlockPlace] = []
        self._firsts: list[int] = []  # the number of each block's first record
        self._paths: OrderedDict[int, list[bytes]] = OrderedDict()  # of the blocks used last

    def find(self, size: int, mtime_ns: int, name: bytes, is_reason: bool) -> Iterator[bytes]:
        """Yield paths of files that probably have this size and time, then of those with this size and name."""
        self._wanted += size if is_reason else 0
        if size < LEAST_SOUGHT or self._wanted < self._worth:
            return
        try:
            if self._index is None:
                self._index = self._make_index()
            for record in self._index.find(size, mtime_ns, name):
                path = self._path_of(record)
                if path.startswith(self._below):
                    yield path[len(self._below) :]
        except (ManifestError, OSError):  # it is damaged: nothing is found from now on
            self._index = FileIndex()

    def _make_index(self) -> FileIndex:
        """Read the manifest, of a large tree again and again for the larger files alone."""
        least = LEAST_SOUGHT
        while True:
            index = self._read(least)
            if index is not None:
                return index
            least *= COARSER

    def _read(self, least: int) -> FileIndex | None:
        """Return the files of at least so many bytes; None if they are too many."""
        self._file.seek(0)
        self._reader = reader = ManifestReader(self._file)
        self._places, self._firsts = [], []
        index, first, place = FileIndex(), 0, reader.place
        for block in reader.blocks():
            self._places.append(place)
            self._firsts.append(first)
            paths = block.paths
            if first + len(paths) > _MOST_RECORDS:
                raise ManifestError("it has more records than an index can number")
            for number, size, mtime_ns in block.files(least):
                index.add(size, mtime_ns, paths[number].rpartition(b"/")[2], first + number)
            if index.count > self._most_files:
                return None
            first += len(paths)
            place = reader.place
        return index

    def _path_of(self, record: int) -> bytes:
        """Return the path of a record."""
        number = bisect_right(self._firsts, record) - 1
        paths = self._paths.get(number)
        if paths is None:
            if self._reader is None:
                raise ManifestError("it has not been read")
            paths = self._reader.block_at(self._places[number]).paths
            self._paths[number] = paths
            if len(self._paths) > _BLOCKS:
                self._paths.popitem(last=False)
        return paths[record - self._firsts[number]]
