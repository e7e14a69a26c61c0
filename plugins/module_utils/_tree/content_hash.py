# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hash the contents of a tree's files, several at a time. Private to the collection."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Union

from .._core.files import ALGORITHMS, BUFFER, hash_and_close, new_hash
from .._model.entry import REGULAR, Entry
from .._model.paths import escape
from .dirfd import Root

if TYPE_CHECKING:
    from .._core.context import Progress

_BATCH_FILES, _BATCH_BYTES = 64, 1 << 20  # what makes a task for a thread: a lot of small files, or one large
_PROBE_BYTES = 8 << 20

Content = Union[bytes, OSError]


class ReadMeter:
    """Counts what several threads read of files, while they read: one file may take hours."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()

    def begin(self, path: bytes) -> None:
        """Name the file that is read now."""
        self._progress.current = escape(path)

    def count(self, size: int) -> None:
        """Count bytes that were read."""
        with self._lock:
            self._progress.moved(size)


def speeds() -> dict[str, float]:
    """Measure how many bytes a second this processor hashes with each algorithm; takes about 30 ms."""
    data = bytes(_PROBE_BYTES)
    found = {}
    for name in ALGORITHMS:
        started = time.perf_counter()
        new_hash(name).update(data)
        found[name] = _PROBE_BYTES / (time.perf_counter() - started)
    return found


def common_algorithm(*ends: dict[str, float]) -> str:
    """Choose from the :func:`speeds` of all ends the algorithm that is fastest where it is slowest."""
    return max(ALGORITHMS, key=lambda name: min(end.get(name, 0.0) for end in ends))


def hash_file(
    root: Root, path: bytes, algorithm: str, buffer: bytearray | None = None, meter: ReadMeter | None = None
) -> bytes:
    """Hash a regular file below a root, 32 bytes. Raises OSError; never follows a symlink, never opens a device."""
    if meter is None:
        return hash_and_close(root.open_file(path), algorithm, buffer)
    meter.begin(path)
    return hash_and_close(root.open_file(path), algorithm, buffer, meter.count)


def with_contents(
    entries: Iterable[Entry],
    root: bytes | int,
    algorithm: str,
    workers: int = 2,
    known: Callable[[Entry], bytes] | None = None,
    meter: ReadMeter | None = None,
) -> Iterator[tuple[Entry, Content]]:
    """Yield each entry with the hash of its contents: ``b""`` if it has none, the OSError if it cannot be read.

    The order stays. Files are read by ``workers`` threads (hashing and reading release Python's lock), a bounded
    number ahead of the one that is given. ``root`` is a path or the fd of an open directory. ``known`` is asked for
    every entry, once and in order, by the thread that takes the results; a file for which it gives a hash is not read.
    ``meter`` counts what is read.
    """
    local = threading.local()
    roots: list[Root] = []

    def run(batch: list[tuple[Entry, bytes]]) -> list[tuple[Entry, Content]]:
        if not hasattr(local, "root"):
            local.root, local.buffer = Root(root), bytearray(BUFFER)
            roots.append(local.root)
        return [(entry, found or _content(local.root, entry, algorithm, local.buffer, meter)) for entry, found in batch]

    pool = ThreadPoolExecutor(max_workers=workers)
    under_way: deque[Future[list[tuple[Entry, Content]]]] = deque()
    try:
        for batch in _batches(entries, known):
            under_way.append(pool.submit(run, batch))
            if len(under_way) > 2 * workers:
                yield from under_way.popleft().result()
        while under_way:
            yield from under_way.popleft().result()
    finally:
        for waiting in under_way:
            waiting.cancel()
        pool.shutdown()
        for opened in roots:
            opened.close()


def _content(root: Root, entry: Entry, algorithm: str, buffer: bytearray, meter: ReadMeter | None) -> Content:
    if entry.type != REGULAR:
        return b""
    try:
        return hash_file(root, entry.path, algorithm, buffer, meter)
    except OSError as error:
        return error


def _batches(entries: Iterable[Entry], known: Callable[[Entry], bytes] | None) -> Iterator[list[tuple[Entry, bytes]]]:
    batch: list[tuple[Entry, bytes]] = []
    size = 0
    for entry in entries:
        found = b"" if known is None else known(entry)
        batch.append((entry, found))
        size += 0 if found else entry.size
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
