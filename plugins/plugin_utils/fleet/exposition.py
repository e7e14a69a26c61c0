# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a fleet stands, as Prometheus reads it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..common.host_text import one_line
from ..common.prometheus import MetricSample, gauge, gauges
from .rows import FleetTotals, Row, State

_PREFIX = "longhaul_fleet"


def render_metrics(rows: Sequence[Row], sums: FleetTotals, unreachable: int) -> str:
    """Return the whole file; ``unreachable`` is how many hosts did not answer."""
    # Two samples with the same labels would make the whole file invalid, and hosts choose the ids of transfers.
    named = list({tuple(_labels(row).values()): (_labels(row), row) for row in reversed(rows)}.values())[::-1]
    states = [MetricSample({"state": s.value}, sums.states.get(s.value, 0)) for s in State]
    shown = [MetricSample({**to, "phase": row.phase, "state": row.state.value}, 1) for to, row in named]
    return "".join(
        [
            gauge(f"{_PREFIX}_jobs", "Jobs and other transfers by state", states),
            gauges(_PREFIX, _OF_FLEET, [({}, sums)]),
            gauge(f"{_PREFIX}_unreachable_hosts", "Hosts that did not answer", [MetricSample({}, unreachable)]),
            gauge(f"{_PREFIX}_job_info", "Phase and state of a job, as labels", shown),
            gauges(f"{_PREFIX}_job", _OF_JOBS, named),
        ]
    )


def _labels(row: Row) -> Mapping[str, str]:
    named = {"job": row.name, "source": row.src_host, "dest": row.dest_host}
    return {label: one_line(text) for label, text in named.items()}


_OF_FLEET: tuple[tuple[str, str, Callable[[FleetTotals], float | None]], ...] = (
    ("done_bytes", "Bytes of file content without holes that are done", lambda sums: sums.bytes_done),
    ("size_bytes", "Bytes of file content without holes in all known trees", lambda sums: sums.bytes_total),
    ("apparent_bytes", "Sizes of all files in all known trees, with holes", lambda sums: sums.bytes_apparent),
    ("sent_bytes", "Bytes that the last transfers sent over the wire for contents", lambda sums: sums.bytes_sent),
    ("unknown_sizes", "Trees whose size is not known yet", lambda sums: sums.unknown),
    (
        "rate_bytes_per_second",
        "Bytes of file content without holes that all running transfers do in a second",
        lambda sums: sums.rate,
    ),
    ("eta_seconds", "Estimated time until the known rest is sent", lambda sums: sums.eta),
)

_OF_JOBS: tuple[tuple[str, str, Callable[[Row], float | None]], ...] = (
    ("done_bytes", "Bytes of file content without holes that are done", lambda row: row.bytes_done),
    ("size_bytes", "Bytes of file content without holes in the tree", lambda row: row.bytes_total or None),
    ("apparent_bytes", "Sizes of all files in the tree, with holes", lambda row: row.bytes_apparent or None),
    ("sent_bytes", "Bytes that the last transfer sent over the wire for contents", lambda row: row.bytes_sent),
    (
        "rate_bytes_per_second",
        "Bytes of file content without holes that the running transfer does in a second",
        lambda row: row.rate,
    ),
    ("eta_seconds", "Estimated time until the transfer ends", lambda row: row.eta),
    ("age_seconds", "Time since the figures were true", lambda row: row.age),
)
