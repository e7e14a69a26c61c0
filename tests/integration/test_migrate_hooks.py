# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks of a migration: those that fail or do not end, and those on hosts whose answers are meant for other hosts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration
from ansible_collections.longhaul.fleet.tests.support import refusal
from ansible_collections.longhaul.fleet.tests.support.answering_python import add_to_answers, touching
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

SAYS = "echo to standard output; echo to standard error >&2; exit 3"
SECRET = "hunter2"
FOR_ALL = {"name": "mark the host", "host": "source", "command": ["/usr/bin/touch", "/data/marked"]}
OPEN = {"name": "flush the cache", "host": "source", "command": ["/bin/sh", "-c", SAYS]}
HIDDEN = {
    "name": "log in",
    "host": "source",
    "no_log": True,
    "command": ["/bin/sh", "-c", f"echo {SECRET}; echo {SECRET} >&2; exit 3"],
}
TASKS = f"- name: Tell the secret\n  ansible.builtin.command: /bin/sh -c 'echo {SECRET} >&2; exit 3'\n"


def everything_said(migration: Migration, output: str) -> str:
    """Return what was printed and all that stands in the folder of reports."""
    files = [path for path in migration.folder.rglob("*") if path.is_file()]
    assert len(files) >= 4
    return output + "".join(path.read_text() for path in files)


@pytest.mark.parametrize("when", ["after_cutover", *rarely("before_cutover", "cutover_failed", "switch_failed")])
def test_a_failed_hook_is_named_with_its_output(hosts: Testbed, migration: Migration, when: str) -> None:
    fails = {"host": "dest", "command": ["/bin/false"]}
    migration.jobs[0].update({"before_cutover": [fails]} if when == "cutover_failed" else {})
    migration.jobs[0].update({"after_cutover": [fails]} if when == "switch_failed" else {})
    migration.jobs[0][when] = [OPEN]
    # Those of all jobs (migrate_before_cutover, migrate_after_cutover, migrate_cutover_failed, migrate_switch_failed)
    # run ahead of the job's own.
    migration.options[f"migrate_{when}"] = [FOR_ALL]
    said = migration.run_into_failure()
    assert (hosts.root("alpha") / "data/marked").exists()
    reports = {
        "the message": said,
        "the report of the job": migration.text(),
        "the overview": migration.text("report"),
        "its data": migration.report()["failure"]["reason"],
    }
    for where, text in reports.items():
        assert f"flush the cache ({when}) on alpha" in text, (where, text)
        assert "(rc 3): to standard error" in text, (where, text)
    ran = [(one["name"], one["kind"], one["result"]) for one in migration.report()["hooks"]]
    assert ran[-2:] == [("mark the host", when, "done"), ("flush the cache", when, "failed")]
    assert bool(migration.report()["switch"]) == (when in ("after_cutover", "switch_failed"))

    # The same with no_log, once as a command and once as a file of tasks: its name is all that is told.
    (migration.playbooks.inventory.parent / "login.yml").write_text(TASKS)
    for hidden in (HIDDEN, {"name": "log in", "host": "source", "no_log": True, "tasks": "login.yml"}):
        migration.jobs[0][when] = [hidden]
        run = migration.start("-vv").wait()
        assert run.rc != 0
        told = everything_said(migration, run.output)
        assert SECRET not in told and f"log in ({when}) on alpha failed" in run.failures[-1], run.failures[-1]


def test_the_answer_of_a_hook_sets_no_variable(hosts: Testbed, migration: Migration) -> None:
    """Facts of the source are meant for the control node, and statistics for later jobs."""
    canary = migration.folder.with_name("canary")
    added = {
        "ansible_facts": {
            **{f"migrate_{kind}": touching(canary) for kind in ("after_cutover", "cutover_failed", "switch_failed")},
            "ansible_remote_tmp": f"$(touch {canary})",
        },
        "ansible_stats": {"data": {"chosen by": "the source"}},
    }
    add_to_answers(hosts, migration.playbooks.inventory, "alpha", **added)
    migration.jobs = [migration.job("data", trust="none", before_cutover=[FOR_ALL], after_cutover=[FOR_ALL])]
    run = migration.run()
    assert (hosts.root("alpha") / "data/marked").exists() and migration.report()["switch"]["done"]
    assert not canary.exists() and "chosen by" not in run.output
    assert [(one["result"], one["rc"]) for one in migration.report()["hooks"]] == [("done", 0)] * 2
    assert "data: hook mark the host (before_cutover) begins on alpha" in run.output
    assert "data: hook mark the host (before_cutover) done, rc 0" in run.output, run.output


