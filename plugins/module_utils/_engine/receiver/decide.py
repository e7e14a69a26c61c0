# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what an entry of the source needs at the destination. No file is looked at here.

``decide`` takes the entry and the facts that are known, and returns one action. Most need nothing but what is in the
place of the entry. Where a further fact decides, the action is a question (``QUESTIONS``): the caller finds the answer,
adds it to the facts, and calls again.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass
from os import stat_result
from typing import TYPE_CHECKING, NamedTuple

from ..._core.settings import Settings
from ..._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from ..._model.ids import IdMap
from ..._model.paths import unescape
from ..._model.time_units import TimeUnits
from ..._tree import xattr
from ..._tree.compare import ATTRIBUTES, CREATE, NONE, REPLACE, UNCHANGED, Verdict, compare
from ..._tree.inode import exchanged
from ..._tree.metadata import Powers, differences
from ..content import bundles

if TYPE_CHECKING:
    from ..._tree.dirfd import Root

_UNCHANGED = Verdict(NONE, " " * 11, frozenset())  # nobody is shown what did not change
_GIVEN = frozenset(["owner", "group"])
_SET_ID = stat.S_ISUID | stat.S_ISGID
MANY_NAMES = 32_000  # that every file can have: where the C library does not know a file system, it says 127
_NEW_FILE = Entry(b"", REGULAR, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0)


class Do:
    """What an entry needs; from ``TAKE_OVER`` on a question. Members of an Enum are slow in old versions of Python."""

    KEEP = "keep"
    CLAIM = "claim"  # keep, if the inode is no other file's of the source: the first one that claims it has it
    SET_ATTRIBUTES = "set attributes"
    NEW_INODE = "new inode"  # the same again: the inode in its place has other names, or somebody holds it open
    ENTER_DIRECTORY = "enter directory"
    UNLOCK_DIRECTORY = "unlock directory"  # of its owner, who may not write to it
    TAKE_DIRECTORY = "take directory"  # from another user
    MAKE_DIRECTORY = "make directory"
    MAKE_SPECIAL = "make special"
    LINK = "link"
    COPY_OLDER = "copy older"  # or link: the file of an older snapshot
    FETCH = "fetch"
    REFUSE = "refuse"
    TAKE_OVER = "take over"  # can the file be taken from another user, who has it not open for writing?
    COMPARE = "compare"  # has it the source's content?
    FIND_OLDER = "find older"  # has an older snapshot the file?
    COMPARE_OLDER = "compare older"  # has that the source's content?
    ALLOW_NAME = "allow name"  # can the file have one name more?
    AWAIT_NAMES = "await names"  # has the file these names alone, when all of them are known?


NEED_SUM = (Do.COMPARE, Do.COMPARE_OLDER)  # questions that the source's hash answers
QUESTIONS = frozenset((*NEED_SUM, Do.TAKE_OVER, Do.FIND_OLDER, Do.ALLOW_NAME, Do.AWAIT_NAMES))


class OlderFile(NamedTuple):
    """A file of an older snapshot."""

    root: Root
    entry: Entry
    times: TimeUnits  # as they are kept there
    is_same: bool  # also in its attributes
    # Whether the source's file may have, since that snapshot, though size and time are the same; None: nobody knows.
    has_changed: bool | None = False


@dataclass
class EntryFacts:
    """What is known of the destination when an entry is decided on. None: it was not asked."""

    found: Entry | None  # what is in its place
    is_blocked: bool = False  # by a directory with contents, which is deleted at the end
    has_changed: bool = False  # at the source since an interrupted run, by its change time or by being sent again
    before: Entry | None = None  # another user's file, before it was taken over
    in_use: bool = False  # it could not be taken over
    source_sum: str | None = None  # of the source's content; empty: it could not be read
    equal: bool | None = None  # ``found`` has that content
    older: OlderFile | None = None
    has_looked: bool = False  # for an older one
    older_equal: bool | None = None
    own_names: bool | None = None  # all names of ``found`` are names of the entry's file
    has_room: bool | None = None  # for one name more
    is_claimed: bool = False  # the inode of ``found`` is another file's


class Action(NamedTuple):
    """What is done about an entry, and how it is counted."""

    do: str
    verdict: Verdict = _UNCHANGED
    found: Entry | None = None  # what is in its place
    leader: Entry | None = None  # of a link: the name that is in place
    is_blocked: bool = False  # it waits until a directory in its place is deleted
    error: OSError | None = None  # of a refusal
    is_as_before: bool = False  # an older snapshot has the same at this path, so it is not listed as a change

    @property
    def is_new(self) -> bool:
        """Whether the entry gets another inode, so that no older name can be one of its names."""
        return self.do not in (Do.KEEP, Do.CLAIM, Do.SET_ATTRIBUTES)


