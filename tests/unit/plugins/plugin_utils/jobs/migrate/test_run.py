# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The downtimes that a call of the action expects of its jobs."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.groups import Group
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.run import MigrationRun
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import MigrationState, Switch

JOB = {"src_host": "old", "src": "/a/", "dest_host": "new", "dest": "/a"}


def test_jobs_of_a_group_share_one_forecast():
    asked: list[str] = []

    def forecast(state: MigrationState) -> dict[str, object]:
        asked.append(state.name)
        if state.name == "torn":
            raise ValueError("no time")
        return {"lasted": "not known yet"} if state.name == "new" else {"seconds": 90.0}

    run: Any = object.__new__(MigrationRun)
    run._groups, run._forecast = {"shop": Group(["a", "b", "c"], ["new"])}, forecast
    states = [MigrationState.fresh({**JOB, "name": name}) for name in ("a", "b", "c", "alone", "new", "torn")]
    states[2].switch = Switch(done=True)
    states.append(MigrationState.fresh({**JOB, "name": "back", "dest": "/a.from-new"}))
    assert run._expected_downtimes(states) == {"a": 90.0, "b": 90.0, "alone": 90.0}
    assert asked == ["a", "alone", "new", "torn"]
