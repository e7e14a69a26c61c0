# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A comparison of small equal trees takes one execution a side; anything else is left to jobs."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import state, steps
from ansible_collections.longhaul.fleet.plugins.plugin_utils.comparison import SIDES, Comparison, ComparisonFailed


class Host:
    """Does the steps here, but starts no job: it says that it would have failed."""

    def __init__(self, name):
        self.name, self.asked = name, []

    def run(self, *asked):
        self.asked.append([step["do"] for step in asked])
        if any(step["do"] == "start" for step in asked):
            return [{"alive": False, "state": "failed", "failure": "no job here"}]
        return steps.run_steps(list(asked), steps.Given({}, "/no/engine"))


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
    for side in SIDES:
        (tmp_path / side).mkdir()
        (tmp_path / side / "file").write_text("text")
    return {side: Host(side) for side in SIDES}


def comparison(hosts, tmp_path, short=True):
    roots = {side: str(tmp_path / side) for side in SIDES}
    return Comparison(runners=hosts, roots=roots, identity="pair", fields=["size", "mode"], short=short)


def around(what):
    return {side: [{"do": what, "id": "0123456789abcdef", "side": side, "succeeded": True}] for side in SIDES}


def test_small_equal_trees_take_one_execution_a_side(hosts, tmp_path):
    found = comparison(hosts, tmp_path).run(print, around("stop"), around("clear"))
    assert (found["differences"], found["differences_total"], found["unstable"]) == ([], 0, 0)
    assert found["counts"]["source"] == found["counts"]["dest"]
    assert found["counts"]["source"]["entries"] == 2
    assert [hosts[side].asked for side in SIDES] == [[["stop", "glance"]]] * 2


def test_a_side_that_was_read_before_is_not_asked_again(hosts, tmp_path):
    compared = comparison(hosts, tmp_path)
    (glanced,) = hosts["source"].run(compared.glance_step("source", []))
    compared.run(print, around("stop"), around("clear"), {"source": glanced})
    assert (hosts["source"].asked, hosts["dest"].asked) == ([["glance"]], [["stop", "glance"]])


@pytest.mark.parametrize("why", ["differs", "not short", "took too long", "cannot be read"])
def test_anything_else_is_left_to_jobs(hosts, tmp_path, why):
    glanced = {}
    if why == "differs":
        (tmp_path / "dest/file").write_text("longer text")
    if why == "took too long":
        glanced = {"source": {"digest": None}}
    if why == "cannot be read":
        (tmp_path / "dest/file").unlink()
        (tmp_path / "dest").rmdir()
    with pytest.raises(ComparisonFailed, match="source: no job here"):
        comparison(hosts, tmp_path, short=why != "not short").run(print, around("stop"), around("clear"), glanced)
    at_a_glance = [["stop", "glance"]] if why in ("differs", "cannot be read") else []
    for side in SIDES:
        assert hosts[side].asked == [*at_a_glance, ["stop", "start"], ["stop", "clear", "clear"]]
