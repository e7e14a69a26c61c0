# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of backups as Prometheus reads it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...common.prometheus import MetricSample, gauge, gauges
from ...common.units import seconds_of
from .copies import CopyState
from .drill import DrillRecord, seconds_for_all
from .health import OK, STATES, JobHealth
from .state import BackupRecord

_PREFIX = "longhaul_backup"


def write_metrics(entries: Sequence[JobHealth]) -> str:
    """Return a file for the textfile collector of Prometheus' node exporter. Times are seconds since 1970."""
    labelled = [(_labels(entry), entry) for entry in entries]
    states = [MetricSample({**to, "state": one}, int(entry.state == one)) for to, entry in labelled for one in STATES]
    said = "What became of the job: 1 for its state, 0 for the others"
    copies = [({**to, "copy": one.place}, one) for to, entry in labelled if entry.record for one in entry.record.copies]
    state = gauge(f"{_PREFIX}_state", said, states)
    return gauges(_PREFIX, _METRICS, labelled) + state + gauges(_PREFIX, _OF_COPIES, copies)


def _labels(entry: JobHealth) -> Mapping[str, str]:
    return {
        "host": entry.host,
        "job": entry.name,
        "repository": f"{entry.repository['host']}:{entry.repository['path']}",
    }


def _of_record(value_of: Callable[[BackupRecord], float | None]) -> Callable[[JobHealth], float | None]:
    return lambda entry: value_of(entry.record) if entry.record else None


def _of_drill(value_of: Callable[[DrillRecord], float | None]) -> Callable[[JobHealth], float | None]:
    return lambda entry: value_of(entry.record.drill) if entry.record and entry.record.drill else None


def _newest(entry: JobHealth) -> int | None:
    return seconds_of(entry.record.newest) if entry.record and entry.age is not None else None


_OF_COPIES: tuple[tuple[str, str, Callable[[CopyState], float | None]], ...] = (
    ("copy_healthy", "Whether the copy of the snapshots is as it should be", lambda one: int(not one.error)),
    (
        "copy_newest_timestamp_seconds",
        "When the newest snapshot of the copy was begun",
        lambda one: seconds_of(one.newest),
    ),
    (
        "copy_lag_seconds",
        "By how much the newest of the copy is older than that of the repository",
        lambda one: one.lag_seconds,
    ),
    ("copy_snapshots", "How many complete snapshots the copy has", lambda one: one.snapshots),
    ("copy_repaired", "The damaged files of the copy that the last run repaired", lambda one: one.repaired),
)

_METRICS: tuple[tuple[str, str, Callable[[JobHealth], float | None]], ...] = (
    (
        "healthy",
        "Whether the last run succeeded, and the newest is not too old",
        lambda entry: int(entry.state == OK),
    ),
    ("last_run_timestamp_seconds", "When the last run began", _of_record(lambda record: seconds_of(record.at))),
    ("newest_timestamp_seconds", "When the newest complete snapshot was begun", _newest),
    ("duration_seconds", "How long the last run took", _of_record(lambda record: record.duration)),
    ("snapshots", "How many complete snapshots there are", _of_record(lambda record: record.snapshots)),
    (
        "size_bytes",
        "The bytes of the last run's snapshot, with holes",
        _of_record(lambda record: record.figures.get("bytes")),
    ),
    (
        "new_bytes",
        "The bytes in it without holes that it does not share with the one before",
        _of_record(lambda record: record.figures.get("new_bytes")),
    ),
    (
        "sent_bytes",
        "The bytes that the last run sent over the wire for contents",
        _of_record(lambda record: sum(one.bytes_sent for one in record.transfers) if record.transfers else None),
    ),
    ("entries", "The entries of the last run's snapshot", _of_record(lambda record: record.figures.get("entries"))),
    (
        "gone",
        "The entries of the snapshot before that are not in it",
        _of_record(lambda record: record.figures.get("gone")),
    ),
    (
        "drill_timestamp_seconds",
        "When the last restore drill began that succeeded",
        _of_drill(lambda drill: seconds_of(drill.succeeded) if drill.succeeded else None),
    ),
    ("drill_success", "Whether the last restore drill succeeded", _of_drill(lambda drill: int(drill.has_succeeded))),
    (
        "restore_bytes_per_second",
        "The rate of the last restore drill that succeeded",
        _of_drill(lambda drill: drill.bytes_per_second),
    ),
    (
        "restore_all_seconds",
        "How long a restore of the whole job would take at this rate",
        _of_drill(seconds_for_all),
    ),
)
