# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks find what rotted, name it, and say where it is intact; pruning removes what the policy says, in safe steps."""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import check_run, names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.listing import listing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import xattr
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    NOON,
    contents,
    rot,
)

ONE, TWO, THREE, FOUR = (names.name_of(NOON + day * DAY) for day in range(4))


def run(bench, level="contents", share=(1, 1), **options):
    with bench.series() as series:
        return check(series, level, bench.now, share, **options)[0]


def found(report):
    return sorted(
        (problem.kind, problem.path, tuple(problem.snapshots), tuple(problem.intact_in))
        for problem in report.problems.values()
    )


@pytest.fixture
def three(bench):
    """Three snapshots of five files: ``same`` is one file in all, ``apart`` has its own copy in the last."""
    for name in ("same", "apart", "d/deep", "other", "empty"):
        bench.write(name, name.encode() if name != "empty" else b"")
    bench.backup()
    bench.backup()
    bench.backup()
    apart = bench.path(THREE, "data/apart")
    shutil.copy2(apart, bench.folder / "copy")
    folder = os.stat(apart.parent)
    os.replace(bench.folder / "copy", apart)
    os.utime(apart.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))
    return bench


def test_sound_snapshots_are_sound_and_shared_files_are_read_once(three):
    report = run(three)
    assert (report.problems, report.problems_total, report.warnings) == ({}, 0, [])
    assert report.snapshots == [ONE, TWO, THREE]
    assert report.entries == 3 * 7
    assert report.files_read == 6  # of 15 names
    assert report.bytes_read == len("sameapartapartd/deepother")


def test_a_flipped_bit_is_found_in_all_that_share_it_and_the_intact_copy_is_named(three):
    rot(three.path(ONE, "data/apart"))
    rot(three.path(TWO, "data/same"))
    report = run(three)
    assert found(report) == [
        ("damaged", b"apart", (ONE, TWO), (THREE,)),
        ("damaged", b"same", (ONE, TWO, THREE), ()),
    ]
    assert report.problems_total == 2, "one for each file"
    (detail,) = {problem.detail for problem in report.problems.values() if problem.path == b"apart"}
    assert "its contents are" in detail
    # Nothing but reading finds it: a check that does not read tells what is known of the newest snapshot.
    assert found(run(three, "files")) == [("damaged", b"same", (THREE,), ())]


def test_a_damaged_file_that_was_replaced_at_the_source_is_no_intact_copy(three):
    three.write("apart", b"newer", NOON + 2 * DAY)
    three.backup()
    rot(three.path(THREE, "data/apart"))
    assert found(run(three)) == [("damaged", b"apart", (THREE,), (ONE, TWO))]
    rot(three.path(ONE, "data/apart"))
    assert found(run(three)) == [("damaged", b"apart", (ONE, TWO, THREE), ())]


def test_what_differs_is_missing_or_extra_is_found_without_reading(three):
    os.truncate(three.path(THREE, "data/apart"), 2)
    os.utime(three.path(THREE, "data/apart"), (NOON - DAY, NOON - DAY))
    three.path(TWO, "data/other").unlink()
    three.path(TWO, "data/stranger").touch()
    three.path(ONE, "data/d").chmod(0o701)
    os.symlink("x", three.path(ONE, "data/d/link"))
    report = run(three, "files")
    assert [item for item in found(report) if item[1] not in (b"", b"d")] == [
        ("differs", b"apart", (THREE,), (ONE, TWO)),
        ("extra", b"d/link", (ONE,), ()),
        ("extra", b"stranger", (TWO,), ()),
        ("missing", b"other", (TWO,), (ONE, THREE)),
    ]
    details = {problem.path: problem.detail for problem in report.problems.values()}
    assert "mode is 0701 and was 0" in details[b"d"]
    assert "size is 2 and was 5" in details[b"apart"]
    assert report.files_read == 3  # only to find what is intact


