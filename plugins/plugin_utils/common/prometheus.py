# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files for the textfile collector of Prometheus' node exporter. Pure.

The text format is https://prometheus.io/docs/instrumenting/exposition_formats/. Units are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
TEXTFILE_MODE = 0o644  # the node exporter reads it as another user


class MetricSample(NamedTuple):
    """One figure."""

    labels: Mapping[str, str]
    value: float | None  # None: not known, so there is no sample


def gauge(name: str, said: str, samples: Iterable[MetricSample]) -> str:
    """Return the lines of a metric, which ``said`` describes without a full stop; empty if it has no sample."""
    lines = [f"{name}{_label_text(one.labels)} {_number(one.value)}" for one in samples if one.value is not None]
    head = [f"# HELP {name} {said}.", f"# TYPE {name} gauge"]
    return "".join(f"{line}\n" for line in [*head, *lines]) if lines else ""


def gauges(
    prefix: str,
    metrics: Iterable[tuple[str, str, Callable[[T], float | None]]],
    labelled: Sequence[tuple[Mapping[str, str], T]],
) -> str:
    """Return the lines of metrics, each of which has a name, a description and the function that gives its value."""
    return "".join(
        gauge(f"{prefix}_{name}", said, [MetricSample(to, value_of(one)) for to, one in labelled])
        for name, said, value_of in metrics
    )


def _label_text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.3f}"
