# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Today's version finishes what an earlier one began: a migration, a backup, a transfer that runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import START_NEW, START_OLD, STOP, Migration
from ansible_collections.longhaul.fleet.tests.support import compare, earlier_commit, leftovers
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, jobs, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SLOW = "16mbit"

migration = test_migrate.migration  # its fixture


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the collections of a control node that has not been upgraded."""
    reason = earlier_commit.why_not()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    return earlier_commit.unpack(tmp_path_factory.mktemp("earlier"))


class ControlNode:
    """The control node of ``playbooks``: first with the earlier version, then with today's."""

    def __init__(self, playbooks: Playbooks, earlier: Path) -> None:
        self._playbooks, self._today = playbooks, playbooks.collections
        playbooks.collections = earlier

    def upgrade(self) -> None:
        """Install today's version."""
        self._playbooks.collections = self._today


@pytest.fixture
def control_node(playbooks: Playbooks, earlier: Path) -> Iterator[ControlNode]:
    yield ControlNode(playbooks, earlier)


def size_of(folder: Path) -> int:
    """Return how many bytes of files a folder has, under any name."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def arrives(folder: Path, size: int = MIB) -> bool:
    """Return whether so many bytes have arrived in a folder, under any name."""
    return size_of(folder) > size


@pytest.mark.long
def test_a_migration_in_the_middle_of_its_first_copy(
    hosts: Testbed, migration: Migration, control_node: ControlNode
) -> None:
    """The control node died during the seed: the copy is taken up, and the switch is made by today's version."""
    source, dest = hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest"
    make_big_files(source / "big", 32 * MIB, count=2)
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[START_NEW], cutover_failed=[START_OLD])
    migration.run(migrate_phase="preflight")
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    hosts.shape("alpha", SLOW)
    running = migration.start(migrate_phase="seed")
    wait_for(lambda: arrives(dest), seconds=120)
    running.kill()
    running.wait()
    control_node.upgrade()
    hosts.shape("alpha", None)

    migration.run(migrate_phase="sync")
    assert test_migrate.serves(hosts, "alpha")
    run = migration.run(migrate_phase="cutover")
    assert not test_migrate.serves(hosts, "alpha") and test_migrate.serves(hosts, "beta")
    hosts.exec("beta", ["/usr/local/bin/app", "stop"])
    assert "downtime: " in run.output and migration.report()["switch"]["done"]
    assert (dest / "big").is_dir() and compare.differences(source / "big", dest / "big") == []
    assert test_migrate.changed(migration.run()) == 0


@pytest.mark.long
def test_a_migration_in_the_middle_of_its_last_pass(
    hosts: Testbed, migration: Migration, control_node: ControlNode
) -> None:
    """The control node died while the source was stopped: the pass is taken up, and the job is switched over."""
    grow = {"host": "source", "command": ["/bin/sh", "-c", f"head -c {32 * MIB} /dev/urandom > /data/src/grown"]}
    migration.jobs[0].update(before_cutover=[STOP, grow], after_cutover=[START_NEW], cutover_failed=[START_OLD])
    migration.run(migrate_phase="sync")
    dest = hosts.root("beta") / "data/dest"
    before = size_of(dest)
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    hosts.shape("alpha", SLOW)
    running = migration.start(migrate_phase="cutover")
    wait_for(lambda: arrives(dest, before + 4 * MIB), seconds=120)
    running.kill()
    running.wait()
    assert not test_migrate.serves(hosts, "alpha")
    control_node.upgrade()
    hosts.shape("alpha", None)

    migration.run(migrate_phase="cutover")
    assert not test_migrate.serves(hosts, "alpha") and test_migrate.serves(hosts, "beta")
    hosts.exec("beta", ["/usr/local/bin/app", "stop"])
    assert migration.report()["switch"]["done"]
    assert test_migrate.changed(migration.run()) == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["command", "tasks"])
def test_a_migration_in_the_middle_of_its_switch(
    hosts: Testbed, migration: Migration, control_node: ControlNode, kind: str
) -> None:
    """A hook of the switch failed: those that ran before it are not run again."""
    mark = {"host": "dest", "command": ["/bin/sh", "-c", "echo once >> /data/marks"]}
    look = ["/bin/ls", "/data/mended"]
    task = [{"name": "Look", "ansible.builtin.command": {"argv": look}, "changed_when": False}]
    (migration.playbooks.inventory.parent / "look.yml").write_text(json.dumps(task), encoding="utf-8")
    fails = {"host": "dest", **({"command": look} if kind == "command" else {"tasks": "look.yml"})}
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[mark, fails], cutover_failed=[START_OLD])
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    migration.run_into_failure(migrate_phase="cutover")
    marks = hosts.root("beta") / "data/marks"
    assert marks.read_text() == "once\n" and not test_migrate.serves(hosts, "alpha")
    control_node.upgrade()

    (hosts.root("beta") / "data/mended").touch()
    migration.run(migrate_phase="cutover")
    assert marks.read_text() == "once\n"
    assert migration.report()["switch"]["done"] and not migration.report()["failure"]
    assert compare.differences(*test_migrate.trees(hosts)) == []
    assert test_migrate.changed(migration.run()) == 0


