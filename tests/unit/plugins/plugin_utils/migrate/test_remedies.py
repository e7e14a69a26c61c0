# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every failure has its row, and a source is started again only where nothing runs at the destination."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.remedies import TABLE, Remedy, find_remedies
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import Stage

ROLE = Path(__file__).resolve().parents[5] / "roles/migrate"
STATES = {
    Stage.SERVING: {"quiesced": False, "switch": {}},
    Stage.STOPPED: {"quiesced": True, "switch": {}},
    Stage.SWITCHING: {"quiesced": True, "switch": {"done": False}},
    Stage.SWITCHED: {"quiesced": False, "switch": {"done": True}},
}
EVERY = list(itertools.product((False, True), Stage))


def test_the_table_has_each_failure():
    assert {(in_switch, stage) for in_switch, row in TABLE.items() for stage in row} == set(EVERY)


@pytest.mark.parametrize("in_switch, stage", EVERY)
def test_what_holds_for_every_row(in_switch, stage):
    remedies = find_remedies(STATES[stage], in_switch)
    assert remedies == TABLE[in_switch][stage]
    assert list(remedies) == [remedy for remedy in Remedy if remedy in remedies]
    assert (Remedy.REVIVE in remedies) == (stage is Stage.STOPPED), "it is revived while nothing was switched over"
    assert (Remedy.SWITCH_FAILED in remedies) == in_switch


@pytest.mark.parametrize("in_switch, stage", EVERY)
def test_no_hook_runs_for_a_job_that_another_control_node_has(in_switch, stage):
    assert find_remedies({**STATES[stage], "failure": {"lost": True}}, in_switch) == ()
    assert find_remedies({**STATES[stage], "failure": {"lost": False}}, in_switch) == TABLE[in_switch][stage]


def test_the_role_has_tasks_for_each_remedy():
    rescue = next(task["rescue"] for task in yaml.safe_load((ROLE / "tasks/job.yml").read_text()) if "rescue" in task)
    asked = {str(task["when"]): task["vars"]["__migrate_hook_kind"] for task in rescue if "when" in task}
    hooks = {Remedy.REVIVE: "cutover_failed", Remedy.SWITCH_FAILED: "switch_failed"}
    assert asked == {f"'{remedy.value}' in __migrate_step.remedies": hooks[remedy] for remedy in Remedy}
