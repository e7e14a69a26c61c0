# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot of a source that lost or changed much is set aside; those that follow cost no copy, and end with it."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import Figures, Past
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.suspicion import (
    REMEMBERED,
    ChangeLimits,
    remember,
    suspicion,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    NOON,
    contents,
    hashed,
    rot,
)

HALF = ChangeLimits(50, 50)
NAMES = [names.name_of(NOON + day * DAY) for day in range(9)]


def past(*shares, files=100):
    """Return snapshots with these per cent of changed files, the newest first."""
    return [Past(f"s{number}", files, share, 100) for number, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("changed", "before", "reason"),
    [
        (100, past(1, 2, 0), "100.0 % of the files have other contents"),
        (50, past(1, 2, 0), ""),
        (51, past(1, 2, 0), "(51 of 100), and the limit (change_limit) is 50 %; up to 1.0 % are usual"),
        (100, past(1, 2), ""),  # nobody knows yet what is usual
        (100, past(1, 2, None), ""),
        (100, past(100, 100, 100), ""),  # a dump, each night
        (79, past(40, 90, 1), ""),
        (81, past(1, 40, 40), "up to 40.0 % are usual"),
        (100, past(100, 1, 2), "up to 2.0 % are usual"),  # behind one that somebody accepted
        (0, past(1, 2, 0), ""),
    ],
)
def test_what_changed_is_judged_by_what_is_usual_for_the_job(changed, before, reason):
    figures = Figures(files=100, gone=0, before=100, changed=changed, files_before=100)
    said = suspicion(figures, before, HALF)
    assert reason in said and bool(said) == bool(reason)
    assert suspicion(figures, before, ChangeLimits(50, 100)) == ""


def test_a_little_less_each_day_is_much_in_the_end():
    history, left = (), 1000
    for day in range(3):
        gone = left * 49 // 100 if day else 0
        figures = Figures(files=left - gone, gone=gone, before=left)
        said = suspicion(figures, history, HALF)
        assert bool(said) == (day == 2), (day, said)
        history, left = remember(f"day {day}", figures, history), left - gone
    assert said == (
        "there are 261 files, and there were 1000 in day 0: 73.9 % less within 2 snapshots, and the limit "
        "(shrink_limit) is 50 %"
    )
    assert suspicion(figures, history, ChangeLimits(80, 50)) == ""
    for _day in range(REMEMBERED):
        history = remember("later", Figures(files=261), history)
    assert len(history) == REMEMBERED and suspicion(figures, history[1:], HALF) == ""


def test_a_job_whose_files_come_and_go_is_not_suspicious():
    week = [Past(f"s{files}", files) for files in (450, 600, 800, 1000, 300, 450, 600)]
    assert suspicion(Figures(files=300, gone=150, before=450), week, HALF) == ""
    assert "there were 1000 in s1000" in suspicion(Figures(files=299, gone=150, before=450), week, HALF)


@pytest.fixture
def settled(bench):
    """Four nights of a job of ten files, of which one changes each night."""
    for number in range(10):
        bench.write(f"d/{number}", b"%d" % number * 10)
    for night in range(4):
        bench.write("d/0", b"night %d" % night, NOON + night)
        bench.backup(shrink_limit=50, change_limit=50)
    assert len(bench.complete()) == 4
    return bench


def encrypt(bench):
    for number in range(10):
        bench.write(f"d/{number}", b"secret %d" % number, NOON + DAY + bench.now)


def test_files_that_were_encrypted_in_place_are_set_aside_whatever_was_pruned(settled):
    with settled.series() as series:
        prune(series, Policy(last=1), settled.now)
    encrypt(settled)
    done = settled.backup(shrink_limit=50, change_limit=50)
    assert done.name == "aside-" + NAMES[4] and "100.0 % of the files have other contents" in done.aside
    assert (done.facts.figures.changed, done.facts.figures.files_before) == (10, 10)
    with settled.series() as series, pytest.raises(Refused, match="set aside"):
        prune(series, Policy(last=1), settled.now)


def test_a_restored_tree_is_no_change(settled):
    for number in range(10):
        content = (settled.source / f"d/{number}").read_bytes()
        settled.write(f"d/{number}", content, NOON + 5 * DAY)  # the same contents, in new files with new times
    done = settled.backup(shrink_limit=50, change_limit=50)
    assert (done.aside, done.facts.figures.changed, done.facts.figures.new_files) == ("", 0, 10)


