# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong around snapshots: clocks, damage, locks, links in the way, full disks; and check mode."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused, unexpected
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.listing import listing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import content_hash
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    contents,
    hashed,
    records,
    transfer,
)


def test_complete_snapshots_are_not_discarded(bench):
    bench.backup()
    with bench.series() as series:
        for name, text in ((FIRST, "prune alone"), ("latest", "no name"), ("../x", "no name")):
            with pytest.raises(Refused, match=text):
                discard(series, name)
        with pytest.raises(Refused, match="no snapshot"):
            accept(series, "aside-" + SECOND, NOON)
        assert not discard(series, "unfinished")
        begin(series, "x", bench.now)
        assert discard(series, "unfinished")
    assert bench.names() == [".lock", FIRST, "latest"]


def test_a_clock_that_was_set_back_makes_no_older_snapshot(bench):
    bench.backup()
    bench.now = NOON - 3600
    done = bench.backup()
    assert done.name == names.name_of(NOON + 1)
    assert os.readlink(bench.path("latest")) == done.name
    # A snapshot of a clock that was years ahead does not become latest again
    bench.now = NOON + 5 * 366 * DAY
    wrong = bench.backup()
    bench.now = NOON + DAY
    right = bench.backup()
    assert (right.name, right.facts.base) == (SECOND, done.name)
    assert os.readlink(bench.path("latest")) == SECOND != wrong.name


@pytest.mark.parametrize("wrong", [365 * DAY, -365 * DAY, 2 * DAY, -2 * DAY])
def test_a_repository_with_a_wrong_clock_prunes_nothing(bench, monkeypatch, wrong):
    """One night of a wrong date must not cost the snapshots of all others."""
    nobody = Holders(lambda path: None, lambda path: None)
    clock = [0]
    monkeypatch.setattr("time.time", lambda: clock[0])

    def prune_as_module(control_time, **keep):
        place = (str(bench.repository), "web1", "data")
        return do_action("prune", place, {"keep": keep, "control_time": control_time}, nobody)

    nights = []
    for _night in range(15):
        nights.append(bench.backup().name)
    right = bench.now
    bench.now = clock[0] = right + wrong
    bench.backup()
    there = bench.names()
    for keep in ({"within": "14d"}, {"last": 1}):
        with pytest.raises(
            Refused, match=r"clock of the repository is \d+ days? (ahead of|behind) .* nothing was pruned"
        ):
            prune_as_module(right, **keep)
    assert bench.names() == there
    bench.now = clock[0] = right
    newest = bench.backup().name
    clock[0] = right + 3600
    done = prune_as_module(right, within="14d")
    assert done.warnings == [] and os.readlink(bench.path("latest")) == newest
    assert set(done.result["removed"]) <= {names.name_of(right + wrong), nights[0]}
    assert set(nights[1:]) <= set(done.result["kept"])
    clock[0] += 1
    assert "1 hour ahead of" in prune_as_module(right, within="14d").warnings[0]
    assert prune_as_module(None, within="14d").warnings == []  # nobody said what time it is


def test_a_manifest_before_that_is_damaged_costs_reading_and_is_said(bench, monkeypatch):
    bench.write("a", b"1")
    bench.backup()
    manifest = bench.path(FIRST, "manifest")
    manifest.write_bytes(manifest.read_bytes()[:-3])
    read = hashed(monkeypatch)
    done = bench.backup()
    assert "cannot be used" in done.warnings[0]
    assert read == [b"a"]  # and not linked: nothing says what it must be
    assert records(bench, SECOND)[b"a"].content
    bench.path(SECOND, "manifest").unlink()
    read.clear()
    assert "missing" in bench.backup().warnings[0]
    assert read == [b"a"]


def test_a_file_that_cannot_be_read_leaves_the_snapshot_unfinished(bench, monkeypatch):
    bench.write("a", b"1")

    def fail(root, path, *rest):
        raise OSError(5, "Input/output error")

    def forbid(root, path, *rest):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(content_hash, "hash_file", fail)
        with pytest.raises(Refused, match="'a' of the unfinished snapshot cannot be read"):
            bench.backup()
        assert bench.complete() == []
        patch.setattr(content_hash, "hash_file", forbid)
        done = bench.backup()
    assert done.facts.figures.unreadable == 1
    assert "1 file of the snapshot cannot be read by this user" in done.warnings[0]
    assert records(bench, done.name)[b"a"].content == b""


def test_check_mode_writes_nothing_and_says_what_would_be(bench):
    bench.write("a", b"1")
    with bench.series(create=False) as series:
        assert series.missing
        begun = begin(series, "one", NOON, check=True)
        assert (begun.changed, begun.name, begun.link_dest) == (True, FIRST, [])
        assert finish(series, "one", NOON, check=True).changed
        assert listing(series, NOON) == []
        assert series.latest() is None
        assert not prune(series, Policy(last=1), NOON).changed
    assert os.listdir(bench.repository) == []
    with bench.series() as series:
        begun = begin(series, "one", NOON)
        transfer(bench.source, begun.path)
        before = sorted(os.walk(bench.folder))
        predicted = finish(series, "one", NOON, check=True)
        assert sorted(os.walk(bench.folder)) == before
        real = finish(series, "one", NOON)
        assert (predicted.changed, predicted.name, predicted.aside) == (real.changed, real.name, real.aside)
        assert predicted.facts._replace(algorithm="") == real.facts._replace(algorithm="")


