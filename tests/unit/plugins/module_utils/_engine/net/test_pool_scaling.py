# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many connections there are on lines of all kinds, none of which is there."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pool_scaling import Growth, PoolSample
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_stats import NOTHING, Path, joined
from hypothesis import given
from hypothesis import strategies as st

MB = 10**6
TICK = 0.5  # seconds
Line = Callable[[int], float]  # connections -> bytes a second


def policed(count: int) -> float:
    """Let each connection carry so much."""
    return 5 * MB * count


def full(_count: int) -> float:
    """Be full with one."""
    return 110 * MB


def run(growth: Growth, line: Line, seconds: float = 60, **more: Any) -> list[int]:
    """Return the numbers that there were, one after the other; ``more`` is what a sample says beside the rate."""
    said = {"waiting": 0.95, "processor": 0.1, "engaged": True, **more}
    numbers = [growth.count]
    for _tick in range(int(seconds / TICK)):
        count = growth.take(PoolSample(TICK, int(TICK * line(growth.count)), **said))
        if count != numbers[-1]:
            numbers.append(count)
    return numbers


def test_where_more_carry_more_there_are_as_many_as_there_may_be():
    growth = Growth(2, 16)
    assert run(growth, policed) == [2, 4, 8, 16] and growth.over
    assert run(Growth(1, 16), policed) == [1, 2, 4, 8, 16]
    assert run(Growth(4, 13), policed) == [4, 8, 13]


def test_it_takes_seconds_and_not_minutes():
    assert run(Growth(2, 16), policed, seconds=20)[-1] == 16


def test_a_full_line_is_tried_twice_and_then_left_alone():
    growth = Growth(2, 16)
    assert run(growth, full) == [2, 4, 2, 4, 2] and growth.over
    assert run(growth, policed) == [2]


def test_it_stops_where_the_line_is_full():
    assert run(Growth(2, 16), lambda count: min(policed(count), 21 * MB)) == [2, 4, 8, 4, 8, 4]


def test_a_gain_forgives_an_earlier_trial_that_was_vain():
    growth = Growth(2, 16)
    while growth.count == 2:
        run(growth, full, seconds=TICK)
    while growth.count == 4:
        run(growth, full, seconds=TICK)
    assert run(growth, policed) == [2, 4, 8, 16]


@pytest.mark.parametrize(
    "more",
    [
        {"waiting": 0.3},  # it is not the network that is waited for
        {"processor": 0.9},
        {"engaged": False},  # small files, or a connection that is not there yet
    ],
)
def test_where_it_cannot_pay_nothing_is_tried(more):
    assert run(Growth(2, 16), policed, **more) == [2]


def test_what_is_limited_is_not_tried_to_exceed():
    assert run(Growth(2, 16, limit=10 * MB), policed) == [2]
    assert run(Growth(2, 16, limit=25 * MB), policed)[:3] == [2, 4, 8]


def test_it_waits_for_a_chance():
    growth = Growth(2, 16)
    assert run(growth, policed, engaged=False) == [2]
    assert run(growth, policed) == [2, 4, 8, 16]


def test_waiting_that_is_known_late_counts_all_the_same():
    growth = Growth(2, 16)
    numbers = [
        growth.take(PoolSample(TICK, int(TICK * policed(growth.count)), 3.6 if tick % 4 == 3 else 0.0, 0.1, True))
        for tick in range(40)
    ]
    assert numbers[-1] == 16


def test_what_new_connections_fill_into_buffers_is_no_gain():
    growth, numbers = Growth(2, 16), []
    since = 0
    for _tick in range(120):
        before = growth.count
        burst = 4 * MB * growth.count if since == 0 else 0
        numbers.append(growth.take(PoolSample(TICK, int(TICK * full(before)) + burst, 0.95, 0.1, True)))
        since = 0 if growth.count > before else since + 1
    assert max(numbers) == 4 and numbers[-1] == 2 and growth.over


def test_slow_start_is_waited_for():
    """A connection doubles what it carries each half second, from next to nothing, and is there after four."""
    growth, ages = Growth(2, 8), [20, 20]
    for _tick in range(120):
        rate = sum(min(5 * MB, 2**age * 20_000) for age in ages)
        growth.take(PoolSample(TICK, int(TICK * rate), 0.95, 0.1, True))
        ages = [age + 1 for age in ages[: growth.count]] + [0] * (growth.count - len(ages))
    assert growth.count == 8


LOSSY = Path(100, 1, 0.11, 0.1)
CLEAN = Path(100, 0, 0.11, 0.1)
QUEUED = Path(100, 1, 0.2, 0.1)
SHORT = Path(100, 1, 0.001, 0.001)
RARE = Path(100_000, 1, 0.11, 0.1)


def test_where_losses_hold_all_back_there_are_soon_as_many_as_there_may_be():
    assert run(Growth(1, 16), policed, seconds=5, path=LOSSY) == [1, 2, 4, 8, 16]


def test_noise_does_not_mislead_where_packets_are_lost():
    growth, rates = Growth(2, 16), [0.2, 1.4, 0.4, 1.0, 0.1, 0.7]
    for tick in range(40):
        rate = policed(growth.count) * rates[tick % len(rates)] * TICK
        growth.take(PoolSample(TICK, int(rate), 0.0, 0.1, True, LOSSY))
    assert growth.count == 16


def test_losses_on_a_short_line_do_not_count():
    assert run(Growth(2, 16), full, path=SHORT) == [2, 4, 2, 4, 2]


@pytest.mark.parametrize("path", [CLEAN, RARE])
def test_on_a_long_line_those_that_were_tried_stay_unless_they_cost(path):
    growth = Growth(2, 16)
    assert run(growth, full, path=path) == [2, 4, 8]
    assert run(growth, policed, path=path) == [8]
    assert run(growth, full, path=QUEUED)[-1] == 1 and growth.over  # but they are given up where they fill the line
    assert run(Growth(2, 16), lambda count: full(count) / count, path=path) == [2, 4, 2, 4, 2]


def test_on_a_long_line_with_a_queue_no_more_are_tried():
    assert run(Growth(2, 16), policed, path=QUEUED._replace(rtt=0.13)) == [2]


@pytest.mark.parametrize(("room", "expected"), [(1.0, [4, 2, 1]), (0.5, [4, 3, 2]), (0.3, [4, 3])])
def test_on_a_full_line_there_are_as_few_as_keep_it_full(room, expected):
    assert run(Growth(4, 16), full, path=Path(1000, 0, 0.1 * (1 + room), 0.1)) == expected


@pytest.mark.parametrize(("least", "expected"), [(1.0, [4, 3]), (0.2, [4, 3, 2, 1]), (0.31, [4, 3])])
def test_a_slow_one_is_given_up_where_an_average_one_would_leave_a_gap(least, expected):
    path = Path(1000, 0, 0.13, 0.1)
    growth, numbers = Growth(4, 16), [4]
    for _tick in range(100):
        least_now = least if growth.count < 4 else 0.25
        count = growth.take(PoolSample(TICK, int(TICK * full(1)), 0.95, 0.1, True, path, least_now))
        numbers += [count] if count != numbers[-1] else []
    assert numbers == expected


@pytest.mark.parametrize("begin", [4, 16])
def test_it_takes_seconds_until_others_have_their_share(begin):
    """Also where an earlier transfer had found that as many pay as there may be."""
    assert run(Growth(begin, 16), full, seconds=15, path=QUEUED)[-1] == 1
    assert run(Growth(begin, 16), policed, path=LOSSY)[-1] == 16


def test_none_is_given_up_where_losses_are_borne_until_that_is_over():
    """The queue is theirs then: what is given up leaves the line to nobody."""
    growth = Growth(16, 16)
    assert run(growth, full, path=QUEUED, bears_losses=True) == [16] and not growth.over
    assert run(growth, full, path=QUEUED)[-1] == 1


def test_one_that_is_missed_is_made_again_and_stays_for_ever_longer():
    growth, numbers = Growth(4, 16), [4]
    for _tick in range(600):
        count, path = growth.count, QUEUED if growth.count > 2 else CLEAN
        numbers.append(growth.take(PoolSample(TICK, int(TICK * min(policed(count), 14 * MB)), 0.95, 0.1, True, path)))
    changes = [tick for tick, (one, two) in enumerate(zip(numbers, numbers[1:])) if one != two]
    # Two were too many, so both come back, and from then on one goes at a time.
    assert sorted(set(numbers), key=numbers.index) == [4, 2, 3] and numbers.count(3) > 8 * numbers.count(2)
    assert 5 < len(changes) < 15
    assert run(growth, full, path=QUEUED, seconds=300) == [3, 2, 1]


