# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lease of a job on the control node: what its host says, and what may be done by that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock import (
    LIFE,
    Lease,
    Terms,
    find_holder,
    guard,
    parse_answer,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import Guard, HostFailed, LeaseLost

MINE, OTHERS = "a" * 32, "b" * 32
TERMS = Terms("data", "new", "0123", MINE, "me@here")
SEEN = {"holder": OTHERS, "who": "ada@control1", "age": 720.0, "left": 540.0, "firm": False, "released": False}


def answer(held: bool = False, problem: str = "", **seen: Any) -> dict[str, Any]:
    return {"held": held, "found": {**SEEN, **seen}, "problem": problem}


HELD = {"held": True, "found": None, "problem": ""}


@pytest.mark.parametrize(
    "lie",
    [
        None,
        [],
        {},
        {"held": 1, "found": None, "problem": ""},
        {"held": True, "found": [], "problem": ""},
        {"held": True, "found": None, "problem": None},
        answer(left="soon"),
        answer(firm="yes"),
        answer(who=None),
        answer(holder=7),
        answer(age=[]),
    ],
    ids=repr,
)
def test_what_is_no_answer_gives_no_lease(lie: object) -> None:
    with pytest.raises(ValueError, match="new returned no lease that can be read"):
        parse_answer("new", lie)
    assert "cannot be read" not in find_holder(TERMS, HELD) and "can be read" in find_holder(TERMS, lie)
    lease = Lease(TERMS)
    assert "can be read" in lease.take(lie, 0.0) and not lease.held and not lease.lost


def test_texts_and_numbers_of_a_host_have_bounds() -> None:
    holder = parse_answer(
        "new", answer(who="\x1b[31mada\n" + "x" * 10_000, left=float("inf"), age=-5, holder="y" * 999)
    ).before
    assert holder and len(holder.who) < 400 and "\n" not in holder.who and "\x1b" not in holder.who
    assert holder.left <= 1e9 and holder.age == 0.0 and len(holder.id) == 64
    assert parse_answer("new", answer(left=float("nan"))).before.left == 0.0
    assert not parse_answer("new", answer(held=True, problem="it is torn")).held


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (HELD, []),
        (answer(released=True), []),
        (answer(left=0.0), []),
        (answer(holder=MINE), []),
        (answer(holder=MINE, firm=True), []),
        (answer(), ["ada@control1 has been working on job data for 12 min, as new says", "Nothing was done",
                    "15 min", "9 min 1 s", "migrate_takeover=true only if you know"]),
        (answer(firm=True, left=0.0, age=None), ["ada@control1 has been working on job data, as new", "source may be",
                                                 "migrate_takeover=true only if you know"]),
        (answer(problem="/x cannot be read"), ["new: /x cannot be read", "migrate_takeover=true replaces"]),
    ],
    ids=["none", "released", "expired", "mine", "mine, firm", "live", "firm", "unreadable"],
)  # fmt: skip
def test_who_has_a_job_is_told_with_what_to_do(found: dict[str, Any], words: list[str]) -> None:
    said = find_holder(TERMS, found)
    assert bool(said) == bool(words) and all(word in said for word in words), said


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({}, "taken over from ada@control1 at new, as migrate_takeover says"),
        ({"firm": True}, "as migrate_takeover says. Hooks of its cutover had begun there"),
        ({"left": 0.0}, "taken over from ada@control1, which had given new no sign of life for too long"),
        ({"left": 0.0, "age": None}, "taken over from ada@control1, which had given new no sign of life"),
        ({"released": True}, ""),
        ({"holder": MINE}, ""),
    ],
    ids=repr,
)
def test_from_whom_it_was_taken_over_is_told(seen: dict[str, Any], told: str) -> None:
    lease = Lease(TERMS)
    assert lease.request()["act"] == "take" and lease.take(answer(held=True, **seen), 0.0) == ""
    assert lease.held and told in lease.told and bool(lease.told) == bool(told)
    assert lease.request()["act"] == "renew"


