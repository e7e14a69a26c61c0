# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a snapshot: begun, interrupted, resumed, finished, set aside; on real trees."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused, TreeMismatch
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.listing import listing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.suspicion import ChangeLimits
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    THIRD,
    contents,
    hashed,
    records,
    transfer,
)


def test_a_hard_tree_becomes_a_snapshot_with_all_of_it_in_the_manifest(bench):
    bench.write("plain", b"1")
    bench.write("dir/sub/deep", b"22")
    bench.write("empty", b"")
    bench.write("new\nline", b"3")
    (bench.source / "nothing").mkdir()
    os.symlink("nowhere", bench.source / "link")
    os.mkfifo(bench.source / "pipe")
    os.link(bench.source / "plain", bench.source / "dir" / "twin")
    with open(bench.source / "sparse", "wb") as file:
        file.truncate(5 << 20)
        file.seek(4 << 20)
        file.write(b"x")
    open(os.path.join(os.fsencode(bench.source), b"\xff\xfe"), "wb").close()
    done = bench.backup()
    assert (done.changed, done.name, done.aside, done.warnings) == (True, FIRST, "", [])
    assert bench.names() == [".lock", FIRST, "latest"]
    assert os.readlink(bench.path("latest")) == FIRST
    assert bench.data(FIRST) == contents(bench.source)
    found = records(bench, FIRST)
    assert {path for path in found if path} == {os.fsencode(path) for path in contents(bench.source)}
    assert found[b"link"].entry.target == b"nowhere"
    assert found[b"pipe"].entry.type == "p"
    assert found[b"plain"].content == found[b"dir/twin"].content != found[b"dir/sub/deep"].content
    assert found[b"sparse"].entry.size == 5 << 20
    figures = {
        key: getattr(done.facts.figures, key) for key in ("entries", "files", "bytes", "new_files", "new_bytes", "gone")
    }
    # plain has two names: once among the new bytes
    assert figures == {
        "entries": 13,
        "files": 7,
        "bytes": (5 << 20) + 5,
        "new_files": 6,
        "new_bytes": (5 << 20) + 4,
        "gone": 0,
    }


def test_a_nightly_run_reads_only_what_is_new(bench, monkeypatch):
    for name in ("a", "b", "d/c", "gone"):
        bench.write(name, name.encode() * 10)
    bench.backup()
    bench.write("b", b"changed", NOON)
    bench.write("new", b"new", NOON)
    (bench.source / "gone").unlink()
    (bench.source / "d" / "more").mkdir()
    before = records(bench, FIRST)
    read = hashed(monkeypatch)
    done = bench.backup()
    assert sorted(read) == [b"b", b"new"]
    after = records(bench, SECOND)
    assert after[b"a"].content == before[b"a"].content != b""
    assert after[b"b"].content != before[b"b"].content
    assert (done.facts.figures.new_files, done.facts.figures.new_bytes) == (2, 10)
    assert (done.facts.figures.gone, done.facts.figures.before) == (1, 4)
    assert os.path.samefile(bench.path(FIRST, "data/d/c"), bench.path(SECOND, "data/d/c"))
    assert not os.path.samefile(bench.path(FIRST, "data/b"), bench.path(SECOND, "data/b"))


def move(bench, old, new):
    """Move a folder of the source, and back it up with links to its files as the method stream makes them."""
    (bench.source / old).rename(bench.source / new)
    with bench.series() as series, series.lock("test"):
        begun = begin(series, "run", bench.now)
        transfer(bench.source, begun.path, begun.link_dest)
        for path in (bench.source / new).iterdir():
            there = os.path.join(begun.path, new, path.name)
            os.unlink(there)
            os.link(bench.path(FIRST, "data", old, path.name), there)
        os.utime(os.path.join(begun.path, new), ns=(0, os.stat(bench.source / new).st_mtime_ns))
        return finish(series, "run", bench.now, limits=ChangeLimits(50, 50))


def test_a_folder_that_was_moved_is_no_new_data(bench):
    for number in range(4):
        bench.write(f"d/{number}", b"%d" % number * 300)
        bench.write(f"stays/{number}", b"s%d" % number * 300)
    bench.write("d/small", b"a small file is sent again")
    bench.backup()
    bench.write("new", b"new", NOON)
    os.link(bench.source / "new", bench.source / "twin")  # linked, and to nothing of the snapshot before
    done = move(bench, "d", "moved")
    figures = done.facts.figures
    assert (figures.moved, figures.new_files, figures.new_bytes) == (4, 2, 3 + len(b"a small file is sent again"))
    assert (figures.gone, figures.before, figures.changed) == (5, 9, 0)
    assert done.aside.startswith("55.6 % of the files of the snapshot before are gone"), "names are what is judged"


