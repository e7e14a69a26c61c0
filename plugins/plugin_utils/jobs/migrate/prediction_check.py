# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the predictions of a benchmark with the real times of a job on the same trees. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from ...benchmark.measurement import BenchmarkResult, Prediction
from ...common.units import seconds_of
from .state import MigrationState, TransferSummary

FIRST_COPY, UNCHANGED, COMPARISON = "first copy", "pass without changes", "comparison by content"


@dataclass(frozen=True)
class PredictionCheck:
    """A predicted time with its range beside the real one, in seconds."""

    what: str  # one of the constants
    predicted: float
    low: float
    high: float
    real: float | None = None  # None: not made yet


def check_predictions(benchmark: BenchmarkResult | None, state: MigrationState) -> list[PredictionCheck]:
    """Return the predictions of a benchmark beside what was made of the job since; empty for one of other trees."""
    if benchmark is None or benchmark.recommendation is None or not _is_of(benchmark, state):
        return []
    chosen, since = benchmark.recommendation, benchmark.measurement.at
    found = [
        (FIRST_COPY, chosen.first_copy, next(_first_copies(state, since), None)),
        (UNCHANGED, chosen.unchanged, next(_unchanged(state, since), None)),
        (COMPARISON, chosen.comparison, _comparison(state, since)),
    ]
    return [_beside(what, made, real) for what, made, real in found if made.seconds]


def _beside(what: str, made: Prediction, real: float | None) -> PredictionCheck:
    return PredictionCheck(what, made.seconds, made.low, made.high, real)


def _is_of(benchmark: BenchmarkResult, state: MigrationState) -> bool:
    measured, job = (benchmark.src, benchmark.dest), state.identity
    return all(measured) and [*map(os.path.normpath, measured)] == [*map(os.path.normpath, (job.src, job.dest))]


def _first_copies(state: MigrationState, since: float) -> Iterator[float]:
    """Yield how long the first pass took, if it began after the benchmark and found next to nothing there."""
    for one in state.passes[:1]:
        if _began(one.at, one.duration) >= since and one.files_unchanged * 10 <= one.files_total:
            yield one.duration


def _unchanged(state: MigrationState, since: float) -> Iterator[float]:
    """Yield how long passes took that changed nothing, the last one first."""
    for one in reversed(state.passes[1:]):
        if _began(one.at, one.duration) >= since and not _changed(one):
            yield one.duration


def _changed(one: TransferSummary) -> int:
    return one.files_created + one.files_updated + one.files_deleted + one.attributes_changed


def _comparison(state: MigrationState, since: float) -> float | None:
    made = state.phases.verify
    if made is None or made.compared != "checksum" or _began(made.at, made.duration) < since:
        return None
    return made.duration


def _began(ended: str, seconds: float) -> float:
    """Return when something began, to about a second: times of a state are whole."""
    return (seconds_of(ended) or 0.0) - seconds + 1
