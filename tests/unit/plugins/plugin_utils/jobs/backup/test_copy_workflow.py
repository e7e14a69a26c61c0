# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that copy, check and repair, with hosts and transfers that answer as a test says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.copies import CopyState
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.copy_workflow import CopyWorkflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.hosts import FilesDamaged
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.driving import Transfers, live_to_end

ONE, TWO = "2026-11-01T120000Z", "2026-11-02T120000Z"
JOB = {
    "name": "data",
    "host": "web",
    "src": "/srv",
    "repository": {"host": "vault", "path": "/b"},
    "keep": {"last": 9},
    "check_subset": "1/7",
    "copies": [{"host": "vault2", "path": "/c"}],
}
(RUN,) = make_runs([JOB], {"all": ["web", "vault", "vault2"]})
UNREACHABLE = HostFailed("no route", "vault2", unreachable=True)
SENT = {"state": "finished", "bytes_sent": 7, "changed": True}
WANTED = {"path": "a", "snapshots": [ONE, TWO]}
REPAIRED = {"path": "a", "snapshots": [ONE], "source": "somewhere"}


def listed(*names: str) -> dict[str, Any]:
    return {"snapshots": [{"name": name, "state": "complete", "time": f"{name[:13]}:00:00Z"} for name in names]}


class World(Transfers):
    """The host of a copy, the first repository, and the transfers between them; remembers what it was asked for."""

    def __init__(self, *lists: dict[str, Any]) -> None:
        self.answers: dict[str, list[Any]] = {
            "list": list(lists),
            "finish": [{"name": ONE}, {"name": TWO}],
            "prune": [{"removed": []}],
            "check": [{"sound": True}],
            "repair": [{"repaired": [], "wanted": [], "left": 0}],
        }
        self.transfers = [SENT, SENT, SENT]
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.jobs: list[Mapping[str, Any]] = []
        self.fillings: list[Any] = []
        self.place: Any = {"machine": "two", "path": {"real": "/c"}}
        self.reverse = self
        self.job = RUN

    def identify(self, with_client: bool) -> Any:
        self.asked.append(("identify", {"client": with_client}))
        if isinstance(self.place, HostFailed):
            raise self.place
        return self.place, {"machine": "one", "path": {"real": "/b"}}, None

    def snapshots(self, wishes: Mapping[str, Mapping[str, Any]], _check: bool) -> dict[str, Mapping[str, Any]]:
        found = {}
        for action, options in wishes.items():
            self.asked.append((action, options))
            answer = self.answers[action].pop(0)
            if answer is None:  # it is refused
                break
            if isinstance(answer, Exception):
                raise answer
            found[action] = {"changed": action != "list", "warnings": [], "diff": [], **answer}
        return found

    def begin(self) -> World:
        return self

    def _transfer(self, job: Mapping[str, Any], _hosts: object, filling: Any) -> World:
        self.jobs.append(job)
        self.fillings.append(filling)
        return self

    def make(self, check: bool = False, **state: Any) -> CopyWorkflow:
        hosts: Any = self
        return CopyWorkflow(
            self.job, self.job["copies"][0], hosts, self._transfer, (TransferError, HostFailed),
            CopyState("vault2", "/c", **state),
            lambda: "2026-11-02T13:00:00Z", lambda _line: None, check,
        )  # fmt: skip

    def copy(self, *made: str, check: bool = False, **state: Any) -> CopyWorkflow:
        """Bring a copy up to date with these snapshots of the first repository."""
        workflow = self.make(check, **state)
        assert live_to_end(workflow.bring_up_to_date(made), []) == []
        return workflow

    @property
    def actions(self) -> list[str]:
        return [action for action, _options in self.asked]


