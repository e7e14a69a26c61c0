# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks under ansible-runner, as AWX and execution environments run them, against real hosts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.runner import RUNNER, PrivateData, kill
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

pytestmark = pytest.mark.skipif(
    not Path(RUNNER).exists(), reason="cannot run here: the oldest ansible-core is tested without ansible-runner"
)

REPORTS = "longhaul_migrate_summary"


def job(number: int, **options: Any) -> dict[str, Any]:
    """Return a job of alpha and beta; each has trees of its own."""
    ends = {"src_host": "alpha", "src": f"/data/src{number}/", "dest_host": "beta", "dest": f"/data/dest{number}"}
    return {"name": f"n{number}", **ends, **options}


def fill(bed: Testbed, number: int, size: int = 0) -> Path:
    """Make a tree on alpha."""
    tree = bed.root("alpha") / f"data/src{number}"
    tree.mkdir(parents=True)
    for name in range(10):
        (tree / f"file{name}").write_text(f"{number} {name}")
    if size:
        make_big_files(tree / "big", size, count=2)
    return tree


def size_of(tree: Path) -> int:
    """Return how many bytes of files take room in a tree, whether they are whole or not."""
    total = 0
    for path in tree.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a partial file gets its name
            total += path.lstat().st_blocks * 512
    return total


def is_moved(bed: Testbed, number: int) -> bool:
    source = bed.root("alpha") / f"data/src{number}"
    return compare.differences(source, bed.root("beta") / f"data/dest{number}") == []


@pytest.fixture(name="data")
def _data(hosts: Testbed, tmp_path: Path) -> Iterator[PrivateData]:
    inventory = hosts.inventory(tmp_path / "hosts.yml", extra={"ansible_pipelining": True})
    made = PrivateData(tmp_path / "private", inventory, collections_folder())
    yield made
    made.end()


@pytest.mark.long
def test_a_migration_with_an_empty_home_and_an_inventory_that_cannot_be_written(
    hosts: Testbed, data: PrivateData
) -> None:
    fill(hosts, 0)
    before = refusal.everything(hosts)
    refused = data.run("longhaul.fleet.migrate", migrate_jobs=[job(0)], migrate_report_dir=f"{data.folder}/inventory/x")
    assert refused.rc and "Nothing was done" in refused.output and "Read-only file system" in refused.output
    assert "Set longhaul_state_dir" in refused.output and "migrate_report_dir" in refused.output
    assert refusal.everything(hosts) == before

    checked = data.run("longhaul.fleet.migrate", "--check", migrate_jobs=[job(0)]).expect_success().stats[REPORTS]
    assert (checked["check_mode"], checked["jobs"], checked["entries"], checked["report"]) == (True, 1, 11, "")
    assert refusal.everything(hosts) == before and not (data.folder / "longhaul-migrate").exists()

    made = data.run("longhaul.fleet.migrate", migrate_jobs=[job(0)], migrate_phase="cutover").expect_success()
    assert is_moved(hosts, 0) and "Traceback" not in made.output
    summary = made.stats[REPORTS]
    assert (summary["jobs"], summary["switched_over"], summary["failed"], summary["phase"]) == (1, 1, 0, "cutover")
    assert summary["bytes_sent"] == summary["bytes"] == 30 and summary["failed_jobs"] == []
    assert summary["report"] == str(data.folder / "longhaul-migrate/report.html") and Path(summary["report"]).exists()

    # The folder of the inventory has nothing new in it, which Ansible would read as an inventory.
    again = data.run("longhaul.fleet.migrate", migrate_jobs=[job(0)], migrate_phase="cutover").expect_success()
    assert [path.name for path in (data.folder / "inventory").iterdir()] == ["hosts.yml"]
    assert "Skipping" not in again.output and again.stats[REPORTS]["switched_over"] == 1
    compared = data.run("longhaul.fleet.verify", migrate_jobs=[job(0)]).expect_success()
    found = compared.stats["longhaul_verify_summary"]
    assert (found["jobs"], found["identical"], found["failed"], found["entries"]) == (1, 1, 0, 11)
    (hosts.root("beta") / "data/dest0/file3").write_text("x x")
    different = data.run("longhaul.fleet.verify", migrate_jobs=[job(0)])
    assert different.rc and different.stats["longhaul_verify_summary"]["failed_jobs"][0]["name"] == "n0"
    assert different.output.count("file3: ") == 1, different.output


