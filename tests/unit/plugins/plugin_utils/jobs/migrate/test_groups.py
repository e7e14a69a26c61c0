# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of what the jobs of a group say of themselves, and what they are told."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.groups import (
    NEEDED,
    Gate,
    Group,
    Readiness,
    begin_switch,
    enter,
    find_groups,
    find_left_out,
    find_obstacles,
    joins_begun,
    settle,
    siblings,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    GroupState,
    JobFailure,
    MigrationState,
    Stage,
    Switch,
    parse_state,
)

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


def state(name: str, stands: str = "waiting", run: str = RUN, **changes: Any) -> MigrationState:
    """Return the state of a member in a run."""
    ends = {"src_host": "old", "src": f"/{name}/", "dest_host": "new", "dest": f"/{name}"}
    group: dict[str, Any] = {"name": "server", "run": run, "stands": stands}
    if stands != "waiting":
        group["members"] = MEMBERS
    known = {"name": name, "identity": ends, "quiesced": stands in ("stopped", "ready"), "run": {"id": run}}
    return parse_state({**known, "group": group, **changes})


def all_at(stands: str, run: str = RUN, **others: MigrationState | None) -> dict[str, MigrationState | None]:
    """Return the states of a group whose members stand at the same, but for those that are given."""
    return {**{name: state(name, stands, run) for name in MEMBERS}, **others}


def stages(states: dict[str, MigrationState | None]) -> list[Stage | None]:
    return [one.stage if one else None for one in states.values()]


BEGUN = {"done": False, "at": NOW, "hooks": [], "steps": 0}
DONE = {"done": True, "at": NOW}
FAILED = {"phase": "cutover", "at": NOW, "reason": "a hook failed"}


def test_the_groups_of_a_list():
    assert {
        "server": Group(MEMBERS, ["new", "db"]),
        "mail": Group(["mail"], ["post"]),
    } == GROUPS
    assert list(find_groups(JOBS, only=["homes"])) == ["server"] and find_groups(JOBS, only=["alone"]) == {}
    assert find_groups(JOBS, {"cutover_group": "all"})["all"].jobs == ["alone"]


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
    entered = state("site", "ready", "run-1")
    enter(entered, "server", RUN)
    assert entered.group == GroupState("server", RUN, Readiness.WAITING)
    enter(entered, "", RUN)
    assert entered.group is None
    for switch in (BEGUN, DONE):  # it keeps what it was decided with
        switched = state("site", "ready", "run-1", switch=switch)
        enter(switched, "server", RUN)
        assert switched.group == state("site", "ready", "run-1").group


@pytest.mark.parametrize("gate, stands", list(itertools.product(Gate, Readiness)))
def test_a_gate_needs_the_standing_before_it(gate, stands):
    order = list(Readiness)
    reasons = find_obstacles(all_at(stands.value), RUN, gate)
    assert any(reasons.values()) == (order.index(stands) < order.index(NEEDED[gate]))


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (state("homes", "waiting", failure=FAILED), "job homes stopped in phase cutover"),
        (state("homes", "ready", "run-1"), "job homes takes no part in this run"),
        (state("homes", "waiting", "run-1", group=None), "job homes takes no part in this run"),
        (None, "job homes takes no part in this run"),
        (state("homes", "back"), "job homes was told to go back"),
        (state("homes", "ready", "run-1", switch=DONE, quiesced=False), "of its group, homes was switched over before"),
    ],
)
def test_one_that_does_not_come_along_holds_up_the_others(gate, odd, words):
    states = all_at(NEEDED[gate].value, homes=copy.deepcopy(odd))
    reasons = settle(states, RUN, gate, NOW)
    assert words in reasons["site"] and words in reasons["database"]
    assert bool(reasons["homes"]) == (odd is None or odd.stage is not Stage.SWITCHED)
    assert states["homes"] == odd, "no other run is touched"
    for name in ("site", "database"):
        assert states[name].group.stands is Readiness.BACK and not states[name].is_switched


def test_the_first_gate_makes_the_members_known():
    states = all_at("waiting")
    assert not any(settle(states, RUN, Gate.STOP, NOW).values())
    assert [one.group.members for one in states.values()] == [MEMBERS] * 3


def test_the_switch_is_decided_for_all_at_once():
    states = all_at("ready")
    assert not any(settle(states, RUN, Gate.SWITCH, NOW).values())
    assert stages(states) == [Stage.SWITCHING] * 3
    assert [one.switch for one in states.values()] == [Switch(at=NOW, hooks=[])] * 3
    # Where others have switched later, the same is told, and nothing begins again.
    states["site"].switch = Switch(done=True, at=NOW)
    states["homes"].failure = JobFailure("switch", NOW, "a hook failed")
    before = copy.deepcopy(states)
    assert not any(settle(states, RUN, Gate.SWITCH, NOW).values()) and states == before


def test_a_rehearsal_decides_no_switch():
    states = all_at("ready")
    assert not any(settle(states, RUN, Gate.SWITCH, NOW, commits=False).values()) and states == all_at("ready")


@pytest.mark.parametrize("written", range(1, 3))
def test_a_decision_of_which_only_some_was_written_counts_for_all(written):
    states = all_at("ready", "run-1")
    for name in MEMBERS[:written]:
        begin_switch(states[name], NOW)
    for name in MEMBERS[written:]:
        others = [states[other] for other in siblings(states[name])]
        assert len(others) == 2 and joins_begun(states[name], others)
    assert not any(settle(states, RUN, Gate.STOP, NOW).values())
    assert stages(states) == [Stage.SWITCHING] * 3


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (state("homes", "ready"), state("site", "ready")),  # undecided
        (state("homes", "ready", "run-1"), state("site", "ready", switch=BEGUN)),  # of another run
        (state("homes", "stopped"), state("site", "ready", switch=BEGUN)),  # not ready then
        (state("homes", "back"), state("site", "ready", switch=BEGUN)),
        (state("homes", "waiting"), state("site", "ready", switch=DONE)),
        (state("homes", "ready"), None),  # begun again by hand
        (state("homes", "ready", switch=BEGUN), state("site", "ready", switch=BEGUN)),  # knows it already
        (state("homes", "ready", group=None), state("site", "ready", switch=BEGUN)),  # in no group
    ],
)
def test_what_does_not_count_as_decided(mine, other):
    assert not joins_begun(mine, [other])


@pytest.mark.parametrize("gate", Gate)
def test_what_was_decided_in_an_earlier_run_goes_on(gate):
    states = {name: state(name, "ready", "run-1", switch=switch) for name, switch in zip(MEMBERS, (DONE, BEGUN, BEGUN))}
    before = copy.deepcopy(states)
    assert not any(settle(states, RUN, gate, NOW).values()) and states == before
