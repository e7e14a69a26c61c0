# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples of the progress of a job: bounded, and told apart by pass and interruption."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.samples import (
    MOST_SAMPLES,
    ProgressSample,
    add_sample,
    bytes_left,
    is_due,
    latest_rate,
    split_gaps,
    split_passes,
)


def record(passes):
    """Return the samples of passes, each a phase with its begin and its length in seconds, looked at each second."""
    samples = []
    for phase, begin, took in passes:
        for second in range(took + 1):
            if is_due(samples, phase, begin + second):
                samples = add_sample(samples, ProgressSample(begin + second, phase, second, took))
    return samples


@pytest.mark.parametrize(
    "passes",
    [
        [("seed", 0, 5)],
        [("seed", 0, 20_000)],
        [("seed", 0, 3000), ("sync", 600_000, 300), ("cutover", 900_000, 30)],
        [("sync", number * 1000, 500) for number in range(20)],
        [("sync", number * 1000, 1) for number in range(500)],
    ],
)
def test_there_is_a_bounded_number_of_samples_and_the_last_pass_has_some(passes):
    samples = record(passes)
    assert 2 <= len(samples) <= MOST_SAMPLES
    assert [one.at for one in samples] == sorted(one.at for one in samples)
    last = split_passes(samples)[-1]
    phase, begin, took = passes[-1]
    assert last[0].phase == phase and last[0].at == begin
    assert last[-1].at >= begin + took * 0.95 - 1


def test_the_first_seconds_of_a_pass_are_seen_one_by_one():
    assert [one.at for one in record([("seed", 100, 10)])] == list(range(100, 111))


def test_the_prediction_of_the_preflight_leaves_no_sample():
    assert record([("preflight", 0, 10)]) == []
    assert {one.phase for one in record([("seed", 0, 10), ("preflight", 20, 10)])} == {"seed"}


def test_a_pass_begins_with_a_phase_or_where_less_is_done():
    done = [("seed", 1), ("seed", 5), ("sync", 6), ("sync", 9), ("sync", 2), ("sync", 3)]
    samples = [ProgressSample(number, phase, amount) for number, (phase, amount) in enumerate(done)]
    assert [[one.at for one in part] for part in split_passes(samples)] == [[0, 1], [2, 3], [4, 5]]


def test_an_interruption_divides_a_pass():
    samples = [ProgressSample(at, "seed", at) for at in (0, 10, 20, 30, 500, 510)]
    assert [[one.at for one in part] for part in split_gaps(samples)] == [[0, 10, 20, 30], [500, 510]]
    assert split_gaps([ProgressSample(0, "seed"), ProgressSample(50, "seed")]) == [
        [ProgressSample(0, "seed"), ProgressSample(50, "seed")]
    ]


def test_the_rate_and_what_is_left_are_those_of_the_last_pass():
    assert latest_rate([]) is None and bytes_left([]) is None
    assert latest_rate([ProgressSample(0, "seed", 5, 10)]) is None
    samples = [ProgressSample(at, "seed", done, 100) for at, done in ((0, 0), (10, 10), (20, 20), (30, 60))]
    assert latest_rate(samples) == 4.0 and bytes_left(samples) == 40
    assert bytes_left([ProgressSample(0, "seed", 5)]) is None
