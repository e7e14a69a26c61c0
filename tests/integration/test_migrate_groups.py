# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that switch over together: two trees go from alpha to beta, and one from beta to alpha."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import STRAY, Migration
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

PAIRS = {"site": ("alpha", "beta"), "homes": ("alpha", "beta"), "database": ("beta", "alpha")}
NEEDS_MENDING = {"name": "look for what is missing", "host": "source", "command": ["/bin/ls", "/data/mended"]}


class Server:
    """A server whose three trees move together. A file up-NAME at the source of each says that it serves."""

    def __init__(self, bed: Testbed, migration: Migration) -> None:
        self.bed, self.migration = bed, migration
        migration.jobs = [self._job(name, *hosts) for name, hosts in PAIRS.items()]
        for name, (source, _dest) in PAIRS.items():
            tree = bed.root(source) / f"data/{name}"
            tree.mkdir(parents=True)
            for number in range(20):
                (tree / f"file{number}").write_text(f"{name} {number}")
            (bed.root(source) / f"data/up-{name}").touch()

    @staticmethod
    def _job(name: str, source: str, dest: str) -> dict[str, Any]:
        def shell(host: str, words: str) -> dict[str, Any]:
            return {"name": words, "host": host, "command": ["/bin/sh", "-c", words]}

        return {
            **Migration.job(name, source, dest, src=f"/data/{name}/", dest=f"/data/new-{name}"),
            "cutover_group": "server",
            "delete": True,
            "before_cutover": [shell("source", f"rm -f /data/up-{name}; echo stop >> /data/log-{name}")],
            "cutover_failed": [shell("source", f"touch /data/up-{name}; echo back >> /data/log-{name}")],
            "after_cutover": [shell("source", f"echo switch >> /data/log-{name}")],
        }

    def job(self, name: str) -> dict[str, Any]:
        """Return a job, which a test may change."""
        return next(job for job in self.migration.jobs if job["name"] == name)

    def root(self, name: str) -> Path:
        """Return the folder of a job's source host in which its files are."""
        return self.bed.root(PAIRS[name][0]) / "data"

    @property
    def serving(self) -> list[str]:
        """The jobs whose sources serve."""
        return [name for name in PAIRS if (self.root(name) / f"up-{name}").exists()]

    def log(self, name: str) -> str:
        """Return what the hooks of a job did, one word each."""
        path = self.root(name) / f"log-{name}"
        return " ".join(path.read_text().split()) if path.exists() else ""

    def state(self, name: str) -> dict[str, Any]:
        """Return the state of a job, empty if there is none."""
        path = self.migration.folder / f"state/{name}.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def stands(self, name: str) -> str:
        """Return where a job of the group stands."""
        return self.state(name).get("group", {}).get("stands", "")

    def run_into_failure(self) -> str:
        """Run the playbook, which must fail, and return what it says on failures at the end, of all hosts."""
        run = self.migration.start().wait()
        assert run.rc != 0 and "Traceback" not in run.output and "undefined" not in run.output, run.output
        return "\n".join(run.failures)

    def expect_back(self, said: str, culprit: str, phase: str) -> None:
        """Check that all sources serve, that nothing was switched over, and that all jobs say why."""
        assert self.serving == list(PAIRS), said
        assert not any("switch" in self.log(name) for name in PAIRS), said
        for name in PAIRS:
            report = self.migration.report(name)
            assert not report["switch"] and not report["quiesced"] and "still serves" in report["next"], report
            if name != culprit:
                assert f"job {culprit} stopped in phase {phase}" in report["failure"]["reason"], report["failure"]
                assert f"{name} stopped in phase" in said, said

    def expect_switched(self) -> None:
        """Check that all were switched over, once, and that nothing is missing."""
        assert self.serving == []
        for name, (source, dest) in PAIRS.items():
            words = self.log(name)
            assert words.count("switch") == 1 and words.endswith("stop switch"), words
            report = self.migration.report(name)
            assert report["switch"]["done"] and report["phases"]["verify"]["identical"] and not report["failure"]
            trees = (self.bed.root(source) / f"data/{name}", self.bed.root(dest) / f"data/new-{name}")
            assert compare.differences(*trees) == []


@pytest.fixture
def server(hosts: Testbed, migration: Migration) -> Server:
    """Return a server that was copied nowhere yet."""
    return Server(hosts, migration)


