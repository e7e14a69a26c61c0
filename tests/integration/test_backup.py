# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole backups between two hosts: days, interruptions, full disks, clients that fail, mistakes, reports."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.answering_python import add_to_answers, touching
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, jobs, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.snapshots import make_snapshot
from ansible_collections.longhaul.fleet.tests.testbed import Testbed


def fill(bed: Testbed, name: str = "src") -> Path:
    """Make a small tree on alpha and give its path."""
    tree = bed.root("alpha") / "data" / name
    for number in range(30):
        (tree / f"folder{number % 3}").mkdir(parents=True, exist_ok=True)
        (tree / f"folder{number % 3}" / f"file{number}").write_text(f"content {number}")
    os.link(tree / "folder0/file0", tree / "folder1/other name")
    (tree / "folder2/link").symlink_to("file2")
    os.chown(tree / "folder0/file3", 4321, 8765)
    return tree


def edit(tree: Path, day: int) -> None:
    """Do to a tree what a day does."""
    (tree / f"folder0/new of day {day}").write_text(f"day {day}")
    (tree / "folder1/file1").write_text(f"content of day {day}")
    (tree / f"folder2/file{2 + 3 * day}").unlink()


@pytest.fixture
def backups(hosts: Testbed, playbooks: Playbooks) -> Iterator[Backups]:
    """A job that backs up a small tree of alpha into a repository on beta; the host gamma is alpha, too."""
    fill(hosts)
    return Backups(hosts, playbooks, clients=("alpha", "gamma"))


@pytest.mark.smoke
def test_days(hosts: Testbed, backups: Backups) -> None:
    source = hosts.root("alpha") / "data/src"
    # Symbolic links are counted by rsync and not by stream, and without a comparison the sum of bytes must be right.
    several = {"src": ["/data/src", "/data/more"], "method": "rsync", "trust": "full", "verify": "none"}
    backups.jobs = [
        backups.job("data", check_subset="1/2", stale_after="1d"),
        backups.job("several", keep={"last": 1}, check_subset="1/2", check_level="files", **several),
    ]
    fill(hosts, "more")
    before = refusal.everything(hosts)
    progress = backups.folder.parent / "progress.jsonl"
    checked = backups.run("--check", longhaul_progress_file=str(progress))
    assert refusal.everything(hosts) == before and not backups.folder.exists() and not progress.exists()
    assert checked.output.count("would send") == 3

    # Only the client can connect, as the variable says for all jobs on the first day, and each job on the second.
    hosts.block("alpha", reject=True)
    directions: list[dict[str, Any]] = [{"backup_direction": "push"}, {}]
    textfile = backups.folder.parent / "metrics/backup.prom"
    for day in range(2):
        backups.run(backup_textfile=str(textfile), **directions[day])
        backups.jobs = [{**job, "direction": "push"} for job in backups.jobs]
        hosts.exec("alpha", ["cp", "-a", "/data/src", f"/data/day{day}"])
        edit(source, day)
    kept = backups.snapshots()
    assert len(kept) == 2 and os.readlink(kept[-1].parents[1] / "latest") == kept[-1].parent.name
    for day, snapshot in enumerate(kept):
        assert compare.differences(source.with_name(f"day{day}"), snapshot) == []
    assert os.path.samefile(kept[0] / "folder0/file0", kept[1] / "folder1/other name")
    assert not os.path.samefile(kept[0] / "folder1/file1", kept[1] / "folder1/file1")
    assert (kept[0] / "folder0/file3").stat().st_uid == 4321
    (both,) = backups.snapshots("several")
    assert compare.differences(source.with_name("day1"), both / "src") == []
    assert compare.differences(source.with_name("more"), both / "more") == []

    hosts.unblock("alpha")
    assert backups.record()["check"]["sound"] and backups.record()["check"]["parts"] == [1]
    names_only = backups.record("several")["check"]
    assert backups.record()["check"]["files_read"] and names_only["entries"] and not names_only["files_read"]
    record, other = backups.record(), backups.record("several")
    assert (record["figures"]["new_files"], record["figures"]["gone"]) == (2, 1)
    assert record["transfers"][0]["verified"] == "size" and record["failures"] == [] and not record["resumed"]
    assert other["transfers"][1]["method"] == "rsync" and len(other["removed"]) == 1
    health = backups.health()
    assert [(one["state"], one["snapshots"], one["why"]) for one in health.values()] == [("ok", 2, []), ("ok", 1, [])]
    labels = f'host="alpha",job="data",repository="beta:{REPOSITORY}"'
    lines = textfile.read_text().splitlines()
    assert f"longhaul_backup_healthy{{{labels}}} 1" in lines
    assert f"longhaul_backup_snapshots{{{labels}}} 2" in lines
    assert f'longhaul_backup_state{{{labels},state="failed"}} 0' in lines
    assert textfile.stat().st_mode & 0o777 == 0o644 and os.listdir(textfile.parent) == [textfile.name]
    assert "alpha/several" in (backups.folder / "report.html").read_text()
    made = [json.loads(line) for line in (kept[0].parents[1] / "history.jsonl").read_text().splitlines()]
    assert [(one["act"], one["name"]) for one in made] == [("made", one.parent.name) for one in kept]
    assert all(one["by"].endswith(f"@{platform.node()}") and one["job"] == "alpha/data" for one in made)


