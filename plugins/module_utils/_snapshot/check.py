# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that snapshots are what their manifests say. Private to the collection.

Three levels, each with those before it: ``structure`` reads facts and manifests and takes seconds; ``files`` looks at
every name; ``contents`` reads files, all or a subset. With a subset it looks at every name of the newest snapshot and
of some of the others. A file that several snapshots share is read once. Nothing is changed, and nothing stops a backup
that runs at the same time: a snapshot that is pruned meanwhile is left out.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import Any, Iterator

from .._core.files import rewound
from .._model.entry import DIRECTORY, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import escape, join, order
from .._tree.dirfd import Root
from .._tree.record import FIELDS, Describer, EntryRecord
from .._tree.time_units import units_of
from .._tree.walk import OnError, walk
from . import names
from .errors import Refused
from .facts import Finding
from .history import find_places
from .repository import Series, SnapshotFolder
from .subset import WHOLE, Below

STRUCTURE, FILES, CONTENTS = LEVELS = ("structure", "files", "contents")
MAX_PROBLEMS = 5000  # listed; all are counted

COMPARED = FIELDS - {"content", "links"}
_OF_CONTENTS = frozenset(["type", "size", "mtime"])  # where these differ, somebody wrote to the file


@dataclass
class Problem:
    """Something that is not as it should be, in one or more snapshots."""

    kind: str  # structure, missing, extra, differs, damaged (contents), unreadable
    path: bytes | None  # None: it concerns the snapshot
    detail: str
    snapshots: list[str] = field(default_factory=list)
    intact_in: list[str] = field(default_factory=list)  # snapshots with the same contents, in another file, just read
    in_doubt: bool = True  # the contents of the file may be wrong
    known: bool = False  # an earlier check found it in all these snapshots, and the newest is not among them

    @property
    def shown(self) -> str | None:
        """The path as people and JSON read it."""
        return None if self.path is None else escape(self.path) or "."

    @property
    def finding(self) -> Finding:
        """The problem as a snapshot remembers it."""
        detail = self.detail if self.path is None else ""
        return Finding(self.kind, escape(self.path or b""), detail, self.in_doubt)

    def dump(self) -> dict[str, str | list[str] | bool | None]:
        """Return the problem as JSON holds it."""
        return {name: value for name, value in {**vars(self), "path": self.shown}.items() if name != "in_doubt"}


@dataclass
class Report:
    """What a check looked at and found."""

    snapshots: list[str] = field(default_factory=list)
    entries: int = 0  # names that were looked at
    files_read: int = 0
    bytes_read: int = 0
    not_permitted: int = 0  # files that this user may not read
    problems_total: int = 0  # the same one in several snapshots counts once
    problems: dict[tuple[Any, ...], Problem] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)  # snapshots with problems in doubt that are only counted

    def add(self, kind: str, snapshot: str, path: bytes | None, detail: str, in_doubt: bool = True) -> None:
        """Count a problem; the same one in several snapshots is listed and counted once."""
        key = (kind, path, detail)
        self.problems_total += key not in self.problems
        if key in self.problems or len(self.problems) < MAX_PROBLEMS:
            self.problems.setdefault(key, Problem(kind, path, detail, in_doubt=in_doubt)).snapshots.append(snapshot)
        elif in_doubt:
            self.unlisted.add(snapshot)

    def take_back(self, snapshot: str, problem: Problem) -> None:
        """Forget a problem of a snapshot, of which another one says more."""
        problem.snapshots.remove(snapshot)
        if not problem.snapshots:
            self.problems_total -= 1
            del self.problems[problem.kind, problem.path, problem.detail]

    def of(self, snapshot: str) -> list[Problem]:
        """Return the listed problems of a snapshot."""
        return [problem for problem in self.problems.values() if snapshot in problem.snapshots]

    def drop(self, snapshot: str) -> None:
        """Forget a snapshot that was removed meanwhile."""
        self.snapshots.remove(snapshot)
        for problem in self.of(snapshot):
            self.take_back(snapshot, problem)


def check_structure(series: Series, snapshot: SnapshotFolder, report: Report) -> bool:
    """Check the folder of a snapshot and its manifest as a whole; says whether its records can be used."""
    name = snapshot.name
    facts = None
    try:
        facts = snapshot.facts()
    except Refused as refused:
        report.add(STRUCTURE, name, None, str(refused))
    try:
        os.close(snapshot.open_data())
    except OSError as error:
        report.add(STRUCTURE, name, None, f"its folder {names.DATA} cannot be opened: {error.strerror}")
    try:
        with snapshot.manifest() as manifest:
            about, totals = manifest.about, manifest.verify()
    except (ManifestError, OSError) as error:
        report.add(STRUCTURE, name, None, f"its manifest cannot be used: {error}")
        return False
    if facts and {key: getattr(facts.figures, key, None) for key in totals} != totals:
        report.add(
            STRUCTURE, name, None, f"its manifest is not the one that {names.FACTS} was written for: the totals differ"
        )
    place = f"{about.host}/{about.job}"
    if place != f"{series.host}/{series.job}" and place not in find_places(series, name):
        report.add(STRUCTURE, name, None, f"its manifest is of {about.host}/{about.job}")
    return name not in report.unlisted and not report.of(name)


