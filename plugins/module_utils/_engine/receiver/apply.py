# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do at the destination what was decided, and count it. Look at what is there."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Callable, Iterable

from ..._core.context import Context
from ..._core.outcome import Outcome
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.paths import escape
from ..._tree import metadata, xattr
from ..._tree.compare import ATTRIBUTES, NONE, Verdict
from ..._tree.descent import DIRECTORY_FLAGS
from ..._tree.dirfd import ABSENT, Root
from ..._tree.inode import Inode, exchanged, is_same
from ..._tree.stat_entry import stat_entry
from ..content.sparse import make_sparse
from .apply_file import ENTRY_ERRORS, FileApplier
from .decide import MANY_NAMES, Action, Decider, Do
from .disk_stack import DiskStack
from .new_file import copy_file

_OTHER_MOUNT = "not linked: another file system is mounted here, or there, so it cannot be another name of"
_OWNER_WRITES = 0o755  # what of a mode lets nobody but the owner write
_DAY_NS = 86_400 * 10**9
_TAKEN = frozenset(["owner", "group", "permissions", "acls"])  # what decides who may write
_ALL = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])
_INODE_BITS = 10  # of an inode's number, by which those that are near to each other are told apart


class InodeIndex:
    """Knows which inodes with several names stand for a file of the source already, and how many names they had.

    Names that share an inode at the destination, or in an older tree of which files are linked, may be of separate
    files at the source. The first one that is kept claims the inode; the others need inodes of their own, or each would
    get the attributes of all others in turn.

    Where files are linked from an older tree, these may be all files of a large one. Most of their numbers are near to
    each other, so that a bit for each takes little memory.
    """

    def __init__(self) -> None:
        self._claimed: dict[int, dict[int, int]] = {}  # by device, and the rest of the number
        self._names: dict[tuple[int, int], int] = {}

    def see(self, found: Entry) -> None:
        """Take note of how many names an inode has, before this run takes it any."""
        self._names.setdefault((found.dev, found.ino), found.nlink)

    def names_of(self, found: Entry) -> int:
        """Return how many names an inode had when it was first seen."""
        return self._names.get((found.dev, found.ino), found.nlink)

    def claim(self, dev: int, ino: int) -> bool:
        """Claim an inode for a file of the source. Return whether it was no other's."""
        of_device = self._claimed.setdefault(dev, {})
        near, bit = ino >> _INODE_BITS, 1 << (ino & ((1 << _INODE_BITS) - 1))
        claimed = of_device.get(near, 0)
        of_device[near] = claimed | bit
        return not claimed & bit


