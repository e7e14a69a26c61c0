# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of backups as Prometheus reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..prometheus import Sample, gauge
from ..units import seconds_of
from .health import OK, STATES


def write_metrics(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a file for the textfile collector of Prometheus' node exporter. Times are seconds since 1970."""
    labelled = [(_labels(entry), entry) for entry in entries]
    figures = [
        gauge(f"longhaul_backup_{name}", said, [Sample(to, value_of(entry)) for to, entry in labelled])
        for name, said, value_of in _METRICS
    ]
    states = [Sample({**to, "state": one}, int(entry["state"] == one)) for to, entry in labelled for one in STATES]
    said = "What became of the job: 1 for its state, 0 for the others"
    return "".join([*figures, gauge("longhaul_backup_state", said, states)])


def _labels(entry: Mapping[str, Any]) -> Mapping[str, str]:
    return {
        "host": str(entry["host"]),
        "job": str(entry["name"]),
        "repository": f"{entry['repository']['host']}:{entry['repository']['path']}",
    }


def _figure(name: str) -> Any:
    return lambda entry: (entry.get("figures") or {}).get(name)


def _newest(entry: Mapping[str, Any]) -> int | None:
    return seconds_of(entry.get("newest")) if entry.get("age") is not None else None


def _sent(entry: Mapping[str, Any]) -> int | None:
    sent = [one["bytes_sent"] for one in entry.get("transfers") or () if "bytes_sent" in one]
    return sum(sent) if sent else None


_METRICS = (
    (
        "healthy",
        "Whether the last run succeeded, and the newest is not too old",
        lambda e: int(e["state"] == OK),
    ),
    ("last_run_timestamp_seconds", "When the last run began", lambda e: seconds_of(e.get("at"))),
    ("newest_timestamp_seconds", "When the newest complete snapshot was begun", _newest),
    ("duration_seconds", "How long the last run took", lambda e: e.get("duration")),
    ("snapshots", "How many complete snapshots there are", lambda e: e.get("snapshots")),
    ("size_bytes", "The bytes of the last run's snapshot, with holes", _figure("bytes")),
    ("new_bytes", "The bytes in it without holes that it does not share with the one before", _figure("new_bytes")),
    ("sent_bytes", "The bytes that the last run sent over the wire for contents", _sent),
    ("entries", "The entries of the last run's snapshot", _figure("entries")),
    ("gone", "The entries of the snapshot before that are not in it", _figure("gone")),
)
