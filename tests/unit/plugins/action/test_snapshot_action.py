# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse options of longhaul.fleet.snapshot on the control node, with the action that was meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.longhaul.fleet.plugins.action.snapshot import ActionModule

PLACE = {"repository": "/srv/backup", "host": "web1", "job": "data"}


def refused(action: str) -> str:
    made: Any = object.__new__(ActionModule)
    made._task = SimpleNamespace(action="longhaul.fleet.snapshot")
    return str(ActionModule.refuse(made, {**PLACE, "action": action}, {}))


def test_verify_is_refused_with_the_action_that_was_meant() -> None:
    assert "there is no action verify. The action check compares snapshots" in refused("verify")
    assert refused("check") == ""
    assert "action" in refused("prove")
