# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook restore between two hosts: alpha was backed up on beta, three times, and comes back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, jobs, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files, make_hard_tree
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run, Running
from ansible_collections.longhaul.fleet.tests.support.snapshots import REPOSITORY, backup_tasks, redate
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

DAYS = ("2026-10-30T010000Z", "2026-10-31T010000Z", "2026-11-02T010000Z")
JOB = {"name": "data", "host": "alpha", "src": "/data/src", "repository": {"host": "beta", "path": REPOSITORY}}
# What a host that is not trusted, the default of a restore, may not set.
WITHHELD = re.compile(r"xattr (?:trusted\.|security\.(?!capability))")


class Backup:
    """The backup, and what its playbook restore does."""

    def __init__(self, bed: Testbed, playbooks: Playbooks) -> None:
        self.bed, self.playbooks = bed, playbooks
        self.data = {host: bed.root(host) / "data" for host in bed.hosts}
        self.folder = self.data["beta"] / "backup/alpha/data"

    def make(self, *edits: str) -> None:
        """Make a snapshot of what is there, and one more after each shell command on alpha; they get the DAYS."""
        (self.data["beta"] / "backup").mkdir(mode=0o700)
        tasks = backup_tasks("day0")
        for number, edit in enumerate(edits, 1):
            keep = f"cp -a /data/src /data/day{number - 1} && cd /data/src && {edit}"
            tasks += [{"ansible.builtin.raw": keep, "delegate_to": "alpha"}, *backup_tasks(f"day{number}")]
        self.playbooks.run(tasks, hosts="beta", timeout=900).expect_success()
        redate(self.folder, DAYS[: len(edits) + 1])

    def restore(self, *flags: str, **variables: Any) -> Run:
        """Run the playbook."""
        return self.playbooks.run("longhaul.fleet.restore", *flags, timeout=900, backup_jobs=[JOB], **variables)

    def start(self, **variables: Any) -> Running:
        """Start the playbook."""
        return self.playbooks.start("longhaul.fleet.restore", backup_jobs=[JOB], **variables)

    def refused(self, **variables: Any) -> str:
        """Run the playbook, which must refuse and leave both hosts as they were; gives what it says."""
        before = refusal.everything(self.bed)
        run = self.restore(**variables)
        assert run.rc != 0 and run.failures, run.output
        assert refusal.everything(self.bed) == before
        assert "Traceback" not in run.output and "undefined" not in run.output, run.output
        return run.failures[-1]

    def report(self) -> dict[str, Any]:
        """Return the newest report for programs; there is one for people beside it."""
        newest = self.records()[-1]
        assert newest.with_suffix(".html").exists()
        return json.loads(newest.read_text())

    def records(self) -> list[Path]:
        """Return the reports for programs, the newest last."""
        folder = self.playbooks.inventory.parent / "longhaul-restore"
        return sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture
def backup(hosts: Testbed, playbooks: Playbooks) -> Backup:
    """Nothing is backed up yet."""
    return Backup(hosts, playbooks)


def changed(run: Run) -> bool:
    """Whether any host was changed."""
    return any(one.result.get("changed") for one in run.results)


def three_days(backup: Backup) -> Path:
    """Back up a hard tree three times, in which work/plan is another one each day; give the tree as it is then."""
    source = backup.data["alpha"] / "src"
    # What cp cannot copy is not what this is about.
    make_hard_tree(source, many=30, without=["longer than PATH_MAX"], outside=backup.data["alpha"] / "outside")
    (source / "work").mkdir()
    (source / "work/plan").write_text("first")
    os.link(source / "work/plan", source / "work/plan too")
    make_big_files(source / "work", 4 * MIB)
    backup.make("echo second >work/plan && touch new", "rm -r names && echo third >work/plan")
    return source


