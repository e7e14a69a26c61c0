# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real kills: a child process dies at each step, the repository is sound, and the rerun completes."""

from __future__ import annotations

import functools
import os
import signal

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import finish, names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.adopt import adopt
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.history import enter_news, find_missing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    NOON,
    contents,
    no_step,
)


class Killer:
    """Kills its process in front of the given step; every call that changes the file system is one."""

    def __init__(self, at):
        self.left = at

    def __call__(self, _name):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def in_front_of(self, call):
        def stepped(*args, **options):
            self(call)
            return call(*args, **options)

        return stepped


def killed(bench, at, work):
    """Run the work in a child that is killed at step ``at``; says whether it was."""
    pid = os.fork()
    if pid == 0:
        try:
            killer = Killer(at)
            bench.on_step = killer
            for name in ("rename", "symlink", "mkdir", "unlink", "rmdir", "link"):
                setattr(os, name, killer.in_front_of(getattr(os, name)))
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    _pid, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def assert_sound(bench, expected):
    """All complete snapshots have their contents and a good manifest; nothing else is taken for one."""
    found = {names.name_of(at) for at in bench.complete()}
    for name in found & set(expected):
        assert contents(bench.path(name, "data")) == expected[name]
    with bench.series() as series:
        report, _part = check(series, "contents", bench.now, record=False)
        problems = [problem for problem in report.problems.values() if problem.snapshots != [names.LATEST]]
        assert problems == [] and find_missing(series, bench.now) == []
        latest = series.latest()
    # latest moves last: it may be one behind, but leads to a snapshot, except while there was none before
    assert latest in found or (latest is None and len(found) <= 1)
    return found


def each_kill(prepare, work, judge, most=400):
    """For every step: prepare again, kill there, judge. Return the number of kills."""
    for at in range(most):
        bench = prepare(at)
        was_killed = killed(bench, at, functools.partial(work, bench))
        judge(bench, was_killed)
        if not was_killed:
            return at
    raise AssertionError("it never came to an end")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot import conftest

    # Waiting for the disk a thousand times is slow, and proves nothing about kills: the kernel lives on.
    monkeypatch.setattr(finish, "sync_file_system", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(finish, "speeds", lambda: {"sha256": 1.0})

    def make(number, backups=2):
        top = tmp_path / str(number)
        top.mkdir()
        bench = conftest.Bench(top)
        for name in ("a", "d/b", "c"):
            bench.write(name, name.encode())
        for day in range(backups):
            bench.write("changing", b"%d" % day, NOON + day)
            bench.backup()
        return bench

    return make


def test_a_backup_killed_at_any_step(fresh):
    def prepare(at):
        bench = fresh(at)
        bench.before = {names.name_of(t): contents(bench.path(names.name_of(t), "data")) for t in bench.complete()}
        bench.write("changing", b"third", NOON + 9)
        bench.write("new", b"new", NOON + 9)
        (bench.source / "c").unlink()
        return bench

    def judge(bench, was_killed):
        found = assert_sound(bench, bench.before)
        assert set(bench.before) <= found
        bench.on_step = no_step
        if was_killed:
            done = bench.backup(run="rerun" if len(found) == 2 else f"run {bench.now}")
            assert bench.data(done.name) == contents(bench.source)
        else:
            bench.now += DAY
        found = assert_sound(bench, bench.before)
        assert len(found) == 3
        assert os.readlink(bench.path("latest")) == max(found)
        assert set(bench.names()) == {".lock", "latest", *found}
        newest = bench.path(max(found), "data")
        assert contents(newest) == contents(bench.source)
        assert os.path.samefile(newest / "a", bench.path(min(found), "data/a"))  # still linked

    assert each_kill(prepare, lambda bench: bench.backup(), judge) > 25


def test_the_first_backup_killed_at_any_step(fresh):
    def judge(bench, was_killed):
        assert_sound(bench, {}) if bench.folder.exists() else None
        bench.on_step = no_step
        if was_killed:
            bench.backup(run=f"run {bench.now}")
        assert len(assert_sound(bench, {})) == 1

    assert each_kill(lambda at: fresh(at, backups=0), lambda bench: bench.backup(), judge) > 20


def test_a_pruning_killed_at_any_step(fresh):
    def prepare(at):
        bench = fresh(at, backups=3)
        bench.before = {names.name_of(t): contents(bench.path(names.name_of(t), "data")) for t in bench.complete()}
        return bench

    def work(bench):
        with bench.series() as series, series.lock("prune"):
            enter_news(series, bench.now)  # as every action does
            prune(series, Policy(last=1), bench.now)

    def judge(bench, _was_killed):
        newest = max(bench.before)
        assert newest in assert_sound(bench, bench.before)
        bench.on_step = no_step
        work(bench)
        assert assert_sound(bench, bench.before) == {newest}
        assert bench.names() == [".lock", newest, "latest"]

    assert each_kill(prepare, work, judge) > 15


def test_setting_aside_and_accepting_killed_at_any_step(fresh):
    def prepare(at):
        bench = fresh(at, backups=1)
        for name in ("a", "c", "d/b"):
            (bench.source / name).unlink()
        return bench

    def work(bench):
        aside = bench.backup(run="one", shrink_limit=10).name
        with bench.series() as series, series.lock("accept"):
            accept(series, aside, bench.now)

    def judge(bench, was_killed):
        found = assert_sound(bench, {})
        assert names.name_of(NOON) in found
        bench.on_step = no_step
        if was_killed and len(found) == 1:
            work(bench)
        with bench.series() as series:
            series.settle(bench.now)
        found = assert_sound(bench, {})
        assert len(found) == 2
        assert bench.data(max(found)) == contents(bench.source)

    assert each_kill(prepare, work, judge) > 20


def test_discarding_killed_at_any_step(fresh):
    def prepare(at):
        bench = fresh(at, backups=1)
        for name in ("a", "c", "d/b"):
            (bench.source / name).unlink()
        bench.aside = bench.backup(shrink_limit=10).name
        return bench

    def work(bench):
        with bench.series() as series, series.lock("discard"):
            discard(series, bench.aside)

    def judge(bench, _was_killed):
        assert len(assert_sound(bench, {})) == 1
        bench.on_step = no_step
        work(bench)
        with bench.series() as series:
            enter_news(series, bench.now)  # as every action does
            prune(series, Policy(last=1), bench.now)
        assert bench.names() == [".lock", names.name_of(NOON), "latest"]

    assert each_kill(prepare, work, judge) > 5


def test_an_adoption_killed_at_any_step(fresh):
    def prepare(at):
        bench = fresh(at, backups=0)
        bench.old = bench.repository / "rsnapshot"
        for number, name in enumerate(("daily.0", "hourly.1", "hourly.0")):
            tree = bench.old / name / "web1"
            tree.mkdir(parents=True)
            (tree / "file").write_bytes(b"%d" % number)
            os.utime(bench.old / name, (NOON + number, NOON + number))
        bench.before = contents(bench.old)
        return bench

    def work(bench):
        with bench.series() as series, series.lock("adopt"):
            adopt(series, str(bench.old), "web1", bench.now)

    def judge(bench, _was_killed):
        if bench.folder.exists():
            assert_sound(bench, {})
        bench.on_step = no_step
        work(bench)
        found = assert_sound(bench, {})
        assert [bench.data(name) for name in sorted(found)] == [{"file": b"0"}, {"file": b"1"}, {"file": b"2"}]
        assert set(bench.names()) == {".lock", "latest", *found}
        assert contents(bench.old) == bench.before

    assert each_kill(prepare, work, judge) > 30