@pytest.mark.parametrize("step", ["final pass", *rarely("seed", "before hook", "comparison")])
def test_a_failure_before_the_switch_brings_all_back(hosts: Testbed, server: Server, step: str) -> None:
    migration, culprit = server.migration, "homes" if step in ("before hook", "final pass") else "database"
    mended = server.root(culprit) / "mended"
    if step == "seed":
        server.root(culprit).joinpath("database").rename(server.root(culprit) / "gone")
    if step == "before hook":
        server.job(culprit)["before_cutover"].append(NEEDS_MENDING)
    if step == "final pass":  # the tree of the third job goes away before it
        words = "test -e /data/mended || mv /data/homes /data/gone"
        server.job(culprit)["before_cutover"].append({"host": "source", "command": ["/bin/sh", "-c", words]})
    if step == "comparison":
        migration.run(migrate_phase="sync")
        hosts.popen("alpha", ["/usr/bin/python3", "-c", STRAY, "/data/new-database"])
    said = server.run_into_failure()
    for process in hosts.processes("alpha"):
        if STRAY in process.argv:
            hosts.kill("alpha", process)
    server.expect_back(said, culprit, {"seed": "preflight", "comparison": "verify"}.get(step, "cutover"))
    stopped = {"seed": "", "before hook": "stop back"}
    assert server.log("site") == stopped.get(step, "stop back")
    if step == "comparison":
        assert "stray" in migration.report(culprit)["failure"]["reason"]

    mended.touch()
    if step in ("seed", "final pass"):
        (server.root(culprit) / "gone").rename(server.root(culprit) / culprit)
    migration.run()
    server.expect_switched()


@pytest.mark.long
@pytest.mark.parametrize("lost", [False, True], ids=["noticed", "lost"])
def test_a_hook_on_a_host_that_cannot_be_reached(server: Server, lost: bool) -> None:
    refusal.add_hosts(server.migration.playbooks.inventory, {"closed": ("beta", {"ansible_port": 9})})
    hook: dict[str, Any] = {"host": "closed", "command": ["/bin/true"]}
    if lost:  # where a task of the user cannot reach a host, Ansible goes on without the host of the job
        tasks = "- name: Reach it\n  ansible.builtin.ping:\n  delegate_to: closed\n"
        (server.migration.playbooks.inventory.parent / "reach.yml").write_text(tasks)
        hook = {"host": "source", "tasks": "reach.yml"}
    server.job("homes")["before_cutover"].append(hook)
    said = server.run_into_failure()
    if not lost:
        server.expect_back(said, "homes", "cutover")
        assert "closed cannot be reached" in said, said
    # What the host of the job cannot do any more, another one of the group does for it.
    assert server.serving == list(PAIRS) and not any("switch" in server.log(name) for name in PAIRS), said
    assert [server.log(name) for name in PAIRS] == ["stop back"] * 3
    assert not any(server.state(name)["quiesced"] for name in PAIRS)
    assert all(f"{name} stopped in phase" in said for name in PAIRS), said


@pytest.mark.long
def test_a_failure_in_the_switch_holds_up_no_other_job(server: Server) -> None:
    server.job("site")["after_cutover"].insert(0, NEEDS_MENDING)
    said = server.run_into_failure()
    assert "site stopped in phase switch" in said and "homes stopped" not in said, said
    assert server.serving == [] and "back" not in " ".join(map(server.log, PAIRS))
    assert [bool(server.state(name)["switch"]["done"]) for name in PAIRS] == [False, True, True]
    (server.root("site") / "mended").touch()
    server.migration.run()
    server.expect_switched()


@pytest.mark.long
def test_a_controller_killed_in_the_switch(server: Server) -> None:
    words = "echo wait >> /data/log-site; for i in $(seq 600); do test -e /data/mended && break; sleep 0.1; done"
    server.job("site")["after_cutover"].append({"host": "source", "command": ["/bin/sh", "-c", words]})
    running = server.migration.start()
    wait_for(lambda: "wait" in server.log("site"), seconds=300)
    running.kill()
    running.process.wait()
    assert not server.log("homes").endswith("switch") and server.state("homes")["switch"]
    (server.root("site") / "mended").touch()
    server.migration.run()
    assert server.log("site") == "stop switch wait wait"  # what was under way is done again, and nothing else
    assert server.log("homes") == server.log("database") == "stop switch" and server.serving == []
    assert all(server.migration.report(name)["switch"]["done"] for name in PAIRS)


