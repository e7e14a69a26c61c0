# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every pair of an event and a stage has its row, and the table keeps what the role promises."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.stages import Event, Stage, event_of, stage_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.steps import TABLE, Step, decide

TASKS = Path(__file__).resolve().parents[5] / "roles/backup/tasks"
EVERY = list(itertools.product(Event, Stage))
COMPLETES = {Step.FINISH, Step.PRUNE, Step.CHECK}
BEGINS = {Step.CLAIM, Step.BEGIN, Step.HOOKS_BEFORE, Step.TRANSFER}


def state(stage: Stage, event: Event = Event.ENTERED, **changes) -> dict:
    """Return the state of a backup at a stage at which something happened, as the role keeps it."""
    failures = [{"step": stage.value, "reason": "no space"}] if event is not Event.ENTERED else []
    made = {"stage": stage.value, "failures": failures, "lost": event is Event.LOST, "claimed": True, "snapshots": None}
    return {**made, **changes}


def test_the_table_has_each_event_and_stage():
    assert {(event, stage) for event, row in TABLE.items() for stage in row} == set(EVERY)


@pytest.mark.parametrize("event, stage", EVERY)
def test_stage_and_event_are_read_from_the_state(event, stage):
    assert stage_of(state(stage, event)) is stage
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
    steps = decide(state(Stage.FINISH, snapshots=listed), share)
    assert set(steps) == expected | {Step.FINISH, Step.RECORD, Step.RELEASE}


@pytest.mark.parametrize("event, stage", EVERY)
def test_only_what_was_claimed_is_released(event, stage):
    assert Step.RELEASE in decide(state(stage, event))
    claims = Step.CLAIM in TABLE[event][stage]
    assert (Step.RELEASE in decide(state(stage, event, claimed=False))) == claims


def test_the_role_sets_no_other_stage():
    text = "".join(path.read_text() for path in TASKS.glob("*.yml"))
    found = {line.split(":", 1)[1].strip() for line in text.splitlines() if line.strip().startswith("__backup_step:")}
    assert found == {stage.value for stage in Stage}


def test_the_role_asks_for_steps_that_there_are():
    asked = set()
    for path in TASKS.glob("*.yml"):
        for task in tasks_of(yaml.safe_load(path.read_text())):
            text = str(task.get("when", ""))
            if "__backup_steps" in text:
                asked.add(Step(text.split("'")[1]))
    assert asked == {Step.HOOKS_AFTER, Step.FINISH, Step.LIST, Step.PRUNE, Step.CHECK, Step.RELEASE}


def tasks_of(tasks: list[dict]) -> list[dict]:
    """Return tasks with those inside of blocks."""
    inside = [one for task in tasks for part in ("block", "rescue", "always") for one in task.get(part, ())]
    return [*tasks, *(tasks_of(inside) if inside else ())]
