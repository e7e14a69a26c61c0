# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take the snapshots of rsnapshot over as the first ones of a job. Private to the collection.

Each becomes an unfinished snapshot whose files are hard links to those of rsnapshot, and is finished as any other, the
oldest first. Nothing of rsnapshot's is changed, and no contents are copied; they are read once, for the manifests. A
kill leaves an unfinished snapshot that the next run recreates.
"""

from __future__ import annotations

import errno
import os
from typing import Iterable, NamedTuple

from .._model.entry import DIRECTORY, Entry
from .._model.paths import components, escape
from .._tree import metadata
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.dirfd import Root
from .._tree.walk import walk
from . import names, rsnapshot
from .atomic_io import write_json
from .begin import is_blank, unfinished_facts
from .errors import Refused
from .facts import RSNAPSHOT, Facts
from .finish import finish
from .quarantine import discard
from .repository import Series

_PRESERVE = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])
_NO_LINKS = (errno.EXDEV, errno.EMLINK, errno.EPERM)


class AdoptionResult(NamedTuple):
    """What an adoption did, or would do."""

    changed: bool
    adopted: dict[str, str]  # name of the snapshot -> rsnapshot's folder
    present: dict[str, str]  # the same for those that were snapshots already
    skipped: list[str]  # rsnapshot's folders that do not have the path
    warnings: list[str]


def adopt(
    series: Series,
    root: str,
    subpath: str,
    now: int,
    levels: Iterable[str] = rsnapshot.LEVELS,
    *,
    check: bool = False,
) -> AdoptionResult:
    """Make a snapshot of each of rsnapshot's folders below ``root`` that has ``subpath`` (empty: of all that is in it).

    The lock is the caller's. Raises Refused if the folders are on another file system, and where a transfer's
    snapshot is unfinished.
    """
    try:
        parts = components(os.fsencode(subpath.strip("/")))
    except ValueError as error:
        raise Refused(f"the path below rsnapshot's folders cannot be taken: {error}") from None
    root_fd, found = rsnapshot.open_root(root)
    try:
        chosen = rsnapshot.intervals(found, levels)
        if not chosen:
            raise Refused(
                f"there is no folder such as hourly.0 or daily.3 in {root}: name rsnapshot's snapshot_root, and its "
                "levels"
            )
        if os.fstat(root_fd).st_dev != os.fstat(series.fd).st_dev:
            raise Refused(
                f"{root} and {series.path} are on different file systems, so files cannot be linked. Put the "
                "repository on the disk of rsnapshot's tree, or move the snapshots over first (rsync --archive "
                "--hard-links)"
            )
        return _adopt_all(series, root_fd, parts, chosen, now, check)
    finally:
        os.close(root_fd)


def _adopt_all(
    series: Series,
    root_fd: int,
    parts: list[bytes],
    chosen: list[tuple[int, rsnapshot.Interval]],
    now: int,
    check: bool,
) -> AdoptionResult:
    interrupted = series.has(names.UNFINISHED)
    facts = unfinished_facts(series) if interrupted else None
    if interrupted and (facts is None or facts.origin != RSNAPSHOT) and not is_blank(series):
        raise Refused(
            "there is an unfinished snapshot of a transfer: let a backup complete it, or discard it, and adopt then"
        )
    if interrupted:
        discard(series, names.UNFINISHED, now=now, check=check)
    present_times = series.all_times()
    adopted, present, skipped, warnings = {}, {}, [], []
    for at, interval in chosen:
        name = names.name_of(at)
        source_fd = _open(root_fd, [os.fsencode(interval.name), *parts])
        if source_fd is None:
            skipped.append(interval.name)
            continue
        try:
            if at in present_times:
                present[name] = interval.name
                continue
            if not check:
                warnings += _adopt(series, source_fd, at, interval.name, now)
            adopted[name] = interval.name
        finally:
            os.close(source_fd)
    settled = series.settle(now, check)
    return AdoptionResult(bool(adopted or settled or interrupted), adopted, present, skipped, warnings)


def _open(root_fd: int, parts: list[bytes]) -> int | None:
    """Open a directory below; None if there is none."""
    fd = os.dup(root_fd)
    for part in parts:
        try:
            below = os.open(part, DIRECTORY_FLAGS, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            os.close(fd)
        fd = below
    return fd


def _adopt(series: Series, source_fd: int, at: int, folder: str, now: int) -> list[str]:
    """Make one snapshot; gives warnings."""
    base = names.base_of(at, series.times())
    run = f"adopt {folder} {names.name_of(at)}"
    series.step("begin")
    os.mkdir(names.UNFINISHED, 0o755, dir_fd=series.fd)
    with series.snapshot(names.UNFINISHED) as unfinished:
        before = "" if base is None else names.name_of(base)
        facts = Facts(series.host, series.job, RSNAPSHOT, run, at, before, adopted=folder)
        write_json(unfinished.fd, names.FACTS, facts.dump())
        series.step("link")
        os.mkdir(names.DATA, 0o700, dir_fd=unfinished.fd)
        data_fd = unfinished.open_data()
        try:
            problems = _link_tree(source_fd, data_fd)
        finally:
            os.close(data_fd)
    # It is older than what came after it, so nothing can be concluded from what it has not.
    done = finish(series, run, now)
    return [f"{folder}: {text}" for text in problems + done.warnings]


def _link_tree(source_fd: int, data_fd: int) -> list[str]:
    """Rebuild the tree from directories and hard links; return what could not be set for the directories."""

    def fail(path: bytes, error: OSError) -> None:
        raise Refused(
            f"'{escape(path)}' of rsnapshot's cannot be read: {error.strerror}. Run this as the user who owns the "
            "backups (become)"
        )

    problems: list[str] = []
    open_ones: list[Entry] = []  # the directories above the current entry: they get their metadata when they are full
    with Root(source_fd) as source, Root(data_fd) as tree:

        def close(down_to: bytes | None) -> None:
            while open_ones and (down_to is None or not _is_below(down_to, open_ones[-1].path)):
                entry = open_ones.pop()
                tree.forget(entry.path)
                parent, name = tree.open_parent(entry.path)
                for text in metadata.apply(parent, name, entry, None, _PRESERVE):
                    problems.append(f"'{escape(entry.path) or '.'}': {text}")

        for entry in walk(source_fd, xattrs=True, on_error=fail):
            close(entry.path)
            if entry.type == DIRECTORY:
                if entry.path:
                    tree.make_directory(entry.path)
                open_ones.append(entry)
            else:
                _link(source, tree, entry)
        close(None)
    return problems


def _is_below(path: bytes, directory: bytes) -> bool:
    return not directory or path.startswith(directory + b"/")


def _link(source: Root, tree: Root, entry: Entry) -> None:
    old_parent, old_name = source.open_parent(entry.path)
    parent, name = tree.open_parent(entry.path)
    try:
        os.link(old_name, name, src_dir_fd=old_parent, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise Refused(
            f"'{escape(entry.path)}' cannot be hard-linked: {error.strerror}. The repository must be on the same file "
            "system as rsnapshot's tree, and only the owner of the files, or root, may link them"
        ) from None