def test_it_is_lost_for_good_with_the_first_answer_that_says_so() -> None:
    lease = Lease(TERMS)
    lease.take(HELD, 0.0)
    lease.take(answer(), 1.0)
    assert "ada@control1 has taken over job data, as new says" in lease.lost and "left its transfer alone" in lease.lost
    lost = lease.lost
    lease.take(HELD, 2.0)
    assert lease.lost == lost
    never = Lease(TERMS)
    never.take(answer(), 0.0)
    assert "Wait, or stop that run" in never.lost


class Runner:
    """A host that answers what it is told to, through its guard as a real runner does."""

    guard: Guard | None = None

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log, self.says = name, log, HELD

    def run(self, *steps: dict[str, Any]) -> None:
        assert self.guard is not None
        with self.guard.turn(steps) as first:
            self.log.append(" ".join([self.name, *(f"{one['act']}!" for one in first), *(one["do"] for one in steps)]))
            self.guard.judge([self.says] * len(first))


@pytest.fixture(name="pair")
def _pair() -> tuple[Runner, Runner, Lease, list[float], list[str]]:
    clock, log = [1000.0], []
    source, dest = Runner("source", log), Runner("dest", log)
    lease = Lease(TERMS, now=lambda: clock[0])
    guard(source, dest, lease)
    return source, dest, lease, clock, log


PROBE, START, POLL = {"do": "probe"}, {"do": "start"}, {"do": "poll"}


def test_each_execution_at_the_destination_begins_with_it(pair: Any) -> None:
    source, dest, _lease, clock, log = pair
    source.run(PROBE)
    dest.run(PROBE)
    source.run(START)
    dest.run(START)
    clock[0] += LIFE / 2
    source.run(POLL, START)
    assert log == ["source probe", "dest take! probe", "source start", "dest renew! start", "source poll start"]


def test_what_changes_something_at_the_source_comes_after_a_renewal(pair: Any) -> None:
    source, dest, _lease, clock, log = pair
    source.run(START)
    assert log == ["dest take!", "source start"]
    log.clear()
    clock[0] += LIFE * 0.7
    source.run(POLL)
    source.run(START)
    source.run(START)
    assert log == ["source poll", "dest renew!", "source start", "source start"]
    # Asleep for longer than the lease lives, this run was taken over, and stops nothing that is another's.
    log.clear()
    clock[0] += 10 * LIFE
    dest.says = answer()
    with pytest.raises(LeaseLost, match="has taken over job data"):
        source.run({"do": "stop"})
    assert log == ["dest renew!"]


def test_once_lost_no_host_is_asked_any_more(pair: Any) -> None:
    source, dest, lease, _clock, log = pair
    dest.run(PROBE)
    dest.says = answer()
    with pytest.raises(LeaseLost):
        dest.run(START)
    log.clear()
    for runner in (source, dest):
        with pytest.raises(LeaseLost) as lost:
            runner.run(PROBE)
        assert not lost.value.may_pass and lost.value.details == {"lease_lost": True}
    assert log == [] and lease.lost


def test_what_is_wrong_with_a_lease_fails_an_execution_and_loses_nothing(pair: Any) -> None:
    _source, dest, lease, _clock, _log = pair
    for lie in (answer(problem="no space left"), "nonsense"):
        dest.says = lie
        with pytest.raises(HostFailed) as failed:
            dest.run(START)
        assert not isinstance(failed.value, LeaseLost) and not lease.lost
    dest.says = HELD
    dest.run(START)
    assert lease.held


def test_a_host_that_answers_nothing_is_not_believed(pair: Any) -> None:
    _source, dest, _lease, _clock, _log = pair
    judged: list[Sequence[object]] = [[], [HELD, HELD]]
    for answers in judged:
        with pytest.raises(HostFailed, match="no answer to the question"), dest.guard.turn([]):
            dest.guard.judge(answers)
