# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The history of snapshots: what it says of each act, and what a check makes of it."""

from __future__ import annotations

import errno
import json
import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import history, names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.history import (
    LONGEST,
    Event,
    known_of,
    parse_event,
    parse_events,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    THIRD,
)

BY = "ada as root@control1"


@pytest.fixture(name="bench")
def _bench(bench, monkeypatch):
    monkeypatch.setattr("time.time", lambda: bench.now)
    for number in range(10):
        bench.write(f"file{number}", b"1")
    return bench


def act(bench, action, host="web1", dry=False, **options):
    nobody = Holders(lambda path: None, lambda path: None)
    place = (str(bench.repository), host, "data")
    return do_action(action, place, {"by": BY, **options}, nobody, dry)


def nightly_check(bench, host="web1", dry=False):
    """Return whether a check found all as it should be, why it failed, and its warnings."""
    done = act(bench, "check", host, dry)
    return done.result["sound"], done.failed, done.warnings


def lines(bench, host="web1"):
    text = (bench.repository / host / "data/history.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def told(bench, host="web1"):
    return [(one["act"], one["name"]) for one in lines(bench, host)]


def test_each_act_has_a_line_that_says_who_and_when_and_why(bench):
    bench.backup()
    for number in range(8):
        (bench.source / f"file{number}").unlink()
    aside = bench.backup(shrink_limit=50).name
    act(bench, "accept", name=aside)
    act(bench, "restored", name=SECOND, why="etc/hosts to web9:/etc/hosts")
    bench.backup()
    act(bench, "prune", keep={"last": 1, "within": "1d"})
    with bench.series() as series:
        begin(series, "never finished", bench.now)
    act(bench, "discard", name="unfinished")
    assert told(bench) == [
        *(("made", FIRST), ("aside", aside), ("accepted", SECOND), ("restored", SECOND), ("made", THIRD)),
        *(("pruned", FIRST), ("discarded", ".unfinished")),
    ]
    accepted, restored, pruned = (lines(bench)[number] for number in (2, 3, 5))
    assert accepted == {
        "act": "accepted",
        "name": SECOND,
        "at": "2026-11-23T12:00:00Z",
        "job": "web1/data",
        "by": BY,
    }
    assert "8 of 10" in lines(bench)[1]["why"] or "%" in lines(bench)[1]["why"]
    assert restored["why"] == "etc/hosts to web9:/etc/hosts" and pruned["why"] == "keep: last 1, within 86400 s"
    assert nightly_check(bench) == (True, "", [])


def test_what_was_removed_by_hand_is_named_with_the_time_when_it_was_made(bench):
    for _night in range(4):
        bench.backup()
    fourth = names.name_of(NOON + 3 * DAY)
    assert nightly_check(bench) == (True, "", [])
    for name in (FIRST, SECOND, THIRD):
        shutil.rmtree(bench.path(name))
    assert not nightly_check(bench, dry=True)[0] and "missed" not in dict(told(bench))
    sound, failed, _warnings = nightly_check(bench)
    assert not sound and failed.startswith("the snapshots are not as they were, 3 problems: ")
    assert f"{FIRST}: it is gone: made 2026-11-21T12:00:00Z, and no action of this collection removed it" in failed
    # It fails once, and stays known until somebody says that it was meant.
    sound, failed, (warning,) = nightly_check(bench)
    assert (sound, failed) == (False, "") and f"{FIRST}, {SECOND}, {THIRD}" in warning
    for name in (FIRST, SECOND, THIRD):
        assert act(bench, "discard", dry=True, name=name).result["changed"]
        assert act(bench, "discard", name=name).result["changed"]
    assert nightly_check(bench) == (True, "", [])
    with pytest.raises(Refused, match="prune alone"):
        act(bench, "discard", name=fourth)
    shutil.rmtree(bench.path(fourth))
    assert "it is gone" in nightly_check(bench)[1], "also where none is left"


def test_who_may_only_read_checks_all_the_same(bench, monkeypatch):
    bench.backup()
    bench.backup()
    shutil.rmtree(bench.path(FIRST))

    def forbid(*_given):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(history.Series, "lock", forbid)
    before = told(bench)
    for _time in range(2):
        assert f"{FIRST}: it is gone" in nightly_check(bench)[1]
    assert told(bench) == before


def test_a_snapshot_that_comes_back_is_there_again(bench):
    bench.backup()
    bench.backup()
    os.rename(bench.path(FIRST), bench.repository / "elsewhere")
    assert not nightly_check(bench)[0]
    os.rename(bench.repository / "elsewhere", bench.path(FIRST))
    assert nightly_check(bench) == (True, "", [])


def test_snapshots_of_earlier_versions_are_entered_once(bench):
    bench.backup()
    bench.backup()
    bench.path("history.jsonl").unlink()
    act(bench, "prune", keep={"last": 5})
    assert told(bench) == [("found", FIRST), ("found", SECOND)]
    act(bench, "prune", keep={"last": 5})
    assert len(lines(bench)) == 2
    shutil.rmtree(bench.path(FIRST))
    assert f"{FIRST}: it is gone: made 2026-11-21T12:00:00Z" in nightly_check(bench)[1]


def test_what_is_renamed_as_the_format_says_was_removed_on_purpose(bench):
    bench.backup()
    bench.backup()
    os.rename(bench.path(FIRST), bench.path(f".removing-{FIRST}"))
    assert nightly_check(bench, dry=True) == (True, "", [])
    act(bench, "prune", keep={"last": 5})
    assert told(bench)[-1] == ("removed", FIRST) and not bench.path(f".removing-{FIRST}").exists()
    assert nightly_check(bench) == (True, "", [])


def test_a_snapshot_that_was_renamed_by_hand_is_entered_as_renamed(bench):
    bench.backup()
    bench.backup()
    other = names.name_of(NOON - DAY)
    os.rename(bench.path(FIRST), bench.path(other))
    assert nightly_check(bench)[0]
    assert lines(bench)[-1]["act"] == "renamed" and lines(bench)[-1]["was"] == f"web1/data/{FIRST}"


@pytest.mark.parametrize("has_history", [True, False])
@pytest.mark.parametrize("dry", [True, False], ids=["check mode", "for real"])
def test_the_folder_of_a_host_that_was_renamed_is_taken_over(bench, has_history, dry):
    bench.backup()
    bench.backup()
    if not has_history:
        bench.path("history.jsonl").unlink()
    os.rename(bench.repository / "web1", bench.repository / "web01")
    sound, failed, warnings = nightly_check(bench, "web01", dry)
    assert (sound, failed) == (True, "")
    assert not dry or warnings == []
    if dry:
        return
    (warning,) = warnings
    assert "has 2 snapshots of web1/data, as after a rename" in warning and "move them back" in warning
    assert [(one["act"], one["was"]) for one in lines(bench, "web01")[-2:]] == [
        ("renamed", f"web1/data/{FIRST}"),
        ("renamed", f"web1/data/{SECOND}"),
    ]
    assert nightly_check(bench, "web01") == (True, "", [])
    shutil.rmtree(bench.repository / "web01/data" / FIRST)
    assert "made 2026-11-21T12:00:00Z" in nightly_check(bench, "web01")[1]


def test_a_manifest_of_another_host_is_a_problem_still(bench):
    """It is no rename: the facts beside it are of this host."""
    bench.backup()
    bench.path("history.jsonl").unlink()
    os.rename(bench.repository / "web1", bench.repository / "web9")
    facts = bench.repository / "web9/data" / FIRST / "snapshot.json"
    facts.write_text(facts.read_text().replace('"web1"', '"web9"'))
    sound, failed, _warnings = nightly_check(bench, "web9")
    assert not sound and "its manifest is of web1/data" in failed


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(b"\0\xff{]\n" + b"[" * 100_000),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
    ],
    ids=["missing", "torn", "nonsense", "folder", "pipe", "link"],
)
def test_whatever_a_history_is_the_snapshots_are_usable(bench, spoil):
    bench.backup()
    bench.backup()
    spoil(bench.path("history.jsonl"))
    assert nightly_check(bench)[:2] == (True, "")
    third = bench.backup()
    assert third.name == THIRD and nightly_check(bench)[0]
    path = bench.path("history.jsonl")
    if path.is_file() and not path.is_symlink():
        assert ("made", THIRD) in [(one.act, one.name) for one in parse_events(path.read_bytes())]


