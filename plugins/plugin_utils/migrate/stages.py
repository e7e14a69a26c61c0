# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a migration job is, read from the state that the role keeps of it on the control node."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

IDENTITY = ("src_host", "src", "dest_host", "dest")  # the options of a job that name its trees
# The options of a job that are lists of hooks; the role's variables for all jobs have the same names.
HOOKS = ("before_cutover", "after_cutover", "cutover_failed", "switch_failed")
BACK = ".from-new"  # ends the names of jobs that go back, and of the folders that they go to


class Stage(Enum):
    """How far a job is."""

    SERVING = "serving"  # the source serves; a first copy may be there
    STOPPED = "stopped"  # a cutover has begun or failed, and the source may be stopped
    SWITCHING = "switching"  # some steps of the switch may be done; which host serves, only a person knows
    SWITCHED = "switched"  # the destination serves


def stage_of(state: Mapping[str, Any]) -> Stage:
    """Return the stage of a job by its state."""
    switch = state["switch"]
    if switch:
        return Stage.SWITCHED if switch.get("done") else Stage.SWITCHING
    return Stage.STOPPED if state["quiesced"] else Stage.SERVING


def firmness(state: Mapping[str, Any], reset: bool = False) -> bool | None:
    """Return whether the lease of a job must not expire: from the first hook before the cutover to the last one after.

    None if this control node does not know: another one from which the job was taken over may have stopped the source.
    With ``reset`` the user has said that nothing is left of that.
    """
    if stage_of(state) in (Stage.STOPPED, Stage.SWITCHING):
        return True
    return False if reset or stage_of(state) is Stage.SWITCHED else None


def is_seeded(state: Mapping[str, Any]) -> bool:
    """Whether the first copy was completed."""
    return "seed" in state["phases"]


def passes_of(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what is kept of the transfers that were made, in their order."""
    phases = state["phases"]
    made = [phases.get("seed"), *phases.get("sync", {}).get("passes", []), phases.get("cutover")]
    return [one for one in made if one]


def is_compared(state: Mapping[str, Any]) -> bool:
    """Whether a comparison of the two trees found no difference since the last cutover began."""
    return "verify" in state["phases"]


def is_back(state: Mapping[str, Any]) -> bool:
    """Whether a state is that of a job that goes back."""
    return str(state["identity"].get("dest", "")).endswith(BACK)
