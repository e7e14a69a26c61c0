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
import time
from typing import Collection, Iterable, Optional, Tuple

from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..._tree.inode import may_have_writer
from ..content import delta
from ..content.delta import Blocks, Hashes
from ..wire.frames import FrameError
from ..wire.ranges import Range, merged

Places = Iterable[Tuple[Root, Optional[Entry]]]
_COARSE_NS = 10**6  # a time that is a multiple of it is one of a file system that keeps no finer ones
_RECENT_NS = 2 * 10**9  # the clock of files ticks more slowly than a processor writes


class Basis:
    """An open file, whose descriptor it owns, as a basis for one of ``size`` bytes. Raise OSError if it has no block.

    ``hashes``: how the source can hash, see ``delta.blocks_of``.
    """

    def __init__(self, fd: int, size: int, hashes: Collection[str]) -> None:
        self.fd = fd
        self._before = os.fstat(fd)
        # After that look: whoever opens it later cannot write without a change of its ctime.
        self._is_quiet = _shows_changes(self._before.st_ctime_ns) and not may_have_writer(fd)
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
        """Return whether certainly nobody wrote to it meanwhile; another name, too, counts as a change."""
        was, now = self._before, os.fstat(self.fd)
        same = (was.st_size, was.st_mtime_ns, was.st_ctime_ns) == (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        return self._is_quiet and same

    def differing(self, fd: int, taken: Iterable[Range], hasher: delta.Hasher) -> list[Range]:
        """Return which stretches that were taken from it into an open file do not have the hashes that were told.

        ``taken`` are whole blocks. Raises OSError.
        """
        blocks = self.blocks
        runs = [run for start, end in merged(taken) for run in blocks.stretches(blocks.inside(start, end))]
        found: list[Range] = []
        with contextlib.closing(hasher.hashes(fd, blocks, runs)) as hashed:
            for run, now in hashed:
                first = run.start - run.start % blocks.stretch
                told = self._hashes[first]
                for number in run:
                    at, there = number - run.start, number - first
                    if now.one(at) != told.one(there):
                        found.append((number * blocks.size, (number + 1) * blocks.size))
        return merged(found)

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


def _shows_changes(ctime_ns: int) -> bool:
    """Return whether a change from now on gives a file another ctime: where these are fine, and its own is not new."""
    return bool(ctime_ns % _COARSE_NS) and time.time_ns() - ctime_ns > _RECENT_NS


def find_basis(entry: Entry, places: Places, hashes: Collection[str]) -> Basis | None:
    """Open the file below the first root with one that has a block.

    With each root comes the file that was looked at there; None: that of the entry's path. ``hashes``: how the source
    can hash, see ``delta.blocks_of``.
    """
    for root, expected in places:
        with contextlib.suppress(OSError):
            path = entry.path if expected is None else expected.path
            return Basis(root.open_file(path, expected), entry.size, hashes)
    return None
