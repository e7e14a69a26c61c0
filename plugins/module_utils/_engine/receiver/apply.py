# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring entries at the destination to the desired state, and count the changes."""

from __future__ import annotations

import contextlib
import os
import stat

from ..._core.context import Context
from ..._core.outcome import Outcome
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.paths import escape
from ..._tree import metadata, xattr
from ..._tree.compare import ATTRIBUTES, CREATE, NONE, REPLACE, UNCHANGED, Verdict, compare
from ..._tree.descent import DIRECTORY_FLAGS
from ..._tree.dirfd import ABSENT, Root
from ..._tree.stat_entry import stat_entry
from ..content.sparse import make_sparse
from .apply_file import FileApplier
from .disk_stack import DiskStack
from .hardlinks import Follower
from .inode_claims import Claims
from .new_file import copy_file

_UNCHANGED = Verdict(NONE, " " * 11, frozenset())  # nobody is shown what did not change

_GIVEN = frozenset(["owner", "group"])
_SET_ID = stat.S_ISUID | stat.S_ISGID
_ALL = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])


class Applier(FileApplier):
    """Everything that writes below the destination root. In check mode it writes nothing, and counts the same."""

    def __init__(self, context: Context, root: Root, outcome: Outcome) -> None:
        super().__init__(context, root, outcome)
        self._limit = int(context.settings["changes_max"])
        self._arrow = ">" if context.part == "drive" else "<"
        self._created: dict[str, Verdict] = {}  # by type: what is new is all the same
        self._spool = DiskStack(context.folder)
        self._keeps_mode = "permissions" in self.preserve
        self._has_snapshots = bool(context.settings["link_dest"])
        self._keeps_links = "hardlinks" in self.preserve
        self._claims = Claims()

    def entry_at(self, path: bytes) -> Entry | None:
        """Return the entry at the path now, None if there is none or it cannot be reached."""
        folder, _slash, name = path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            return stat_entry(folder_fd, name or b".", path, self.wants_xattrs, here=self._last)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def is_unchanged(self, entry: Entry) -> bool:
        """Whether a regular file exists with the expected size, time and metadata.

        For most of a tree that was here before, this answers the question at the lowest cost. Where the answer is no,
        ``entry_at`` and ``judge`` tell why.
        """
        folder, _slash, name = entry.path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            return (
                found.st_mtime_ns == entry.mtime_ns
                and found.st_size == entry.size
                and found.st_mode == stat.S_IFREG | entry.mode
                and found.st_uid == (entry.uid if self._numeric else self.ids.uid(entry.uid))
                and found.st_gid == (entry.gid if self._numeric else self.ids.gid(entry.gid))
                and not entry.xattrs
                and not (self.wants_xattrs and xattr.read(folder_fd, name, self._last))
                and (found.st_nlink == 1 or self._has_snapshots or self._claims.take(entry, found.st_dev, found.st_ino))
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

    def would_lend(self, entry: Entry, found: Entry) -> bool:
        """Whether the attributes of an entry would lend a user's rights to a file that somebody else may have made.

        Whoever owns it can have put any content into it, with the size and time of the entry, and may write to it until
        its owner changes. So it must not be kept.
        """
        if found.type != REGULAR or not self.powers.all or not self.preserve & _GIVEN:
            return False
        if found.uid == self._own[0]:
            return False
        has_capability = "xattrs" in self.preserve and any(name == xattr.CAPABILITY for name, _value in entry.xattrs)
        if not has_capability and not (self._keeps_mode and entry.mode & _SET_ID):
            return False
        return found.uid != self.ids.uid(entry.uid) or found.gid != self.ids.gid(entry.gid)

    def _is_same(self, entry: Entry, found: Entry) -> bool:
        """Whether nothing at all differs that could be kept.

        In slices, which is quicker than field by field: type to mtime_ns, then target and xattrs.
        """
        if not self._numeric:
            return (
                entry[1:3] == found[1:3]
                and self.ids.uid(entry.uid) == found.uid
                and self.ids.gid(entry.gid) == found.gid
                and entry[5:7] == found[5:7]
                and entry[13:] == found[13:]
                and entry.rdev == found.rdev
                and not entry.xattrs  # the ids in ACLs may mean others here
            )
        return entry[1:7] == found[1:7] and entry[13:] == found[13:] and entry.rdev == found.rdev

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
        made = False
        if not self.check:
            if found is None or found.type != DIRECTORY:
                # Where its mode is not preserved, the umask decides; the user writes to it before that counts.
                self.root.make_directory(entry.path, 0o700 if self._keeps_mode else entry.mode & 0o777 | 0o700)
                self.remember(entry.path)
                made = True
            elif not self.powers.all and found.uid == self.powers.uid and found.mode & 0o700 != 0o700:
                parent, name = self.root.open_parent(entry.path)
                metadata.chmod(parent, name, found.mode | 0o700)
            self._spool.push(encode(entry._replace(blocks=int(made))))
        self.count(entry, verdict)
        return verdict

    def special(self, entry: Entry, found: Entry | None) -> Verdict:
        """Make a symlink, FIFO, socket or device, or fix its attributes."""
        verdict = self.judge(entry, found)
        if verdict.action in (CREATE, REPLACE):
            self.clear(entry, found)
            if not self.check:
                if found is not None and found.type != DIRECTORY:
                    self.root.remove(entry.path)
                self._make_special(entry)
        elif found is not None and (verdict.action == ATTRIBUTES or found.nlink > 1):
            shared = self._is_shared(entry, found, verdict)
            if shared:
                verdict = self._apart(entry, verdict)
            if shared and not self.check:
                self.root.remove(entry.path)
                self._make_special(entry)
            elif verdict.action == ATTRIBUTES and not self.check:
                self.apply(entry, found)
            self.count(entry, verdict)
            return verdict._replace(action=REPLACE) if shared else verdict
        self.count(entry, verdict)
        return verdict

    def _make_special(self, entry: Entry) -> None:
        if entry.type == SYMLINK:
            self.root.make_symlink(entry.path, entry.target)
        else:
            self.root.make_special(entry.path, entry, 0o600 if self._keeps_mode else entry.mode & 0o777)
        self._dress_new(entry)

    def _is_shared(self, entry: Entry, found: Entry, verdict: Verdict) -> bool:
        """Return whether what is there belongs to another file, too, so that the entry needs an inode of its own.

        That is a file in an older snapshot, which must stay as it is, or another file of the source.
        """
        if found.nlink == 1:
            return False
        if self._has_snapshots:
            return verdict.action == ATTRIBUTES
        is_mine = self._claims.take(entry, found.dev, found.ino)
        return not is_mine and (self._keeps_links or verdict.action == ATTRIBUTES)

    def _apart(self, entry: Entry, verdict: Verdict) -> Verdict:
        """Return how it is counted that an entry gets an inode of its own: as a change of attributes.

        Which attributes differ is only said where they are an older snapshot's. Those of another file of the source
        may just have been set, and check mode cannot see that.
        """
        if self._has_snapshots:
            return verdict
        kind = self.judge(entry, None).itemized[1]
        return Verdict(ATTRIBUTES, f"c{kind}{UNCHANGED}", frozenset())

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
        self.note(entry.path, metadata.apply(parent, name, entry, found, self.preserve, self.ids, powers=self.powers))

    def attributes(self, entry: Entry, found: Entry, verdict: Verdict) -> Verdict:
        """Fix the attributes of a regular file whose content is right.

        Where the file is another one's, too, a copy of it takes its place: the verdict returned says so.
        """
        shared = self._is_shared(entry, found, verdict)
        if shared:
            verdict = self._apart(entry, verdict)
        if shared and not self.check:
            self._replace_by_copy(entry, found)
        elif verdict.action == ATTRIBUTES and not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)
        return verdict._replace(action=REPLACE) if shared else verdict

    def _replace_by_copy(self, entry: Entry, found: Entry) -> None:
        name = self.temporary_name()
        try:
            copy_file(self.root, entry.path, self.temporary_fd, name)
            if self._keeps_holes and entry.is_sparse:
                make_sparse(self.temporary_fd, name)
            # What is not preserved stays as it is here.
            whole = self.root.lstat(entry.path, xattrs=True) or found
            metadata.apply(self.temporary_fd, name, whole, None, _ALL, powers=self.powers)
            self.note(
                entry.path,
                metadata.apply(self.temporary_fd, name, entry, None, self.preserve, self.ids, powers=self.powers),
            )
            self.root.rename_into(self.temporary_fd, name, entry.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self.temporary_fd)
            raise

    def follower(self, link: Follower, is_free: bool = False) -> Verdict:
        """Add a hard link to a file. ``is_free``: check mode treats what is in its place as deleted."""
        entry = link.entry
        leader, found = self.root.lstat(link.leader), None if is_free else self.entry_at(entry.path)
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
        """Set the metadata of the directories, the deepest first."""
        for record in self._spool.drain():
            entry = next(iter(Decoder().feed(record)))
            try:
                found = self.entry_at(entry.path)
                if found is None or found.type != DIRECTORY:
                    self.failed(entry.path, "the directory vanished from the destination during the transfer")
                elif not self._is_same(entry, found):
                    if entry.blocks and not self._keeps_mode and entry.mode & 0o700 != 0o700:  # it was made in this run
                        parent, name = self.root.open_parent(entry.path)
                        metadata.chmod(parent, name, found.mode & (0o7077 | entry.mode))
                    self._dress_directory(entry, found)
            except (OSError, OverflowError) as error:
                self.failed(entry.path, error)
        self.outcome.warn_of_withheld()

    def _dress_directory(self, entry: Entry, found: Entry) -> None:
        """Set the metadata of a directory, by its own fd if that is enough: a tree has many."""
        uid, gid = self.ids.uid(entry.uid), self.ids.gid(entry.gid)
        same_owner = (uid, gid) == (found.uid, found.gid)
        usual = metadata.EARLIEST_NS <= entry.mtime_ns <= metadata.LATEST_NS
        if not (self._keeps_all and usual) or entry.xattrs or found.xattrs or not (same_owner or self.powers.all):
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
        """Close what is open."""
        self._spool.close()
        super().close()
