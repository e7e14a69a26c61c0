# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A transfer belongs to its hosts: it runs without a task, is shown, is attached to, and bears a lost control node."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, leftovers
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SIZE = 48 << 20
OPTIONS = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none", "bwlimit": "2M"}
FULL_SPEED = {"bwlimit": None}
SHOW = {"name": "Show", "longhaul.fleet.transfer_info": {}, "delegate_to": "{{ item }}", "loop": ["alpha", "beta"]}


def move(name: str, **options: Any) -> dict[str, Any]:
    """Return the task that moves the tree, slowly: 24 seconds."""
    given = {**OPTIONS, **options}
    return {"name": name, "longhaul.fleet.transfer": {k: v for k, v in given.items() if v is not None}}


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "scp")])
def test_start_show_refuse_attach(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=3)
    hosts.shape("alpha", "16mbit")  # until all has been asked
    tasks = [
        move("Start", method=method, wait=False, **FULL_SPEED),
        {"ansible.builtin.pause": {"seconds": 2}},
        SHOW,
        {**move("Differs", method=method, delete=True, **FULL_SPEED), "ignore_errors": True},
        {**move("Predict", method=method, **FULL_SPEED), "ignore_errors": True, "check_mode": True},
    ]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    started = run.result("Start")
    assert (started["state"], started["changed"]) == ("running", True)
    _expect_shown(run, started["transfer_id"], method)
    for task, word in (("Differs", "other options"), ("Predict", "check mode")):
        said = run.result(task)["msg"]
        assert "is running already" in said and word in said and "alpha" in said, said

    hosts.shape("alpha", None)
    run = playbooks.run([move("Collect", method=method, **FULL_SPEED)], hosts="beta").expect_success()
    collected = run.result("Collect")
    assert (collected["state"], collected["transfer_id"]) == ("finished", started["transfer_id"])
    assert collected["changed"]  # what the first run did is told by the one that collects it
    assert collected["files_created"] == 3
    assert collected["bytes_sent"] >= SIZE
    assert collected["verified"] == "size"
    source, dest = hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest"
    assert compare.differences(source, dest) == []
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before
    assert not playbooks.run([SHOW], hosts="beta").expect_success().result("Show")["results"][0]["transfers"]


def _expect_shown(run: Run, identity: str, method: str) -> None:
    alpha, beta = (one["transfers"] for one in run.result("Show")["results"])
    for shown, side, part, peer, root in (
        (alpha, "source", "drive", "beta", "/data/src"),
        (beta, "dest", "serve", "alpha", "/data/dest"),
    ):
        (job,) = shown
        assert (job["id"], job["side"], job["part"], job["peer"]) == (identity, side, part, peer)
        assert (job["method"], job["root"]) == (method, root)
        assert job["state"] in ("running", "serving")
        assert job["pid"] > 1
    knows = [alpha, beta] if method == "stream" else [alpha]
    for shown in knows:
        progress = shown[0]["progress"]
        assert progress["bytes_total"] == SIZE
        assert 0 < progress["bytes_done"] <= SIZE
        assert progress["rate"] > 0
        assert progress["eta"] >= 0


@pytest.mark.long
def test_a_finished_transfer_is_collected(hosts: Testbed, playbooks: Playbooks) -> None:
    make_big_files(hosts.root("alpha") / "data/src", 6 << 20, count=2)
    start = playbooks.run([move("Start", wait=False)], hosts="beta").expect_success().result("Start")
    assert start["state"] == "running"
    until = time.monotonic() + 60
    while any("engine.pyz job" in " ".join(one.argv) for one in hosts.processes("alpha")):
        assert time.monotonic() < until
        time.sleep(0.2)
    run = playbooks.run([SHOW, move("Collect"), {**SHOW, "name": "After"}], hosts="beta").expect_success()
    assert run.result("Show")["results"][0]["transfers"][0]["state"] == "finished"
    collected = run.result("Collect")
    assert collected["changed"]
    assert collected["files_created"] == 2
    assert not run.result("After")["results"][0]["transfers"]
    assert not run.result("After")["results"][1]["transfers"]


@pytest.mark.long
def test_the_control_node_loses_the_driving_host_for_a_while(hosts: Testbed, playbooks: Playbooks) -> None:
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=3)
    running = playbooks.start([move("Move", timeout=120)], hosts="beta")
    until = time.monotonic() + 60
    while "% " not in running.output and " MiB" not in running.output:  # the first line of progress
        assert time.monotonic() < until and running.process.poll() is None, running.output
        time.sleep(0.2)
    firewall = "add table inet lost; add chain inet lost input { type filter hook input priority 0; }; "
    firewall += "add rule inet lost input iifname eth0 tcp dport 22 drop"
    hosts.exec("alpha", ["nft", firewall])
    time.sleep(6)
    hosts.exec("alpha", ["nft", "delete table inet lost"])
    result = running.wait().expect_success().result("Move")
    assert result["state"] == "finished"
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


@pytest.mark.long
def test_a_destination_that_goes_down_is_told_with_what_to_do(hosts: Testbed, playbooks: Playbooks) -> None:
    """Neither the peer nor the control node can reach it any more."""
    make_big_files(hosts.root("alpha") / "data/src", SIZE, count=2)
    running = playbooks.start([move("Move", method="stream")], hosts="beta")
    until = time.monotonic() + 60
    while " MiB" not in running.output:
        assert time.monotonic() < until and running.process.poll() is None, running.output
        time.sleep(0.2)
    firewall = "add table inet lost; add chain inet lost input { type filter hook input priority 0; }; "
    firewall += "add rule inet lost input iifname eth0 tcp dport 22 reject with tcp reset"
    hosts.exec("beta", ["nft", firewall])
    try:
        for process in hosts.processes("beta"):
            if "engine.pyz job" in " ".join(process.argv):
                hosts.kill("beta", process)
        said = running.wait().result("Move")["msg"]
    finally:
        hosts.exec("beta", ["nft", "delete table inet lost"])
    assert "was killed or restarted" in said and "beta" in said, said
    assert "When that host can be reached again, run the task again: it resumes" in said, said
    again = playbooks.run([move("Again", method="stream", **FULL_SPEED)], hosts="beta").expect_success().result("Again")
    assert again["resumed"] and not again["attached"]
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []
