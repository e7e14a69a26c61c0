# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark asks its hosts for one part after the other, and cleans up whatever happens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark import measure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measure import (
    MeasureRequest,
    measure_pair,
    share_left,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import PairMeasurement
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.tests.support.scripted_hosts import SERVING, ScriptedHost, failed
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.benchmark.test_answers import (
    CORE,
    DISK,
    LINE,
    SOURCE,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end


def done(found: Any = None) -> dict[str, Any]:
    return {"state": "finished", "alive": False, "benchmark": found}


class Host(ScriptedHost):
    """A host that keeps what it was asked."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.steps: list[Any] = []
        self.order: list[str] = []  # of both hosts

    def run(self, *steps: Any, **more: Any) -> list[Any]:
        self.steps += steps
        self.order.append(self.name)
        return super().run(*steps, **more)


class Pair:
    """Two hosts that answer as a test says, and what was said of them."""

    def __init__(self, source: list[Any], dest: list[Any]) -> None:
        self.hosts: dict[str, Any] = {
            side: Host(side, {**end(side).probe, "machine": side}) for side in ("source", "dest")
        }
        for side, answers in (("source", source), ("dest", dest)):
            self.hosts[side].answers["benchmark"] = answers
        self.said: list[str] = []

    def measure(self, path: str = "/srv/data", **asked: Any) -> PairMeasurement:
        request = MeasureRequest(path, path, **asked)
        return measure_pair(self.hosts["source"], self.hosts["dest"], request, self.said.append).measurement

    @property
    def probed(self) -> list[str]:
        return [step["path"] for host in self.hosts.values() for step in host.steps if step["do"] == "probe"]

    def seconds(self, side: str) -> list[float]:
        return [step["request"]["seconds"] for step in self.hosts[side].steps if step["do"] == "start"]

    @property
    def last(self) -> list[str]:
        return [host.done[-1] for host in self.hosts.values()]


DEST = {"disk": DISK, "gaps": []}
PROCESSOR = {"processor": CORE, "gaps": []}
CLEANED = ["stop, clear", "stop, clear"]


def test_all_parts_are_measured_and_both_hosts_cleaned() -> None:
    pair = Pair([done(SOURCE), done(LINE)], [done(DEST), SERVING, done(PROCESSOR)])
    found = pair.measure()
    assert (found.source, found.dest) == ("source", "dest")
    assert found.link.connect == "push"
    assert found.bytes_sent == 9
    assert set(found.disks) == set(found.processors) == {"source", "dest"}
    assert found.tree.entries == 9
    assert len(found.gaps) == 2
    assert found.at > 0
    assert pair.last == CLEANED
    assert pair.probed == ["/srv/data", "/srv/data"]
    assert pair.hosts["source"].done == ["probe", "benchmark", "benchmark", "stop, clear"]
    # What served the line may still be about to end, and a host has one job of a benchmark.
    assert pair.hosts["dest"].done == ["probe", "benchmark", "benchmark", "stop, benchmark", "stop, clear"]


def test_without_a_tree_no_path_of_the_user_is_probed() -> None:
    pair = Pair([done(LINE), done(PROCESSOR)], [SERVING, done(PROCESSOR)])
    assert pair.measure("").tree.entries == 0
    assert pair.probed == ["/dev/null", "/dev/null"]


def test_the_other_end_connects_if_one_cannot() -> None:
    no_way = failed("the port is closed", unreachable=True)
    pair = Pair([done(SOURCE), no_way, SERVING], [done(DEST), SERVING, done(LINE), done(PROCESSOR)])
    assert pair.measure().link.connect == "pull"


def test_a_line_that_neither_can_connect_is_a_gap() -> None:
    no_way = failed("the port is closed", unreachable=True)
    pair = Pair([done(SOURCE), no_way, SERVING], [done(DEST), SERVING, no_way, done(PROCESSOR)])
    found = pair.measure()
    assert found.link.forth.one_stream == 0
    assert "could not be measured: source: the port is closed dest: the port is closed" in found.gaps[-1]
    assert pair.last == CLEANED


def test_only_the_way_that_is_allowed_is_tried() -> None:
    pair = Pair([done(SOURCE), SERVING], [done(DEST), failed("closed"), done(PROCESSOR)])
    assert pair.measure(connect="pull").link.forth.one_stream == 0


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (failed("transfer x is running on this host"), "source: transfer x is running"),
        (HostFailed("gone", "source"), "gone"),
        ({"state": "running", "alive": True}, "did not end in"),
        (done(DEST), "tree"),
        (done("nonsense"), "object is expected"),
    ],
)
def test_a_host_that_fails_ends_the_benchmark_and_both_are_cleaned(source: Any, reason: str) -> None:
    pair = Pair([source], [done(DEST)])
    with pytest.raises(HostFailed, match=reason):
        pair.measure()
    assert pair.last == CLEANED


def test_what_cannot_be_cleaned_up_is_said() -> None:
    pair = Pair([failed("busy")], [done(DEST)])
    pair.hosts["dest"].answers["stop"] = [HostFailed("gone", "dest")]
    with pytest.raises(HostFailed, match="busy"):
        pair.measure()
    assert "could not be cleaned up" in pair.said[-1]


@pytest.mark.parametrize(("lost", "execution"), [((), 1.0), (("dest",), 1.0), (("source", "dest"), 0.0)])
def test_a_host_that_is_lost_says_nothing_of_how_long_ansible_takes(
    monkeypatch: pytest.MonkeyPatch, lost: Sequence[str], execution: float
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(measure, "time", SimpleNamespace(time=lambda: 1.0, monotonic=lambda: float(next(seconds))))
    pair = Pair([done(SOURCE), done(LINE)], [done(DEST), SERVING, done(PROCESSOR)])
    for side in lost:
        pair.hosts[side].answers["stop"] = [*[{}] * (side == "dest"), HostFailed("gone", side)]
    assert pair.measure().execution == execution


@pytest.mark.parametrize("asked", [{"seconds": 1.0}, {"bytes": 1 << 20}])
def test_a_budget_that_is_too_small_asks_nobody(asked: dict[str, Any]) -> None:
    pair = Pair([], [])
    with pytest.raises(Refusal, match="too little to measure"):
        pair.measure(**asked)
    assert pair.hosts["source"].done == []


def test_one_machine_measures_one_disk_after_the_other() -> None:
    pair = Pair([done(SOURCE), done(LINE)], [done(DEST), SERVING, done(PROCESSOR)])
    order: list[str] = []
    for host in pair.hosts.values():
        host.facts["machine"], host.order = "same", order
    pair.measure()
    assert order[:4] == ["source", "dest", "source", "dest"]
    assert pair.seconds("source")[0] == pair.seconds("dest")[0] == 5.0  # half of what two machines have


@pytest.mark.parametrize(("elapsed", "seconds"), [(0.0, 7.0), (11.0, 7.0), (12.8, 5.6), (19.0, 3.5), (60.0, 3.5)])
def test_later_parts_are_shorter_where_earlier_ones_took_too_long(elapsed: float, seconds: float) -> None:
    assert share_left(20.0, elapsed, 0.35, 0.1) == pytest.approx(seconds)
    assert share_left(20.0, 18.0, 0.1, 0.0) == pytest.approx(2.0)
