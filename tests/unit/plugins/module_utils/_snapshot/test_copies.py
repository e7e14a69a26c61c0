# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of snapshots are proven by their manifests, and damaged files are replaced by intact ones alone."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, prove_copy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.history import read_history
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repair import repair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    NOON,
    Bench,
    rot,
    transfer,
)

ONE, TWO, THREE = (names.name_of(NOON + day * DAY) for day in range(3))


class Pair:
    """A repository, and a copy of it in another one."""

    def __init__(self, top):
        (top / "first").mkdir()
        (top / "second").mkdir()
        self.first, self.second = Bench(top / "first"), Bench(top / "second")

    def pull(self, name, exclude=()):
        """Copy a snapshot as a transfer does it, and finish it; gives what finish said."""
        source = self.first.path(name)
        with self.second.series() as series, series.lock("test"):
            begun = begin(series, f"copy of {name}", self.second.now, copy_of=name)
            left_out = [path[len("data/") :] for path in begun.link_dest_exclude if path.startswith("data/")]
            trees = [f"{folder}/data" for folder in begun.link_dest]
            transfer(source / "data", f"{begun.path}/data", trees, {*left_out, *exclude})
            shutil.copy2(source / "manifest", f"{begun.path}/manifest")
            return finish(series, f"copy of {name}", self.second.now, copied_from="vault:/srv/backup")


@pytest.fixture
def pair(tmp_path):
    made = Pair(tmp_path)
    for number in range(4):
        made.first.write(f"folder/file{number}", b"content %d" % number)
    os.link(made.first.source / "folder/file0", made.first.source / "other name")
    made.first.backup()
    made.first.write("folder/file1", b"changed 1", NOON)
    made.first.backup()
    return made


def find_damage(bench):
    """Check all contents; gives the paths with problems."""
    with bench.series() as series:
        report, _part = check(series, "contents", bench.now)
        return sorted(problem.shown for problem in report.problems.values())


def run_repair(bench, **options):
    with bench.series() as series, series.lock("test"):
        return repair(series, bench.now, **options)


def inodes(bench, name):
    return {path: os.stat(bench.path(name, "data", path)).st_ino for path in ("folder/file0", "other name")}


def times(bench, name):
    found = {}
    for folder, _folders, files in os.walk(bench.path(name, "data")):
        found.update(
            {path: os.stat(path).st_mtime_ns for path in (folder, *(os.path.join(folder, one) for one in files))}
        )
    return found


def test_a_copy_has_the_contents_links_and_name_of_the_snapshot(pair):
    for name in (ONE, TWO):
        assert pair.pull(name)[:3] == (True, name, "")
        assert pair.second.data(name) == pair.first.data(name)
    assert pair.second.names() == [".lock", ONE, TWO, "latest"]
    assert sorted(os.listdir(pair.second.path(TWO))) == ["data", "manifest", "snapshot.json"]
    (shared,) = set(inodes(pair.second, ONE).values())
    assert set(inodes(pair.second, TWO).values()) == {shared} and find_damage(pair.second) == []
    with pair.second.series() as series:
        assert [(event.act, event.name, event.why) for event in read_history(series)] == [
            ("copied", ONE, "vault:/srv/backup"),
            ("copied", TWO, "vault:/srv/backup"),
        ]
        assert series.snapshot(TWO).facts().base == ONE


def test_damage_is_not_copied_and_what_the_copy_has_intact_is_used(pair):
    pair.pull(ONE)
    rot(pair.first.path(TWO, "data/folder/file2"))  # the copy has it
    assert pair.pull(TWO).name == TWO
    assert pair.second.data(TWO)["folder/file2"] == b"content 2"
    pair.first.write("new", b"new")
    pair.first.backup()
    rot(pair.first.path(THREE, "data/new"))  # the copy has it not
    done = pair.pull(THREE)
    assert (done.name, done.unproven) == ("", ("new",)) and not pair.second.path(".unfinished/data/new").exists()
    assert pair.pull(THREE).unproven == ("new",)
    rot(pair.first.path(THREE, "data/new"))
    assert pair.pull(THREE).name == THREE and find_damage(pair.second) == []


