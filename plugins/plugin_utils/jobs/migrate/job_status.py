# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status of a job in an overview of the fleet. Pure."""

from __future__ import annotations

from dataclasses import replace

from ...common.host_text import one_line
from ...fleet.rows import Standing, State
from .advice import advice
from .record import MigrationRecord
from .state import MigrationState, Stage, TransferSummary


def standing_of(state: MigrationState, age: float) -> Standing:
    """Return where a job stands by the state that the control node keeps of it, written ``age`` seconds ago."""
    failure, stage = state.failure, state.stage
    phase, word = _of_stage(state, stage)
    made, last = _last(state)
    if stage in (Stage.SWITCHING, Stage.SWITCHED):
        running = "verify"
    elif stage is Stage.STOPPED:
        running = "cutover"
    else:
        running = "sync" if state.is_seeded else "seed"
    if failure:
        phase, word = failure.phase, State.FAILED
    return Standing(
        phase=phase,
        state=word,
        running_phase=running,
        bytes_done=last.bytes_total if made else 0,
        bytes_total=last.bytes_total,
        bytes_sent=last.bytes_sent if made else 0,
        bytes_apparent=last.bytes_apparent,
        bottleneck=one_line(last.bottleneck),
        age=age,
        error=one_line(failure.reason) if failure else "",
        next=one_line(advice(state)) if failure else "",
    )


def standing_of_record(record: MigrationRecord) -> Standing:
    """Return where a job stands by what its destination says of it, where nothing else is known."""
    word = State.SWITCHING if record.stage is Stage.SWITCHING else State.WAITING
    if record.stage is Stage.SWITCHED:
        word = State.DONE if record.compared else State.SWITCHED
    elif record.failure:
        word = State.FAILED
    return Standing(
        phase="verify" if word is State.DONE else record.phase,
        state=word,
        running_phase=record.phase,
        bytes_done=record.bytes_total if record.seeded else 0,
        bytes_total=record.bytes_total,
        age=record.age,
        error=record.failure,
        next=record.next,
    )


def merged(kept: Standing, recorded: Standing, host: str) -> Standing:
    """Return where a job stands: by the copy here, or by the record at the destination where that was written later.

    The record marks no job as switched over that the copy here denies. It says so as an error.
    """
    if kept.age is None:
        return recorded
    switched = (State.SWITCHING, State.SWITCHED, State.DONE)
    if recorded.state in switched and kept.state not in switched:
        said = f"{host} has a record that this job is {recorded.state.value}, and the copy here does not say so"
        remedy = "Look at it from where it was switched over, or copy the state of the job from there"
        return replace(kept, error=kept.error or said, next=kept.next or remedy)
    is_older = recorded.age is None or recorded.age >= kept.age
    return kept if is_older or recorded.state in switched or kept.state in switched else recorded


def _of_stage(state: MigrationState, stage: Stage) -> tuple[str, State]:
    """Return the phase and the state of a job that did not fail, and whose transfer does not run."""
    if stage is Stage.SWITCHED:
        return ("verify", State.DONE) if state.is_compared else ("switch", State.SWITCHED)
    if stage is Stage.SWITCHING:
        return "switch", State.SWITCHING
    if stage is Stage.STOPPED:
        return "cutover", State.STOPPED
    made = [phase for phase in ("preflight", "seed", "sync") if getattr(state.phases, phase) is not None]
    if state.seeding and not state.is_seeded:
        return "seed", State.WAITING
    return (made[-1], State.WAITING) if made else ("", State.NOT_BEGUN)


def _last(state: MigrationState) -> tuple[bool, TransferSummary]:
    """Return whether a transfer was made, and the figures of the last one, or what the first would do."""
    if state.passes:
        return True, state.passes[-1]
    preflight = state.phases.preflight
    return False, (preflight.predicted if preflight else None) or TransferSummary()