@pytest.mark.long
def test_damage_that_a_check_found_is_healed_by_the_next_run(hosts: Testbed, backups: Backups) -> None:
    source = hosts.root("alpha") / "data/src"
    trusting = {"trust": "full", "method": "rsync"}
    several = {"src": ["/data/src", "/data/more"], "check_subset": "1/1"}
    fill(hosts, "more")
    backups.jobs = [backups.job("data", check_subset="1/1"), backups.job("several", **several, **trusting)]
    backups.run()
    for name, path in (("data", "folder1/file1"), ("several", "src/folder1/file1"), ("several", "more/folder1/file1")):
        file = backups.snapshots(name)[-1] / path
        status = file.stat()
        file.write_bytes(bytes(status.st_size))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    reason = backups.run_into_failure()
    assert "'folder1/file1' in" in reason and "'more/folder1/file1' in" in reason
    backups.run()
    for name, count in (("data", "1 file"), ("several", "2 files")):
        record = backups.record(name)
        assert any(note.startswith(f"healed {count}, in which a check") for note in record["notes"])
        assert any("known damage in older snapshots" in note for note in record["notes"])
        assert (record["failures"], record["figures"]["healed"]) == ([], int(count[0]))
        old, new = backups.snapshots(name)[-2:]
        root = new if name == "data" else new / "src"
        assert compare.differences(source, root) == []
        assert os.path.samefile(root / "folder0/file0", (old if name == "data" else old / "src") / "folder0/file0")
    assert {one["state"] for one in backups.health().values()} == {"ok"}


@pytest.mark.long
def test_what_fails_stops_nothing_else_and_is_gone_on_with(hosts: Testbed, backups: Backups, tmp_path: Path) -> None:
    """Two full disks, a symbolic link, a client that is not there, a client that dies half-way, and hooks that fail."""
    refusal.add_hosts(backups.playbooks.inventory, {"closed": ("alpha", {"ansible_port": 9})})
    big, slow = hosts.root("alpha") / "data/big", hosts.root("alpha") / "data/slow"
    make_big_files(big, 4 * MIB, count=2)
    make_big_files(slow, 32 * MIB, count=2)
    (hosts.root("beta") / "data/link").symlink_to(REPOSITORY)
    hosts.exec("beta", ["mkdir", "/data/small"])
    hosts.exec("beta", ["mount", "-t", "tmpfs", "-o", "size=2m", "none", "/data/small"])
    # Most of this source is in an earlier snapshot, so that it begins; the disk gets full while the rest arrives.
    growing, tight = hosts.root("alpha") / "data/growing", hosts.root("beta") / "data/tight"
    make_big_files(growing, 6 * MIB, count=6)
    tight.mkdir()
    hosts.exec("beta", ["mount", "-t", "tmpfs", "-o", "size=10m", "none", "/data/tight"])
    made = tmp_path / "made"
    made.mkdir(mode=0o700)
    earlier = tight / make_snapshot(made, growing, job="filled").relative_to(made)
    subprocess.run(["cp", "-a", f"{made}/.", tight], check=True)
    make_big_files(growing / "more", 6 * MIB, count=6)
    touch = ["/usr/bin/touch", "/data/thawed"]
    lose = "- name: Lose a host\n  ansible.builtin.ping:\n  delegate_to: closed\n"
    (backups.playbooks.inventory.parent / "lose.yml").write_text(lose)
    wave = "- name: Wave\n  ansible.builtin.command: /usr/bin/touch /data/waved\n"
    (backups.playbooks.inventory.parent / "wave.yml").write_text(wave)
    backups.jobs = [
        backups.job("lost", before=[{"tasks": "lose.yml"}], after=[{"command": ["/usr/bin/touch", "/data/revived"]}]),
        backups.job("linked", repository={"host": "beta", "path": "/data/link"}),
        backups.job("full", src="/data/big", repository={"host": "beta", "path": "/data/small"}),
        backups.job("gone", host="closed"),
        backups.job("hooked", before=[{"command": ["/bin/ls", "/data/mended"]}], after=[{"command": touch}]),
        # With a hook, since what has none is tried again.
        backups.job("dies", src="/data/slow", host="gamma", bwlimit="2M", after=[{"command": ["/bin/true"]}]),
        backups.job("filled", src="/data/growing", repository={"host": "beta", "path": "/data/tight"}),
        backups.job("data", after=[{"tasks": "wave.yml"}]),  # behind the one that loses its host
    ]
    running = backups.start(backup_concurrency=7)
    arriving = backups.repository / "gamma/dies/.unfinished/data"
    wait_for(lambda: arriving.is_dir() and _size(arriving) > MIB)
    _kill_transfer(hosts, "/data/slow")
    run = running.wait()
    assert run.rc != 0 and "Traceback" not in run.output and "undefined" not in run.output, run.output
    said = run.failures[-1]
    for words in (
        ("alpha/linked failed: begin:", "/data/link is a symbolic link"),
        ("alpha/full failed: transfer:", "has room for 2.0 MiB", "Make room"),
        ("closed/gone failed: transfer: closed: ",),
        ("alpha/hooked failed: hook before:", "/data/mended"),
        ("gamma/dies failed: transfer:",),
        ("alpha/filled failed: transfer:", "disk is full", "mounted at /data/tight", "Make room there"),
        ("alpha/lost failed: hook before: ", "a host could not be reached, so Ansible ended its tasks"),
    ):
        for word in words:
            assert word in said, f"{word!r} is missing in:\n{said}"
    assert "alpha/data" not in said and len(backups.snapshots()) == 1
    for made in ("thawed", "revived", "waved"):  # the hooks after run whatever happened
        assert (hosts.root("alpha") / "data" / made).exists()
    assert backups.names("dies", "gamma") == [".unfinished"] and backups.names("hooked") == [".unfinished"]
    assert [one["state"] for one in backups.health().values()] == ["failed"] * 7 + ["ok"]

    # What there was is as it was.
    assert sorted(os.listdir(earlier.parents[1])) == [
        *(".lock", ".unfinished", earlier.parent.name, "history.jsonl", "latest"),
    ]
    assert os.readlink(earlier.parents[1] / "latest") == earlier.parent.name
    assert compare.differences(growing, earlier, skip=[b"", b"more"]) == []

    (hosts.root("alpha") / "data/mended").touch()
    for disk in ("small", "tight"):
        hosts.exec("beta", ["mount", "-o", "remount,size=80m", f"/data/{disk}"])
    backups.jobs[5].pop("bwlimit")
    again = backups.start(backup_concurrency=7, backup_only=["full", "hooked", "gamma/dies", "filled"])
    again = again.wait()
    small = hosts.root("beta") / "data/small/alpha/full/latest"
    assert compare.differences(big, small.parent / os.readlink(small) / "data") == []
    filled = earlier.parents[1] / os.readlink(earlier.parents[1] / "latest")
    assert compare.differences(growing, filled / "data") == []
    for disk in ("small", "tight"):
        hosts.exec("beta", ["umount", "--lazy", f"/data/{disk}"])
    again.expect_success()
    assert compare.differences(slow, backups.snapshots("dies", "gamma")[0]) == []
    assert backups.record("dies", "gamma")["resumed"] and backups.record("full")["resumed"]
    assert backups.record("filled")["resumed"] and backups.record("filled")["snapshot"] == filled.name


@pytest.mark.long
def test_a_run_whose_control_node_was_killed_is_gone_on_with(hosts: Testbed, backups: Backups) -> None:
    """Its transfer is attached to while it runs, kept away from other control nodes, and completed by the next run."""
    source = hosts.root("alpha") / "data/src"
    make_big_files(source / "big", 64 * MIB, count=2)
    hosts.shape("alpha", "1mbit")
    first = backups.start()
    arriving = backups.repository / "alpha/data/.unfinished/data"
    wait_for(lambda: arriving.is_dir() and _size(arriving) > MIB // 4)
    assert first.process.poll() is None, first.output

    here = backups.run_into_failure()
    assert "alpha/data is busy: another run (process" in here and "Wait for it to end" in here, here
    other = {"backup_report_dir": str(backups.folder.with_name("another node"))}
    for flags in ((), ("--check",)):
        there = backups.run_into_failure(*flags, **other).replace("\n", " ")
        assert "alpha/data is busy: " in there and "has been working on job alpha/data for" in there, there
        assert re.search(r"which is in 1[0-4] min", there) and "backup_takeover=true only if" in there, there
    assert not backups.names("data")[:-1] and not (backups.folder / "jobs").exists()
    assert first.process.poll() is None, first.output
    first.kill()
    first.process.wait()
    assert backups.names() == [".unfinished"]

    rerun = backups.start()
    wait_for(lambda: "attached to the running transfer" in rerun.output)
    hosts.shape("alpha", None)
    rerun.wait().expect_success()
    (snapshot,) = backups.snapshots()
    assert compare.differences(source, snapshot) == []
    record = backups.record()
    assert record["resumed"] and record["transfers"][0]["attached"] and record["snapshot"] == snapshot.parent.name


def test_a_source_in_use_and_hooks_that_make_what_is_backed_up(hosts: Testbed, backups: Backups) -> None:
    write = "import time\nfor n in range(10**6):\n    open('/data/src/log', 'a').write('line')\n    time.sleep(0.1)\n"
    hosts.popen("alpha", ["/usr/bin/python3", "-c", write])
    wait_for((hosts.root("alpha") / "data/src/log").exists)
    make = {"host": "client", "command": ["/usr/bin/cp", "-a", "/data/src/folder0", "/data/dump"]}
    backups.jobs = [backups.job("live"), backups.job("dump", src="/data/dump", before=[make])]
    checked = backups.run("--check")
    assert "/data/dump/ is not there yet" in checked.output, checked.output
    made = backups.run()
    for process in hosts.processes("alpha"):
        if write in process.argv:
            hosts.kill("alpha", process)
    assert "fatal:" not in made.output
    (note,) = backups.record("live")["notes"]
    assert "1 entry changed at the source" in note and "for example log" in note, note
    assert [one["state"] for one in backups.health().values()] == ["ok", "ok"]
    (dump,) = backups.snapshots("dump")
    assert compare.differences(hosts.root("alpha") / "data/dump", dump) == []


@pytest.mark.long
def test_a_source_that_lost_much_is_set_aside_and_nothing_is_pruned(hosts: Testbed, backups: Backups) -> None:
    source = hosts.root("alpha") / "data/src"
    may_lose = backups.job("may lose much", shrink_limit=80, keep={"hourly": 1, "yearly": 1})
    backups.jobs = [backups.job("data", keep={"last": 1}), may_lose]
    backups.run()
    (kept,) = backups.snapshots()
    for folder in ("folder0", "folder1"):
        shutil.rmtree(source / folder)
    said = backups.run_into_failure()
    assert "alpha/data was set aside: aside-" in said and "accept or discard" in said, said
    assert backups.snapshots() == [kept] and (kept / "folder0/file0").exists()
    entry, loser = backups.health().values()
    assert (entry["state"], entry["removed"], entry["snapshots"]) == ("aside", [], 1)
    assert (loser["state"], len(loser["removed"]), loser["snapshots"]) == ("ok", 1, 1)
    assert os.readlink(kept.parents[1] / "latest") == kept.parent.name
    secret = source / "folder2/file5"
    status = secret.stat()
    secret.write_text("CONTENT 5")
    os.utime(secret, ns=(status.st_atime_ns, status.st_mtime_ns))
    backups.run_into_failure()  # the next night is set aside, too, and links to what was
    entry, loser = backups.health().values()
    (transfer,) = entry["transfers"]
    assert (entry["state"], transfer["bytes_sent"], entry["figures"]["new_files"]) == ("aside", len("CONTENT 5"), 1)
    assert (loser["state"], loser["figures"]["changed"]) == ("ok", 1)
    assert compare.differences(source, backups.snapshots("may lose much")[-1]) == []

    look, accept = (line.partition(": ")[2] for line in entry["next"].splitlines())
    shown = type_command(backups, look)
    assert '"path": "folder0/file0"' in shown and '"removed"' in shown, shown
    type_command(backups, accept)
    (backups.repository / "gone" / "data").mkdir(parents=True)
    before = refusal.everything(hosts)
    run = backups.playbooks.run("longhaul.fleet.audit", backup_jobs=backups.jobs, backup_audit_exempt=["gamma"])
    assert run.rc == 0 and "Traceback" not in run.output, run.output
    audit = json.loads((backups.folder / "audit.json").read_text())
    assert (backups.folder / "audit.html").exists() and refusal.everything(hosts) == before
    assert "Folders without a job (1)" in run.output and [one["host"] for one in audit["orphans"]] == ["gone"]
    assert [(one["act"], one["job"]) for one in audit["decisions"][:1]] == [("accepted", "alpha/data")]
    assert audit["decisions"][0]["by"] and audit["uncovered"] == [] and audit["unread"] == []
    assert {one["host"]: abs(one["offset"]) < 30 for one in audit["clocks"]} == {"alpha": True, "beta": True}
    data, loser = audit["jobs"]
    assert (data["snapshots"], loser["pruned"] >= 1, data["rules"][0]["rule"]) == (2, True, "last")
    assert audit["capacity"][0]["space"]["bytes_free"] > 0


def type_command(backups: Backups, command: str) -> str:
    """Run a command that a run has told, and return what it shows."""
    path = f"{backups.playbooks.programs}:{os.environ['PATH']}"
    environment = {**backups.playbooks.environment(), "PATH": path}
    del environment["ANSIBLE_CALLBACKS_ENABLED"]  # the file to record to is that of a playbook
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_what_is_left_out_by_a_tag_and_what_is_protected(hosts: Testbed, backups: Backups) -> None:
    source = hosts.root("alpha") / "data/src"
    backups.jobs = [backups.job("data", keep={"last": 1}, exclude_if_present=[".nobackup"], exclude_caches=True)]
    backups.run()
    (first,) = backups.snapshots()
    task = {"repository": REPOSITORY, "host": "alpha", "job": "data", "name": first.parent.name, "reason": "case 4711"}
    protect = {"name": "Protect", "longhaul.fleet.snapshot": {**task, "action": "protect", "until": "forever"}}
    done = backups.playbooks.run([protect], hosts="beta").expect_success().result("Protect")
    assert done["changed"] and done["hold"]["until"] == "forever" and done["hold"]["by"].endswith(f"@{platform.node()}")
    (source / "folder1/.nobackup").write_text("why")
    backups.run()
    _first, second = backups.snapshots()
    assert os.listdir(second / "folder1") == [".nobackup"] and len(os.listdir(first / "folder1")) > 1
    record = backups.record()
    assert record["kept"][first.parent.name] == ["protected forever"] and record["removed"] == []
    assert record["transfers"][0]["left_out"] == 1
    release = {"name": "Release", "longhaul.fleet.snapshot": {**task, "action": "unprotect"}}
    assert backups.playbooks.run([release], hosts="beta").expect_success().result("Release")["changed"]
    backups.run()
    assert len(backups.snapshots()) == 1
    acts = [json.loads(line)["act"] for line in (second.parents[1] / "history.jsonl").read_text().splitlines()]
    assert acts == ["made", "protected", "made", "unprotected", "made", "pruned", "pruned"]


@pytest.mark.long
def test_backups_of_rsnapshot_are_taken_over(hosts: Testbed, backups: Backups) -> None:
    """Three folders that share their files, as rsnapshot's cp -al leaves them; the next backup sends what changed."""
    source, rsnapshot = hosts.root("alpha") / "data/src", hosts.root("beta") / "data/rsnapshot"
    made = {"weekly.0": "2026-10-30", "daily.1": "2026-11-02", "daily.0": "2026-11-03"}
    copied = ["cp", "-a", f"{source}/."]
    for level, day in made.items():
        tree = rsnapshot / level / "alpha/data/src"
        tree.mkdir(parents=True)
        subprocess.run([*copied, tree], check=True)
        subprocess.run(["touch", "-d", day, rsnapshot / level], check=True)
        copied = ["cp", "-al", f"{tree}/."]
    (source / "folder0/file0").write_text("changed since")
    before = compare.recorded(rsnapshot)
    adopt = {
        "name": "Adopt",
        "longhaul.fleet.snapshot": {
            "action": "adopt_rsnapshot",
            "repository": REPOSITORY,
            "host": "alpha",
            "job": "data",
            "rsnapshot_root": "/data/rsnapshot",
            "rsnapshot_path": "alpha/data/src",
            "rsnapshot_levels": ["daily", "weekly"],
        },
    }
    for is_first in (True, False):
        assert backups.playbooks.run([adopt], hosts="beta").expect_success().result("Adopt")["changed"] is is_first
    assert [path.parent.name[:10] for path in backups.snapshots()] == sorted(made.values())
    backups.run()
    *_older, before_it, newest = backups.snapshots()
    assert compare.differences(source, newest) == []
    assert os.path.samefile(before_it / "folder1/file1", newest / "folder1/file1")
    figures = backups.record()["figures"]
    assert (figures["new_files"], figures["gone"]) == (1, 0), figures
    assert compare.differences(before, rsnapshot) == []


def test_wrong_jobs_are_refused_together_before_anything_begins(hosts: Testbed, backups: Backups) -> None:
    before = refusal.everything(hosts)
    backups.jobs = [
        backups.job("good"),
        backups.job("good", src="/etc"),
        backups.job("empty", keep={}),
        backups.job("nowhere", host="delta"),
        backups.job("relative", src="data/src"),
        backups.job("alike", src=["/data/src", "/srv/src"]),
    ]
    said = backups.run_into_failure()
    for word in ("job number 1 has this name", "policy is empty", "delta", "data/src is not", "end in one name"):
        assert word in said, f"{word!r} is missing in:\n{said}"
    assert refusal.everything(hosts) == before and not backups.folder.exists()


def test_a_repository_host_makes_its_own_backups_with_hooks_and_without(hosts: Testbed, backups: Backups) -> None:
    touch = {"command": ["/usr/bin/touch", "/data/src/of the hook"]}
    backups.jobs = [
        backups.job("plain"),
        backups.job("hooked", before=[touch], after=[{**touch, "host": "repository", "command": ["/bin/false"]}]),
        backups.job("elsewhere", repository={"host": "alpha", "path": "/data/none"}, host="gamma"),
    ]
    play = [{"hosts": "beta", "gather_facts": False, "roles": ["longhaul.fleet.backup"]}]
    ran = backups.playbooks.run(play, backup_jobs=backups.jobs)
    assert ran.rc != 0 and "undefined" not in ran.output, ran.output
    assert "alpha/hooked failed: hook after: hook /bin/false on beta failed" in ran.failures[-1]
    for job in ("plain", "hooked"):
        assert len(backups.snapshots(job)) == 1
    assert (backups.snapshots("hooked")[0] / "of the hook").exists()
    states = {name: one["state"] for name, one in backups.health().items()}
    assert states == {"alpha/plain": "ok", "alpha/hooked": "failed", "gamma/elsewhere": "never"}
    assert not (backups.snapshots("plain")[0] / "of the hook").exists()


def test_the_answer_of_a_hook_sets_no_variable(hosts: Testbed, backups: Backups) -> None:
    canary = backups.folder.with_name("canary")
    facts = {
        "backup_before": touching(canary),
        "backup_after": touching(canary),
        "ansible_remote_tmp": f"$(touch {canary})",
    }
    add_to_answers(hosts, backups.playbooks.inventory, "alpha", ansible_facts=facts)
    backups.jobs = [backups.job("data", before=[{"command": ["/usr/bin/touch", "/data/src/of the hook"]}])]
    backups.run()
    assert (backups.snapshots()[0] / "of the hook").exists() and not canary.exists()


def test_facts_of_a_host_set_no_variable_of_the_role(hosts: Testbed, backups: Backups) -> None:
    """Those of a client: its jobs are refused, and others run. Those of the host of the play: nothing runs."""
    canary, inventory = backups.folder.with_name("canary"), backups.playbooks.inventory
    facts = {"backup_after": touching(canary), "longhaul_trust": "full"}
    add_to_answers(hosts, inventory, "alpha", ansible_facts=facts)
    backups.jobs = [backups.job("data"), backups.job("data", host="gamma")]
    gather = {"hosts": "alpha", "gather_facts": True, "tasks": []}
    role = {"hosts": "beta", "gather_facts": False, "roles": ["longhaul.fleet.backup"]}
    ran = backups.playbooks.run([gather, role], backup_jobs=backups.jobs)
    assert ran.rc != 0 and "backup_after, longhaul_trust: set among the facts of alpha" in ran.failures[-1], ran.output
    assert {name: one["state"] for name, one in backups.health().items()} == {
        "alpha/data": "failed",
        "gamma/data": "ok",
    }

    add_to_answers(hosts, inventory, "beta", ansible_facts=facts)
    before = refusal.everything(hosts)
    ran = backups.playbooks.run([{**role, "gather_facts": True}], backup_jobs=backups.jobs)
    assert (
        ran.rc != 0
        and "Nothing was done: backup_after, longhaul_trust: set among the facts of beta" in ran.failures[-1]
    )
    assert "--flush-cache" in ran.failures[-1] and refusal.everything(hosts) == before and not canary.exists()


def _size(tree: Path) -> int:
    return sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())