def test_a_full_disk_stops_no_act_and_prune_enters_it_when_there_is_room(bench, monkeypatch):
    bench.backup()
    bench.backup()
    write, full = os.write, [True]

    def fill(fd, data):
        if full[0]:
            write(fd, data[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(history.os, "write", fill)
    (warning,) = act(bench, "discard", name="unfinished").warnings or [""]
    assert warning == "", "nothing was to be written"
    before = bench.path("history.jsonl").read_bytes()
    (warning,) = act(bench, "restored", name=SECOND).warnings
    assert "history.jsonl cannot be written: No space left on device. The snapshots are as they should be" in warning
    assert bench.path("history.jsonl").read_bytes() == before
    with monkeypatch.context() as patch:
        remove = history.Series.named

        def named(series, *kind):
            found = remove(series, *kind)
            full[0] = (full[0] and kind != (names.REMOVING,)) or not found
            return found

        patch.setattr(history.Series, "named", named)
        done = act(bench, "prune", keep={"last": 1})
    assert done.result["removed"] == [FIRST] and done.warnings == [] and told(bench)[-1] == ("pruned", FIRST)


@pytest.mark.parametrize("text", ["x" * 9999, "\U0001f600" * 9999, "\n\x1b[31m" * 99])
def test_a_line_is_bounded_and_one_line(text):
    place = "é" * 100
    line = Event("made", FIRST, NOON, f"{place}/{place}", text, text, f"{place}/{place}/{FIRST}").line()
    assert len(line) <= LONGEST and line.count(b"\n") == 1 and line.isascii()
    assert parse_event(line).job == f"{place}/{place}"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"1",
        b'{"act": 1}',
        b'{"act": "made", "name": "x", "at": 5, "job": "a"}',
        b"[" * 9999,
        b"\xff",
    ],
)
def test_a_line_that_is_none_is_left_out(line):
    good = Event("made", FIRST, NOON, "web1/data").line()
    assert [event.name for event in parse_events(line + b"\n" + good + line)] == [FIRST]


def test_acts_of_later_versions_and_names_of_no_snapshots_are_ignored():
    events = [Event(act, name, NOON, "a/b") for act in ("made", "flown") for name in (FIRST, "../x", ".unfinished")]
    assert list(known_of([*events, Event("protected", FIRST, NOON, "a/b")])) == [FIRST]