@pytest.mark.skipif(not xattr.SUPPORTED, reason="no xattrs here")
def test_a_changed_attribute_is_found(bench):
    bench.write("a", b"1")
    try:
        os.setxattr(bench.source / "a", "user.x", b"1")
    except OSError:
        pytest.skip("this file system has no attributes")
    bench.backup()
    assert found(run(bench, "files")) == []
    os.setxattr(bench.path(ONE, "data/a"), "user.x", b"2")
    assert found(run(bench, "files")) == [("differs", b"a", (ONE,), (ONE,))]


def test_shares_cover_everything_and_only_then_it_is_verified(bench):
    for number in range(40):
        bench.write(f"{number:02}", b"%d" % number)
    bench.backup()
    read = []
    for _run in range(3):
        with bench.series() as series:
            assert listing(series, bench.now)[0].verified is None
        read.append(run(bench, share=(1, 3)).files_read)
        bench.now += DAY
    assert sum(read) == 40
    assert all(read)
    with bench.series() as series:
        item = listing(series, bench.now)[0]
    assert (item.verified, item.checked) == (NOON + DAY, NOON + 3 * DAY)  # since the oldest share
    rot(bench.path(ONE, "data/07"))
    kinds = []
    for _run in range(3):
        kinds += [(problem.kind, problem.path) for problem in run(bench, share=(1, 3)).problems.values()]
    assert set(kinds) == {("damaged", b"07")}
    assert run(bench).files_read == 40  # whatever its turn was
    os.replace(bench.source / "07", bench.path(ONE, "data/07"))
    assert [problem.kind for problem in run(bench).problems.values()] == ["differs"]  # the folder of it


def test_what_a_check_found_is_remembered_until_a_check_of_the_same_depth(three):
    run(three)
    with three.series() as series:
        assert [item.verified for item in listing(series, three.now)] == [three.now] * 3
    verified = three.now
    three.now += DAY
    rot(three.path(THREE, "data/apart"))
    run(three)
    run(three, "structure")
    with three.series() as series:
        items = listing(series, three.now)
    assert [item.damaged for item in items] == [[], [], ["apart"]]
    assert [item.verified for item in items] == [three.now, three.now, verified]


def test_a_check_that_records_nothing_reads_the_same_share_again(bench):
    for number in range(20):
        bench.write(f"{number:02}", b"%d" % number)
    bench.backup()
    before = sorted(os.walk(bench.folder))
    reads = {run(bench, share=(1, 4), record=False).files_read for _run in range(3)}
    assert len(reads) == 1
    assert sorted(os.walk(bench.folder)) == before


def test_damaged_facts_and_manifests_are_found_in_the_structure(three):
    rot(three.path(ONE, "manifest"))
    three.path(TWO, "snapshot.json").write_text("{}")
    shutil.copy(three.path(TWO, "manifest"), three.path(THREE, "manifest"))
    three.write("more", b"1")
    three.backup()
    shutil.copy(three.path(THREE, "manifest"), three.path(FOUR, "manifest"))
    os.unlink(three.path("latest"))
    (three.folder / "stranger").touch()
    report = run(three, "structure")
    details = {(problem.snapshots[0], problem.detail) for problem in report.problems.values()}
    assert {name for name, _detail in details} == {ONE, TWO, FOUR, "latest"}
    assert any("manifest cannot be used" in detail for name, detail in details if name == ONE)
    assert any("has the format None" in detail for name, detail in details if name == TWO)
    assert any("the totals differ" in detail for name, detail in details if name == FOUR)
    assert "stranger" in report.warnings[0]


def test_a_snapshot_that_is_a_symlink_or_without_data_is_a_problem(three, tmp_path):
    shutil.rmtree(three.path(ONE, "data"))
    shutil.rmtree(three.path(TWO))
    os.symlink(tmp_path, three.path(TWO))
    report = run(three)
    assert {problem.snapshots[0] for problem in report.problems.values()} == {ONE, TWO}


def test_a_snapshot_pruned_during_the_check_is_no_damage(three, monkeypatch):
    real = check_run.check_files

    def prune_behind(snapshot, report):
        real(snapshot, report)
        if snapshot.name == TWO:
            for name in (ONE, TWO):
                shutil.rmtree(three.path(name))

    monkeypatch.setattr(check_run, "check_files", prune_behind)
    report = run(three)
    assert (report.snapshots, report.problems) == ([THREE], {})


