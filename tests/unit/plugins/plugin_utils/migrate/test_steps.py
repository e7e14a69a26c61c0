# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every pair of a phase and a stage has its row, and the table keeps what the role promises."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import Stage, stage_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import TABLE, Phase, Step, decide

ROLE = Path(__file__).resolve().parents[5] / "roles/migrate"
SENDS = {Step.SEED, Step.SYNC, Step.CUTOVER}
STATES = {
    Stage.SERVING: {},
    Stage.STOPPED: {"quiesced": True},
    Stage.SWITCHING: {"quiesced": True, "switch": {"done": False, "steps": 0}},
    Stage.SWITCHED: {"switch": {"done": True, "steps": 1}},
}
EVERY = list(itertools.product(Phase, Stage))


def state(stage: Stage, *, done: frozenset[str] = frozenset()) -> dict:
    """Return the state of a job at a stage, as the role keeps it."""
    made = {"identity": {"src_host": "old"}, "quiesced": False, "switch": {}, "failure": {}}
    return {**made, "phases": {name: {} for name in done}, **STATES[stage]}


@pytest.mark.parametrize("stage", Stage)
def test_a_stage_is_read_from_the_state(stage):
    assert stage_of(state(stage)) is stage
    assert stage_of({**state(stage), "failure": {"phase": "seed", "reason": "no space"}}) is stage


def test_the_table_has_each_phase_and_stage():
    assert {(phase, stage) for phase, row in TABLE.items() for stage in row} == set(EVERY)


@pytest.mark.parametrize("phase, stage", EVERY)
def test_what_holds_for_every_row(phase, stage):
    steps = TABLE[phase][stage]
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
    row = TABLE[phase][stage]
    assert bool(made.refused) == bool(made.instead) == (row is None)
    wanted = set(row or ())
    wanted -= {Step.SEED} if "seed" in done else set()
    wanted -= set() if compares and "verify" not in done else {Step.VERIFY}
    wanted &= {Step.PREFLIGHT} if check_mode else set(Step)
    assert set(made.steps) == wanted


def test_the_role_takes_every_phase():
    assert yaml.safe_load((ROLE / "vars/main.yml").read_text())["__migrate_phases"] == [phase.value for phase in Phase]
