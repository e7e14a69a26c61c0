# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of what the jobs of a group say of themselves, and what they are told."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.groups import (
    NEEDED,
    Gate,
    Standing,
    begin_switch,
    enter,
    find_groups,
    find_left_out,
    joins_begun,
    judge,
    settle,
    siblings,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import Stage, stage_of

RUN, NOW = "run-2", "2026-01-02T00:00:00Z"
MEMBERS = ["site", "homes", "database"]
JOBS = [
    {"name": "site", "dest_host": "new", "cutover_group": "server"},
    {"name": "alone", "dest_host": "new"},
    {"name": "homes", "dest_host": "new", "cutover_group": "server"},
    {"name": "mail", "dest_host": "post", "cutover_group": "mail"},
    {"name": "database", "dest_host": "db", "cutover_group": "server"},
]
GROUPS = find_groups(JOBS)


def state(name: str, stands: str = "waiting", run: str = RUN, **changes: Any) -> dict[str, Any]:
    """Return the state of a member in a run."""
    made = {"name": name, "identity": {"src_host": "old"}, "phases": {}, "switch": {}, "failure": {}}
    group = {"name": "server", "run": run, "stands": stands}
    if stands != "waiting":
        group["members"] = MEMBERS
    return {**made, "quiesced": stands in ("stopped", "ready"), "run": {"id": run}, "group": group, **changes}


def all_at(stands: str, run: str = RUN, **others: dict[str, Any]) -> dict[str, Any]:
    """Return the states of a group whose members stand at the same, but for those that are given."""
    return {**{name: state(name, stands, run) for name in MEMBERS}, **others}


BEGUN = {"done": False, "at": NOW, "hooks": [], "steps": 0}
DONE = {"done": True, "at": NOW}
FAILED = {"phase": "cutover", "reason": "a hook failed"}


def test_the_groups_of_a_list():
    assert GROUPS == {
        "server": {"jobs": MEMBERS, "hosts": ["new", "db"]},
        "mail": {"jobs": ["mail"], "hosts": ["post"]},
    }
    assert list(find_groups(JOBS, only=["homes"])) == ["server"] and find_groups(JOBS, only=["alone"]) == {}
    assert find_groups(JOBS, {"cutover_group": "all"})["all"]["jobs"] == ["alone"]


@pytest.mark.parametrize(
    ("hosts", "only", "words"),
    [
        (["new", "db", "post"], [], []),
        (["new", "db"], [], []),  # mail is not touched
        (["post"], [], []),
        (["new", "post"], [], ["has not the hosts db", "--limit 'localhost,new,db'", "site, homes, database"]),
        (
            ["new", "db", "post"],
            ["site", "mail"],
            ["leaves out homes, database", '"site", "mail", "homes", "database"'],
        ),
        (["new"], ["site"], ["leaves out homes, database"]),
        (["new", "db"], MEMBERS, []),
    ],
)
def test_what_would_tear_a_group_apart_is_told_with_what_to_type(hosts, only, words):
    found = find_left_out(GROUPS, hosts, only)
    assert len(found) == bool(words) and all(word in found[0] for word in words), found


def test_what_enters_a_run_is_known_by_it():
    before = state("site", "ready", "run-1")
    assert enter(before, "server", RUN)["group"] == {"name": "server", "run": RUN, "stands": "waiting"}
    assert "group" not in enter(before, "", RUN)
    for switch in (BEGUN, DONE):  # it keeps what it was decided with
        assert enter({**before, "switch": switch}, "server", RUN)["group"] == before["group"]


