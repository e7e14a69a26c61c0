# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare what the source offers with what the destination has, entry by entry. Private to the collection.

Most entries are dealt with at once. A regular file waits in its ``OpenShard`` where its content must be compared by
hash or must travel.
"""

from __future__ import annotations

import os

from .._job.context import Context
from .._tree.compare import ATTRIBUTES, NONE, Verdict
from .._tree.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from .._tree.names import unescape
from .._tree.place import Root
from .extras import Extras
from .hashing import hash_fd
from .links import Follower, LinkBook
from .messages import Shard
from .placer import Placer
from .snapshots import Snapshots


class OpenShard:
    """A shard on its way: what is there, what is to be asked for, and what is accounted for."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.found: dict[int, Entry | None] = {}  # of regular files that are not decided or not there yet
        self.verdicts: dict[int, Verdict] = {}
        self.wanted: list[int] = []
        self.candidates: dict[int, tuple[Root, Entry]] = {}
        self.have: dict[int, int] = {}
        self.hashed: list[int] = []
        self.accounted = 0
        self.matched = 0
        self.pieces = 0  # that other processes are making files of
        self.again: dict[int, str] = {}  # by index: why it must come again


class Entries:
    """Makes of the source's entries, in their order, what they shall be; knows which of them wait for others."""

    def __init__(self, context: Context, root: Root, placer: Placer) -> None:
        settings = context.settings
        self._root, self._placer = root, placer
        self._check = bool(settings["check"])
        self._checksum = bool(settings["checksum"])
        self._suspects = frozenset(unescape(path) for path in settings.get("suspects") or ())
        self._by_time = not self._checksum and not self._suspects  # size and time say whether a content is right
        self._keeps_links = "hardlinks" in settings["preserve"]
        self._keeps_devices = "devices" in settings["preserve"]
        self._has_snapshots = bool(settings["link_dest"])
        self._links = LinkBook()
        self._extras = Extras(context, root)
        self._snapshots = Snapshots(list(settings["link_dest"]), placer)

    def meet(self, work: OpenShard, index: int, entry: Entry, is_opaque: bool) -> None:
        """Deal with one entry: at once, or later where its content must be compared or must travel.

        ``is_opaque``: a directory whose contents the source does not list. Raises OSError, ValueError or OverflowError.
        """
        first = work.shard.attempt == 1
        level = self._extras.see(entry) if first else None
        is_new = level is not None and level.is_new
        if self._by_time and not is_new and self._is_unchanged(entry):
            work.matched += entry.size
            work.accounted += 1
            return
        if entry.type == DIRECTORY:
            found = None if is_new else self._placer.look(entry.path)
            new_below = found is None or found.type != DIRECTORY
            try:
                self._placer.directory(entry, found)
            finally:
                self._extras.enter(entry.path, new_below, is_opaque)
            work.accounted += 1
            return
        if entry.type not in (REGULAR, SYMLINK) and not self._keeps_devices:
            work.accounted += 1
            return
        follower = self._links.meet(entry) if entry.nlink > 1 and self._keeps_links else None
        if follower is not None:
            if entry.type == REGULAR:
                work.matched += entry.size
            if follower.is_ready:
                self._placer.follower(follower)
            work.accounted += 1
            return
        found = None if is_new else self._placer.look(entry.path)
        if entry.type != REGULAR:
            verdict = self._placer.special(entry, found)
            work.accounted += 1
            self.placed(entry, verdict)
            return
        self._meet_file(work, index, entry, found)

    def _is_unchanged(self, entry: Entry) -> bool:
        """Whether an entry is a file of one name that is all right already."""
        has_one_name = entry.nlink == 1 or not self._keeps_links
        return entry.type == REGULAR and has_one_name and self._placer.is_unchanged(entry)

    def _meet_file(self, work: OpenShard, index: int, entry: Entry, found: Entry | None) -> None:
        verdict = self._placer.judge(entry, found)
        if found is None and not self._has_snapshots:
            self._want(work, index, None, verdict, None)
            return
        is_file = found is not None and found.type == REGULAR
        checksum = self._checksum or entry.path in self._suspects
        if checksum and is_file and found is not None and found.size == entry.size:
            work.found[index] = found
            work.hashed.append(index)
            return
        if is_file and found is not None and verdict.action in (NONE, ATTRIBUTES):
            self._keep(work, entry, found, verdict)
            return
        candidate = self._snapshots.candidate(entry) if self._has_snapshots else None
        if candidate is not None and self._checksum:
            work.found[index], work.candidates[index] = found, candidate
            work.hashed.append(index)
            return
        self._want(work, index, found, verdict, candidate)

    def compare(self, work: OpenShard, index: int, source_sum: str | None) -> None:
        """Decide on a file of ``work.hashed``, whose hash in the source is known now. Raises OSError or ValueError."""
        entry, found = work.shard.entries[index], work.found.pop(index)
        candidate = work.candidates.get(index)
        root, path = (candidate[0], candidate[1].path) if candidate else (self._root, entry.path)
        equal = bool(source_sum) and _hash(root, path) == source_sum
        if candidate is not None:
            self._want(work, index, found, self._placer.judge(entry, found, equal=None), candidate if equal else None)
            return
        verdict = self._placer.judge(entry, found, equal=equal)
        if equal and found is not None:
            self._keep(work, entry, found, verdict)
        else:
            self._want(work, index, found, verdict, None)

    def _keep(self, work: OpenShard, entry: Entry, found: Entry, verdict: Verdict) -> None:
        """The content is right."""
        if verdict.action == ATTRIBUTES:
            self._placer.attributes(entry, found, verdict)
        work.matched += entry.size
        work.accounted += 1
        self.placed(entry, verdict)

    def _want(
        self, work: OpenShard, index: int, found: Entry | None, verdict: Verdict, candidate: tuple[Root, Entry] | None
    ) -> None:
        """The content is not there: take it from a snapshot, else ask for it."""
        entry = work.shard.entries[index]
        if candidate is not None and (
            self._check or self._snapshots.take(entry, found, candidate, self._placer.temporary_fd)
        ):
            if self._check:
                self._placer.clear(entry, found)
            self._placer.count(entry, verdict)
            work.matched += entry.size
            work.accounted += 1
            self.placed(entry, verdict)
        elif self._check:
            self._placer.clear(entry, found)
            self._placer.count(entry, verdict)
            self._placer.outcome.bytes_sent += entry.size  # predicted
            work.accounted += 1
            self.placed(entry, verdict)
        else:
            work.found[index], work.verdicts[index] = found, verdict
            work.wanted.append(index)

    def placed(self, entry: Entry, verdict: Verdict) -> None:
        """An entry is what it shall be; what waited to become another name of it follows."""
        if entry.nlink == 1 or not self._keeps_links:
            return
        for follower in self._links.done(entry, verdict.action not in (NONE, ATTRIBUTES)):
            self._follow(follower)

    def _follow(self, follower: Follower) -> None:
        try:
            self._placer.follower(follower)
        except (OSError, ValueError) as error:
            self._placer.failed(follower.entry.path, error)

    def finish(self, is_clean: bool, is_empty: bool) -> None:
        """There are no more entries: remove what is too much, and give the directories their metadata.

        ``is_clean``: the source could be read completely. ``is_empty``: it has nothing but its root.
        """
        self._extras.end()
        for path, problem in self._extras.problems:
            self._placer.failed(path, problem)
        for entry in self._links.orphans():
            self._placer.failed(entry.path, "not linked: the file that it is another name of could not be transferred")
        self._extras.settle(self._placer.outcome, is_clean, is_empty)
        self._placer.finish()

    def close(self) -> None:
        """Give back what is open."""
        self._snapshots.close()


def _hash(root: Root, path: bytes) -> str:
    fd = root.open_file(path)
    try:
        return hash_fd(fd)
    finally:
        os.close(fd)
