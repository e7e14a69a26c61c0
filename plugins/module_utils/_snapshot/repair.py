# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replace damaged files of snapshots by intact ones. Private to the collection.

Checks have written down which files are damaged. Intact contents come from another snapshot of the job that has them at
the same path, or from files that a transfer brought from a second copy. Whatever the source, the new file is read again
here, and its hash and metadata must be those of the manifest before one rename puts it in its place. All names that
share the damaged file get the new one, so hard links stay. A file that turns out to be intact is never replaced.

A kill leaves at most some names with the new file and others with the old one, and the records of damage as they were;
the next repair does the rest.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Collection, Iterator, NamedTuple

from .._core.disk_full import FULL
from .._core.files import hash_and_close, segments, write_all
from .._model.entry import DIRECTORY, REGULAR, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import escape, unescape
from .._tree import metadata
from .._tree.dirfd import Root
from .._tree.inode import exchanged, is_same
from .._tree.record import Describer, EntryRecord
from .._tree.stat_entry import stat_entry
from .._tree.walk import walk
from . import names
from .atomic_io import open_directory, write_json
from .check_contents import more_fds
from .damage import file_at
from .errors import Busy
from .facts import DAMAGED, CheckRecord, Finding
from .history import REPAIRED, event_of, note
from .prove_copy import describer_for
from .prune import remove_tree
from .read_only import make_read_only, make_writable
from .repository import Series, SnapshotFolder

MOST_WANTED = 1000  # contents that are asked of a copy at once
REPAIRABLE = (DAMAGED, "unreadable", "missing", "differs")  # findings that an intact file ends
_PRESERVE = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])
_NEW, _LINK = b"new", b"link"  # in the folder of a repair
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COPIED = 1 << 20  # bytes at once


class RepairedFile(NamedTuple):
    """A path whose damaged file was replaced."""

    path: str  # escaped
    snapshots: list[str]
    source: str  # the snapshot, or the other repository, that had the contents


class WantedContent(NamedTuple):
    """Contents that no snapshot of this repository has intact."""

    path: str  # escaped
    snapshots: list[str]  # whose manifests have these contents at the path
    size: int


class RepairOutcome(NamedTuple):
    """The result of a repair, or the prediction of one."""

    changed: bool
    repaired: list[RepairedFile]
    wanted: list[WantedContent]
    left: int  # findings that put contents in doubt still
    problems: list[str]  # why files were not replaced although their contents are there


class _Tree:
    """A snapshot with its tree, its manifest's records of some paths, and what checks found in it."""

    def __init__(self, snapshot: SnapshotFolder, root: Root) -> None:
        self.name, self.folder, self.root = snapshot.name, snapshot, root
        self.checked: CheckRecord = snapshot.checked()
        self.damaged = {unescape(one.path) for one in self.checked.findings if _is_repairable(one)}
        self.records: dict[bytes, EntryRecord] = {}
        self.algorithm = ""
        self.describer: Describer = describer_for(root.fd)
        self.intact: set[bytes] = set()  # damaged paths that are as they must be now

    def read_records(self, paths: Collection[bytes]) -> None:
        """Read what the manifest says of these paths. Raises ManifestError and OSError."""
        with self.folder.manifest() as manifest:
            self.algorithm = manifest.algorithm
            for block in manifest.blocks():
                numbers = [number for number, path in enumerate(block.paths) if path in paths]
                self.records.update((record.entry.path, record) for record in block.records(numbers))

    def write_checked(self) -> None:
        """Forget the findings of the paths that are intact now."""
        gone = {escape(path) for path in self.intact}
        left = tuple(one for one in self.checked.findings if not (_is_repairable(one) and one.path in gone))
        if left != self.checked.findings:
            self.checked = self.checked._replace(findings=left)
            write_json(self.folder.fd, names.CHECKED, self.checked.dump())


class _Source(NamedTuple):
    """A file that may have the wanted contents."""

    root: Root
    entry: Entry
    label: str
    is_staged: bool  # brought for this repair, so that it may be moved


def _is_repairable(finding: Finding) -> bool:
    return finding.in_doubt and finding.kind in REPAIRABLE


