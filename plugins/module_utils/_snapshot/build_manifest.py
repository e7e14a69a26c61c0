# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a tree into its manifest beside that of the snapshot before. Private to the collection.

Both come in the order of a walk, so they are laid side by side as streams. A file that is hard-linked to the one of the
snapshot before is not read: its hash is taken from there. That it is the same file is asked of the file system now, not
of numbers that were written down, so a repository that was copied to another disk is no danger; and its size and time
must be those of the manifest.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Callable, Iterator

from .._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import escape, order
from .._tree.content_hash import with_contents
from .._tree.dirfd import Root
from .._tree.holes import count_holes
from .._tree.record import EntryRecord
from .._tree.walk import walk
from . import names
from .atomic_io import open_file
from .errors import Refused
from .facts import Figures
from .manifest import ManifestWriter
from .moved_files import MovedFiles
from .repository import SnapshotFolder

if TYPE_CHECKING:
    from typing import Protocol

    class Beside(Protocol):
        """What sees a tree in the walk that makes its manifest, and says whether it is the expected one."""

        def add(self, entry: Entry) -> None:
            """Take the next entry of the walk."""

        @property
        def is_equal(self) -> bool:
            """Whether the tree is the expected one."""


MAX_LISTED = 20
_GROUPS = 100_000  # files with several names, all new, that are remembered at once
_MOST_SOUGHT = 100_000  # new files with several names that are looked for at other paths; the others count as new
_MOST_ALIKE = 8  # files of the same size and time among which a moved one is looked for
_FORBIDDEN = (errno.EACCES, errno.EPERM)


@dataclass
class ManifestTotals:
    """What a snapshot holds. Sizes are bytes with holes, a file with several names once for each."""

    entries: int = 0
    files: int = 0  # regular ones
    bytes: int = 0
    new_files: int = 0  # regular ones that the snapshot before has not at any path
    new_bytes: int = 0  # in them without holes, a file with several names once
    link_bytes: int = 0  # in the targets of symbolic links, which rsync counts among the bytes of a tree
    gone: int = 0  # names of the snapshot before that are no directories and are not in this one
    before: int = 0  # names of the snapshot before that are no directories
    unreadable: int = 0  # files whose contents this user may not read, so they have no hash
    healed: int = 0  # files of the snapshot before that are known to be damaged, and that were sent again
    changed: int = 0  # regular files that the snapshot before has with other contents
    files_before: int = 0  # regular files of the snapshot before
    moved: int = 0  # regular files that are linked to the snapshot before at another path; not among the new ones
    folders: int = 0
    unreadable_paths: list[str] = field(default_factory=list)

    def figures(self) -> Figures:
        """Return what is kept; sizes of symbolic links only help to compare with what a transfer counted."""
        return Figures(*(getattr(self, name) for name in Figures._fields))


class OlderTree:
    """An older snapshot, as a stream beside the walk of the new one. Close it when done."""

    def __init__(self, snapshot: SnapshotFolder | None, algorithm: str, passed: Callable[[EntryRecord], None]) -> None:
        """``passed`` is told of the records that the walk has nothing beside. None stands for an empty snapshot."""
        self._stack = contextlib.ExitStack()
        self._passed = passed
        self._root: Root | None = None
        self._records: Iterator[EntryRecord] = iter(())
        self._same_algorithm = False
        self._at: EntryRecord | None = None
        self.problem = ""  # why the rest of its manifest cannot be used
        self._snapshot = snapshot
        self._moved: MovedFiles | None = None
        self._sought = 0
        if snapshot is not None:
            try:
                reader = self._stack.enter_context(snapshot.manifest())
                self._same_algorithm = reader.algorithm == algorithm
                self._records = reader.records()
                fd = snapshot.open_data()
            except (ManifestError, OSError) as error:
                self._fail(error)
            else:
                self._root = self._stack.enter_context(_root_of(fd))
            self._next()

    def close(self) -> None:
        """Close its files."""
        self._stack.close()

    def find(self, entry: Entry) -> EntryRecord | None:
        """Go on to the place of an entry, and return the record of its path."""
        key = order(entry.path)
        while self._at is not None and order(self._at.entry.path) < key:
            self._passed(self._at)
            self._next()
        record = self._at
        if record is None or record.entry.path != entry.path:
            return None
        self._next()
        return record

    def finish(self) -> None:
        """Go on to the end."""
        while self._at is not None:
            self._passed(self._at)
            self._next()

    def is_linked(self, entry: Entry, record: EntryRecord) -> bool:
        """Return whether the file is the very one that the snapshot has at this path, and as it was written down."""
        old = record.entry
        if self._root is None or entry.nlink < 2 or (old.size, old.mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        try:
            there = self._root.lstat(entry.path)
        except OSError:
            return False
        return there is not None and (there.dev, there.ino) == (entry.dev, entry.ino)

    def is_moved(self, entry: Entry) -> bool:
        """Return whether the file is one that the snapshot has at another path. The first call reads its manifest."""
        if self._snapshot is None or self._root is None or self.problem or entry.nlink < 2:
            return False
        self._sought += 1
        if self._sought > _MOST_SOUGHT:
            return False
        try:
            if self._moved is None:
                file = self._stack.enter_context(open_file(self._snapshot.fd, names.MANIFEST))
                self._moved = MovedFiles(file.fileno(), at_once=True)
            name = entry.path.rpartition(b"/")[2]
            for path in islice(self._moved.find(entry.size, entry.mtime_ns, name, False), _MOST_ALIKE):
                there = self._root.lstat(path)
                if there is not None and (there.dev, there.ino) == (entry.dev, entry.ino):
                    return True
        except OSError:
            pass
        return False

    def hash_of(self, record: EntryRecord) -> bytes:
        """Return the hash of a record, empty if the new manifest has hashes of another algorithm."""
        return record.content if self._same_algorithm else b""

    def _next(self) -> None:
        try:
            self._at = next(self._records, None)
        except (ManifestError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.problem, self._at, self._records = str(error), None, iter(())


class Before:
    """The snapshot before, and a newer one that was set aside, beside the walk of the new one. Close it when done.

    Files may be linked to both. What is gone and what has changed is counted against the snapshot before alone.
    """

    def __init__(
        self,
        snapshot: SnapshotFolder | None,
        aside: SnapshotFolder | None,
        algorithm: str,
        totals: ManifestTotals,
        new: Root,
    ) -> None:
        self._totals, self._new = totals, new
        self._base = OlderTree(snapshot, algorithm, self._count_gone)
        self._aside = OlderTree(aside, algorithm, lambda record: None) if aside is not None else None
        self._groups: OrderedDict[tuple[int, int], int] = OrderedDict()  # new files -> names still to come
        self._unread: dict[bytes, bytes] = {}  # paths whose contents are being read -> what they had been before

    @property
    def problem(self) -> str:
        """Why the rest of the manifest of the snapshot before cannot be used."""
        return self._base.problem

    def close(self) -> None:
        """Close all files."""
        self._base.close()
        if self._aside is not None:
            self._aside.close()

    def known(self, entry: Entry) -> bytes:
        """Return the hash of the next entry's contents if it need not be read; count new and missing ones."""
        record = self._compare_entry(entry)
        if entry.type != REGULAR:
            return b""
        if record is not None and self._base.is_linked(entry, record):
            return self._base.hash_of(record)
        if record is not None:
            self._unread[entry.path] = self._base.hash_of(record)
        found = self._aside.find(entry) if self._aside is not None else None
        if self._aside is not None and found is not None and self._aside.is_linked(entry, found):
            return self._aside.hash_of(found)
        if self._is_first_name(entry):
            if self._base.is_moved(entry) or (self._aside is not None and self._aside.is_moved(entry)):
                self._totals.moved += 1
                return b""
            self._totals.new_files += 1
            self._totals.new_bytes += count_holes(self._new, entry).content
        return b""

    def read(self, entry: Entry, content: bytes) -> None:
        """Count an entry whose contents are known now, if they have changed."""
        before = self._unread.pop(entry.path, b"")
        self._totals.changed += bool(before and content and before != content)

    def finish(self) -> None:
        """Count the rest as gone."""
        self._base.finish()

    def _compare_entry(self, entry: Entry) -> EntryRecord | None:
        """Go on to the place of the entry; give what was at its path, if that is a regular file."""
        record = self._base.find(entry)
        if record is None:
            return None
        self._count_before(record)
        self._totals.gone += record.entry.type != DIRECTORY and entry.type == DIRECTORY
        return record if record.entry.type == REGULAR else None

    def _count_gone(self, record: EntryRecord) -> None:
        self._count_before(record)
        self._totals.gone += record.entry.type != DIRECTORY

    def _count_before(self, record: EntryRecord) -> None:
        self._totals.before += record.entry.type != DIRECTORY
        self._totals.files_before += record.entry.type == REGULAR

    def _is_first_name(self, entry: Entry) -> bool:
        """Return whether no name of this new file came before."""
        shared = entry.link_id
        if shared is None:
            return True
        left = self._groups.pop(shared, None)
        to_come = (entry.nlink if left is None else left) - 1
        if to_come:
            self._groups[shared] = to_come
            if len(self._groups) > _GROUPS:
                self._groups.popitem(last=False)
        return left is None


@contextlib.contextmanager
def _root_of(fd: int) -> Iterator[Root]:
    try:
        with Root(fd) as root:
            yield root
    finally:
        os.close(fd)


def build_manifest(
    data_fd: int,
    before: SnapshotFolder | None,
    algorithm: str,
    writer: ManifestWriter | None,
    beside: Beside | None = None,
    aside: SnapshotFolder | None = None,
) -> tuple[ManifestTotals, str]:
    """Walk a tree that nothing writes to; give its totals, and why the manifest of the snapshot before is of no use.

    With a ``writer`` all contents that are not known yet are read, and the manifest is written. Without one the figures
    alone are found, but for what has changed. ``beside`` is given each entry that is written. ``aside`` is a snapshot
    that was set aside, to which files may be linked as well. Raises Refused if something cannot be read, for then the
    snapshot is not whole.
    """

    def fail(path: bytes, error: OSError) -> None:
        raise _broken(path, error)

    totals, tree = ManifestTotals(), Root(data_fd)
    older = Before(before, aside, algorithm, totals, tree)
    try:
        entries = walk(data_fd, xattrs=True, on_error=fail)
        if writer is None:
            for entry in entries:
                older.known(entry)
                older.read(entry, b"")
                _count(totals, entry)
        else:
            for entry, content in with_contents(entries, data_fd, algorithm, known=older.known):
                if isinstance(content, OSError):
                    if content.errno not in _FORBIDDEN:
                        raise _broken(entry.path, content)
                    totals.unreadable += 1
                    if len(totals.unreadable_paths) < MAX_LISTED:
                        totals.unreadable_paths.append(escape(entry.path))
                    content = b""
                _count(totals, entry)
                older.read(entry, content)
                writer.add(entry, content)
                if beside is not None:
                    beside.add(entry)
        older.finish()
    finally:
        older.close()
        tree.close()
    return totals, older.problem


def _count(totals: ManifestTotals, entry: Entry) -> None:
    totals.entries += 1
    if entry.type == REGULAR:
        totals.files += 1
        totals.bytes += entry.size
    elif entry.type == DIRECTORY:
        totals.folders += 1
    elif entry.type == SYMLINK:
        totals.link_bytes += entry.size


def _broken(path: bytes, error: OSError) -> Refused:
    return Refused(
        f"'{escape(path) or '.'}' of the unfinished snapshot cannot be read: {error.strerror}. A snapshot is complete "
        "only when all of it can be read, so this one stays unfinished. Look into the system's log for errors of the "
        "disk, then run the backup again to resume"
    )
