# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a fleet stands, as Prometheus reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..common.host_text import one_line
from ..common.prometheus import MetricSample, gauge
from .rows import FleetTotals, Row, State

_PREFIX = "longhaul_fleet"


def render_metrics(rows: Sequence[Row], sums: FleetTotals, unreachable: int) -> str:
    """Return the whole file; ``unreachable`` is how many hosts did not answer."""
    fleet = (
        (
            "jobs",
            "Jobs and other transfers by state",
            [MetricSample({"state": s.value}, _count(sums, s)) for s in State],
        ),
        ("done_bytes", "Bytes of file content without holes that are done", [MetricSample({}, sums.bytes_done)]),
        ("size_bytes", "Bytes of file content without holes in all known trees", [MetricSample({}, sums.bytes_total)]),
        (
            "apparent_bytes",
            "Sizes of all files in all known trees, with holes",
            [MetricSample({}, sums.bytes_apparent)],
        ),
        (
            "sent_bytes",
            "Bytes that the last transfers sent over the wire for contents",
            [MetricSample({}, sums.bytes_sent)],
        ),
        ("unknown_sizes", "Trees whose size is not known yet", [MetricSample({}, sums.unknown)]),
        (
            "rate_bytes_per_second",
            "Bytes of file content without holes that all running transfers do in a second",
            [MetricSample({}, sums.rate)],
        ),
        ("eta_seconds", "Estimated time until the known rest is sent", [MetricSample({}, sums.eta)]),
        ("unreachable_hosts", "Hosts that did not answer", [MetricSample({}, unreachable)]),
    )
    # Two samples with the same labels would make the whole file invalid, and hosts choose the ids of transfers.
    named = list({tuple(_labels(row).values()): (_labels(row), row) for row in reversed(rows)}.values())[::-1]
    jobs = (
        (
            "job_info",
            "Phase and state of a job, as labels",
            [MetricSample({**to, "phase": row.phase, "state": row.state.value}, 1) for to, row in named],
        ),
        (
            "job_done_bytes",
            "Bytes of file content without holes that are done",
            [MetricSample(to, row.bytes_done) for to, row in named],
        ),
        (
            "job_size_bytes",
            "Bytes of file content without holes in the tree",
            [MetricSample(to, row.bytes_total or None) for to, row in named],
        ),
        (
            "job_apparent_bytes",
            "Sizes of all files in the tree, with holes",
            [MetricSample(to, row.bytes_apparent or None) for to, row in named],
        ),
        (
            "job_sent_bytes",
            "Bytes that the last transfer sent over the wire for contents",
            [MetricSample(to, row.bytes_sent) for to, row in named],
        ),
        (
            "job_rate_bytes_per_second",
            "Bytes of file content without holes that the running transfer does in a second",
            [MetricSample(to, row.rate) for to, row in named],
        ),
        ("job_eta_seconds", "Estimated time until the transfer ends", [MetricSample(to, row.eta) for to, row in named]),
        ("job_age_seconds", "Time since the figures were true", [MetricSample(to, row.age) for to, row in named]),
    )
    return "".join(gauge(f"{_PREFIX}_{name}", said, samples) for name, said, samples in (*fleet, *jobs))


def _count(sums: FleetTotals, state: State) -> int:
    return sums.states.get(state.value, 0)


def _labels(row: Row) -> Mapping[str, str]:
    named = {"job": row.name, "source": row.src_host, "dest": row.dest_host}
    return {label: one_line(text) for label, text in named.items()}
