# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cut the stream of entries into shards. Pure but for a clock."""

from __future__ import annotations

import time
from typing import Callable, Iterable, Iterator

from ..._model.entry import REGULAR, Entry
from ..wire.messages import SHARD_ENTRIES

MAX_BYTES = 64 << 20  # of file contents. What is lost when an end is killed: so much for each stream, or one file
MAX_RECORDS = 4 << 20  # of names, targets and attributes
MAX_SECONDS = 0.5  # a slow disk's first entries must not wait for its last


def gather(
    entries: Iterable[Entry],
    max_entries: int = SHARD_ENTRIES,
    max_bytes: int = MAX_BYTES,
    clock: Callable[[], float] = time.monotonic,
    max_seconds: float = MAX_SECONDS,
    first_entries: int | None = None,
) -> Iterator[list[Entry]]:
    """Yield the entries in batches, in their order; a file of more than ``max_bytes`` is a batch of its own.

    The first one has up to ``first_entries``, by default as many as all others, each of the next twice as many.
    """
    batch: list[Entry] = []
    most = first_entries or max_entries
    size, records, since = 0, 0, clock()
    for entry in entries:
        content = entry.size if entry.type == REGULAR else 0
        if batch and (content > max_bytes or clock() - since > max_seconds):
            yield batch
            batch, size, records = [], 0, 0
        if not batch:
            since = clock()
        batch.append(entry)
        size += content
        records += len(entry.path)
        if entry.target or entry.xattrs:
            records += len(entry.target) + sum(len(key) + len(value) for key, value in entry.xattrs)
        if size >= max_bytes or records >= MAX_RECORDS or len(batch) >= most:
            yield batch
            most = min(2 * most, max_entries)
            batch, size, records = [], 0, 0
    if batch:
        yield batch
