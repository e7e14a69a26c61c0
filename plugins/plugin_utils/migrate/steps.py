# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does with a migration job: a table of the phase that was asked for and the stage of the job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from .stages import Stage, is_compared, is_seeded, stage_of


class Phase(Enum):
    """What ``migrate_phase`` can be."""

    PREFLIGHT = "preflight"
    SEED = "seed"
    SYNC = "sync"
    REHEARSE = "rehearse"
    CUTOVER = "cutover"
    VERIFY = "verify"


class Step(Enum):
    """What a run may do with a job, in this order. Each is a file of tasks of the role."""

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
TABLE: Mapping[Phase, Mapping[Stage, tuple[Step, ...] | None]] = {
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


def decide(
    state: Mapping[str, Any], phase: Phase | str, *, compares: bool = True, check_mode: bool = False
) -> Decision:
    """Return what a run does with a job.

    ``compares`` says whether the job wants its trees compared. Check mode runs the preflight alone.
    """
    steps = TABLE[Phase(phase)][stage_of(state)]
    if steps is None:
        return Decision(
            (),
            "the job was not switched over, and migrate_phase=verify compares only jobs that were. Nothing was done.",
            "To switch over, which compares the trees too: -e migrate_phase=cutover. To compare the trees as they are "
            "now: ansible-playbook longhaul.fleet.verify",
        )
    unwanted = set(Step) - {Step.PREFLIGHT} if check_mode else set()
    if is_seeded(state):
        unwanted.add(Step.SEED)
    if is_compared(state) or not compares:
        unwanted.add(Step.VERIFY)
    return Decision(tuple(step for step in steps if step not in unwanted))