def test_only_the_named_snapshots_are_checked(three):
    rot(three.path(THREE, "data/apart"))
    assert found(run(three, only=[ONE])) == []
    assert found(run(three, only=[THREE])) == [("damaged", b"apart", (THREE,), ())]
    with pytest.raises(Refused, match="no snapshot nothing"):
        run(three, only=["nothing"])


def test_what_was_set_aside_is_checked_too(bench):
    bench.write("a", b"1")
    bench.backup()
    bench.write("b", b"1")
    os.unlink(bench.source / "a")
    name = bench.backup(shrink_limit=10).name
    rot(bench.path(name, "data/b"))
    assert found(run(bench)) == [("damaged", b"b", (name,), ())]


def test_a_check_does_not_wait_for_a_backup(three):
    with three.series() as other, other.lock("begin"):
        report = run(three)
    assert report.problems == {}
    assert "could not be written down" in report.warnings[0]


def test_many_snapshots_need_no_more_files_than_there_may_be(bench):
    import resource

    for number in range(30):
        bench.write(f"d{number % 3}/{number}", b"x")
        bench.backup()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_here = len(os.listdir("/dev/fd"))  # what other tests of this process still hold
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_here + 80, hard))
    try:
        assert run(bench).problems == {}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def pruned(bench, lazy=False, check=False, counts_new=False, **policy):
    with bench.series() as series, series.lock("prune"):
        return prune(series, Policy(**policy), bench.now, lazy=lazy, check=check, counts_new=counts_new)


def test_check_mode_removes_what_the_new_snapshot_takes_the_place_of(three):
    three.now += 86400
    predicted = pruned(three, last=2, check=True, counts_new=True)
    assert (predicted.removed, predicted.kept) == ([ONE, TWO], {THREE: ["last"]}) and len(three.complete()) == 3
    three.write("new", b"1")
    three.backup()
    assert pruned(three, last=2).removed == predicted.removed


def test_pruning_removes_what_no_rule_keeps_and_nothing_else(three):
    kept = contents(three.path(THREE, "data"))
    predicted = pruned(three, last=1, check=True)
    assert len(three.complete()) == 3
    done = pruned(three, last=1)
    assert done == predicted
    assert (done.changed, done.removed, done.kept) == (True, [ONE, TWO], {THREE: ["latest", "last"]})
    assert three.names() == [".lock", THREE, "latest"]
    assert contents(three.path(THREE, "data")) == kept
    assert found(run(three)) == []
    assert not pruned(three, last=1).changed


def test_lazy_pruning_leaves_trees_that_nobody_takes_for_snapshots(three):
    done = pruned(three, last=1, lazy=True)
    assert done.removed == [ONE, TWO]
    assert three.names() == [".lock", ".removing-" + ONE, ".removing-" + TWO, THREE, "latest"]
    assert sorted(os.path.basename(path) for path in glob.glob(f"{three.folder}/[!h]*")) == [THREE, "latest"]
    assert not pruned(three, last=1, lazy=True).changed
    again = pruned(three, last=1)
    assert (again.changed, again.removed, again.leftovers) == (True, [], [".removing-" + ONE, ".removing-" + TWO])
    assert three.names() == [".lock", THREE, "latest"]


def test_trees_with_folders_that_forbid_their_owner_are_removed(bench):
    bench.write("closed/file", b"1")
    bench.backup()
    bench.backup()
    bench.path(ONE, "data/closed").chmod(0)
    pruned(bench, last=1)
    assert bench.names() == [".lock", TWO, "latest"]


def test_a_folder_that_forbids_its_owner_keeps_no_read_only_snapshot(bench, monkeypatch):
    real = Root.open_directory

    def open_directory(self, path):
        if path == b"closed":  # as for any user but root
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self, path)

    bench.write("closed/file", b"1")
    bench.backup()
    bench.backup()
    bench.path(ONE, "data/closed").chmod(0)
    facts = bench.path(ONE, names.FACTS)
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "read_only": True}))
    monkeypatch.setattr(Root, "open_directory", open_directory)
    pruned(bench, last=1)
    assert bench.names() == [".lock", TWO, "latest"]


