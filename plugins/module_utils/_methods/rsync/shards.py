# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divide a tree among several rsyncs.

Files go to lists as the walk finds them, each to the list that has the least work so far; the big ones wait, and are
dealt out at the end, largest first. So nothing but the big files and the hard link groups is held in memory. All
names of one file go to one list: rsync sees hard links only within a run. Directories have a list of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import BinaryIO, Callable, Iterable, Iterator, NamedTuple

from ..._core.settings import Settings
from ..._model.entry import DIRECTORY, REGULAR
from ..._model.filters import Filters
from ..._tree.dirfd import Root
from ..._tree.holes import count_holes
from ..._tree.walk import walk

BIG = 64 << 20  # bytes: a file that can unbalance the lists
ENTRY_COST = 64 << 10  # bytes that could be sent in the time that an entry takes beside its contents


class SourceEntry(NamedTuple):
    """An entry of the source, as far as dividing it into shards needs it."""

    path: bytes  # below the root; the root itself is b""
    is_directory: bool
    size: int
    link: tuple[int, int] | None = None  # what all names of a file share
    holes: int = 0  # bytes of the size


class Lists(NamedTuple):
    """The files with the lists: NUL-separated names for --files-from."""

    directories: str
    shards: list[str]  # those that are not empty
    files: int
    bytes: int
    holes: int = 0  # bytes of these


def encode_lists(lists: Lists) -> bytes:
    """Return the lists, for the peer; their files stay where they are."""
    values = {"shards": [os.path.basename(path) for path in lists.shards], "files": lists.files, "bytes": lists.bytes}
    values["holes"] = lists.holes
    return json.dumps(values).encode() + b"\n"


def decode_lists(data: bytes, folder: str) -> Lists:
    """Read what the peer says; its lists are named as in ``folder`` there. Raise ValueError if it is cut."""
    try:
        values = json.loads(data)
        shards = [f":{folder}/{name}" for name in values["shards"] if re.fullmatch(r"shard-\d+", name)]
        size, holes = max(0, int(values["bytes"])), max(0, int(values.get("holes", 0)))
        return Lists(f":{folder}/directories", shards, int(values["files"]), size, min(size, holes))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"the source did not say how it is divided: {error}") from None


def for_files_from(path: bytes) -> bytes:
    """Write a name for --files-from: without the prefix rsync skips names that start with # or ; silently."""
    return b"./" + path + b"\0"


def divide(entries: Iterable[SourceEntry], count: int, folder: str) -> Lists:
    """Write the lists into ``folder``, for up to ``count`` runs at the same time."""
    directories = os.path.join(folder, "directories")
    paths = [os.path.join(folder, f"shard-{number}") for number in range(count)]
    with contextlib.ExitStack() as stack:
        streams: list[BinaryIO] = [stack.enter_context(open(path, "wb")) for path in paths]
        directory_stream = stack.enter_context(open(directories, "wb"))
        work, files, size, holes = _deal(entries, streams, directory_stream)
    return Lists(directories, [path for path, share in zip(paths, work) if share], files, size, holes)


def _deal(
    entries: Iterable[SourceEntry], streams: list[BinaryIO], directories: BinaryIO
) -> tuple[list[int], int, int, int]:
    work = [0] * len(streams)
    placed: dict[tuple[int, int], int] = {}  # hard link group: its list
    big: list[SourceEntry] = []
    files = size = holes = 0

    def place(entry: SourceEntry, cost: int) -> int:
        shard = work.index(min(work))
        work[shard] += cost
        streams[shard].write(for_files_from(entry.path))
        return shard

    for entry in entries:
        if entry.is_directory:
            directories.write(for_files_from(entry.path))
            continue
        files += 1
        size += entry.size
        holes += entry.holes
        if entry.link is not None and entry.link in placed:
            shard = placed[entry.link]
            work[shard] += ENTRY_COST
            streams[shard].write(for_files_from(entry.path))
        elif entry.link is not None:
            placed[entry.link] = place(entry, entry.size + ENTRY_COST)
        elif entry.size >= BIG:
            big.append(entry)
        else:
            place(entry, entry.size + ENTRY_COST)
    for entry in sorted(big, key=lambda found: -found.size):
        place(entry, entry.size + ENTRY_COST)
    return work, files, size, holes


def list_source(
    root: bytes,
    settings: Settings,
    on_staging: Callable[[bytes], None] = lambda _path: None,
    top: bytes | int | None = None,
) -> Iterator[SourceEntry]:
    """Yield what the plan lets through, directories before their contents; what cannot be read is rsync's to report.

    ``top``: the root, where it is open already. Raises ValueError for a filter rule that only rsync itself can follow.
    """
    filters = Filters.parse(settings["rules"])
    only = os.fsencode(settings["only"]) if settings["only"] is not None else None
    found = walk(
        root if top is None else top,
        filters=filters,
        one_file_system=settings["one_file_system"],
        only=only,
        on_staging=on_staging,
        on_error=lambda _path, _error: None,
    )
    with Root(root if top is None else top) as tree:
        for entry in found:
            content = count_holes(tree, entry).content if entry.has_large_holes else entry.size
            size, content = (entry.size, content) if entry.type == REGULAR else (0, 0)
            yield SourceEntry(entry.path, entry.type == DIRECTORY, size, entry.link_id, size - content)
