# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Search snapshots by their manifests: find entries, and the history of one path. Private to the collection.

No tree is touched. Manifests are read one after the other, the oldest snapshot of a job first, and of each one frame is
in memory, whose records are decoded only where the path is one that is looked for. What is kept is bounded: the first
paths in the order of a walk, and hashes of the others, to count them.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Iterator, Mapping, NamedTuple

from .._model.entry import REGULAR
from .._model.entry_codec import ManifestError
from .._model.paths import escape, order
from .._tree.record import EntryRecord, without_attributes
from .._tree.resolve import ForeignLink, open_folder
from . import names
from .check import still_there
from .conditions import Conditions, MatchBudget, parse_conditions, parse_path
from .errors import Refused
from .inspect_path import suggest_paths
from .manifest import ManifestReader, RecordBlock
from .read_lock import open_to_read
from .repository import Series

MOST_FOUND = 5000  # paths that one search may list
_MOST_COUNTED = 200_000  # different paths that are counted
_MOST_SKIPPED = 50  # snapshots that are named
_MOST_VERSIONS = 1000  # of one path
_SECOND = 10**9
_LOST_AND_FOUND = "lost+found"  # of a file system; only root may list it


class Skipped(NamedTuple):
    """A snapshot that could not be searched; without its name the folder of a job, without a job that of a host."""

    host: str
    job: str
    snapshot: str
    reason: str


class FindResult(NamedTuple):
    """Result of a search; see RETURN."""

    changed: bool
    found: list[dict[str, object]]
    found_total: int | None
    matches: int
    searched: int
    unsearched: list[dict[str, str]]


class HistoryResult(NamedTuple):
    """The versions of a path; see RETURN."""

    changed: bool
    versions: list[dict[str, object]]
    versions_total: int
    vanished: dict[str, str]
    searched: int
    unsearched: list[dict[str, str]]


class _Seen:
    """Occurrences of one path, or of one version of it."""

    def __init__(self, snapshot: str, record: EntryRecord) -> None:
        self.first = self.last = snapshot
        self.snapshots = 0
        self.versions: set[bytes] = set()
        self.record = without_attributes(record)
        self.add(snapshot, record)

    def add(self, snapshot: str, record: EntryRecord) -> None:
        """Take what a later snapshot has."""
        self.last, self.record = snapshot, without_attributes(record)
        self.snapshots += 1
        self.versions.add(_version(record))

    def shown(self) -> dict[str, object]:
        """Return what is told of it."""
        return {**describe_record(self.record), "first": self.first, "last": self.last, "snapshots": self.snapshots}