@pytest.mark.long
def test_a_migration_by_transmit_worker_and_process(hosts: Testbed, data: PrivateData, tmp_path: Path) -> None:
    """With a playbook of the project, a job that cannot be done, and a folder that lasts on the execution node."""
    fill(hosts, 0)
    fill(hosts, 1)
    (data.folder / "project/move.yml").write_text("- import_playbook: longhaul.fleet.migrate\n")
    jobs = [job(0), job(1), job(2)]
    state = {"longhaul_state_dir": str(tmp_path / "lasting")}
    moved = data.carry("move.yml", tmp_path / "node1", migrate_jobs=jobs, **state)
    assert moved.rc and is_moved(hosts, 0) and is_moved(hosts, 1)
    summary = moved.stats[REPORTS]
    (failed,) = summary["failed_jobs"]
    assert (summary["jobs"], summary["failed"], failed["name"]) == (3, 1, "n2")
    assert "/data/src2/ does not exist" in failed["reason"] and "run the same command again" in failed["next"]
    at_the_end = moved.output.rpartition("TASK [")[2]
    assert at_the_end.count("/data/src2/ does not exist") == 1 and "1 of 3 jobs failed: n2" in at_the_end

    fill(hosts, 2)
    rest = data.carry("move.yml", tmp_path / "node2", migrate_jobs=jobs, **state).expect_success()
    assert is_moved(hosts, 2) and rest.stats[REPORTS]["failed"] == 0
    assert rest.stats[REPORTS]["report"] == str(tmp_path / "lasting/longhaul-migrate/report.html")


@pytest.mark.long
def test_without_a_lasting_folder_a_copy_is_made_and_what_was_switched_over_is_left_alone(
    hosts: Testbed, data: PrivateData, tmp_path: Path
) -> None:
    source = fill(hosts, 0)
    data.carry("longhaul.fleet.migrate", tmp_path / "node1", migrate_jobs=[job(0)]).expect_success()
    (source / "later").write_text("later")
    more = {"migrate_jobs": [job(0)], "migrate_phase": "cutover"}
    second = data.carry("longhaul.fleet.migrate", tmp_path / "node2", **more).expect_success().stats[REPORTS]
    assert is_moved(hosts, 0) and (second["switched_over"], second["bytes_sent"]) == (1, 5)
    (source / "not for the new host").touch()
    third = data.carry("longhaul.fleet.migrate", tmp_path / "node3", **more)
    assert third.rc and "was switched over" in third.stats[REPORTS]["failed_jobs"][0]["reason"]
    assert not (hosts.root("beta") / "data/dest0/not for the new host").exists()


def test_a_backup_and_a_restore(hosts: Testbed, data: PrivateData) -> None:
    tree = fill(hosts, 0)
    (hosts.root("beta") / "data/backup").mkdir(mode=0o700)
    repository = {"host": "beta", "path": "/data/backup"}
    backup = {"host": "alpha", "repository": repository, "keep": {"last": 3}}
    jobs = [{"name": "data", "src": "/data/src0", **backup}, {"name": "gone", "src": "/data/gone", **backup}]
    made = data.run("longhaul.fleet.backup", backup_jobs=jobs)
    summary = made.stats["longhaul_backup_summary"]
    assert made.rc and (summary["made"], summary["ok"], summary["failed"], summary["bytes_new"]) == (2, 1, 1, 30)
    (failed,) = summary["failed_jobs"]
    assert failed["name"] == "alpha/gone" and "there is nothing on alpha" in failed["reason"]
    assert "backup_only=alpha/gone" in failed["next"]
    at_the_end = made.output.rpartition("TASK [")[2]
    assert at_the_end.count("there is nothing on alpha") == 1 and "alpha/data" not in at_the_end
    assert "backup_only=alpha/gone" in (data.folder / "longhaul-backup/report.html").read_text()

    (tree / "file1").unlink()
    asked = {"backup_jobs": jobs[:1], "restore_dest": "/data/restored"}
    restored = data.run("longhaul.fleet.restore", **asked).expect_success()
    summary = restored.stats["longhaul_restore_summary"]
    assert (summary["state"], summary["entries"], summary["failure"]) == ("restored", 11, "")
    assert Path(summary["report"]).exists() and (hosts.root("alpha") / "data/restored/file1").read_text() == "0 1"
    refused = data.run("longhaul.fleet.restore", **asked, restore_report_dir=f"{data.folder}/inventory/x")
    assert refused.rc and "Nothing was done" in refused.output and "restore_report_dir" in refused.output