def repair(
    series: Series,
    now: int,
    writer: Callable[[str], str | None] = lambda path: None,
    *,
    copied_from: str = "",
    check: bool = False,
) -> RepairOutcome:
    """Replace the files that checks found damaged, as far as intact contents are at hand. The lock is the caller's.

    ``copied_from``: where a transfer brought contents from, which wait in the folder of the repair; empty: there are
    none. That folder is gone afterwards. ``writer`` says who writes to a path. Raises Busy if a transfer still does.
    """
    if series.missing:
        return RepairOutcome(False, [], [], 0, [])
    holder = writer(os.path.join(series.path, names.REPAIR, names.DATA))
    if holder is not None:
        raise Busy(f"{holder} brings contents for a repair at this moment: wait for it to end, and run this again")
    with contextlib.ExitStack() as stack:
        trees = list(_open_trees(series, stack))
        done = _Repair(series, trees, now, copied_from, check)
        if any(tree.damaged for tree in trees):
            done.run(stack)
        elif not check:
            done.clean_up()
        return done.outcome()


def _open_trees(series: Series, stack: contextlib.ExitStack) -> Iterator[_Tree]:
    more_fds()
    for name in series.named() + series.named(names.ASIDE):
        with contextlib.suppress(OSError):
            snapshot = stack.enter_context(series.snapshot(name))
            yield _Tree(snapshot, stack.enter_context(snapshot.tree()))


