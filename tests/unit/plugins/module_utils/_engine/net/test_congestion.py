# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which connections get another congestion control, on lines none of which is there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.congestion import (
    CANDIDATE,
    MOST,
    PROBE_NEW_SHARE,
    PROBE_SHARE,
    Change,
    CongestionChoice,
    Look,
    LossProbe,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_stats import Path
from hypothesis import given
from hypothesis import strategies as st

TICK = 0.5
RATE = 2 * 10**5  # bytes a second
LOSSY = Path(1000, 10, 0.105, 0.1)
CLEAN = Path(1000, 0, 0.105, 0.1)
QUEUED = Path(1000, 10, 0.2, 0.1)
SHORT = Path(1000, 10, 0.0005, 0.0005)
FULL = Path(1000, 100, 0.2, 0.1)
NOISY = Path(1000, 1, 0.105, 0.1)
NOBODY = Path(0, 0, 0.105, 0.1)


def run(choice: CongestionChoice, path: Path, gain: float = 5, seconds: float = 30, links: int = 4) -> dict[int, int]:
    """Return how often each connection changed; those with the candidate carry ``gain`` times as much."""
    has: set[int] = set()
    changes: dict[int, int] = {}
    for _tick in range(int(seconds / TICK)):
        looks = {
            number: Look(TICK, int(1e5 * TICK * (gain if number in has else 1)), path, True)
            for number in range(1, links + 1)
        }
        for change in choice.take(looks):
            changes[change.number] = changes.get(change.number, 0) + 1
            (has.add if change.name else has.discard)(change.number)
    assert len(has) <= MOST
    return changes


def test_where_packets_are_lost_on_an_idle_line_two_connections_change_over_and_stay():
    choice = CongestionChoice()
    assert run(choice, LOSSY) == {1: 1, 2: 1}
    assert choice.kept


def test_what_brings_nothing_is_taken_back_and_not_tried_again():
    choice = CongestionChoice()
    assert run(choice, LOSSY, gain=1) == {1: 2, 2: 2}
    assert choice.over and run(choice, LOSSY) == {}


def test_a_clean_line_a_full_one_and_a_short_one_are_left_alone():
    for path in (CLEAN, QUEUED, SHORT):
        assert run(CongestionChoice(), path) == {}


def test_what_a_full_line_loses_at_once_is_no_reason():
    choice = CongestionChoice()
    assert run(choice, QUEUED, seconds=2) == {}
    assert run(choice, LOSSY, seconds=4) == {}
    assert run(choice, QUEUED, seconds=1) == {}
    assert run(choice, LOSSY) == {1: 1, 2: 1}  # it stays so


def test_it_takes_seconds():
    choice = CongestionChoice()
    looks = {1: Look(TICK, 10**5, LOSSY, True)}
    changes = [choice.take(looks) for _tick in range(6)]
    assert changes.index([Change(1, CANDIDATE)]) * TICK < 3


def test_a_connection_that_had_nothing_to_do_is_not_judged():
    choice = CongestionChoice()
    for _tick in range(60):
        assert choice.take({1: Look(TICK, 0, LOSSY, False)}) == []


def test_one_that_was_lost_makes_room_for_another():
    choice = CongestionChoice()
    assert run(choice, LOSSY, links=2) == {1: 1, 2: 1}
    looks = {number: Look(TICK, 10**5, LOSSY, True) for number in (2, 3)}
    changes: list[Any] = [choice.take(looks) for _tick in range(10)]
    assert [Change(3, CANDIDATE)] in changes


def begin_with_it(path: Path, seconds: float, eased: Path | None = None) -> tuple[CongestionChoice, list[Change], int]:
    """Let two connections begin with the candidate beside two others; the path is ``eased`` while they send less.

    Return the choice, what it changed, and how often it looked while they did.
    """
    choice = CongestionChoice()
    has, changed, ticks = {1, 2}, [], 0
    for _tick in range(int(seconds / TICK)):
        now = path
        if choice.rates and eased is not None:
            assert set(choice.rates) == {1, 2, 3, 4} and all(rate < RATE for rate in choice.rates.values())
            now, ticks = eased, ticks + 1
        for change in choice.take({one: Look(TICK, 10**5, now, True, one in has) for one in range(1, 5)}):
            (has.add if change.name else has.discard)(change.number)
            changed.append(change)
    assert not choice.rates
    return choice, changed, ticks


@pytest.mark.parametrize("path", [LOSSY, QUEUED])
def test_those_that_begin_with_it_keep_it_where_packets_are_lost_without_a_queue(path):
    choice, changed, ticks = begin_with_it(path, 60, LOSSY)
    assert not changed and choice.kept
    assert ticks * TICK <= (3 if path == QUEUED else 0)


@pytest.mark.parametrize("eased", [CLEAN, QUEUED])
def test_they_get_their_own_back_where_only_a_full_queue_loses_packets(eased):
    """A line that is clean by now, also where somebody else's packets fill it: BBR would leave nothing to others."""
    choice, changed, ticks = begin_with_it(QUEUED, 20, eased)
    assert changed == [Change(1, ""), Change(2, "")] and not choice.kept and not choice.over
    assert 0 < ticks * TICK <= (2 if eased == CLEAN else 6.5)
    assert run(choice, QUEUED) == {}


def test_one_that_comes_while_the_line_is_looked_at_does_not_fill_it_again():
    """One that was lost, or that is tried as less is sent, may begin with the candidate and go as fast as it can."""
    choice, has, seconds = CongestionChoice(), {1}, 0.0
    while has and seconds < 30:
        there, seconds = ({1, 2} if choice.rates else {1}), seconds + TICK
        path = CLEAN if sum(choice.rates.get(one, RATE) for one in there) < RATE else QUEUED
        for change in choice.take({one: Look(TICK, 10**5, path, True, True) for one in there}):
            has.discard(change.number)
            assert set(choice.rates) in (set(), {1, 2})
    assert not has and seconds <= 12 + 3, "not at the end of its patience"


