# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An old version of a large file, from which blocks are taken: the destination's own, or one in a ``link_dest`` folder.

It is only read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import Collection, Iterable

from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..content import delta
from ..content.delta import Blocks, Hashes
from ..wire.frames import FrameError


class Basis:
    """An open file, whose descriptor it owns, as a basis for one of ``size`` bytes. Raise OSError if it has no block.

    ``hashes``: how the source can hash, see ``delta.blocks_of``.
    """

    def __init__(self, fd: int, size: int, hashes: Collection[str]) -> None:
        self.fd = fd
        self._before = os.fstat(fd)
        old_size = self._before.st_size
        self.blocks: Blocks = delta.blocks_of(old_size, size, hashes)
        if not self.blocks.total:
            os.close(fd)
            raise OSError(errno.EINVAL, "the old version is too small")
        self._hashes: dict[int, Hashes] = {}  # by the first block of a stretch
        if hasattr(os, "O_NOATIME"):
            with contextlib.suppress(OSError):  # another user's file
                fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NOATIME)

    def is_as_it_was(self) -> bool:
        """Whether nobody wrote to it meanwhile."""
        was, now = self._before, os.fstat(self.fd)
        if (was.st_size, was.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
            return False
        return was.st_ctime_ns == now.st_ctime_ns or was.st_nlink != now.st_nlink  # a name was added, or removed

    def note(self, numbers: range, hashes: Hashes) -> None:
        """Keep what the source must prove to know. Other threads may read it."""
        self._hashes[numbers.start] = hashes

    def check(self, offset: int, length: int, proof: bytes) -> None:
        """Raise FrameError unless a stretch is one of blocks whose hashes were told, and are known as a whole."""
        numbers = self.blocks.inside(offset, offset + length)
        if not length or (offset, length) != (numbers.start * self.blocks.size, len(numbers) * self.blocks.size):
            raise FrameError("a file refers to what an old version does not have")
        rests: list[bytes] = []
        for run in self.blocks.stretches(numbers):
            first = run.start - run.start % self.blocks.stretch
            hashes = self._hashes.get(first)
            found = hashes.rests[run.start - first : run.stop - first] if hashes is not None else []
            if len(found) != len(run):
                raise FrameError("a file refers to what an old version does not have")
            rests += found
        if self.blocks.prove(rests) != proof:
            raise FrameError("a file refers to blocks of an old version that its source does not know")

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


def find_basis(entry: Entry, places: Iterable[tuple[Root, Entry | None]], hashes: Collection[str]) -> Basis | None:
    """Open the file of an entry's path that is below the first root with one that has a block.

    With each root comes the file that was looked at there, if one was. ``hashes``: how the source can hash, see
    ``delta.blocks_of``.
    """
    for root, expected in places:
        with contextlib.suppress(OSError):
            return Basis(root.open_file(entry.path, expected), entry.size, hashes)
    return None
