# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts answer: paths that are used as they are, and answers of which nothing but named values is taken."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.answering_python import add_to_answers
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.refusal import small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SHOWN = r"data/a\rb\u202e"  # another folder: how the path is shown
TITLE = "\x1b]0;title\x07"


@pytest.mark.parametrize("method", ["stream", "scp", *rarely("rsync", "tar_nc", "sftp")])
def test_a_path_with_control_characters_is_used_as_it_is(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    """Twice: the second time the plan is made of what is remembered of the first."""
    small_tree(hosts)
    root = hosts.root("beta")
    kept = root / SHOWN / "d/kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious")
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/a\rb\u202e/d", "method": method, "delete": True}
    tasks = [
        {"name": name, "longhaul.fleet.transfer": {**options, "verify": "checksum"}} for name in ("First", "Second")
    ]
    verify = {name: value for name, value in options.items() if name in ("src_host", "src", "dest")}
    run = playbooks.run([*tasks, {"name": "Compare", "longhaul.fleet.verify": verify}], hosts="beta").expect_success()
    assert not compare.differences(hosts.root("alpha") / "data/src", root / "data/a\rb\u202e/d")
    assert kept.read_text() == "precious"
    assert run.result("First")["changed"] and not run.result("Second")["changed"]


def test_nothing_of_an_answer_becomes_a_variable_or_reaches_the_terminal(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    added = {
        "ansible_facts": {"poison": "yes", "ansible_remote_tmp": "/tmp/$(touch /data/poisoned)"},
        "ansible_stats": {"data": {"poison": TITLE}, "per_host": False, "aggregate": False},
        "warnings": [TITLE],
        "deprecations": [{"msg": TITLE, "version": "99.0"}],
        f"_ansible_{TITLE}": TITLE,
        "msg": TITLE,
    }
    add_to_answers(hosts, playbooks.inventory, "alpha", **added)
    transfer = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest"}
    tasks = [
        {"name": "Transfer", "longhaul.fleet.transfer": transfer, "register": "said"},
        {"name": "Compare", "longhaul.fleet.verify": transfer},
        {"name": "Path", "longhaul.fleet.nic_path_info": {"from_host": "alpha", "address": hosts.address("beta")}},
        {"name": "Fail", "longhaul.fleet.transfer": {**transfer, "src": "/data/none/"}, "ignore_errors": True},
        {"name": "Show", "ansible.builtin.debug": {"msg": "{{ poison | default('clean') }} {{ said.keys() | list }}"}},
    ]
    run = playbooks.run(tasks, "-vvv", hosts="beta").expect_success()
    shown = run.result("Show")["msg"]
    assert shown.startswith("clean ") and "ansible_facts" not in shown and "warnings" not in shown
    assert "\x1b" not in run.output and "CUSTOM STATS" not in run.output
    assert not (hosts.root("beta") / "data/poisoned").exists()


def test_a_host_that_answers_with_too_much_or_not_at_all_fails_alone(hosts: Testbed, playbooks: Playbooks) -> None:
    """The destination of a job is asked first."""
    program = hosts.root("alpha") / "data/hostile-python"
    content = json.loads(playbooks.inventory.read_text())
    content["all"]["hosts"]["alpha"]["ansible_python_interpreter"] = "/data/hostile-python"
    content["all"]["hosts"]["alpha"]["longhaul_answer_timeout"] = 6
    playbooks.inventory.write_text(json.dumps(content))
    nested = "print('{\"results\": [' + '[' * 2000 + ']' * 2000 + ']}')"
    ways = {
        f'cat > /dev/null; exec /usr/bin/python3 -c "{nested.replace(chr(34), chr(92) + chr(34))}"': "64 levels",
        "cat > /dev/null; echo '{\"results\": [1]}'": "an object is expected",
        "exec sleep 600": "no answer within",
        "exec cat /dev/zero": "no answer|longer than|cannot be read",
    }
    job = {"name": "one", "src_host": "beta", "src": "/data/src", "dest_host": "alpha", "dest": "/data/dest"}
    status = {"name": "Ask", "longhaul.fleet.fleet_status": {"jobs": [job], "on_unreachable": "report"}}
    for script, words in ways.items():
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        began = time.monotonic()
        run = playbooks.run([status], hosts="localhost").expect_success()
        (unreachable,) = run.result("Ask")["unreachable_hosts"]
        assert unreachable["host"] == "alpha" and any(one in unreachable["reason"] for one in words.split("|")), (
            script,
            unreachable,
        )
        assert time.monotonic() - began < 60


@pytest.mark.parametrize("family", ["../../../../inventory/host_vars/other", "/data/vars", "Debian"])
def test_the_system_that_a_host_reports_names_no_file(hosts: Testbed, playbooks: Playbooks, family: str) -> None:
    """A file of variables beside the inventory has what another host must not see."""
    place = playbooks.inventory.parent / "host_vars"
    place.mkdir(exist_ok=True)
    (place / "other.yml").write_text("stolen: hunter2\n")
    facts = {"distribution": family, "os_family": family, "pkg_mgr": "apt", "service_mgr": "systemd", "cacheable": True}
    tasks = [{"name": "Report", "ansible.builtin.set_fact": facts}]
    for role, file, variable in (("rsyncd", "facts", "service"), ("ssh_client", "begin", "group")):
        tasks.append(
            {
                "name": role,
                "ansible.builtin.include_role": {"name": f"longhaul.fleet.{role}", "tasks_from": file, "public": True},
            }
        )
        shown = {"msg": f"{{{{ __{role}_{variable} }}}} {{{{ stolen | default('safe') }}}}"}
        tasks.append({"name": f"Show {role}", "ansible.builtin.debug": shown, "vars": {"ssh_client_peers": []}})
    run = playbooks.run(tasks, hosts="beta").expect_success()
    known = (
        {"rsyncd": "rsync", "ssh_client": "root"} if family == "Debian" else {"rsyncd": "rsyncd", "ssh_client": "root"}
    )
    for role, value in known.items():
        assert run.result(f"Show {role}")["msg"] == f"{value} safe"


@pytest.mark.long
def test_cached_facts_that_are_refused_end_the_jobs_of_their_host_only(hosts: Testbed, playbooks: Playbooks) -> None:
    """Though it is the first one of the plays that run once, and says where the inventory is and what the jobs are."""
    small_tree(hosts)
    folder = playbooks.inventory.parent
    forged, textfile = folder / "forged", folder / "forged.prom"
    job = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest"}
    jobs = [{**job, "name": f"to-{host}", "dest_host": host} for host in ("beta", "alpha")]
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "group_vars/all.yml").write_text(json.dumps({"migrate_jobs": jobs}))
    (playbooks.folder / "ansible.cfg").write_text(
        f"[defaults]\nfact_caching=jsonfile\nfact_caching_connection={folder / 'cache'}\n"
    )
    said = {"inventory_dir": str(forged), "migrate_jobs": [], "status_textfile": str(textfile), "cacheable": True}
    playbooks.run([{"ansible.builtin.set_fact": said}], hosts="beta").expect_success()
    run = playbooks.run("longhaul.fleet.migrate", migrate_phase="seed")
    assert run.rc and "1 of 2 jobs failed: to-beta" in run.failures[-1], run.output
    assert "migrate_jobs, inventory_dir: set among the facts of beta" in run.output
    assert not compare.differences(hosts.root("alpha") / "data/src", hosts.root("alpha") / "data/dest")
    assert not (hosts.root("beta") / "data/dest").exists()
    run = playbooks.run("longhaul.fleet.verify")
    assert "to-alpha: the trees are the same" in run.output and "1 of 2 jobs failed: to-beta" in run.failures[-1]
    run = playbooks.run("longhaul.fleet.status")
    assert run.rc == 0 and "to-alpha" in run.output and "set among the facts of beta" in run.output, run.output
    assert not forged.exists() and not textfile.exists()
