# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count what several runs of rsync did as if it had been one."""

from __future__ import annotations

import collections
import threading
import time

from ..._core.context import Progress
from ..._core.outcome import Outcome
from ..._model.paths import escape
from .output import Item

REMEMBERED = 200_000  # entries of a broken run: more than any pipeline between two hosts holds


class Tally:
    """Adds items and bytes of runs, in turn and at the same time, to one outcome and one progress."""

    def __init__(self, outcome: Outcome, progress: Progress, changes_max: int) -> None:
        self.outcome = outcome
        self.active_at = time.monotonic()  # when anything happened last
        self.activity = 0  # grows with everything that happens
        self._progress, self._changes_max = progress, changes_max
        self._lock = threading.Lock()
        self._bytes: dict[int, int] = {}  # of each run that is under way or over
        self._recent: collections.deque[int] = collections.deque(maxlen=REMEMBERED)
        self._again: set[int] = set()  # listed by a run that broke; its successor may list them once more

    def item(self, item: Item, ignore_directory_times: bool = False) -> None:
        """Count one itemized entry."""
        with self._lock:
            self._alive()
            self._progress.current = path = escape(item.path) if item.path else "."
            if ignore_directory_times and item.is_directory and item.only_time:
                return
            identity = hash((item.path, item.kind == "deleted"))
            if identity in self._again:
                return
            self._recent.append(identity)
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
            self._progress.bytes_done = sum(self._bytes.values())
            self._progress.files_done = done
            self._progress.files_total = max(self._progress.files_total, total)

    def broken(self, run: int) -> None:
        """A run ended before its time: bytes that it sent are counted, its last entries may come once more."""
        with self._lock:
            self._again.update(self._recent)
            self.outcome.bytes_sent += self._bytes.get(run, 0)

    def completed(self, run: int, statistics: dict[str, int], dry: bool) -> None:
        """A run came to its end: take its own figures of what it sent."""
        literal = statistics.get("Total transferred file size" if dry else "Literal data", 0)
        with self._lock:
            self._bytes[run] = statistics.get("Total transferred file size", 0)
            sent_before = self.outcome.bytes_sent
            self.outcome.bytes_sent += literal
            # What an earlier run of ours sent is no find at the destination.
            found = statistics.get("Matched data", 0)
            found = max(0, found - sent_before) if self._again else found
            self.outcome.bytes_matched += found
            self.outcome.bytes_from_basis += found

    def totals(self, statistics: dict[str, int]) -> None:
        """Take what the whole tree holds from the run that saw all of it."""
        self.outcome.files_total = statistics.get("Number of files", 0)
        self.outcome.bytes_total = statistics.get("Total file size", 0)

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
