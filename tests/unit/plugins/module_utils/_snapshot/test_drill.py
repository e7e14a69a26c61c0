# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The share of a snapshot that a drill restores, and scratch folders: what is compared there, and what is removed."""

from __future__ import annotations

import io
import json
import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import drill
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.drill import (
    NEWEST,
    RANDOM,
    choose_share,
    compare_scratch,
    make_scratch,
    remove_scratch,
    usable_room,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.manifest import ManifestReader
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import FIRST, SECOND, rot

GIB = 1 << 30
NAME = f"{drill.PREFIX}{'0' * 32}"


@pytest.fixture(name="filled")
def _filled(bench):
    """Two snapshots of files of 1000 bytes, some in folders, and a symbolic link."""
    for number in range(20):
        bench.write(f"d{number % 3}/e/{number}" if number % 2 else f"f{number}", bytes([number]) * 1000)
    os.symlink("f0", bench.source / "link")
    bench.backup()
    bench.write("f0", b"new" * 400, bench.now)
    bench.backup()
    return bench


def choose(bench, which=NEWEST, seed="1", share=(1, 5), room=GIB, entries=1000, always=()):
    with bench.series() as series:
        return choose_share(series, which, seed, share, room, entries, bench.now, always)


def paths(choice):
    return [record.entry.path for record in ManifestReader(io.BytesIO(choice.manifest)).records()]


def test_a_share_of_the_files_is_drawn_with_the_directories_above_them(filled):
    drawn = choose(filled)
    files = [path for path in paths(drawn) if path.rpartition(b"/")[2] not in (b"", b"d0", b"d1", b"d2", b"e")]
    assert drawn.snapshot == SECOND and drawn.files == len(files) == 5 and not drawn.is_cut  # of 21, rounded up
    assert drawn.files_total == 21 and drawn.bytes_total == 19 * 1000 + 1200
    for path in files:
        above = path.rpartition(b"/")[0]
        assert above in paths(drawn), "each of its folders has its attributes in the manifest"
    assert choose(filled) == drawn and {choose(filled, seed=str(seed)).manifest for seed in range(5)} != {drawn}
    assert choose(filled, share=(1, 1)).files == 21 and choose(filled, share=(1, 99999)).files == 1
    assert {choose(filled, RANDOM, str(seed)).snapshot for seed in range(9)} == {FIRST, SECOND}


def test_the_share_is_cut_by_the_room(filled):
    cut = choose(filled, share=(1, 1), room=6 * (4096 + 1000))
    assert 0 < cut.files < 6 and cut.is_cut and cut.bytes <= 6000
    assert choose(filled, share=(1, 1), entries=3).files <= 3
    with pytest.raises(Refused, match="none of the files .* fits"):
        choose(filled, room=100)
    drill.MOST_FILES, most = 7, drill.MOST_FILES
    try:
        assert choose(filled, share=(1, 1)).files == 7 and choose(filled, share=(1, 1)).is_cut
    finally:
        drill.MOST_FILES = most


def test_all_dumps_are_chosen_whatever_the_share(filled):
    drawn = choose(filled, share=(1, 99999), always=["d1/e"])
    inside = {path for path in paths(drawn) if path.startswith(b"d1/e/")}
    assert inside == {b"d1/e/1", b"d1/e/7", b"d1/e/13", b"d1/e/19"} and drawn.files == 5 and not drawn.is_cut
    assert choose(filled, share=(1, 1), always=["d1/e", "d0"]).files == 21
    assert choose(filled, share=(1, 99999), always=["."]).files == 21
    with pytest.raises(Refused, match="has no file in d1/f, so there is nothing to load"):
        choose(filled, always=["d1/e", "d1/f"])
    with pytest.raises(Refused, match="4 dumps of 4000 bytes to load, and the scratch folder has room for 20000 bytes"):
        choose(filled, room=20000, always=["d1/e"])


def test_a_damaged_manifest_is_refused(filled):
    rot(filled.path(SECOND, "manifest"))
    with pytest.raises(Refused, match=f"{SECOND}: its manifest cannot be used"):
        choose(filled)


def test_nothing_to_restore_is_said(bench):
    with pytest.raises(Refused, match="no complete snapshot"):
        choose(bench)


@pytest.mark.parametrize(
    ("total", "free", "room"),
    [(100 * GIB, 5 * GIB, 4 * GIB), (2 * GIB, GIB, GIB - 2 * GIB // 10), (100 * GIB, GIB, 0), (10, 0, -1)],
)
def test_room_is_left(total, free, room):
    assert usable_room(total, free) == room


@pytest.fixture(name="place")
def _place(tmp_path, monkeypatch):
    monkeypatch.setattr(drill, "usable_room", lambda _total, free: free)
    place = tmp_path / "drills"
    place.mkdir()
    return place


def restored(bench, place, choice, owner="mine"):
    """Make a scratch folder, and restore a share as a transfer would."""
    made = make_scratch(str(place), NAME, owner, [])
    tree, source = place / NAME / "data", bench.path(choice.snapshot, "data")
    for path in map(os.fsdecode, paths(choice)):
        if (source / path).is_dir() and not (source / path).is_symlink():
            (tree / path).mkdir()
        else:
            shutil.copy2(source / path, tree / path, follow_symlinks=False)
    for path in sorted(map(os.fsdecode, paths(choice)), reverse=True):
        if (source / path).is_dir():
            shutil.copystat(source / path, tree / path)
    return made, tree


def compare(place, choice):
    return [
        (problem.kind, problem.shown)
        for problem in compare_scratch(str(place), NAME, "mine", choice.manifest).problems.values()
    ]


def test_what_was_restored_is_compared_with_the_manifest(filled, place):
    choice = choose(filled)
    _made, tree = restored(filled, place, choice)
    assert compare(place, choice) == []
    (file,) = [path for path in map(os.fsdecode, paths(choice)) if (tree / path).is_file()][:1]
    rot(tree / file)
    assert compare(place, choice) == [("damaged", file)]
    rot(tree / file)
    os.chmod(tree / file, 0o600)
    assert compare(place, choice) == [("differs", file)]
    (tree / file).unlink()
    assert ("missing", file) in compare(place, choice)
    assert remove_scratch(str(place), NAME, "mine") and os.listdir(place) == []
    with pytest.raises(Refused, match="is gone"):
        compare(place, choice)


def test_leftovers_are_removed_if_they_are_proven_to_be_ones_own(filled, place):
    restored(filled, place, choose(filled))
    others = {
        "longhaul-drill-without-marker": None,
        "longhaul-drill-of-another": {"owner": "another", "name": "longhaul-drill-of-another"},
        "longhaul-drill-copied": {"owner": "mine", "name": NAME},
        "longhaul-drill-broken": "{",
        "data": {"owner": "mine", "name": "data"},
    }
    for name, marker in others.items():
        (place / name).mkdir()
        if marker is not None:
            (place / name / ".longhaul-drill.json").write_text(json.dumps(marker) if marker != "{" else "{")
    os.symlink(place / NAME, place / "longhaul-drill-link")
    made = make_scratch(str(place), f"{drill.PREFIX}new", "mine", [])
    assert made.removed == [NAME] and made.room > 0 and made.entries > 0
    assert sorted(os.listdir(place)) == sorted([*others, "longhaul-drill-link", f"{drill.PREFIX}new"])
    assert not remove_scratch(str(place), "longhaul-drill-of-another", "mine")
    with pytest.raises(Refused, match="no folder can be made"):
        make_scratch(str(place), "data", "mine", [])


def test_a_removal_that_was_killed_is_continued(filled, place):
    restored(filled, place, choose(filled))
    shutil.rmtree(place / NAME / "data")  # the marker goes last
    assert make_scratch(str(place), f"{drill.PREFIX}new", "mine", []).removed == [NAME]


def test_empty_scratch_folders_go_after_a_day(place):
    for name in ("old", "new", "filled"):
        (place / f"{drill.PREFIX}{name}").mkdir()
    (place / "other").mkdir()
    (place / f"{drill.PREFIX}filled" / "file").touch()
    os.symlink(place / "other", place / f"{drill.PREFIX}link")
    for name in set(os.listdir(place)) - {f"{drill.PREFIX}new"}:
        os.utime(place / name, (1, 1), follow_symlinks=False)
    before = set(os.listdir(place))
    assert make_scratch(str(place), NAME, "mine", []).removed == [f"{drill.PREFIX}old"]
    assert set(os.listdir(place)) == before - {f"{drill.PREFIX}old"} | {NAME}


@pytest.mark.parametrize("inside", ["repository", "repository/below", "link"])
def test_a_place_in_a_repository_is_refused(tmp_path, inside):
    (tmp_path / "repository/below").mkdir(parents=True)
    (tmp_path / "real").symlink_to("repository")
    place = tmp_path / ("real/below" if inside == "link" else inside)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Refused, match="a repository or a source of a backup"):
        make_scratch(str(place), NAME, "mine", [str(tmp_path / "repository")])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_is_missing_or_has_no_room_is_refused(tmp_path, monkeypatch):
    assert make_scratch(str(tmp_path), NAME, "mine", [], check=True).room > 0 and os.listdir(tmp_path) == []
    for check in (True, False):
        with pytest.raises(Refused, match="make the folder, or mount it"):
            make_scratch(str(tmp_path / "missing"), NAME, "mine", [], check=check)
    monkeypatch.setattr(drill, "usable_room", lambda _total, _free: 0)
    for check in (True, False):
        with pytest.raises(Refused, match="must stay free"):
            make_scratch(str(tmp_path), NAME, "mine", [], check=check)
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    make_scratch(str(tmp_path), NAME, "mine", [])
    monkeypatch.setattr(drill, "usable_room", lambda _total, _free: -5)
    looked = make_scratch(str(tmp_path), f"{drill.PREFIX}new", "mine", [], check=True)
    assert (looked.room, looked.removed, os.listdir(tmp_path)) == (0, [NAME], [NAME]), "its removal makes room"
