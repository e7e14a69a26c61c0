# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring the destination to what the source offers, entry by entry: find the facts, decide, act.

Most entries are dealt with at once. A regular file waits in its ``OpenShard`` where its content must be compared by
hash or must be sent; what waits for other entries is in ``DeferredActions``.
"""

from __future__ import annotations

import contextlib
import errno
import os

from ..._core.context import Context
from ..._core.files import rewound
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, WHOLE_BYTES, Entry, special_types
from ..._model.paths import is_staging, unescape
from ..._tree.change_times import CHANGED, UNKNOWN, KnownChanges
from ..._tree.dirfd import Root
from ..content import bundles
from ..wire.messages import Shard
from .apply import Applier
from .apply_file import ENTRY_ERRORS
from .decide import NEED_SUM, QUESTIONS, Action, Do, EntryFacts
from .deferred import DeferredActions, Pending
from .delete import Deleter, ListingScope
from .files_here import FilesHere
from .link_dest import LinkDest, has_content
from .new_file import write_new


class OpenShard:
    """A shard on its way: what is known of its files, what is to be asked for, and what is accounted for."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.facts: dict[int, EntryFacts] = {}  # of ``hashed``
        self.actions: dict[int, Action] = {}  # of ``wanted``
        self.wanted: list[int] = []
        self.hashed: list[int] = []
        self.accounted = 0
        self.matched = 0
        self.pieces = 0  # that other processes are making files of
        self.again: dict[int, str] = {}  # by index: why it must come again


