# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Walk a tree and give an entry for every name in it. Private to the collection."""

from __future__ import annotations

import bisect
import contextlib
import errno
import os
from typing import Callable, Iterator

from .._model.entry import DIRECTORY, Entry
from .._model.filters import Filters
from .._model.paths import NAME_MAX, PATH_LIMIT, STAGING, is_staging, join
from .descent import Descent, open_root
from .directory_tags import DirectoryTags
from .stat_entry import stat_entry

OnError = Callable[[bytes, OSError], None]
_SHOWN = 4096  # bytes of a path that is too long


def walk(
    root: bytes | int,
    *,
    filters: Filters | None = None,
    side: str = "source",
    one_file_system: bool = False,
    xattrs: bool = False,
    only: bytes | None = None,
    on_staging: Callable[[bytes], None] | None = None,
    tags: DirectoryTags | None = None,
    on_tagged: Callable[[bytes], None] | None = None,
    on_error: OnError,
) -> Iterator[Entry]:
    """Yield the root (path ``b""``) and then every entry below it, a directory before its contents.

    Names come in byte order, and a directory's contents right behind it. Nothing but directories is ever
    opened, no symlink below the root is followed, and every entry is as it was at the moment it is given.
    The root is a path, or the fd of an open directory, which stays the caller's.

    ``filters`` and ``side`` leave out what the rules hide on that side, and everything below it.
    ``one_file_system`` gives a mount point as an empty directory, as ``rsync -x`` does. ``xattrs`` reads the
    extended attributes and ACLs. ``only`` gives the root and this one name in it, not its contents.
    ``on_staging`` leaves out the folders that transfers keep below a destination, wherever they are, and is told their
    paths. ``tags`` leave out all else in the directories that have one, but for the root; ``on_tagged`` is told the
    path of each such directory before its entry is given.

    What cannot be read goes to ``on_error`` with its path: a directory that cannot be opened or listed (its
    entry was given before), a name that vanished after it was listed (FileNotFoundError), attributes that
    cannot be read (the entry is given without them), a name or a path that is too long for an entry. A root that
    cannot be opened gives no entry at all.
    """
    try:
        root_fd = open_root(root)
    except OSError as error:
        on_error(b"", error)
        return
    reader = _Reader(filters, side, xattrs, on_staging, on_error)
    descent = Descent(root_fd)
    try:
        top = reader.read(root_fd, b".", b"")
        if top is None:
            return
        yield top
        names = [only] if only is not None else _names(descent, on_error)
        waiting = [iter(reader.travelling(names, b""))]  # for each open directory the names still to come
        while waiting:
            fd, prefix, here = descent.fd, join(descent.path, b""), descent.here
            for name in waiting[-1]:
                entry = reader.read(fd, name, prefix + name, here)
                if entry is None:
                    continue
                is_leaf = entry.type != DIRECTORY or only is not None or (one_file_system and entry.dev != top.dev)
                found = tags.find(fd, name) if tags and not is_leaf else []
                if found and on_tagged is not None:
                    on_tagged(entry.path)
                yield entry
                if is_leaf:
                    continue
                try:
                    descent.enter(name)
                except OSError as error:
                    on_error(entry.path, error)
                    continue
                if one_file_system and descent.device != top.dev:
                    descent.leave()  # mounted between the look and the opening
                    continue
                waiting.append(iter(found or reader.travelling(_names(descent, on_error), descent.path)))
                break
            else:
                waiting.pop()
                while waiting and not _leave(descent, on_error):
                    waiting.pop()
    finally:
        descent.close()
        os.close(root_fd)


class _Reader:
    """Reads entries, leaves out what the filters hide, and reports what cannot be read."""

    def __init__(
        self,
        filters: Filters | None,
        side: str,
        xattrs: bool,
        on_staging: Callable[[bytes], None] | None,
        on_error: OnError,
    ) -> None:
        self._filters = filters or None  # no rule hides nothing
        self._side = side
        self._xattrs = xattrs
        self._on_staging = on_staging
        self._on_error = on_error

    def travelling(self, names: list[bytes], folder: bytes) -> list[bytes]:
        """Leave out a directory's staging folders, and what no other system can take. The names are sorted."""
        if names and len(max(names, key=len)) > min(NAME_MAX, PATH_LIMIT - len(folder) - 1):
            names = self._short(names, folder)
        if self._on_staging is None:
            return names
        at = bisect.bisect_left(names, STAGING)
        if at == len(names) or not names[at].startswith(STAGING):
            return names
        kept = []
        for name in names:
            if not is_staging(name):
                kept.append(name)
            elif self._allows(join(folder, name), True):
                self._on_staging(join(folder, name))
        return kept

    def _short(self, names: list[bytes], folder: bytes) -> list[bytes]:
        """Report the names that are longer than a name or a path may be, and return the others."""
        kept = []
        for name in names:
            path = join(folder, name)
            if len(name) <= NAME_MAX and len(path) <= PATH_LIMIT:
                kept.append(name)
            elif self._allows(path, False) or self._allows(path, True):
                what, most = (name, NAME_MAX) if len(name) > NAME_MAX else (path, PATH_LIMIT)
                kind = "name" if what is name else "path"
                reason = f"its {kind} has {len(what)} bytes, and {most} are the most. Give it a shorter one"
                self._on_error(path[:_SHOWN], OSError(errno.ENAMETOOLONG, reason))
        return kept

    def read(self, parent_fd: int, name: bytes, path: bytes, here: object = None) -> Entry | None:
        try:
            entry = stat_entry(parent_fd, name, path, self._xattrs, here)
        except OSError as error:
            return self._without_xattrs(parent_fd, name, path, error)
        if self._filters is not None and not self._allows(path, entry.type == DIRECTORY):
            return None
        return entry

    def _without_xattrs(self, parent_fd: int, name: bytes, path: bytes, error: OSError) -> Entry | None:
        """Report what went wrong with a name, and read it without its attributes where only those failed."""
        entry = None
        if self._xattrs and not isinstance(error, FileNotFoundError):
            with contextlib.suppress(OSError):
                entry = stat_entry(parent_fd, name, path)
        # Nobody misses what the rules hide; without an entry it is not known which of them apply.
        kinds = (False, True) if entry is None else (entry.type == DIRECTORY,)
        if not all(self._allows(path, is_dir) for is_dir in kinds):
            return None
        self._on_error(path, error)
        return entry

    def _allows(self, path: bytes, is_dir: bool) -> bool:
        return self._filters is None or not path or self._filters.allows(path, is_dir, self._side)


def _names(descent: Descent, on_error: OnError) -> list[bytes]:
    try:
        return descent.names()
    except OSError as error:
        on_error(descent.path, error)
        return []


def _leave(descent: Descent, on_error: OnError) -> bool:
    """Go up; False if the directory above cannot be read on."""
    try:
        descent.leave()
    except OSError as error:
        on_error(descent.path, error)
        return False
    return True
