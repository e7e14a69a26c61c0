# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two snapshots of a job, by their manifests. Private to the collection.

Both manifests are in the order of a walk, so they are read side by side. What is kept is bounded: the largest of each
kind, and the files that are new or gone, as far as there are not too many, to find those that were only renamed.
"""

from __future__ import annotations

import contextlib
import heapq
from typing import Iterator, NamedTuple

from .._model.entry import REGULAR
from .._model.entry_codec import ManifestError
from .._model.paths import escape, order
from .._tree.record import FIELDS, Describer, EntryRecord, without_attributes
from . import names
from .errors import Refused
from .manifest import ManifestReader
from .read_lock import open_to_read
from .repository import Series
from .search import check_limit, describe_record

ADDED, REMOVED, CHANGED, RENAMED, ATTRIBUTES = KINDS = ("added", "removed", "changed", "renamed", "attributes")
_MOST_MOVED = 100_000  # files on each side among which renamed ones are looked for
_COMPARED = FIELDS - {"content", "links", "size", "target"}


class DiffResult(NamedTuple):
    """Differences between two snapshots; see RETURN."""

    changed: bool
    old: str
    new: str
    differences: dict[str, list[dict[str, object]]]
    totals: dict[str, dict[str, int]]


class _Largest:
    """The largest differences of one kind, and how many there are."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, EntryRecord, EntryRecord | None]] = []
        self.entries = self.bytes = 0

    def add(self, record: EntryRecord, other: EntryRecord | None = None) -> None:
        """Take a difference; of several with the same size the first ones stay."""
        size = record.entry.size if record.entry.type == REGULAR else 0
        self.entries += 1
        self.bytes += size
        item = (size, -self.entries, record, other)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, item)
        elif item[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, item)

    def sorted(self) -> list[tuple[EntryRecord, EntryRecord | None]]:
        """Return the largest, the largest first."""
        return [
            (record, other) for _size, _number, record, other in sorted(self._heap, key=lambda item: item[:2])[::-1]
        ]


class _Differences:
    """The differences of all kinds."""

    def __init__(self, limit: int) -> None:
        self.of = {kind: _Largest(limit) for kind in KINDS}
        self.describer = Describer(_COMPARED)
        self._added: list[EntryRecord] = []  # files with contents
        self._removed: list[EntryRecord] = []
        self.has_too_many = False

    def add(self, record: EntryRecord) -> None:
        """Take an entry that only the newer snapshot has."""
        self._take(ADDED, record, self._added)

    def remove(self, record: EntryRecord) -> None:
        """Take an entry that only the older snapshot has."""
        self._take(REMOVED, record, self._removed)

    def compare(self, old: EntryRecord, new: EntryRecord) -> None:
        """Take an entry that both have."""
        before, after = old.entry, new.entry
        if before.type != after.type or _contents(old) != _contents(new):
            self.of[CHANGED].add(new, old)
        elif _attributes(old) != _attributes(new) and self.fields(old, new):
            self.of[ATTRIBUTES].add(new, old)

    def fields(self, old: EntryRecord, new: EntryRecord) -> list[str]:
        """Return the names of the attributes that differ."""
        then, now = self.describer.describe(old), self.describer.describe(new)
        return sorted(name for name in {**then, **now} if then.get(name) != now.get(name))

    def find_renamed(self) -> None:
        """Take files that are gone and new with the same contents for renamed ones, and count the others."""
        waiting: dict[bytes, list[EntryRecord]] = {}
        for record in reversed(self._removed):
            waiting.setdefault(record.content, []).append(record)
        for record in self._added:
            same = waiting.get(record.content)
            if same:
                self.of[RENAMED].add(record, same.pop())
            else:
                self.of[ADDED].add(record)
        for left in waiting.values():
            for record in left:
                self.of[REMOVED].add(record)

    def _take(self, kind: str, record: EntryRecord, files: list[EntryRecord]) -> None:
        if record.entry.type == REGULAR and record.entry.size and record.content:
            if len(files) < _MOST_MOVED:
                files.append(without_attributes(record))
                return
            self.has_too_many = True
        self.of[kind].add(record)


