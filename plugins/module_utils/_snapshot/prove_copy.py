# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove that a copied snapshot is the one that its manifest describes. Private to the collection.

The manifest of the first repository arrives as a file with the tree. While the tree is read for a manifest of its own,
each entry is compared with it: metadata, and the hash of what is on this disk. The first repository is not trusted: its
manifest is input, and an entry that differs from it is named, whatever the reason.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import BinaryIO, Iterator

from .._model.entry import DIRECTORY, REGULAR, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import order
from .._tree.dirfd import Root
from .._tree.record import FIELDS, UNOWNED, Describer, EntryRecord
from .._tree.time_units import units_of
from . import names
from .errors import Refused
from .manifest import About, ManifestReader, ManifestWriter
from .repository import SnapshotFolder

MAX_UNPROVEN = 1000  # entries that are named; the tree is read no further than to the last of them
_COMPARED = FIELDS - {"content", "links"}


class CopyMismatch(Exception):
    """Entries of a copied tree are not what its manifest says; with MAX_UNPROVEN of them there may be more."""

    def __init__(self, paths: list[bytes]) -> None:
        super().__init__(f"{len(paths)} entries differ")
        self.paths = paths


@contextlib.contextmanager
def arrived_manifest(unfinished: SnapshotFolder) -> Iterator[ManifestReader]:
    """Open the manifest that came with a copy. Raises Refused if there is none that can be read."""
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(names.MANIFEST, dir_fd=unfinished.fd, follow_symlinks=False).st_mode):
                raise ManifestError("it is no file")
        with unfinished.manifest() as manifest:
            yield manifest
    except ManifestError as error:  # also one that is found while it is read
        raise Refused(
            f"the manifest that came with the copy cannot be used: {error}. Nothing says what the copy must be, so it "
            "stays unfinished. Check the snapshot in the first repository"
        ) from None


def describer_for(data_fd: int) -> Describer:
    """Return what compares the entries of a tree with a manifest. Without root's rights owners cannot be kept."""
    fields = _COMPARED if os.geteuid() == 0 else (_COMPARED - {"owner", "acls"}) | {UNOWNED}
    return Describer(fields, times=units_of(data_fd))


class ProvingWriter(ManifestWriter):
    """Writes the manifest of a copied tree, and compares each entry with the one that arrived."""

    def __init__(self, file: BinaryIO, about: About, arrived: ManifestReader, describer: Describer) -> None:
        super().__init__(file, about)
        self._records = arrived.records()
        self._describer = describer
        self._next: EntryRecord | None = next(self._records, None)
        self.unproven: list[bytes] = []

    def add(self, entry: Entry, content: bytes) -> None:
        """Add the next entry of the walk. Raises CopyMismatch once MAX_UNPROVEN entries differ."""
        super().add(entry, content)
        key = order(entry.path)
        while self._next is not None and order(self._next.entry.path) < key:
            self._note(self._next.entry.path)
            self._next = next(self._records, None)
        record = self._next
        if record is None or record.entry.path != entry.path:
            self._note(entry.path)
            return
        self._next = next(self._records, None)
        there = EntryRecord(entry, content, entry.path)
        if not is_proven(self._describer, there, record):
            self._note(entry.path)

    def conclude(self) -> None:
        """Read the arrived manifest to its end. Raises CopyMismatch if any entry differs, and ManifestError."""
        while self._next is not None:
            self._note(self._next.entry.path)
            self._next = next(self._records, None)
        if self.unproven:
            raise CopyMismatch(self.unproven)

    def _note(self, path: bytes) -> None:
        self.unproven.append(path)
        if len(self.unproven) >= MAX_UNPROVEN:
            raise CopyMismatch(self.unproven)


def is_proven(describer: Describer, there: EntryRecord, record: EntryRecord) -> bool:
    """Return whether an entry is what the manifest says. A file without a hash there has nothing to be proven."""
    if there.entry.type == REGULAR and record.content and there.content != record.content:
        return False
    return describer.describe(there) == describer.describe(record)


def drop_unproven(unfinished: SnapshotFolder, paths: list[bytes]) -> None:
    """Remove the names of an unfinished copy that are not as they must be, so that they are sent again.

    Folders stay: a transfer sets their metadata.
    """
    with unfinished.tree() as tree:
        for path in paths:
            entry = _look(tree, path)
            if entry is not None and entry.type != DIRECTORY:
                tree.remove(path)


def _look(tree: Root, path: bytes) -> Entry | None:
    try:
        return tree.lstat(path) if path else None
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return None
        raise