class Decider:
    """Decides under the settings of a transfer. ``ids`` may learn more ids before the entries that have them."""

    def __init__(self, settings: Settings, ids: IdMap, powers: Powers, arrow: str = ">") -> None:
        self.check = bool(settings["check"])
        self.preserve = frozenset(settings["preserve"])
        self.keeps_links = "hardlinks" in self.preserve
        self.has_snapshots = bool(settings["link_dest"])
        self.seeks_here = False  # whether a new file's content may be at another path of the destination
        self.times = TimeUnits(settings["time_units"])
        self.has_coarse_times = bool(self.times)
        self._rounds_times = self.has_coarse_times and not self.has_snapshots  # a time as it is kept here is enough
        self._checksum = bool(settings["checksum"])
        self._suspects = frozenset(map(unescape, settings.get("suspects") or ()))
        self.by_time = not self._checksum and not self._suspects  # size and time say whether a content is right
        self._in_place = bool(settings.get("inplace"))
        self._numeric = bool(settings["numeric_ids"]) and not settings.get("owner_map")
        self._ids, self._powers, self._arrow = ids, powers, arrow
        self._gives_owners = powers.all and "owner" in self.preserve
        self._gives_files = powers.all and bool(self.preserve & _GIVEN)
        self._keeps_times, self._keeps_mode = "times" in self.preserve, "permissions" in self.preserve
        self._created: dict[str, Verdict] = {}  # by type: what is new is all the same
        self._fetch_new = Action(Do.FETCH, self.compare_entry(_NEW_FILE, None))

    def decide(self, entry: Entry, facts: EntryFacts) -> Action:
        """Return what an entry needs, or the question on which that depends."""
        if entry.type == REGULAR:
            return self._decide_file(entry, facts)
        if entry.type == DIRECTORY:
            return self._decide_directory(entry, facts.found)
        return self._decide_special(entry, facts)

    def decide_link(self, entry: Entry, leader: Entry | None, facts: EntryFacts, is_new: bool) -> Action:
        """Return what a further name of a file needs, whose first name ``leader`` is in place.

        ``is_new``: that was made in this run, so that in check mode no name can be linked to it already.
        """
        found = facts.found
        is_linked = leader is not None and found is not None and (leader.dev, leader.ino) == (found.dev, found.ino)
        if is_linked and not (self.check and is_new):
            return Action(Do.KEEP)  # the other name got whatever it needed
        verdict = self.compare_entry(entry, found, link_ok=False)
        if not facts.is_blocked and not self.check and (leader is None or not self._is_file_of(entry, leader)):
            return Action(Do.REFUSE, error=exchanged())
        return Action(Do.LINK, verdict, found, leader, facts.is_blocked)

    def _is_file_of(self, entry: Entry, leader: Entry) -> bool:
        """Return whether what is in the place of a first name can be what this transfer put or left there."""
        if (leader.type, leader.size) != (entry.type, entry.size):
            return False
        return "owner" not in differences(entry, leader, self.preserve & _GIVEN, self._ids, self._powers)

    def _decide_directory(self, entry: Entry, found: Entry | None) -> Action:
        """Decide about a directory: its metadata are set at the end, and before that something may arrive in it."""
        verdict = self.compare_entry(entry, found)
        if found is None or found.type != DIRECTORY:
            return Action(Do.MAKE_DIRECTORY, verdict, found)
        if self.disowns(entry, found):
            return Action(Do.TAKE_DIRECTORY, verdict, found)
        if not self._powers.all and found.uid == self._powers.uid and found.mode & 0o700 != 0o700:
            return Action(Do.UNLOCK_DIRECTORY, verdict, found)
        return Action(Do.ENTER_DIRECTORY, verdict, found)

    def _decide_special(self, entry: Entry, facts: EntryFacts) -> Action:
        verdict = self.compare_entry(entry, facts.found)
        if verdict.action in (CREATE, REPLACE):
            return Action(Do.MAKE_SPECIAL, verdict, facts.found, is_blocked=facts.is_blocked)
        return self._decide_kept(entry, facts, verdict)

    def _decide_file(self, entry: Entry, facts: EntryFacts) -> Action:
        found = facts.found
        if found is None and not self.has_snapshots and not self.seeks_here:
            return self._fetch_new
        if facts.equal is not None:
            verdict = self.compare_entry(entry, facts.before or found, equal=facts.equal)
            decide = self._decide_kept if facts.equal else self._decide_missing
            return decide(entry, facts, verdict)
        if facts.before is not None:
            return Action(Do.COMPARE, found=found)
        if found is not None and self.grants_setid(entry, found):
            return Action(Do.FETCH, self.compare_entry(entry, found, equal=False))
        verdict = self.compare_entry(entry, found)
        if found is not None and found.type == REGULAR:
            in_doubt = found.size == entry.size and (facts.has_changed or self._is_in_doubt(entry, found))
            is_kept = verdict.action in (NONE, ATTRIBUTES)
            if (in_doubt or is_kept) and self.disowns(entry, found):
                return self._decide_file_of_another(entry, found, facts.in_use)
            if in_doubt:
                return Action(Do.COMPARE, found=found)
            if is_kept:
                return self._decide_kept(entry, facts, verdict)
        return self._decide_missing(entry, facts, verdict)

    def _decide_file_of_another(self, entry: Entry, found: Entry, in_use: bool) -> Action:
        """Decide about a file that is taken from another user, who could give it any size and time.

        Its content is compared. If he may still write to it, or it has other names, a new file takes its place.
        """
        if found.nlink == 1 and not in_use:
            return Action(Do.TAKE_OVER, found=found)
        if self._in_place and found.nlink == 1 and not bundles.fits(entry):
            error = OSError(
                errno.ETXTBSY,
                f"inplace must keep this file, and its owner, user id {found.uid}, may have it open for writing. End "
                "the program that has (`fuser -v FILE` names it), or transfer it without inplace",
            )
            return Action(Do.REFUSE, found=found, error=error)
        return Action(Do.FETCH, self.compare_entry(entry, found, equal=False), found)

    def _decide_missing(self, entry: Entry, facts: EntryFacts, verdict: Verdict) -> Action:
        """Decide about a file whose content is not in place: an older snapshot or another path has it, or it comes."""
        may_copy = (self.has_snapshots or (self.seeks_here and facts.found is None)) and not facts.is_blocked
        if may_copy and not facts.has_looked:
            return Action(Do.FIND_OLDER, found=facts.found)
        older = facts.older
        if not may_copy or older is None or facts.older_equal is False:
            return Action(Do.FETCH, verdict, facts.found, is_blocked=facts.is_blocked)
        if facts.older_equal is None and (
            # Only its content says if it is the right one, or its owner may be another one.
            facts.has_changed
            or older.has_changed
            or self._is_in_doubt(entry, older.entry, older.times)
            or self.disowns(entry, older.entry)
        ):
            return Action(Do.COMPARE_OLDER, found=facts.found)
        is_as_before = older.is_same and older.entry.path == entry.path
        return Action(Do.COPY_OLDER, verdict, facts.found, is_as_before=is_as_before)

    def _decide_kept(self, entry: Entry, facts: EntryFacts, verdict: Verdict) -> Action:
        """Decide about what has the right content: it stays, if it is not another file, too.

        That is a file in an older snapshot or elsewhere outside of the root, which must stay as it is, or has as many
        names as there can be, or another file of the source. Where ``own_names`` says that all of its names are names
        of this entry's file, it is none of these.
        """
        found = facts.found
        if found is None:
            raise ValueError("nothing is there that could be kept")
        changes = verdict.action == ATTRIBUTES
        if found.nlink > 1:
            if changes and facts.own_names is None and entry.nlink > 1 and self.keeps_links and not self.has_snapshots:
                return Action(Do.AWAIT_NAMES, found=found)
            if not facts.own_names:
                gets_name = found.nlink > entry.nlink > 1 and self.keeps_links and found.nlink >= MANY_NAMES
                if gets_name and facts.has_room is None:
                    return Action(Do.ALLOW_NAME, found=found)
                if changes or facts.is_claimed or (gets_name and not facts.has_room):
                    return self._renew(entry, found, verdict)
                return Action(Do.CLAIM if self.keeps_links else Do.KEEP, verdict, found)
        if not changes:
            return Action(Do.KEEP, verdict, found)
        if entry.type not in (REGULAR, SYMLINK) and self.disowns(entry, found):
            # A listener stays behind a socket, and a reader or a writer behind a FIFO, whoever owns it by now.
            return self._renew(entry, found, verdict)
        return Action(Do.SET_ATTRIBUTES, verdict, found)

    def _renew(self, entry: Entry, found: Entry, verdict: Verdict) -> Action:
        """Return that an entry gets an inode of its own, which is counted as a change of attributes."""
        if verdict.action != ATTRIBUTES:
            kind = self.compare_entry(entry, None).itemized[1]
            verdict = Verdict(ATTRIBUTES, f"c{kind}{UNCHANGED}", frozenset())
        return Action(Do.NEW_INODE, verdict, found)

    # what decides

    def compare_entry(
        self,
        entry: Entry,
        found: Entry | None,
        equal: bool | None = None,
        link_ok: bool = True,
        times: TimeUnits | None = None,
    ) -> Verdict:
        """Compare an entry with what is there, under this transfer's settings.

        ``times``: what another tree than the destination keeps.
        """
        if found is not None and (self.has_coarse_times or times is not None):
            entry = (times or self.times).as_found(entry, found)
        if equal is None and link_ok:
            if found is None:
                if entry.type not in self._created:
                    self._created[entry.type] = compare(entry, None, preserve=self.preserve, arrow=self._arrow)
                return self._created[entry.type]
            if self.is_same(entry, found):
                return _UNCHANGED
        return compare(
            entry,
            found,
            preserve=self.preserve,
            checksum_equal=equal,
            link_ok=link_ok,
            ids=self._ids,
            powers=self._powers,
            arrow=self._arrow,
        )

    def is_same(self, entry: Entry, found: Entry) -> bool:
        """Return whether nothing at all differs that could be kept.

        In slices, which is quicker than field by field: type to mtime_ns, then target and xattrs.
        """
        if not self._numeric:
            return (
                entry[1:3] == found[1:3]
                and self._ids.uid(entry.uid) == found.uid
                and self._ids.gid(entry.gid) == found.gid
                and entry[5:7] == found[5:7]
                and entry[13:] == found[13:]
                and entry.rdev == found.rdev
                and not entry.xattrs  # the ids in ACLs may mean others here
            )
        return entry[1:7] == found[1:7] and entry[13:] == found[13:] and entry.rdev == found.rdev

    def is_unchanged(self, entry: Entry, status: stat_result) -> bool:
        """Return whether a regular file has the expected size, time and metadata, by what lstat says alone.

        For most of a tree that was here before, this answers the question at the lowest cost. Where the answer is no,
        ``decide`` tells why.
        """
        return (
            (
                status.st_mtime_ns == entry.mtime_ns
                or (self._rounds_times and self.times.is_same(entry.path, entry.mtime_ns, status.st_mtime_ns))
            )
            and status.st_size == entry.size
            and status.st_mode == stat.S_IFREG | entry.mode
            and status.st_uid == (entry.uid if self._numeric else self._ids.uid(entry.uid))
            and status.st_gid == (entry.gid if self._numeric else self._ids.gid(entry.gid))
            and not entry.xattrs
        )

    def grants_setid(self, entry: Entry, found: Entry) -> bool:
        """Return whether an entry's attributes would lend a user's rights to a file that somebody else may have made.

        Whoever owns it can have put any content into it, with the size and time of the entry, and may write to it until
        its owner changes. So it must not be kept.
        """
        if found.uid == self._powers.uid or found.type != REGULAR or not self._gives_files:
            return False
        has_capability = "xattrs" in self.preserve and any(name == xattr.CAPABILITY for name, _value in entry.xattrs)
        if not has_capability and not (self._keeps_mode and entry.mode & _SET_ID):
            return False
        return found.uid != self._ids.uid(entry.uid) or found.gid != self._ids.gid(entry.gid)

    def disowns(self, entry: Entry, found: Entry) -> bool:
        """Return whether an entry takes what is there away from another user, who may hold it open for writing."""
        return self._gives_owners and found.uid != self._powers.uid and found.uid != self._ids.uid(entry.uid)

    def is_foreign(self, entry: Entry, found: Entry) -> bool:
        """Return whether what is there belongs neither to this user nor to the one whom the entry will belong to."""
        is_owner = self._gives_owners and found.uid == self._ids.uid(entry.uid)
        return found.uid != self._powers.uid and not is_owner

    def _is_in_doubt(self, entry: Entry, found: Entry, times: TimeUnits | None = None) -> bool:
        """Return whether only its content says if a file of the right size is the right one.

        Without times to preserve, files that this program made have the time of their making. Then other times say
        nothing, and the same time what it always does. A backup is not to miss a change within the unit of a file
        system that keeps times coarsely; ``times``: what is kept where the file is, if that is an older snapshot.
        """
        if self._checksum or entry.path in self._suspects:
            return True
        if found.mtime_ns == entry.mtime_ns:
            return False
        if not self._keeps_times:
            return True
        return self.has_snapshots and (times or self.times).is_same(entry.path, entry.mtime_ns, found.mtime_ns)
