# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check a path of a snapshot before it is restored: what it is, how much, and whether it is intact.

Private to the collection. Nothing is changed, and nothing is remembered. No prune takes what is looked at.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import time
from dataclasses import dataclass, field, replace
from typing import Iterable, Sequence

from .._model.entry import DIRECTORY, REGULAR
from .._model.entry_codec import ManifestError
from .._model.paths import components, escape, join, order
from .._tree.dirfd import Root
from . import names
from .check import CONTENTS, STRUCTURE, Report, check_files, check_structure
from .check_contents import check_contents
from .errors import Refused
from .listing import UNFINISHED
from .manifest import ManifestReader
from .read_lock import open_to_read
from .repository import Series, SnapshotFolder
from .subset import NONE, Below

_ALIKE = 0.5  # of difflib: how much two names must have in common
_KINDS = {REGULAR: "file", DIRECTORY: "directory"}


@dataclass
class Inspection:
    """What is at the path, and what is not as it was."""

    name: str = ""  # of the snapshot
    kind: str = ""  # file, directory or other
    entries: int | None = None  # the path and all below it; None if no manifest tells
    files: int | None = None  # the regular ones among them
    bytes: int | None = None  # of these
    checked: str = ""  # depth of the check; empty if nothing could be checked
    report: Report = field(default_factory=Report)


def inspect_path(series: Series, name: str, path: bytes, level: str) -> Inspection:
    """Check a path of the snapshot ``name``, or of the newest (``latest``), to a level of ``check.LEVELS``.

    An empty path is the whole tree.
    Where something is damaged, it is found out which complete snapshots have it intact. Raises Refused for a snapshot
    or a path that is not there, and ValueError for a path that could lead out of the tree.
    """
    components(path)
    if name == names.LATEST:
        at = names.latest_of(int(time.time()), series.times())
        name = name if at is None else names.name_of(at)
    folder = names.UNFINISHED if name == UNFINISHED else name
    if folder != names.UNFINISHED and names.kind_of(folder) not in (names.COMPLETE, names.ASIDE):
        raise _unknown(series, name)
    try:
        snapshot = open_to_read(series, folder)
    except FileNotFoundError:
        raise _unknown(series, name) from None
    with snapshot:
        found = Inspection(name)
        if folder == names.UNFINISHED or not check_structure(series, snapshot, found.report):
            found.kind = _kind_on_disk(snapshot, path)
            return found
        _count(series, snapshot, path, found)
        found.checked = level
        if level != STRUCTURE:
            check_files(snapshot, found.report, Below(path))
        if level == CONTENTS:
            check_contents([snapshot], Below(path), found.report)
        if any(problem.path is not None for problem in found.report.problems.values()):
            _find_intact(series, snapshot, found.report)
    return found


def find_source(place: Sequence[str], found: Inspection, path: str) -> str:
    """Return the path from which a transfer restores a ``path``; empty if it is neither a folder nor a file. Pure.

    ``place`` is the repository, the host and the job. The contents of a folder are restored, so a slash is behind it.
    """
    if found.kind not in _KINDS.values():
        return ""
    folder = names.UNFINISHED if found.name == UNFINISHED else found.name
    return os.path.join(*place, folder, names.DATA, path).rstrip("/") + ("/" if found.kind == "directory" else "")


def _unknown(series: Series, name: str) -> Refused:
    there = ", ".join(reversed(series.named() + series.named(names.ASIDE))) or "none"
    return Refused(f"{series.path} has no snapshot {name} (any more). There are: {there}")


def _count(series: Series, snapshot: SnapshotFolder, path: bytes, found: Inspection) -> None:
    below = Below(path)
    found.entries = found.files = found.bytes = 0
    with snapshot.manifest() as manifest:
        for record in manifest.records():
            if below.has(record.entry.path):
                found.entries += 1
                found.kind = found.kind or _KINDS.get(record.entry.type, "other")
                if record.entry.type == REGULAR:
                    found.files += 1
                    found.bytes += record.entry.size
    if not found.kind:
        raise _no_path(series, snapshot, path)


