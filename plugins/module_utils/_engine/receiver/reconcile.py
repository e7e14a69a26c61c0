# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare what the source offers with what the destination has, entry by entry.

Most entries are dealt with at once. A regular file waits in its ``OpenShard`` where its content must be compared by
hash or must be sent.
"""

from __future__ import annotations

import contextlib
import errno
import os
from functools import partial
from typing import Callable, NamedTuple

from ..._core.context import Context
from ..._core.files import hash_and_close
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, WHOLE_BYTES, Entry, special_types
from ..._model.paths import unescape
from ..._model.time_units import TimeUnits
from ..._tree.change_times import CHANGED, UNKNOWN, KnownChanges
from ..._tree.compare import ATTRIBUTES, NONE, Verdict
from ..._tree.dirfd import InTheWay, Root
from ..content import bundles
from ..wire.messages import Shard
from .apply import Applier
from .delete import Extras
from .hardlinks import Follower, LinkBook
from .link_dest import LinkDest
from .new_file import write_new
from .obstacles import Obstacles


class OpenShard:
    """A shard on its way: what is there, what is to be asked for, and what is accounted for."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.found: dict[int, Entry | None] = {}  # of regular files that are not decided or not there yet
        self.taken: dict[int, Entry] = {}  # another user's file, as it was before this run took it over
        self.verdicts: dict[int, Verdict] = {}
        self.wanted: list[int] = []
        self.candidates: dict[int, tuple[Root, Entry]] = {}
        self.have: dict[int, int] = {}
        self.hashed: list[int] = []
        self.accounted = 0
        self.matched = 0
        self.pieces = 0  # that other processes are making files of
        self.again: dict[int, str] = {}  # by index: why it must come again


class _PutOff(NamedTuple):
    """A change of attributes that waits for the other names of a file."""

    entry: Entry
    found: Entry
    change: Callable[[bool], Verdict]