class _Kept:
    """The first paths of a job in the order of a walk, and how many others there are."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.seen: dict[bytes, _Seen] = {}  # by path
        self._behind: bytes | None = None  # in the order of a walk: no path from here on is kept
        self.hashes: set[int] = set()

    def add(self, snapshot: str, block: RecordBlock, numbers: list[int]) -> None:
        """Take the matches in a block. Only those that are kept are decoded."""
        paths = block.paths
        if len(self.hashes) <= _MOST_COUNTED:
            self.hashes.update([hash(paths[number]) for number in numbers])
        behind = self._behind
        if behind is not None:
            if order(paths[numbers[0]]) >= behind:
                return
            numbers = [number for number in numbers if order(paths[number]) < behind]
        for record in block.records(numbers):
            path = record.entry.path
            seen = self.seen.get(path)
            if seen is not None:
                seen.add(snapshot, record)
            elif self._behind is None or order(path) < self._behind:
                self.seen[path] = _Seen(snapshot, record)
                if len(self.seen) > 2 * self._limit:
                    self._cut()

    def _cut(self) -> None:
        """Keep the first paths. One that is dropped comes behind all that are ever kept, so no count is wrong."""
        ordered = sorted(self.seen, key=order)
        self._behind = order(ordered[self._limit])
        self.seen = {path: self.seen[path] for path in ordered[: self._limit]}

    def shown(self) -> Iterator[dict[str, object]]:
        """Yield what is told of the paths."""
        for path in sorted(self.seen, key=order)[: self._limit]:
            seen = self.seen[path]
            yield {**seen.shown(), "versions": len(seen.versions)}


def find(
    repository: str, host: str | None, job: str | None, match: Mapping[str, object], limit: int
) -> tuple[FindResult, list[str]]:
    """Return the entries of all snapshots that match, and warnings. Without a job all of the host, or of all, count."""
    conditions, limit, budget = parse_conditions(match), check_limit(limit), MatchBudget()
    found: list[dict[str, object]] = []
    skipped: list[Skipped] = []
    searched = matches = total = 0
    for one_host, one_job in find_folders(repository, host, job, skipped):
        kept = _Kept(limit)
        with contextlib.ExitStack() as stack:
            try:
                series = stack.enter_context(Series(repository, one_host, one_job))
            except Refused as refused:
                if host and job:
                    raise
                skipped.append(Skipped(one_host, one_job, "", str(refused)))
                continue
            for name, reader in _manifests(series, skipped):
                matched = _find_in(name, reader, conditions, kept, series, skipped, budget)
                searched += matched is not None
                matches += matched or 0
        total = total + len(kept.hashes) if len(kept.hashes) <= _MOST_COUNTED and total >= 0 else -1
        room = limit - len(found)
        found += [{"host": one_host, "job": one_job, **shown} for _n, shown in zip(range(room), kept.shown())]
    _require(searched, skipped, f"no snapshot in {repository}{_of(host, job)} could be searched")
    result = FindResult(False, found, None if total < 0 else total, matches, searched, _dump(skipped))
    return result, _warnings(skipped)


def history(series: Series, path: str, limit: int) -> tuple[HistoryResult, list[str]]:
    """Return the versions of a path by content, the oldest first, and warnings."""
    wanted, limit = parse_path(path), check_limit(limit)
    key = order(wanted)
    versions: dict[bytes, _Seen] = {}
    skipped: list[Skipped] = []
    last = after = ""
    searched = total = 0
    for name, reader in _manifests(series, skipped):
        try:
            record = _record_at(reader, wanted, key)
        except (ManifestError, OSError) as error:
            skipped.append(_skip(series, name, error))
            continue
        searched += 1
        if record is None:
            after = after or (name if last else "")
            continue
        last, after = name, ""
        version = _version(record)
        if version not in versions:
            total += 1
            if len(versions) < _MOST_VERSIONS:
                versions[version] = _Seen(name, record)
        else:
            versions[version].add(name, record)
    _require(searched, skipped, f"no snapshot of {series.host}/{series.job} could be searched")
    if not last:
        raise Refused(_no_path(series, wanted))
    vanished = {"last": last, "gone_in": after} if after else {}
    shown = [one.shown() for one in versions.values()][-limit:]
    return HistoryResult(False, shown, total, vanished, searched, _dump(skipped)), _warnings(skipped)


def describe_record(record: EntryRecord) -> dict[str, object]:
    """Return what results tell of an entry."""
    entry = record.entry
    return {
        "path": escape(entry.path) or ".",
        "type": entry.type,
        "size": entry.size,
        "mtime": iso_time(entry.mtime_ns),
        "mode": f"{entry.mode:04o}",
        "owner": entry.uid,
        "group": entry.gid,
        "content": record.content.hex(),
    }


def iso_time(nanoseconds: int) -> str:
    """Return a time in UTC, such as 2026-11-21T17:30:09Z; seconds since 1970 for one that no calendar has."""
    seconds = nanoseconds // _SECOND
    try:
        return names.time_text(seconds)
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def _find_in(
    name: str,
    reader: ManifestReader,
    conditions: Conditions,
    kept: _Kept,
    series: Series,
    skipped: list[Skipped],
    budget: MatchBudget,
) -> int | None:
    """Add what matches in one snapshot; return how many entries did, None if its manifest cannot be read."""
    matches = 0
    holds = conditions.make_test() if conditions.has_values else None
    try:
        for block in reader.blocks():
            with budget.for_paths(len(block.paths)):
                numbers = _numbers(block, conditions.paths)
            if holds is not None:
                numbers = block.select(numbers, holds)
            if numbers:
                matches += len(numbers)
                kept.add(name, block, numbers)
    except (ManifestError, OSError) as error:
        skipped.append(_skip(series, name, error))
        return None
    return matches


def _numbers(block: RecordBlock, tests: tuple[Callable[[bytes], object], ...]) -> list[int]:
    """Return the numbers of the records whose path passes all tests."""
    paths = block.paths
    if not tests:
        return list(range(len(paths)))
    first, others = tests[0], tests[1:]
    numbers = [number for number, path in enumerate(paths) if first(path)]
    return [number for number in numbers if all(test(paths[number]) for test in others)] if others else numbers


def _record_at(reader: ManifestReader, path: bytes, key: bytes) -> EntryRecord | None:
    """Return the record of a path. Nothing behind it is read."""
    for block in reader.blocks():
        if order(block.paths[-1]) < key:
            continue
        numbers = [block.paths.index(path)] if path in block.paths else []
        for record in block.records(numbers):
            return record
        return None
    return None


def _version(record: EntryRecord) -> bytes:
    """Return what is the same for entries with the same contents, where these are known."""
    entry = record.entry
    if entry.type == REGULAR and not record.content:  # which this user could not read
        return b"%d %d" % (entry.size, entry.mtime_ns)
    return b"".join((entry.type.encode(), record.content or entry.target))


def find_folders(
    repository: str, host: str | None, job: str | None, skipped: list[Skipped]
) -> Iterator[tuple[str, str]]:
    """Yield the host and the job of folders in a repository: one, those of a host, or all.

    ``skipped`` gets hosts that cannot be listed.
    """
    if host and job:
        yield host, job
        return
    if job:
        raise Refused(f"the job {job} is searched in the folder of its host: name the host, too, or leave out the job")
    with contextlib.closing(_SearchedFolder(repository)) as folder:
        hosts = [names.check_part("host", host)] if host else folder.names()
        for one in hosts:
            try:
                jobs = folder.names(one)
            except FileNotFoundError:  # it is not there, or was removed at this moment
                continue
            except OSError as error:
                if one != _LOST_AND_FOUND:
                    skipped.append(Skipped(one, "", "", f"its folder cannot be listed: {error.strerror}"))
                continue
            for name in jobs:
                yield one, name


class _SearchedFolder:
    """A repository, to list what is in it."""

    def __init__(self, repository: str) -> None:
        if not os.path.isabs(repository):
            raise Refused(f"the repository {repository} is no absolute path, and could be anywhere: write it from / on")
        try:
            self._fd = open_folder(os.fsencode(os.path.normpath(repository)))
        except (ForeignLink, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise Refused(
                f"the repository {repository} cannot be searched: {why}. Mount its disk, or name it"
            ) from None

    def names(self, below: str = "") -> list[str]:
        """Return the names of folders that may be of hosts, or ``below`` a host of its jobs.

        Raises Refused if there is nothing to search, and OSError for a host alone.
        """
        fd = os.dup(self._fd)
        try:
            if below:
                fd, outer = os.open(below, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd), fd
                os.close(outer)
            with os.scandir(fd) as entries:
                found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if below:
                raise
            raise Refused(f"the repository cannot be listed: {error.strerror}") from None
        finally:
            os.close(fd)
        return sorted(name for name in found if _is_part(name))

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


def _is_part(name: str) -> bool:
    try:
        return bool(names.check_part("name", name))
    except (Refused, UnicodeError):
        return False


def _manifests(series: Series, skipped: list[Skipped]) -> Iterator[tuple[str, ManifestReader]]:
    """Yield the snapshots of a job and their manifests, the oldest first. No prune removes one that is read."""
    known = [(at, names.name_of(at, kind)) for kind in (names.COMPLETE, names.ASIDE) for at in series.times(kind)]
    for _at, name in sorted(known):
        with contextlib.ExitStack() as stack:
            try:
                snapshot = stack.enter_context(open_to_read(series, name))
                reader = stack.enter_context(snapshot.manifest())
            except (ManifestError, OSError) as error:
                skipped.append(_skip(series, name, error))
                continue
            yield name, reader
            if not still_there(series, snapshot):
                skipped.append(Skipped(series.host, series.job, name, "it was removed while it was searched"))


def _skip(series: Series, name: str, error: Exception) -> Skipped:
    if isinstance(error, FileNotFoundError):
        reason = "it was removed while it was searched"
    elif isinstance(error, ManifestError):
        reason = f"its manifest cannot be read: {error}"
    else:
        reason = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
    return Skipped(series.host, series.job, name, reason)


def _no_path(series: Series, path: bytes) -> str:
    """Return that no snapshot has a path, with what may have been meant."""
    alike: list[bytes] = []
    newest = series.named()[-1:]
    with contextlib.suppress(ManifestError, OSError):
        for name in newest:
            with open_to_read(series, name) as snapshot, snapshot.manifest() as reader:
                alike = suggest_paths(path, (one for block in reader.blocks() for one in block.paths))
    likely = f" Did you mean {', '.join(repr(escape(one)) for one in alike)}?" if alike else ""
    return f"no snapshot of {series.host}/{series.job} has '{escape(path)}'. It is a path in the tree.{likely}"


def _require(searched: int, skipped: list[Skipped], what: str) -> None:
    if not searched:
        first = skipped[0] if skipped else None
        why = f"{first.snapshot or _folder(first)}: {first.reason}" if first else "there is none"
        raise Refused(f"{what}: {why}. Name another repository, host or job, or make a backup first")


def check_limit(limit: int) -> int:
    """Return how much a result may list. Raises Refused."""
    if not 1 <= limit <= MOST_FOUND:
        raise Refused(f"limit is {limit}. Write a number from 1 to {MOST_FOUND}; results tell how much there is in all")
    return limit


def _of(host: str | None, job: str | None) -> str:
    return f" of {host}/{job}" if job else (f" of {host}" if host else "")


def _folder(skipped: Skipped) -> str:
    return f"{skipped.host}/{skipped.job}" if skipped.job else skipped.host


def _dump(skipped: list[Skipped]) -> list[dict[str, str]]:
    return [dict(zip(Skipped._fields, one)) for one in skipped[:_MOST_SKIPPED]]


def _warnings(skipped: list[Skipped]) -> list[str]:
    texts = [f"{_folder(one)}: {one.snapshot or 'the folder'} was not searched: {one.reason}" for one in skipped[:3]]
    return [*texts, *([f"and {len(skipped) - 3} more were not searched"] if len(skipped) > 3 else [])]
