# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark import run
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measure import MeasuredPair, MeasureRequest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.run import BenchmarkRequest, benchmark_pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed

from tests.support.measured_pairs import end, measured

FASTEST = "aes128-gcm@openssh.com"


class Runner:
    """A host that was measured, and answers to the question for ciphers."""

    variables: dict[str, Any] = {}
    connection = "ssh"

    def __init__(self, name: str, side: str, offer: object = None, **probe: Any) -> None:
        self.name, self._offer, self.end = name, offer, end(side, **probe)

    def run_module(self, _name: str, asked: Any, _members: Any) -> Any:
        if self._offer is None:
            raise HostFailed("there is no ssh", self.name)
        return {"peers": {asked["peers"][0]["name"]: {"ciphers": self._offer}}}


@pytest.fixture(name="benchmark")
def _benchmark(monkeypatch):
    def bench(source: Runner, dest: Runner, pair: Any = None, src: str = "/srv/", dest_path: str = "/srv", **more: Any):
        ends = {"source": source.end, "dest": dest.end}
        monkeypatch.setattr(run, "measure_pair", lambda *_asked: MeasuredPair(pair or measured(), ends))
        request = BenchmarkRequest(MeasureRequest(src, dest_path), "auto", "full", tries=False)
        return benchmark_pair(source, dest, replace(request, **more), print, None)  # type: ignore[arg-type]

    return bench


def test_a_pair_is_measured_and_concluded(benchmark):
    source, dest = Runner("old", "source"), Runner("new", "dest")
    result = benchmark(source, dest)
    assert result.recommendation.method == "stream" and (result.src, result.dest) == ("/srv/", "/srv")


def test_the_connecting_host_is_asked_for_its_ciphers(benchmark):
    offering = Runner("new", "dest", offer=["aes128-ctr"])
    pulled = benchmark(Runner("old", "source"), offering, measured(connect="pull"))
    assert "aes128-ctr" in [one.variant for one in pulled.candidates]
    pushed = benchmark(Runner("old", "source"), offering)
    assert "aes128-ctr" not in [one.variant for one in pushed.candidates]


@pytest.mark.parametrize("said", [["-oProxyCommand=x"], ["a b"], ["aes128-ctr\n"], [7], [None], ["aes128-ctr", 7]])
def test_what_cannot_be_a_cipher_counts_as_not_said(benchmark, said: list[object]):
    with pytest.raises(ValueError, match="cannot be any"):
        run.parse_ciphers(said)
    result = benchmark(Runner("old", "source", offer=said), Runner("new", "dest"))
    assert {one.variant for one in result.candidates if one.method == "scp"} == {FASTEST}


def test_a_host_is_not_measured_with_itself(benchmark):
    with pytest.raises(Refusal, match="name two hosts"):
        benchmark(Runner("old", "source"), Runner("old", "dest"))


def test_the_trial_writes_where_the_destination_is(benchmark, monkeypatch):
    asked = []

    class Tried:
        def __init__(self, _source: Any, _dest: Any, request: Any, *_more: Any) -> None:
            asked.append(request)

        def run(self, pair: Any, _abilities: Any, candidates: Any) -> Any:
            return pair, candidates

    monkeypatch.setattr(run, "Trial", Tried)
    made = {**end("dest").probe["path"], "existing": "/data", "type": "missing"}
    benchmark(Runner("old", "source"), Runner("new", "dest", path=made), tries=True, dest_path="/data/new/x")
    benchmark(Runner("old", "source"), Runner("new", "dest"), tries=True, src="", dest_path="")
    assert [one.folders["dest"] for one in asked] == ["/data", "/var/tmp"]
