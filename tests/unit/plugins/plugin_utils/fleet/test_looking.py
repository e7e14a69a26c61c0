# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.looking import (
    LATEST,
    SHARE,
    SOONEST,
    hosts_to_ask,
    next_interval,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.retries import DELAYS, delay_before
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.telling import FEW, Teller
from ansible_collections.longhaul.fleet.plugins.plugin_utils.status import Status
from hypothesis import given
from hypothesis import strategies as st


def test_the_interval_grows_and_an_end_makes_it_short_again():
    intervals = [SOONEST]
    while intervals[-1] < LATEST:
        intervals.append(next_interval(intervals[-1], 0.0, ended=False))
    assert intervals == sorted(intervals) and len(intervals) < 20
    assert next_interval(LATEST, 0.0, ended=True) == SOONEST


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.booleans())
def test_looks_never_cost_more_than_their_share(before, spent, ended):
    assert spent <= SHARE * next_interval(before, spent, ended) * (1 + 1e-9)


def test_twenty_destinations_answer_for_a_thousand_sources():
    transfers = {f"job{number}": (f"old{number}", f"new{number % 20}") for number in range(1000)}
    asked = hosts_to_ask(transfers)
    assert set(asked) == {f"new{number}" for number in range(20)}
    assert sorted(name for names in asked.values() for name in names) == sorted(transfers)


def test_of_two_hosts_that_know_one_transfer_the_preferred_one_is_asked():
    assert hosts_to_ask({"a": ("old", "new")}) == {"old": ["a"]}


def test_only_what_may_pass_is_tried_again_and_later_each_time():
    assert [delay_before(tries, True) for tries in range(1, len(DELAYS) + 2)] == [*DELAYS, None]
    assert sorted(DELAYS) == list(DELAYS)
    assert delay_before(1, False) is None


def lines_of(jobs: int, seconds: int) -> list[str]:
    """Return what a run of so many pairs says in so long a time, if all are heard of every 30 seconds."""
    said: list[str] = []
    clock = [0.0]
    teller = Teller(said.append, lambda: clock[0], jobs)
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
