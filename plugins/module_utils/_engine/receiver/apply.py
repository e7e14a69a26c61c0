# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring entries at the destination to the desired state, and count the changes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from typing import Iterable

from ..._core.context import Context
from ..._core.outcome import Outcome
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.paths import escape
from ..._model.time_units import TimeUnits
from ..._tree import metadata, xattr
from ..._tree.compare import ATTRIBUTES, CREATE, NONE, REPLACE, UNCHANGED, Verdict, compare
from ..._tree.descent import DIRECTORY_FLAGS
from ..._tree.dirfd import ABSENT, Root
from ..._tree.inode import Inode, exchanged, is_same
from ..._tree.metadata import differences
from ..._tree.stat_entry import stat_entry
from ..content.sparse import make_sparse
from .apply_file import FileApplier
from .disk_stack import DiskStack
from .hardlinks import Follower
from .inode_claims import Claims
from .new_file import copy_file

_UNCHANGED = Verdict(NONE, " " * 11, frozenset())  # nobody is shown what did not change

_APART = "not linked: another file system is mounted here, or there, so it cannot be another name of"
_GIVEN = frozenset(["owner", "group"])
_SET_ID = stat.S_ISUID | stat.S_ISGID
_OWNER_WRITES = 0o755  # what of a mode lets nobody but the owner write
_LEAST_NAMES = 32_000  # that a file can have: where the C library does not know a file system, it says 127
_DAY_NS = 86_400 * 10**9
_TAKEN = _GIVEN | {"permissions", "acls"}  # what decides who may write
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
        self._times = TimeUnits(context.settings["time_units"])
        outcome.time_units = dict(context.settings["time_units"])
        self._has_coarse_times = bool(self._times)

    def entry_at(self, path: bytes) -> Entry | None:
        """Return the entry at the path now, None if there is none or it cannot be reached."""
        folder, _slash, name = path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            found = stat_entry(folder_fd, name or b".", path, self.wants_xattrs, here=self._last)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
        if found.nlink > 1 and found.type != DIRECTORY and not self._has_snapshots:  # there nobody asks
            self._claims.see(found)
        return found

    def has_all_names(self, found: Entry, others: Iterable[Entry]) -> bool:
        """Return whether a file has no name but that of ``found`` and, as far as they are its names, ``others``."""
        shared = 1
        for other in others:
            there = self.entry_at(other.path)
            shared += there is not None and (there.dev, there.ino) == (found.dev, found.ino)
        now = self.entry_at(found.path)
        return now is not None and now.nlink <= shared == self._claims.names_of(found)

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
                (found.st_mtime_ns == entry.mtime_ns or self._has_same_time(entry, found.st_mtime_ns))
                and found.st_size == entry.size
                and found.st_mode == stat.S_IFREG | entry.mode
                and found.st_uid == (entry.uid if self._numeric else self.ids.uid(entry.uid))
                and found.st_gid == (entry.gid if self._numeric else self.ids.gid(entry.gid))
                and not entry.xattrs
                and not (self.wants_xattrs and xattr.read(folder_fd, name, self._last))
                and (found.st_nlink == 1 or self.claims(found.st_dev, found.st_ino))
            )
        except OSError:
            return False

    def _has_same_time(self, entry: Entry, found_ns: int) -> bool:
        """Whether a time that is another is that of the entry as it is kept here, and that is enough."""
        return (
            self._has_coarse_times
            and not self._has_snapshots
            and self._times.is_same(entry.path, entry.mtime_ns, found_ns)
        )

    def is_rounded(self, entry: Entry, found: Entry, times: TimeUnits | None = None) -> bool:
        """Whether the time of what is found is that of the entry, but for a part that its file system does not keep.

        ``times``: what another tree than the destination keeps.
        """
        return found.mtime_ns != entry.mtime_ns and (times or self._times).is_same(
            entry.path, entry.mtime_ns, found.mtime_ns
        )

    def judge(
        self,
        entry: Entry,
        found: Entry | None,
        equal: bool | None = None,
        link_ok: bool = True,
        times: TimeUnits | None = None,
    ) -> Verdict:
        """Compare an entry with what is there, under this transfer's settings; for ``times`` see ``is_rounded``."""
        if found is not None and (self._has_coarse_times or times is not None):
            entry = (times or self._times).as_found(entry, found)
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

    def disowns(self, entry: Entry, found: Entry) -> bool:
        """Return whether an entry takes what is there away from another user, who may hold it open for writing."""
        return (
            self.powers.all
            and "owner" in self.preserve
            and found.uid != self._own[0]
            and found.uid != self.ids.uid(entry.uid)
        )

    def take_over(self, entry: Entry, found: Entry) -> Entry | None:
        """Take a file away from another user, so that its content can be compared, and return what it is then.

        None if somebody may still write to it: then it is as it was. Until :meth:`attributes` its time says that its
        content is not known. In check mode it stays as it is.
        """
        if self.check:
            return found
        parent, name = self.root.open_parent(entry.path)
        with Inode(parent, name, found) as inode:
            try:
                inode.chown(self._own[0], -1)
                if found.mode & ~_OWNER_WRITES:
                    inode.chmod(found.mode & _OWNER_WRITES)
                if not inode.may_have_writer():
                    if "times" in self.preserve:
                        inode.set_times(time.time_ns(), entry.mtime_ns - _DAY_NS)
                    return inode.entry(entry.path, self.wants_xattrs)
            except OSError:
                pass
            with contextlib.suppress(OSError):
                inode.chown(found.uid, -1)
                inode.chmod(found.mode)
        return None

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
            elif self.disowns(entry, found):
                self._take_directory(entry, found)
            elif not self.powers.all and found.uid == self.powers.uid and found.mode & 0o700 != 0o700:
                parent, name = self.root.open_parent(entry.path)
                metadata.chmod(parent, name, found.mode | 0o700, found)
            self._spool.push(encode(entry._replace(blocks=int(made))))
        self.count(entry, verdict)
        return verdict

    def _take_directory(self, entry: Entry, found: Entry) -> None:
        """Set the owner of a directory before anything arrives in it, which the former owner could exchange."""
        parent, name = self.root.open_parent(entry.path)
        given = self.preserve & _TAKEN
        self.note(entry.path, metadata.apply(parent, name, entry, found, given, self.ids, powers=self.powers))

    def special(self, entry: Entry, found: Entry | None, has_own_names: bool = False) -> Verdict:
        """Make a symlink, FIFO, socket or device, or fix its attributes.

        For ``has_own_names`` see :meth:`attributes`.
        """
        verdict = self.judge(entry, found)
        if verdict.action in (CREATE, REPLACE):
            self.clear(entry, found)
            if not self.check:
                self._make_special(entry, found)
        elif found is not None and (verdict.action == ATTRIBUTES or found.nlink > 1):
            # A listener stays behind a socket, and a reader or a writer behind a FIFO, whoever owns it by now.
            is_held = entry.type != SYMLINK and self.disowns(entry, found)
            shared = is_held or self._is_shared(entry, found, verdict, has_own_names)
            if shared:
                verdict = self._apart(entry, verdict)
            if shared and not self.check:
                self._make_special(entry, found)
            elif verdict.action == ATTRIBUTES and not self.check:
                self.apply(entry, found)
            self.count(entry, verdict)
            return verdict._replace(action=REPLACE) if shared else verdict
        self.count(entry, verdict)
        return verdict

    def _make_special(self, entry: Entry, found: Entry | None) -> None:
        """Make it complete in the staging folder, and move it to its place in one step.

        In a folder that only this run can write to yet, it is made in its place.
        """
        folder = entry.path.rpartition(b"/")[0]
        folder_fd = self._folder(folder)
        if found is None and folder == self._new_folder:
            self._make_in(self.root, entry, entry.path)
            self._dress_new(entry, folder_fd)
            return
        self.staged(entry.path, lambda stage: self._place_special(entry, stage))

    def _place_special(self, entry: Entry, stage: int) -> None:
        name = self.temporary_name()
        with Root(stage) as staging:
            self._make_in(staging, entry, name)
        try:
            with Inode(stage, name) as inode:
                self._inherit(entry, None, inode, inode.entry(entry.path))
                self._set(inode, entry, None)
            self.root.rename_into(stage, name, entry.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=stage)
            raise

    def _make_in(self, root: Root, entry: Entry, path: bytes) -> None:
        if entry.type == SYMLINK:
            root.make_symlink(path, entry.target)
        else:
            root.make_special(path, entry, 0o600 if self._keeps_mode else entry.mode & 0o777)

    def _is_shared(self, entry: Entry, found: Entry, verdict: Verdict, has_own_names: bool) -> bool:
        """Return whether what is there belongs to another file, too, so that the entry needs an inode of its own.

        That is a file in an older snapshot or elsewhere outside of the root, which must stay as it is, or has as many
        names as there can be, or another file of the source.
        """
        if found.nlink == 1 or has_own_names:
            return False
        if found.nlink > entry.nlink > 1 and self._keeps_links and not self._may_have(entry.path, found.nlink + 1):
            return True
        return verdict.action == ATTRIBUTES or not self.claims(found.dev, found.ino)

    def has_room_for_names(self, entry: Entry, shared: Entry) -> bool:
        """Return whether a file can have all names of an entry, beside those that it has."""
        return entry.nlink == 1 or not self._keeps_links or self._may_have(entry.path, shared.nlink + entry.nlink)

    def _may_have(self, path: bytes, names: int) -> bool:
        """Return whether a file at the path can have so many names, as far as its file system says."""
        return names <= _LEAST_NAMES or names <= os.fpathconf(self.root.open_parent(path)[0], "PC_LINK_MAX")

    def claims(self, dev: int, ino: int) -> bool:
        """Return whether an inode with several names may stand for a file of the source: if no other one has it.

        Each file asks once. Where links are not preserved, nobody minds.
        """
        return not self._keeps_links or self._claims.take(dev, ino)

    def _apart(self, entry: Entry, verdict: Verdict) -> Verdict:
        """Return how it is counted that an entry gets an inode of its own: as a change of attributes."""
        if verdict.action == ATTRIBUTES:
            return verdict
        kind = self.judge(entry, None).itemized[1]
        return Verdict(ATTRIBUTES, f"c{kind}{UNCHANGED}", frozenset())

    def _dress_new(self, entry: Entry, folder_fd: int) -> None:
        """Set the metadata of what was made in its place; most symlinks lack nothing but their time."""
        name = os.path.basename(entry.path)
        plain = entry.type == SYMLINK and self._keeps_all and not entry.xattrs
        if plain and (self.ids.uid(entry.uid), self.ids.gid(entry.gid)) == self._own:
            os.utime(name, ns=(self._now, entry.mtime_ns), dir_fd=folder_fd, follow_symlinks=False)
            return
        self.apply(entry, None)

    def apply(self, entry: Entry, found: Entry | None) -> None:
        """Set the metadata of what is in place."""
        parent, name = self.root.open_parent(entry.path)
        self.note(entry.path, metadata.apply(parent, name, entry, found, self.preserve, self.ids, powers=self.powers))

    def attributes(self, entry: Entry, found: Entry, verdict: Verdict, has_own_names: bool = False) -> Verdict:
        """Fix the attributes of a regular file whose content is right.

        Where the file is another one's, too, a copy of it takes its place: the verdict returned says so.
        ``has_own_names``: all of its names are names of this entry's file.
        """
        shared = self._is_shared(entry, found, verdict, has_own_names)
        if shared:
            verdict = self._apart(entry, verdict)
        if shared and not self.check:
            self._replace_by_copy(entry, found)
        elif verdict.action == ATTRIBUTES and not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)
        return verdict._replace(action=REPLACE) if shared else verdict

    def _replace_by_copy(self, entry: Entry, found: Entry) -> None:
        self.staged(entry.path, lambda stage: self._place_copy(entry, found, stage))

    def _place_copy(self, entry: Entry, found: Entry, stage: int) -> None:
        name = self.temporary_name()
        try:
            copy_file(self.root, found, stage, name)
            if self._keeps_holes and entry.is_sparse:
                make_sparse(stage, name)
            parent, old_name = self.root.open_parent(entry.path)
            with Inode(parent, old_name, found) as old:
                whole = old.entry(entry.path, xattrs=True)
            with Inode(stage, name) as inode:
                # What is not preserved stays as it is here, whatever the source may set.
                metadata.dress(inode, whole, None, _ALL, powers=self.powers._replace(trusts_source=True))
                self._set(inode, entry, None)
            self.root.rename_into(stage, name, entry.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=stage)
            raise

    def place_link(self, root: Root, existing: Entry, path: bytes) -> None:
        """Let a path be another name of a file below a root, which was looked at before, whatever file is there.

        Raises OSError, with EXDEV if the two are on different mounts.
        """
        self.staged(path, lambda stage: self._place_link(root, existing, path, stage))

    def _place_link(self, root: Root, existing: Entry, path: bytes, stage: int) -> None:
        parent, old_name = root.open_parent(existing.path)
        name = self.temporary_name()
        os.link(old_name, name, src_dir_fd=parent, dst_dir_fd=stage, follow_symlinks=False)
        try:
            self.root.rename_into(stage, name, path, existing)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=stage)
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
            if leader is None or not self._is_file_of(entry, leader):
                raise exchanged()
            try:
                if found is None or found.type == DIRECTORY:
                    self.root.hard_link(leader, entry.path)
                else:
                    self.place_link(self.root, leader, entry.path)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                raise OSError(errno.EXDEV, f"{_APART} {escape(link.leader)!r}") from error
        self.count(entry, verdict)
        return verdict

    def _is_file_of(self, entry: Entry, leader: Entry) -> bool:
        """Return whether what is in the place of a first name can be what this transfer put or left there."""
        if (leader.type, leader.size) != (entry.type, entry.size):
            return False
        return "owner" not in differences(entry, leader, self.preserve & _GIVEN, self.ids, self.powers)

    # the end

    def finish(self) -> None:
        """Set the metadata of the directories, the deepest first."""
        for record in self._spool.drain():
            entry = next(iter(Decoder().feed(record)))
            try:
                found = self.entry_at(entry.path)
                if found is not None and self._has_coarse_times:
                    entry = self._times.as_found(entry, found)
                if found is None or found.type != DIRECTORY:
                    self.failed(entry.path, "the directory vanished from the destination during the transfer")
                elif not self._is_same(entry, found):
                    if entry.blocks and not self._keeps_mode and entry.mode & 0o700 != 0o700:  # it was made in this run
                        parent, name = self.root.open_parent(entry.path)
                        metadata.chmod(parent, name, found.mode & (0o7077 | entry.mode), found)
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
            if not is_same(os.fstat(fd), found):
                raise exchanged()
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