def test_the_base_of_an_unfinished_snapshot_stays(three):
    with three.series() as series:
        begin(series, "run", three.now)
        series.rename(THREE, "aside")  # some other name, so that the base is not the newest one
        begin(series, "run", three.now)
        series.rename("aside", THREE)
    done = pruned(three, last=1)
    assert done.kept[TWO] == ["base of the unfinished one"]
    assert done.removed == [ONE]


def test_the_last_complete_snapshot_stays_whatever_the_clock_says(bench):
    bench.backup()
    for now in (NOON - 10 * DAY, NOON + 9999 * DAY):
        bench.now = now
        assert pruned(bench, within=1).removed == []
    assert len(bench.complete()) == 1


def test_what_cannot_be_removed_is_said_and_tried_again(three, monkeypatch):
    def fail(self, path, **options):
        raise PermissionError(1, "Operation not permitted", f"{os.fsdecode(path)}/data/immutable")

    with monkeypatch.context() as patch:
        patch.setattr(Root, "remove", fail)
        with pytest.raises(Refused, match=r"data/immutable .*cannot be removed.*lsattr"):
            pruned(three, last=1)
    assert three.complete() == [NOON + 2 * DAY]
    assert pruned(three, last=1).leftovers
    assert three.names() == [".lock", THREE, "latest"]


def test_a_written_file_stands_once_in_each_list(three):
    with open(three.path(ONE, "data/same"), "r+b") as file:  # another time, and other contents
        file.write(b"S")
    for share in ((1, 1), (1, 100)):
        report = run(three, share=share)
        assert found(report) == [("damaged", b"same", (ONE, TWO, THREE), ())]
        assert report.problems_total == 1
    three.write("same", b"same again", NOON + 3 * DAY)
    three.backup()
    report = run(three)
    assert [problem.known for problem in report.problems.values()] == [True]
    assert f"'same' in {ONE}, {TWO}, {THREE}. " in report.warnings[0]
    for level in ("files", "structure"):
        assert f"'same' in {ONE}, {TWO}, {THREE}. " in run(three, level).warnings[0]


def test_damage_is_new_where_only_the_mode_was_known_to_differ(three):
    three.path(ONE, "data/apart").chmod(0o600)
    assert [problem.kind for problem in run(three).problems.values()] == ["differs"]
    rot(three.path(ONE, "data/apart"))
    assert [(problem.kind, problem.known) for problem in run(three).problems.values()] == [("damaged", False)]


def test_a_check_of_a_part_looks_at_all_names_of_the_newest_snapshot_and_of_others_in_turn(bench):
    for number in range(10):
        bench.write(f"d/{number}", b"%d" % number)
    for _night in range(6):
        bench.backup()
    looked = [run(bench, share=(1, 4)).entries for _run in range(4)]
    assert all(count % 12 == 0 and count >= 12 for count in looked) and sum(looked) < 6 * 12 * 2
    assert sum(count - 12 for count in looked) in (5 * 12, 6 * 12)  # each older one once, the newest perhaps twice
    assert run(bench).entries == run(bench, "files").entries == 6 * 12
    bench.path(ONE, "data/d/3").unlink()
    os.truncate(bench.path(TWO, "data/d/5"), 0)
    kinds = {}
    for _run in range(4):
        report = run(bench, share=(1, 4))
        kinds.update({problem.path: problem.kind for problem in report.problems.values() if problem.path != b"d"})
    assert kinds == {b"d/3": "missing", b"d/5": "differs"}


def test_a_file_that_is_missing_counts_as_read_in_no_snapshot(bench):
    for number in range(10):
        bench.write(f"{number}", b"%d" % number)
    for _night in range(4):
        bench.backup()
    bench.path(ONE, "data/3").unlink()
    for _run in range(4):
        run(bench, share=(1, 4))
    with bench.series() as series:
        verified = [item.verified for item in listing(series, bench.now)]
    assert verified[0] is None and None not in verified[1:]