def check_names(series: Series, report: Report) -> None:
    """Check what else is in the folder of the job."""
    if series.missing:
        return
    latest = series.latest()
    complete = series.named()
    if complete and latest not in complete:
        report.add(
            STRUCTURE,
            names.LATEST,
            None,
            "it does not lead to a complete snapshot; the next backup or prune sets it right",
        )
    known = {
        names.UNFINISHED,
        names.LATEST,
        names.NEW_LATEST,
        names.LOCK,
        names.CHECKS,
        names.CHECKS + names.NEW_SUFFIX,
        names.HISTORY,
        names.REPAIR,
    }
    with os.scandir(rewound(series.fd)) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_dir in found:
        if names.kind_of(name):
            if not is_dir:
                report.add(STRUCTURE, name, None, "it has the name of a snapshot, but is no folder and counts as none")
        elif name not in known:
            report.warnings.append(
                f"{series.path} has {name!r}, which is none of its names; nothing here looks at it or removes it"
            )


def check_files(
    snapshot: SnapshotFolder, report: Report, below: Below = WHOLE, compared: frozenset[str] = COMPARED
) -> None:
    """Compare every name of a snapshot, or those below a path, with the manifest, by the fields of ``compared``."""
    data_fd = snapshot.open_data()
    describer = Describer(compared, times=units_of(data_fd))  # a repository may have been copied to a coarser disk

    def fail(path: bytes, error: OSError) -> None:
        if not isinstance(error, PermissionError):
            report.add("unreadable", snapshot.name, path, f"it cannot be looked at: {error.strerror}")
        else:
            hidden.append(order(path) + b"\0")
            report.not_permitted += 1

    hidden: list[bytes] = []  # directories whose contents this user may not see
    try:
        found = _walk_below(data_fd, below.path, fail)
        with snapshot.manifest() as manifest:
            records = (record for record in manifest.records() if below.has(record.entry.path))
            for there, record in _beside(found, records):
                report.entries += 1
                if there is None:
                    if not hidden or not order(record.entry.path).startswith(hidden[-1]):
                        report.add("missing", snapshot.name, record.entry.path, "it is not there any more")
                elif record is None:
                    report.add("extra", snapshot.name, there.entry.path, "it is not in the manifest")
                else:
                    _compare(describer, there, record, snapshot.name, report)
    finally:
        os.close(data_fd)


def _walk_below(data_fd: int, path: bytes, on_error: OnError) -> Iterator[Entry]:
    """Walk a path of a tree, which may be no directory, or not there. Entries have their paths in the whole tree."""
    if not path:
        yield from walk(data_fd, xattrs=True, on_error=on_error)
        return
    with Root(data_fd) as root:
        top = root.lstat(path, xattrs=True)
        if top is None:
            return
        if top.type != DIRECTORY:
            yield top
            return
        try:
            fd = root.open_directory(path)
        except OSError as error:
            yield top
            on_error(path, error)
            return
    try:
        for entry in walk(fd, xattrs=True, on_error=lambda found, error: on_error(join(path, found), error)):
            yield entry._replace(path=join(path, entry.path) if entry.path else path)
    finally:
        os.close(fd)


def _compare(describer: Describer, there: EntryRecord, record: EntryRecord, name: str, report: Report) -> None:
    if there.entry[1:7] == record.entry[1:7] and there.entry[11:] == record.entry[11:]:
        return  # nearly always, and faster: type, mode, owner, group, size and time, then device, target and attributes
    now, then = describer.describe(there), describer.describe(record)
    fields = sorted(key for key in {**now, **then} if now.get(key) != then.get(key))
    if fields:
        shown = ", ".join(f"{key} is {now.get(key)} and was {then.get(key)}" for key in fields)
        report.add("differs", name, record.entry.path, shown, not _OF_CONTENTS.isdisjoint(fields))


def _beside(found: Iterator[Any], records: Iterator[EntryRecord]) -> Iterator[tuple[Any, Any]]:
    """Lay a walk and a manifest side by side; gives (what is there, the record), either of them None."""
    entry, record = next(found, None), next(records, None)
    while entry is not None or record is not None:
        here = None if entry is None else order(entry.path)
        there = None if record is None else order(record.entry.path)
        as_record = None if entry is None else EntryRecord(entry, b"", entry.path)
        if there is None or (here is not None and here < there):
            yield as_record, None
            entry = next(found, None)
        elif here is None or there < here:
            yield None, record
            record = next(records, None)
        else:
            yield as_record, record
            entry, record = next(found, None), next(records, None)


def still_there(series: Series, snapshot: SnapshotFolder) -> bool:
    """Return whether a snapshot has not been pruned since it was opened."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(snapshot.fd), os.stat(snapshot.name, dir_fd=series.fd, follow_symlinks=False))
    return False


def is_file(record: EntryRecord) -> bool:
    """Return whether the record has contents that can be read and compared."""
    return record.entry.type != DIRECTORY and bool(record.content)