def test_what_lags_is_copied_and_the_copy_is_pruned():
    world = World(listed(), listed(ONE, TWO))
    state = world.copy(ONE, TWO).state
    assert world.actions == ["identify", "list", "finish", "finish", "prune", "list"]
    assert [job["src"] for job in world.jobs] == [f"/b/web/data/{name}/" for name in (ONE, TWO)]
    assert (state.copied, state.snapshots, state.newest) == ([ONE, TWO], 2, "2026-11-02T12:00:00Z")
    assert (state.bytes_sent, state.error) == (14, "") and world.asked[0][1] == {"client": True}
    assert world.asked[4][1] == {"keep": {"last": 9}, "timezone": "UTC", "control_time": 1793624400}


def test_while_the_first_repository_has_no_snapshot_the_copy_is_not_pruned():
    world = World(listed(ONE, TWO))
    assert world.copy(snapshots=2).state.snapshots == 2 and world.actions == ["identify", "list"]


def test_nothing_is_sent_in_check_mode_and_what_would_be_is_told():
    world = World(listed(ONE))
    workflow = world.copy(ONE, TWO, check=True, snapshots=1)
    assert world.actions == ["identify", "list"] and not world.jobs and world.asked[0][1] == {"client": False}
    assert workflow.notes == [f"would copy {TWO} to vault2:/c"]
    another = World(listed(ONE)).make(check=True, snapshots=1)
    assert live_to_end(another.bring_up_to_date([ONE, TWO], True), []) == []
    assert another.notes == [f"would copy {TWO}, the new one to vault2:/c"]


@pytest.mark.parametrize(
    ("place", "error"),
    [(UNREACHABLE, "no route"), ({"machine": "one", "path": {"real": "/b/in"}}, "the repository itself under another")],
)
def test_a_copy_that_cannot_be_looked_at_keeps_what_was_known(place, error):
    world = World()
    world.place = place
    state = world.copy(ONE, snapshots=3, newest="then", failing_since="2026-10-01T00:00:00Z").state
    assert error in state.error and (state.snapshots, state.newest) == (3, "then")
    assert state.failing_since == "2026-10-01T00:00:00Z" and not world.jobs


def test_an_empty_copy_where_snapshots_were_is_another_disk():
    world = World(listed())
    state = world.copy(ONE, snapshots=3).state
    assert "its disk may not be mounted" in state.error.lower() and state.snapshots == 3 and not world.jobs


def test_what_differs_is_sent_again_and_a_snapshot_of_damage_is_left_out():
    world = World(listed(), listed(TWO))
    world.answers["finish"] = [{"name": "", "unproven": ["a"]}, {"name": "", "unproven": ["a"]}, {"name": TWO}]
    state = world.copy(ONE, TWO).state
    assert [job["src"][-len(ONE) - 1 : -1] for job in world.jobs] == [ONE, ONE, TWO]
    assert [filling._exclude for filling in world.fillings] == [[], ["data/a"], []]
    assert state.copied == [TWO] and f"{ONE} is not copied" in state.error and "'a'" in state.error


def test_where_more_may_differ_than_is_named_contents_are_compared():
    world = World(listed(), listed(ONE))
    unproven = [str(number) for number in range(1000)]
    world.answers["finish"] = [{"name": "", "unproven": unproven}, {"name": "", "unproven": unproven}, {"name": TWO}]
    state = world.copy(ONE, TWO).state
    assert [job.get("checksum", False) for job in world.jobs] == [False, True, False]
    assert state.copied == [TWO] and "at least 1000 entries" in state.error and "owners" in state.error


def test_a_line_that_breaks_ends_the_copying_until_the_next_run():
    world = World(listed(), listed(TWO))
    world.transfers = [TransferError("cut", may_pass=True)]
    state = world.copy(ONE, TWO).state
    assert len(world.jobs) == 1 and state.error == "cut" and "prune" not in world.actions


def test_what_was_copied_before_an_early_end_is_known():
    world = World(listed())
    world.transfers = [SENT, TransferError("cut", may_pass=True)]
    state = world.copy(ONE, TWO).state
    assert (state.copied, state.snapshots, state.newest) == ([ONE], 1, "2026-11-01T12:00:00Z")
    refused = World(listed(ONE))
    refused.answers["list"].append(None)
    state = refused.copy(ONE, snapshots=1).state
    assert refused.actions[-2:] == ["prune", "list"] and (state.snapshots, state.newest) == (1, "2026-11-01T12:00:00Z")


