# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A look at a path before it is restored: what it is, whether it is intact, and what else may have been meant."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.inspect_path import (
    Inspection,
    find_source,
    inspect_path,
    suggest_paths,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import FIRST, SECOND, rot


@pytest.fixture
def two(bench):
    """Two snapshots: ``d/deep`` changed between them, all else is shared; then ``d/apart`` got a copy of its own."""
    for name in ("top", "d/deep", "d/apart", "d/e/under", "dd"):
        bench.write(name, name.encode())
    os.symlink("top", bench.source / "link")
    bench.backup()
    bench.write("d/deep", b"another", bench.now)
    bench.backup()
    apart = bench.path(SECOND, "data/d/apart")
    times = os.stat(apart.parent)
    shutil.copy2(apart, bench.folder / "copy")
    os.replace(bench.folder / "copy", apart)
    os.utime(apart.parent, ns=(times.st_atime_ns, times.st_mtime_ns))
    return bench


def see(bench, name, path=b"", level="contents"):
    with bench.series() as series:
        return inspect_path(series, name, path, level)


@pytest.mark.parametrize(
    ("name", "kind", "path", "source"),
    [
        (SECOND, "directory", "", f"/b/web1/data/{SECOND}/data/"),
        (SECOND, "directory", "d/e", f"/b/web1/data/{SECOND}/data/d/e/"),
        (SECOND, "file", "d/deep", f"/b/web1/data/{SECOND}/data/d/deep"),
        ("unfinished", "file", "top", "/b/web1/data/.unfinished/data/top"),
        (SECOND, "other", "link", ""),
    ],
)
def test_the_path_from_which_a_transfer_restores(name, kind, path, source):
    assert find_source(["/b", "web1", "data"], Inspection(name, kind), path) == source


@pytest.mark.parametrize("path", ["d", "top", "link"])
def test_what_is_inspected_is_probed_as_the_source_of_its_transfer(two, path):
    """So that the transfer begins by this probe, which has the same fingerprint as its own."""
    probe = {"do": "probe", "id": "0" * 16, "side": "source", "path": "/", "methods": ["stream"], "ssh_ports": [22]}
    with two.series() as series:
        place = [os.path.dirname(os.path.dirname(series.path)), *series.path.split("/")[-2:]]
    inspect = {"do": "inspect_snapshot", "place": place, "name": "latest", "path": path, "level": "files"}
    given = commands.StepContext({}, "/no/engine")
    plain, probed = commands.run_steps([inspect, {**inspect, "probe": probe}], given)
    assert plain["probe"] is None and plain == {**probed, "probe": None}
    if path == "link":
        assert probed["probe"] is None
        return
    source = f"{series.path}/{SECOND}/data/{path}" + ("/" if path == "d" else "")
    (own,) = commands.run_steps([{**probe, "id": "1" * 16, "path": source}], given)
    assert probed["probe"]["fingerprint"] == own["fingerprint"]


def found(looked):
    return [(one.kind, one.path, one.snapshots, one.intact_in) for one in looked.report.problems.values()]


@pytest.mark.parametrize(
    "path, kind, entries, files, size",
    [
        (b"", "directory", 9, 5, len("topanotherd/apartd/e/underdd")),
        (b"d", "directory", 5, 3, len("anotherd/apartd/e/under")),
        (b"d/deep", "file", 1, 1, len("another")),
        (b"link", "other", 1, 0, 0),
    ],
)
def test_what_is_at_a_path(two, path, kind, entries, files, size):
    for level in ("structure", "files", "contents"):
        looked = see(two, "latest" if level == "files" else SECOND, path, level)
        assert looked.name == SECOND
        assert (looked.kind, looked.entries, looked.files, looked.bytes) == (kind, entries, files, size)
        assert looked.checked == level and found(looked) == []
        assert looked.report.files_read == (files if level == "contents" else 0)


def test_a_damaged_file_is_named_with_the_snapshots_that_have_it_intact(two):
    rot(two.path(SECOND, "data/d/apart"))
    rot(two.path(SECOND, "data/top"))
    expected = ("damaged", b"d/apart", [SECOND], [FIRST])
    assert found(see(two, SECOND, b"d")) == [expected]
    assert found(see(two, SECOND)) == [expected, ("damaged", b"top", [SECOND], [])]
    assert (
        found(see(two, SECOND, b"d/e")) == found(see(two, SECOND, b"d", "files")) == found(see(two, FIRST, b"d")) == []
    )