@pytest.mark.long
def test_a_backup_that_was_interrupted(hosts: Testbed, playbooks: Playbooks, control_node: ControlNode) -> None:
    """The unfinished snapshot is resumed, and the older ones are read, checked, linked to and restored."""
    source = hosts.root("alpha") / "data/src"
    make_big_files(source, 2 * MIB, count=20)
    os.link(source / os.listdir(source)[0], source / "other name")
    backups = Backups(hosts, playbooks)
    backups.jobs = [backups.job("data", method="stream", keep={"last": 3}, check_subset="1/1")]
    backups.run()
    (first,) = backups.snapshots()
    shutil.copytree(source, source.with_name("day0"), symlinks=True, copy_function=os.link)
    make_big_files(source / "more", 32 * MIB, count=2)
    hosts.shape("alpha", SLOW)
    running = backups.start()
    arriving = backups.repository / "alpha/data/.unfinished/data"
    wait_for(lambda: arriving.is_dir() and arrives(arriving / "more"), seconds=120)
    running.kill()
    running.wait()
    for process in jobs(hosts, "alpha"):
        hosts.kill("alpha", process)
    control_node.upgrade()
    hosts.shape("alpha", None)

    backups.run()
    first, second = backups.snapshots()
    assert compare.differences(source, second) == []
    assert compare.differences(source.with_name("day0"), first, ignore=["links"]) == []
    assert os.path.samefile(first / "other name", second / "other name")
    record = backups.record()
    assert record["resumed"] and record["check"]["sound"] and record["failures"] == []
    backups.run()
    assert len(backups.snapshots()) == 3

    job = {"name": "data", "host": "alpha", "src": "/data/src", "repository": {"host": "beta", "path": REPOSITORY}}
    playbooks.run(
        "longhaul.fleet.restore",
        backup_jobs=[job],
        restore_from="alpha",
        restore_job="data",
        restore_when=first.parent.name,
        restore_dest="/data/back",
    ).expect_success()
    assert compare.differences(first, hosts.root("alpha") / "data/back", ignore=["links"]) == []


MOVE = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none", "method": "stream"}
SHOW = {"name": "Show", "longhaul.fleet.transfer_info": {}, "delegate_to": "{{ item }}", "loop": ["alpha", "beta"]}


def is_safe(folder: Path) -> bool:
    """Return whether a range of a large file has arrived and will not be asked for again."""
    return any(path.stat().st_size for path in folder.rglob("*.ranges"))


def slow_start(hosts: Testbed, playbooks: Playbooks) -> str:
    """Start a transfer that nobody waits for; return its id when a range of it is safe."""
    make_big_files(hosts.root("alpha") / "data/src", 64 * MIB, count=3)
    hosts.shape("alpha", SLOW)
    task = {"name": "Start", "longhaul.fleet.transfer": {**MOVE, "wait": False}}
    started = playbooks.run([task], hosts="beta").expect_success().result("Start")
    wait_for(lambda: is_safe(hosts.root("beta") / "data/dest"), seconds=60)
    return started["transfer_id"]


def test_a_transfer_that_runs(hosts: Testbed, playbooks: Playbooks, control_node: ControlNode) -> None:
    """It is shown, and the same task collects it."""
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    identity = slow_start(hosts, playbooks)
    control_node.upgrade()
    shown = playbooks.run([SHOW], hosts="beta").expect_success().result("Show")["results"]
    for one in shown:
        (job,) = one["transfers"]
        assert (job["id"], job["method"]) == (identity, "stream") and job["state"] in ("running", "serving"), job
    hosts.shape("alpha", None)
    moved = playbooks.run([{"name": "Move", "longhaul.fleet.transfer": MOVE}], hosts="beta").expect_success()
    result = moved.result("Move")
    assert result["state"] == "finished" and result["changed"] and result["bytes_sent"] >= 64 * MIB, result
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []
    again = playbooks.run([{"name": "Move", "longhaul.fleet.transfer": MOVE}], hosts="beta").expect_success()
    assert not again.result("Move")["changed"]
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before, json.dumps(result)


@pytest.mark.long
def test_a_transfer_that_is_stopped(hosts: Testbed, playbooks: Playbooks, control_node: ControlNode) -> None:
    """Today's transfer_control pauses and stops it, and what has arrived is not sent again."""
    identity = slow_start(hosts, playbooks)
    control_node.upgrade()
    for state in ("paused", "cancelled"):
        control = {"longhaul.fleet.transfer_control": {"id": identity, "state": state}}
        playbooks.run([{"name": "Control", **control}], hosts="alpha,beta").expect_success()
    assert not any("engine.pyz" in " ".join(one.argv) for host in hosts.hosts for one in hosts.processes(host))
    hosts.shape("alpha", None)
    moved = playbooks.run([{"name": "Move", "longhaul.fleet.transfer": MOVE}], hosts="beta").expect_success()
    assert 0 < moved.result("Move")["bytes_sent"] < 64 * MIB
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []
