# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole migrations between two hosts: phases, hooks, failures before and in the switch, reports."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import format_duration
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run, Running
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

# How the program of a test's service ends itself: it is gone when this has returned.
STOP_PROGRAM = """\
elif os.path.exists(PID):
    with open(PID) as opened:
        pid = int(opened.read())
    try:
        while True:
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
    except ProcessLookupError:
        os.unlink(PID)
"""
# A service that writes into a tree for as long as it runs: app start TREE, app stop.
APP = f"""\
#!/usr/bin/python3
import os, signal, subprocess, sys, time
PID = "/run/app.pid"
if sys.argv[1] == "serve":
    for number in range(1_000_000):
        for name in ("log", f"entry-{{number % 20}}"):
            with open(os.path.join(sys.argv[2], name), "a") as opened:
                opened.write(f"{{number}}\\n")
        time.sleep(0.05)
elif sys.argv[1] == "start":
    run = [sys.executable, __file__, "serve", sys.argv[2]]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    with open(PID, "w") as opened:
        opened.write(str(subprocess.Popen(run, start_new_session=True, **quiet).pid))
{STOP_PROGRAM}"""
# Makes a stray file in a tree again and again; ends with the tree.
STRAY = "import os, sys, time\nwhile True:\n    open(sys.argv[1] + '/stray', 'w').close()\n    time.sleep(0.02)\n"


class Migration:
    """Runs of the playbook with one list of jobs."""

    def __init__(self, bed: Testbed, playbooks: Playbooks, **options: Any) -> None:
        self.bed, self.playbooks, self.options = bed, playbooks, options
        self.folder = playbooks.inventory.parent / "longhaul-migrate"
        self.jobs = [self.job("data")]

    @staticmethod
    def job(name: str, src_host: str = "alpha", dest_host: str = "beta", **options: Any) -> dict[str, Any]:
        """Return a job; both trees are named after what they are."""
        return {
            "name": name, "src_host": src_host, "src": "/data/src/", "dest_host": dest_host, "dest": "/data/dest",
            **options,
        }  # fmt: skip

    def start(self, *flags: str, playbook: str = "migrate", **variables: Any) -> Running:
        """Start the playbook, with the cutover unless another phase is asked for; ``migrate_phase=None`` names none."""
        given = {"migrate_jobs": self.jobs, "migrate_phase": "cutover", **self.options, **variables}
        given = {name: value for name, value in given.items() if value is not None}
        return self.playbooks.start(f"longhaul.fleet.{playbook}", *flags, **given)

    def run(self, *flags: str, **more: Any) -> Run:
        """Run the playbook to a good end."""
        return self.start(*flags, **more).wait().expect_success()

    def run_into_failure(self, *flags: str, **more: Any) -> str:
        """Run the playbook, which must fail, and give all that it says on failures."""
        run = self.start(*flags, **more).wait()
        assert run.rc != 0 and run.failures, run.output
        assert "Traceback" not in run.output and "undefined" not in run.output, run.output
        return run.failures[-1]

    def report(self, name: str = "data") -> dict[str, Any]:
        """Return a job's report for programs."""
        return json.loads((self.folder / f"{name}.json").read_text())

    def text(self, name: str = "data") -> str:
        """Return the text of a job's report for people; with ``report``, of that on all jobs."""
        return Outline.of((self.folder / f"{name}.html").read_text()).plain


STATE_ROOT = "state: var/lib/longhaul"


def changed(run: Run, host: str = "beta") -> int:
    """Return how many tasks changed something on a host, by the recap."""
    found = re.search(rf"^{host} +: ok=\d+ +changed=(\d+)", run.output, re.MULTILINE)
    assert found, run.output
    return int(found.group(1))


def serves(bed: Testbed, host: str) -> bool:
    """Whether the service runs on a host."""
    return any("serve" in process.argv for process in bed.processes(host))


def fill(bed: Testbed, host: str = "alpha", name: str = "src") -> Path:
    """Make a small tree and give its path."""
    tree = bed.root(host) / "data" / name
    make_big_files(tree / "big", 4 * MIB, count=2)
    for number in range(30):
        (tree / f"folder{number % 3}").mkdir(exist_ok=True)
        (tree / f"folder{number % 3}" / f"file{number}").write_text(f"content {number}")
    os.link(tree / "folder0/file0", tree / "folder1/other name")
    (tree / "folder2/link").symlink_to("file2")
    return tree


def trees(bed: Testbed) -> tuple[Path, Path]:
    """Return the paths of source and destination as this machine sees them."""
    return bed.root("alpha") / "data/src", bed.root("beta") / "data/dest"


@pytest.fixture
def migration(hosts: Testbed, playbooks: Playbooks) -> Iterator[Migration]:
    """A job that moves a small tree of alpha to beta, where the service ``app`` can run, too."""
    playbooks.inventory = hosts.inventory(
        playbooks.folder / "pairs.yml", extra={"ansible_pipelining": True, "ansible_ssh_args": "-o ControlPersist=20s"}
    )
    programs = [hosts.root(host) / "usr/local/bin/app" for host in hosts.hosts]
    for program in programs:
        program.write_text(APP)
        program.chmod(0o755)
    fill(hosts)
    yield Migration(hosts, playbooks)
    for program in programs:
        program.unlink()


STOP = {"name": "stop the app", "host": "source", "command": ["/usr/local/bin/app", "stop"]}
START_OLD = {"host": "source", "command": ["/usr/local/bin/app", "start", "/data/src"]}
START_NEW = {"host": "dest", "command": ["/usr/local/bin/app", "start", "/data/dest"]}


@pytest.mark.long
def test_each_method_by_name_passes_the_preflight(migration: Migration) -> None:
    migration.jobs = [migration.job(method.replace("_", "-"), method=method) for method in METHODS]
    migration.run(migrate_phase="preflight")
    for job in migration.jobs:
        assert migration.report(job["name"])["phases"]["preflight"]["predicted"]["method"] == job["method"]


@pytest.mark.long
def test_what_is_missing_is_named_where_nothing_may_be_installed(hosts: Testbed, migration: Migration) -> None:
    migration.jobs[0].update(method="rsync")
    hidden = ["/usr/bin/rsync", "/usr/bin/rsync.hidden"]
    hosts.exec("beta", ["mv", *hidden])
    try:
        said = migration.run_into_failure(migrate_phase="preflight", migrate_manage_packages=False)
    finally:
        hosts.exec("beta", ["mv", *reversed(hidden)])
    assert "beta" in said and "rsync" in said and "install" in said, said
    assert "could not install" not in migration.text()
    assert not trees(hosts)[1].exists()


@pytest.mark.long
def test_a_migration_by_a_method_that_needs_no_program(hosts: Testbed, migration: Migration) -> None:
    migration.jobs[0].update(method="stream")
    migration.run()
    assert migration.report()["phases"]["cutover"]["method"] == "stream"
    assert compare.differences(*trees(hosts)) == []


@pytest.mark.smoke
def test_a_service_moves_with_its_tree_while_it_runs(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    wait_for((source / "log").exists)
    note = "- name: Keep the state of the tree\n  ansible.builtin.command: cp -a /data/src /data/frozen\n"
    (migration.playbooks.inventory.parent / "freeze.yml").write_text(note)
    migration.jobs[0].update(
        before_cutover=[STOP, {"host": "source", "tasks": "freeze.yml"}],
        after_cutover=[START_NEW],
        cutover_failed=[START_OLD],
    )

    first = migration.run()
    assert not serves(hosts, "alpha") and serves(hosts, "beta")
    frozen = source.with_name("frozen")
    assert compare.differences(source, frozen) == []  # nothing wrote to the source after the hooks
    assert int((source / "log").read_text().split()[-1]) > 20  # and until then something did
    hosts.exec("beta", ["/usr/local/bin/app", "stop"])
    assert (dest / "log").read_bytes().startswith((source / "log").read_bytes())
    written = {"log", *(f"entry-{number}" for number in range(20))}
    for name in written:
        (source / name).unlink(missing_ok=True)
        (dest / name).unlink(missing_ok=True)
    assert compare.differences(source, dest, ignore=["mtime"]) == []

    report = migration.report()
    assert report["switch"]["done"] and report["phases"]["verify"]["identical"] and not report["failure"]
    assert "sync" in report["phases"]["cutover"]["phases"]  # the disk has it before the switch
    assert report["phases"]["cutover"]["files_updated"] + report["phases"]["cutover"]["files_created"] > 0
    assert "switched over" in migration.text("report")
    assert "Done" in report["next"] and "Switched over" in migration.text()
    assert changed(first) == 2  # what the workflow changed counts once, and the task of freeze.yml

    (stop,) = report["downtimes"]
    assert stop["from"] <= report["phases"]["cutover"]["at"] <= stop["to"] and stop["serves"] == "the new host"
    assert f"downtime: {stop['lasted']}" in first.output and format_duration(stop["seconds"]) in migration.text()
    ran = [(one["name"], one["kind"], one["host"], one["result"]) for one in report["hooks"]]
    assert ran == [
        ("stop the app", "before_cutover", "alpha", "done"),
        ("tasks of freeze.yml", "before_cutover", "alpha", "done"),
        ("/usr/local/bin/app start /data/dest", "after_cutover", "beta", "done"),
    ]
    assert re.search(r"^\| stop the app .*\| before_cutover \| alpha \| 1 \|", migration.text(), re.MULTILINE)
    assert re.search(
        r"^\| data alpha:\S+ → beta:\S+ \| ✓ switched over \| 100 % \| 0 B \|", migration.text("report"), re.MULTILINE
    )
    assert f"by {report['run']['by']}" in migration.text() and "@" in report["run"]["by"]
    assert "Times are UTC" in migration.text()

    before = refusal.everything(hosts)
    again = migration.run()
    assert "was switched over" in again.output
    assert changed(again) == 0
    assert refusal.everything(hosts) == before


def test_step_by_step(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    paths = list(source.rglob("*"))
    entries = 1 + len(paths)
    # A file with two names counts at each of them; what is sent of it counts once.
    total = sum(path.lstat().st_size for path in paths if path.is_file() and not path.is_symlink())
    payload = total - (source / "folder0/file0").stat().st_size

    before = refusal.everything(hosts)
    checked = migration.run("--check")
    assert refusal.everything(hosts) == before and not migration.folder.exists()
    assert changed(checked) == 1
    assert re.search(rf"{entries} entries, 4\.0 MiB; would send 4\.0 MiB", checked.output), checked.output

    migration.run(migrate_phase="preflight")
    assert refusal.everything(hosts) == before
    overview = migration.text("report")
    assert f"| 4.0 MiB {entries} entries | 4.0 MiB (predicted) | 0 (predicted) |" in overview, overview
    predicted = migration.report()["phases"]["preflight"]["predicted"]
    assert list(migration.report()["phases"]) == ["preflight"]
    assert "migrate_phase=sync" in migration.report()["next"]

    migration.run(migrate_phase="seed")
    seed = migration.report()["phases"]["seed"]
    counts = ("files_total", "files_created", "files_updated", "files_deleted", "bytes_total", "attributes_changed")
    assert {name: predicted[name] for name in counts} == {name: seed[name] for name in counts}
    assert (seed["files_total"], seed["bytes_total"], seed["bytes_content"]) == (entries, total, payload)
    assert 0 < seed["bytes_sent"] <= payload  # small files are compressed if that pays
    assert compare.differences(source, dest) == []
    assert "migrate_phase=sync" in migration.report()["next"]

    disk = dest.rename(dest.with_name("disk"))
    assert f"and the last pass left {entries} entries there" in migration.run_into_failure(migrate_phase="sync")
    assert not dest.exists(), "something was written to the disk below the mount point"
    disk.rename(dest)

    (source / "folder0/new").write_text("x" * 1000)
    (source / "folder1/file1").unlink()
    synced = migration.run(migrate_phase="sync")
    (one,) = migration.report()["phases"]["sync"]["passes"]
    assert (one["files_created"], one["files_updated"], one["bytes_content"]) == (1, 0, 1000)
    assert changed(synced) == 1
    assert (dest / "folder1/file1").exists()  # delete was not asked for
    sent = one["bytes_sent"]  # of 1000 bytes that are the same
    assert 0 < sent < 1000 and re.search(rf"^\| pass 1 \|.*\| {sent} B \|", migration.text(), re.MULTILINE)
    assert "migrate_phase=cutover (this switches over)" in migration.text()
    rows = [line.split("|") for line in migration.text().splitlines() if line.startswith(("| first copy", "| pass"))]
    shown = [int(row[5].replace(",", "")) for row in rows if len(row) > 8]
    assert len(shown) == 2 and shown[0] == entries

    assert changed(migration.run(migrate_phase="sync")) == 0
    compared = migration.run(playbook="verify")
    assert "the trees are the same" in compared.output
    (dest / "folder0/new").write_text("y" * 1000)
    assert "folder0/new" in migration.run_into_failure(playbook="verify")
    assert "changed=0" in compared.output


def test_metrics_follow_a_migration_and_never_stop_it(hosts: Testbed, migration: Migration, tmp_path: Path) -> None:
    textfile, seen = tmp_path / "metrics/longhaul.prom", tmp_path / "seen"
    labels = 'job="data",source="alpha",dest="beta"'
    progress = textfile.with_name("progress.jsonl")
    migration.run("--check", migrate_textfile=str(textfile), longhaul_progress_file=str(progress))
    assert not progress.exists()
    assert not textfile.exists()
    migration.run(migrate_phase="seed", migrate_textfile=str(textfile))
    lines = textfile.read_text().splitlines()
    assert f'longhaul_migrate_state{{{labels},state="waiting"}} 1' in lines
    assert f"longhaul_migrate_left_bytes{{{labels}}} 0" in lines and "longhaul_migrate_active 0" in lines
    assert textfile.stat().st_mode & 0o777 == 0o644 and os.listdir(textfile.parent) == [textfile.name]

    look = {"host": "localhost", "command": ["cp", str(textfile), str(seen)]}
    migration.jobs[0].update(before_cutover=[look], cutover_failed=[look])
    migration.run(migrate_textfile=str(textfile))
    assert "longhaul_migrate_active 1\n" in seen.read_text()
    lines = textfile.read_text().splitlines()
    assert f'longhaul_migrate_phase{{{labels},phase="verify"}} 1' in lines
    assert f"longhaul_migrate_verified{{{labels}}} 1" in lines and f"longhaul_migrate_failed{{{labels}}} 0" in lines
    assert any(line.startswith(f"longhaul_migrate_downtime_seconds{{{labels}}} ") for line in lines)

    unwritable = migration.run(migrate_phase="verify", migrate_textfile=str(seen / "longhaul.prom"))
    assert "The metrics are not written" in unwritable.output and "migrate_textfile" in unwritable.output


@pytest.mark.long
def test_without_a_phase_it_stops_before_the_cutover_and_says_how_to_switch(
    hosts: Testbed, migration: Migration
) -> None:
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    switch = {"host": "dest", "command": ["/usr/bin/touch", "/data/switched"]}
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[switch], cutover_failed=[START_OLD])
    run = migration.run(migrate_phase=None)
    switched = hosts.root("beta") / "data/switched"
    assert serves(hosts, "alpha") and not switched.exists()
    assert "sync" in migration.report()["phases"] and not migration.report()["switch"]
    stopped = run.output.partition("Stopped before the cutover")[2]
    assert "Not switched over: data" in stopped and "-e migrate_phase=cutover" in stopped, run.output

    # A comparison after the switch is no way to make it, and what it refuses it does not note.
    before = migration.report()
    said = migration.run_into_failure(migrate_phase="verify")
    assert "data stopped in phase verify" in said and "migrate_phase=cutover" in said, said
    assert migration.report() == before and serves(hosts, "alpha")

    migration.run(migrate_phase="cutover", migrate_verify_when="after_switch")
    assert switched.exists() and not serves(hosts, "alpha")
    report = migration.report()
    assert report["switch"]["done"] and report["phases"]["verify"]["at"] >= report["switch"]["at"]
    assert "Stopped before the cutover" not in migration.run(migrate_phase=None).output


@pytest.mark.long
def test_what_a_first_copy_would_delete_is_told_and_agreed_to(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    migration.jobs[0].update(delete=True)
    migration.run(migrate_phase="preflight")
    first = migration.report()["phases"]["preflight"]["predicted"]
    assert first["files_deleted"] == 0

    # The destination gets something of its own: every preflight sees what is there now.
    (dest / "thesis").mkdir(parents=True)
    (dest / "thesis/chapter1").write_text("precious")
    for flags in ((), ("--check",)):
        run = migration.start(*flags, migrate_phase="preflight").wait()
        said = run.failures[-1]
        assert run.rc != 0 and "data stopped in phase preflight" in said, said
        for words in (
            "would delete 2 entries at beta:/data/dest",
            "thesis/chapter1",
            "max_delete: 2",
            "migrate_allow_delete",
        ):
            assert words in said, said
        assert "DELETIONS: " not in run.output and "[WARNING]: the first copy" not in run.output, (
            "it is told as a failure"
        )
        assert "No problems were found" not in said
    for more in ({}, {"migrate_preflight_predict": False}):
        said = migration.run_into_failure(migrate_phase="seed", **more)
        assert "2 entries " in said and "migrate_allow_delete" in said, said
        assert (dest / "thesis/chapter1").exists()
    assert "data stopped in phase seed" in said, said

    said = migration.run_into_failure(migrate_allow_delete=["other"])
    assert "migrate_allow_delete names other" in said
    migration.run(migrate_phase="seed", migrate_allow_delete=["data"])
    assert not (dest / "thesis").exists() and compare.differences(source, dest) == []
    assert migration.report()["phases"]["seed"]["files_deleted"] == 2

    # Later passes follow the source, and check mode tells what they will do.
    (source / "folder0/file3").unlink()
    checked = migration.run("--check")
    assert "the next pass would delete 1 entry at" in checked.output and "folder0/file3" in checked.output
    assert (dest / "folder0/file3").exists()
    migration.run(migrate_phase="sync")
    assert not (dest / "folder0/file3").exists()
    assert changed(migration.run(migrate_phase="sync")) == 0


def test_a_failure_before_the_switch_leaves_the_source_serving(hosts: Testbed, migration: Migration) -> None:
    _source, dest = trees(hosts)
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    broken = {"host": "dest", "command": ["/bin/ls", "/data/mended"]}
    migration.jobs[0].update(before_cutover=[STOP, broken], after_cutover=[START_NEW], cutover_failed=[START_OLD])
    said = migration.run_into_failure()
    assert serves(hosts, "alpha") and not serves(hosts, "beta")
    assert "data stopped in phase cutover" in said and "/data/mended" in said and "alpha still serves" in said, said
    assert "run the same command again" in said
    assert migration.report()["failure"]["phase"] == "cutover" and not migration.report()["quiesced"]
    assert "data stopped in phase cutover" in migration.text()
    assert "stopped in cutover" in migration.text("report")

    # The hook is mended. Now something writes to the destination, and the comparison finds it.
    migration.jobs[0].update(before_cutover=[STOP], delete=True)
    hosts.popen("beta", ["/usr/bin/python3", "-c", STRAY, "/data/dest"])
    said = migration.run_into_failure()
    for process in hosts.processes("beta"):
        if STRAY in process.argv:
            hosts.kill("beta", process)
    assert serves(hosts, "alpha") and not serves(hosts, "beta")
    assert "data stopped in phase verify" in said and "stray" in said and "alpha still serves" in said, said
    assert "verify" not in migration.report()["phases"] and not migration.report()["switch"]

    migration.run()
    assert not serves(hosts, "alpha") and serves(hosts, "beta")
    assert migration.report()["switch"]["done"] and not (dest / "stray").exists()


@pytest.mark.long
def test_a_rehearsal_of_one_job(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[START_NEW], delete=True)
    said = migration.run_into_failure(migrate_phase="rehearse")
    assert "no hook of cutover_failed would put it back" in said and not dest.exists(), said

    # A hook that does not bring the source back is tried once more, and told of.
    migration.jobs[0].update(cutover_failed=[{"host": "source", "command": ["/bin/ls", "/data/mended"]}])
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    said = migration.run_into_failure(migrate_phase="rehearse")
    assert "/data/mended" in said and "alpha may still be stopped" in said and not serves(hosts, "beta"), said

    migration.jobs[0].update(cutover_failed=[START_OLD])
    migration.run(migrate_phase="rehearse")
    assert serves(hosts, "alpha") and not serves(hosts, "beta")
    report = migration.report()
    assert not report["quiesced"] and not report["failure"] and report["phases"]["rehearsal"]["verify"]["identical"]
    assert report["forecast"]["seconds"] <= report["downtimes"][-1]["seconds"]  # the source was stopped before that run
    migration.run()
    assert serves(hosts, "beta") and not serves(hosts, "alpha")
    hosts.exec("beta", ["/usr/local/bin/app", "stop"])
    assert (dest / "log").read_bytes().startswith((source / "log").read_bytes())


@pytest.mark.long
def test_a_broken_hook_of_the_switch_is_gone_on_with(hosts: Testbed, migration: Migration) -> None:
    once = {"host": "dest", "command": ["/usr/bin/mkdir", "/data/once"]}  # fails where it is run twice
    broken = {"host": "source", "command": ["/bin/ls", "/data/mended"]}
    migration.jobs[0].update(after_cutover=[once, broken, START_NEW], cutover_failed=[START_OLD])
    said = migration.run_into_failure()
    assert "stopped in phase switch" in said and "The switch has begun (1 of its steps" in said, said
    assert not serves(hosts, "alpha") and not serves(hosts, "beta")  # a person must decide which serves
    assert migration.report()["phases"]["verify"]["identical"]

    (hosts.root("alpha") / "data/mended").touch()
    migration.jobs[0].update(after_cutover=[broken, START_NEW])  # what has run is not counted, but known
    migration.run()
    assert serves(hosts, "beta") and not serves(hosts, "alpha")
    switch = migration.report()["switch"]
    assert switch["done"] and [one["host"] for one in switch["hooks"]] == ["beta", "alpha", "beta"]


@pytest.mark.long
def test_pairs_go_side_by_side_and_do_not_hold_up_each_other(hosts: Testbed, migration: Migration) -> None:
    fill(hosts, "beta", "back")
    migration.jobs = [
        migration.job("there"),
        migration.job("none", src="/data/none/", dest="/data/other"),
        migration.job("back", src_host="beta", src="/data/back/", dest_host="alpha", dest="/data/forth"),
    ]
    hosts.shape("alpha", "40mbit")  # about two seconds for each way
    said = migration.run_into_failure("--forks", "5")
    assert "none stopped in phase preflight" in said and "/data/none" in said and "there stopped" not in said, said
    source, dest = trees(hosts)
    assert compare.differences(source, dest) == []
    assert compare.differences(hosts.root("beta") / "data/back", hosts.root("alpha") / "data/forth") == []
    assert migration.report("there")["switch"]["done"] and migration.report("back")["switch"]["done"]
    table = migration.text("report")
    assert table.count("| ✓ switched over |") == 2 and table.count("| ✕ stopped in preflight ") == 1, table
    # What failed is told first, with its reason, and at the very end of the output.
    assert (
        table.index("none stopped in phase preflight")
        < table.index("/data/none/ does not exist")
        < table.index("| Job ")
    )
    assert table.index("\n| none ") < table.index("\n| there ")
    assert "| Sum of 3 | 1 stopped |" in table and "1 of 3 jobs stopped; 2 of 3 switched over." in table, table
    # Each had begun before the other one had made its seed.
    begun = {name: migration.report(name)["phases"]["preflight"]["at"] for name in ("there", "back")}
    seeded = {name: migration.report(name)["phases"]["seed"]["at"] for name in ("there", "back")}
    assert max(begun.values()) <= min(seeded.values())


@pytest.mark.long
def test_a_controller_killed_in_the_seed_attaches_again(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    make_big_files(source / "more", 40 * MIB, count=4)
    (source / "folder1/other name").unlink()  # else one file would be counted at two names
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file() and not path.is_symlink())
    hosts.shape("alpha", "40mbit")
    running = migration.start(migrate_preflight_predict=False)
    wait_for(lambda: sum(path.stat().st_size for path in dest.rglob("*") if path.is_file()) > size // 4)
    assert running.process.poll() is None, running.output
    running.kill()
    running.process.wait()
    hosts.shape("alpha", "10mbit")

    rerun = migration.start(migrate_preflight_predict=False)
    wait_for(lambda: "attached to the running transfer" in rerun.output)
    hosts.shape("alpha", None)
    rerun.wait().expect_success()
    seed = migration.report()["phases"]["seed"]
    assert seed["attached"] and size - 300 < seed["bytes_sent"] <= size  # the small files may have been compressed
    assert compare.differences(source, dest) == []
    assert migration.report()["switch"]["done"]


def test_what_stands_in_the_way_is_told_together_and_nothing_is_written(hosts: Testbed, migration: Migration) -> None:
    hosts.exec("beta", ["touch", "/data/file"])
    writes = "mkdir /data/used; exec 3>/data/used/log; sleep 300 </dev/null >/dev/null 2>&1 & echo $!"
    service = hosts.exec("beta", ["sh", "-c", writes]).stdout.strip()
    hosts.limit_disk("beta", "2m")
    hosts.block("alpha", 22)
    refusal.add_hosts(migration.playbooks.inventory, {"closed": ("beta", {"ansible_port": 9})})
    migration.jobs = [
        migration.job("wrong", src="/data/none/", dest="/data/file/deeper"),
        migration.job("small"),
        migration.job("gone", dest_host="closed"),
        migration.job("used", dest="/data/used"),
    ]
    before = refusal.everything(hosts)
    run = migration.start().wait()
    hosts.limit_disk("beta", "1g")
    hosts.exec("beta", ["kill", service])
    assert run.rc != 0
    said = "\n".join(run.failures)
    for words in (
        ("wrong stopped in phase preflight", "/data/none/ does not exist\n", "/data/file is a file where a directory"),
        ("small stopped in phase preflight", "/data/dest", "4.1 MiB", "room for 2.0 MiB"),
        ("gone stopped in phase preflight", "closed cannot be used", "port 9"),
        ("used stopped in phase preflight", "sleep (process ", "log) has files in /data/used open for writing"),
    ):
        for word in words:
            assert word in said, f"{word!r} is missing in:\n{said}"
    assert "connect: push" in "".join(migration.report("small")["warnings"])  # beta does not get through to alpha
    new = {host: found - before[host] for host, found in refusal.everything(hosts).items()}
    assert {line for lines in new.values() for line in lines if "longhaul/leases" not in line} <= {STATE_ROOT}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"migrate_jobs": []}, ["There are no jobs", "src_host: old.example.com", "-e @jobs.yml"]),
        ({"migrate_phase": "seeed"}, ["migrate_phase is seeed", "seed, sync, rehearse, cutover"]),
        *rarely(({"migrate_defaults": {"exclued": ["*.tmp"]}}, ["exclued", "exclude"])),
        *rarely(({"migrate_only": "data, daat"}, ["names daat", "no such job"])),
        ({"migrate_jobs": [Migration.job("data", dest_host="gamma")]}, ["gamma", "inventory"]),
    ],
    ids=["no jobs", "no such phase", "typo in an option", "no such job", "no such host"],
)
def test_a_mistake_in_the_variables(
    hosts: Testbed, migration: Migration, variables: dict[str, Any], words: list[str]
) -> None:
    before = refusal.everything(hosts)
    said = migration.run_into_failure(**variables)
    assert [word for word in words if word not in said] == [], said
    assert refusal.everything(hosts) == before and not migration.folder.exists()


