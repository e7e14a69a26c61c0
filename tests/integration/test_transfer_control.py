# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers that are stopped by name: at either end or at both, waited for or not; the next run resumes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, leftovers
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SIZE = 96 << 20
SLOW = "16mbit"  # 48 seconds
INSIDE = ("stream", "rsync", "rsyncd", "sftp")  # methods that resume inside a file


def move(name: str, **options: Any) -> dict[str, Any]:
    given = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none", **options}
    return {"name": name, "longhaul.fleet.transfer": given}


def cancel(name: str, identity: str, host: str, **keywords: Any) -> dict[str, Any]:
    module = {"longhaul.fleet.transfer_control": {"id": identity, "state": "cancelled"}}
    return {"name": name, **module, "delegate_to": host, **keywords}


def runs(bed: Testbed, host: str) -> bool:
    return any("engine.pyz job" in " ".join(one.argv) for one in bed.processes(host))


def slow_start(hosts: Testbed, playbooks: Playbooks, method: str) -> str:
    """Start a transfer that nobody waits for, let some of it arrive, and give its name."""
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=3)
    hosts.shape("alpha", SLOW)
    start = playbooks.run([move("Start", method=method, wait=False)], hosts="beta").expect_success().result("Start")
    time.sleep(3)
    return start["transfer_id"]


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc", "scp", "sftp")])
def test_a_transfer_that_nobody_waits_for(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    identity = slow_start(hosts, playbooks, method)
    run = playbooks.run(
        [
            cancel("Unknown", "0123456789abcdef", "beta", ignore_errors=True),
            cancel("Predict", identity, "beta", check_mode=True),
            {"name": "Show", "longhaul.fleet.transfer_info": {}},
            cancel("Cancel", identity, "beta"),
            cancel("Again", identity, "beta"),
        ],
        hosts="beta",
    ).expect_success()
    said = run.result("Unknown")["msg"]
    assert identity in said and "/data/dest" in said and "alpha" in said, said
    assert run.result("Predict")["changed"]
    assert run.result("Show")["transfers"][0]["state"] == "serving"
    assert run.result("Cancel")["changed"] and not run.result("Again")["changed"]
    (left,) = run.result("Cancel")["transfers"]
    assert (left["side"], left["part"], left["peer"], left["root"]) == ("dest", "serve", "alpha", "/data/dest")
    assert left["state"] not in ("starting", "running", "serving")
    assert not runs(hosts, "beta")
    wait_for(lambda: not runs(hosts, "alpha"))  # the peer notices
    _expect_resumed(hosts, playbooks, method, before)


@pytest.mark.long
def test_at_the_end_that_connects(hosts: Testbed, playbooks: Playbooks) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    identity = slow_start(hosts, playbooks, "stream")
    stop = cancel("Cancel", identity, "alpha")
    assert playbooks.run([stop], hosts="beta").expect_success().result("Cancel")["changed"]
    assert not runs(hosts, "alpha")
    _expect_resumed(hosts, playbooks, "stream", before)  # whether or not the peer has ended


@pytest.mark.long
def test_a_task_that_waits_shows_a_pause_and_goes_on(hosts: Testbed, playbooks: Playbooks) -> None:
    """Paused and slowed by the module on one host alone, by its id and as one of all."""
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=3)
    hosts.shape("alpha", SLOW)
    running = playbooks.start([move("Move")], hosts="beta")
    wait_for(lambda: "beta: " in running.output)

    def told(**options: Any) -> dict[str, Any]:
        task = {"name": "Tell", "longhaul.fleet.transfer_control": options}
        return playbooks.run([task], hosts="beta").expect_success().result("Tell")

    identity = playbooks.run([{"name": "Show", "longhaul.fleet.transfer_info": {}}], hosts="beta").result("Show")[
        "transfers"
    ][0]["id"]
    paused = told(id=identity, state="paused")
    assert paused["changed"] and [one["paused"] for one in paused["transfers"]] == [True]
    assert not told(all=True, state="paused")["changed"]
    wait_for(lambda: ", paused" in running.output)
    hosts.shape("alpha", None)
    assert told(all=True, state="running", bwlimit="200M")["changed"]
    done = running.wait().expect_success().result("Move")
    assert done["state"] == "finished"
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def _expect_resumed(hosts: Testbed, playbooks: Playbooks, method: str, before: dict[str, set[str]]) -> None:
    hosts.shape("alpha", None)
    done = playbooks.run([move("Resume", method=method)], hosts="beta").expect_success().result("Resume")
    assert done["changed"] and done["state"] == "finished"
    assert done["resumed"] is (method in INSIDE), done
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before


@pytest.mark.parametrize("method", ["stream", *rarely("rsync")])
def test_a_task_that_waits_fails_and_says_so(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=3)
    hosts.shape("alpha", SLOW)
    running = playbooks.start([move("Move", method=method)], hosts="beta")
    wait_for(lambda: "beta: " in running.output)  # the first line of progress
    listed = playbooks.run([{"name": "Show", "longhaul.fleet.transfer_info": {}}], hosts="alpha").result("Show")
    stop = cancel("Cancel", listed["transfers"][0]["id"], "{{ inventory_hostname }}")
    playbooks.run([stop], hosts="alpha,beta").expect_success()
    said = running.wait().result("Move")["msg"]
    assert "told to stop" in said and "run it again" in said, said
    assert not runs(hosts, "alpha") and not runs(hosts, "beta")
