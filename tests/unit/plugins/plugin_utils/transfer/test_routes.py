# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways to connect two hosts: which are tried, in which order, and which failure counts in the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.plan import Ends, Plan, make_plan
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.routes import Routes
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_status
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.transfer_hosts import TransferHosts, TransferSteps
from ansible_collections.longhaul.fleet.tests.support.scripted_hosts import ScriptedHost, failed, finished, unreachable
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end, options

DONE, BROKEN = parse_status(finished()), parse_status(failed("broke"))
ENDS = {side: end(side) for side in ("source", "dest")}


def closed(port: int) -> Status:
    return parse_status(unreachable(f"port {port} is closed"))


class Tries:
    """What becomes of each plan that is tried, as method and connecting side."""

    def __init__(self, *endings: Status | Exception, **given: Any) -> None:
        self.options, self.endings = options(**given), list(endings)
        self.tried: list[str] = []
        self.said: list[str] = []
        runners: Any = {side: ScriptedHost(side, ENDS[side].probe) for side in ENDS}
        self.source, self.dest = runners.values()
        steps = TransferSteps(("source", "dest"), self.options, "", check=False)
        self.routes = Routes(TransferHosts(runners, steps, self.said.append), self.plan, self.transfer)
        self.plan_ends: Exception | None = None

    def plan(self, ends: Ends, pull: bool, avoid: Mapping[str, str]) -> Plan:
        if self.plan_ends:
            raise self.plan_ends
        return make_plan(self.options, ends["source"], ends["dest"], False, pull, avoid)

    def transfer(self, plan: Plan, _ends: Ends, started: Status | None) -> Status:
        self.tried.append(f"{plan.choice.method} by {plan.driver}")
        ending = started or self.endings.pop(0)
        if isinstance(ending, Exception):
            raise ending
        return ending

    def run(self, started: Status | None = None) -> tuple[str, Status]:
        first = make_plan(self.options, *ENDS.values(), check=False)
        made = self.routes.try_all(first, ENDS, started)
        assert not self.endings
        return f"{made.plan.choice.method} by {made.plan.driver}", made.status


@pytest.mark.parametrize("ending", [DONE, BROKEN, Status("running", alive=True)], ids=lambda status: status.state)
def test_a_plan_that_connects_is_the_only_one(ending: Status) -> None:
    tries = Tries(ending)
    assert tries.run() == ("stream by source", ending)
    assert tries.tried == ["stream by source"] and not tries.said and not tries.source.done


@pytest.mark.parametrize("turned", [DONE, BROKEN], ids=lambda status: status.state)
def test_the_other_direction_takes_over(turned: Status) -> None:
    tries = Tries(turned)
    assert tries.run(started=closed(1)) == ("stream by dest", turned)
    assert tries.source.done == tries.dest.done == ["abort, clear"]
    assert tries.said == ["source -> dest: port 1 is closed. Trying the other direction"]


@pytest.mark.parametrize("error", [Refusal("no"), HostFailed("no"), TransferError("no")], ids=repr)
def test_an_error_of_the_other_direction_is_only_mentioned(error: Exception) -> None:
    tries = Tries(closed(1), error, method="stream")
    plan, status = tries.run()
    assert plan == "stream by source"
    assert status.failure == "port 1 is closed. The other direction was tried too: no"


@pytest.mark.parametrize(
    ("given", "tried"),
    [
        ({"connect": "push"}, ["stream by source", "rsync by source"]),
        ({"connect": "pull"}, ["stream by dest", "rsync by dest"]),
        ({"connect": "push", "method": "stream"}, ["stream by source"]),
        ({"method": "stream"}, ["stream by source", "stream by dest"]),
        ({"method": "rsync"}, ["rsync by source", "rsync by dest"]),
        ({"trust": "none"}, ["stream by source", "stream by dest"]),
        ({}, ["stream by source", "stream by dest", "rsync by source", "rsync by dest"]),
    ],
    ids=str,
)
def test_only_what_the_user_left_open_is_tried(given: dict[str, Any], tried: list[str]) -> None:
    tries = Tries(*(closed(number) for number in range(len(tried))), **given)
    plan, status = tries.run()
    assert tries.tried == tried and status.unreachable
    # Of two directions the first failure counts; of two methods the last, since the first may need a port.
    assert plan == (tried[2] if len(tried) == 4 else tried[-1] if "connect" in given else tried[0])
    assert ("trust is none" in status.failure) == (given.get("trust") == "none")


def test_a_method_that_took_the_place_of_another_says_so() -> None:
    tries = Tries(closed(1), closed(2), DONE)
    plan, status = tries.run()
    assert (plan, status) == ("rsync by source", DONE)
    assert tries.said[-1].endswith("Trying without a port of its own")
    assert tries.source.done == tries.dest.done == ["abort, clear", "abort", "abort, clear", "probe"]


def test_the_first_failure_counts_where_ssh_is_of_no_use() -> None:
    tries = Tries(closed(1), connect="push")
    tries.plan_ends = Refusal("no method fits")
    plan, status = tries.run()
    assert plan == "stream by source" and status.failure.startswith(
        "port 1 is closed. Methods that use the port of ssh"
    )
    assert status.failure.endswith("too: no method fits")


def test_the_source_is_not_tried_where_only_the_destination_can_connect() -> None:
    tries = Tries(closed(1), method="stream")
    made = tries.routes.try_all(tries.plan(ENDS, True, {}), ENDS)
    assert made.status.unreachable and tries.tried == ["stream by dest"] and not tries.source.done
