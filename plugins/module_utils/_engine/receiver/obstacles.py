# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories with contents where the source has something else.

What is in such a directory is deleted as all deletions are: at the end, where the options allow it, counted, and never
what the filter rules protect. What replaces the directory is made ready before, and waits until the place is free.
"""

from __future__ import annotations

import errno
from typing import Callable

from ..._model.entry import Entry
from ..._model.paths import escape
from ..._tree.dirfd import InTheWay
from .delete import Extras

_CANNOT = "cannot delete non-empty directory"
_FILLED = f"{_CANNOT}: it was filled during the transfer. Run the transfer again"


class Obstacles:
    """Knows the directories in the way, and what waits for their places.

    ``is_single``: a single file is transferred, for which nothing is deleted. ``check``: nothing is written.
    """

    def __init__(self, extras: Extras, is_single: bool, check: bool) -> None:
        self._extras, self._is_single, self._check = extras, is_single, check
        self._why: dict[bytes, str] = {}  # by directory: why it stays; empty if it may go
        self._waiting: dict[bytes, Callable[[], None]] = {}
        self._is_settled = False

    def hold(self, path: bytes) -> None:
        """Take note that the directory must be deleted before its path is something else.

        Raises InTheWay if it must stay.
        """
        if path not in self._why:
            self._why[path] = self._ask(path)
        why = self._why[path]
        if why:
            raise InTheWay(errno.ENOTEMPTY, why, escape(path))

    def _ask(self, path: bytes) -> str:
        if self._is_single:
            return f"{_CANNOT}: the source has a file here. Move the directory away"
        if not self._extras.finds:
            return f"{_CANNOT}: the source has something else here. Set delete: true, or move the directory away"
        if self._is_settled:
            return _FILLED
        if path in self._extras.mounts:
            return f"{_CANNOT}: another file system is mounted here, and the source has a file. Unmount it"
        if not self._extras.obstruct(path):
            return (
                f"{_CANNOT}: the source has something else here, and the filter rules protect what is in it. Move that "
                "away, or change the rules"
            )
        return ""

    def holds(self, path: bytes) -> bool:
        """Return whether a directory at the path is still to be deleted."""
        return path in self._why and not self._is_settled

    def is_gone(self, path: bytes) -> bool:
        """Return whether check mode, which deletes nothing, must take the directory as deleted."""
        return self._check and self._is_settled and self._why.get(path) == ""

    def wait(self, entry: Entry, action: Callable[[], None]) -> None:
        """Call ``action`` when the place of the entry is free. Raise InTheWay if it will not be."""
        self.hold(entry.path)
        if self._is_settled:
            raise InTheWay(errno.ENOTEMPTY, _FILLED, escape(entry.path))
        self._waiting[entry.path] = action

    def settle(self) -> list[tuple[bytes, Callable[[], None]]]:
        """Take note that what may be deleted is deleted. Return what waited, in the order in which it came."""
        for path in self._why:
            if path in self._extras.kept:
                self._why[path] = f"{_CANNOT}: {self._extras.kept[path]}"
        self._is_settled = True
        waiting, self._waiting = self._waiting, {}
        return list(waiting.items())