def test_a_file_that_is_no_link_to_the_one_before_is_read_though_its_numbers_are_the_same(bench, monkeypatch):
    bench.write("a", b"1234")
    bench.backup()
    with bench.series() as series:
        begun = begin(series, "run", bench.now)
        transfer(bench.source, begun.path)  # nothing is linked
        os.unlink(os.path.join(begun.path, "a"))
        (bench.folder / ".unfinished/data/a").write_bytes(b"4321")
        os.utime(bench.folder / ".unfinished/data/a", (NOON - DAY, NOON - DAY))
        os.link(bench.folder / ".unfinished/data/a", bench.folder / ".unfinished/data/b")  # two names, but in one tree
        read = hashed(monkeypatch)
        finish(series, "run", bench.now)
    assert read == [b"a", b"b"]
    assert records(bench, FIRST)[b"a"].content != records(bench, SECOND)[b"a"].content


def test_a_file_that_changed_in_both_snapshots_keeps_the_hash_it_had(bench, monkeypatch):
    """Bits that rot do not change size and time, so the next manifest says what the contents should be."""
    bench.write("a", b"1234")
    bench.backup()
    (bench.path(FIRST, "data/a")).write_bytes(b"1235")
    os.utime(bench.path(FIRST, "data/a"), (NOON - DAY, NOON - DAY))
    bench.backup()
    assert records(bench, FIRST)[b"a"].content == records(bench, SECOND)[b"a"].content


def test_an_interrupted_run_is_gone_on_with(bench):
    for name in ("kept", "changed", "linked"):
        bench.write(name, name.encode())
    bench.backup()
    bench.write("big", b"sent already", NOON)
    with bench.series() as series:
        begun = begin(series, "one", bench.now)
        transfer(bench.source, begun.path, begun.link_dest)
    sent = os.stat(os.path.join(begun.path, "big")).st_ino
    bench.now += DAY
    with bench.series() as series:
        assert begin(series, "one", bench.now, check=True).changed  # what is linked would go
        assert len(contents(begun.path)) == 4
        again = begin(series, "two", bench.now)
        assert not begin(series, "two", bench.now, check=True).changed
        assert (again.resumed, again.path, again.name) == (True, begun.path, THIRD)
        # What an older snapshot shares is gone, what was sent is there
        assert contents(again.path) == {"big": b"sent already"}
        assert os.stat(os.path.join(again.path, "big")).st_ino == sent
        transfer(bench.source, again.path, again.link_dest)
        with pytest.raises(Refused, match="another run has taken over"):
            finish(series, "one", bench.now)
        done = finish(series, "two", bench.now)
    assert done.name == THIRD
    assert bench.data(THIRD) == contents(bench.source)
    assert bench.names() == [".lock", FIRST, THIRD, "latest"]


def test_going_on_never_changes_a_complete_snapshot(bench):
    """What a transfer would set on a file that it shares must not reach the snapshot that has it, too."""
    bench.write("mode", b"1")
    bench.write("twins/a", b"22")
    bench.backup()
    bench.write("own", b"x", NOON)
    os.link(bench.source / "own", bench.source / "own-twin")
    with bench.series() as series:
        begun = begin(series, "one", bench.now)
        transfer(bench.source, begun.path, begun.link_dest)
        # One more name of what the snapshot before has, where that one has nothing, before its other name in the walk
        os.link(bench.path(FIRST, "data/twins/a"), os.path.join(begun.path, "0-more"))
        assert os.stat(os.path.join(begun.path, "twins/a")).st_nlink == 3
        again = begin(series, "two", bench.now)
    left = contents(again.path)
    assert left == {"own": b"x", "own-twin": b"x", "twins": None}  # links within the tree stay
    for name in ("own", "own-twin"):
        assert os.stat(os.path.join(again.path, name)).st_nlink == 2


