# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a fleet stands, as a file for the textfile collector of Prometheus' node exporter. Pure.

The text format is https://prometheus.io/docs/instrumenting/exposition_formats/. Units are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..host_text import one_line
from .rows import Row, State, Sums

_PREFIX = "longhaul_fleet"


class _Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float | None  # None: not known, so there is no sample


def render_metrics(rows: Sequence[Row], sums: Sums, unreachable: int) -> str:
    """Return the whole file; ``unreachable`` is how many hosts did not answer."""
    fleet = (
        ("jobs", "Jobs and other transfers by state", [_Sample({"state": s.value}, _count(sums, s)) for s in State]),
        ("done_bytes", "Bytes of file content that are done", [_Sample({}, sums.bytes_done)]),
        ("size_bytes", "Bytes of file content in all trees of known size", [_Sample({}, sums.bytes_total)]),
        ("unknown_sizes", "Trees whose size is not known yet", [_Sample({}, sums.unknown)]),
        ("rate_bytes_per_second", "Sum of the rates of all running transfers", [_Sample({}, sums.rate)]),
        ("eta_seconds", "Estimated time until the known rest is sent", [_Sample({}, sums.eta)]),
        ("unreachable_hosts", "Hosts that did not answer", [_Sample({}, unreachable)]),
    )
    # Two samples with the same labels would make the whole file invalid, and hosts choose the ids of transfers.
    named = list({tuple(_labels(row).values()): (_labels(row), row) for row in reversed(rows)}.values())[::-1]
    jobs = (
        (
            "job_info",
            "Phase and state of a job, as labels",
            [_Sample({**to, "phase": row.phase, "state": row.state.value}, 1) for to, row in named],
        ),
        ("job_done_bytes", "Bytes of file content that are done", [_Sample(to, row.bytes_done) for to, row in named]),
        (
            "job_size_bytes",
            "Bytes of file content in the tree",
            [_Sample(to, row.bytes_total or None) for to, row in named],
        ),
        (
            "job_rate_bytes_per_second",
            "Rate of the running transfer",
            [_Sample(to, row.rate) for to, row in named],
        ),
        ("job_eta_seconds", "Estimated time until the transfer ends", [_Sample(to, row.eta) for to, row in named]),
        ("job_age_seconds", "Time since the figures were true", [_Sample(to, row.age) for to, row in named]),
    )
    return "".join(_family(f"{_PREFIX}_{name}", said, samples) for name, said, samples in (*fleet, *jobs))


def _count(sums: Sums, state: State) -> int:
    return sums.states.get(state.value, 0)


def _labels(row: Row) -> Mapping[str, str]:
    return {"job": row.name, "source": row.src_host, "dest": row.dest_host}


def _family(name: str, said: str, samples: Iterable[_Sample]) -> str:
    lines = [f"{name}{_label_text(one.labels)} {_number(one.value)}" for one in samples if one.value is not None]
    head = [f"# HELP {name} {said}.", f"# TYPE {name} gauge"]
    return "".join(f"{line}\n" for line in [*head, *lines]) if lines else ""


def _label_text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return one_line(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.3f}"
