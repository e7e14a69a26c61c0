# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folders of a read-only snapshot are immutable until it is removed, whatever is killed in between."""

from __future__ import annotations

import errno
import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import finish as finish_module
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, read_only
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import repair as repair_module
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.listing import listing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repair import repair
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    Bench,
    contents,
    no_step,
    rot,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.test_kill import each_kill


def flags_off(top):
    """Let pytest remove its folder."""
    for folder, _folders, _files in os.walk(top):
        fd = os.open(folder, os.O_RDONLY)
        try:
            read_only._set(fd, False)
        except OSError:
            return
        finally:
            os.close(fd)


@pytest.fixture(autouse=True)
def _immutable(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        read_only._set(fd, True)
        read_only._set(fd, False)
    except OSError as error:
        pytest.skip(f"cannot run here: folders cannot be made immutable ({error.strerror})")
    finally:
        os.close(fd)
    yield
    flags_off(tmp_path)


def is_immutable(folder):
    fd = os.open(folder, os.O_RDONLY)
    try:
        return bool(read_only._flags(fd) & read_only._FS_IMMUTABLE_FL)
    finally:
        os.close(fd)


def folders(bench, name):
    return [folder for folder, _folders, _files in os.walk(bench.path(name, "data"))]


def fill(bench):
    for name in ("a", "d/b", "d/e/f/c"):
        bench.write(name, name.encode())
    (bench.source / "empty").mkdir(exist_ok=True)


def life(bench):
    """Two snapshots, one of which is pruned."""
    fill(bench)
    done = bench.backup(read_only=True)
    assert done.changed and done.warnings == []
    assert all(map(is_immutable, folders(bench, FIRST))) and len(folders(bench, FIRST)) == 5
    for change in (
        lambda: bench.path(FIRST, "data/a").unlink(),
        lambda: bench.path(FIRST, "data/d/b").rename(bench.path("b")),
        lambda: bench.path(FIRST, "data/d/e/new").touch(),
        lambda: shutil.rmtree(bench.path(FIRST, "data")),
    ):
        with pytest.raises(PermissionError):
            change()
    bench.write("d/b", b"new", NOON)
    assert bench.backup(read_only=True).warnings == []
    assert os.path.samefile(bench.path(SECOND, "data/a"), bench.path(FIRST, "data/a"))
    with bench.series() as series:
        assert check(series, "contents", bench.now)[0].problems_total == 0
        assert [row.read_only for row in listing(series, bench.now)] == [True, True]
        assert not finish_module.finish(series, f"run {bench.now - DAY}", bench.now, read_only=True).changed
        assert prune(series, Policy(last=1), bench.now).removed == [FIRST]
    assert FIRST not in os.listdir(bench.folder) and bench.data(SECOND) == contents(bench.source)


def test_a_read_only_snapshot_lives_as_any_other(bench):
    life(bench)


def test_a_file_in_it_is_repaired(bench):
    fill(bench)
    bench.backup(read_only=True)
    bench.write("d/b", b"d/b", NOON)
    bench.backup(read_only=True)
    damaged = bench.path(FIRST, "data/d/b")
    times = damaged.stat()
    damaged.write_bytes(b"d/c")
    os.utime(damaged, ns=(times.st_atime_ns, times.st_mtime_ns))
    with bench.series() as series:
        assert check(series, "contents", bench.now)[0].problems_total == 1
    with bench.series() as series, series.lock("test"):
        done = repair(series, bench.now)
        assert [one.path for one in done.repaired] == ["d/b"] and done.left == 0 and done.problems == []
    assert damaged.read_bytes() == b"d/b" and damaged.stat().st_mtime_ns == times.st_mtime_ns
    assert all(map(is_immutable, folders(bench, FIRST)))


def test_a_repair_that_fails_leaves_the_folders_immutable(bench, monkeypatch):
    fill(bench)
    bench.backup(read_only=True)
    rot(bench.path(FIRST, "data/d/b"))

    def fail(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(repair_module._Tree, "write_checked", fail)
    with bench.series() as series:
        check(series, "contents", bench.now)
        with series.lock("test"), pytest.raises(OSError, match="No space left"):
            repair(series, bench.now)
    assert all(map(is_immutable, folders(bench, FIRST)))


@pytest.mark.parametrize("kind", [*rarely("ext4", "xfs"), "btrfs"])  # which lists what was there when it was opened
def test_a_read_only_snapshot_on_disks(tmp_path, kind):
    try:
        with disk_image(tmp_path, kind) as place:
            life(Bench(place))
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


def test_one_that_was_set_aside_becomes_read_only_after_its_acceptance(bench):
    fill(bench)
    bench.backup()
    (bench.source / "a").unlink()
    aside = bench.backup(read_only=True, shrink_limit=10).name
    assert not any(map(is_immutable, folders(bench, aside)))
    with bench.series() as series:
        accept(series, aside, bench.now)
    bench.backup(read_only=True)
    assert all(map(is_immutable, folders(bench, SECOND)))
    assert not any(map(is_immutable, folders(bench, FIRST)))  # it was finished without
    os.rename(bench.path(SECOND), bench.path(names.ASIDE_PREFIX + SECOND))
    with bench.series() as series:
        assert discard(series, names.ASIDE_PREFIX + SECOND, now=bench.now)
    assert SECOND not in os.listdir(bench.folder)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOTTY, "the file system has no such flag"),
        (errno.EPERM, "only root may do that"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_where_it_cannot_be_a_warning_says_so(bench, monkeypatch, code, words):
    def fail(*_given):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(read_only.fcntl, "ioctl", fail)
    fill(bench)
    bench.backup(read_only=True)
    (warning,) = bench.backup(read_only=True).warnings
    assert f"{FIRST} in {bench.folder} cannot be made immutable: {words}" in warning
    assert bench.complete() == [NOON, NOON + DAY]
    if code == errno.ENOTTY:
        with bench.series() as series:
            assert prune(series, Policy(last=1), bench.now).removed == [FIRST]


def test_one_that_cannot_be_keeps_no_other_from_it(bench, monkeypatch):
    fill(bench)
    bench.backup(read_only=True)
    bench.backup(read_only=True)
    flags_off(bench.folder)
    real, inode = read_only._set, bench.path(FIRST, "data/d").stat().st_ino

    def fail(fd, is_immutable):
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd, is_immutable)

    monkeypatch.setattr(read_only, "_set", fail)
    with bench.series() as series:
        changed, (warning,) = read_only.make_read_only(series)
    assert changed and FIRST in warning and all(map(is_immutable, folders(bench, SECOND)))


def test_the_root_loses_its_flag_first(bench, monkeypatch):
    fill(bench)
    bench.backup(read_only=True)
    real, left = read_only._set, [2]

    def stop(fd, is_immutable):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(fd, is_immutable)

    with bench.series() as series:
        with monkeypatch.context() as patched, series.snapshot(FIRST) as snapshot, pytest.raises(KeyboardInterrupt):
            patched.setattr(read_only, "_set", stop)
            read_only.make_writable(snapshot)
        assert not is_immutable(bench.path(FIRST, "data"))
        assert read_only.make_read_only(series) == (True, [])
    assert all(map(is_immutable, folders(bench, FIRST)))


def test_flags_of_others_are_left_alone(bench):
    fill(bench)
    bench.backup()
    bench.backup()
    fd = os.open(bench.path(FIRST, "data/d"), os.O_RDONLY)
    read_only._set(fd, True)
    os.close(fd)
    with bench.series() as series, pytest.raises(Refused, match="Look for immutable files"):
        prune(series, Policy(last=1), bench.now)
    assert is_immutable(bench.path(names.REMOVING_PREFIX + FIRST, "data/d"))


@pytest.mark.parametrize("damage", [b"{", None])
def test_facts_that_are_lost_keep_no_snapshot_from_being_removed(bench, damage):
    fill(bench)
    bench.backup(read_only=True)
    bench.backup(read_only=True)
    facts = bench.path(FIRST, names.FACTS)
    facts.unlink() if damage is None else facts.write_bytes(damage)
    with bench.series() as series:
        assert prune(series, Policy(last=1), bench.now).removed == [FIRST]
    assert FIRST not in os.listdir(bench.folder) and is_immutable(bench.path(SECOND, "data"))


def test_a_life_that_is_killed_at_any_step(tmp_path, monkeypatch):
    monkeypatch.setattr(finish_module, "sync_file_system", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(finish_module, "speeds", lambda: {"sha256": 1.0})

    def prepare(at):
        (tmp_path / str(at)).mkdir()
        bench = Bench(tmp_path / str(at))
        fill(bench)
        bench.backup(read_only=True)
        return bench

    def work(bench):
        killer = bench.on_step
        if killer is not no_step:
            read_only._set = killer.in_front_of(read_only._set)
        with bench.series() as series, series.lock("prune"):
            pass
        bench.backup(run="second", read_only=True)
        with bench.series() as series, series.lock("prune"):
            prune(series, Policy(last=1), bench.now)

    def judge(bench, _was_killed):
        bench.on_step, bench.now = no_step, NOON + DAY
        work(bench)
        (name,) = (names.name_of(at) for at in bench.complete())
        assert bench.names() == [".lock", name, "latest"]
        assert all(map(is_immutable, folders(bench, name))) and bench.data(name) == contents(bench.source)

    assert each_kill(prepare, work, judge) > 40
