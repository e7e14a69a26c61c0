# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ranges are written to: a large file on its way, its old version, or the small files of a shard."""

from __future__ import annotations

from typing import Sequence

from ..._core.memory_file import MemoryFile
from ..wire.ranges import Range, missing


class IncomingFile:
    """An open file of a known size, to which several threads write. All of its methods may raise OSError."""

    fd: int
    size: int
    folder_fd = -1  # of the folder that it is in, where it has a name
    name = b""
    fresh = True  # everything that is not written reads as zeros
    is_cloned = False  # everything that is not written is what the old version has there
    have: Sequence[Range] = ()  # what is there already

    def begin_with(self, basis: int) -> None:
        """Begin with the whole of the old version, an open file; nothing to do where it is there already."""

    def take_same(self, basis: int, offset: int, count: int) -> None:
        """Take a stretch from the old version, an open file; nothing to do where it is there already."""

    def note(self, start: int, end: int) -> None:
        """A range was written."""

    def note_all_but(self, _bad: list[Range]) -> bool:
        """Let a rerun begin with all but these ranges; False if it cannot."""
        return False

    def sync(self) -> None:
        """Let what was noted reach the disk, where a journal says so then."""

    def close(self, complete: bool) -> None:
        """Close the descriptors."""
        raise NotImplementedError

    def remove(self) -> None:
        """Remove what is there of it."""
        raise NotImplementedError


class IncomingBundle(IncomingFile):
    """The small files of a shard, one behind the other in memory: ``size`` bytes."""

    def __init__(self, size: int, folder: str) -> None:
        self._memory = MemoryFile(folder)
        self.fd, self.size = self._memory.fd, size
        self._written: list[Range] = []

    def note(self, start: int, end: int) -> None:
        """A range was written; it may have been before, as a part of another one."""
        self._written.append((start, end))

    @property
    def is_whole(self) -> bool:
        """Whether everything was written."""
        return not missing(self._written, self.size)

    def read(self) -> bytes:
        """Return all of it."""
        return self._memory.read_all(self.size)

    def close(self, complete: bool = True) -> None:  # noqa: ARG002 - as a Partial has it
        """Free the memory."""
        self._memory.close()

    def remove(self) -> None:
        """Free the memory."""
        self.close()
