# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every phase, stage and failure has its row, and the tables keep what the role promises."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.phases import (
    REMEDIES,
    STEPS,
    Phase,
    Remedy,
    Step,
    decide,
    find_remedies,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    MigrationState,
    Stage,
    parse_state,
)

SENDS = {Step.SEED, Step.SYNC, Step.CUTOVER}
FRESH = {"name": "data", "identity": {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}}
STATES = {
    Stage.SERVING: {},
    Stage.STOPPED: {"quiesced": True},
    Stage.SWITCHING: {"quiesced": True, "switch": {"done": False, "steps": 0}},
    Stage.SWITCHED: {"switch": {"done": True, "steps": 1}},
}
EVERY = list(itertools.product(Phase, Stage))


RESULTS = {"seed": {}, "sync": {}, "verify": {"identical": True}, "verify_failed": {"differences_total": 1}}
RESULTS = {name: {"at": "x", **result} for name, result in RESULTS.items()}


def state(stage: Stage, *, done: frozenset[str] = frozenset(), **changes) -> MigrationState:
    """Return the state of a job at a stage."""
    return parse_state({**FRESH, "phases": {name: RESULTS[name] for name in done}, **STATES[stage], **changes})


@pytest.mark.parametrize("stage", Stage)
def test_a_stage_is_read_from_the_state(stage):
    assert state(stage).stage is stage
    assert state(stage, failure={"phase": "seed", "at": "x", "reason": "no space"}).stage is stage


def test_the_table_has_each_phase_and_stage():
    assert {(phase, stage) for phase, row in STEPS.items() for stage in row} == set(EVERY)


@pytest.mark.parametrize("phase, stage", EVERY)
def test_what_holds_for_every_row(phase, stage):
    steps = STEPS[phase][stage]
    if steps is None:
        assert phase is Phase.VERIFY and stage is not Stage.SWITCHED
        return
    assert list(steps) == [step for step in Step if step in steps], "in their order, none twice"
    assert Step.SWITCH not in steps or phase is Phase.CUTOVER, "only a cutover switches over"
    assert (Step.SWITCH in steps) == (phase is Phase.CUTOVER and stage is not Stage.SWITCHED)
    if stage in (Stage.SWITCHING, Stage.SWITCHED):
        assert not SENDS & set(steps), "nothing is sent to a tree that may be in use"
    if SENDS & set(steps):
        assert steps[0] is Step.PREFLIGHT, "both hosts are looked at first"
    if Step.CUTOVER in steps:
        assert Step.SYNC in steps and steps[-1] is (Step.VERIFY if Step.SWITCH in steps else Step.REHEARSE)
    assert Step.REHEARSE not in steps or Step.SWITCH not in steps
    if Step.SYNC in steps:
        assert Step.SEED in steps, "no pass without a first copy"


@pytest.mark.parametrize("phase, stage", EVERY)
@pytest.mark.parametrize("done", [(), ("seed",), ("verify",), ("seed", "sync", "verify_failed"), ("seed", "verify")])
@pytest.mark.parametrize("compares", [False, True])
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_decision_is_a_row_without_what_is_not_wanted(phase, stage, done, compares, check_mode):
    made = decide(state(stage, done=frozenset(done)), phase, compares=compares, check_mode=check_mode)
    row = STEPS[phase][stage]
    assert bool(made.refused) == bool(made.instead) == (row is None)
    wanted = set(row or ())
    wanted -= {Step.SEED} if "seed" in done else set()
    wanted -= set() if compares and "verify" not in done else {Step.VERIFY}
    wanted &= {Step.PREFLIGHT} if check_mode else set(Step)
    assert set(made.steps) == wanted


# After a failure

FAILURES = list(itertools.product((False, True), Stage))


def test_the_table_has_each_failure():
    assert {(in_switch, stage) for in_switch, row in REMEDIES.items() for stage in row} == set(FAILURES)


@pytest.mark.parametrize("in_switch, stage", FAILURES)
def test_what_follows_each_failure(in_switch, stage):
    """A source is started again only where nothing runs at the destination."""
    remedies = find_remedies(state(stage), in_switch)
    assert remedies == REMEDIES[in_switch][stage]
    assert list(remedies) == [remedy for remedy in Remedy if remedy in remedies]
    assert (Remedy.REVIVE in remedies) == (stage is Stage.STOPPED), "it is revived while nothing was switched over"
    assert (Remedy.SWITCH_FAILED in remedies) == in_switch


@pytest.mark.parametrize("in_switch, stage", FAILURES)
def test_no_hook_runs_for_a_job_that_another_control_node_has(in_switch, stage):
    failure = {"phase": "cutover", "at": "x", "reason": "lost"}
    assert find_remedies(state(stage, failure={**failure, "lost": True}), in_switch) == ()
    assert find_remedies(state(stage, failure={**failure, "lost": False}), in_switch) == REMEDIES[in_switch][stage]