@pytest.mark.long
def test_what_is_published_of_a_part_of_the_jobs(hosts: Testbed, data: PrivateData) -> None:
    """By the names of destinations or of jobs, as the fields of a template have them: each is one text."""
    refusal.add_hosts(data.folder / "inventory/hosts.yml", {"new1": ("beta", {}), "new2": ("beta", {})})
    for number in range(3):
        fill(hosts, number)
    asked = {"migrate_jobs": [job(0), job(1, dest_host="new1"), job(2, dest_host="new2")]}
    limited = data.run("longhaul.fleet.migrate", "--limit", "localhost,new1", **asked).expect_success()
    arrived = hosts.root("beta") / "data"
    assert [path.name for path in arrived.glob("dest*")] == ["dest1"] and is_moved(hosts, 1)
    assert (limited.stats[REPORTS]["jobs"], limited.stats[REPORTS]["bytes_sent"]) == (1, 30)
    named = data.run("longhaul.fleet.migrate", migrate_only="n1,n2", **asked).expect_success()
    assert {path.name for path in arrived.glob("dest*")} == {"dest1", "dest2"} and is_moved(hosts, 2)
    assert (named.stats[REPORTS]["jobs"], named.stats[REPORTS]["bytes_sent"]) == (2, 30 + 30)
    for options, variables, found in ((("--limit", "localhost,beta,new1"), {}, 2), ((), {"migrate_only": "n1"}, 1)):
        compared = data.run("longhaul.fleet.verify", *options, **asked, **variables)
        summary = compared.stats["longhaul_verify_summary"]
        assert (summary["jobs"], summary["identical"], bool(compared.rc)) == (found, 1, found > 1), compared.output
    refused = data.run("longhaul.fleet.migrate", "--limit", "new1", **asked)
    assert refused.rc and "Type --limit 'localhost,new1'" in refused.output and refused.stats == {}


@pytest.mark.long
def test_tuning(hosts: Testbed, data: PrivateData) -> None:
    asked = {
        "tune_pairs": [{"src_host": "alpha", "dest_host": "beta"}],
        "tune_measure_mib": 32,
        "tune_measure_seconds": 5,
    }
    before = refusal.everything(hosts)
    checked = data.run("longhaul.fleet.tune", "--check", **asked).expect_success()
    assert refusal.everything(hosts) == before
    found = {}
    for said in (checked, data.run("longhaul.fleet.tune", "--limit", "localhost,alpha", **asked).expect_success()):
        (found,) = said.stats["longhaul_tune_summary"]["pairs"].values()
        assert [found["path"][side]["verdict"] for side in ("src_host", "dest_host")] == ["passed", "passed"]
    assert found["before"] and found["after"], found
    drop_ins = [hosts.root(name) / "etc/ssh/ssh_config.d/10-longhaul.conf" for name in hosts.hosts]
    assert [path.exists() for path in drop_ins] == [True, False], "the limit counts"
    drop_ins[0].unlink()
    assert refusal.everything(hosts) == before