def test_what_lost_its_snapshot_before_is_let_go_all_the_same(bench):
    bench.write("a", b"1")
    bench.backup()
    bench.backup()
    with bench.series() as series:
        begun = begin(series, "one", bench.now)
        transfer(bench.source, begun.path, begun.link_dest)
        assert begun.base == SECOND
        series.rename(SECOND, names.REMOVING_PREFIX + SECOND)
        begin(series, "two", bench.now)
    assert contents(begun.path) == {}


def test_beginning_and_finishing_again_change_nothing(bench):
    bench.write("a", b"1")
    with bench.series() as series:
        assert begin(series, "one", NOON).changed
        again = begin(series, "one", NOON + 60)
        assert (again.changed, again.name) == (False, FIRST)
        transfer(bench.source, again.path)
        assert not begin(series, "one", NOON + 90).changed
        assert finish(series, "one", NOON + 100).changed
        repeated = finish(series, "one", NOON + 200)
        assert (repeated.changed, repeated.name, repeated.facts.finished) == (False, FIRST, NOON + 100)
        os.unlink(bench.path("latest"))
        assert finish(series, "one", NOON + 200, check=True).changed
        assert finish(series, "one", NOON + 200).changed  # latest was missing
        assert series.latest() == FIRST


def test_what_a_kill_while_finishing_left_does_not_stay(bench):
    with bench.series() as series:
        begin(series, "one", NOON)
        (bench.folder / ".unfinished/manifest").write_bytes(b"of an earlier state")
        assert begin(series, "one", NOON, check=True).changed
        assert begin(series, "one", NOON).changed
        assert not begin(series, "one", NOON).changed
    assert sorted(os.listdir(bench.folder / ".unfinished")) == ["data", "snapshot.json"]


def test_a_run_that_has_finished_has_nothing_to_begin(bench):
    bench.write("a", b"1")
    done = bench.backup("one")
    with bench.series() as series:
        begun = begin(series, "one", bench.now)
        assert (begun.finished, begun.changed, begun.name) == (True, False, done.name)
    assert bench.names() == [".lock", FIRST, "latest"]


def test_a_file_with_the_name_of_a_snapshot_is_none(bench):
    bench.series().close()
    bench.path(FIRST).touch()
    bench.path(SECOND).symlink_to(".")
    bench.now = NOON
    done = bench.backup()
    assert done.name == names.name_of(NOON + 1)  # the name is taken all the same
    assert bench.complete() == [NOON + 1]


def test_only_the_run_that_began_finishes(bench):
    with bench.series() as series:
        with pytest.raises(Refused, match="begin one first"):
            finish(series, "one", NOON)
        begin(series, "one", NOON)
        with pytest.raises(Refused, match="another run"):
            finish(series, "two", NOON)
    assert bench.names() == [".unfinished"]


def test_a_transfer_that_still_writes_keeps_another_run_away(bench):
    asked = []

    def writer(path):
        asked.append(path)
        return "web1's transfer"

    with bench.series() as series:
        begun = begin(series, "one", NOON, writer)
        transfer(bench.source, begun.path)
        assert asked == []  # nobody writes to what was just made
        with pytest.raises(Refused, match=r"web1's transfer is writing.*Wait"):
            begin(series, "two", NOON, writer)
        assert asked == [begun.path]
        assert not begin(series, "one", NOON, writer).changed  # its own transfer, found again
        with pytest.raises(Refused, match="web1's transfer is writing"):
            discard(series, "unfinished", writer)


@pytest.mark.parametrize("known", [{"ended": "one"}, {"takeover": True}], ids=["its token", "a person says so"])
def test_the_transfer_of_a_run_that_will_not_come_back_is_gone_on_with(bench, known):
    with bench.series() as series:
        begun = begin(series, "one", NOON)
        transfer(bench.source, begun.path)
        with pytest.raises(Refused, match="is writing"):
            begin(series, "two", NOON + 60, lambda path: "a transfer", ended="zero")
        goes_on = begin(series, "two", NOON + 60, lambda path: "a transfer", **known)
        assert (goes_on.name, goes_on.resumed) == (begun.name, True)  # the tree is of the time when it began
        with pytest.raises(Refused, match="another run"):
            finish(series, "one", NOON + 90)
        assert finish(series, "two", NOON + 90).name == begun.name


def test_a_run_whose_transfer_has_ended_too_gives_its_time_to_none(bench):
    with bench.series() as series:
        transfer(bench.source, begin(series, "one", NOON).path)
        later = begin(series, "two", NOON + DAY, ended="one")
        assert later.resumed and later.name == SECOND


