# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the contents of snapshots, and find what is damaged and where it is still intact. Private to the collection.

The manifests of all snapshots are read side by side, in their common order, so all copies of one path come together:
files that snapshots share are read once, and for a damaged one the other copies with the contents that it should have
are at hand. What is in memory is one path.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import os
import resource
from typing import Container, Iterator

from .._core.files import BUFFER
from .._model.entry import REGULAR, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import order
from .._tree.content_hash import hash_file
from .._tree.dirfd import Root
from .._tree.record import EntryRecord
from .check import STRUCTURE, Problem, Report, is_file
from .manifest import ManifestReader
from .repository import SnapshotFolder
from .subset import Below, Subset

_NO_FDS = (errno.EMFILE, errno.ENFILE)


class _Copy:
    """The file of one path in one or more snapshots that share it."""

    def __init__(self, algorithm: str, size: int) -> None:
        self.algorithm = algorithm
        self.size = size
        self.members: list[tuple[int, EntryRecord]] = []
        self.digest = b""
        self.error: OSError | None = None


def check_contents(
    snapshots: list[SnapshotFolder], subset: Subset | Below, report: Report, unseen: Container[str] = ()
) -> None:
    """Read every file of the subset, and every path that has a problem already, and compare it with the manifests.

    For problems with one path it is found out which snapshots have it intact. ``unseen`` are snapshots whose
    names nobody has looked at, so that a file may be missing.
    """
    more_fds()
    suspects: dict[bytes, list[Problem]] = {}
    for problem in report.problems.values():
        if problem.path is not None:
            suspects.setdefault(problem.path, []).append(problem)
    with contextlib.ExitStack() as stack:
        reading = _Reading(snapshots, stack, report, unseen)
        merged = heapq.merge(*reading.streams(), key=lambda found: order(found[1].entry.path))
        for path, group in itertools.groupby(merged, key=lambda found: found[1].entry.path):
            if path in suspects or subset.has(path):
                reading.compare(path, [found for found in group if is_file(found[1])], suspects.get(path, []))


class _Reading:
    """The trees and manifests of some snapshots, open side by side."""

    def __init__(
        self, snapshots: list[SnapshotFolder], stack: contextlib.ExitStack, report: Report, unseen: Container[str]
    ) -> None:
        self._report, self._unseen = report, unseen
        self._names: list[str] = []
        self._roots: list[Root] = []
        self._manifests: list[ManifestReader] = []
        self._buffer = bytearray(BUFFER)
        for snapshot in snapshots:
            try:
                manifest = stack.enter_context(snapshot.manifest())
                fd = snapshot.open_data()
            except (ManifestError, OSError) as error:  # it was there a moment ago: most likely it is being pruned
                report.add(STRUCTURE, snapshot.name, None, f"it cannot be opened any more: {error}")
                continue
            try:
                self._roots.append(stack.enter_context(Root(fd)))
            finally:
                os.close(fd)
            self._manifests.append(manifest)
            self._names.append(snapshot.name)

    def streams(self) -> list[Iterator[tuple[int, EntryRecord]]]:
        """Return the records of each snapshot, with its number here."""
        return [zip(itertools.repeat(number), found.records()) for number, found in enumerate(self._manifests)]

    def compare(self, path: bytes, group: list[tuple[int, EntryRecord]], suspects: list[Problem]) -> None:
        """Read each file that snapshots have at the path, and compare it with what each of them says."""
        copies: dict[tuple[int, int, str], _Copy] = {}
        for number, record in group:
            there = self._roots[number].lstat(path)
            if self._names[number] in self._unseen:
                self._look(number, there, record)
            if there is None or there.type != REGULAR:
                continue  # found missing, or of another type
            algorithm = self._manifests[number].algorithm
            copy = copies.setdefault((there.dev, there.ino, algorithm), _Copy(algorithm, there.size))
            copy.members.append((number, record))
            if len(copy.members) == 1:
                self._read(path, copy)
        intact: dict[bytes, list[str]] = {}  # contents -> snapshots
        for copy in copies.values():
            for number, record in copy.members:
                if copy.digest == record.content:
                    intact.setdefault(record.content, []).append(self._names[number])
        for copy in copies.values():
            self._evaluate_copy(path, copy, intact, suspects)
        wanted = {self._names[number]: record.content for number, record in group}
        for problem in suspects:
            hashes = {wanted[name] for name in problem.snapshots if name in wanted}
            problem.intact_in = sorted(name for content in hashes for name in intact.get(content, []))

    def _look(self, number: int, there: Entry | None, record: EntryRecord) -> None:
        """Tell what reading would not find of a file."""
        path, now, then = record.entry.path, there, record.entry
        if now is None:
            self._report.add("missing", self._names[number], path, "it is not there any more")
        elif (now.type, now.size) != (then.type, then.size):
            shown = f"type is {now.type} and was {then.type}, size is {now.size} and was {then.size}"
            self._report.add("differs", self._names[number], path, shown)

    def _read(self, path: bytes, copy: _Copy) -> None:
        root = self._roots[copy.members[0][0]]
        try:
            try:
                copy.digest = hash_file(root, path, copy.algorithm, self._buffer)
            except OSError as error:
                if error.errno not in _NO_FDS:
                    raise
                for other in self._roots:
                    other.forget()
                copy.digest = hash_file(root, path, copy.algorithm, self._buffer)
        except OSError as error:
            copy.error = error
        else:
            self._report.files_read += 1
            self._report.bytes_read += copy.size

    def _evaluate_copy(self, path: bytes, copy: _Copy, intact: dict[bytes, list[str]], suspects: list[Problem]) -> None:
        """Tell what is wrong with the contents of a copy, in place of what else differs there."""
        if isinstance(copy.error, PermissionError):
            self._report.not_permitted += 1
            return
        for number, record in copy.members:
            if copy.digest == record.content or copy.size != record.entry.size:
                continue  # another size was found by a look
            if copy.error is not None:
                kind, detail = "unreadable", f"its contents cannot be read: {copy.error.strerror}"
            else:
                kind = "damaged"
                now, then = (found.hex()[:16] for found in (copy.digest, record.content))
                detail = f"its contents are {now}… and were {then}… ({copy.algorithm})"
            for other in [one for one in suspects if self._names[number] in one.snapshots]:
                self._report.take_back(self._names[number], other)
            self._report.add(kind, self._names[number], path, detail)
            problem = self._report.problems.get((kind, path, detail))
            if problem is not None:
                problem.intact_in = sorted(intact.get(record.content, []))


def more_fds() -> None:
    """Let this process have as many open files as it may: every snapshot needs some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard) if soft != hard else (soft, hard))
