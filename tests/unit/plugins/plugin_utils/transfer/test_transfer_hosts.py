# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that both hosts of a transfer are asked, and how they are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.plan import make_plan
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import parse_status
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.transfer_hosts import (
    HostChanged,
    TransferHosts,
    TransferSteps,
)
from ansible_collections.longhaul.fleet.tests.support.scripted_hosts import ScriptedHost, failed
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end, options, path

MEASURED = {"entries": 3, "content": 7, "apparent": 7, "complete": True}


class Pair:
    """Two hosts, with a plan and the steps of a transfer between them."""

    def __init__(self, check: bool = False, empty: bool = False, more: Any = None, size: int = 7, **given: Any) -> None:
        at = {"source": path(measured={**MEASURED, "apparent": size}, empty=False), "dest": path(empty=empty)}
        self.ends = {side: end(side, at=at[side], fingerprint=side) for side in at}
        self.runners: Any = {side: ScriptedHost(side, self.ends[side].probe) for side in at}
        asked = options(**{"numeric_ids": True, **given})
        self.steps = TransferSteps(("source", "dest"), asked, "mark", check, **(more or {}))
        self.hosts = TransferHosts(self.runners, self.steps, lambda _line: None)
        self.plan = make_plan(asked, *self.ends.values(), check)

    def drive(self) -> Any:
        comparison = self.hosts.comparison(self.plan) if self.steps.compares else None
        return self.steps.drive(self.plan, self.ends[self.plan.driver], {"port": 5}, ["exchange"], comparison)

    def last(self) -> list[str]:
        """Return the steps after the transfer, and those that follow the last of them."""
        then = self.drive()["then"]
        return [step["do"] for step in [*then, *(then[-1].get("then", ()) if then else ())]]


@pytest.mark.parametrize(
    ("given", "last"),
    [
        ({}, ["stop", "quick_digest", "clear"]),
        ({"connect": "pull", "sync": "data"}, ["stop", "quick_digest", "clear", "sync"]),
        ({"connect": "pull", "sync": "data", "verify": "none"}, ["stop", "clear", "sync"]),
        ({"connect": "pull", "sync": "data", "check": True}, ["stop", "clear"]),
        ({"sync": "data"}, ["stop", "quick_digest", "clear"]),  # the other side waits for its disk
        ({"verify": "none"}, ["stop", "clear"]),
        ({"check": True}, ["stop", "clear"]),
        ({"verify": "checksum"}, ["stop", "quick_digest", "clear"]),
        ({"verify": "checksum", "size": 2**30}, []),  # takes long
        ({"numeric_ids": False}, []),  # what the owners become is not known yet
        ({"more": {"compares_later": True}}, ["stop", "quick_digest", "clear"]),
        ({"more": {"compares_later": True}, "connect": "pull"}, []),
        ({"more": {"compares_later": True}, "connect": "pull", "verify": "none"}, ["stop", "clear"]),
        ({"more": {"remembers": True}, "connect": "pull"}, ["stop", "quick_digest", "clear"]),
        ({"more": {"remembers": True}, "connect": "pull", "empty": True}, ["stop", "quick_digest", "clear", "probe"]),
        ({"more": {"remembers": True}, "empty": True}, ["stop", "quick_digest", "clear"]),
        (
            {"more": {"remembers": True, "fills_snapshot": True}, "connect": "pull", "empty": True},
            ["stop", "quick_digest", "clear"],
        ),
    ],
    ids=str,
)
def test_the_steps_that_follow_a_transfer(given: dict[str, Any], last: list[str]) -> None:
    assert Pair(**given).last() == last


