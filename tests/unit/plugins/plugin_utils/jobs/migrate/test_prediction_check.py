# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The predictions of a benchmark are compared with the real times of a job on the same trees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    BenchmarkResult,
    PairMeasurement,
    Prediction,
    Recommendation,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import seconds_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.prediction_check import (
    COMPARISON,
    FIRST_COPY,
    UNCHANGED,
    PredictionCheck,
    check_predictions,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import parse_state

JOB = {"name": "data", "identity": {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}}
SEED = {"at": "2026-01-01T10:01:00Z", "duration": 50.0, "files_total": 100, "files_unchanged": 2, "files_created": 98}
QUIET = {"at": "2026-01-01T11:00:00Z", "duration": 5.0, "files_total": 100, "files_unchanged": 100}
BUSY = {**QUIET, "at": "2026-01-01T12:00:00Z", "duration": 9.0, "files_updated": 1}
VERIFY = {"at": "2026-01-01T13:00:00Z", "duration": 70.0, "compared": "checksum", "identical": True}
CHOSEN = Recommendation(
    "stream", "TLS", 4, "auto", "push", "", Prediction(60, 50, 80), Prediction(4, 3, 6), Prediction(0, 0, 0)
)
RESULT = BenchmarkResult(
    PairMeasurement("old", "new", at=float(seconds_of("2026-01-01T10:00:00Z") or 0)),
    (),
    CHOSEN,
    src="/srv",
    dest="/srv/",
)


def state(**phases):
    return parse_state({**JOB, "phases": phases})


def real(result, **phases):
    return {one.what: one.real for one in check_predictions(result, state(**phases))}


def test_what_was_made_since_the_benchmark_counts():
    assert check_predictions(RESULT, state()) == [
        PredictionCheck(FIRST_COPY, 60, 50, 80),
        PredictionCheck(UNCHANGED, 4, 3, 6),
    ], "without a prediction there is nothing to check"
    known = replace(RESULT, recommendation=replace(CHOSEN, comparison=Prediction(75, 60, 90)))
    found = real(known, seed=SEED, sync={"passes": [QUIET, BUSY]}, verify=VERIFY)
    assert found == {FIRST_COPY: 50.0, UNCHANGED: 5.0, COMPARISON: 70.0}
    assert real(known, seed=SEED, verify={**VERIFY, "compared": "size"})[COMPARISON] is None


@pytest.mark.parametrize(
    "seed",
    [
        {**SEED, "files_unchanged": 50},  # most was there
        {**SEED, "at": "2026-01-01T10:00:40Z"},  # it began before
    ],
)
def test_other_passes_are_no_first_copy(seed):
    assert real(RESULT, seed=seed)[FIRST_COPY] is None


@pytest.mark.parametrize(
    "result",
    [None, replace(RESULT, recommendation=None), replace(RESULT, src="/other"), replace(RESULT, src="", dest="")],
)
def test_a_benchmark_of_other_trees_says_nothing(result):
    assert check_predictions(result, state(seed=SEED)) == []
