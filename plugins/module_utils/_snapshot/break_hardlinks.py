# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take out of an unfinished tree what is hard-linked into older snapshots. Private to the collection.

A file that an interrupted run linked to the snapshot before is one file in both. If the source changed since, a
transfer that goes on might set the mode or time of that file, and so change a snapshot that is complete. Without these
links the transfer makes them again where nothing changed, which costs no data; what it had really sent stays.
"""

from __future__ import annotations

import contextlib
from typing import Iterator

from .._model.entry import DIRECTORY, Entry
from .._tree.dirfd import Root
from .._tree.walk import walk


def break_hardlinks(data_fd: int, base_fd: int | None, *, check: bool = False) -> bool:
    """Unlink every name of the tree whose file has names elsewhere, too; says whether there were any.

    With ``check`` they are only looked for. ``base_fd`` is the tree that names were linked to, if it is still there.
    What is linked only within the tree stays: memory is needed for those alone. Raises OSError if the tree cannot be
    read or written.
    """
    found = False
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(Root(data_fd))
        base = None if base_fd is None else stack.enter_context(Root(base_fd))
        for entry in _linked(data_fd) if base is not None else ():
            other = None if base is None else base.lstat(entry.path)
            if other is not None and (other.dev, other.ino) == entry.link_id:
                found = True
                if check:
                    return True
                tree.remove(entry.path)
        counts: dict[tuple[int, int] | None, int] = {}
        for entry in _linked(data_fd):
            counts[entry.link_id] = counts.get(entry.link_id, 0) + 1
        for entry in _linked(data_fd) if counts else ():
            left = counts.get(entry.link_id, 0)
            if left < entry.nlink:
                found = True
                if check:
                    return True
                counts[entry.link_id] = left - 1  # as the file has one name fewer now
                tree.remove(entry.path)
    return found


def _linked(data_fd: int) -> Iterator[Entry]:
    def fail(_path: bytes, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return (entry for entry in walk(data_fd, on_error=fail) if entry.link_id is not None and entry.type != DIRECTORY)