@pytest.mark.parametrize("gate, stands", list(itertools.product(Gate, Standing)))
def test_a_gate_needs_the_standing_before_it(gate, stands):
    order = list(Standing)
    reasons = judge(all_at(stands.value), RUN, gate).reasons
    assert any(reasons.values()) == (order.index(stands) < order.index(NEEDED[gate]))


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (state("homes", "waiting", failure=FAILED), "job homes stopped in phase cutover"),
        (state("homes", "ready", "run-1"), "job homes takes no part in this run"),
        (state("homes", "waiting", run={"id": "run-1"}, group={}), "job homes takes no part in this run"),
        ({}, "job homes takes no part in this run"),
        (state("homes", "back"), "job homes was told to go back"),
        (state("homes", "ready", "run-1", switch=DONE, quiesced=False), "of its group, homes was switched over before"),
    ],
)
def test_one_that_does_not_come_along_holds_up_the_others(gate, odd, words):
    verdict = judge(all_at(NEEDED[gate].value, homes=odd), RUN, gate)
    assert words in verdict.reasons["site"] and words in verdict.reasons["database"]
    assert bool(verdict.reasons["homes"]) == (stage_of(odd) is not Stage.SWITCHED if odd else True)
    assert ("site" in verdict.stopped) == (gate is not Gate.STOP)
    _verdict, written = settle(all_at(NEEDED[gate].value, homes=odd), RUN, gate, NOW, ["site"])
    assert not any(one["switch"] for one in written.values()), "nothing is switched"
    assert {name: one["group"]["stands"] for name, one in written.items()} == {"site": "back"}, "only the asker's own"


def test_one_whose_host_is_behind_is_told_of():
    reasons = judge(all_at("ready", homes=state("homes", "stopped")), RUN, Gate.SWITCH).reasons
    assert "job homes has not come as far" in reasons["site"] and reasons["site"] == reasons["homes"]


def test_the_first_who_stops_makes_the_members_known():
    states = all_at("waiting")
    verdict, written = settle(states, RUN, Gate.STOP, NOW, ["site"])
    assert not any(verdict.reasons.values())
    assert [one["group"]["members"] for one in written.values()] == [MEMBERS] * 3
    # The next one finds them known, and one that has stopped already.
    states = {**written, "site": state("site", "stopped")}
    assert settle(states, RUN, Gate.STOP, NOW, ["database"])[1] == {}


def test_the_switch_is_decided_for_all_at_once():
    verdict, written = settle(all_at("ready"), RUN, Gate.SWITCH, NOW, ["site"])
    assert not any(verdict.reasons.values()) and list(written) == MEMBERS
    assert all(stage_of(one) is Stage.SWITCHING and one["switch"] == BEGUN for one in written.values())
    # Who asks later, when others have switched, is told the same, and nothing begins again.
    later = {**written, "site": {**written["site"], "switch": DONE}, "homes": {**written["homes"], "failure": FAILED}}
    verdict, again = settle(later, RUN, Gate.SWITCH, NOW, ["database"])
    assert not any(verdict.reasons.values()) and again == {}
    # A rehearsal decides none.
    verdict, written = settle(all_at("ready"), RUN, Gate.SWITCH, NOW, ["site"], commits=False)
    assert not any(verdict.reasons.values()) and written == {}


@pytest.mark.parametrize("written", range(1, 3))
def test_a_decision_of_which_only_some_was_written_counts_for_all(written):
    states = all_at("ready", "run-1")
    for name in MEMBERS[:written]:
        states[name] = begin_switch(states[name], NOW)
    for name in MEMBERS[written:]:
        others = [states[other] for other in siblings(states[name])]
        assert len(others) == 2 and joins_begun(states[name], others)
    _verdict, healed = settle(states, RUN, Gate.STOP, NOW, [])
    assert list(healed) == MEMBERS[written:] and all(stage_of(one) is Stage.SWITCHING for one in healed.values())


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (state("homes", "ready"), state("site", "ready")),  # undecided
        (state("homes", "ready", "run-1"), state("site", "ready", switch=BEGUN)),  # of another run
        (state("homes", "stopped"), state("site", "ready", switch=BEGUN)),  # not ready then
        (state("homes", "back"), state("site", "ready", switch=BEGUN)),
        (state("homes", "waiting"), state("site", "ready", switch=DONE)),
        (state("homes", "ready"), {}),  # begun again by hand
        (state("homes", "ready", switch=BEGUN), state("site", "ready", switch=BEGUN)),  # knows it already
        (state("homes", "ready", group={}), state("site", "ready", switch=BEGUN)),  # in no group
    ],
)
def test_what_does_not_count_as_decided(mine, other):
    assert not joins_begun(mine, [other])


@pytest.mark.parametrize("gate", Gate)
def test_what_was_decided_in_an_earlier_run_goes_on(gate):
    states = {name: state(name, "ready", "run-1", switch=switch) for name, switch in zip(MEMBERS, (DONE, BEGUN, BEGUN))}
    verdict, written = settle(states, RUN, gate, NOW, MEMBERS)
    assert not any(verdict.reasons.values()) and written == {}