def _given_up(rates: list[float], path: Path) -> list[int]:
    """Return how many connections there are in each second after one of two was given up, with these rates then."""
    growth = Growth(2, 16)
    while growth.count == 2:
        growth.take(PoolSample(TICK, int(TICK * 10 * MB), 0.95, 0.1, True, QUEUED))
    return [growth.take(PoolSample(TICK, int(TICK * 10 * MB * rate), 0.95, 0.1, True, path)) for rate in rates]


def test_the_rest_may_take_some_seconds_to_grow_into_the_part_of_one_that_was_given_up():
    assert _given_up([0.88] * 4 + [0.92] * 5 + [1.0] * 20, CLEAN)[-1] == 1
    assert _given_up([0.9] * 8, CLEAN)[-1] == 1 and _given_up([0.9] * 16, CLEAN)[-1] == 2
    assert _given_up([0.8] * 5, CLEAN)[-1] == 2


def test_one_whose_part_others_have_is_not_missed():
    some_wait = Path(1000, 0, 0.14, 0.1, 0.02)
    assert some_wait.queues and not some_wait.is_full
    assert _given_up([0.75] * 60, some_wait)[-1] == 1
    assert _given_up([0.6] * 6, some_wait)[-1] == 2


def test_round_trips_that_differ_are_no_queue():
    """The delays are between 0 and as much as the line itself needs."""
    assert run(Growth(4, 4), full, path=Path(1000, 0, 0.15, 0.1, 0.025)) == [4]


def test_a_full_line_that_loses_much_at_once_is_not_taken_for_one_that_always_does():
    growth = Growth(4, 16)
    assert run(growth, full, seconds=TICK, path=QUEUED) == [4]
    assert run(growth, full, seconds=2, path=LOSSY) == [4]
    assert run(growth, full, seconds=10, path=QUEUED)[-1] == 1
    assert run(growth, full, seconds=4, path=LOSSY) == [1]
    assert run(growth, full, seconds=30, path=LOSSY)[-1] == 16


def test_what_others_take_later_is_left_to_them():
    growth = Growth(2, 16)
    assert run(growth, full, path=QUEUED) == [2, 1]
    assert run(growth, lambda _count: full(1) / 2, path=QUEUED) == [1]


def test_a_short_line_keeps_what_its_processors_need():
    assert run(Growth(4, 16), full, waiting=0.1, path=Path(1000, 0, 0.005, 0.001)) == [4]


def test_what_carries_clearly_less_together_goes_again():
    growth = Growth(2, 16)
    said: dict[str, Any] = {"waiting": 0.1, "processor": 0.1, "engaged": True}
    assert run(growth, full, seconds=10, waiting=0.1, path=CLEAN) == [2]
    for _tick in range(60):
        growth.take(PoolSample(TICK, int(TICK * full(1) / growth.count), path=LOSSY, **said))
    assert growth.count == 2
    assert run(growth, policed, path=LOSSY) == [2]


def test_what_carries_as_much_stays_where_packets_are_lost():
    growth = Growth(2, 16)
    assert run(growth, full, seconds=10, waiting=0.1, path=CLEAN) == [2]
    assert run(growth, full, path=LOSSY)[-1] == 16


def test_a_limit_that_is_reached_is_not_a_matter_of_losses():
    assert run(Growth(2, 16, limit=10 * MB), policed, path=LOSSY) == [2]


def test_several_connections_are_looked_at_as_one():
    assert joined([]) == joined([NOTHING, NOTHING]) == NOTHING
    assert joined([Path(300, 1, 0.1, 0.09), Path(100, 2, 0.2, 0.1), NOTHING]) == Path(400, 3, 0.125, 0.09)


SAMPLES = st.builds(
    PoolSample,
    st.floats(0, 2),
    st.integers(0, 10**10),
    st.floats(0, 4),
    st.floats(0, 1.5),
    st.sampled_from([True, True, False]),
    st.sampled_from([NOTHING, LOSSY, CLEAN, QUEUED]),
)


@given(st.lists(SAMPLES, max_size=80), st.integers(1, 16), st.integers(0, 15), st.sampled_from([0, 50 * MB]))
def test_whatever_is_measured_there_is_one_and_never_more_than_allowed(samples, begin, more, limit):
    growth = Growth(begin, begin + more, limit)
    for sample in samples:
        assert 1 <= growth.take(sample) <= begin + more
        assert growth.kept <= growth.count
