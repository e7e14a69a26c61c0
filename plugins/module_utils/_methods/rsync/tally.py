# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count what several runs of rsync did as if it had been one."""

from __future__ import annotations

import collections
import threading
import time
from typing import Callable

from ..._core.context import Progress
from ..._core.outcome import Outcome
from ..._model.paths import escape
from .output import Item

REMEMBERED = 200_000  # entries of a broken run: more than any pipeline between two hosts holds


class Tally:
    """Adds items and bytes of runs, in turn and at the same time, to one outcome and one progress."""

    def __init__(
        self, outcome: Outcome, progress: Progress, changes_max: int, holes: Callable[[Item], int] = lambda _item: 0
    ) -> None:
        """``holes`` tells how many bytes of a sent file are holes. rsync sends these as zeros, and counts them."""
        self.outcome = outcome
        self.active_at = time.monotonic()  # when anything happened last
        self.activity = 0  # grows with everything that happens
        self._progress, self._changes_max = progress, changes_max
        self._holes_of = holes
        self._holes, self._transferred, self._literal = 0, 0, 0  # bytes: of files that were sent, of these and in these
        self._listed = (0, 0)  # bytes of the source, and how many of these are holes
        self._lock = threading.Lock()
        self._bytes: dict[int, int] = {}  # of each run that is under way or over
        self._recent: collections.deque[int] = collections.deque(maxlen=REMEMBERED)
        self._again: set[int] = set()  # listed by a run that broke; its successor may list them once more

    def item(self, item: Item, ignore_directory_times: bool = False) -> None:
        """Count one itemized entry."""
        holes = self._holes_of(item) if item.is_sent else 0
        with self._lock:
            self._alive()
            self._progress.current = path = escape(item.path) if item.path else "."
            if ignore_directory_times and item.is_directory and item.only_time:
                return
            identity = hash((item.path, item.kind == "deleted"))
            if identity in self._again:
                return
            self._recent.append(identity)
            self._holes += holes
            self._count(item.kind)
            self.outcome.change(
                f"{item.flags} {path}{'/' if item.is_directory and item.path else ''}", self._changes_max
            )

    def moved(self, run: int, transferred: int, done: int, total: int) -> None:
        """Take note how far one run is: bytes that went by, entries checked, entries known so far."""
        with self._lock:
            if self._bytes.get(run) != transferred or done != self._progress.files_done:
                self._alive()
            self._bytes[run] = transferred
            self._count_done()
            self._progress.files_done = done
            self._progress.files_total = max(self._progress.files_total, total)

    def broken(self, run: int) -> None:
        """A run ended before its time: bytes that it sent are counted, its last entries may come once more."""
        with self._lock:
            self._again.update(self._recent)
            self._count_sent(self._bytes.get(run, 0), self._bytes.get(run, 0), self._bytes.get(run, 0))

    def completed(self, run: int, statistics: dict[str, int], packed: int | None = None) -> None:
        """A run came to its end: take its own figures of what it sent. ``packed``: bytes on the wire, if compressed."""
        literal = statistics.get("Literal data", 0)
        with self._lock:
            self._bytes[run] = transferred = statistics.get("Total transferred file size", 0)
            sent_before = self._literal
            self._count_sent(transferred, literal, literal if packed is None else min(literal, packed))
            # What an earlier run of ours sent is no find at the destination.
            found = statistics.get("Matched data", 0)
            found = max(0, found - sent_before) if self._again else found
            self.outcome.bytes_matched += found
            self.outcome.bytes_from_basis += found

    def predicted(self, statistics: dict[str, int]) -> None:
        """A trial run came to its end: take what it would send."""
        size = statistics.get("Total transferred file size", 0)
        with self._lock:
            self._count_sent(size, size, size)

    def listed(self, files: int, size: int, holes: int) -> None:
        """Take what the source holds, as a list of it says."""
        with self._lock:
            self._listed = size, holes
            self._progress.files_total, self._progress.bytes_total = files, size - holes
            self._progress.bytes_apparent = size
            self._count_done()

    def totals(self, statistics: dict[str, int]) -> None:
        """Take what the whole tree holds from the run that saw all of it."""
        self.outcome.files_total = statistics.get("Number of files", 0)
        self.outcome.bytes_apparent = statistics.get("Total file size", 0)
        self.outcome.bytes_total = max(0, self.outcome.bytes_apparent - self._listed[1])
        self.outcome.bytes_content = min(self.outcome.bytes_content, self.outcome.bytes_total)

    def _count_sent(self, transferred: int, literal: int, packed: int) -> None:
        self._transferred += transferred
        self._literal += literal
        self.outcome.bytes_content = min(self._literal, max(0, self._transferred - self._holes))
        self.outcome.bytes_sent += packed
        self._progress.bytes_sent = self.outcome.bytes_sent

    def _count_done(self) -> None:
        """Count what went by, with holes, in proportion as contents without holes."""
        done, (size, holes) = sum(self._bytes.values()), self._listed
        self._progress.bytes_done = done * (size - holes) // size if holes else done

    def _alive(self) -> None:
        self.activity += 1
        self.active_at = time.monotonic()

    def _count(self, kind: str) -> None:
        if kind == "created":
            self.outcome.files_created += 1
        elif kind == "updated":
            self.outcome.files_updated += 1
        elif kind == "deleted":
            self.outcome.files_deleted += 1
        else:
            self.outcome.attributes_changed += 1
