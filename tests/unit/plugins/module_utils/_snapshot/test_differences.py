# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two snapshots."""

from __future__ import annotations

import os
import random

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import differences, search
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record import EntryRecord
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    FIRST,
    NOON,
    SECOND,
    THIRD,
    contents,
)


def compare(bench, old=None, new=None, limit=200):
    with bench.series() as series:
        return differences.diff(series, old, new, limit)


def paths(result):
    return {kind: [one["path"] for one in those] for kind, those in result.differences.items() if those}


@pytest.fixture
def two(bench):
    bench.write("d/kept", b"kept")
    bench.write("d/changed", b"before")
    bench.write("d/moved", b"moved" * 100)
    bench.write("d/removed", b"removed")
    bench.write("d/mode", b"mode")
    bench.write("d/empty", b"")
    os.symlink("a", bench.source / "link")
    bench.backup()
    bench.write("d/changed", b"behind", NOON)
    (bench.source / "e").mkdir()
    os.rename(bench.source / "d/moved", bench.source / "e/here")
    (bench.source / "d/removed").unlink()
    (bench.source / "d/empty").unlink()
    (bench.source / "link").unlink()
    os.symlink("b", bench.source / "link")
    bench.write("added", b"added", NOON)
    bench.write("d/mode", b"mode")
    os.chmod(bench.source / "d/mode", 0o600)
    for folder in ("d", ""):
        os.utime(bench.source / folder, (NOON, NOON))
    bench.backup()
    return bench


def test_what_is_kept_is_kept_without_attributes():
    entry = Entry(b"a", "f", 0o644, 0, 0, 5, 0, 0, 1, 1, 1, 0, 8, xattrs=((b"user.x", bytes(1 << 16)),))
    record = EntryRecord(entry, b"hash", b"a")
    found = differences._Differences(5)
    found.add(record)
    found.remove(record)
    (kept,), (gone,) = found._added, found._removed
    seen = search._Seen(FIRST, record)
    seen.add(SECOND, record)
    bare = record._replace(entry=entry._replace(xattrs=()))
    assert kept == gone == seen.record == bare


def test_each_kind_of_difference_is_told(two):
    result, warnings = compare(two)
    assert (result.old, result.new, warnings, result.changed) == (FIRST, SECOND, [], False)
    found = paths(result)
    assert sorted(found["attributes"])[-1:] == ["d/mode"] and set(found["attributes"]) <= {".", "d", "d/mode"}
    del found["attributes"]
    assert found == {
        "added": ["added", "e"],
        "removed": ["d/removed", "d/empty"],
        "changed": ["d/changed", "link"],
        "renamed": ["e/here"],
    }
    (renamed,) = result.differences["renamed"]
    assert (renamed["old_path"], renamed["size"]) == ("d/moved", 500)
    assert result.differences["changed"][0]["old_size"] == 6
    (mode,) = [one for one in result.differences["attributes"] if one["path"] == "d/mode"]
    assert (mode["attributes"], mode["mode"]) == (["mode"], "0600")
    assert result.totals["removed"] == {"entries": 2, "bytes": 7}
    assert result.totals["renamed"] == {"entries": 1, "bytes": 500}


def test_the_largest_come_first_and_all_are_counted(bench):
    bench.backup(shrink_limit=100)
    sizes = random.Random(1).sample(range(1, 1000), 50)
    for number, size in enumerate(sizes):
        bench.write(f"f{number}", b"%d" % number * size)
    bench.backup()
    result, _warnings = compare(bench, limit=5)
    shown = [one["size"] for one in result.differences["added"]]
    real = sorted((len(value) for value in contents(bench.source).values()), reverse=True)
    assert shown == real[:5] and result.totals["added"] == {"entries": 50, "bytes": sum(real)}


def test_of_several_with_the_same_contents_each_is_renamed_once(bench):
    for name in ("a1", "a2", "a3"):
        bench.write(name, b"same")
    bench.backup()
    for name in ("a1", "a2", "a3"):
        (bench.source / name).unlink()
    for name in ("b1", "b2"):
        bench.write(name, b"same")
    bench.backup()
    result, _warnings = compare(bench)
    renamed = {one["old_path"]: one["path"] for one in result.differences["renamed"]}
    assert renamed == {"a1": "b1", "a2": "b2"} and paths(result)["removed"] == ["a3"]


def test_too_many_files_to_find_renamed_ones_are_told(two, monkeypatch):
    monkeypatch.setattr(differences, "_MOST_MOVED", 0)
    result, (warning,) = compare(two)
    assert "more than 0 files" in warning and "e/here" in paths(result)["added"]
    assert result.totals["removed"]["entries"] == 3


def test_the_same_twice_differs_in_nothing_and_the_other_way_round_is_the_opposite(two):
    two.backup()
    result, _warnings = compare(two)
    assert (result.old, result.new) == (SECOND, THIRD) and paths(result) == {}
    there, back = compare(two, FIRST, THIRD)[0], compare(two, THIRD, FIRST)[0]
    assert paths(there)["added"] == ["added", "e"] and paths(back)["removed"] == ["added", "e"]


def test_what_cannot_be_compared_is_refused(two, bench):
    with pytest.raises(Refused, match="no snapshot none in .*The newest are"):
        compare(two, "none")
    with pytest.raises(Refused, match="the same snapshot"):
        compare(two, FIRST, FIRST)
    manifest = two.path(FIRST, "manifest")
    whole = manifest.read_bytes()
    for broken, reason in ((b"LHSNAP0\n" + whole[8:], "another format"), (whole[:-1], "cut short")):
        manifest.write_bytes(broken)
        with pytest.raises(Refused, match=f"manifest of {FIRST} cannot be read: it .*{reason}"):
            compare(two)
    manifest.unlink()
    with pytest.raises(Refused, match="it is missing"):
        compare(two)


def test_one_snapshot_is_too_few(bench):
    bench.write("a", b"a")
    bench.backup()
    with pytest.raises(Refused, match="no two snapshots"):
        compare(bench)