@pytest.mark.smoke
def test_what_was_backed_up_comes_back_beside_and_over(hosts: Testbed, backup: Backup) -> None:
    source = three_days(backup)

    # A dry run lists and does nothing.
    before = refusal.everything(hosts)
    dry = backup.restore("--check", "--diff", restore_path="work")
    assert refusal.everything(hosts) == before and "Would be restored" in dry.output
    assert (
        re.search(r"^[<>]f[+]{9} plan$", dry.output, re.MULTILINE)
        and not (backup.playbooks.inventory.parent / "longhaul-restore").exists()
    )

    # Everything, as it was last, beside the original. A rerun finds nothing to do.
    backup.restore()
    beside = backup.data["alpha"] / f"src.restored-{DAYS[2]}"
    left = [line for line in compare.differences(source, beside) if not WITHHELD.search(line)]
    assert left == []
    report = backup.report()
    assert (report["state"], report["result"]["verified"], report["checked"]) == ("restored", "checksum", "contents")
    assert "sync" in report["result"]["phases"]
    restored = json.loads((backup.folder / "history.jsonl").read_text().splitlines()[-1])
    assert (restored["act"], restored["name"]) == ("restored", DAYS[2]) and str(beside.name) in restored["why"]
    before = refusal.everything(hosts)
    assert not changed(backup.restore()) and refusal.everything(hosts) == before

    # One folder and one file, named as they were on the host. A prune leaves what is being restored to the next one.
    hosts.shape("beta", "1mbit")
    restoring = backup.start(restore_when="2026-10-30", restore_path="/data/src/work")
    wait_for(lambda: bool(jobs(hosts, "beta")))
    where = {"repository": REPOSITORY, "host": "alpha", "job": "data"}
    prune = {"name": "Prune", "longhaul.fleet.snapshot": {"action": "prune", "keep": {"last": 2}, **where}}
    pruned = backup.playbooks.run([prune], hosts="beta").expect_success().result("Prune")
    assert restoring.process.poll() is None, restoring.output
    assert (pruned["removed"], pruned["kept"][DAYS[0]]) == ([], ["being read"])
    assert f"{DAYS[0]} is being read by transfer" in pruned["warnings"][0]
    hosts.shape("beta", None)
    restoring.wait().expect_success()
    assert compare.differences(backup.data["alpha"] / "day0/work", source / f"work.restored-{DAYS[0]}") == []

    # Over existing files: first a prediction, then the changes. Extra files stay unless restore_delete is set.
    over = {"restore_when": "2026-10-30", "restore_over": True}
    dry = backup.restore("--check", "--diff", **over)
    assert (
        re.search(r"^[<>]f\S+ work/plan$", dry.output, re.MULTILINE) and (source / "work/plan").read_text() == "third\n"
    )
    assert "*deleting" not in dry.output and (source / "new").exists()
    backup.restore(restore_delete=True, **over).expect_success()
    assert compare.differences(backup.data["alpha"] / "day0", source) == []
    assert backup.report()["delete"]


@pytest.mark.long
def test_the_day_before_another_and_that_of_another_time_zone(backup: Backup) -> None:
    source = three_days(backup)
    # As it was before a day, to another host.
    by_rsync = {"restore_transfer": {"method": "rsync", "trust": "full", "bwlimit": "1G"}}
    backup.restore(restore_when="before 2026-11-01", restore_to="beta", restore_dest="/data/there", **by_rsync)
    assert backup.report()["result"]["method"] == "rsync"
    assert compare.differences(backup.data["alpha"] / "day1", backup.data["beta"] / "there") == []

    # In New York the second snapshot was made in the evening before.
    there = {"restore_when": "2026-10-30", "restore_timezone": "America/New_York", "restore_check": "files"}
    backup.restore(restore_path="work/plan", restore_verify="size", **there).expect_success()
    assert (backup.report()["checked"], backup.report()["result"]["verified"]) == ("files", "size")
    assert (source / f"work/plan.restored-{DAYS[1]}/plan").read_text() == "second\n"


def test_a_symlink_into_the_repository_is_no_destination(backup: Backup) -> None:
    source = backup.data["alpha"] / "src"
    source.mkdir(parents=True, exist_ok=True)
    (source / "file").write_bytes(b"one")
    backup.make()
    (backup.data["beta"] / "shortcut").symlink_to("/data/backup/alpha")
    said = backup.refused(restore_to="beta", restore_dest="/data/shortcut/copy")
    assert "leads to /data/backup/alpha/copy on beta" in said and "spoil the snapshots" in said, said


