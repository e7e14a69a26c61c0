# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person should do next with a migration job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .state import MigrationState, Stage

GOES_ON = "and run the same command again; it goes on from here"


def begin_again(names: Sequence[str]) -> str:
    """Return what to type where jobs are to begin again: one, or all of a group, which only run together."""
    return f"-e migrate_reset=true -e '{json.dumps({'migrate_only': list(names)})}'"


def members_of(state: MigrationState) -> list[str]:
    """Return the jobs with which a job was to switch over, itself among them."""
    return (state.group.members if state.group else None) or [state.name]


def advice(state: MigrationState) -> str:
    """Return one or a few sentences: where the job stands, which host serves, and what to type."""
    stage, source, failure = state.stage, state.identity.src_host, state.failure
    if failure is not None and failure.lost:
        return (
            "Where this job stands, the control node knows that has it now, and fleet_status shows it. Run the same "
            "command again when that one is done."
        )
    if stage is Stage.SWITCHED:
        if failure is not None:
            return f"The switch was made and is not undone. Fix what is named above, {GOES_ON}."
        if state.is_compared:
            return f"Done. Keep the tree on {source} until you trust the new one."
        return "The switch was made, and the trees were not compared. To do it now: -e migrate_phase=verify."
    if stage is Stage.SWITCHING:
        steps = state.switch.steps if state.switch else 0
        done = f"{steps} of its steps {'is' if steps == 1 else 'are'} done"
        return (
            f"The switch has begun ({done}), and {source} is stopped. Fix what failed, then "
            "continue the switch: -e migrate_phase=cutover. To go back instead, undo these steps and start "
            f"{source} by hand, then begin again with {begin_again(members_of(state))}."
        )
    if stage is Stage.STOPPED:
        return (
            f"Nothing was switched over, but {source} may still be stopped. Start it by hand, as hooks in "
            "cutover_failed would do by themselves, or fix what failed and try again: -e migrate_phase=cutover."
        )
    if state.is_back:
        place = f"{state.identity.dest_host}:{state.identity.dest}"
        if failure is not None:
            return f"Fix what is named above, {GOES_ON}."
        return f"What {source} has is at {place}, beside the tree there, which was left alone."
    if failure is not None:
        return f"Nothing was switched over, and {source} still serves. Fix what is named above, {GOES_ON}."
    for made, words in (
        (
            state.phases.sync,
            "The copy is up to date but for the last changes. In the change window: -e migrate_phase=cutover (this "
            "switches over)",
        ),
        (state.phases.seed, "The first copy is there. To bring it up to date: -e migrate_phase=sync"),
        (
            state.phases.preflight,
            "No problems were found. To copy, and to bring the copy up to date: -e migrate_phase=sync",
        ),
    ):
        if made is not None:
            return f"{words}. {source} still serves."
    return "Nothing was done yet."