def _no_path(series: Series, snapshot: SnapshotFolder, path: bytes) -> Refused:
    there, nothing = f"there is no '{escape(path)}' in the snapshot {snapshot.name}", "so there is nothing to restore"
    holder = _find_holder(series, path)
    if holder:
        return Refused(f"{there}, {nothing}. The newest snapshot that has it is {holder}: set restore_when={holder}")
    with snapshot.manifest() as manifest:
        meant = suggest_paths(path, (record.entry.path for record in manifest.records()))
    hint = f"Did you mean {', '.join(map(escape, meant))}?" if meant else "Nothing in it has a name like that."
    return Refused(
        f"{there}, nor in any other, {nothing}. {hint} A path is written from the root of the tree that was backed up"
    )


def _find_holder(series: Series, path: bytes) -> str:
    """Return the newest snapshot that has a path, complete ones before those set aside; empty if none has."""
    for name in [*reversed(series.named()), *reversed(series.named(names.ASIDE))]:
        with contextlib.suppress(ManifestError, OSError):
            with open_to_read(series, name) as snapshot, snapshot.manifest() as manifest:
                if _has(manifest, path):
                    return name
    return ""


def _has(manifest: ManifestReader, path: bytes) -> bool:
    """Return whether a manifest has a path. Nothing behind it is read."""
    key = order(path)
    for block in manifest.blocks():
        if order(block.paths[-1]) >= key:
            return path in block.paths
    return False


def _kind_on_disk(snapshot: SnapshotFolder, path: bytes) -> str:
    """Return what is at the path, without a manifest."""
    try:
        fd = snapshot.open_data()
    except OSError as error:
        raise Refused(
            f"the tree of {snapshot.name} cannot be opened: {error.strerror}. Take another snapshot"
        ) from None
    with Root(fd) as root:
        there = root.lstat(path)
    if there is None:
        raise Refused(
            f"there is no '{escape(path)}' in {snapshot.name}, whose manifest cannot be used, so no name like it can "
            "be looked up. Take another snapshot"
        )
    return _KINDS.get(there.type, "other")


def _find_intact(series: Series, snapshot: SnapshotFolder, report: Report) -> None:
    """Compare the paths that have a problem in all snapshots, and name those that have them intact."""
    with contextlib.ExitStack() as stack:
        usable = [snapshot]
        for name in series.named():
            if name != snapshot.name:
                with contextlib.suppress(OSError):
                    other = stack.enter_context(series.snapshot(name))
                    if check_structure(series, other, Report()):
                        usable.append(other)
        copies = {key: replace(problem, snapshots=list(problem.snapshots)) for key, problem in report.problems.items()}
        everywhere = Report(problems=copies)
        check_contents(usable, NONE, everywhere)
    for key, problem in report.problems.items():
        problem.intact_in = copies[key].intact_in


def suggest_paths(path: bytes, paths: Iterable[bytes], count: int = 5) -> list[bytes]:
    """Return up to ``count`` paths that are much like ``path``, the likeliest first.

    Pure. ``paths`` are all paths of the tree in the order of a walk; only the names in one folder are in memory. Names
    that are spelled much the same in the deepest existing folder of ``path`` come first, then equal names elsewhere.
    """
    wanted = path.split(b"/")
    ancestors = {b"/".join(wanted[:depth]): depth for depth in range(1, len(wanted))}
    folder, missing = b"", wanted[0]
    siblings: list[bytes] = []
    elsewhere: list[bytes] = []
    for found in paths:
        parent, _slash, name = found.rpartition(b"/")
        if found in ancestors:  # its contents come right behind
            folder, missing, siblings = found, wanted[ancestors[found]], []
            continue
        if found and parent == folder:
            siblings.append(name)
        if name.lower() == wanted[-1].lower() and len(elsewhere) < count:
            elsewhere.append(found)
    texts = {sibling.decode("utf-8", "surrogateescape"): sibling for sibling in siblings}
    by_case = {text.lower(): text for text in texts}
    alike = difflib.get_close_matches(_lower(missing), by_case, count, _ALIKE)
    likely = [join(folder, texts[by_case[text]]) for text in alike]
    return list(dict.fromkeys([*likely, *elsewhere]))[:count]


def _lower(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").lower()