def _kill_transfer(hosts: Testbed, root: str) -> None:
    """Kill the end of a transfer that reads a tree of alpha."""
    for process in jobs(hosts, "alpha"):
        engine = next(word for word in process.argv if word.endswith("engine.pyz"))
        request = (hosts.root("alpha") / engine.lstrip("/")).with_name("request.json")
        if json.loads(request.read_text())["root"] == root:
            hosts.kill("alpha", process)
            return
    raise AssertionError(f"no transfer reads {root}")


@pytest.mark.long
def test_backups_are_shown_live_in_the_terminal(hosts: Testbed, backups: Backups) -> None:
    pytest.importorskip("rich", reason="cannot run here: rich is missing")
    make_big_files(hosts.root("alpha") / "data/src/more", 48 * MIB, count=1)
    hosts.shape("alpha", "20mbit")  # a host is asked every few seconds
    with backups.playbooks.live("longhaul.fleet.backup", backup_jobs=backups.jobs) as terminal:
        assert terminal.wait() == 0, terminal.output
    assert re.findall(r"alpha/data +transfer +\[#+\.*\] +\d+ %", terminal.output), terminal.output
    assert "0 of 1 ended, 0 failed; 1 run: " in terminal.output or "0 of 1 job has ended" in terminal.output


@pytest.mark.long
def test_the_task_knows_what_time_it_is_on_the_control_node(backups: Backups) -> None:
    """Whoever runs the module by a task of their own has its clock compared, too, also in the background."""
    backups.run()
    prune = {
        "action": "prune",
        "repository": REPOSITORY,
        "host": "alpha",
        "job": "data",
        "keep": {"last": 1},
        "control_time": 5,  # 1970, and the task knows better
    }
    task = {"longhaul.fleet.snapshot": prune, "delegate_to": "beta"}
    backups.playbooks.run([task, {**task, "async": 60, "poll": 1}]).expect_success()
    assert len(backups.snapshots()) == 1
