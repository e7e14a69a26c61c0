# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make entries what they shall be at the destination, and count what that took. Private to the collection."""

from __future__ import annotations

import os
import stat

from .._job.context import Context
from .._job.outcome import Outcome
from .._tree import metadata, xattr
from .._tree.compare import ATTRIBUTES, CREATE, NONE, REPLACE, Verdict, compare
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.entry import DIRECTORY, SYMLINK, Entry
from .._tree.look import read_entry
from .._tree.manifest import Decoder, encode
from .._tree.names import escape
from .._tree.place import ABSENT, Root
from .file_placer import FilePlacer
from .links import Follower
from .spool import Spool

_UNCHANGED = Verdict(NONE, " " * 11, frozenset())  # nobody is shown what did not change


class Placer(FilePlacer):
    """Everything that writes below the destination root. In check mode it writes nothing, and counts the same."""

    def __init__(self, context: Context, root: Root, outcome: Outcome) -> None:
        super().__init__(context, root, outcome)
        self._limit = int(context.settings["changes_max"])
        self._arrow = ">" if context.part == "drive" else "<"
        self._created: dict[str, Verdict] = {}  # by type: what is new is all the same
        self._spool = Spool(context.folder)

    def look(self, path: bytes) -> Entry | None:
        """Give what is at the path now, None where nothing is or no way leads there."""
        folder, _slash, name = path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            return read_entry(folder_fd, name or b".", path, self.wants_xattrs, here=self._last)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def is_unchanged(self, entry: Entry) -> bool:
        """Whether a regular file is there with the size, time and metadata that it shall have.

        It says of most of a tree that was here before all that is asked, at the least cost; where it says no, ``look``
        and ``judge`` say why.
        """
        folder, _slash, name = entry.path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            return (
                found.st_mtime_ns == entry.mtime_ns
                and found.st_size == entry.size
                and found.st_mode == stat.S_IFREG | entry.mode
                and found.st_uid == entry.uid
                and found.st_gid == entry.gid
                and (self._numeric or self._ids_stay(entry))
                and not entry.xattrs
                and not (self.wants_xattrs and xattr.read(folder_fd, name, self._last))
            )
        except OSError:
            return False

    def judge(self, entry: Entry, found: Entry | None, equal: bool | None = None, link_ok: bool = True) -> Verdict:
        """Compare an entry with what is there, under this transfer's settings."""
        if equal is None and link_ok:
            if found is None:
                if entry.type not in self._created:
                    self._created[entry.type] = compare(entry, None, preserve=self.preserve, arrow=self._arrow)
                return self._created[entry.type]
            if self._is_same(entry, found):
                return _UNCHANGED
        return compare(
            entry,
            found,
            preserve=self.preserve,
            checksum_equal=equal,
            link_ok=link_ok,
            ids=self.ids,
            powers=self.powers,
            arrow=self._arrow,
        )

    def _is_same(self, entry: Entry, found: Entry) -> bool:
        """Whether nothing at all differs that could be kept.

        In slices, which is quicker than field by field: type to mtime_ns, then target and xattrs.
        """
        return (
            entry[1:7] == found[1:7]
            and entry[13:] == found[13:]
            and entry.rdev == found.rdev
            and (self._numeric or self._ids_stay(entry))
            and (self._numeric or not entry.xattrs)  # else the ids in ACLs may mean others here
        )

    def _ids_stay(self, entry: Entry) -> bool:
        """Whether the names of an entry's owner and group have the same numbers here."""
        return self.ids.uid(entry.uid) == entry.uid and self.ids.gid(entry.gid) == entry.gid

    def count(self, entry: Entry, verdict: Verdict) -> None:
        """Count a verdict that has been carried out (or would be)."""
        if verdict.action == NONE:
            return
        outcome = self.outcome
        if verdict.itemized.endswith("+"):
            outcome.files_created += 1
        elif verdict.action == ATTRIBUTES:
            outcome.attributes_changed += 1
        else:
            outcome.files_updated += 1
        if len(outcome.changes) >= self._limit:  # it is counted, and nobody will see the text
            outcome.changes_total += 1
            return
        shown = (escape(entry.path) or ".") + ("/" if entry.type == DIRECTORY and entry.path else "")
        self.outcome.change(f"{verdict.itemized} {shown}", self._limit)

    # one entry after the other

    def directory(self, entry: Entry, found: Entry | None) -> Verdict:
        """Make a directory; its metadata are set at the end."""
        verdict = self.judge(entry, found)
        self.clear(entry, found)
        if not self.check:
            if found is None or found.type != DIRECTORY:
                self.root.make_directory(entry.path)
                self.remember(entry.path)
            elif not self.powers.all and found.uid == self.powers.uid and found.mode & 0o700 != 0o700:
                parent, name = self.root.open_parent(entry.path)
                metadata.chmod(parent, name, found.mode | 0o700)
            self._spool.push(encode(entry))
        self.count(entry, verdict)
        return verdict

    def special(self, entry: Entry, found: Entry | None) -> Verdict:
        """Make a symlink, FIFO, socket or device, or mend its attributes."""
        verdict = self.judge(entry, found)
        if verdict.action in (CREATE, REPLACE):
            self.clear(entry, found)
            if not self.check:
                if found is not None and found.type != DIRECTORY:
                    self.root.remove(entry.path)
                if entry.type == SYMLINK:
                    self.root.make_symlink(entry.path, entry.target)
                else:
                    self.root.make_special(entry.path, entry)
                self._dress_new(entry)
        elif verdict.action == ATTRIBUTES and not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)
        return verdict

    def _dress_new(self, entry: Entry) -> None:
        """Set the metadata of what was made in its place; most symlinks lack nothing but their time."""
        folder, _slash, name = entry.path.rpartition(b"/")
        plain = entry.type == SYMLINK and self._keeps_all and not entry.xattrs
        if plain and (self.ids.uid(entry.uid), self.ids.gid(entry.gid)) == self._own:
            folder_fd = self._folder(folder)
            if folder == self._new_folder:
                os.utime(name, ns=(self._now, entry.mtime_ns), dir_fd=folder_fd, follow_symlinks=False)
                return
        self.apply(entry, None)

    def apply(self, entry: Entry, found: Entry | None) -> None:
        """Set the metadata of what is in place."""
        parent, name = self.root.open_parent(entry.path)
        for problem in metadata.apply(parent, name, entry, found, self.preserve, self.ids, powers=self.powers):
            self.failed(entry.path, problem)

    def attributes(self, entry: Entry, found: Entry, verdict: Verdict) -> None:
        """Mend the attributes of a regular file whose content is right."""
        if not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)

    def follower(self, link: Follower) -> Verdict:
        """Give a file one more name."""
        entry = link.entry
        leader, found = self.root.lstat(link.leader), self.look(entry.path)
        linked = (
            leader is not None
            and found is not None
            and (leader.dev, leader.ino) == (found.dev, found.ino)
            and not (self.check and link.is_new)
        )
        verdict = self.judge(entry, found, link_ok=linked)
        if linked:
            return verdict._replace(action=NONE)  # the other name got whatever it needed
        self.clear(entry, found)
        if not self.check:
            if found is None or found.type == DIRECTORY:
                self.root.hard_link(link.leader, entry.path)
            else:
                parent, name = self.root.open_parent(link.leader)
                temporary = self.temporary_name()
                os.link(name, temporary, src_dir_fd=parent, dst_dir_fd=self.temporary_fd, follow_symlinks=False)
                self.root.rename_into(self.temporary_fd, temporary, entry.path)
        self.count(entry, verdict)
        return verdict

    # the end

    def finish(self) -> None:
        """Give the directories their metadata, the deepest first."""
        for record in self._spool.drain():
            entry = next(iter(Decoder().feed(record)))
            try:
                found = self.look(entry.path)
                if found is None or found.type != DIRECTORY:
                    self.failed(entry.path, "the directory vanished from the destination during the transfer")
                elif not self._is_same(entry, found):
                    self._dress_directory(entry, found)
            except (OSError, OverflowError) as error:
                self.failed(entry.path, error)

    def _dress_directory(self, entry: Entry, found: Entry) -> None:
        """Give a directory its metadata, by its own fd where that is all: a tree has many."""
        uid, gid = self.ids.uid(entry.uid), self.ids.gid(entry.gid)
        same_owner = (uid, gid) == (found.uid, found.gid)
        if not self._keeps_all or entry.xattrs or found.xattrs or not (same_owner or self.powers.all):
            if metadata.differences(entry, found, self.preserve, self.ids, self.powers):
                self.apply(entry, found)
            return
        folder, _slash, name = entry.path.rpartition(b"/")
        fd = os.open(name or b".", DIRECTORY_FLAGS, dir_fd=self._folder(folder))
        try:
            if not same_owner:
                os.fchown(fd, uid, gid)
            if not same_owner or found.mode != entry.mode:
                os.fchmod(fd, entry.mode)
            os.utime(fd, ns=(self._now, entry.mtime_ns))
        finally:
            os.close(fd)

    def close(self) -> None:
        """Give back what is open."""
        self._spool.close()
        super().close()