def test_names_that_are_missing_or_too_many_are_found_below_the_path_alone(two):
    os.unlink(two.path(SECOND, "data/d/e/under"))
    two.path(SECOND, "data/d/new").write_text("x")
    os.unlink(two.path(SECOND, "data/dd"))
    looked = see(two, SECOND, b"d", "files")
    kinds = {one[:2] for one in found(looked)}
    assert kinds == {("differs", b"d"), ("differs", b"d/e"), ("missing", b"d/e/under"), ("extra", b"d/new")}
    assert ("missing", b"d/e/under", [SECOND], [FIRST]) in found(looked)
    assert found(see(two, SECOND, b"dd", "files")) == [("missing", b"dd", [SECOND], [FIRST])]
    shutil.rmtree(two.path(SECOND, "data/d"))
    assert {one[0] for one in found(see(two, SECOND, b"d/e", "files"))} == {"missing"}


def test_a_damaged_manifest_is_said_and_the_path_is_looked_up_on_the_disk(two):
    with open(two.path(SECOND, "manifest"), "r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff")
    looked = see(two, SECOND, b"d/deep")
    assert (looked.kind, looked.entries, looked.checked) == ("file", None, "")
    ((kind, path, snapshots, _intact),) = found(looked)
    assert (kind, path, snapshots) == ("structure", None, [SECOND])
    with pytest.raises(Refused, match="no name like it"):
        see(two, SECOND, b"nowhere")


def test_an_unfinished_snapshot_can_be_looked_at_but_not_checked(two):
    with two.series() as series, series.lock("test"):
        path = begin(series, "a run", two.now).path
    os.makedirs(os.path.join(path, "d"))
    looked = see(two, "unfinished", b"d")
    assert (looked.kind, looked.entries, looked.checked, found(looked)) == ("directory", None, "", [])


@pytest.mark.parametrize("name", ["2020-01-01T000000Z", "aside-2020-01-01T000000Z", "..", ".lock", "unfinished"])
def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are(two, name):
    with pytest.raises(Refused, match=f"{SECOND}, {FIRST}"):
        see(two, name)


def test_one_that_is_being_removed_is_none(two):
    os.rename(two.path(FIRST), two.path(names.REMOVING_PREFIX + FIRST))
    with pytest.raises(Refused, match="no snapshot"):
        see(two, names.REMOVING_PREFIX + FIRST)


@pytest.mark.parametrize("path", [b"d/../top", b"/d", b"d//e", b"./d"])
def test_a_path_that_could_lead_out_is_refused(two, path):
    with pytest.raises(ValueError, match="refused"):
        see(two, SECOND, path)


@pytest.mark.parametrize(
    "path, meant",
    [
        (b"d/dep", "d/deep"),
        (b"D/deep", "d"),
        (b"e/under", "d/e/under"),
        (b"d/apart/x", "Nothing in it"),
        (b"top\n", "top"),
    ],
)
def test_a_path_that_is_not_there_is_refused_with_what_may_be_meant(two, path, meant):
    with pytest.raises(Refused, match="there is no") as refused:
        see(two, SECOND, path)
    assert meant in str(refused.value) and SECOND in str(refused.value)


def test_a_path_that_is_gone_is_refused_with_the_newest_snapshot_that_has_it(two):
    os.unlink(two.source / "d/deep")
    third = two.backup().name
    os.unlink(two.source / "top")
    fourth = two.backup().name
    for asked, path, holder in ((fourth, b"d/deep", SECOND), (fourth, b"top", third), (FIRST, b"d/new", "")):
        with pytest.raises(Refused) as refused:
            see(two, asked, path)
        said = str(refused.value)
        assert (f"has it is {holder}: set restore_when={holder}" in said) == bool(holder)
        assert ("nor in any other" in said) != bool(holder)
    two.path(SECOND, names.MANIFEST).write_bytes(b"torn")
    with pytest.raises(Refused, match=f"set restore_when={FIRST}"):
        see(two, fourth, b"d/deep")


TREE = [b"", b"2026", b"2026/11", b"2026/11/a.jpg", b"2026/11/b.jpg", b"2026/12", b"Photos", b"Photos/a.jpg", b"x\xff"]


@pytest.mark.parametrize(
    "path, meant",
    [
        (b"photos", [b"Photos"]),
        (b"2026/11/c.jpg", [b"2026/11/a.jpg", b"2026/11/b.jpg"]),
        (b"2025/11/a.jpg", [b"2026", b"2026/11/a.jpg", b"Photos/a.jpg"]),
        (b"B.JPG", [b"2026/11/b.jpg"]),
        (b"x\xfe", [b"x\xff"]),
        (b"qqqqqq", []),
    ],
)
def test_near_names(path, meant):
    assert sorted(suggest_paths(path, TREE)) == sorted(meant)


def test_no_more_names_than_asked_for():
    assert len(suggest_paths(b"file", [b"", *(b"file%d" % number for number in range(50))], 3)) == 3