@pytest.mark.parametrize("counted", [4, 4 + len("target")], ids=["files alone", "and symbolic links, as rsync does"])
def test_the_text_of_symbolic_links_may_be_counted_or_not(bench, counted):
    bench.write("a", b"1234")
    (bench.source / "link").symlink_to("target")
    with pytest.raises(Refused, match="4 bytes where the transfer counted 5"):
        bench.backup(expected_bytes=5)
    done = bench.backup(expected_entries=3, expected_bytes=counted)
    assert (done.facts.figures.bytes, "link_bytes" in done.facts.dump()) == (4, False)


@pytest.mark.parametrize(
    "expected, found",
    [({"expected_entries": 3}, "2 entries where the transfer counted 3"), ({"expected_bytes": 0}, "4 bytes where")],
)
def test_what_does_not_add_up_stays_unfinished(bench, expected, found):
    bench.write("a", b"1234")
    with pytest.raises(Refused, match=found):
        bench.backup(**expected)
    assert bench.complete() == []
    assert bench.backup(expected_entries=2, expected_bytes=4).changed


def test_a_job_that_shrank_is_set_aside_and_nothing_is_pruned(bench):
    for number in range(10):
        bench.write(f"f{number}", b"x")
    bench.backup()
    bench.backup()
    for number in range(6):
        (bench.source / f"f{number}").unlink()
    done = bench.backup(shrink_limit=50)
    assert done.name == "aside-" + THIRD
    assert "(6 of 10)" in done.aside
    assert bench.names() == [".lock", FIRST, SECOND, "aside-" + THIRD, "latest"]
    assert os.readlink(bench.path("latest")) == SECOND
    with bench.series() as series:
        with pytest.raises(Refused, match="set aside"):
            prune(series, Policy(last=1), bench.now)
        assert [(item.name, item.state, bool(item.reason)) for item in listing(series, bench.now)] == [
            (FIRST, "complete", False),
            (SECOND, "complete", False),
            ("aside-" + THIRD, "aside", True),
        ]
        assert finish(series, f"run {NOON + 2 * DAY}", bench.now).aside  # found again, and still aside
    # The next run is compared with the last complete one, and is set aside, too
    fourth = bench.backup(shrink_limit=50)
    assert fourth.aside
    with bench.series() as series:
        assert discard(series, fourth.name)
        assert not discard(series, fourth.name)
        assert accept(series, done.name, bench.now)
        assert not accept(series, done.name, bench.now)
        assert series.latest() == THIRD
        assert prune(series, Policy(last=1), bench.now).removed == [FIRST, SECOND]
    assert bench.names() == [".lock", THIRD, "latest"]
    assert not bench.backup(shrink_limit=50).aside


def test_a_limit_of_100_takes_everything_and_0_nothing(bench):
    bench.write("a", b"1")
    bench.write("b", b"1")
    bench.backup()
    (bench.source / "a").unlink()
    assert bench.backup(shrink_limit=0).aside
    (bench.source / "b").unlink()
    assert not bench.backup(shrink_limit=100).aside


def test_a_file_that_became_a_folder_is_gone_and_a_changed_one_is_not(bench):
    for name in ("a", "b", "c"):
        bench.write(name, b"1")
    bench.backup()
    (bench.source / "a").unlink()
    (bench.source / "a").mkdir()
    (bench.source / "b").unlink()
    os.symlink("x", bench.source / "b")
    bench.write("c", b"22", NOON)
    figures = bench.backup().facts.figures
    assert (figures.gone, figures.before) == (1, 3)


class Beside:
    """Sees the walk that makes a manifest."""

    def __init__(self, is_equal):
        self.is_equal = is_equal
        self.paths = []

    def add(self, entry):
        self.paths.append(entry.path)


def test_a_tree_that_is_not_the_expected_one_stays_unfinished(bench):
    bench.write("file", b"1")
    with bench.series() as series:
        transfer(bench.source, begin(series, "run", bench.now).path)
        with pytest.raises(TreeMismatch):
            finish(series, "run", bench.now, beside=Beside(False))
        assert bench.names() == [".unfinished"] and not os.path.exists(bench.path(".unfinished", names.MANIFEST))
        beside = Beside(True)
        assert finish(series, "run", bench.now, beside=beside).name == FIRST and beside.paths == [b"", b"file"]