@pytest.mark.long
def test_a_sparse_image_that_is_larger_than_its_new_disk(hosts: Testbed, migration: Migration, tmp_path: Path) -> None:
    """Neither the preflight nor the transfer asks for room for holes, and no figure of the report has them."""
    source = hosts.root("alpha") / "data" / "images"
    source.mkdir()
    with open(source / "disk.img", "wb") as image:
        image.truncate(1024 * MIB)
        for number in range(3):
            os.pwrite(image.fileno(), os.urandom(4 * MIB), number * 300 * MIB)
    migration.jobs[0].update(src="/data/images/", dest="/data/disk/dest")
    with loop_disk(hosts, "ext4", tmp_path, 96 * MIB, ("beta", "/data/disk")):
        migration.run("--check")
        predicted = migration.run(migrate_phase="preflight").output
        assert "make room" not in predicted
        migration.run(migrate_phase="seed")
        seed = migration.report()["phases"]["seed"]
        assert [seed[f"bytes_{name}"] for name in ("apparent", "total", "content", "sent")] == [
            1024 * MIB,
            *[12 * MIB] * 3,
        ]
        assert "12.0 MiB (1.0 GiB with holes)" in migration.text()
        # A copy without holes finds no room, and that is said before anything is written.
        migration.jobs = [migration.job("dense", src="/data/images/", dest="/data/disk/dense", preserve=["times"])]
        refused = migration.run_into_failure(migrate_phase="seed")
        assert "1.0 GiB" in refused and "room" in refused, refused
