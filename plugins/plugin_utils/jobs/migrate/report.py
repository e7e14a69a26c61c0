# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report of a job says beside its state, and the figures of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ...common.typed_json import dump_dataclass
from ...common.units import format_duration, seconds_of
from ..failures import KeptFailure, ReportedFailure, keep_failures
from ..hook_steps import HookRun
from .advice import advice
from .forecast import Forecast
from .history import history_of
from .prediction_check import PredictionCheck
from .state import Downtime, MigrationState, PassHistory, TransferSummary

_SUMS = ("entries", "bytes", "bytes_apparent", "bytes_sent", "files_deleted")


class Totals(TypedDict, total=False):
    """What all transfers of a job came to, in this run and the ones before; empty before the first one."""

    entries: int
    bytes: int  # without holes
    bytes_apparent: int  # with them
    bytes_sent: int
    files_deleted: int


def make_report(
    state: MigrationState,
    warnings: Sequence[str] = (),
    check_mode: bool = False,
    predicted: TransferSummary | None = None,
    deletions: str = "",
    forecast: Forecast | None = None,
    checks: Sequence[PredictionCheck] = (),
) -> dict[str, Any]:
    """Return the state of a job with what only reports say.

    That is ``warnings``, those of them that only hold for the last pass or run as ``hints``, ``next`` and
    ``check_mode``; the ``history`` of all transfers and their ``totals``; the ``forecast`` of the downtime;
    ``downtimes`` and ``hooks`` with their ``seconds``, and as ``lasted`` in words; ``foreseen``: the forecast when the
    cutover began beside what it took; ``benchmark``: what a benchmark predicted beside what was made; and ``predicted``
    and ``deletions`` as they were given, but empty if a transfer was made since.
    """
    passes, history = state.passes, history_of(state)
    if predicted is None or (passes and predicted.at <= passes[-1].at):
        predicted, deletions = None, ""
    hints = [*state.run.notes, *([deletions] if deletions else []), *_changed_meanwhile(passes)]
    return {
        **state.dump(),
        "warnings": [*hints, *(text for text in warnings if text not in hints)],
        "hints": hints,
        "next": advice(state),
        "check_mode": check_mode,
        "predicted": dump_dataclass(predicted) if predicted else {},
        "deletions": deletions,
        "forecast": forecast or {},
        "history": dump_dataclass(history),
        "totals": _totals(passes[-1] if passes else predicted, history if passes else None),
        "foreseen": compare_forecast(state),
        "benchmark": [dump_dataclass(one) for one in checks],
        "downtimes": [_with_seconds(one, seconds_of(one.since), seconds_of(one.to)) for one in state.downtimes],
        "hooks": [_with_seconds(one, one.began, one.ended) for one in state.hooks],
    }


def _totals(last: TransferSummary | None, history: PassHistory | None) -> Totals:
    """Return what all transfers sent and deleted together, and what the last one found at the source.

    Without a history ``last`` is a prediction.
    """
    if last is None:
        return {}
    sums = history or last
    return {
        "entries": last.files_total,
        "bytes": last.bytes_total,
        "bytes_apparent": last.bytes_apparent,
        "bytes_sent": sums.bytes_sent,
        "files_deleted": sums.files_deleted,
    }


class ForecastCheck(TypedDict, total=False):
    """The forecast of a downtime when its cutover began, beside what it came to; empty before that."""

    at: str
    forecast: float  # seconds; absent if it was not known
    forecast_lasted: str  # in words
    why: str
    real: float  # seconds; absent until it has ended
    real_lasted: str
    of: str  # what both are of: the downtime, or the final passes and comparisons without the hooks


def compare_forecast(state: MigrationState) -> ForecastCheck:
    """Return the forecast of the last cutover beside its reality.

    A forecast by a rehearsal is of the whole downtime. Any other one leaves out the hooks, and so does its reality.
    """
    kept = state.cutover_forecast
    if kept is None:
        return {}
    found: ForecastCheck = {"at": kept.at, "forecast_lasted": kept.lasted, "why": kept.why}
    found["of"] = "the downtime" if kept.with_hooks else "the final passes and comparisons"
    if kept.seconds is not None:
        found["forecast"] = kept.seconds
    last = state.downtimes[-1] if state.downtimes else None
    real: float | None = None
    if not kept.with_hooks:
        real = kept.took
    elif last is not None and (seconds_of(last.to) or 0) >= (seconds_of(kept.at) or 0):
        real = float((seconds_of(last.to) or 0) - (seconds_of(last.since) or 0))
    if real is not None:
        found["real"], found["real_lasted"] = round(real, 1), format_duration(real)
    return found


def _with_seconds(one: Downtime | HookRun, began: float | None, ended: float | None) -> dict[str, Any]:
    seconds = round(max(0.0, float(ended or 0) - float(began or 0)), 1)
    return {**dump_dataclass(one), "seconds": seconds, "lasted": format_duration(seconds)}


def _changed_meanwhile(passes: Sequence[TransferSummary]) -> list[str]:
    """Return what the last pass left to the next one. The final pass is strict, so it leaves nothing."""
    changed = passes[-1].changed_meanwhile if passes else None
    if not changed or not changed.count:
        return []
    return [
        f"{entries_text(changed.count)} changed at the source during this pass, for example {changed.example}. "
        "The next pass tries again, and the final pass, with the source stopped, brings everything"
    ]


class JobRecord(TypedDict):
    """What a call of the action returns of a job, for later calls and for the figures of the run."""

    name: str
    dest_host: str
    changed: bool
    left: bool  # a later call has more to do with it
    failure: dict[str, str]  # empty if it did not fail
    switched: bool  # by this run or an earlier one
    totals: dict[str, int]  # of all transfers; empty if there is no report of this run


class MigrationSummary(TypedDict):
    """The statistics of a run; a guide documents them."""

    phase: str
    check_mode: bool
    at: str  # UTC
    by: str
    jobs: int
    changed: int
    switched_over: int
    failed: int
    entries: int
    bytes: int
    bytes_apparent: int
    bytes_sent: int
    files_deleted: int
    failed_jobs: list[KeptFailure]
    report: str


def find_failures(records: Iterable[JobRecord]) -> list[ReportedFailure]:
    """Return the failures of a run, in the order of its jobs."""
    return [
        ReportedFailure(name, f"stopped in phase {failure['phase']}", failure["reason"], failure["next"])
        for name, failure in ((one["name"], one["failure"]) for one in records)
        if failure
    ]


def summarize(
    records: Sequence[JobRecord], phase: str, check_mode: bool, at: str, by: str, report: str
) -> MigrationSummary:
    """Return the figures of a run. ``report`` is the path of the report on all jobs, empty if there is none."""
    sums = {name: sum(int(one["totals"].get(name) or 0) for one in records) for name in _SUMS}
    failures = find_failures(records)
    return {
        "phase": phase,
        "check_mode": check_mode,
        "at": at,
        "by": by,
        "jobs": len(records),
        "changed": sum(one["changed"] for one in records),
        "switched_over": sum(one["switched"] for one in records),
        "failed": len(failures),
        "entries": sums["entries"],
        "bytes": sums["bytes"],
        "bytes_apparent": sums["bytes_apparent"],
        "bytes_sent": sums["bytes_sent"],
        "files_deleted": sums["files_deleted"],
        "failed_jobs": keep_failures(failures),
        "report": report,
    }
