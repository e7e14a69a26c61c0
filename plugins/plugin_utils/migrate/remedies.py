# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does after a failure: a table of whether a step of the switch failed and the stage of the job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from .stages import Stage, stage_of


class Remedy(Enum):
    """What a run may do after a failure, in this order. Each is a list of hooks, so users say what it does."""

    REVIVE = "revive"  # cutover_failed: nothing runs at the destination, so the source serves again
    SWITCH_FAILED = "switch_failed"  # which host should serve, only a person knows


# By whether it was a step of the switch that failed. A source is stopped from the first hook of a cutover on until the
# switch begins. Once it is revived, its stage is SERVING again.
TABLE: Mapping[bool, Mapping[Stage, tuple[Remedy, ...]]] = {
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


def find_remedies(state: Mapping[str, Any], in_switch: bool) -> tuple[Remedy, ...]:
    """Return what a run does after a failure of a job, by its state. ``in_switch``: a step of the switch failed.

    Where another control node has the job now, nothing: its hooks may have run since.
    """
    if (state.get("failure") or {}).get("lost"):
        return ()
    return TABLE[in_switch][stage_of(state)]
