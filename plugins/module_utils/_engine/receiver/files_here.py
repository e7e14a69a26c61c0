# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find files of the destination that may have been moved at the source, where what that has no more is deleted."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from ..._core.context import Context
from ..._core.files import rewound
from ..._model.entry import LEAST_SOUGHT, REGULAR, Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.file_index import COARSER, MOST_FILES, FileIndex
from ..._model.filters import DEST, Filters
from ..._model.paths import join
from ..._tree.dirfd import Root
from ..._tree.walk import walk
from .disk_stack import DiskStack

WORTH = 4 << 20  # bytes of new files from which on looking through the destination costs less than sending them
_MOST_FOLDERS = 1 << 18  # whose paths are held in memory


class FilesHere:
    """Finds paths by size and time, or by size and name. It walks the tree when enough is asked for."""

    def __init__(self, context: Context, root: Root, most_files: int = MOST_FILES) -> None:
        self.root, self._most_files = root, most_files
        # What they protect from deletion is none of the source's, and not sought either.
        self._filters = Filters.parse(context.settings["rules"])
        # Deletions that are refused because there are too many would leave two names of each file that was linked.
        self.may_link = context.settings["max_delete"] is None
        self._linked = DiskStack(context.folder)
        self._wanted = 0  # bytes of the files that are a reason to look
        self._index: FileIndex | None = None  # it has the number of a folder for each file
        self._folders: list[bytes] = []
        self._last = -1  # the folder that is listed: what is moved together was in the same one
        self._listed: dict[tuple[int, int], list[bytes]] = {}  # its files by size and time

    def find(self, size: int, mtime_ns: int, name: bytes, is_reason: bool) -> Iterator[bytes]:
        """Yield paths at which there may be a file that has this size, and this time or this name.

        ``is_reason``: see FindMoved.
        """
        self._wanted += size if is_reason else 0
        if size < LEAST_SOUGHT or self._wanted < WORTH:
            return
        if self._index is None:
            self._index = self._make_index()
        for number in dict.fromkeys(self._index.find(size, mtime_ns, name)):
            folder = self._folders[number]
            if number != self._last:
                self._last, self._listed = number, self._list(folder)
            for found in dict.fromkeys([*self._listed.get((size, mtime_ns), ()), name]):
                path = join(folder, found)
                if self._filters.allows(path, False, DEST):
                    yield path

    def _list(self, folder: bytes) -> dict[tuple[int, int], list[bytes]]:
        """Return the names of a folder's files by size and time, as far as it can be read."""
        listed: dict[tuple[int, int], list[bytes]] = {}
        with contextlib.suppress(OSError):
            fd = self.root.open_directory(folder)
            try:
                with os.scandir(rewound(fd)) as items:
                    for item in items:
                        if item.is_file(follow_symlinks=False):
                            status = item.stat(follow_symlinks=False)
                            found = listed.setdefault((status.st_size, status.st_mtime_ns), [])
                            found.append(os.fsencode(item.name))
            finally:
                os.close(fd)
        return listed

    def note_link(self, entry: Entry, old: Entry) -> None:
        """Take note that an entry was linked to a file at another path."""
        self._linked.push(encode(entry) + encode(old))

    def links_left(self) -> Iterator[tuple[Entry, Entry]]:
        """Yield the entries that were linked to a file whose old path is there still, and what they are here."""
        for record in self._linked.drain():
            entry, old = Decoder().feed(record)
            found, other = self.root.lstat(entry.path), self.root.lstat(old.path)
            if found is not None and other is not None and (found.dev, found.ino) == (other.dev, other.ino):
                yield entry, found

    def close(self) -> None:
        """Close what is open."""
        self._linked.close()

    def _make_index(self) -> FileIndex:
        """Walk the tree, a large one again and again for the larger files alone."""
        least = LEAST_SOUGHT
        while True:
            index = self._walk(least)
            if index is not None:
                return index
            least *= COARSER

    def _walk(self, least: int) -> FileIndex | None:
        """Return the files of at least so many bytes; None if they are too many."""
        index, self._folders = FileIndex(), []
        for entry in walk(
            self.root.fd,
            filters=self._filters,
            side=DEST,
            one_file_system=True,
            on_staging=lambda _path: None,
            on_error=lambda _path, _error: None,
        ):
            if entry.type != REGULAR or entry.size < least:
                continue
            folder, _slash, name = entry.path.rpartition(b"/")
            if not self._folders or self._folders[-1] != folder:
                self._folders.append(folder)  # more than once, where there are folders between its files
            index.add(entry.size, entry.mtime_ns, name, len(self._folders) - 1)
            if index.count > self._most_files or len(self._folders) > _MOST_FOLDERS:
                return None
        return index
