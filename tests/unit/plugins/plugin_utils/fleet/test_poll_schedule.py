# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import FEW, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.poll_schedule import (
    AGAIN,
    CREDIT,
    LATEST,
    SELDOM,
    SHARE,
    SOONEST,
    PollSchedule,
    hosts_to_ask,
    next_interval,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status
from hypothesis import given
from hypothesis import strategies as st


def test_the_interval_grows_and_an_end_makes_it_short_again():
    intervals = [SOONEST]
    while intervals[-1] < LATEST:
        intervals.append(next_interval(intervals[-1], ended=False))
    assert intervals == sorted(intervals) and len(intervals) < 20
    assert next_interval(LATEST, ended=True) == SOONEST


@given(st.floats(SOONEST, LATEST), st.floats(0, 1e4), st.floats(0, 1e6))
def test_an_end_that_can_be_foreseen_is_seen_soon(before, fair, left):
    interval = next_interval(before, False, fair, left)
    assert SOONEST <= interval <= next_interval(before, False, fair)
    assert interval <= max(SOONEST, left)


class Fleet:
    """Hosts that are asked when a timetable says so, one after the other, at a cost each."""

    def __init__(self, costs: Mapping[str, float], ends: Mapping[str, float]) -> None:
        self.costs, self.ends = costs, ends  # when the transfer of a host ends
        self.table, self.now = PollSchedule(), 0.0
        self.looks: dict[str, list[float]] = {host: [] for host in costs}
        self.table.keep(list(costs), 0.0)

    def run(self, seconds: float) -> None:
        while (due := self.table.next(())) is not None and due < seconds:
            self.now = max(self.now, due)
            asked = self.table.take_due(self.now, ())
            assert asked  # else the loop would turn without an end
            for host in asked:
                self.looks[host].append(self.now)
                left = self.ends.get(host, 1e9) - self.now
                self.table.answered(host, self.now, self.costs[host], False, left if left > 0 else None)

    @property
    def spent(self) -> float:
        return sum(self.costs[host] * len(looks) for host, looks in self.looks.items())


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60), st.integers(60, 3_000))
def test_looks_take_no_more_than_their_share(costs, seconds):
    fleet = Fleet({str(number): cost for number, cost in enumerate(costs)}, {})
    fleet.run(seconds)
    # The first ones are counted by a guess, and the last ones may be more than what was left.
    assert fleet.spent <= SHARE * seconds + CREDIT + sum(costs) + max(costs)


def test_few_hosts_are_asked_at_once_and_many_are_not():
    few, many = (Fleet({str(number): 0.1 for number in range(count)}, {}) for count in (12, 1000))
    few.run(3)
    many.run(3)
    assert all(looks for looks in few.looks.values())
    assert many.spent <= CREDIT + 3


def test_a_thousand_hosts_wait_alike_and_the_one_whose_transfer_ends_is_asked_more_often():
    fleet = Fleet({str(number): 0.1 for number in range(1000)}, {"7": 9_000.0})
    fleet.run(9_100)
    counts = sorted(len(looks) for host, looks in fleet.looks.items() if host != "7")
    assert counts[0] >= 3 and counts[-1] <= counts[0] + 2
    assert max(at for at in fleet.looks["7"] if at <= 9_000) > 8_980 and fleet.spent <= SHARE * 9_100 + CREDIT + 1


def test_what_a_job_waits_for_is_asked_whatever_it_costs():
    table = PollSchedule()
    table.keep(["a", "b"], 0.0)
    for host in table.take_due(SOONEST, ()):
        table.answered(host, SOONEST, 100.0, False)
    assert table.next(()) > 1000
    table.hasten("a", urgent=True)
    assert table.next(()) == 2 * SOONEST and table.take_due(2 * SOONEST, ()) == ["a"]
    table.answered("a", 2 * SOONEST, 0.1, True)
    assert table.next(()) > 1000


def test_a_host_that_is_being_asked_or_that_nobody_watches_is_not_asked():
    table = PollSchedule()
    table.keep(["a", "b"], 0.0)
    assert table.take_due(SOONEST, {"a"}) == ["b"] and table.next({"a", "b"}) is None
    table.keep(["a"], SOONEST)
    table.hasten("b", urgent=True)
    table.answered("b", SOONEST, 0.1, False)
    assert table.take_due(9.0, ()) == ["a"]


def test_a_host_that_does_not_answer_is_asked_less_and_less_often_until_it_does():
    table = PollSchedule()
    table.keep(["a"], 0.0)
    now, pauses = SOONEST, []
    for _try in range(12):
        assert table.take_due(now - 0.1, ()) == [] and table.take_due(now, ()) == ["a"]
        table.failed("a", now)
        pauses.append(table.next(()) - now)
        now += pauses[-1]
    assert pauses[0] == AGAIN and pauses == sorted(pauses) and pauses[-1] == SELDOM
    table.take_due(now, ())
    table.answered("a", now, 0.01, True)
    assert table.next(()) <= now + 2 * SOONEST
    table.failed("a", now)
    assert table.next(()) == now + AGAIN


def test_twenty_destinations_answer_for_a_thousand_sources():
    transfers = {f"job{number}": (f"old{number}", f"new{number % 20}") for number in range(1000)}
    asked = hosts_to_ask(transfers)
    assert set(asked) == {f"new{number}" for number in range(20)}
    assert sorted(name for names in asked.values() for name in names) == sorted(transfers)


def test_of_two_hosts_that_know_one_transfer_the_preferred_one_is_asked():
    assert hosts_to_ask({"a": ("old", "new")}) == {"old": ["a"]}


def lines_of(jobs: int, seconds: int) -> list[str]:
    """Return what a run of so many pairs says in so long a time, if all are heard of every 30 seconds."""
    said: list[str] = []
    clock = [0.0]
    teller = ProgressPrinter(said.append, lambda: clock[0], jobs)
    running = {str(number): Status("running", alive=True) for number in range(jobs)}
    while clock[0] < seconds:
        clock[0] += 30
        teller.progress(running)
    return said


def test_few_pairs_have_a_line_each():
    assert len(lines_of(FEW, 120)) == 4 * FEW
    assert all(line.startswith(str(number)) for number, line in enumerate(lines_of(FEW, 30)))


def test_many_pairs_have_one_line_for_all_at_a_growing_pace():
    said = lines_of(1000, 36_000)
    assert 50 < len(said) < 200
    assert said[0] == "0 of 1000 jobs have ended, 0 of them failed; 1000 transfers run: 0 B so far"