def test_a_file_of_the_same_size_and_time_is_sent_again(pair):
    pair.pull(ONE)
    place = pair.first.source / "folder/file3"
    pair.first.write("folder/file3", b"CONTENT 3", place.stat().st_mtime)
    assert len({pair.first.data(name)["folder/file3"] for name in (ONE, TWO)}) == 1
    with pair.first.series() as series, series.lock("test"):  # as a transfer does that knows the change times
        begun = begin(series, "a run", pair.first.now)
        transfer(pair.first.source, begun.path, begun.link_dest, {"folder/file3"})
        finish(series, "a run", pair.first.now)
    done = pair.pull(THREE)
    assert done.unproven == ("folder/file3",)
    assert pair.pull(THREE, done.unproven).name == THREE
    assert pair.second.data(THREE) == pair.first.data(THREE)


def test_of_many_entries_that_differ_the_first_are_named(pair, monkeypatch):
    for number in range(4):
        rot(pair.first.path(ONE, f"data/folder/file{number}"))
    monkeypatch.setattr(prove_copy, "MAX_UNPROVEN", 2)
    done = pair.pull(ONE)
    assert (done.name, done.unproven) == ("", ("folder/file0", "folder/file1"))
    for number in range(4):
        rot(pair.first.path(ONE, f"data/folder/file{number}"))
    shutil.rmtree(pair.second.path(names.UNFINISHED, "data"))  # a transfer by contents makes all right
    assert pair.pull(ONE).name == ONE and find_damage(pair.second) == []


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda path: os.unlink(path), "it is missing"),
        (lambda path: os.truncate(path, 200), "it is cut short"),
        (lambda path: (os.unlink(path), os.mkfifo(path)), "it is no file"),
        (lambda path: (os.unlink(path), os.symlink("/etc/passwd", path)), "it is no file"),
    ],
)
def test_without_its_manifest_a_copy_stays_unfinished(pair, monkeypatch, spoil, expected):
    real = shutil.copy2

    def copy(source, dest, **options):
        real(source, dest, **options)
        if os.path.basename(dest) == "manifest":
            spoil(dest)

    monkeypatch.setattr(shutil, "copy2", copy)
    with pytest.raises(Refused, match=expected):
        pair.pull(ONE)
    assert pair.second.complete() == []


@pytest.mark.parametrize("busy", [False, True])
def test_what_a_hostile_repository_sent_in_place_of_a_tree_goes_with_the_next_begin(pair, busy):
    second, target = pair.second, pair.first.source
    with second.series() as series:
        begin(series, "a run", NOON, copy_of=ONE)
    place = second.path(names.UNFINISHED)
    os.rmdir(place / "data")
    os.symlink(target, place / "data")
    (place / "manifest/folder").mkdir(parents=True)
    before = sorted(os.listdir(target))
    with second.series() as series:
        assert begin(series, "a run", NOON, lambda _path: "a transfer" if busy else None, copy_of=ONE, check=True)
        assert begin(series, "a run", NOON, lambda _path: "a transfer" if busy else None, copy_of=ONE).resumed
        assert (place / "data").is_symlink() == (place / "manifest").exists() == busy
        assert begin(series, "a run", NOON, copy_of=ONE).changed == busy
    assert os.listdir(place / "data") == [] and not (place / "data").is_symlink()
    assert sorted(os.listdir(target)) == before
    assert pair.pull(ONE).name == ONE


def test_a_name_that_is_taken_is_not_copied(pair):
    pair.pull(ONE)
    with pytest.raises(Refused, match="has the name .* already"), pair.second.series() as series:
        begin(series, "another run", NOON, copy_of=ONE)
    with pytest.raises(Refused, match="no name of a complete snapshot"), pair.second.series() as series:
        begin(series, "another run", NOON, copy_of="latest")