def test_the_next_night_links_to_what_was_set_aside_and_is_judged_by_the_good_snapshot(settled, monkeypatch):
    encrypt(settled)
    first = settled.backup(shrink_limit=50, change_limit=50).name
    read = hashed(monkeypatch)
    second = settled.backup(shrink_limit=50, change_limit=50)
    assert second.name == "aside-" + NAMES[5] and second.facts.base == NAMES[3] and second.facts.aside_base == first
    assert (second.facts.figures.new_files, second.facts.figures.changed, read) == (0, 10, [])
    for number in range(10):
        assert settled.path(second.name, f"data/d/{number}").samefile(settled.path(first, f"data/d/{number}"))
    with settled.series() as series:
        report, _part = check(series, "contents", settled.now)
        assert report.problems == {}
        assert begin(series, "next", settled.now, check=True).link_dest == [
            str(settled.path(second.name, "data")),
            str(settled.path(NAMES[3], "data")),
        ]


def test_a_source_that_is_good_again_is_linked_to_the_good_snapshot(settled):
    good = contents(settled.source)
    encrypt(settled)
    settled.backup(shrink_limit=50, change_limit=50)
    for path, content in good.items():
        if content is not None:
            settled.write(path, content, os.stat(settled.path(NAMES[3], "data", path)).st_mtime)
    done = settled.backup(shrink_limit=50, change_limit=50)
    assert (done.name, done.facts.figures.new_files) == (NAMES[5], 0)


def test_damage_in_one_that_was_set_aside_gets_into_no_later_one(settled):
    encrypt(settled)
    first = settled.backup(shrink_limit=50, change_limit=50).name
    rot(settled.path(first, "data/d/7"))
    with settled.series() as series:
        check(series, "contents", settled.now)
        assert begin(series, "next", settled.now, check=True).link_dest_exclude == ["d/7"]
    second = settled.backup(shrink_limit=50, change_limit=50)
    assert second.facts.figures.healed == 1 and settled.data(second.name) == contents(settled.source)


def test_what_somebody_accepted_is_what_later_ones_are_judged_by(settled):
    for number in range(2, 10):
        (settled.source / f"d/{number}").unlink()
    name = settled.backup(shrink_limit=50, change_limit=50).name
    with settled.series() as series:
        begun = begin(series, "late", settled.now)
        accept(series, name, settled.now)
        assert begun.link_dest[0] == str(settled.path(name, "data"))
        discard(series, "unfinished")
    (settled.source / "d/1").unlink()
    settled.write("d/1", b"other", NOON + 7 * DAY)
    done = settled.backup(shrink_limit=50, change_limit=50)
    assert done.name == NAMES[5] and [one.name for one in done.facts.past] == [NAMES[5], NAMES[4]]


def test_facts_of_an_earlier_version_are_a_past_of_one(settled):
    path = settled.path(NAMES[3], "snapshot.json")
    values = json.loads(path.read_text())
    for name in ("past", "changed", "files_before"):
        del values[name]
    path.write_text(json.dumps(values))
    for number in range(4):
        (settled.source / f"d/{number}").unlink()
    done = settled.backup(shrink_limit=50, change_limit=50)
    assert done.facts.past == (Past(NAMES[4], 6, 0, 10), Past(NAMES[3], 10))
    (settled.source / "d/4").unlink()
    (settled.source / "d/5").unlink()
    assert "there were 10 in" in settled.backup(shrink_limit=50, change_limit=50).aside


def test_a_first_snapshot_without_files_is_refused(bench):
    (bench.source / "empty").mkdir()
    with pytest.raises(Refused, match=r"has no files.*not mounted.*set shrink_limit to 100"):
        bench.backup(shrink_limit=50)
    assert bench.names() == [".lock", ".unfinished"]
    with bench.series() as series:
        assert finish(series, "next", bench.now, limits=HALF, check=True).aside == ""
        with pytest.raises(Refused, match="has no files"):
            finish(series, "next", bench.now, limits=HALF, expected_entries=1, check=True)
    bench.write("a", b"a")
    assert bench.backup(shrink_limit=50).aside == ""  # the mount is there again


def test_an_empty_source_is_backed_up_where_it_is_allowed_and_later(bench):
    assert bench.backup(shrink_limit=100).aside == ""
    assert bench.backup(shrink_limit=50).aside == ""