def test_a_hook_has_the_keywords_of_its_task(hosts: Testbed, migration: Migration) -> None:
    """Its become, and the environment of the play that uses the role; it is run once, whatever ssh would repeat."""
    inventory = migration.playbooks.inventory
    hosts.inventory(inventory, user="mover", extra={"ansible_pipelining": True, "ansible_ssh_retries": 2})
    count = 'echo "$(id -u) $CHOSEN $HOME" >> /data/ran'
    cut = "for p in /proc/[0-9]*; do grep -aq '[s]shd.*mover' $p/cmdline && kill -9 ${p#/proc/}; done; sleep 5"
    lost = {"name": "lose the line", "host": "source", "command": ["/bin/sh", "-c", f"{count}; {cut}"]}
    told = {"name": "tell", "host": "source", "command": ["/bin/sh", "-c", count]}
    migration.jobs[0].update(before_cutover=[told], after_cutover=[lost])
    role = {"hosts": "beta", "gather_facts": False, "environment": {"CHOSEN": "by the play"}}
    given = {"migrate_jobs": migration.jobs, "migrate_phase": "cutover", "migrate_report_dir": str(migration.folder)}
    run = migration.playbooks.run([{**role, "roles": ["longhaul.fleet.migrate"]}], **given)
    assert run.rc != 0 and "lose the line (after_cutover) on alpha failed" in run.failures[-1], run.output
    assert "alpha cannot be reached" in run.failures[-1], run.failures[-1]
    # Of both hooks, each once.
    assert (hosts.root("alpha") / "data/ran").read_text() == 2 * "0 by the play /root\n"


# Ends all logins of a host.
CUT = "for p in /proc/[0-9]*; do grep -aqE '^sshd(-session)?: root@' $p/cmdline && kill -9 ${p#/proc/}; done"


def shell(word: str, more: str = "", kind: str = "command", host: str = "source") -> dict[str, Any]:
    """Return a hook that writes a word down, of any kind; tasks stand in a file of that name."""
    argv = ["/bin/sh", "-c", f"echo {word} >> /data/ran{more}"]
    what: dict[str, Any] = {"module": "ansible.builtin.command", "args": {"argv": argv}}
    if kind == "command":
        what = {"command": argv}
    elif kind == "tasks":
        what = {"tasks": f"{word}.yml"}
    return {"name": word, "host": host, **what}


def ran(bed: Testbed) -> list[str]:
    """Return what hooks have written down at the source."""
    path = bed.root("alpha") / "data/ran"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("before_cutover", "command"),
        *rarely(
            ("before_cutover", "module"),
            ("before_cutover", "tasks"),
            ("after_cutover", "command"),
        ),
    ],
)
def test_a_hook_whose_connection_breaks_has_run_once(
    hosts: Testbed, migration: Migration, when: str, kind: str
) -> None:
    """The same command again runs it again, where its list is run again."""
    inventory = migration.playbooks.inventory
    retries = {} if kind == "tasks" else {"ansible_ssh_retries": 2}  # which Ansible has for tasks of the user's own
    hosts.inventory(inventory, extra={"ansible_pipelining": True, **retries})
    task = {"ansible.builtin.command": {"argv": ["/bin/sh", "-c", f"echo lost >> /data/ran; {CUT}; sleep 5"]}}
    (inventory.parent / "lost.yml").write_text(json.dumps([task]))
    own = {
        "before_cutover": ["stop"],
        "after_cutover": ["switch"],
        "cutover_failed": ["back"],
        "switch_failed": ["tell"],
    }
    hooks = {one: [shell(word) for word in words] for one, words in own.items()}
    hooks[when].insert(1, shell("lost", f"; {CUT}; sleep 5", kind))
    migration.jobs[0].update(hooks)
    said = migration.run_into_failure()
    expected = {"before_cutover": "stop lost back", "after_cutover": "stop switch lost tell"}
    assert ran(hosts) == expected[when].split(), said
    assert f"lost ({when}) on alpha failed" in said, said
    told = "a host could not be reached, so Ansible ended its tasks" if kind == "tasks" else "alpha cannot be reached"
    assert told in said, said
    assert {one["name"]: one["result"] for one in migration.report()["hooks"]}["lost"] == "failed"
    is_back = when == "before_cutover"
    assert migration.report()["quiesced"] != is_back, said
    assert ("alpha still serves" in said) == is_back, said

    for one in hooks.values():
        one[:] = [hook if hook["name"] != "lost" else shell("found") for hook in one]
    (hosts.root("alpha") / "data/ran").unlink()
    migration.run()
    assert ran(hosts) == {"before_cutover": ["stop", "found", "switch"], "after_cutover": ["found"]}[when]
    assert migration.report()["switch"]["done"]


