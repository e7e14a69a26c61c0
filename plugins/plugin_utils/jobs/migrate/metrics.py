# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of migrations as Prometheus reads them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...common.host_text import one_line
from ...common.prometheus import MetricSample, gauge, gauges
from ...common.units import seconds_of
from ...fleet.rows import State
from ...transfer.status import Status
from .job_status import standing_of
from .state import Identity, MigrationState, Stage

_PREFIX = "longhaul_migrate"
_PHASES = ("preflight", "seed", "sync", "cutover", "switch", "verify")
_STATES = tuple(state for state in State if state not in (State.UNREACHABLE, State.INTERRUPTED, State.ENDED))


class LiveTransfer(NamedTuple):
    """A transfer of a job that runs in this call."""

    status: Status
    rate: float | None  # bytes a second since the figures were written before; None: not known


@dataclass(frozen=True)
class MigrationFigures:
    """The figures of one job. Times are seconds since 1970, durations seconds; None: not known."""

    name: str
    src_host: str
    dest_host: str
    phase: str
    state: State
    left_bytes: int | None = None
    left_entries: int | None = None
    rate: float | None = None
    last_run: int | None = None
    last_success: int | None = None
    stopped_since: int | None = None  # the source, if neither host is known to serve
    forecast: float | None = None  # of the downtime
    downtime: int | None = None  # of the switch
    verified: bool = False
    verified_at: int | None = None
    failed: bool = False
    failed_at: int | None = None


def figures_of(
    name: str,
    identity: Identity,
    state: MigrationState | None,
    live: LiveTransfer | None,
    forecast: float | None = None,
) -> MigrationFigures:
    """Return the figures of a job; ``state`` is None if nothing is kept of it, ``live`` if no transfer runs here.

    ``forecast`` is that of the downtime, as the report of the job has it. What goes back stops nobody.
    A state of other trees, since the job was changed, says nothing of this one.
    """
    ends = (name, identity.src_host, identity.dest_host)
    if state is None or state.identity != identity:
        return MigrationFigures(*ends, phase="", state=State.NOT_BEGUN)
    standing, switch, verified = standing_of(state, 0.0), state.switch, state.phases.verify
    phase, word = standing.phase, standing.state
    left_bytes, left_entries = _left(state)
    if live is not None:
        progress, phase = live.status.progress, standing.running_phase
        word = State.PAUSED if live.status.paused else State.RUNNING
        left_bytes = max(0, progress.bytes_total - progress.bytes_done) if progress.bytes_total else left_bytes
        left_entries = max(0, progress.files_total - progress.files_done) if progress.files_total else left_entries
    ended = [
        *(one.at for one in state.passes),
        verified.at if verified else "",
        switch.at if switch and switch.done else "",
    ]
    is_stopped = state.stage in (Stage.STOPPED, Stage.SWITCHING)
    downs = [one for one in state.downtimes if not one.rehearsal]
    failure = state.failure
    return MigrationFigures(
        *ends,
        phase=phase,
        state=word,
        left_bytes=left_bytes,
        left_entries=left_entries,
        rate=live.rate if live else None,
        last_run=_time(state.run.at),
        last_success=max((at for at in map(_time, ended) if at is not None), default=None),
        stopped_since=_time(state.stopped_at) if is_stopped else None,
        forecast=None if state.is_switched or state.is_back else forecast,
        downtime=_seconds_between(downs[-1].since, downs[-1].to) if downs and switch and switch.done else None,
        verified=state.is_compared,
        verified_at=_time(verified.at) if verified else None,
        failed=failure is not None,
        failed_at=_time(failure.at) if failure else None,
    )


def write_migration_metrics(jobs: Sequence[MigrationFigures], *, now: float, active: bool) -> str:
    """Return a file for the textfile collector; ``active``: a run is at work, and writes it again."""
    labelled = [(_labels(one), one) for one in {one.name: one for one in jobs}.values()]
    run = [
        ("active", "Whether a run is at work, which writes this file each minute", float(active)),
        ("written_timestamp_seconds", "When this file was written", round(now)),
    ]
    states = [MetricSample({**to, "state": s.value}, int(one.state is s)) for to, one in labelled for s in _STATES]
    phases = [MetricSample({**to, "phase": p}, int(one.phase == p)) for to, one in labelled for p in _PHASES]
    return "".join(
        [
            *(gauge(f"{_PREFIX}_{name}", said, [MetricSample({}, value)]) for name, said, value in run),
            gauge(f"{_PREFIX}_state", "The state of the job: 1 for its state, 0 for the others", states),
            gauge(f"{_PREFIX}_phase", "The phase of the job: 1 for its phase, 0 for the others", phases),
            gauges(_PREFIX, _METRICS, labelled),
        ]
    )


def _labels(one: MigrationFigures) -> Mapping[str, str]:
    named = {"job": one.name, "source": one.src_host, "dest": one.dest_host}
    return {label: one_line(text) for label, text in named.items()}


def _left(state: MigrationState) -> tuple[int | None, int | None]:
    """Return what a job without a running transfer has left, in bytes and entries, None if that is not known."""
    if state.is_seeded or state.is_switched:
        return 0, 0
    predicted = state.phases.preflight.predicted if state.phases.preflight else None
    return (predicted.bytes_total, predicted.files_total) if predicted else (None, None)


def _time(text: str) -> int | None:
    """Return the seconds since 1970 of a time in a state, None for none and for what an old file has instead."""
    try:
        return seconds_of(text)
    except ValueError:
        return None


def _seconds_between(since: str, to: str) -> int | None:
    began, ended = _time(since), _time(to)
    return None if began is None or ended is None else max(0, ended - began)


_METRICS: tuple[tuple[str, str, Callable[[MigrationFigures], float | None]], ...] = (
    ("left_bytes", "Bytes of file content without holes that are known to be left", lambda one: one.left_bytes),
    ("left_entries", "Entries that are known to be left", lambda one: one.left_entries),
    ("rate_bytes_per_second", "Bytes of file content that the running transfer does in a second", lambda one: one.rate),
    ("last_run_timestamp_seconds", "When the last run began with the job", lambda one: one.last_run),
    (
        "last_success_timestamp_seconds",
        "When a transfer, a comparison or the switch last succeeded",
        lambda one: one.last_success,
    ),
    (
        "stopped_timestamp_seconds",
        "Since when the source may be stopped, without a switch that ended",
        lambda one: one.stopped_since,
    ),
    (
        "downtime_forecast_seconds",
        "How long the source is expected to be stopped, with the group of the job, as its report says",
        lambda one: one.forecast,
    ),
    ("downtime_seconds", "How long neither host served, at the switch", lambda one: one.downtime),
    ("verified", "Whether the trees were found to be the same since the cutover", lambda one: int(one.verified)),
    ("verified_timestamp_seconds", "When the trees were found to be the same", lambda one: one.verified_at),
    ("failed", "Whether the last run stopped the job with a failure", lambda one: int(one.failed)),
    ("failed_timestamp_seconds", "When it failed", lambda one: one.failed_at),
)