class Applier(FileApplier):
    """Everything that writes below the destination root. In check mode it writes nothing, and counts the same."""

    def __init__(self, context: Context, root: Root, outcome: Outcome) -> None:
        super().__init__(context, root, outcome)
        arrow = ">" if context.part == "drive" else "<"
        self.decider = Decider(context.settings, self.ids, self.powers, arrow)
        self._limit = int(context.settings["changes_max"])
        # The metadata of directories is set when all below them is done, deepest first. Directories are met parents
        # first, so taking them back in the reverse order does it.
        self._spool = DiskStack(context.folder)
        self._keeps_mode = "permissions" in self.preserve
        self._inodes = InodeIndex()
        outcome.time_units = dict(context.settings["time_units"])
        self._methods: dict[str, Callable[[Entry, Action], None]] = {
            Do.SET_ATTRIBUTES: self._set_attributes,
            Do.NEW_INODE: self._renew,
            Do.ENTER_DIRECTORY: self._enter_directory,
            Do.UNLOCK_DIRECTORY: self._unlock_directory,
            Do.TAKE_DIRECTORY: self._take_directory,
            Do.MAKE_DIRECTORY: self._make_directory,
            Do.MAKE_SPECIAL: self._make_special,
            Do.LINK: self._link,
        }

    # what is there

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
        if found.nlink > 1 and found.type != DIRECTORY and not self.decider.has_snapshots:  # there nobody asks
            self._inodes.see(found)
        return found

    def has_all_names(self, found: Entry, others: Iterable[Entry]) -> bool:
        """Return whether a file has no name but that of ``found`` and, as far as they are its names, ``others``."""
        shared = 1
        for other in others:
            there = self.entry_at(other.path)
            shared += there is not None and (there.dev, there.ino) == (found.dev, found.ino)
        now = self.entry_at(found.path)
        return now is not None and now.nlink <= shared == self._inodes.names_of(found)

    def is_unchanged(self, entry: Entry) -> bool:
        """Return whether a regular file exists with the expected size, time and metadata."""
        folder, _slash, name = entry.path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            return (
                self.decider.is_unchanged(entry, found)
                and not (self.wants_xattrs and xattr.read(folder_fd, name, self._last))
                and (found.st_nlink == 1 or self.claim(found.st_dev, found.st_ino))
            )
        except OSError:
            return False

    def claim(self, dev: int, ino: int) -> bool:
        """Return whether an inode with several names may stand for a file of the source: if no other one has it.

        Each file asks once. Where links are not preserved, nobody minds.
        """
        return not self.decider.keeps_links or self._inodes.claim(dev, ino)

    def allows_names(self, path: bytes, names: int) -> bool:
        """Return whether a file at the path can have so many names, as far as its file system says."""
        return names <= MANY_NAMES or names <= os.fpathconf(self.root.open_parent(path)[0], "PC_LINK_MAX")

    def take_over(self, entry: Entry, found: Entry) -> Entry | None:
        """Take a file away from another user, so that its content can be compared, and return what it is then.

        None if somebody may still write to it: then it is as it was. Until its attributes are set, its time says that
        its content is not known. In check mode it stays as it is.
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

    def count(self, entry: Entry, verdict: Verdict, is_listed: bool = True) -> None:
        """Count a verdict that has been carried out (or would be), and list it as a change if ``is_listed``."""
        if verdict.action == NONE:
            return
        outcome = self.outcome
        if verdict.itemized.endswith("+"):
            outcome.files_created += 1
        elif verdict.action == ATTRIBUTES:
            outcome.attributes_changed += 1
        else:
            outcome.files_updated += 1
        if not is_listed:
            return
        if len(outcome.changes) >= self._limit:  # it is counted, and nobody will see the text
            outcome.changes_total += 1
            return
        shown = (escape(entry.path) or ".") + ("/" if entry.type == DIRECTORY and entry.path else "")
        self.outcome.change(f"{verdict.itemized} {shown}", self._limit)

    # what is done

    def do(self, action: Action, entry: Entry) -> None:
        """Carry out an action, as far as it needs no content. In check mode: see if its place can be cleared."""
        if self.check:
            self.clear(entry, action.found)
            return
        method = self._methods.get(action.do)
        if method is not None:
            self.clear(entry, action.found)
            method(entry, action)

    def _make_directory(self, entry: Entry, _action: Action) -> None:
        # Where its mode is not preserved, the umask decides; the user writes to it before that counts.
        self.root.make_directory(entry.path, 0o700 if self._keeps_mode else entry.mode & 0o777 | 0o700)
        self.remember(entry.path)
        self._spool.push(encode(entry._replace(blocks=1)))

    def _take_directory(self, entry: Entry, action: Action) -> None:
        """Set the owner of a directory before anything arrives in it, which the former owner could exchange."""
        self._set_attributes(entry, action, self.preserve & _TAKEN)
        self._enter_directory(entry, action)

    def _unlock_directory(self, entry: Entry, action: Action) -> None:
        if action.found is not None:
            parent, name = self.root.open_parent(entry.path)
            metadata.chmod(parent, name, action.found.mode | 0o700, action.found)
        self._enter_directory(entry, action)

    def _enter_directory(self, entry: Entry, _action: Action) -> None:
        self._spool.push(encode(entry._replace(blocks=0)))  # it was not made in this run

    def _set_attributes(self, entry: Entry, action: Action, given: frozenset[str] | None = None) -> None:
        """Set the metadata of what is in place; ``given``: of these alone."""
        parent, name = self.root.open_parent(entry.path)
        preserve = self.preserve if given is None else given
        self.note(entry.path, metadata.apply(parent, name, entry, action.found, preserve, self.ids, powers=self.powers))

    def _renew(self, entry: Entry, action: Action) -> None:
        """Let a new inode with the same content take the place of one that has other names, or is held open."""
        found = action.found
        if found is not None and found.type == REGULAR:
            self.staged(entry.path, lambda stage: self._place_copy(entry, found, stage))
        else:
            self._make_special(entry, action)

    def _make_special(self, entry: Entry, action: Action) -> None:
        """Make it complete in the staging folder, and move it to its place in one step.

        In a folder that only this run can write to yet, it is made in its place.
        """
        folder = entry.path.rpartition(b"/")[0]
        folder_fd = self._folder(folder)
        if action.found is None and folder == self._new_folder:
            self._make_in(self.root, entry, entry.path)
            self._dress_new(entry, action, folder_fd)
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

    def _dress_new(self, entry: Entry, action: Action, folder_fd: int) -> None:
        """Set the metadata of what was made in its place; most symlinks lack nothing but their time."""
        name = os.path.basename(entry.path)
        plain = entry.type == SYMLINK and self._keeps_all and not entry.xattrs
        if plain and (self.ids.uid(entry.uid), self.ids.gid(entry.gid)) == self._own:
            os.utime(name, ns=(self._now, entry.mtime_ns), dir_fd=folder_fd, follow_symlinks=False)
            return
        self._set_attributes(entry, action)

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

    def _link(self, entry: Entry, action: Action) -> None:
        """Let an entry be another name of the file of a first one."""
        leader, found = action.leader, action.found
        if leader is None:
            raise exchanged()
        try:
            if found is None or found.type == DIRECTORY:
                self.root.hard_link(leader, entry.path)
            else:
                self.place_link(self.root, leader, entry.path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            raise OSError(errno.EXDEV, f"{_OTHER_MOUNT} {escape(leader.path)!r}") from error

    # the end

    def finish(self) -> None:
        """Set the metadata of the directories, the deepest first."""
        for record in self._spool.drain():
            entry = next(iter(Decoder().feed(record)))
            try:
                found = self.entry_at(entry.path)
                if found is not None and self.decider.has_coarse_times:
                    entry = self.decider.times.as_found(entry, found)
                if found is None or found.type != DIRECTORY:
                    self.failed(entry.path, "the directory vanished from the destination during the transfer")
                elif not self.decider.is_same(entry, found):
                    if entry.blocks and not self._keeps_mode and entry.mode & 0o700 != 0o700:  # it was made in this run
                        parent, name = self.root.open_parent(entry.path)
                        metadata.chmod(parent, name, found.mode & (0o7077 | entry.mode), found)
                    self._dress_directory(entry, found)
            except ENTRY_ERRORS as error:
                self.failed(entry.path, error)
        self.outcome.warn_of_withheld()

    def _dress_directory(self, entry: Entry, found: Entry) -> None:
        """Set the metadata of a directory, by its own fd if that is enough: a tree has many."""
        uid, gid = self.ids.uid(entry.uid), self.ids.gid(entry.gid)
        same_owner = (uid, gid) == (found.uid, found.gid)
        usual = metadata.EARLIEST_NS <= entry.mtime_ns <= metadata.LATEST_NS
        if not (self._keeps_all and usual) or entry.xattrs or found.xattrs or not (same_owner or self.powers.all):
            if metadata.differences(entry, found, self.preserve, self.ids, self.powers):
                self._set_attributes(entry, Action(Do.SET_ATTRIBUTES, found=found))
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