class _Repair:
    """One repair of the snapshots of a job."""

    def __init__(self, series: Series, trees: list[_Tree], now: int, copied_from: str, check: bool) -> None:
        self._series, self._trees, self._now = series, trees, now
        self._copied_from, self._check = copied_from, check
        self._repaired: dict[tuple[bytes, str], list[str]] = {}  # path and source -> snapshots
        self._wanted: dict[tuple[bytes, bytes], WantedContent] = {}
        self._problems: list[str] = []
        self._names: dict[tuple[int, int], list[tuple[_Tree, bytes]]] = {}  # of damaged files
        self._staged: Root | None = None
        self._fd = -1  # the folder of the repair

    def run(self, stack: contextlib.ExitStack) -> None:
        """Repair what can be repaired."""
        self._names = _names_of(self._trees)
        paths = {path for found in self._names.values() for _tree, path in found}
        paths.update(path for tree in self._trees for path in tree.damaged)
        for tree in self._trees:
            with contextlib.suppress(ManifestError, OSError):  # nothing says what its files must be
                tree.read_records(paths)
        if self._check:
            self._replace_all()
            return
        try:
            named = {tree.name for found in self._names.values() for tree, _path in found}
            for tree in self._trees:
                if tree.damaged or tree.name in named:
                    make_writable(tree.folder)
            self._open_folder(stack)
            self._replace_all()
            self._series.step("repaired")
            for tree in self._trees:
                tree.write_checked()
            self._note()
            self.clean_up()
        finally:  # an error must not leave folders without their flags
            self._problems += make_read_only(self._series)[1]

    def _replace_all(self) -> None:
        """Repair each damaged entry. Folders come last: what is put into them changes their times."""
        for do in (self._repair_file, self._repair_folder):
            for tree in self._trees:
                for path in sorted(tree.damaged, reverse=True):
                    if path in tree.records and path not in tree.intact:
                        try:
                            do(tree, path, tree.records[path])
                        except (OSError, ValueError) as error:
                            self._problems.append(f"'{escape(path)}' in {tree.name}: {error}")

    def outcome(self) -> RepairOutcome:
        """Return what was done."""
        left = sum(
            one.in_doubt and not (_is_repairable(one) and unescape(one.path) in tree.intact)
            for tree in self._trees
            for one in tree.checked.findings
        )
        repaired = [RepairedFile(escape(path), found, label) for (path, label), found in self._repaired.items()]
        changed = bool(repaired) or any(tree.intact for tree in self._trees)
        return RepairOutcome(changed, repaired, list(self._wanted.values()), left, self._problems)

    def clean_up(self) -> None:
        """Remove the folder of the repair."""
        if self._series.has(names.REPAIR):
            remove_tree(self._series, names.REPAIR)

    def _open_folder(self, stack: contextlib.ExitStack) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(names.REPAIR, 0o700, dir_fd=self._series.fd)
        self._fd = open_directory(self._series.fd, names.REPAIR)
        stack.callback(os.close, self._fd)
        if self._copied_from:
            with contextlib.suppress(FileNotFoundError):
                data_fd = open_directory(self._fd, names.DATA)
                stack.callback(os.close, data_fd)
                self._staged = stack.enter_context(Root(data_fd))
        self._drop(_NEW)
        self._drop(_LINK)

    def _drop(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def _repair_file(self, tree: _Tree, path: bytes, record: EntryRecord) -> None:
        if record.entry.type != REGULAR or not record.content:
            return  # nothing says what it must be
        there = tree.root.lstat(path, xattrs=True)
        if there is not None and there.type != REGULAR:
            self._problems.append(f"'{escape(path)}' in {tree.name}: something else is in its place; it is left alone")
            return
        if there is not None and self._is_intact(tree, there, record):
            tree.intact.add(path)
            return
        for source in self._sources(tree, path, record, there):
            if self._check:
                if _hash(source.root, source.entry, tree.algorithm) == record.content:
                    self._count(tree, path, source.label)
                    return
            elif self._bring(source, tree, record):
                self._put(tree, path, there, record, source.label)
                return
        self._want(tree, path, record)

    def _repair_folder(self, tree: _Tree, path: bytes, record: EntryRecord) -> None:
        """Set the metadata of a folder again, such as the time that changed when a file was removed from it."""
        there = tree.root.lstat(path, xattrs=True)
        if there is None or not record.entry.type == there.type == DIRECTORY:
            return
        if not self._check:
            parent, name = tree.root.open_parent(path)
            metadata.apply(parent, name, record.entry, there, _PRESERVE)
            there = tree.root.lstat(path, xattrs=True)
        if self._check or (there is not None and _describes(tree, there, record)):
            tree.intact.add(path)

    def _is_intact(self, tree: _Tree, there: Entry, record: EntryRecord) -> bool:
        return _describes(tree, there, record) and _hash(tree.root, there, tree.algorithm) == record.content

    def _sources(self, tree: _Tree, path: bytes, record: EntryRecord, there: Entry | None) -> Iterator[_Source]:
        """Yield files that should have these contents, each once: the file itself if its metadata alone are wrong."""
        seen: set[tuple[int, int]] = set()
        if there is not None and _describes(tree, there, record):
            seen.add((there.dev, there.ino))
        for other in self._trees:
            found = other.records.get(path)
            entry = file_at(other.root, path) if found is not None and _has_same_content(tree, record, other) else None
            if entry is not None and (entry.dev, entry.ino) not in seen:
                seen.add((entry.dev, entry.ino))
                yield _Source(other.root, entry, other.name, False)
        staged = file_at(self._staged, path) if self._staged is not None else None
        if self._staged is not None and staged is not None:
            yield _Source(self._staged, staged, self._copied_from, True)

    def _bring(self, source: _Source, tree: _Tree, record: EntryRecord) -> bool:
        """Make the new file beside; return whether it is what the manifest says, by its bytes on this disk."""
        self._series.step("bring")
        self._drop(_NEW)
        parent, name = source.root.open_parent(source.entry.path)
        entry = stat_entry(parent, name, source.entry.path, xattrs=True)
        fits = _describes(tree, entry, record)
        try:
            if source.is_staged and entry.nlink == 1:
                os.rename(name, _NEW, src_dir_fd=parent, dst_dir_fd=self._fd)
            elif source.is_staged or not fits or not self._link(parent, name):
                self._copy(source)
        except OSError as error:
            if error.errno in FULL:
                raise
            return False
        new = stat_entry(self._fd, _NEW, record.entry.path, xattrs=True)
        if new.type != REGULAR:
            return False
        if new.nlink == 1:  # else it is a file of another snapshot, and has all that it must have
            metadata.apply(self._fd, _NEW, record.entry, new, _PRESERVE)
        fd = os.open(_NEW, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
        os.fsync(fd)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # read what the disk has, not what memory has
        try:
            is_right = hash_and_close(fd, tree.algorithm) == record.content
        except OSError:
            return False
        if is_right and not _describes(tree, stat_entry(self._fd, _NEW, record.entry.path, xattrs=True), record):
            self._problems.append(
                f"'{escape(record.entry.path)}' in {tree.name}: its owner or attributes cannot be set"
            )
            return False
        return is_right

    def _link(self, parent: int, name: bytes) -> bool:
        """Make the new file a further name of one that is as it must be, as snapshots share files; False: it cannot."""
        try:
            os.link(name, _NEW, src_dir_fd=parent, dst_dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _copy(self, source: _Source) -> None:
        old = source.root.open_file(source.entry.path, source.entry)
        try:
            fd = os.open(_NEW, _NEW_FILE, 0o600, dir_fd=self._fd)
            try:
                os.ftruncate(fd, source.entry.size)
                for start, end, has_contents in segments(old, 0, source.entry.size):
                    while start < end and has_contents:
                        data = os.pread(old, min(_COPIED, end - start), start)
                        if not data:
                            break
                        write_all(fd, memoryview(data), start)
                        start += len(data)
            finally:
                os.close(fd)
        finally:
            os.close(old)

    def _put(self, tree: _Tree, path: bytes, there: Entry | None, record: EntryRecord, label: str) -> None:
        """Replace the damaged file by the new one at all its names whose manifests say the same of it."""
        places = [(tree, path)]
        if there is not None:
            places += [one for one in self._names.get((there.dev, there.ino), ()) if one != (tree, path)]
        for other, name in places:
            found = other.records.get(name)
            if found is None or (found.content, other.algorithm) != (record.content, tree.algorithm):
                continue
            if other.describer.describe(found) == tree.describer.describe(record):
                self._series.step("replace")
                self._replace(other, name, there)
                self._count(other, name, label)
        self._drop(_NEW)

    def _replace(self, tree: _Tree, path: bytes, there: Entry | None) -> None:
        """Put the new file at a path, over the damaged one that is ``there``. The folder keeps its times."""
        parent, name = tree.root.open_parent(path)
        folder = os.fstat(parent)
        if there is not None:
            if not is_same(os.stat(name, dir_fd=parent, follow_symlinks=False), there):
                raise exchanged()
        elif tree.root.lstat(path) is not None:
            raise exchanged()
        self._drop(_LINK)
        os.link(_NEW, _LINK, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
        os.rename(_LINK, name, src_dir_fd=self._fd, dst_dir_fd=parent)
        os.utime(parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))
        os.fsync(parent)

    def _count(self, tree: _Tree, path: bytes, label: str) -> None:
        tree.intact.add(path)
        self._repaired.setdefault((path, label), []).append(tree.name)

    def _want(self, tree: _Tree, path: bytes, record: EntryRecord) -> None:
        having = [
            other.name for other in self._trees if path in other.records and _has_same_content(tree, record, other)
        ]
        if len(self._wanted) < MOST_WANTED:
            self._wanted[path, record.content] = WantedContent(escape(path), having, record.entry.size)

    def _note(self) -> None:
        """Enter in the history which snapshots were repaired."""
        events = []
        for tree in self._trees:
            found = [(path, label) for (path, label), those in self._repaired.items() if tree.name in those]
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                why = f"from {found[0][1]}: '{escape(found[0][0])}'{more}"
                events.append(event_of(self._series, REPAIRED, tree.name, self._now, why))
        note(self._series, *events)


def _has_same_content(tree: _Tree, record: EntryRecord, other: _Tree) -> bool:
    """Return whether another snapshot has the same contents at the path of a record, by its manifest."""
    found = other.records[record.entry.path]
    return (found.content, found.entry.size, other.algorithm) == (record.content, record.entry.size, tree.algorithm)


def _describes(tree: _Tree, entry: Entry, record: EntryRecord) -> bool:
    """Return whether the metadata of an entry are those of a record."""
    return tree.describer.describe(EntryRecord(entry, b"", entry.path)) == tree.describer.describe(record)


def _hash(root: Root, entry: Entry, algorithm: str) -> bytes:
    """Return the hash of a file; empty if it cannot be read, or is not the one that was looked at."""
    with contextlib.suppress(OSError):
        return hash_and_close(root.open_file(entry.path, entry), algorithm)
    return b""


def _names_of(trees: list[_Tree]) -> dict[tuple[int, int], list[tuple[_Tree, bytes]]]:
    """Return all names of the damaged files, by device and inode. Trees are walked only if the paths are not all."""
    paths = {path for tree in trees for path in tree.damaged}
    links: dict[tuple[int, int], int] = {}
    entries = [(tree, path, file_at(tree.root, path)) for tree in trees for path in paths]
    for tree, path, entry in entries:
        if entry is not None and path in tree.damaged:
            links[entry.dev, entry.ino] = entry.nlink
    found: dict[tuple[int, int], list[tuple[_Tree, bytes]]] = {}
    for tree, path, entry in entries:
        if entry is not None and (entry.dev, entry.ino) in links:
            found.setdefault((entry.dev, entry.ino), []).append((tree, path))
    short = {inode for inode, count in links.items() if len(found[inode]) < count}
    for tree in trees if short else ():
        for entry in walk(tree.root.fd, on_error=lambda _path, _error: None):
            inode = (entry.dev, entry.ino)
            if entry.type == REGULAR and inode in short and (tree, entry.path) not in found[inode]:
                found[inode].append((tree, entry.path))
    return found