def test_that_is_looked_at_again_every_few_minutes():
    choice, _changed, ticks = begin_with_it(QUEUED, 1000, LOSSY)
    assert choice.kept and 3 * 2 <= ticks <= 4 * 3, "for a second every five minutes"
    choice = CongestionChoice()
    assert run(choice, LOSSY, seconds=250) == {1: 1, 2: 1} and choice.kept
    looks = {one: Look(TICK, 10**5, CLEAN, True, one < 3) for one in range(1, 5)}
    assert [change for _tick in range(200) for change in choice.take(looks)][:2] == [Change(1, ""), Change(2, "")]


def test_a_trial_that_fails_beside_one_that_began_with_it_does_not_leave_that_one_unjudged():
    """It would send half as much to the end."""
    choice, has = CongestionChoice(), {1}
    choice._has_failed = True
    for _tick in range(80):
        for change in choice.take({1: Look(TICK, 10**5, CLEAN if choice.rates else QUEUED, True, 1 in has)}):
            has.discard(change.number)
        assert choice.over == (not has)  # nobody asks it any more when it is over
    assert not has and not choice.rates


def test_those_that_begin_with_it_get_their_own_back_where_none_are_lost_and_the_search_begins_anew():
    choice, changed, _ticks = begin_with_it(CLEAN, 30)
    assert changed == [Change(1, ""), Change(2, "")]
    assert not choice.kept and not choice.over
    assert run(choice, LOSSY) == {1: 1, 2: 1}


def test_one_that_is_made_again_with_it_has_it_only_where_no_other_has_come():
    choice, _changed, _ticks = begin_with_it(LOSSY, 10)
    alone = {2: Look(TICK, 10**5, LOSSY, True, True)}
    assert choice.take(alone) == [] and choice.kept
    again = {1: Look(TICK, 10**5, LOSSY, True, True), **alone}
    assert [change for _tick in range(30) for change in choice.take(again)] == [] and choice.kept
    assert choice.take(alone) == []
    third = {**alone, 3: Look(TICK, 10**5, LOSSY, True)}
    assert [change for _tick in range(4) for change in choice.take(third)] == [Change(3, CANDIDATE)]
    third[3] = third[3]._replace(has_candidate=True)
    assert choice.take({**again, **third}) == [Change(1, "")]


LOOKS = st.dictionaries(
    st.integers(1, 5),
    st.builds(Look, st.floats(0.1, 2), st.integers(0, 10**9), st.sampled_from([LOSSY, CLEAN, QUEUED]), st.booleans()),
)


@given(st.lists(LOOKS, max_size=60))
def test_whatever_is_measured_no_more_than_two_have_it(sequence):
    choice, has = CongestionChoice(), set()
    for looks in sequence:
        has &= looks.keys()
        for change in choice.take({one: look._replace(has_candidate=one in has) for one, look in looks.items()}):
            assert change.number in looks
            (has.add if change.name else has.discard)(change.number)
        assert len(has) <= MOST


def probe_with(*paths: Path) -> tuple[bool | None, float]:
    """Return what is known in the end, and the seconds that took."""
    probe, found, seconds = LossProbe({1: 1000.0}), None, 0.0
    for path in paths:
        assert found is None
        found, seconds = probe.take(TICK, path), seconds + TICK
        if found is not None:
            break
    return found, seconds


@pytest.mark.parametrize("queued", range(4))
def test_what_is_lost_while_the_queue_drains_and_a_moment_after_it_does_not_count(queued: int) -> None:
    late = Path(1000, 100, 0.12, 0.1)  # what was lost before is sent again, and may be lost again
    assert probe_with(*[FULL] * queued, late, *[CLEAN] * 9) == (False, (queued + 2) * TICK)
    assert probe_with(*[FULL] * queued, CLEAN, *[NOISY] * 9) == (True, (queued + 2) * TICK)


def test_a_queue_that_comes_back_begins_it_again_and_one_that_stays_is_somebody_elses() -> None:
    assert probe_with(NOISY, FULL, *[CLEAN] * 9) == (False, 4 * TICK)
    assert probe_with(*[FULL] * 99) == (False, 6.0)
    assert probe_with(*[NOBODY] * 99) == (False, 6.0)


def test_a_longer_line_and_a_slower_one_take_longer() -> None:
    lossy = NOISY._replace(rtt=0.61, min_rtt=0.6)
    assert probe_with(*[lossy] * 99) == (True, 6 * TICK)  # a round trip, and three
    assert probe_with(*[lossy._replace(rtt=0.9)] * 99) == (False, 18.0)
    assert probe_with(*[NOISY._replace(packets=100)] * 99) == (True, 3 * TICK)


def test_each_connection_sends_half_as_much_and_those_that_come_meanwhile_a_quarter_of_all_together() -> None:
    probe = LossProbe({1: 1000.0, 2: 0.0, 3: 600.0})
    assert probe.rates([1, 3]) == {1: int(1000 * PROBE_SHARE), 3: int(600 * PROBE_SHARE)}
    assert probe.rates([1, 2, 4]) == {
        1: int(1000 * PROBE_SHARE),
        2: int(1600 * PROBE_NEW_SHARE / 2),
        4: int(1600 * PROBE_NEW_SHARE / 2),
    }
    assert LossProbe({1: 0.0}).rates([1, 2]) == {}, "of which nothing is known: what they can"