def diff(series: Series, old: str | None, new: str | None, limit: int) -> tuple[DiffResult, list[str]]:
    """Return what differs between two snapshots (without names: the two newest), and warnings. Raises Refused."""
    check_limit(limit)
    old, new = _choose(series, old, new)
    found = _Differences(limit)
    with contextlib.ExitStack() as stack:
        readers = [_open(stack, series, name) for name in (old, new)]
        if readers[0].algorithm != readers[1].algorithm:
            raise Refused(
                f"{old} and {new} have hashes of different algorithms ({readers[0].algorithm} and "
                f"{readers[1].algorithm}), so their contents cannot be compared. Compare others, or the trees (diff -r)"
            )
        try:
            _side_by_side(_named(old, readers[0]), _named(new, readers[1]), found)
        except OSError as error:
            raise Refused(f"a manifest of {series.path} cannot be read: {error.strerror}") from error
    found.find_renamed()
    warnings = (
        [f"more than {_MOST_MOVED} files are new or gone, so some that were renamed are told as both"]
        if found.has_too_many
        else []
    )
    shown = {kind: [_show(found, kind, *one) for one in largest.sorted()] for kind, largest in found.of.items()}
    totals = {kind: {"entries": one.entries, "bytes": one.bytes} for kind, one in found.of.items()}
    return DiffResult(False, old, new, shown, totals), warnings


def _choose(series: Series, old: str | None, new: str | None) -> tuple[str, str]:
    known = series.named(names.COMPLETE)
    every = {*known, *series.named(names.ASIDE)}
    for name in (old, new):
        if name and name not in every:
            shown = ", ".join(known[-5:]) or "none"
            raise Refused(f"there is no snapshot {name} in {series.path}. The newest are: {shown}")
    new = new or (known[-1] if known else "")
    before = [name for name in known if name < names.once_accepted(new)]
    old = old or (before[-1] if before else "")
    if not old or not new:
        raise Refused(f"{series.path} has no two snapshots to compare: make another backup first, or name both")
    if old == new:
        raise Refused(f"old and new are the same snapshot, {old}. Name two")
    return old, new


def _open(stack: contextlib.ExitStack, series: Series, name: str) -> ManifestReader:
    try:
        snapshot = stack.enter_context(open_to_read(series, name))
        return stack.enter_context(snapshot.manifest())
    except FileNotFoundError:
        raise Refused(f"{name} was removed from {series.path} at this moment. Compare others") from None
    except ManifestError as error:
        raise _unreadable(name, error) from None


def _named(name: str, reader: ManifestReader) -> Iterator[EntryRecord]:
    """Yield the records; a refusal tells of which snapshot."""
    try:
        yield from reader.records()
    except ManifestError as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: ManifestError) -> Refused:
    return Refused(f"the manifest of {name} cannot be read: {error}. Compare another snapshot, and check this one")


def _side_by_side(old: Iterator[EntryRecord], new: Iterator[EntryRecord], found: _Differences) -> None:
    """Read two manifests side by side, and take what differs."""
    before, after = next(old, None), next(new, None)
    while before is not None or after is not None:
        there = None if before is None else order(before.entry.path)
        here = None if after is None else order(after.entry.path)
        if before is not None and (here is None or (there is not None and there < here)):
            found.remove(before)
            before = next(old, None)
        elif after is not None and (there is None or (here is not None and here < there)):
            found.add(after)
            after = next(new, None)
        elif before is not None and after is not None:
            found.compare(before, after)
            before, after = next(old, None), next(new, None)


def _attributes(record: EntryRecord) -> tuple[object, ...]:
    entry = record.entry
    return (*entry[2:5], entry.mtime_ns, entry.xattrs)


def _contents(record: EntryRecord) -> tuple[int, int, bytes, bytes]:
    entry = record.entry
    return (entry.size, entry.rdev, entry.target, record.content)


def _show(found: _Differences, kind: str, record: EntryRecord, other: EntryRecord | None) -> dict[str, object]:
    shown = describe_record(record)
    if other is None:
        return shown
    if kind == RENAMED:
        return {**shown, "old_path": escape(other.entry.path)}
    shown["old_size"] = other.entry.size
    if kind == ATTRIBUTES:
        shown["attributes"] = found.fields(other, record)
    return shown
