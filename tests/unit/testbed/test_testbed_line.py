# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of packets on a long line."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.longhaul.fleet.tests.testbed.line import LEAST_QUEUE, OVERTAKEN, Line, Way

PACKET = 1500  # bytes


def send(line: Line, count: int, every: float, seed: int = 7) -> list[float | None]:
    """Return when the packets arrive of which one is sent ``every`` so many seconds."""
    way = Way(line, seed)
    return [way.offer(number * every, PACKET) for number in range(count)]


def test_a_packet_takes_half_of_the_round_trip_and_its_own_time():
    assert send(Line(rtt=0.1), 3, 1.0) == [0.05, 1.05, 2.05]
    assert send(Line(rtt=0.1, rate=12_000_000), 1, 1.0) == [pytest.approx(0.051)]


def test_what_comes_faster_than_the_rate_waits_and_what_the_queue_cannot_hold_is_dropped():
    line = Line(rtt=0.1, rate=12_000_000, queue=10 * PACKET + PACKET // 2)
    arrivals = send(line, 100, 0.0)
    arrived = [at for at in arrivals if at is not None]
    assert len(arrived) == 10 and arrivals[10:] == [None] * 90
    assert [later - earlier for earlier, later in itertools.pairwise(arrived)] == [pytest.approx(0.001)] * 9
    assert None not in send(line, 100, 0.001)


def test_the_queue_holds_a_round_trip_unless_its_size_is_named():
    assert Line(rtt=0.1, rate=20_000_000).room == 250_000
    assert Line(rtt=0.001, rate=1_000_000).room == LEAST_QUEUE
    assert Line(rtt=0.1, rate=20_000_000, queue=5).room == 5


@pytest.mark.parametrize("burst", [1, 4])
def test_losses_are_as_many_and_as_long_as_asked_for(burst):
    lost = [at is None for at in send(Line(loss=0.02, burst=burst), 200_000, 0.001)]
    assert sum(lost) / len(lost) == pytest.approx(0.02, rel=0.1)
    runs = [len(list(group)) for is_lost, group in itertools.groupby(lost) if is_lost]
    assert sum(runs) / len(runs) == pytest.approx(burst, rel=0.1)


def test_jitter_keeps_the_order_and_overtaking_does_not():
    arrivals = [at for at in send(Line(rtt=0.1, jitter=0.02), 1000, 0.001) if at is not None]
    assert arrivals == sorted(arrivals)
    assert all(0.05 <= at - number * 0.001 <= 0.0701 for number, at in enumerate(arrivals))
    arrivals = [at for at in send(Line(rtt=0.1, reorder=0.1), 1000, 0.001) if at is not None]
    late = [at - number * 0.001 for number, at in enumerate(arrivals)]
    assert late.count(pytest.approx(0.05 + OVERTAKEN)) == pytest.approx(100, abs=40)


def test_the_same_seed_makes_the_same_line():
    line = Line(rtt=0.2, loss=0.1, jitter=0.01)
    assert send(line, 1000, 0.01) == send(line, 1000, 0.01) != send(line, 1000, 0.01, seed=8)
    assert Line(**line.dump()) == line


def test_what_became_of_the_packets_is_counted():
    way = Way(Line(rate=12_000_000, queue=2 * PACKET, loss=0.5), 1)
    for _packet in range(10):
        way.offer(0.0, PACKET)
    counts = way.counts()
    assert counts["dropped"] == 8 and counts["passed"] + counts["lost"] == 2
    assert counts["bytes"] == counts["passed"] * PACKET


@pytest.mark.parametrize("wrong", [{"rtt": -1}, {"loss": 1}, {"reorder": 1.5}, {"burst": 0.5}, {"queue": -1}])
def test_a_line_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError):
        Line(**wrong)
