# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every pair of an event and a stage has its row, and the table keeps what the role promises."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.progress import Progress, parse_progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.stages import HOOKS_AFTER, Event, Stage
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.steps import TABLE, Step, decide, event_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.workflow import STEPS, Part

TASKS = Path(__file__).resolve().parents[5] / "roles/backup/tasks"
EVERY = list(itertools.product(Event, Stage))
COMPLETES = {Step.FINISH, Step.PRUNE, Step.CHECK}
BEGINS = {Step.CLAIM, Step.BEGIN, Step.HOOKS_BEFORE, Step.TRANSFER}


def state(stage: Stage, event: Event = Event.ENTERED, **changes) -> Progress:
    """Return a backup at a stage at which something happened."""
    made = Progress("2026-01-01T00:00:00Z", stage, lost=event is Event.LOST, run="a token")
    if event is not Event.ENTERED:
        made.fail(stage.value, "no space")
    return replace(made, **changes)


def test_the_table_has_each_event_and_stage():
    assert {(event, stage) for event, row in TABLE.items() for stage in row} == set(EVERY)


@pytest.mark.parametrize("event, stage", EVERY)
def test_the_event_is_read_from_what_happened(event, stage):
    assert event_of(state(stage, event)) is event


def test_a_hook_after_that_failed_counts_at_its_own_stage_only():
    failures = [{"step": "hook after", "reason": "rc 1"}]
    assert event_of(state(Stage.FILLED, failures=failures)) is Event.FAILED
    for stage in set(Stage) - {Stage.FILLED}:
        assert event_of(state(stage, failures=failures)) is Event.ENTERED


@pytest.mark.parametrize("event, stage", EVERY)
def test_what_holds_for_every_row(event, stage):
    steps = TABLE[event][stage]
    assert list(steps) == [step for step in Step if step in steps], "in their order, none twice"
    assert steps[-2:] == (Step.RECORD, Step.RELEASE), "however it ends, there is a record, and another run may begin"
    assert (Step.CLAIM in steps) == (event is Event.ENTERED and stage is Stage.BEGIN)
    if Step.TRANSFER in steps:
        assert Step.HOOKS_AFTER in steps, "what a hook before stopped is started again"
    if Step.HOOKS_BEFORE in steps:
        assert Step.TRANSFER in steps
    if event is not Event.ENTERED:
        assert not BEGINS & set(steps), "nothing is tried again in this run"
        may_be_stopped = event is Event.LOST or stage in (Stage.HOOKS_BEFORE, Stage.TRANSFER)
        assert (Step.HOOKS_AFTER in steps) == may_be_stopped
        completes = event is Event.FAILED and stage is Stage.FILLED
        assert COMPLETES & set(steps) == (COMPLETES if completes else set()), "only a full snapshot is completed"
    else:
        wanted = {Stage.PRUNE: COMPLETES - {Step.FINISH}, Stage.CHECK: {Step.CHECK}}.get(stage, COMPLETES)
        assert COMPLETES & set(steps) == wanted


def snapshots(*states: str) -> list[dict]:
    return [{"name": f"2026-11-2{number}", "state": one} for number, one in enumerate(states)]


@pytest.mark.parametrize(
    "listed, share, expected",
    [
        (None, "1/7", {Step.LIST, Step.PRUNE, Step.CHECK}),
        (None, "", {Step.LIST, Step.PRUNE}),
        (snapshots(), "1/7", {Step.PRUNE}),
        (snapshots("unfinished"), "1/7", {Step.PRUNE}),
        (snapshots("complete"), "1/7", {Step.PRUNE, Step.CHECK}),
        (snapshots("complete"), "", {Step.PRUNE}),
        (snapshots("complete", "aside"), "1/7", {Step.CHECK}),
        (snapshots("aside"), "", set()),
    ],
)
def test_what_the_repository_holds_decides_what_follows(listed, share, expected):
    said = {} if listed is None else {"list": {"snapshots": listed}}
    steps = decide(state(Stage.FINISH, said=said), share)
    assert set(steps) == expected | {Step.FINISH, Step.RECORD, Step.RELEASE}


@pytest.mark.parametrize("event, stage", EVERY)
def test_only_what_was_claimed_is_released(event, stage):
    assert Step.RELEASE in decide(state(stage, event))
    claims = Step.CLAIM in TABLE[event][stage]
    assert (Step.RELEASE in decide(state(stage, event, run=""))) == claims


def test_what_the_tasks_of_the_role_know_of_stages_and_steps():
    text = "".join(path.read_text() for path in TASKS.glob("*.yml"))
    stages = set(re.findall(r"'stage': '([^']*)'", text))
    assert stages == {Stage.HOOKS_BEFORE.value}
    assert {Step(name) for name in re.findall(r"'(\w+)' in __backup_steps", text)} == {Step.HOOKS_BEFORE}
    assert f"step: {HOOKS_AFTER}" in text
    parts = set(re.findall(r"__backup_part: (\w+)", text))
    assert parts == {part.value for part in Part} - {"whole"}


def test_the_parts_and_the_hooks_between_them_make_all_steps():
    assert STEPS[Part.WHOLE] == tuple(Step)
    parts = [step for part in Part if part is not Part.WHOLE for step in STEPS[part]]
    assert parts == [step for step in Step if step not in (Step.HOOKS_BEFORE, Step.HOOKS_AFTER)]
    assert all(list(steps) == [step for step in Step if step in steps] for steps in STEPS.values())


@pytest.mark.parametrize("event, stage", EVERY)
def test_progress_is_kept_between_the_parts(event, stage):
    made = state(stage, event, said={"list": {"snapshots": []}}, notes=["a note"], ended_run="another token")
    assert parse_progress(json.loads(json.dumps(made.dump()))) == made
