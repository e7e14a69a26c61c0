# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Staging on file systems that are mounted inside a destination. Private to the collection.

Nothing can be renamed or linked from one mount to another, not even where a folder of the same file system is mounted
once more, nor from one subvolume to another. So what goes there is staged there.
"""

from __future__ import annotations

import contextlib
import os
from typing import Collection

from .._core.context import staging_name
from .._core.mounts import place_of
from .._model.paths import escape
from .dirfd import Root
from .staging import Staging, note_mount


class InnerStaging:
    """The staging folders of one process inside a destination, opened when they are first needed. Close it when done.

    ``temporary_fd``: the open folder ``tmp`` of the destination itself, beside which each is noted, so that a rerun and
    a clean-up find it. ``top``: the destination's path, for messages.
    """

    def __init__(self, root: Root, temporary_fd: int, top: bytes, transfer_id: str, owners: Collection[int]) -> None:
        self._root, self._temporary_fd, self._top = root, temporary_fd, top
        self._name, self._owners = os.fsencode(staging_name(transfer_id)), owners
        self._home: tuple[int, int] | None = None
        self._open: dict[tuple[int, int], Staging] = {}

    @property
    def is_used(self) -> bool:
        """Whether there are any."""
        return bool(self._open)

    def at(self, path: bytes, folder_fd: int) -> Staging | None:
        """Return the staging folders for an open folder at a path; None if those of the destination will do.

        Raises OSError if nothing may be written, and TransferFailed for folders that are not this user's own.
        """
        if self._home is None:
            self._home = place_of(self._temporary_fd)
        place = place_of(folder_fd)
        if place == self._home:
            return None
        if place not in self._open:
            self._open[place] = self._make(path, place)
        return self._open[place]

    def _make(self, path: bytes, place: tuple[int, int]) -> Staging:
        """Make them in the root of the mount, or in the first folder on the way to ``path`` that may be written to."""
        refusal: OSError | None = None
        parts = path.split(b"/")
        for above in [b"/".join(parts[:end]) for end in range(1, len(parts) + 1)]:
            fd = self._root.open_directory(above)
            try:
                if place_of(fd) != place:
                    continue
                made = Staging(os.path.join(self._top, above), self._name, self._owners, fd)
                note_mount(self._temporary_fd, escape(above))
                return made
            except PermissionError as error:
                refusal = refusal or error
            finally:
                os.close(fd)
        raise refusal or FileNotFoundError(os.strerror(2))

    def close(self) -> None:
        """Close what is open; the folders stay until the job settles them."""
        for staging in self._open.values():
            with contextlib.suppress(OSError):
                staging.close()
        self._open.clear()