@pytest.mark.parametrize("damaged", ["first", "second"])
def test_a_damaged_file_is_repaired_for_all_its_names(pair, damaged):
    for name in (ONE, TWO):
        pair.pull(name)
    bad, good = (pair.first, pair.second) if damaged == "first" else (pair.second, pair.first)
    rot(bad.path(ONE, "data/folder/file0"))
    whole, before = good.data(ONE), [times(bad, name) for name in (ONE, TWO)]
    assert set(find_damage(bad)) == {"folder/file0", "other name"}
    done = run_repair(bad)
    assert {one.path: one.snapshots for one in done.wanted} == {path: [ONE, TWO] for path in inodes(bad, ONE)}
    assert (done.changed, done.repaired, done.left) == (False, [], 4)
    bring(good, TWO, bad, *inodes(bad, ONE))
    done = run_repair(bad, copied_from="the other")
    assert (done.wanted, done.left) == ([], 0)
    assert {(one.path, one.source) for one in done.repaired} == {(path, "the other") for path in inodes(bad, ONE)}
    assert bad.data(ONE) == whole and find_damage(bad) == []
    assert len({inode for name in (ONE, TWO) for inode in inodes(bad, name).values()}) == 1
    assert [times(bad, name) for name in (ONE, TWO)] == before and not bad.path(".repair").exists()
    with bad.series() as series:
        told = [event for event in read_history(series) if event.act == "repaired"]
    assert [event.name for event in told] == [ONE, TWO] and "from the other: " in told[0].why