class Reconciler:
    """Deals with the source's entries in their order; knows which of them wait for others."""

    def __init__(self, context: Context, root: Root, applier: Applier) -> None:
        settings = context.settings
        self._root, self._applier, self._decider = root, applier, applier.decider
        self._check, self._by_time = self._decider.check, self._decider.by_time
        self._keeps_holes = "sparse" in settings["preserve"]
        self._keeps_links = self._decider.keeps_links
        self._kept = {REGULAR, SYMLINK, *special_types(settings["preserve"])}  # of what is no directory
        self._deferred = DeferredActions(context.folder)
        self._deleter = Deleter(context, root)
        exclude = frozenset(map(unescape, settings.get("link_dest_exclude") or ()))
        files = context.change_times
        self._changes = None if files is None else KnownChanges(files.own, files.older, not self._check)
        here = None
        if self._deleter.finds and not self._decider.has_snapshots and _has_entries(root):
            here = FilesHere(context, root)
        self._decider.seeks_here = here is not None
        self.link_dest = LinkDest(context.older, exclude, applier, self._changes, context.moved, here)

    def reconcile(self, work: OpenShard, index: int, entry: Entry, listed: ListingScope) -> None:
        """Deal with one entry: at once, or later where its content must be compared or must be sent.

        ``listed``: what the source lists of a directory. Raises one of ENTRY_ERRORS.
        """
        level = self._deleter.see(entry) if work.shard.attempt == 1 else None
        is_new = level is not None and level.is_new
        has_one_name = entry.nlink == 1 or not self._keeps_links
        is_file = entry.type == REGULAR and has_one_name
        change = UNKNOWN
        if self._changes is not None and entry.type == REGULAR:
            # What comes again changed while it was read.
            change = self._changes.compare(entry) if work.shard.attempt == 1 else CHANGED
        is_by_time = self._by_time and change != CHANGED
        if is_by_time and not is_new and is_file and self._applier.is_unchanged(entry):
            work.matched += entry.size if entry.size <= WHOLE_BYTES else entry.content
            work.accounted += 1
            return
        if entry.type == DIRECTORY:
            self._reconcile_directory(entry, is_new, listed)
            work.accounted += 1
            return
        if entry.type not in self._kept:
            work.accounted += 1
            return
        link = None if has_one_name else self._deferred.add_name(entry)
        if link is not None:
            if entry.type == REGULAR:
                work.matched += entry.content
            if link.is_ready:
                self._link(link)
            elif not is_new:
                with contextlib.suppress(OSError):  # it is said when the file is there
                    self._check_place(entry)
            work.accounted += 1
            self._change(self._deferred.take_change(entry))
            return
        facts = EntryFacts(None) if is_new else self._check_place(entry)
        facts.has_changed = change == CHANGED
        is_listed = entry.type != REGULAR or change != UNKNOWN or _may_stay(entry, facts.found)
        self._settle(work, index, entry, facts)
        # What is taken unread from a snapshot without a list may be older than its time says: the next one compares it.
        is_unread = facts.older is not None and facts.older.has_changed is None and index not in work.facts
        if self._changes is not None and not is_listed and not is_unread:
            self._changes.keep(entry)

    def _reconcile_directory(self, entry: Entry, is_new: bool, listed: ListingScope) -> None:
        found = None if is_new else self._applier.entry_at(entry.path)
        try:
            self._act(entry, self._decider.decide(entry, EntryFacts(found)))
        finally:
            self._deleter.enter(entry.path, found is None or found.type != DIRECTORY, listed)

    def _check_place(self, entry: Entry) -> EntryFacts:
        """Return what is in the place of an entry. Raise InTheWay for a directory with contents that must stay."""
        found = self._applier.entry_at(entry.path)
        if found is None or found.type != DIRECTORY:
            return EntryFacts(found)
        return EntryFacts(found, self._deleter.defer_replacement(entry, found))

    def _settle(self, work: OpenShard, index: int, entry: Entry, facts: EntryFacts) -> None:
        """Decide on an entry, and act: now, or when its content is compared or has come."""
        action = self._decide(entry, facts)
        if action.do == Do.COPY_OLDER and not self._check and not self.link_dest.try_link(entry, facts):
            facts.older = None
            action = self._decide(entry, facts)
        if action.do == Do.FETCH:
            if not self._check:
                if not bundles.fits(entry):
                    self._applier.find_stage(entry.path)  # or all of it would be sent to a place that takes none of it
                work.actions[index] = action
                work.wanted.append(index)
                return
            self._applier.outcome.bytes_content += entry.content
            self._applier.outcome.bytes_sent += entry.content if self._keeps_holes else entry.size
        elif action.do in NEED_SUM:
            work.facts[index] = facts
            work.hashed.append(index)
            return
        if action.do == Do.AWAIT_NAMES:
            self._change(self._deferred.defer_change(Pending(entry, facts)))
        else:
            self._act(entry, action)
        if entry.type == REGULAR and action.do != Do.FETCH:
            work.matched += entry.content
        work.accounted += 1

    def compare(self, work: OpenShard, index: int, source_sum: str | None) -> None:
        """Decide on a file of ``work.hashed``, whose hash in the source is known now. Raises one of ENTRY_ERRORS."""
        facts = work.facts.pop(index)
        facts.source_sum = source_sum or ""
        self._settle(work, index, work.shard.entries[index], facts)

    def _decide(self, entry: Entry, facts: EntryFacts) -> Action:
        """Return what an entry needs; a question where the answer is not known yet."""
        while True:
            action = self._decider.decide(entry, facts)
            if action.do == Do.CLAIM and action.found is not None:
                facts.is_claimed = not self._applier.claim(action.found.dev, action.found.ino)
                if not facts.is_claimed:
                    return action
                continue
            if action.do not in QUESTIONS or action.do == Do.AWAIT_NAMES:
                return action
            if action.do in NEED_SUM and facts.source_sum is None:
                return action
            self._answer(entry, action, facts)

    def _answer(self, entry: Entry, action: Action, facts: EntryFacts) -> None:
        """Find out what decides."""
        found, older = action.found, facts.older
        if action.do == Do.FIND_OLDER:
            facts.older, facts.has_looked = self.link_dest.find(entry), True
        elif action.do == Do.COMPARE_OLDER:
            facts.older_equal = False
            with contextlib.suppress(OSError):  # one that cannot be read must be sent
                facts.older_equal = older is not None and has_content(
                    older.root, older.entry.path, older.entry, facts.source_sum
                )
        elif found is None:
            raise ValueError("a question about nothing")
        elif action.do == Do.COMPARE:
            facts.equal = has_content(self._root, entry.path, found, facts.source_sum)
        elif action.do == Do.ALLOW_NAME:
            facts.has_room = self._applier.allows_names(entry.path, found.nlink + 1)
        else:
            taken = self._applier.take_over(entry, found)
            if taken is None:
                facts.in_use = True
            else:
                facts.found, facts.before = taken, found

    # actions

    def _act(self, entry: Entry, action: Action, link: Pending | None = None) -> None:
        if action.error is not None:
            raise action.error
        if action.is_blocked:
            self._deferred.defer_place(link or Pending(entry, action=action))
            return
        self._applier.do(action, entry)
        self.mark_done(entry, action)

    def mark_done(self, entry: Entry, action: Action) -> None:
        """Count an entry that is complete; entries that wait to become hard links to it follow."""
        self._applier.count(entry, action.verdict, not self._is_as_before(entry, action))
        if entry.nlink == 1 or not self._keeps_links:
            return
        for link in self._deferred.mark_done(entry, action.is_new):
            try:
                self._link(link)
            except ENTRY_ERRORS as error:
                self._applier.failed(link.entry.path, error)

    def _is_as_before(self, entry: Entry, action: Action) -> bool:
        """Return whether an older snapshot has an entry, which this tree did not have, as it is now."""
        if not self._decider.has_snapshots or not action.verdict.itemized.endswith("+"):
            return False
        if entry.type == REGULAR and action.do != Do.LINK:
            return action.is_as_before
        return self.link_dest.has_same(entry)

    def _change(self, pending: Pending | None) -> None:
        """Change attributes of a file with several names, which may have others outside of the root."""
        facts = pending.facts if pending is not None else None
        if pending is None or facts is None or facts.found is None:
            return
        entry = pending.entry
        try:
            facts.own_names = self._applier.has_all_names(facts.found, self._deferred.names_waiting(entry))
            self._act(entry, self._decide(entry, facts))
        except ENTRY_ERRORS as error:
            self._applier.failed(entry.path, error)

    def _link(self, link: Pending) -> None:
        """Let an entry be another name of a file. In check mode what would be deleted is not in its place."""
        facts = EntryFacts(None) if self._deleter.is_gone(link.entry.path) else self._check_place(link.entry)
        leader = self._root.lstat(link.leader) if link.leader is not None else None
        self._act(link.entry, self._decider.decide_link(link.entry, leader, facts, link.is_new), link)

    # files that arrive while a directory is in their place

    def defer_file(self, entry: Entry, action: Action, folder_fd: int, name: bytes) -> None:
        """Keep a file that has arrived until its place is free."""
        staged = self._applier.temporary_name()
        try:
            stage = self._applier.temporary_fd
            os.rename(name, staged, src_dir_fd=folder_fd, dst_dir_fd=stage)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            stage = self._applier.stage_at(entry.path)  # it arrived on the file system that is mounted there
            os.rename(name, staged, src_dir_fd=folder_fd, dst_dir_fd=stage)
        self._deferred.defer_place(Pending(entry, action=action, staged=(stage, staged)))

    def defer_content(self, entry: Entry, action: Action, content: memoryview) -> None:
        """Keep a file's whole content until its place is free."""
        staged = self._applier.temporary_name()
        os.close(write_new(self._applier.temporary_fd, staged, 0o600, content))
        self.defer_file(entry, action, self._applier.temporary_fd, staged)

    def _replace(self, pending: Pending) -> None:
        """Put in place what waited until that was free."""
        entry, action = pending.entry, pending.action
        self._deleter.require_deleted(entry.path)
        if action is None:
            self._link(pending)
            return
        if pending.staged is not None:
            folder_fd, name = pending.staged
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            self._applier.finish_file(entry, None, folder_fd, name, status)
        else:
            self._applier.do(action._replace(found=None), entry)
        self.mark_done(entry, action)

    def finish(self, is_clean: bool, is_empty: bool) -> None:
        """There are no more entries: remove what is too much, and give the directories their metadata.

        ``is_clean``: the source could be read completely. ``is_empty``: it has nothing but its root.
        """
        self._deleter.finish(self._applier.outcome, is_clean, is_empty)
        self.link_dest.separate()
        for pending in self._deferred.take_places():
            try:
                self._replace(pending)
            except ENTRY_ERRORS as error:
                self._applier.failed(pending.entry.path, error)
            finally:
                pending.discard()
        for pending in self._deferred.take_changes():
            self._change(pending)
        for entry in self._deferred.orphans():
            self._applier.failed(entry.path, "not linked: the file that it is another name of could not be transferred")
        self._applier.finish()

    def close(self) -> None:
        """Close what is open, and remove what still waits."""
        if self._changes is not None:
            self._changes.close()
        self.link_dest.close()
        self._deferred.close()


def _has_entries(root: Root) -> bool:
    """Return whether there is anything but what transfers keep for themselves."""
    with os.scandir(rewound(root.fd)) as items:
        return any(not is_staging(os.fsencode(item.name)) for item in items)


def _may_stay(entry: Entry, found: Entry | None) -> bool:
    """Return whether size and time let what is there stay, by which its content may be an older one."""
    return found is not None and found.type == REGULAR and (found.size, found.mtime_ns) == (entry.size, entry.mtime_ns)
