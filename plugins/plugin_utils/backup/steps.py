# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left to do for the backup at hand: a table of what happened and the stage of the backup. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from .progress import Progress
from .stages import HOOKS_AFTER, Event, Stage


class Step(Enum):
    """What a run does for a backup, in this order."""

    CLAIM = "claim"  # keeps other runs from making the same backup
    BEGIN = "begin"
    HOOKS_BEFORE = "hooks_before"
    TRANSFER = "transfer"
    HOOKS_AFTER = "hooks_after"
    FINISH = "finish"
    LIST = "list"  # asks what snapshots there are
    PRUNE = "prune"
    CHECK = "check"
    RECORD = "record"
    RELEASE = "release"  # lets another run begin


# However a backup ends, what should run again after a hook is started, and it has a record. Where a hook after failed,
# the snapshot is as good as before, so it is completed, and the backup has failed.
_RECORD = (Step.LIST, Step.RECORD, Step.RELEASE)
_CHECK = (Step.CHECK, *_RECORD[1:])
_COMPLETE = (Step.FINISH, Step.LIST, Step.PRUNE, *_CHECK)
_UNDO = (Step.HOOKS_AFTER, *_RECORD)
TABLE: Mapping[Event, Mapping[Stage, tuple[Step, ...]]] = {
    Event.ENTERED: {
        Stage.BEGIN: tuple(Step),
        Stage.HOOKS_BEFORE: (Step.HOOKS_BEFORE, Step.TRANSFER, Step.HOOKS_AFTER, *_COMPLETE),
        Stage.TRANSFER: (Step.TRANSFER, Step.HOOKS_AFTER, *_COMPLETE),
        Stage.FILLED: (Step.HOOKS_AFTER, *_COMPLETE),
        Stage.FINISH: _COMPLETE,
        Stage.PRUNE: (Step.PRUNE, *_CHECK),
        Stage.CHECK: _CHECK,
    },
    Event.FAILED: {
        Stage.BEGIN: _RECORD,
        Stage.HOOKS_BEFORE: _UNDO,
        Stage.TRANSFER: _UNDO,
        Stage.FILLED: _COMPLETE,
        Stage.FINISH: _RECORD,
        Stage.PRUNE: _RECORD,
        Stage.CHECK: _RECORD,
    },
    Event.LOST: dict.fromkeys(Stage, _UNDO),
}


def event_of(progress: Progress) -> Event:
    """Return what happened at the stage of a backup."""
    if progress.lost:
        return Event.LOST
    here = {progress.stage.value} | ({HOOKS_AFTER} if progress.stage is Stage.FILLED else set())
    return Event.FAILED if here & {failure["step"] for failure in progress.failures} else Event.ENTERED


def decide(progress: Progress, check_subset: str = "") -> tuple[Step, ...]:
    """Return the steps that are left, in their order.

    While a snapshot is set aside those before may be the only good ones, so nothing is pruned. Without any snapshot
    there is nothing to check.
    """
    states = None if progress.snapshots is None else {one["state"] for one in progress.snapshots}
    unwanted = set()
    if states is not None:
        unwanted.add(Step.LIST)
        if "aside" in states or "prune" in progress.said:
            unwanted.add(Step.PRUNE)
    if not check_subset or (states is not None and not states & {"complete", "aside"}):
        unwanted.add(Step.CHECK)
    steps = TABLE[event_of(progress)][progress.stage]
    if not progress.run and Step.CLAIM not in steps:
        unwanted.add(Step.RELEASE)
    return tuple(step for step in steps if step not in unwanted)