def bring(source, name, dest, *paths):
    """Put files where a transfer brings them for a repair, with their hard links."""
    shutil.rmtree(dest.path(".repair/data"), ignore_errors=True)
    made = {}
    for path in paths:
        place, old = dest.path(".repair/data", path), source.path(name, "data", path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if old.stat().st_ino in made:
            os.link(made[old.stat().st_ino], place)
        else:
            shutil.copy2(old, place)
        made[old.stat().st_ino] = place


def test_another_snapshot_with_the_contents_repairs_a_file(pair):
    first = pair.first
    os.unlink(first.path(TWO, "data/folder/file2"))
    shutil.copy2(first.path(ONE, "data/folder/file2"), first.path(TWO, "data/folder/file2"))
    rot(first.path(ONE, "data/folder/file2"))
    os.unlink(first.path(TWO, "data/folder/file3"))
    find_damage(first)
    assert run_repair(first, check=True).changed and find_damage(first)
    done = run_repair(first)
    assert {(one.path, one.source) for one in done.repaired} == {("folder/file2", TWO), ("folder/file3", ONE)}
    assert done.left == 0 and find_damage(first) == []
    for path in ("folder/file2", "folder/file3"):
        assert os.path.samefile(first.path(ONE, "data", path), first.path(TWO, "data", path))
    assert not run_repair(first).changed


@pytest.mark.parametrize("kind", ["rotten", "link", "fifo"])
def test_only_proven_contents_replace_a_file(pair, kind):
    rot(pair.first.path(ONE, "data/folder/file2"))
    find_damage(pair.first)
    place = pair.first.path(".repair/data/folder/file2")
    bring(pair.first, ONE, pair.first, "folder/file2")
    if kind != "rotten":
        os.unlink(place)
    if kind == "link":
        place.symlink_to(pair.first.source / "folder/file2")
    if kind == "fifo":
        os.mkfifo(place)
    before = pair.first.data(ONE)
    done = run_repair(pair.first, copied_from="the other")
    assert (done.repaired, [one.path for one in done.wanted]) == ([], ["folder/file2"])
    assert pair.first.data(ONE) == before and not pair.first.path(".repair").exists()


def test_an_intact_file_stays_though_a_check_had_doubts(pair):
    rot(pair.first.path(ONE, "data/folder/file2"))
    find_damage(pair.first)
    rot(pair.first.path(ONE, "data/folder/file2"))  # it was the line to the disk
    inode = os.stat(pair.first.path(ONE, "data/folder/file2")).st_ino
    done = run_repair(pair.first)
    assert (done.repaired, done.left) == ([], 0)
    assert os.stat(pair.first.path(ONE, "data/folder/file2")).st_ino == inode and find_damage(pair.first) == []


def test_the_action_says_what_is_wanted_and_a_check_that_a_repair_may_help(pair):
    place, nobody = (str(pair.first.repository), "web1", "data"), Holders(lambda path: None, lambda path: None)
    rot(pair.first.path(ONE, "data/folder/file2"))
    found = do_action("check", place, {}, nobody)
    assert found.is_repairable and "(action: repair)" in found.failed
    done = do_action("repair", place, {}, nobody).result
    assert done["wanted"] == [{"path": "folder/file2", "snapshots": [ONE, TWO], "size": 9}] and done["left"] == 2
    os.unlink(pair.first.path(ONE, "manifest"))
    assert not do_action("check", place, {}, nobody).is_repairable


def test_check_mode_says_that_a_folder_would_be_repaired(pair):
    os.utime(pair.first.path(TWO, "data/folder"), (NOON, NOON))
    assert find_damage(pair.first) == ["folder"]
    predicted = run_repair(pair.first, check=True)
    assert (predicted.changed, predicted.left) == (True, 0) and find_damage(pair.first) == ["folder"]
    assert run_repair(pair.first)[:4] == predicted[:4] and find_damage(pair.first) == []
    assert not run_repair(pair.first, check=True).changed


def test_holes_and_metadata_are_those_of_the_manifest(pair):
    first, path = pair.first, "folder/sparse"
    pair.first.write(path, b"")
    with open(first.source / path, "r+b") as file:
        file.truncate(1 << 22)
        file.seek(1 << 21)
        file.write(b"in the middle")
    os.utime(first.source / path, (NOON, NOON))
    os.chmod(first.source / path, 0o640)
    first.backup()
    content = first.data(THREE)[path]
    first.path(".repair/data/folder").mkdir(parents=True)
    subprocess.run(["cp", "-a", first.source / path, first.path(".repair/data", path)], check=True)
    os.link(first.path(".repair/data", path), first.path(".repair/data", "one more name"))
    os.chmod(first.path(".repair/data", path), 0o777)
    rot(first.path(THREE, "data", path))
    find_damage(first)
    assert [one.path for one in run_repair(first, copied_from="the other").repaired] == [path]
    status = os.stat(first.path(THREE, "data", path))
    assert first.data(THREE)[path] == content and find_damage(first) == []
    assert (status.st_mode & 0o7777, status.st_mtime, status.st_nlink) == (0o640, NOON, 1)
    assert status.st_blocks * 512 < 1 << 21


@pytest.mark.parametrize("stop", ["bring", "replace", "repaired"])
def test_a_kill_at_any_step_of_a_repair_leaves_what_the_next_one_ends(pair, stop):
    pair.pull(ONE)
    rot(pair.first.path(ONE, "data/folder/file0"))
    find_damage(pair.first)

    def on_step(name):
        if name == stop:
            raise KeyboardInterrupt

    pair.first.on_step = on_step
    bring(pair.second, ONE, pair.first, *inodes(pair.second, ONE))
    with pytest.raises(KeyboardInterrupt):
        run_repair(pair.first, copied_from="the other")
    pair.first.on_step = lambda _name: None
    bring(pair.second, ONE, pair.first, *inodes(pair.second, ONE))
    assert run_repair(pair.first, copied_from="the other").left == 0
    assert pair.first.data(ONE) == pair.second.data(ONE) and find_damage(pair.first) == []
