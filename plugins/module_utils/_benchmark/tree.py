# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count a tree within a time, choose files of it that are read for a measurement, and take a sample of their contents.

A tree that cannot be counted in its time is extrapolated: the walk is in the order of names, so the place of the last
entry among its siblings, and of their folders among theirs, says which part of the tree came before it.
"""

from __future__ import annotations

import os
import random
import time
import zlib
from typing import TYPE_CHECKING, Callable, NamedTuple, Sequence

from .._core.disk_full import find_room
from .._core.time_accounting import WorkClock
from .._model.entry import REGULAR, Entry
from .._model.filters import Filters
from .._tree.dirfd import Root
from .._tree.holes import count_holes
from .._tree.walk import walk

if TYPE_CHECKING:
    from typing import TypedDict

    class TreeCount(TypedDict):
        """Size of a tree."""

        entries: int
        files: int
        bytes_apparent: int
        bytes_on_disk: int
        large_bytes: int  # of bytes_on_disk, in files of at least LARGE bytes
        is_complete: bool  # else it is extrapolated

else:
    TreeCount = dict

LARGE = 1 << 20  # bytes from which a file counts as large
SMALL = 64 << 10  # bytes up to which a file counts as small
SAMPLE_BYTES = 8 << 20
_PIECE = 128 << 10  # bytes of a file for the sample, unless there are few files
_MOST_CHOSEN = 4000  # files of each size that are remembered to be read
_LEAST_PART = 1e-6  # of a tree that was seen: less says nothing


class ChosenFile(NamedTuple):
    """A file to read."""

    path: bytes
    size: int


class Survey(NamedTuple):
    """A tree, as far as it was walked."""

    counted: TreeCount
    rate: float  # entries a second
    large: list[ChosenFile]  # in random order, as the next
    small: list[ChosenFile]
    unreadable: int  # entries


class _Chosen:
    """Keeps a random choice of the files that it is shown, each with the same chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._seen = chance, 0
        self.files: list[ChosenFile] = []

    def show(self, entry: Entry) -> None:
        self._seen += 1
        if len(self.files) < _MOST_CHOSEN:
            self.files.append(ChosenFile(entry.path, entry.size))
            return
        place = self._chance.randrange(self._seen)
        if place < _MOST_CHOSEN:
            self.files[place] = ChosenFile(entry.path, entry.size)


def survey(root: int, rules: Sequence[str], one_file_system: bool, seconds: float, only: bytes | None = None) -> Survey:
    """Walk an open tree, or ``only`` this name in it, for ``seconds`` at most. Raises FilterError for odd rules."""
    chance = random.Random(0)
    large, small = _Chosen(chance), _Chosen(chance)
    found: TreeCount = {
        "entries": 0,
        "files": 0,
        "bytes_apparent": 0,
        "bytes_on_disk": 0,
        "large_bytes": 0,
        "is_complete": True,
    }
    linked: set[object] = set()
    unreadable: list[bytes] = []
    last = b""
    started, clock = time.monotonic(), WorkClock()
    with Root(root) as tree:
        entries = walk(
            root,
            filters=Filters.parse(rules) if rules else None,
            one_file_system=one_file_system,
            only=only,
            on_staging=lambda _path: None,
            on_error=lambda path, _error: unreadable.append(path),
        )
        for entry in entries:
            found["entries"] += 1
            last = entry.path
            if entry.type == REGULAR and (entry.link_id is None or entry.link_id not in linked):
                if entry.link_id is not None:
                    linked.add(entry.link_id)
                content = count_holes(tree, entry).content
                found["files"] += 1
                found["bytes_apparent"] += entry.size
                found["bytes_on_disk"] += content
                if content >= LARGE:
                    found["large_bytes"] += content
                    large.show(entry)
                elif 0 < entry.size <= SMALL:
                    small.show(entry)
            if found["entries"] % 64 == 0 and time.monotonic() - started > seconds:
                found["is_complete"] = False
                break
        rate = found["entries"] / clock.seconds()
        if not found["is_complete"]:
            found = extrapolate(found, part_before(last, lambda folder: _names(tree, folder)), _used_inodes(root))
    for chosen in (large, small):
        chance.shuffle(chosen.files)
    return Survey(found, rate, large.files, small.files, len(unreadable))


def part_before(path: bytes, names: Callable[[bytes], Sequence[bytes]]) -> float:
    """Return which part of a tree is walked before ``path``, if all folders beside each other hold as much.

    ``names`` returns the names in a folder of the tree.
    """
    part, width = 0.0, 1.0
    folder = b""
    for name in path.split(b"/"):
        here = sorted(names(folder))
        if name not in here:  # it is gone, or the folder cannot be read any more
            break
        width /= len(here)
        part += here.index(name) * width
        folder = folder + b"/" + name if folder else name
    return min(1.0, part)


def extrapolate(found: TreeCount, part: float, most: int) -> TreeCount:
    """Return the counts of a tree of which ``part`` was seen; ``most``: entries that it can have, 0: any. Pure."""
    factor = 1 / max(part, _LEAST_PART)
    if most and found["entries"] * factor > most:
        factor = max(1.0, most / found["entries"])
    return {
        "entries": int(found["entries"] * factor),
        "files": int(found["files"] * factor),
        "bytes_apparent": int(found["bytes_apparent"] * factor),
        "bytes_on_disk": int(found["bytes_on_disk"] * factor),
        "large_bytes": int(found["large_bytes"] * factor),
        "is_complete": False,
    }


def _names(tree: Root, folder: bytes) -> list[bytes]:
    try:
        fd = tree.open_directory(folder)
    except OSError:
        return []
    try:
        return [os.fsencode(name) for name in os.listdir(fd)]
    except OSError:
        return []
    finally:
        os.close(fd)


def _used_inodes(root: int) -> int:
    """Return how many inodes the file system has in use; 0 where it does not count them."""
    room = find_room(root)
    return max(0, (room.inodes or 0) - (room.free_inodes or 0))


def take_sample(tree: Root, large: Sequence[ChosenFile], small: Sequence[ChosenFile], share: float) -> bytes:
    """Return pieces of files, at most SAMPLE_BYTES; ``share`` of them from large files, as in the whole tree."""
    parts: list[bytes] = []
    for files, room in ((large, int(SAMPLE_BYTES * share)), (small, int(SAMPLE_BYTES * (1 - share)))):
        size = max(_PIECE, room // max(1, len(files)))
        for file in files:
            if room <= 0:
                break
            piece = _read_piece(tree, file, min(room, size))
            parts.append(piece)
            room -= max(1, len(piece))
    return b"".join(parts)


def _read_piece(tree: Root, file: ChosenFile, count: int) -> bytes:
    try:
        fd = tree.open_file(file.path)
    except OSError:
        return b""
    try:
        return os.pread(fd, count, max(0, (file.size - count) // 2))
    except OSError:
        return b""
    finally:
        os.close(fd)


def ratio_of(sample: bytes) -> float:
    """Return what is left of a sample by the quickest level of zlib, as a share of it; 1 where nothing is saved."""
    return min(1.0, len(zlib.compress(sample, 1)) / len(sample)) if sample else 1.0


def made_like(ratio: float, count: int) -> bytes:
    """Return ``count`` bytes that nobody owns and that compress to about ``ratio``."""
    block = 4096
    noise = int(block * min(1.0, max(0.0, ratio)))
    parts = [os.urandom(noise) + bytes(block - noise) for _number in range(-(-count // block))]
    return b"".join(parts)[:count]
