# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A path that does not take full packets is named from end to end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.action import nic_path_info
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed

OPTIONS = {"address": "10.0.0.2", "mtu": None, "count": 3, "patience": 0, "required": False}
LOST = {"passed": False, "verdict": "black_hole", "message": "lost", "largest": 1500}


@pytest.fixture(name="test_path")
def _test_path(monkeypatch):
    """Return a function that runs the action where the host answers so."""

    def run(answer: dict[str, Any] | HostFailed, **options: Any) -> Any:
        def run_module(*_arguments: Any) -> Any:
            if isinstance(answer, HostFailed):
                raise answer
            return answer

        def runner(_action: Any, name: str, _variables: Any) -> SimpleNamespace:
            return SimpleNamespace(name=name, run_module=run_module, close=lambda: None)

        monkeypatch.setattr(nic_path_info, "HostRunner", runner)
        action: Any = object.__new__(nic_path_info.ActionModule)
        action._task = SimpleNamespace(delegate_to=None)
        asked = {**OPTIONS, "from_host": None, "destination": None, **options}
        return action.work(asked, {"inventory_hostname": "alpha"})

    return run


@pytest.mark.parametrize(
    "options, problem",
    [
        ({}, "alpha to 10.0.0.2: lost. The largest that passes has 1500 bytes"),
        (
            {"destination": "beta (10.0.0.2)"},
            "alpha to beta (10.0.0.2): lost. The largest that passes has 1500 bytes",
        ),
        (
            {"from_host": "beta", "destination": "alpha"},
            "beta to alpha: lost. The largest that passes has 1500 bytes",
        ),
    ],
)
def test_a_problem_names_both_ends(test_path, options, problem):
    assert test_path(LOST, **options)["problem"] == problem


def test_without_a_size_that_passes_none_is_named(test_path):
    assert test_path({**LOST, "largest": None})["problem"] == "alpha to 10.0.0.2: lost"


def test_a_path_that_passes_has_no_problem(test_path):
    assert test_path({**LOST, "passed": True, "verdict": "passed"})["problem"] == ""


def test_a_required_path_fails(test_path):
    failed = test_path(LOST, required=True)
    assert failed["failed"] and failed["msg"] == "to 10.0.0.2: lost. The largest that passes has 1500 bytes."


def test_another_host_that_cannot_be_asked_has_not_passed(test_path):
    failure = HostFailed("no route", "beta")
    untested = test_path(failure, from_host="beta", destination="alpha")
    assert untested["verdict"] == "untested" and untested["problem"] == f"beta to alpha: {failure}"
    assert test_path(failure)["failed"] and test_path(failure, from_host="beta", required=True)["failed"]
