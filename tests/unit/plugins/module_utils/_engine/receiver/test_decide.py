# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision about an entry: a table of single cases, and rules that hold for all combinations."""

from __future__ import annotations

import errno
import itertools
from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.decide import (
    MANY_NAMES,
    QUESTIONS,
    Decider,
    Do,
    EntryFacts,
    OlderFile,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ids import IdMap
from ansible_collections.longhaul.fleet.plugins.module_utils._model.time_units import TimeUnits
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.metadata import Powers
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.xattr import CAPABILITY
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, settings

ROOT, USER = Powers(0, frozenset()), Powers(1000, frozenset([1000]))
NO_LINKS = [word for word in ALL if word != "hardlinks"]
NO_TIMES = [word for word in ALL if word != "times"]
BACKUP = {"link_dest": ["../old"]}
LARGE = 1 << 20


def there(kind="f", **changes) -> Entry:
    """Return an entry, or what is in its place, which is equal where nothing is said."""
    size = 10 if kind == "f" else 0
    target = b"to" if kind == "l" else b""
    entry = Entry(b"x", kind, 0o644, 0, 0, size, 10**18, 0, 1, 1, 1, 7 if kind in "bc" else 0, 8, target)
    return entry._replace(**changes)


def decider(powers=ROOT, **changes) -> Decider:
    return Decider(settings("stream", **changes), IdMap(), powers)


def older(has_changed=False, **changes) -> EntryFacts:
    found = OlderFile(None, there(**changes), TimeUnits({}), True, has_changed)
    return EntryFacts(None, older=found, has_looked=True)


SAME, NEW_TIME = there(), there(mtime_ns=1)
TWO = there(nlink=2)
CASES = {
    # what: (source's entry, facts, settings, action, as it is reported)
    "new file": (there(), EntryFacts(None), {}, Do.FETCH, ">f+++++++++"),
    "same file": (there(), EntryFacts(SAME), {}, Do.KEEP, None),
    "other size": (there(size=11), EntryFacts(SAME), {}, Do.FETCH, ">f.s......."),
    "other time": (there(), EntryFacts(NEW_TIME), {}, Do.FETCH, ">f..t......"),
    "other mode": (there(mode=0o600), EntryFacts(SAME), {}, Do.SET_ATTRIBUTES, ".f...p....."),
    "mode not kept": (there(mode=0o600), EntryFacts(SAME), {"preserve": ["times"]}, Do.KEEP, None),
    "checksum": (there(), EntryFacts(SAME), {"checksum": True}, Do.COMPARE, None),
    "checksum, other size": (there(size=11), EntryFacts(SAME), {"checksum": True}, Do.FETCH, ">f.s......."),
    "suspect": (there(), EntryFacts(SAME), {"suspects": ["x"]}, Do.COMPARE, None),
    "another suspect": (there(), EntryFacts(SAME), {"suspects": ["y"]}, Do.KEEP, None),
    "times not kept": (there(), EntryFacts(NEW_TIME), {"preserve": NO_TIMES}, Do.COMPARE, None),
    "times not kept, same": (there(), EntryFacts(SAME), {"preserve": NO_TIMES}, Do.KEEP, None),
    "equal": (there(), EntryFacts(NEW_TIME, equal=True), {"checksum": True}, Do.SET_ATTRIBUTES, ".f..t......"),
    "different": (there(), EntryFacts(SAME, equal=False), {"checksum": True}, Do.FETCH, ">fc........"),
    "coarse times": (there(mtime_ns=10**18 + 5), EntryFacts(SAME), {"time_units": {"": 10**9}}, Do.KEEP, None),
    "coarse times, backup": (
        there(mtime_ns=10**18 + 5),
        EntryFacts(SAME),
        {"time_units": {"": 10**9}, **BACKUP},
        Do.COMPARE,
        None,
    ),
    "changed": (there(), EntryFacts(SAME, has_changed=True), BACKUP, Do.COMPARE, None),
    "changed, other size": (
        there(size=11),
        EntryFacts(SAME, has_changed=True, has_looked=True),
        BACKUP,
        Do.FETCH,
        ">f.s.......",
    ),
    "changed since a snapshot": (there(), older(has_changed=True), BACKUP, Do.COMPARE_OLDER, None),
    "file for a link": (there(), EntryFacts(there("l")), {}, Do.FETCH, ">f+++++++++"),
    # directories
    "new directory": (there("d"), EntryFacts(None), {}, Do.MAKE_DIRECTORY, "cd+++++++++"),
    "directory for a file": (there("d"), EntryFacts(SAME), {}, Do.MAKE_DIRECTORY, "cd+++++++++"),
    "same directory": (there("d"), EntryFacts(there("d")), {}, Do.ENTER_DIRECTORY, None),
    "directory of another": (there("d"), EntryFacts(there("d", uid=5)), {}, Do.TAKE_DIRECTORY, ".d....o...."),
    "directory of the same": (there("d", uid=5), EntryFacts(there("d", uid=5)), {}, Do.ENTER_DIRECTORY, None),
    # symlinks and special files
    "new link": (there("l"), EntryFacts(None), {}, Do.MAKE_SPECIAL, "cL+++++++++"),
    "same link": (there("l"), EntryFacts(there("l")), {}, Do.KEEP, None),
    "other target": (there("l", target=b"a"), EntryFacts(there("l")), {}, Do.MAKE_SPECIAL, "cLc........"),
    "link of another": (there("l"), EntryFacts(there("l", uid=5)), {}, Do.SET_ATTRIBUTES, ".L....o...."),
    "device": (there("b", rdev=8), EntryFacts(there("b")), {}, Do.MAKE_SPECIAL, "cDc........"),
    "fifo of another": (there("p"), EntryFacts(there("p", uid=5)), {}, Do.NEW_INODE, ".S....o...."),
    "socket of another": (there("s"), EntryFacts(there("s", uid=5)), {}, Do.NEW_INODE, ".S....o...."),
    "other mode of a fifo": (there("p", mode=0o600), EntryFacts(there("p")), {}, Do.SET_ATTRIBUTES, ".S...p....."),
    # another user's files
    "taken": (there(), EntryFacts(there(uid=5)), {}, Do.TAKE_OVER, None),
    "taken, owner not kept": (there(), EntryFacts(there(uid=5)), {"preserve": ["times"]}, Do.KEEP, None),
    "taken, other size": (there(size=9), EntryFacts(there(uid=5)), {}, Do.FETCH, ">f.s...o...."[:4] + "..o...."),
    "taken, compared": (there(), EntryFacts(there(mtime_ns=1), before=there(uid=5)), {}, Do.COMPARE, None),
    "taken, equal": (
        there(),
        EntryFacts(there(mtime_ns=1), before=there(uid=5), equal=True),
        {},
        Do.SET_ATTRIBUTES,
        ".f....o....",
    ),
    "taken, in use": (there(), EntryFacts(there(uid=5), in_use=True), {}, Do.FETCH, ">fc...o...."),
    "taken, in use, inplace": (
        there(size=LARGE),
        EntryFacts(there(uid=5, size=LARGE), in_use=True),
        {"inplace": True},
        Do.REFUSE,
        None,
    ),
    "taken, other names": (there(), EntryFacts(there(uid=5, nlink=2)), {}, Do.FETCH, ">fc...o...."),
    "set-id": (there(mode=0o4755, uid=7), EntryFacts(there(mode=0o4755, uid=5)), {}, Do.FETCH, ">fc...o...."),
    "set-id by group": (there(mode=0o2755, uid=5), EntryFacts(there(uid=5, gid=6)), {}, Do.FETCH, ">fc..p.g..."),
    "set-id, root's": (there(mode=0o4755, uid=7), EntryFacts(there(mode=0o4755)), {}, Do.SET_ATTRIBUTES, ".f....o...."),
    # files with several names
    "claim": (there(), EntryFacts(TWO), {}, Do.CLAIM, None),
    "claimed": (there(), EntryFacts(TWO, is_claimed=True), {}, Do.NEW_INODE, "cf........."),
    "links not kept": (there(), EntryFacts(TWO), {"preserve": NO_LINKS}, Do.KEEP, None),
    "other names outside": (there(mode=0o600), EntryFacts(TWO), {}, Do.NEW_INODE, ".f...p....."),
    "own names": (there(mode=0o600, nlink=2), EntryFacts(TWO, own_names=True), {}, Do.SET_ATTRIBUTES, ".f...p....."),
    "no own names": (there(mode=0o600, nlink=2), EntryFacts(TWO, own_names=False), {}, Do.NEW_INODE, ".f...p....."),
    "backup, several names": (there(mode=0o600, nlink=2), EntryFacts(TWO), BACKUP, Do.NEW_INODE, ".f...p....."),
    "many names": (TWO, EntryFacts(there(nlink=MANY_NAMES)), {}, Do.ALLOW_NAME, None),
    "too many names": (TWO, EntryFacts(there(nlink=MANY_NAMES), has_room=False), {}, Do.NEW_INODE, "cf........."),
    # older snapshots
    "backup": (there(), EntryFacts(None), BACKUP, Do.FIND_OLDER, None),
    "none": (there(), EntryFacts(None, has_looked=True), BACKUP, Do.FETCH, ">f+++++++++"),
    "older": (there(), older(), BACKUP, Do.COPY_OLDER, ">f+++++++++"),
    "older of another": (there(), older(uid=5), BACKUP, Do.COMPARE_OLDER, None),
    "older, checksum": (there(), older(), {"checksum": True, **BACKUP}, Do.COMPARE_OLDER, None),
    "older, equal": (there(), replace(older(uid=5), older_equal=True), BACKUP, Do.COPY_OLDER, ">f+++++++++"),
    "older, different": (there(), replace(older(uid=5), older_equal=False), BACKUP, Do.FETCH, ">f+++++++++"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_entry_gets_what_it_needs(case):
    entry, facts, changes, do, shown = CASES[case]
    action = decider(**changes).decide(entry, facts)
    assert (action.do, action.is_blocked, action.error is None) == (do, False, do != Do.REFUSE)
    if shown is None:
        assert action.verdict.action == "none"
    else:
        assert action.verdict.itemized == shown
    assert action.is_new == (do not in (Do.KEEP, Do.CLAIM, Do.SET_ATTRIBUTES))


@pytest.mark.parametrize(
    ("kind", "do"), [("f", Do.FETCH), ("l", Do.MAKE_SPECIAL), ("p", Do.MAKE_SPECIAL), ("b", Do.MAKE_SPECIAL)]
)
@pytest.mark.parametrize("changes", [{}, BACKUP, {"check": True}])
def test_an_entry_waits_for_its_place(kind, do, changes):
    action = decider(**changes).decide(there(kind), EntryFacts(there("d"), is_blocked=True))
    assert (action.do, action.is_blocked) == (do, True)
    facts = EntryFacts(there("d"), is_blocked=True)
    link = decider(**changes).decide_link(there(kind, nlink=2), there(kind, ino=2), facts, is_new=False)
    assert (link.do, link.is_blocked) == (Do.LINK, True)


def test_a_new_file_is_sought_at_other_paths_of_the_destination():
    """Not one that replaces another: what its content was taken from may have been replaced before."""
    decides = decider(delete=True)
    assert decides.decide(there(), EntryFacts(None)).do == Do.FETCH
    decides.seeks_here = True
    assert decides.decide(there(), EntryFacts(None)).do == Do.FIND_OLDER
    for facts in (EntryFacts(None, has_looked=True), EntryFacts(NEW_TIME), EntryFacts(there("d"), is_blocked=True)):
        assert decides.decide(there(), facts).do == Do.FETCH
    moved = older(has_changed=True, path=b"y")
    assert decides.decide(there(), moved).do == Do.COMPARE_OLDER
    assert decides.decide(there(), replace(moved, older_equal=True)).do == Do.COPY_OLDER
    assert decides.decide(there(), replace(moved, older_equal=False)).do == Do.FETCH


@pytest.mark.parametrize("kind", "flp")
def test_a_change_waits_for_all_names(kind):
    entry, found = there(kind, nlink=2, gid=5), there(kind, nlink=2)
    assert decider().decide(entry, EntryFacts(found)).do == Do.AWAIT_NAMES


def test_a_folder_that_its_owner_may_not_write_to_is_unlocked():
    closed, entry = there("d", uid=1000, mode=0o500), there("d", mode=0o500)
    assert decider(USER).decide(entry, EntryFacts(closed)).do == Do.UNLOCK_DIRECTORY
    assert decider().decide(entry, EntryFacts(closed._replace(uid=0))).do == Do.ENTER_DIRECTORY


@pytest.mark.parametrize(
    ("leader", "found", "changes", "do"),
    [
        (there(), None, {}, Do.LINK),
        (there(), there(ino=2), {}, Do.LINK),
        (there(), there(), {}, Do.KEEP),
        (there(), there(), {"check": True}, Do.LINK),
        (None, None, {"check": True}, Do.LINK),
        (None, None, {}, Do.REFUSE),
        (there(uid=5), None, {}, Do.REFUSE),
        (there(size=9), None, {}, Do.REFUSE),
        (there("l"), None, {}, Do.REFUSE),
    ],
)
def test_a_further_name_is_linked_to_a_file_of_the_transfer_alone(leader, found, changes, do):
    action = decider(**changes).decide_link(there(nlink=2), leader, EntryFacts(found), is_new=True)
    assert action.do == do
    if do == Do.REFUSE:
        assert action.error.errno == errno.ESTALE
    assert do != Do.LINK or action.verdict.itemized.startswith("hf")


def outcomes(made: Decider, entry: Entry, facts: EntryFacts):
    """Yield the final actions, with all that was asked, by every answer to the questions."""
    waiting = [(facts, ())]
    while waiting:
        facts, asked = waiting.pop()
        action = made.decide(entry, facts)
        assert len(asked) < 8 and action.do not in asked
        asked = (*asked, action.do)
        if action.do not in QUESTIONS:
            yield action, asked, facts
            if action.do == Do.CLAIM:
                waiting.append((replace(facts, is_claimed=True), asked))
        elif action.do == Do.TAKE_OVER:
            taken = facts.found._replace(uid=0, mtime_ns=1)
            waiting += [(replace(facts, in_use=True), asked), (replace(facts, before=facts.found, found=taken), asked)]
        elif action.do == Do.FIND_OLDER:
            old = [OlderFile(None, there(uid=uid), TimeUnits({}), True) for uid in (0, 5)]
            waiting += [(replace(facts, older=answer, has_looked=True), asked) for answer in (None, *old)]
        else:
            fact = {
                Do.COMPARE: "equal",
                Do.COMPARE_OLDER: "older_equal",
                Do.ALLOW_NAME: "has_room",
                Do.AWAIT_NAMES: "own_names",
            }[action.do]
            waiting += [(replace(facts, **{fact: answer}), asked) for answer in (True, False)]


GRID = list(
    itertools.product(
        [None, *"fdlpsbc"],  # in its place
        [{}, {"uid": 5}, {"gid": 6}, {"mode": 0o4755}, {"mtime_ns": 1}, {"nlink": 2}, {"nlink": MANY_NAMES, "uid": 5}],
        [{}, {"nlink": 2}, {"mode": 0o4755, "uid": 7}, {"uid": 7, "xattrs": ((CAPABILITY, b"cap"),)}],  # the source
    )
)
SETTINGS = [
    {"preserve": preserve, **changes}
    for preserve in (ALL, NO_LINKS, NO_TIMES, ["times"], [])
    for changes in ({}, {"checksum": True}, BACKUP)
]


@pytest.mark.parametrize("kind", "fdlpsbc")
@pytest.mark.parametrize("changes", SETTINGS, ids=str)
def test_rules_that_always_hold(kind, changes):
    made, checks = decider(**changes), decider(check=True, **changes)
    for found_kind, found_changes, entry_changes in GRID:
        found = None if found_kind is None else there(found_kind, **found_changes)
        entry = there(kind, **entry_changes)
        for action, asked, facts in outcomes(made, entry, EntryFacts(found)):
            assert checks.decide(entry, facts) == action
            keeps = action.do in (Do.KEEP, Do.CLAIM, Do.SET_ATTRIBUTES, Do.NEW_INODE)
            if found is None or found.type != kind:
                assert not keeps
            if not keeps or kind == "d":
                continue
            # No inode that has names elsewhere is changed, nor stands for two files of the source.
            if found.nlink > 1 and action.do == Do.SET_ATTRIBUTES:
                assert facts.own_names
            if found.nlink > 1 and action.do == Do.KEEP and "hardlinks" in changes["preserve"]:
                assert facts.own_names
            # What was another user's is not believed: he may hold it open, and gave it its size and time.
            if "owner" in changes["preserve"] and found.uid not in (0, entry.uid):
                assert kind == "l" or action.do == Do.NEW_INODE or (Do.COMPARE in asked and facts.equal)
            # Nor does he get the rights of somebody else, by a program of his.
            assert not (kind == "f" and "owner" in changes["preserve"] and entry.uid == 7 and found.uid == 5)
            if action.do in (Do.KEEP, Do.CLAIM):
                assert action.verdict.action == "none"
