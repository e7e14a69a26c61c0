# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does with a migration job, as two tables: its steps, and what follows a failure.

The steps follow from the phase that was asked for and the stage of the job; what follows a failure, from whether it was
in the switch and the stage of the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from .state import MigrationState, Stage


class Phase(Enum):
    """What ``migrate_phase`` can be."""

    PREFLIGHT = "preflight"
    SEED = "seed"
    SYNC = "sync"
    REHEARSE = "rehearse"
    CUTOVER = "cutover"
    VERIFY = "verify"


class Step(Enum):
    """What a run may do with a job, in this order."""

    PREFLIGHT = "preflight"
    SEED = "seed"
    SYNC = "sync"
    CUTOVER = "cutover"
    REHEARSE = "rehearse"  # the source back in service
    SWITCH = "switch"
    VERIFY = "verify"


class Decision(NamedTuple):
    """The steps of a run, or why there are none and what to do instead."""

    steps: tuple[Step, ...]
    refused: str = ""
    instead: str = ""


# None: the run refuses the job. What was done already is left out of a row: the first copy, and a comparison that found
# no difference. A tree that was switched over is in use, so no row sends anything to it.
_UP_TO_SEED = (Step.PREFLIGHT, Step.SEED)
_UP_TO_SYNC = (*_UP_TO_SEED, Step.SYNC)
_REHEARSAL = (*_UP_TO_SYNC, Step.CUTOVER, Step.REHEARSE)
_ALL = (*_UP_TO_SYNC, Step.CUTOVER, Step.SWITCH, Step.VERIFY)
STEPS: Mapping[Phase, Mapping[Stage, tuple[Step, ...] | None]] = {
    Phase.PREFLIGHT: {
        Stage.SERVING: (Step.PREFLIGHT,),
        Stage.STOPPED: (Step.PREFLIGHT,),
        Stage.SWITCHING: (),
        Stage.SWITCHED: (),
    },
    Phase.SEED: {
        Stage.SERVING: _UP_TO_SEED,
        Stage.STOPPED: _UP_TO_SEED,
        Stage.SWITCHING: (),
        Stage.SWITCHED: (),
    },
    Phase.SYNC: {
        Stage.SERVING: _UP_TO_SYNC,
        Stage.STOPPED: _UP_TO_SYNC,
        Stage.SWITCHING: (),
        Stage.SWITCHED: (),
    },
    Phase.REHEARSE: {
        Stage.SERVING: _REHEARSAL,
        Stage.STOPPED: _REHEARSAL,
        Stage.SWITCHING: (),
        Stage.SWITCHED: (),
    },
    Phase.CUTOVER: {
        Stage.SERVING: _ALL,
        Stage.STOPPED: _ALL,
        Stage.SWITCHING: (Step.SWITCH, Step.VERIFY),
        Stage.SWITCHED: (Step.VERIFY,),
    },
    Phase.VERIFY: {
        Stage.SERVING: None,
        Stage.STOPPED: None,
        Stage.SWITCHING: None,
        Stage.SWITCHED: (Step.VERIFY,),
    },
}


def decide(state: MigrationState, phase: Phase, *, compares: bool = True, check_mode: bool = False) -> Decision:
    """Return what a run does with a job.

    ``compares`` says whether the job wants its trees compared. Check mode runs the preflight alone.
    """
    steps = STEPS[phase][state.stage]
    if steps is None:
        return Decision(
            (),
            "the job was not switched over, and migrate_phase=verify compares only jobs that were. Nothing was done.",
            "To switch over, which compares the trees too: -e migrate_phase=cutover. To compare the trees as they are "
            "now: ansible-playbook longhaul.fleet.verify",
        )
    unwanted = set(Step) - {Step.PREFLIGHT} if check_mode else set()
    if state.is_seeded:
        unwanted.add(Step.SEED)
    if state.is_compared or not compares:
        unwanted.add(Step.VERIFY)
    return Decision(tuple(step for step in steps if step not in unwanted))


class Remedy(Enum):
    """What a run may do after a failure, in this order. Each is a list of hooks, so users say what it does."""

    REVIVE = "revive"  # cutover_failed: nothing runs at the destination, so the source serves again
    SWITCH_FAILED = "switch_failed"  # which host should serve, only a person knows


# By whether it was a step of the switch that failed. A source is stopped from the first hook of a cutover on until the
# switch begins. Once it is revived, its stage is SERVING again.
REMEDIES: Mapping[bool, Mapping[Stage, tuple[Remedy, ...]]] = {
    False: {
        Stage.SERVING: (),
        Stage.STOPPED: (Remedy.REVIVE,),
        Stage.SWITCHING: (),
        Stage.SWITCHED: (),
    },
    True: {
        Stage.SERVING: (Remedy.SWITCH_FAILED,),
        Stage.STOPPED: tuple(Remedy),
        Stage.SWITCHING: (Remedy.SWITCH_FAILED,),
        Stage.SWITCHED: (Remedy.SWITCH_FAILED,),
    },
}


def find_remedies(state: MigrationState, in_switch: bool) -> tuple[Remedy, ...]:
    """Return what a run does after a failure of a job, by its state. ``in_switch``: a step of the switch failed.

    Where another control node has the job now, nothing: its hooks may have run since.
    """
    if state.failure is not None and state.failure.lost:
        return ()
    return REMEDIES[in_switch][state.stage]