@pytest.mark.long
def test_a_rehearsal_does_everything_but_the_switch(server: Server) -> None:
    migration = server.migration
    server.job("database")["before_cutover"].append(NEEDS_MENDING)
    run = migration.start(migrate_phase="rehearse").wait()
    assert run.rc != 0, run.output
    server.expect_back("\n".join(run.failures), "database", "cutover")
    (server.root("database") / "mended").touch()
    said = migration.run(migrate_phase="rehearse").output
    assert server.serving == list(PAIRS) and "Rehearsed, and the sources serve again" in said, said
    for name in PAIRS:
        report = migration.report(name)
        assert server.log(name) == "stop back stop back" and not report["switch"] and not report["failure"]
        assert not {"cutover", "verify"} & set(report["phases"])
        rehearsal, downtime = report["phases"]["rehearsal"], report["downtimes"][-1]
        assert rehearsal["verify"]["identical"] and rehearsal["cutover"]["files_total"] > 20
        assert downtime["rehearsal"] and downtime["serves"] == "the old host again"
        assert report["forecast"]["seconds"] == downtime["seconds"] and "rehearsal" in report["forecast"]["why"]
        assert f"downtime to expect: about {report['forecast']['lasted']}" in said, said
        assert "Downtime to expect" in migration.text(name) and "(rehearsal)" in migration.text(name)
    assert "Downtime of group" in migration.text("report")
    migration.run()
    assert server.serving == [] and all(migration.report(name)["switch"]["done"] for name in PAIRS)
    assert all(not migration.report(name)["forecast"] for name in PAIRS)


@pytest.mark.long
def test_what_leaves_out_a_part_of_a_group_is_refused(hosts: Testbed, server: Server) -> None:
    migration, before = server.migration, refusal.everything(hosts)
    said = migration.run_into_failure(migrate_only=["site"])
    assert "migrate_only leaves out homes, database" in said, said
    assert """-e '{"migrate_only": ["site", "homes", "database"]}'""" in said, said
    said = migration.run_into_failure("--limit", "localhost,beta")
    assert "has not the hosts alpha" in said and "--limit 'localhost,beta,alpha'" in said, said
    assert refusal.everything(hosts) == before
    migration.run("--limit", "localhost,beta", migrate_phase="sync")  # which switches nothing over
    assert server.serving == list(PAIRS) and migration.report("site")["phases"]["sync"]


@pytest.mark.long
@pytest.mark.parametrize("way", ["linear", "serial", "free"])
def test_the_role_in_a_playbook_of_ones_own(server: Server, way: str) -> None:
    migration = server.migration
    variables = {"migrate_jobs": migration.jobs, "migrate_phase": "cutover"}
    how: dict[str, Any] = {"serial": {"serial": 1}, "free": {"strategy": "free"}}.get(way, {})
    role = {"name": "Migrate", "ansible.builtin.include_role": {"name": "longhaul.fleet.migrate"}}
    play = {"hosts": "alpha:beta", "gather_facts": False, "tasks": [role], **how}
    run = migration.playbooks.start([play], **variables).wait()
    if way == "serial":
        assert run.rc != 0 and "cutover_group server" in run.output, run.output
        assert server.serving == list(PAIRS) and not any("switch" in server.log(name) for name in PAIRS), run.output
    else:
        run.expect_success()
        server.expect_switched()


@pytest.mark.long
def test_a_group_on_one_host_does_not_wait_for_others(server: Server) -> None:
    server.job("database").pop("cutover_group")
    server.job("database")["before_cutover"].append(NEEDS_MENDING)
    server.job("homes")["before_cutover"].append(NEEDS_MENDING)
    said = server.run_into_failure()
    assert server.log("site") == "stop back" and "job homes stopped in phase cutover" in said, said
    (server.root("homes") / "mended").touch()
    server.run_into_failure()  # the other one still cannot
    assert server.log("site") == "stop back stop switch" and server.log("homes") == "stop back stop switch"
    assert server.log("database") == "stop back stop back"