def test_hooks_that_cannot_run_are_told_before_anything_begins(hosts: Testbed, migration: Migration) -> None:
    folder = migration.playbooks.inventory.parent
    (folder / "torn.yml").write_text("- name: Stop it\n  ansible.builtin.command: {")
    (folder / "words.yml").write_text("stop: it\n")
    files = [{"name": name, "host": "source", "tasks": f"{name}.yml"} for name in ("misspelt", "torn", "words")]
    migration.jobs[0].update(before_cutover=files)
    said = migration.run_into_failure(migrate_phase="sync")
    for words in ("misspelt.yml cannot be read", "torn.yml cannot be read", "words.yml is no list of tasks"):
        assert words in said, said
    migration.jobs[0].update(before_cutover=[{**files[0], "host": "alpha2"}])
    said = migration.run_into_failure(migrate_phase="sync")
    assert "hook misspelt of before_cutover runs on alpha2, which is not in the inventory" in said, said
    assert not (hosts.root("beta") / "data/dest").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["command", "tasks"])
def test_a_hook_that_does_not_end_in_time_fails(hosts: Testbed, migration: Migration, kind: str) -> None:
    hangs: dict[str, Any] = {"name": "hang", "host": "source", "timeout": 2, "command": ["/bin/sleep", "3600"]}
    if kind == "tasks":
        tasks = "- name: Hang\n  ansible.builtin.command: /bin/sleep 3600\n"
        (migration.playbooks.inventory.parent / "hang.yml").write_text(tasks)
        hangs = {"name": "hang", "host": "source", "timeout": 2, "tasks": "hang.yml"}
    back = {"host": "source", "command": ["/usr/bin/touch", "/data/back"]}
    migration.jobs[0].update(before_cutover=[hangs], cutover_failed=[back])
    migration.run(migrate_phase="sync")
    began = time.monotonic()
    said = migration.run_into_failure()
    assert time.monotonic() - began < 90
    assert "hang (before_cutover) on alpha failed" in said, said
    assert kind == "tasks" or "did not end within 2 s" in said, said
    assert (hosts.root("alpha") / "data/back").exists() and not migration.report()["quiesced"]
    for process in hosts.processes("alpha"):
        if "3600" in process.argv:
            hosts.kill("alpha", process)


GATHERS = """
- name: Set a fact for a later hook
  ansible.builtin.set_fact: {kept: here}
  delegate_facts: false
- name: Set a fact of the host
  ansible.builtin.set_fact: {lost: there}
- name: Gather the facts of the host
  ansible.builtin.setup: {gather_subset: min}
- name: Read them
  ansible.builtin.assert:
    that: hostvars[where].ansible_facts.hostname is defined and hostvars[where].lost == 'there'
  delegate_facts: false
"""
LATER = """
- name: Read what was set
  ansible.builtin.assert: {that: kept == 'here' and lost is undefined}
"""


@pytest.mark.long
def test_what_tasks_of_a_hook_gather_belongs_to_their_host(hosts: Testbed, migration: Migration) -> None:
    """A fact reaches a later hook if the user says so. What the destination says of itself does not change the job."""
    folder, canary = migration.playbooks.inventory.parent, migration.folder.with_name("canary")
    (folder / "gathers.yml").write_text(GATHERS)
    (folder / "later.yml").write_text(LATER)
    migration.jobs[0].update(
        before_cutover=[{"host": "source", "tasks": "gathers.yml"}],
        after_cutover=[{"host": "dest", "tasks": "later.yml"}],
    )
    migration.run(where="alpha")

    facts = {f"migrate_{kind}": touching(canary) for kind in ("after_cutover", "cutover_failed", "switch_failed")}
    add_to_answers(hosts, migration.playbooks.inventory, "beta", ansible_facts=facts)
    gathers = {"host": "dest", "tasks": "gathers.yml"}
    back = {"host": "source", "command": ["/usr/bin/touch", "/data/back"]}
    migration.jobs[0].update(name="again", dest="/data/again", before_cutover=[gathers, FOR_ALL], cutover_failed=[back])
    said = migration.run_into_failure(where="beta")
    assert "migrate_after_cutover, migrate_cutover_failed, migrate_switch_failed: set among the facts of beta" in said
    assert (hosts.root("alpha") / "data/back").exists() and not canary.exists()
    assert not (hosts.root("alpha") / "data/marked").exists() and not migration.report("again")["switch"]


def test_a_host_that_is_lost_by_tasks_of_the_control_node_takes_no_report_with_it(
    hosts: Testbed, migration: Migration
) -> None:
    """The play host whose task has lost a host does nothing more, and localhost has to report."""
    inventory = migration.playbooks.inventory
    refusal.add_hosts(inventory, {"localhost": ("beta", {}), "closed": ("alpha", {"ansible_port": 9})})
    (inventory.parent / "lose.yml").write_text("- ansible.builtin.ping:\n  delegate_to: closed\n")
    hooks = {"before_cutover": [{"host": "source", "tasks": "lose.yml"}], "cutover_failed": [shell("back")]}
    migration.jobs = [migration.job("data", dest_host="localhost", **hooks)]
    said = migration.run_into_failure()
    assert "a host could not be reached, so Ansible ended its tasks" in said and "alpha still serves" in said, said
    assert ran(hosts) == ["back"] and "stopped in cutover" in migration.text("report")