def test_options_of_the_job_about_its_repository_count_for_the_copy():
    plain, world = World(listed(), listed(ONE)), World(listed(), listed(ONE))
    plain.copy(ONE)
    assert "read_only" not in dict(plain.asked)["finish"] and "min_free" not in plain.fillings[0]._begin["begin"]
    world.job = {**RUN, "read_only": True, "min_free": "10%"}
    assert world.copy(ONE).state.error == ""
    assert dict(world.asked)["finish"]["read_only"] is True
    assert world.fillings[0]._begin["begin"]["min_free"] == "10%"


def test_two_copies_in_one_place_are_one():
    world = World(listed())
    workflow = world.make()
    live_to_end(workflow.bring_up_to_date([ONE], False, [world.place]), [])
    assert "it is another copy of the job under another name" in workflow.state.error and not world.jobs
    assert workflow.described is None


def repair_first(world: World, workflow: CopyWorkflow) -> Any:
    found: list[Any] = []
    first: Any = world

    def steps() -> Any:
        found.append((yield from workflow.repair_first(first)))

    live_to_end(steps(), [])
    return found[0]


def test_the_first_repository_is_repaired_by_the_copy():
    world = World(listed(ONE, TWO), listed(ONE, TWO))
    workflow = world.copy(ONE, TWO)
    assert world.jobs == []
    world.answers["repair"] = [
        {"repaired": [REPAIRED], "wanted": [WANTED], "left": 2},
        {"repaired": [REPAIRED], "wanted": [], "left": 0},
    ]
    done = repair_first(world, workflow)
    assert (len(done.repaired), done.left) == (2, 0)
    (job,) = world.jobs
    assert (job["src"], job["connect"]) == (f"/c/web/data/{TWO}/data/", "push")
    assert (
        world.asked[-1] == ("repair", {"copied_from": "vault2:/c"}) and "repaired 2 damaged files" in workflow.notes[-1]
    )


def test_contents_that_nobody_has_are_asked_for_once():
    world = World(listed(ONE), listed(ONE))
    workflow = world.copy(ONE)
    world.answers["repair"] = [{"repaired": [], "wanted": [WANTED], "left": 1}] * 3
    done = repair_first(world, workflow)
    assert done.left == 1 and len(world.jobs) == 1 and workflow.notes == []


@pytest.mark.parametrize(("left", "error"), [(0, ""), (1, "it rots. vault2:/c has 1 damaged entry")])
def test_a_copy_is_checked_and_repaired_by_the_first_repository(left, error):
    world = World(listed(ONE), listed(ONE), listed(ONE))
    workflow = world.copy(ONE)
    world.answers["check"] = [FilesDamaged("it rots", "vault2")]
    world.answers["repair"] = [
        {"repaired": [], "wanted": [WANTED], "left": 1},
        {"repaired": [REPAIRED], "wanted": [WANTED] * left, "left": left},
    ]
    live_to_end(workflow.check_and_repair([ONE]), [])
    assert world.jobs[0]["src"] == f"/b/web/data/{ONE}/data/" and world.jobs[0]["connect"] == "pull"
    assert (
        workflow.state.repaired == 1
        and workflow.state.error.startswith(error)
        and bool(workflow.state.error) == bool(left)
    )


def test_damage_of_a_copy_that_nobody_can_repair_stays_an_error():
    world = World(listed(ONE), listed(ONE))
    workflow = world.copy(ONE, failing_since="2026-10-01T00:00:00Z")
    world.answers["repair"] = [{"repaired": [], "wanted": [], "left": 1}]  # its check finds nothing new
    live_to_end(workflow.check_and_repair([ONE]), [])
    assert workflow.state.error.startswith("vault2:/c has 1 damaged entry")
    assert workflow.state.failing_since == "2026-10-01T00:00:00Z"