@pytest.mark.parametrize(
    "playbook", ["migrate", *(pytest.param(one, marks=pytest.mark.long) for one in ("verify", "backup"))]
)
def test_a_slice_of_the_inventory_is_refused_with_what_to_do(hosts: Testbed, data: PrivateData, playbook: str) -> None:
    """Each slice of AWX has a part of the hosts, and with some luck both of one job."""
    inventory = data.folder / "inventory/hosts.yml"
    refusal.add_hosts(inventory, {"old1": ("alpha", {}), "new1": ("beta", {})})
    whole = json.loads(inventory.read_text())
    jobs = [job(0), job(1, src_host="old1", dest_host="new1")]
    backups = [
        {"name": "data", "host": one["src_host"], "src": "/data/src0", "keep": {"last": 1},
         "repository": {"host": one["dest_host"], "path": "/data/backup"}} for one in jobs
    ]  # fmt: skip
    before = refusal.everything(hosts)
    for kept in (["alpha", "beta"], ["alpha", "old1"]):
        part = {name: whole["all"]["hosts"][name] for name in kept}
        inventory.write_text(json.dumps({"all": {**whole["all"], "hosts": part}}))
        sliced = data.run(f"longhaul.fleet.{playbook}", migrate_jobs=jobs, backup_jobs=backups, awx_job_id=7)
        assert sliced.rc, sliced.output
        for word in ("not valid, and nothing was done", "hosts of the jobs are missing", "job slicing"):
            assert word in sliced.output, sliced.output
        assert ("backup_only" if playbook == "backup" else "migrate_only") in sliced.output
    assert refusal.everything(hosts) == before and not (data.folder / f"longhaul-{playbook}").exists()


@pytest.mark.long
def test_four_workers_with_a_part_of_the_jobs_each_and_one_of_them_is_killed(
    hosts: Testbed, data: PrivateData, tmp_path: Path
) -> None:
    for number in range(8):
        fill(hosts, number, size=8 * MIB if number == 5 else 0)
    done = ["/bin/sh", "-c", 'echo "$1" >>/data/switched', "hook"]
    jobs = [job(number, after_cutover=[{"host": "dest", "command": [*done, f"n{number}"]}]) for number in range(8)]
    given = {"migrate_jobs": jobs, "migrate_phase": "cutover", "longhaul_state_dir": str(tmp_path / "lasting")}
    parts = [[f"n{number}", f"n{number + 4}"] for number in range(4)]
    inventory = data.folder / "inventory/hosts.yml"
    workers = [PrivateData(tmp_path / f"worker{number}", inventory, collections_folder()) for number in range(4)]
    hosts.shape("alpha", "6mbit")
    try:
        started = [
            worker.start("longhaul.fleet.migrate", migrate_only=part, **given)
            for worker, part in zip(workers, parts, strict=True)
        ]
        arriving = hosts.root("beta") / "data/dest5"
        wait_for(lambda: arriving.is_dir() and size_of(arriving) > MIB)
        kill(started[1][0])
        hosts.shape("alpha", None)
        for number in (0, 2, 3):
            process, ident = started[number]
            log = workers[number].folder / f"{ident}.log"
            assert process.wait(240) == 0, log.read_text()
        assert not (hosts.root("beta") / "data/switched").read_text().count("n5")
        rerun = workers[1].run("longhaul.fleet.migrate", migrate_only=parts[1], **given).expect_success()
    finally:
        hosts.shape("alpha", None)
        for worker in workers:
            worker.end()
    assert rerun.stats[REPORTS]["switched_over"] == 2
    switched = (hosts.root("beta") / "data/switched").read_text().split()
    assert sorted(switched) == [one["name"] for one in jobs], "each job is switched over once"
    assert all(is_moved(hosts, number) for number in range(8))
    report = Outline.of((tmp_path / "lasting/longhaul-migrate/report.html").read_text()).plain
    assert (
        "8 of 8 switched over." in report
        and len(re.findall(r"^\| n\d \S+ → .* switched over ", report, re.MULTILINE)) == 8
    )