class Reconciler:
    """Applies the source's entries in their order; knows which of them wait for others."""

    def __init__(self, context: Context, root: Root, applier: Applier) -> None:
        settings = context.settings
        self._root, self._applier = root, applier
        self._check = bool(settings["check"])
        self._checksum = bool(settings["checksum"])
        self._suspects = _paths(settings.get("suspects"))
        self._by_time = not self._checksum and not self._suspects  # size and time say whether a content is right
        self._in_place = bool(settings.get("inplace"))
        self._keeps_times = "times" in settings["preserve"]
        self._keeps_holes = "sparse" in settings["preserve"]
        self._keeps_links = "hardlinks" in settings["preserve"]
        self._kept = {REGULAR, SYMLINK, *special_types(settings["preserve"])}  # of what is no directory
        self._has_snapshots = bool(settings["link_dest"])
        self._links = LinkBook(context.folder)
        self._extras = Extras(context, root)
        self._obstacles = Obstacles(self._extras, settings.get("only") is not None, self._check)
        self._staged: set[tuple[int, bytes]] = set()  # files that wait until what is in their places is deleted
        self._put_off_changes: dict[object, _PutOff] = {}  # by the identity of the source's file
        self._link_dest = LinkDest(context.older, _paths(settings.get("link_dest_exclude")), applier)
        files = context.change_times
        self._changes = None if files is None else KnownChanges(files.own, files.older, not self._check)

    def meet(self, work: OpenShard, index: int, entry: Entry, is_opaque: bool) -> None:
        """Deal with one entry: at once, or later where its content must be compared or must be sent.

        ``is_opaque``: a directory whose contents the source does not list. Raises OSError, ValueError or OverflowError.
        """
        first = work.shard.attempt == 1
        level = self._extras.see(entry) if first else None
        is_new = level is not None and level.is_new
        change = UNKNOWN
        if self._changes is not None and entry.type == REGULAR:
            # What comes again changed while it was read.
            change = self._changes.compare(entry) if first else CHANGED
        if self._by_time and not is_new and change != CHANGED and self._is_unchanged(entry):
            work.matched += entry.size if entry.size <= WHOLE_BYTES else entry.content
            work.accounted += 1
            return
        if entry.type == DIRECTORY:
            found = None if is_new else self._applier.entry_at(entry.path)
            new_below = found is None or found.type != DIRECTORY
            try:
                self._applier.directory(entry, found)
            finally:
                self._extras.enter(entry.path, new_below, is_opaque)
            work.accounted += 1
            return
        if entry.type not in self._kept:
            work.accounted += 1
            return
        follower = self._links.meet(entry) if entry.nlink > 1 and self._keeps_links else None
        if follower is not None:
            if entry.type == REGULAR:
                work.matched += entry.content
            if follower.is_ready:
                self._link(follower)
            elif not is_new:
                self._look_ahead(entry)
            work.accounted += 1
            self._decide_if_complete(entry)
            return
        found = None if is_new else self._applier.entry_at(entry.path)
        if entry.type != REGULAR:
            self._special(entry, found)
            work.accounted += 1
            return
        if self._changes is not None and change == UNKNOWN and not _may_stay(entry, found):
            self._changes.keep(entry)
        self._meet_file(work, index, entry, found, change)

    def _is_unchanged(self, entry: Entry) -> bool:
        """Whether an entry is a file of one name that is all right already."""
        has_one_name = entry.nlink == 1 or not self._keeps_links
        return entry.type == REGULAR and has_one_name and self._applier.is_unchanged(entry)

    def _special(self, entry: Entry, found: Entry | None) -> None:
        if found is not None and self._may_share(entry, found):
            verdict = self._applier.judge(entry, found)
            if self._put_off(entry, found, verdict, partial(self._applier.special, entry, found)):
                return
        try:
            verdict = self._applier.special(entry, found)
        except InTheWay:
            self._obstacles.wait(entry, partial(self._special, entry, None))
        else:
            self.placed(entry, verdict)

    # attributes of a file with several names, which may have others outside of the root

    def _may_share(self, entry: Entry, found: Entry) -> bool:
        return found.nlink > 1 and entry.nlink > 1 and self._keeps_links and not self._has_snapshots

    def _put_off(self, entry: Entry, found: Entry, verdict: Verdict, change: Callable[[bool], Verdict]) -> bool:
        """Let a change of attributes wait until all names of the source's file are known; False if it need not.

        ``change`` is told whether the file at the destination has these names alone.
        """
        if verdict.action != ATTRIBUTES or not self._may_share(entry, found):
            return False
        self._put_off_changes[entry.link_id] = _PutOff(entry, found, change)
        self._decide_if_complete(entry)
        return True

    def _decide_if_complete(self, entry: Entry) -> None:
        if entry.link_id in self._put_off_changes and self._links.has_all_names(entry):
            self._decide(self._put_off_changes.pop(entry.link_id))

    def _decide(self, waits: _PutOff) -> None:
        try:
            verdict = waits.change(self._applier.has_all_names(waits.found, self._links.waiting(waits.entry)))
        except (OSError, ValueError, OverflowError) as error:
            self._applier.failed(waits.entry.path, error)
        else:
            self.placed(waits.entry, verdict)

    def _link(self, follower: Follower) -> None:
        try:
            self._applier.follower(follower, self._obstacles.is_gone(follower.entry.path))
        except InTheWay:
            self._obstacles.wait(follower.entry, partial(self._link, follower))

    def _look_ahead(self, entry: Entry) -> None:
        """See a directory in the way of a name whose file is not there yet, which may be so until the end."""
        with contextlib.suppress(OSError):  # it is said when the file is there
            found = self._applier.entry_at(entry.path)
            if found is not None and found.type == DIRECTORY:
                self._hold(entry)

    def _hold(self, entry: Entry) -> None:
        """Take note of a directory in the way of an entry. Raise InTheWay if it has contents and must stay."""
        try:
            self._root.clear_for(entry, entry._replace(type=DIRECTORY), check=True)
        except InTheWay:
            self._obstacles.hold(entry.path)

    def _meet_file(self, work: OpenShard, index: int, entry: Entry, found: Entry | None, change: str) -> None:
        if found is not None and found.type == DIRECTORY:
            self._hold(entry)
        if found is not None and self._applier.would_lend(entry, found):
            self._want(work, index, None, self._applier.judge(entry, found, equal=False), None)
            return
        verdict = self._applier.judge(entry, found)
        if found is None and not self._has_snapshots:
            self._want(work, index, None, verdict, None)
            return
        if found is not None and found.type == REGULAR:
            in_doubt = found.size == entry.size and (change == CHANGED or self._is_in_doubt(entry, found))
            is_kept = verdict.action in (NONE, ATTRIBUTES)
            if (in_doubt or is_kept) and self._applier.disowns(entry, found):
                self._meet_file_of_another(work, index, entry, found)
                return
            if in_doubt:
                work.found[index] = found
                work.hashed.append(index)
                return
            if is_kept:
                self._keep(work, entry, found, verdict)
                return
        candidate = self._candidate(entry, found)
        if candidate is not None and (change == CHANGED or self._must_compare(entry, candidate)):
            work.found[index], work.candidates[index] = found, candidate
            work.hashed.append(index)
            return
        self._want(work, index, found, verdict, candidate)

    def _meet_file_of_another(self, work: OpenShard, index: int, entry: Entry, found: Entry) -> None:
        """Compare the content of a file that is taken away from another user, who could give it any size and time.

        If he may still write to it, or it has other names, a new file takes its place.
        """
        taken = self._applier.take_over(entry, found) if found.nlink == 1 else None
        if taken is not None:
            work.found[index], work.taken[index] = taken, found
            work.hashed.append(index)
            return
        if self._in_place and found.nlink == 1 and not bundles.fits(entry):
            raise OSError(
                errno.ETXTBSY,
                f"inplace must keep this file, and its owner, user id {found.uid}, may have it open for writing. End "
                "the program that has (`fuser -v FILE` names it), or transfer it without inplace",
            )
        self._want(work, index, found, self._applier.judge(entry, found, equal=False), None)

    def older_roots(self, path: bytes) -> list[Root]:
        """Return the earlier snapshots in which the file of a path may have blocks of a new one."""
        return self._link_dest.roots_for(path)

    def _candidate(self, entry: Entry, found: Entry | None) -> tuple[Root, Entry] | None:
        """Return the file of an earlier snapshot that may be taken in place of what is there."""
        can_take = self._has_snapshots and not self.holds(entry, found)
        return self._link_dest.candidate(entry) if can_take else None

    def _is_in_doubt(self, entry: Entry, found: Entry, times: TimeUnits | None = None) -> bool:
        """Return whether only its content says if a file of the right size is the right one.

        Without times to preserve, files that this program made have the time of their making. Then other times say
        nothing, and the same time what it always does. A backup is not to miss a change within the unit of a file
        system that keeps times coarsely; ``times``: what is kept where the file is, if that is an earlier snapshot.
        """
        if self._checksum or entry.path in self._suspects:
            return True
        if not self._keeps_times:
            return found.mtime_ns != entry.mtime_ns
        return self._has_snapshots and self._applier.is_rounded(entry, found, times)

    def _must_compare(self, entry: Entry, candidate: tuple[Root, Entry]) -> bool:
        """Return whether only its content says if an older file is the right one, whose owner may be another one."""
        root, older = candidate
        return (
            (self._changes is not None and self._changes.has_changed(self._link_dest.roots.index(root), entry))
            or self._is_in_doubt(entry, older, self._link_dest.times[root])
            or self._applier.disowns(entry, older)
        )

    def compare(self, work: OpenShard, index: int, source_sum: str | None) -> None:
        """Decide on a file of ``work.hashed``, whose hash in the source is known now. Raises OSError or ValueError."""
        entry, found = work.shard.entries[index], work.found.pop(index)
        candidate = work.candidates.get(index)
        before = work.taken.pop(index, found)
        if candidate is not None:
            verdict = self._applier.judge(entry, found, equal=None)
            self._want(work, index, found, verdict, _with_content(candidate, source_sum), source_sum)
            return
        equal = bool(source_sum) and found is not None and _hash(self._root, found) == source_sum
        verdict = self._applier.judge(entry, before, equal=equal)
        if equal and found is not None:
            self._keep(work, entry, found, verdict)
            return
        candidate = self._candidate(entry, found)
        if candidate is not None and self._must_compare(entry, candidate):
            candidate = _with_content(candidate, source_sum)
        self._want(work, index, found, verdict, candidate, source_sum)

    def _keep(self, work: OpenShard, entry: Entry, found: Entry, verdict: Verdict) -> None:
        """The content is right."""
        is_put_off = self._put_off(entry, found, verdict, partial(self._applier.attributes, entry, found, verdict))
        if not is_put_off and (verdict.action == ATTRIBUTES or found.nlink > 1):
            verdict = self._applier.attributes(entry, found, verdict)
        work.matched += entry.content
        work.accounted += 1
        if not is_put_off:
            self.placed(entry, verdict)

    def _want(
        self,
        work: OpenShard,
        index: int,
        found: Entry | None,
        verdict: Verdict,
        candidate: tuple[Root, Entry] | None,
        source_sum: str | None = None,
    ) -> None:
        """The content is not there: take it from a snapshot, else ask for it.

        ``source_sum``: the hash of the source's content, if it is known.
        """
        entry = work.shard.entries[index]
        if candidate is not None and (self._check or self._link_dest.take(entry, found, candidate, source_sum)):
            if self._check:
                self._applier.clear(entry, found)
            self._applier.count(entry, verdict)
            work.matched += entry.content
            work.accounted += 1
            self.placed(entry, verdict)
        elif self._check:
            self._predict_sent(entry)
            work.accounted += 1
            if self.holds(entry, found):
                self._obstacles.wait(entry, partial(self._made, entry, verdict))
                return
            self._applier.clear(entry, found)
            self._made(entry, verdict)
        else:
            if not bundles.fits(entry):
                self._applier.find_stage(entry.path)  # or all of it would be sent to a place that takes none of it
            work.found[index], work.verdicts[index] = found, verdict
            work.wanted.append(index)

    def _predict_sent(self, entry: Entry) -> None:
        """Count what a file will take at the destination."""
        self._applier.outcome.bytes_content += entry.content
        self._applier.outcome.bytes_sent += entry.content if self._keeps_holes else entry.size

    def holds(self, entry: Entry, found: Entry | None) -> bool:
        """Return whether a directory with contents, which is deleted at the end, is in the place of a file."""
        return found is not None and found.type == DIRECTORY and self._obstacles.holds(entry.path)

    def hold_file(self, entry: Entry, verdict: Verdict, folder_fd: int, name: bytes) -> None:
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
        self._staged.add((stage, staged))
        self._obstacles.wait(entry, partial(self._put_staged, entry, verdict, stage, staged))

    def hold_content(self, entry: Entry, verdict: Verdict, content: memoryview) -> None:
        """Keep a file's whole content until its place is free."""
        staged = self._applier.temporary_name()
        os.close(write_new(self._applier.temporary_fd, staged, 0o600, content))
        self.hold_file(entry, verdict, self._applier.temporary_fd, staged)

    def _put_staged(self, entry: Entry, verdict: Verdict, folder_fd: int, staged: bytes) -> None:
        status = os.stat(staged, dir_fd=folder_fd, follow_symlinks=False)
        self._applier.finish_file(entry, None, folder_fd, staged, status)
        self._made(entry, verdict)

    def _made(self, entry: Entry, verdict: Verdict) -> None:
        self._applier.count(entry, verdict)
        self.placed(entry, verdict)

    def placed(self, entry: Entry, verdict: Verdict) -> None:
        """An entry is complete; entries that wait to become hard links to it follow."""
        if entry.nlink == 1 or not self._keeps_links:
            return
        for follower in self._links.done(entry, verdict.action not in (NONE, ATTRIBUTES)):
            self._follow(follower)

    def _follow(self, follower: Follower) -> None:
        try:
            self._link(follower)
        except (OSError, ValueError) as error:
            self._applier.failed(follower.entry.path, error)

    def finish(self, is_clean: bool, is_empty: bool) -> None:
        """There are no more entries: remove what is too much, and give the directories their metadata.

        ``is_clean``: the source could be read completely. ``is_empty``: it has nothing but its root.
        """
        self._extras.end()
        for path, problem in self._extras.problems:
            self._applier.failed(path, problem)
        self._extras.settle(self._applier.outcome, is_clean, is_empty)
        self._extras.tell_mounts(self._applier.outcome)
        for path, put_in_place in self._obstacles.settle():
            try:
                self._obstacles.hold(path)
                put_in_place()
            except (OSError, ValueError, OverflowError) as error:
                self._applier.failed(path, error)
        for waits in self._put_off_changes.values():
            self._decide(waits)
        self._put_off_changes.clear()
        for entry in self._links.orphans():
            self._applier.failed(entry.path, "not linked: the file that it is another name of could not be transferred")
        self._applier.finish()

    def close(self) -> None:
        """Close what is open, and remove what still waits."""
        if self._changes is not None:
            self._changes.close()
        self._link_dest.close()
        self._links.close()
        for stage, staged in self._staged:
            with contextlib.suppress(OSError):
                os.unlink(staged, dir_fd=stage)


def _may_stay(entry: Entry, found: Entry | None) -> bool:
    """Return whether size and time let what is there stay, by which its content may be an older one."""
    return found is not None and found.type == REGULAR and (found.size, found.mtime_ns) == (entry.size, entry.mtime_ns)


def _hash(root: Root, there: Entry) -> str:
    return hash_and_close(root.open_file(there.path, there)).hex()


def _with_content(candidate: tuple[Root, Entry], source_sum: str | None) -> tuple[Root, Entry] | None:
    """Return an older file if it has the source's content; None for one that cannot be read, which must be sent."""
    with contextlib.suppress(OSError):
        return candidate if source_sum and _hash(*candidate) == source_sum else None
    return None


def _paths(escaped: list[str] | None) -> frozenset[bytes]:
    return frozenset(map(unescape, escaped or ()))