def test_a_second_run_is_told_who_is_at_work(bench):
    with bench.series() as one, bench.series() as two:
        with one.lock("prune"):
            with pytest.raises(Refused, match=rf"in use: prune \(process {os.getpid()}, since .*nothing was changed"):
                with two.lock("begin"):
                    pytest.fail("two at once")
        with two.lock("begin"):
            pass


def test_a_lock_dies_with_its_process(bench):
    with bench.series() as series:
        pid = os.fork()
        if pid == 0:
            with series.lock("begin"):
                os.kill(os.getpid(), 9)
        os.waitpid(pid, 0)
        with series.lock("begin"):
            pass


@pytest.mark.parametrize("level", ["repository", "host", "job"])
def test_symlinks_are_not_followed(bench, tmp_path, level):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = {"repository": bench.repository, "host": bench.repository / "web1", "job": bench.folder}[level]
    if level == "repository":
        place.rmdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    for path in (str(bench.repository), f"{bench.repository}/"):
        with pytest.raises(Refused, match="is a symbolic link"):
            Series(path, "web1", "data", create=True)
    assert os.listdir(elsewhere) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_above_a_repository_links_are_followed_by_their_owners(bench, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "victim/repository").mkdir(parents=True)
    os.chown(tmp_path / "home", 1234, 1234)
    for owner, name in ((0, "roots"), (1234, "users")):
        (tmp_path / "home" / name).symlink_to(tmp_path / "victim")
        os.chown(tmp_path / "home" / name, owner, owner, follow_symlinks=False)
    Series(f"{tmp_path}/home/roots/repository", "web1", "data", create=True).close()
    assert (tmp_path / "victim/repository/web1/data").is_dir()
    with pytest.raises(Refused, match=rf"not used: {tmp_path}/home/users is a symbolic link of user id 1234 to"):
        Series(f"{tmp_path}/home/users/repository", "web2", "data", create=True)
    with pytest.raises(Refused, match=r"no repository .*mount it"):
        Series(f"{tmp_path}/home/missing/repository", "web2", "data", create=True)
    assert os.listdir(tmp_path / "victim/repository") == ["web1"]


def test_a_repository_that_is_not_there_or_no_folder_is_refused(tmp_path):
    with pytest.raises(Refused, match=r"no repository .*mount it"):
        Series(str(tmp_path / "none"), "web1", "data", create=True)
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="no folder"):
        Series(str(tmp_path / "file"), "web1", "data")
    with pytest.raises(Refused, match="no absolute path"):
        Series("relative", "web1", "data")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
def test_a_folder_of_somebody_else_is_refused(bench):
    bench.series().close()
    os.chown(bench.folder, 12345, 12345)
    with pytest.raises(Refused, match="belongs to user 12345"):
        bench.series()


def test_a_latest_that_is_no_symlink_is_not_removed(bench):
    bench.series().close()
    (bench.folder / "latest").mkdir()
    (bench.folder / "latest" / "precious").touch()
    with pytest.raises(OSError, match="directory"):
        bench.backup()
    assert (bench.folder / "latest" / "precious").exists()
    assert len(bench.complete()) == 1  # complete all the same


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_full_disk_loses_nothing(bench):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(bench.repository)], check=False).returncode:
        pytest.skip("no mounts here")
    try:
        bench.write("a", b"1" * 1000)
        bench.backup()
        with bench.series() as series:
            begun = begin(series, "run", bench.now)
            transfer(bench.source, begun.path, begun.link_dest)
            with open(bench.repository / "filler", "wb", buffering=0) as file:
                with pytest.raises(OSError, match="No space") as full:
                    while True:
                        file.write(bytes(4096))
            with pytest.raises(OSError, match="No space"):
                finish(series, "run", bench.now)
        assert "no space or no inodes left (see df and df -i): make room" in str(unexpected(full.value, "/r"))
        assert bench.names() == [".lock", ".unfinished", FIRST, "latest"]
        assert bench.data(FIRST) == contents(bench.source)
        os.unlink(bench.repository / "filler")
        with bench.series() as series:
            assert finish(series, "run", bench.now).name == SECOND
    finally:
        subprocess.run(["umount", str(bench.repository)], check=True)


@pytest.mark.parametrize("number, advice", [(28, "make room"), (30, "read-only"), (5, "log"), (13, "Set that right")])
def test_what_the_file_system_will_not_do_is_explained(number, advice):
    text = str(unexpected(OSError(number, os.strerror(number), "x"), "/r"))
    assert advice in text
    assert "Complete snapshots are as they were" in text


def test_a_mount_point_without_its_disk_is_not_taken_for_an_empty_repository(bench):
    def begin_as_role(expects):
        place = (str(bench.repository), "web1", "data")
        return do_action("begin", place, {"run": "a run", "expects": expects}, Holders(_nobody, _nobody), dry=True)

    with pytest.raises(Refused, match=r"last run left 2 snapshots.* mount it.* remove jobs/web1/data\.json"):
        begin_as_role(2)
    assert list(bench.repository.iterdir()) == [], "something was written to the wrong disk"
    assert begin_as_role(0).result["changed"]
    bench.backup()
    assert begin_as_role(2).result["changed"]


def _nobody(_path):
    return None