def test_the_driving_end_is_told_of_its_peer() -> None:
    pair = Pair(src="/srv/data/")
    step = pair.drive()
    request = step["request"]
    assert (request["side"], request["part"], request["root"]) == ("source", "drive", "/srv/data")
    assert (request["peer_name"], request["fingerprint"], step["secrets"]) == ("dest", "mark", ["exchange"])
    assert request["peer"]["port"] == 5 and request["peer"]["host"] == "dest"
    serve = pair.steps.serve(pair.plan, pair.ends["dest"], {"public_key": "key"}, [])
    assert serve["until"] == ["serving"] and serve["replace"] is None
    asked: Any = serve["request"]
    assert asked["serve"]["public_key"] == "key" and asked["serve"]["ports"] == [] and asked["peer_name"] == "source"
    running = end("source", job={"running": True, "request": {}, "status": {"pid": 7}})
    assert pair.steps.serve(pair.plan, running, {}, [])["replace"] == 7


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 4.0), ({"wait": False}, 1.0), ({"wait": False, "more": {"fills_snapshot": True}}, 10.0)],
    ids=str,
)
def test_how_long_a_start_waits_for_the_end(given: dict[str, Any], seconds: float) -> None:
    assert Pair(**given).drive()["wait"] == seconds


def test_a_probe_asks_for_what_its_side_has_to_say() -> None:
    pair = Pair()
    asked = options(src="/srv/data", link_dest=["/older"], port=2222)
    pair.hosts.steps = replace(pair.steps, options=asked)
    source, dest = (pair.hosts.probe_step(side, ["rsync"]) for side in ("source", "dest"))
    assert (source["path"], source["child"], source["link_dest"]) == ("/srv/data", "", [])
    assert (dest["path"], dest["child"], dest["link_dest"]) == ("/srv/data", "data", ["/older"])
    assert dest["ssh_ports"] == [2222, 22] and dest["methods"] == ["rsync"] and dest["expected"] == ""


def test_what_is_known_is_not_probed_and_the_source_comes_first() -> None:
    pair = Pair()
    found = pair.hosts.probe(("stream",), {"dest": pair.ends["dest"]})
    assert list(found) == ["source", "dest"] and found["dest"] is pair.ends["dest"]
    assert pair.runners["source"].done == ["probe"] and pair.runners["dest"].done == []
    assert list(pair.hosts.phases) == ["probe"]


def test_a_job_is_started_only_where_the_host_is_the_same() -> None:
    pair = Pair()
    fresh, status = pair.hosts.start_if_same(pair.ends["source"], pair.drive(), {"exchange": "x"})
    assert (
        fresh.side == "source" and status.state == "finished" and pair.runners["source"].secrets == [{"exchange": "x"}]
    )
    facts: Any = {**pair.ends["source"].probe, "fingerprint": "other"}
    with pytest.raises(HostChanged):
        pair.hosts.start_if_same(replace(pair.ends["source"], probe=facts), pair.drive(), {})


def test_both_hosts_are_stopped_although_one_is_gone() -> None:
    pair = Pair()
    pair.runners["dest"].answers["abort"] = [failed("the disk is full")]
    assert pair.hosts.stop(pair.plan.sides) == {"source": "", "dest": "the disk is full"}
    for answers in ([HostFailed("gone")], [HostFailed("gone")]):
        pair.runners["source"].answers["abort"] = answers
    with pytest.raises(HostFailed, match="gone"):
        pair.hosts.stop(pair.plan.sides, clear=True)
    assert pair.runners["dest"].done == ["abort", "abort, clear"]
    pair.runners["source"].answers["abort"] = [HostFailed("gone")]
    pair.hosts.give_up(pair.plan)


def test_a_connection_is_waited_for_and_no_longer() -> None:
    pair = Pair()
    states = [("starting", "starting", True), ("running", "transfer", True)]
    starting, met = ({"state": state, "alive": alive, "progress": {"phase": phase}} for state, phase, alive in states)
    pair.runners["source"].answers["poll"] = [starting, met]
    assert pair.hosts.wait_for_connection(pair.plan, parse_status(starting)).progress.phase == "transfer"
    assert pair.runners["source"].done == ["poll", "poll"]


def test_seconds_are_counted_once() -> None:
    pair = Pair()
    pair.hosts.phases.update(transfer=5.0, verify=1.0)
    pair.hosts.count_apart("verify", 2.0, "transfer")
    pair.hosts.count_apart("sync", 0.5, "verify")
    assert pair.hosts.phases == {"transfer": 3.0, "verify": 2.5, "sync": 0.5}
