# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfers of all runs of a job, for reports: a bounded list of them, and the sums of all. Pure.

Decisions and forecasts use the results of phases instead, which are those of the last run that made them.
"""

from __future__ import annotations

from dataclasses import fields, replace

from .state import MigrationState, PassHistory, PassKind, PassRecord, TransferSummary

MOST_PASSES = 50  # that are kept
MOST_DELETED = 100  # names of deleted entries that are kept, of all transfers together
_SHARED = {one.name for one in fields(PassRecord)} & {one.name for one in fields(TransferSummary)}


def history_of(state: MigrationState) -> PassHistory:
    """Return the transfers of a job. A state without a history has them in its phases."""
    if state.history is not None:
        return state.history
    phases, rehearsal = state.phases, state.phases.rehearsal
    made = [(PassKind.SEED, phases.seed)]
    made += [(PassKind.SYNC, one) for one in (phases.sync.passes if phases.sync else [])]
    made += [(PassKind.REHEARSAL, rehearsal.cutover if rehearsal else None), (PassKind.CUTOVER, phases.cutover)]
    history = PassHistory()
    for kind, one in made:
        history = history if one is None else _with_record(history, make_record_of_pass(kind, one))
    return history


def with_transfer(state: MigrationState, kind: PassKind, made: TransferSummary, *, failed: bool) -> PassHistory:
    """Return the history of a job with a transfer that its run has made."""
    record = make_record_of_pass(kind, made)
    return _with_record(history_of(state), replace(record, run=state.run.at, failed=failed))


def make_record_of_pass(kind: PassKind, made: TransferSummary) -> PassRecord:
    return PassRecord(kind, **{name: getattr(made, name) for name in _SHARED})


def _with_record(history: PassHistory, new: PassRecord) -> PassHistory:
    """Return a history with one more transfer; the first copy stays, whatever else is too old to be kept."""
    number = 1 + max((one.number for one in history.passes if one.kind is new.kind), default=0)
    passes = [*history.passes, replace(new, number=number)]
    if len(passes) > MOST_PASSES:
        del passes[1 if passes[0].kind is PassKind.SEED else 0]
    return PassHistory(
        _with_fewer_names(passes),
        history.count + 1,
        history.bytes_sent + new.bytes_sent,
        history.files_deleted + new.files_deleted,
    )


def _with_fewer_names(passes: list[PassRecord]) -> list[PassRecord]:
    """Return transfers with the names of deleted entries that the newest ones have."""
    room, kept = MOST_DELETED, []
    for one in reversed(passes):
        kept.append(replace(one, deleted=one.deleted[:room]))
        room -= len(kept[-1].deleted)
    return kept[::-1]
