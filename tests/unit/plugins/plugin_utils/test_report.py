# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task returns, made of invented accounts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report import shape_result


def result(method: str, outcome: dict[str, Any]) -> dict[str, Any]:
    """Give the result of a transfer that was planned with two streams."""
    plan: Any = SimpleNamespace(
        transfer_id="0" * 16,
        choice=SimpleNamespace(method=method, reason="it was named"),
        encrypted=True,
        settings={"streams": 2, "preserve": [], "bwlimit": 0},
        warnings=(),
        line_rate=0,
    )
    return shape_result(plan, {"outcome": outcome}, "finished" if outcome else "running", {"transfer": 9.0})


@pytest.mark.parametrize(("used", "said"), [(8, 8), (0, 2)])
def test_the_streams_that_were_used_are_returned(used, said):
    assert result("stream", Outcome(streams=used).as_dict())["streams"] == said
    assert result("stream", {})["streams"] == 2  # while it runs


def test_the_bottleneck_is_judged_by_the_streams_that_were_used():
    ends = {side: {"wall": 10.0, "processor": 30.0, "cores": 8, "roles": {}} for side in ("source", "dest")}
    for used, name in ((1, "source_cpu"), (8, "none")):
        assert result("rsync", Outcome(streams=used, spent=ends).as_dict())["bottleneck"]["name"] == name
    links = {"send": [80.0, 1.0]}, {"receive": [80.0, 1.0]}
    ends = {
        side: {"wall": 10.0, "processor": 1.0, "cores": 8, "roles": {"link": spent}}
        for side, spent in zip(("source", "dest"), links)
    }
    found = result("stream", Outcome(streams=8, spent=ends).as_dict())["bottleneck"]
    assert found["name"] == "network" and "over 8 connections" in found["evidence"]