def test_what_cannot_be_meant_or_is_damaged_is_refused(backup: Backup) -> None:
    source = backup.data["alpha"] / "src"
    (source / "photos").mkdir(parents=True)
    (source / "photos/one.jpg").write_bytes(b"one" * 1000)
    (source / "photos/two.jpg").write_bytes(b"two" * 1000)
    backup.make("touch photos/one.jpg")
    (source / "since then").touch()

    said = backup.refused(restore_path="photo/one.jpg")
    assert "no 'photo/one.jpg'" in said and "photos" in said, said
    said = backup.refused(restore_dest="/data/src")
    assert "restore_over=true" in said and "/data/src is there on alpha and not empty" in said, said
    damage(backup.folder / DAYS[1] / "data/photos/one.jpg")
    damage(backup.folder / DAYS[1] / "data/photos/two.jpg")  # the same file in both
    said = backup.refused(restore_path="photos")
    assert "photos/one.jpg: its contents are" in said and f"intact in {DAYS[0]}" in said, said
    assert "intact in no other snapshot" in said and "restore_damaged=true" in said, said
    backup.restore(restore_path="photos", restore_damaged=True).expect_success()
    assert {one["path"] for one in backup.report()["problems"]} == {"photos/one.jpg", "photos/two.jpg"}

    # An interrupted run is resumed; changes that somebody made in a complete one are not overwritten.
    (source / f"photos.restored-{DAYS[1]}/one.jpg").write_bytes(b"")
    assert "restore_over=true" in backup.refused(restore_path="photos", restore_damaged=True)
    record = backup.records()[-1]
    record.write_text(json.dumps({**json.loads(record.read_text()), "state": "begun"}))
    backup.restore(restore_path="photos", restore_damaged=True).expect_success()
    assert compare.differences(backup.folder / DAYS[1] / "data/photos", source / f"photos.restored-{DAYS[1]}") == []


@pytest.mark.long
def test_a_killed_restore_goes_on_without_ansible_and_a_rerun_attaches_to_it(hosts: Testbed, backup: Backup) -> None:
    source = backup.data["alpha"] / "src"
    make_big_files(source, 8 * MIB)
    backup.make()
    asked = {"restore_dest": "/data/back", "restore_check": "structure"}
    limited = {**asked, "restore_transfer": {"bwlimit": "300k"}}  # it runs yet when the rerun begins
    running = backup.start(**limited)
    wait_for(lambda: bool(jobs(hosts, "beta")), lambda: running.output)
    running.kill()
    running.process.wait()
    assert (backup.report()["state"], bool(jobs(hosts, "beta"))) == ("begun", True)
    rerun = backup.restore(**limited).expect_success()
    assert "attached to the running transfer" in rerun.output and backup.report()["state"] == "restored"
    assert compare.differences(source, backup.data["alpha"] / "back") == []
    record = backup.report()
    assert not changed(backup.restore(**limited)) and backup.report()["identity"] == record["identity"]

    # A failure is shown, and the report has it.
    (backup.data["alpha"] / "back/another").touch()
    over = {"restore_over": True, "restore_delete": True}
    failed = backup.restore(**asked, **over, restore_transfer={"max_delete": 0})
    assert failed.rc and "The restore is not complete: " in failed.failures[-1]
    assert "Restore of alpha, data" in failed.output
    assert backup.report()["state"] == "failed" and "max_delete" in backup.report()["result"]["failure"]


@pytest.mark.long
def test_the_role_restores_on_the_host_that_gets_it_alone(hosts: Testbed, backup: Backup) -> None:
    source = backup.data["alpha"] / "src"
    source.mkdir()
    (source / "file").write_text("content")
    backup.make()
    role = {"name": "Restore", "ansible.builtin.include_role": {"name": "longhaul.fleet.restore"}}
    one = {**role, "vars": {"restore_from": "alpha", "restore_dest": "/data/one"}}
    two = {**role, "vars": {"restore_from": "alpha", "restore_to": "beta", "restore_dest": "/data/two"}}
    backup.playbooks.run([one, two], hosts="all", timeout=900, backup_jobs=[JOB]).expect_success()
    data = backup.data
    assert compare.differences(source, data["alpha"] / "one") == compare.differences(source, data["beta"] / "two") == []
    assert not (data["beta"] / "one").exists() and not (data["alpha"] / "two").exists()

    vouching = {"name": "Vouch", "ansible.builtin.set_fact": {"restore_transfer": {"trust": "full"}, "cacheable": True}}
    run = backup.playbooks.run([vouching, one], hosts="alpha", backup_jobs=[JOB])
    assert run.rc != 0 and "restore_transfer: set among the facts of alpha" in run.failures[-1], run.output
    wrong = {**role, "vars": {"restore_from": "alpha", "restore_check": "all"}}
    run = backup.playbooks.run([wrong], hosts="alpha", backup_jobs=[JOB])
    assert run.rc != 0 and "restore_check" in run.failures[-1] and "contents, files, structure" in run.failures[-1]


def damage(path: Path) -> None:
    """Flip a bit as a disk does: size and times stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
