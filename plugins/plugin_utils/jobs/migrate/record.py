# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of a job at its destination, where another control node finds it. Pure.

The copy beside the inventory decides what is done with a job. The record can never mark a step done: it only tells
other control nodes where the job is, and stops a run whose copy knows less than it, or that finds it gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    member,
    number,
    optional,
)

from ...common.host_text import one_line
from ...transfer.plan import transfer_id
from .advice import begin_again
from .state import Identity, MigrationState, Stage

_LONGEST = 500  # characters of a text
_LARGEST = 2**63 - 1
_PHASES = ("preflight", "seed", "sync", "cutover", "switch", "verify")
_FIRST = ("preflight", "seed")  # in which a job is not seeded, by a record that does not say so
_SWITCH = (Stage.SWITCHING, Stage.SWITCHED)


class MigrationRecord(NamedTuple):
    """What a host says was kept of a job there; texts are harmless and on one line."""

    stage: Stage
    phase: str
    at: str  # UTC by the control node that wrote it
    by: str
    bytes_total: int
    seeded: bool  # whether its first copy is complete
    compared: bool  # whether the trees were found to be the same since the last cutover began
    failure: str
    next: str
    age: float  # seconds since it was written, by the clock of the host


def record_id(identity: Identity) -> str:
    """Return the id of a job's record, which is that of its transfer."""
    return transfer_id(identity.src_host, identity.src, identity.dest_host, identity.dest)


def make_record(state: MigrationState, phase: str, now: str, advice: str = "") -> dict[str, object]:
    """Return what is kept of a job that is in a phase; ``advice`` is what to do about its failure."""
    phases, failure = state.phases, state.failure
    predicted = phases.preflight.predicted if phases.preflight else None
    last = phases.cutover or phases.seed or predicted
    return {
        "name": state.name,
        "identity": vars(state.identity),
        "stage": state.stage.value,
        "phase": phase,
        "at": now,
        "by": state.run.by[:_LONGEST],
        "bytes_total": last.bytes_total if last else 0,
        "seeded": state.is_seeded,
        "compared": state.is_compared,
        "failure": failure.reason[:_LONGEST] if failure else "",
        "next": advice[:_LONGEST],
    }


def parse_record(host: str, identity: Identity, found: object) -> MigrationRecord | None:
    """Return the record of a job, as the step discover or overview found it; None if there is none.

    Raises ValueError for what is no record of this job.
    """
    if found is None:
        return None
    try:
        age = number(as_object(found, "what was found"), "age")
        values = as_object(as_object(found, "what was found").get("record"), "the record")
        whose = as_object(values.get("identity"), "identity")
        if {name: whose.get(name) for name in vars(identity)} != vars(identity):
            raise WrongShape("it is that of another job")
        phase, stage = member(values, "phase", str), member(values, "stage", str)
        if phase not in _PHASES or stage not in [one.value for one in Stage]:
            raise WrongShape(f"phase is {phase[:40]!r} and stage is {stage[:40]!r}")
        texts = {name: one_line(member(values, name, str)[:_LONGEST]) for name in ("at", "by", "failure", "next")}
        compared = member(values, "compared", bool)
        seeded = optional(values, "seeded", bool)
        total = min(max(0, member(values, "bytes_total", int)), _LARGEST)
    except WrongShape as error:
        raise ValueError(f"{host} has a record of this job that cannot be read: {error}") from error
    return MigrationRecord(
        Stage(stage),
        phase,
        bytes_total=total,
        seeded=phase not in _FIRST if seeded is None else seeded,
        compared=compared,
        age=max(0.0, min(age, 1e12)),
        **texts,
    )


def is_switched_elsewhere(state: MigrationState, found: object) -> bool:
    """Whether the destination has a record of a switch that the copy beside the inventory does not know of."""
    try:
        record = parse_record(state.identity.dest_host, state.identity, found)
    except ValueError:
        return False
    return record is not None and _tells_of_a_switch(record, state)


def _tells_of_a_switch(record: MigrationRecord, state: MigrationState) -> bool:
    """Whether a record tells of a switch that a state does not know of, though it did not begin again since."""
    is_older = bool(state.begun_again) and record.at <= state.begun_again
    return record.stage in _SWITCH and not state.is_switched and not is_older


def find_conflict(state: MigrationState, found: object, path: str, members: Sequence[str] = ()) -> str:
    """Return why a run must stop and ask, empty if it need not.

    ``state`` is the copy beside the inventory, which is kept at ``path``; ``found`` is what the destination has, and
    ``members`` are the jobs of its group.
    """
    name, host = state.name, state.identity.dest_host
    again = begin_again(members or [name])
    try:
        record = parse_record(host, state.identity, found)
    except ValueError as error:
        return f"{error}. Nothing was done. If you know where this job stands, begin it again: {again}"
    if record is None:
        if not state.kept:
            return ""
        return (
            f"{host} has no record of job {name} any more, which an earlier run kept there. It may be another host "
            "than before, or was reinstalled, or become is another user. Nothing was done. Correct the inventory, "
            f"or begin the job again with this host: {again}"
        )
    if not _tells_of_a_switch(record, state):
        return ""
    what = "was switched over" if record.stage is Stage.SWITCHED else "was being switched over"
    return (
        f"{host} holds a record that job {name} {what} ({record.at}, by {record.by or 'somebody'}), and {path} does "
        f"not say so. Nothing was done, since a transfer would overwrite a tree that may be in use. If that is right, "
        "run the migration from where it was switched over, or copy that file from there. To begin the job again "
        f"nevertheless: {again}"
    )
