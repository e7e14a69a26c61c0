# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workflow of a backup, with hosts and transfers that answer as a test says; claims and records are real files."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import KNOWN_DAMAGE
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import Folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.claims import claim, process_of, release
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed, LeaseLost
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup import workflow as workflow_module
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.drill import DrillRecord
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.hosts import FilesDamaged, RepositoryBusy
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    BackupRecord,
    BackupState,
    RepairedSnapshots,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.store import BackupStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.workflow import BackupServices, BackupWorkflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import TasksHook, TasksResult
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import Hook
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.workflow import RETRY_DELAYS, JobStopped
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.completion import Uncompared
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status
from ansible_collections.longhaul.fleet.tests.support.driving import Transfers, live_to_end

JOB = {
    "name": "data",
    "host": "web",
    "src": ["/srv/data", "/etc"],
    "repository": {"host": "vault", "path": "/b"},
    "keep": {"last": 2},
    "check_subset": "1/7",
}
BEGUN = {"path": "/b/web/data/.unfinished/data", "link_dest": [], "resumed": False, "changed": True}
COMPLETE = {"name": "2026-01-01T000000Z", "state": "complete", "time": "2026-01-01T00:00:00Z"}
ASIDE = {"name": "aside-2026", "state": "aside", "time": "2026-01-01T00:00:00Z", "reason": "lost much"}
GOOD: Mapping[str, Mapping[str, Any]] = {
    "begin": BEGUN,
    "finish": {"name": COMPLETE["name"], "figures": {"bytes": 5}, "changed": True},
    "list": {"snapshots": [COMPLETE]},
    "prune": {"kept": {}, "removed": []},
    "check": {"checked": {"entries": 3}, "sound": True},
}
WHOLE = list(GOOD)
MOVED = {
    "state": "finished",
    "files_total": 3,
    "bytes_total": 5,
    "bytes_apparent": 5,
    "vanished": 0,
    "unstable": 0,
    "changed": True,
}

BEFORE = {"command": ["freeze", "it"]}
AFTER = {"name": "Thaw", "command": ["thaw"], "host": "repository"}
HOOKS = {"before": [BEFORE, {**BEFORE, "host": "localhost"}], "after": [AFTER, AFTER]}


ENDED = TasksResult("")  # the result of a file of tasks that ended well


class World(Transfers):
    """Hosts, transfers and a folder of records; remembers what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, Any] = dict(GOOD)  # or what is raised, or a list of either
        self.transfers: list[dict[str, Any] | Exception] = [MOVED, MOVED]
        self.unreachable: HostFailed | None = None  # when a transfer begins
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.jobs: list[Mapping[str, Any]] = []
        self.said: list[str] = []
        self.reports: list[BackupRecord] = []
        self.before: BackupRecord | None = None
        self.paused: list[float] = []
        self.open = 0
        self.differs = False
        self.compared: list[bool] = []  # whether each finish had to compare both ends
        self.hooks: list[Any] = []
        self.rcs: list[Any] = []  # of hooks, or why one has none
        self.filling: Any = None
        self.handed_over: list[TasksHook] = []
        self.tasks_results: dict[str, TasksResult] = {}
        self.lost = self.taken_over = ""
        self.held: HostFailed | None = None  # when only the lease is asked for
        self.expires = self.takeover = False
        self.let_go: list[str] = []
        self.last: list[str] = []  # the actions of executions after which other control nodes may have the backup
        self.drill: Any = None
        self.drills_only = False
        self._clock = itertools.count()
        self.prepares: dict[str, Any] = {"state": "serving", "alive": True, "idle": True}  # once the client has begun
        self.client: dict[str, Any] = {"state": "starting", "alive": False}  # its job with the consistent sources
        self.lost_client: HostFailed | None = None  # when it is to undo them

    @property
    def runners(self) -> Mapping[str, World]:
        """The client, which runs steps."""
        return {"source": self}

    def run(self, *steps: Mapping[str, Any]) -> list[Any]:
        """Do the steps about consistent sources."""
        answers = []
        for step in steps:
            if step["do"] == "start":
                self.asked.append(("prepare", {}))
                self.client = self.prepares
            elif step["do"] == "stop" and self.client["state"] != "starting":
                if self.lost_client is not None:
                    raise self.lost_client
                self.asked.append(("undo", {}))
                self.client = {"state": "finished", "alive": False}
            answers.append({} if step["do"] == "clear" else self.client)
        return answers

    # What Hosts and Session offer

    def step(self, wishes: Mapping[str, Mapping[str, Any]], _check: bool) -> Mapping[str, Any]:
        return wishes

    def read(self, _actions: object, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"begin": answer}

    def hold(self) -> None:
        self.asked.append(("hold", {}))
        if self.held is not None:
            raise self.held

    def let_expire(self) -> None:
        self.expires = True

    def snapshots(
        self,
        wishes: Mapping[str, Mapping[str, Any]],
        _check: bool,
        uncompared: Uncompared | None = None,
        is_last: bool = False,
    ) -> Mapping[str, Any]:
        self.last += list(wishes) if is_last else []
        if "finish" in wishes:
            self.compared.append(uncompared is not None)
        if uncompared is not None and self.differs:
            self.asked.append(("compare", {}))
            return {"finish": {"differs": True, "changed": False, "warnings": [], "diff": []}}
        found: dict[str, Mapping[str, Any]] = {}
        for action, options in wishes.items():
            if action == "prune" and ASIDE in found.get("list", {}).get("snapshots", ()):
                break  # which is refused
            try:
                found[action] = self._answer(action, options)
            except HostFailed:
                self.asked.pop()
                if not found:
                    self.asked.append((action, options))
                    raise
                break
        return found

    def _answer(self, action: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((action, options))
        answer = self.answers[action]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"changed": False, "warnings": [], "diff": [], **answer}

    def close(self) -> None:
        self.open -= 1

    def begin(self) -> World:
        self.filling.take([self._answer("begin", step["begin"]) for step in self.filling.steps])
        if self.unreachable is not None:
            raise self.unreachable
        return self

    def _hosts(self, _run: object) -> World:
        self.open += 1
        return self

    def _transfer(self, job: Mapping[str, Any], _hosts: object, filling: Any) -> World:
        self.jobs.append(job)
        self.filling = filling
        again: Any = lambda: self.finish(self, Status("finished", alive=False))  # noqa: E731
        compare: Any = {"request": {}, "sums": ""}
        self.uncompared = Uncompared([], compare, [], again) if filling.compares else None
        return self

    def _hook_runner(self, host: str, hook: Hook) -> Any:
        self.hooks.append((host, hook.command or hook.module))
        self.open += 1
        return self

    def run_once(self, module: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if module == "ansible.builtin.ping":
            return {}
        self.asked.append(("hook", arguments))
        rc = self.rcs.pop(0) if self.rcs else 0
        if isinstance(rc, HostFailed):
            raise rc
        return {"rc": rc, "stderr": "it went wrong" if rc else ""}

    # Runs

    def live(self, check_mode: bool = False, run_id: str = "", **job: Any) -> BackupWorkflow:
        """Make a backup in one call, up to a file of tasks if there is one."""
        (run,) = make_runs([{**JOB, **job}], {"all": ["web", "vault"]})
        store = BackupStore(str(self.folder), writes=not check_mode)
        services = BackupServices(
            self._hosts, self._hook_runner, self._transfer, (TransferError, HostFailed), store, process_of(os.getpid()),
            lambda: f"2026-01-01T00:00:{next(self._clock):02d}Z", self.said.append, self.reports.append, run_id,
            bool(run_id), self.takeover, self.let_go.append, str(self.folder.parent), self.tasks_results,
            drills_only=self.drills_only, drill=lambda _run: self.drill,
        )  # fmt: skip
        workflow = BackupWorkflow(run, services, self.before)
        self.paused += live_to_end(workflow.run(), self.handed_over)
        assert self.open == 0
        return workflow

    def live_with_tasks(self, answer: TasksResult | None = ENDED, **job: Any) -> BackupWorkflow:
        """Make a backup with files of tasks: calls of the action and these files in turn, as the role does.

        Each file of tasks ends with ``answer``; None: its host is lost, and localhost goes on.
        """
        for _call in range(9):
            handed, self.expires = len(self.handed_over), False
            workflow = self.live(run_id="this run", **job)
            if len(self.handed_over) == handed:
                return workflow
            assert not self.expires, "nothing renews the lease while a file of tasks runs"
            hook = self.handed_over[-1]
            self.asked.append((Path(hook.file).name, {}))
            self.tasks_results = {} if answer is None else {hook.job: answer._replace(hook=hook.id)}
        raise AssertionError("it would never end")

    @property
    def actions(self) -> list[str]:
        return [action for action, _options in self.asked]

    @property
    def failures(self) -> list[str]:
        return [f"{one.step}: {one.reason}" for one in self.reports[-1].failures]

    @property
    def holder(self) -> Any:
        return json.loads((self.folder / "state/web/data.json").read_text())["process"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "longhaul-backup")


def lost(host: str = "web") -> HostFailed:
    return HostFailed("No route to host", host, unreachable=True)


def test_a_backup_is_made_as_a_whole_and_written_down(world: World):
    life = world.live()
    assert world.actions == WHOLE and life.changed and world.failures == []
    assert [job["src"] for job in world.jobs] == ["/srv/data/", "/etc/"]
    asked = dict(world.asked)
    assert asked["begin"] == {"run": life.state.claim}
    # Both paths and the folder that holds them.
    assert asked["finish"] == {
        "run": life.state.claim,
        "shrink_limit": 50.0,
        "change_limit": 50.0,
        "expected_entries": 7,
    }
    assert asked["prune"] == {"keep": {"last": 2}, "timezone": "UTC", "control_time": 1767225601}
    record = json.loads((world.folder / "jobs/web/data.json").read_text())
    assert record == world.reports[0].dump() and record["snapshot"] == COMPLETE["name"] and record["check"]["sound"]
    assert world.holder is None, "another run may begin"


def test_a_repository_without_the_snapshots_of_the_last_run_is_another_disk(world: World):
    world.live()
    assert dict(world.asked)["begin"].get("expects") is None
    known = world.reports[-1].snapshots
    for _night in range(2):  # the first refusal does not make the second night forget
        world.asked.clear()
        world.answers.update(begin=HostFailed("its disk may not be mounted", "vault"), list={"snapshots": []})
        world.before = world.reports[-1]
        world.live()
        assert dict(world.asked)["begin"]["expects"] == known == world.reports[-1].snapshots
        assert world.reports[-1].newest and "mounted" in world.reports[-1].failures[0].reason


def test_a_repository_that_is_too_full_fails_the_backup_and_is_pruned(world: World):
    world.answers["begin"] = HostFailed("the file system is too full", "vault")
    world.live(min_free="10%")
    assert dict(world.asked)["begin"]["min_free"] == "10%"
    assert world.actions == ["begin", "list", "prune"] and "too full" in world.reports[-1].failures[0].reason


def test_another_run_that_makes_it_stops_it_and_keeps_its_claim(world: World):
    other = process_of(os.getppid())
    claim(BackupStore(str(world.folder), writes=True).claim_path("web/data"), other, "making this backup")
    workflow = world.live()
    assert "another run (process" in workflow.busy and world.actions == [] and world.reports == []
    assert world.holder == other._asdict() and not (world.folder / "jobs").exists()


BUSY = [
    LeaseLost("ada@control1 has been working on job web/data"),
    RepositoryBusy("/b/web/data is in use: begin (process 7)", "vault"),
]


@pytest.mark.parametrize("hooks", [{}, HOOKS], ids=["no hook", "hooks"])
@pytest.mark.parametrize("refusal", BUSY, ids=["lease", "lock"])
def test_a_backup_of_another_control_node_is_busy_and_leaves_record_and_hooks_alone(
    world: World, refusal: HostFailed, hooks: dict[str, Any]
):
    world.live()
    before = (world.folder / "jobs/web/data.json").read_text()
    world.asked.clear()
    world.answers["begin"] = refusal
    workflow = world.live(**hooks)
    assert workflow.busy.endswith(refusal.reason) and world.actions == ["begin"] and not workflow.state.failures
    assert (world.folder / "jobs/web/data.json").read_text() == before and len(world.reports) == 1
    assert world.holder is None and "web/data: busy: " in world.said[-1]


def test_a_backup_that_another_control_node_took_over_fails_and_runs_no_further_hook(world: World):
    world.transfers = [LeaseLost("ada@control1 has taken over job web/data")]
    finish = World.finish

    class Lost(World):
        def finish(self, *given: Any) -> Any:
            self.lost = "ada@control1 has taken over job web/data"
            return finish(self, *given)

    world.__class__ = Lost
    world.live(**HOOKS)
    assert world.actions == ["begin", "hook", "hook"]
    assert world.failures == ["transfer: ada@control1 has taken over job web/data"]
    assert world.let_go == ["web/data"] and world.holder is None


@pytest.mark.parametrize(
    ("job", "last"), [({}, ["check"]), ({"check_subset": ""}, ["finish", "list", "prune"])], ids=["check", "no check"]
)
def test_other_control_nodes_may_have_the_backup_with_its_last_execution(
    world: World, job: dict[str, Any], last: list[str]
):
    world.live(**job)
    assert world.last == last and world.expires and world.let_go == ["web/data"]


def test_a_takeover_is_told_to_the_repository_and_noted(world: World):
    world.takeover, world.taken_over = True, "taken over from ada@control1 at vault, as backup_takeover says"
    world.live()
    assert dict(world.asked)["begin"]["takeover"] and world.reports[-1].notes == [world.taken_over]


def test_what_an_earlier_run_left_is_taken_over(world: World):
    path = BackupStore(str(world.folder), writes=True).claim_path("web/data")
    before = claim(path, process_of(os.getpid())._replace(pid=2**22 + 1), "making this backup")
    life = world.live()
    assert dict(world.asked)["begin"] == {"run": life.state.claim, "ended_run": before.run}


@pytest.mark.parametrize(
    "action, asked, stage",
    [
        ("begin", ["begin", "list", "prune"], "begin"),
        ("finish", ["begin", "finish", "list", "prune"], "finish"),
        ("list", ["begin", "finish", "list"], "finish"),
        ("prune", ["begin", "finish", "list", "prune"], "prune"),
        ("check", WHOLE, "check"),
    ],
)
def test_each_action_may_fail_and_what_follows_is_decided(world: World, action: str, asked: list[str], stage: str):
    world.answers[action] = HostFailed("no space", "vault")
    world.live()
    assert world.actions == asked and world.failures == [f"{stage}: no space"] and not world.paused
    assert world.holder is None


def test_while_a_snapshot_is_set_aside_nothing_is_pruned(world: World):
    world.answers["list"] = {"snapshots": [COMPLETE, ASIDE]}
    world.live()
    assert "prune" not in world.actions and "check" in world.actions
    assert world.reports[0].aside.startswith("aside-2026 is suspicious")


def test_a_transfer_that_fails_leaves_the_snapshot_unfinished(world: World):
    world.transfers = [MOVED, TransferError("disk is full", {"changed": True})]
    world.live()
    assert world.actions == ["begin", "list", "prune"] and world.failures == ["transfer: disk is full"]
    assert len(world.reports[0].transfers) == 1


def test_a_backup_that_failed_prunes_and_fails_for_its_own_reason_alone(world: World):
    world.transfers = [TransferError("disk is full")]
    world.answers["prune"] = [{"kept": {}, "removed": [COMPLETE["name"]]}, HostFailed("the clock is wrong", "vault")]
    world.live()
    assert world.actions == ["begin", "list", "prune"] and world.reports[-1].removed == [COMPLETE["name"]]
    world.asked.clear()
    world.transfers = [TransferError("disk is full")]
    world.live()
    assert world.actions == ["begin", "list"] and world.failures == ["transfer: disk is full"]
    world.asked.clear()
    world.transfers, world.answers["prune"] = [TransferError("disk is full")], GOOD["prune"]
    world.answers["list"] = {"snapshots": [COMPLETE, ASIDE]}
    world.live()
    assert world.actions == ["begin", "list"], "while a snapshot is set aside nothing is pruned"


def test_a_host_that_was_never_reached_is_not_tried_again(world: World):
    world.unreachable = lost()
    world.live()
    assert world.failures == ["transfer: web: No route to host"] and not world.paused


def test_a_line_that_was_lost_is_tried_again_and_what_has_arrived_stays(world: World):
    world.transfers = [MOVED, TransferError("the line broke", may_pass=True), MOVED]
    world.live()
    assert world.failures == [] and world.paused == [RETRY_DELAYS[0]] and world.actions == WHOLE
    assert [job["src"] for job in world.jobs] == ["/srv/data/", "/etc/", "/etc/"]
    assert "web/data: the line broke. Trying again in 30 s" in world.said


def test_a_repository_host_that_went_away_is_tried_again_up_to_a_point(world: World):
    world.answers["finish"] = [lost("vault")] * (len(RETRY_DELAYS) + 1)
    world.live()
    assert world.paused == list(RETRY_DELAYS)
    assert world.failures == ["finish: vault cannot be reached: No route to host"]


def test_the_snapshots_that_cannot_be_listed_after_a_failure_are_no_failure_of_their_own(world: World):
    world.transfers = [TransferError("disk is full")]
    world.answers["list"] = lost("vault")
    world.live()
    assert world.failures == ["transfer: disk is full"] and not world.paused
    assert "the snapshots cannot be listed: vault cannot be reached" in world.said[0]


def test_a_reason_that_was_the_failure_is_not_told_again_for_the_list(world: World):
    world.transfers = [TransferError("vault cannot be reached: No route to host")]
    world.answers["list"] = lost("vault")
    world.live()
    assert world.failures == ["transfer: vault cannot be reached: No route to host"] and world.said == []


def test_what_changed_at_the_source_meanwhile_is_a_note(world: World):
    differs = {"unstable": 1, "differences": [{"path": "log"}], "differences_total": 1}
    world.transfers = [MOVED, TransferError("1 entry differs", {**MOVED, **differs})]
    world.live()
    assert world.failures == [] and "1 entry changed at the source" in world.reports[0].notes[0]
    assert "expected_entries" not in dict(world.asked)["finish"]


@pytest.mark.parametrize("hooks", [[{"tasks": "dump.yml"}], []], ids=["hook", "none"])
def test_check_mode_writes_nothing_and_knows_that_no_hook_made_the_source(world: World, hooks: list[Any]):
    world.transfers = [MOVED, TransferError("there is no /etc", {"source_missing": True, "changed": False})]
    world.live(check_mode=True, before=hooks)
    assert not world.folder.exists()
    assert (world.failures == []) == bool(hooks)


def test_changes_are_shown_as_a_diff(world: World):
    world.answers["finish"] = {**GOOD["finish"], "diff": ["+new"]}
    world.transfers = [{**MOVED, "changes": ["<f x"]}, MOVED]
    assert world.live().diff == ["<f x", "+new"]


def test_a_snapshot_that_differs_from_its_source_is_compared_again_and_completed(world: World):
    world.differs = True
    world.transfers = [MOVED, {**MOVED, "unstable": 1}]
    world.live(src="/srv/data")
    assert world.actions == ["begin", "compare", *WHOLE[1:]] and world.failures == []
    (moved,) = world.reports[-1].transfers
    assert moved.unstable == 1 and "expected_entries" not in dict(world.asked)["finish"]


def test_a_snapshot_that_stays_different_is_a_failed_transfer(world: World):
    world.differs = True
    world.transfers = [MOVED, TransferError("1 entry is not the same on both hosts", {})]
    world.live(src="/srv/data")
    assert world.failures == ["transfer: 1 entry is not the same on both hosts"]
    assert world.actions == ["begin", "compare", "list", "prune"]


BEGUN_WITH_HOOKS = ["begin", "hook", "hook", "hook", "hook", *WHOLE[1:]]


def test_hooks_run_around_the_transfer_on_the_hosts_that_they_name(world: World):
    life = world.live(**HOOKS)
    assert world.actions == BEGUN_WITH_HOOKS and world.failures == [] and life.changed
    assert [host for host, _what in world.hooks] == ["web", "localhost", "vault", "vault"]
    assert (
        "web/data: hook before on web: freeze it" in world.said
        and "web/data: hook after done (rc 0): Thaw" in world.said
    )
    hooks = [(one.kind, one.host, one.name, one.rc, one.changed, one.result) for one in world.reports[0].hooks]
    assert hooks[0] == ("before", "web", "freeze it", 0, True, "done") and len(hooks) == 4
    assert not list((world.folder / "running").rglob("*.json"))


@pytest.mark.parametrize(
    "rcs, actions, failure",
    [
        ([1], ["begin", "hook", "hook", "hook", "list"], "hook before: hook freeze it on web failed"),
        ([0, 1], ["begin", "hook", "hook", "hook", "hook", "list"], "hook before: hook freeze it on localhost failed"),
        ([0, 0, 1], BEGUN_WITH_HOOKS, "hook after: hook Thaw on vault failed: thaw"),
    ],
)
def test_a_hook_before_that_fails_ends_its_list_and_all_hooks_after_run(
    world: World, rcs: list[int], actions: list[str], failure: str
):
    world.rcs = rcs
    world.live(**HOOKS)
    assert world.actions == actions
    (said,) = world.failures
    assert said.startswith(failure) and "(rc 1)" in said and "it went wrong" in said


def test_the_failures_of_hooks_after_are_reported_together(world: World):
    world.rcs = [0, 0, 1, 1]
    world.live(before=[BEFORE, BEFORE], after=[AFTER, {**AFTER, "name": "Mount"}])
    (said,) = world.failures
    assert world.actions == BEGUN_WITH_HOOKS and "hook Thaw on vault" in said and "hook Mount on vault" in said


def kill_at(world: World, monkeypatch: pytest.MonkeyPatch, hook: int, **hooks: Any) -> None:
    """Make a backup whose process ends in its hook of this number, counted from 0."""
    count = itertools.count()
    run_once = World.run_once

    def die(self: World, module: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if next(count) == hook:
            raise KeyboardInterrupt
        return run_once(self, module, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(World, "run_once", die)
        with pytest.raises(KeyboardInterrupt):
            world.live(**hooks)
    world.open = 0
    world.asked.clear()
    world.transfers = [MOVED, MOVED]
    path = BackupStore(str(world.folder), writes=True).claim_path("web/data")
    release(path, process_of(os.getpid()))


@pytest.mark.parametrize(("hook", "owed"), [(0, 2), (1, 2), (2, 2), (3, 1)])
def test_the_hooks_after_that_a_killed_run_owes_come_first_even_if_nothing_can_begin(
    world: World, monkeypatch: pytest.MonkeyPatch, hook: int, owed: int
):
    kill_at(world, monkeypatch, hook, **HOOKS)
    world.answers["begin"] = lost("vault")
    world.live(**HOOKS)
    assert world.actions == ["hold"] + ["hook"] * owed + ["begin", "list", "prune"]
    assert "was killed before all its hooks after had ended; they were run first" in world.reports[-1].notes[0]
    world.asked.clear()
    world.answers["begin"] = BEGUN
    world.live(**HOOKS)
    assert world.actions == BEGUN_WITH_HOOKS and world.reports[-1].notes == [], "nothing is owed any more"


def test_a_drill_alone_leaves_the_hooks_that_a_killed_run_owes_to_the_next_backup(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    kill_at(world, monkeypatch, 2, **HOOKS)
    world.drill, world.drills_only = Drill(), True
    world.live(drill=DRILL, **HOOKS)
    assert world.actions == ["list", "hook"] and "the next backup runs the hooks after" in world.said[-1]
    world.drills_only = False
    world.asked.clear()
    world.live(**HOOKS)
    assert world.actions == ["hold", "hook", "hook", *BEGUN_WITH_HOOKS]
    assert not list((world.folder / "running").rglob("*.json"))


def test_owed_hooks_that_fail_are_reported_and_the_backup_is_made(world: World, monkeypatch: pytest.MonkeyPatch):
    kill_at(world, monkeypatch, 1, **HOOKS)
    world.rcs = [1]
    world.live(**HOOKS)
    assert world.actions == ["hold", "hook", "hook", *BEGUN_WITH_HOOKS]
    (said,) = world.failures
    assert said.startswith("owed hook after: hook Thaw on vault failed")


def test_check_mode_runs_no_owed_hook(world: World, monkeypatch: pytest.MonkeyPatch):
    kill_at(world, monkeypatch, 1, **HOOKS)
    world.live(check_mode=True, **HOOKS)
    assert "hook" not in world.actions and "would be run first" in world.reports[-1].notes[0]
    world.asked.clear()
    world.transfers = [MOVED, MOVED]
    world.live(**HOOKS)
    assert world.actions == ["hold", "hook", "hook", *BEGUN_WITH_HOOKS]


@pytest.mark.parametrize("held", [lost("vault"), BUSY[0]], ids=["unreachable", "taken"])
def test_owed_hooks_wait_for_nobody_but_a_control_node_that_has_the_backup(
    world: World, monkeypatch: pytest.MonkeyPatch, held: HostFailed
):
    kill_at(world, monkeypatch, 1, **HOOKS)
    world.held = held
    workflow = world.live(**HOOKS)
    assert world.actions == (["hold"] if workflow.busy else ["hold", "hook", "hook", *BEGUN_WITH_HOOKS])
    assert bool(workflow.busy) == isinstance(held, LeaseLost) and not list((world.folder / "running").rglob("*.json"))


def test_a_host_that_is_lost_in_a_hook_fails_this_backup_and_the_hooks_after_run(world: World):
    world.rcs = [lost()]
    world.live(**HOOKS)
    assert world.actions == ["begin", "hook", "hook", "hook", "list"]
    assert "web cannot be reached: No route to host" in world.failures[0]


def test_the_hooks_after_run_if_the_transfer_fails_which_is_not_tried_again(world: World):
    world.transfers = [lost()]
    world.live(**HOOKS)
    assert world.actions == ["begin", "hook", "hook", "hook", "hook", "list", "prune"] and not world.paused
    assert world.failures == ["transfer: web: No route to host"]


def test_a_hook_whose_answer_cannot_be_used_has_failed_and_the_hooks_after_run(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workflow_module, "explain_failure", lambda *_told: {}["no such member"])
    world.rcs = [1]
    world.live(**HOOKS)
    assert world.actions == ["begin", "hook", "hook", "hook", "list"]
    assert [one.result for one in world.reports[0].hooks] == ["failed", "done", "done"]
    assert "the answer of a host cannot be used" in world.failures[0]


def test_only_the_name_of_a_hidden_hook_is_told(world: World):
    world.rcs = [1]
    world.live(before=[{"name": "Secret", "command": ["tell", "password"], "no_log": True}])
    assert world.failures == ["hook before: hook Secret on web failed: what it said is hidden, because of no_log"]
    assert "password" not in str([world.said, world.reports])


def test_no_hook_runs_in_check_mode(world: World):
    world.live(check_mode=True, **HOOKS)
    assert world.actions == WHOLE and not world.hooks


# Files of tasks

DUMP, RESTART = {"tasks": "dump.yml"}, {"tasks": "restart.yml", "host": "repository", "name": "Restart"}
TASKS = {"before": [BEFORE, DUMP, BEFORE], "after": [RESTART, AFTER]}


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> None:
    for name in ("dump.yml", "restart.yml"):
        (tmp_path / name).touch()


@pytest.mark.usefixtures("files")
def test_files_of_tasks_are_handed_over_and_the_backup_goes_on(world: World):
    world.live_with_tasks(**TASKS)
    first, second = ["begin", "hook", "dump.yml", "hook"], ["restart.yml", "hook", *WHOLE[1:]]
    assert world.actions == [*first, *second] and world.failures == [] and world.holder is None
    assert [(one.host, one.job) for one in world.handed_over] == [("web", "web/data"), ("vault", "web/data")]
    assert [one.result for one in world.reports[0].hooks] == ["done"] * 5 and len(world.reports) == 1
    assert [job["src"] for job in world.jobs] == ["/srv/data/", "/etc/"]
    assert not list((world.folder / "running").rglob("*.json"))


FAILS = TasksResult("", failed=True, result={"msg": "no such service"}, task="Stop it")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("answer", "words"),
    [(FAILS, "Stop it: no such service"), (None, "a host could not be reached, so Ansible ended its tasks")],
    ids=["fails", "lost"],
)
def test_the_hooks_after_run_once_whatever_becomes_of_files_of_tasks(world: World, answer: Any, words: str):
    world.live_with_tasks(answer, **TASKS)
    assert world.actions == ["begin", "hook", "dump.yml", "restart.yml", "hook", "list"] and world.holder is None
    before, after = world.failures
    assert before.startswith("hook before: hook tasks of dump.yml on web failed: ") and words in before
    assert after.startswith("hook after: hook Restart on vault failed: ") and words in after


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("answer", [FAILS, None], ids=["fails", "lost"])
def test_a_file_of_tasks_after_that_failed_does_not_spoil_the_snapshot(world: World, answer: Any):
    world.live_with_tasks(answer, after=[RESTART, AFTER])
    assert world.actions == ["begin", "restart.yml", "hook", *WHOLE[1:]] and len(world.failures) == 1


def test_a_file_of_tasks_that_does_not_exist_is_a_failed_hook(world: World):
    world.live_with_tasks(**TASKS)
    assert world.actions == ["begin", "hook", "hook", "list"] and not world.handed_over
    assert "there is no file" in world.failures[0] and "restart.yml" in world.failures[1]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("at", range(1, 16))
def test_no_hook_runs_twice_where_a_call_ends_with_an_error(world: World, monkeypatch: pytest.MonkeyPatch, at: int):
    """Each write on the control node may fail; localhost then ends what the call has left."""
    writes = itertools.count(1)
    write = Folder.write

    def fail(folder: Folder, name: str, text: str) -> None:
        if next(writes) == at:
            raise OSError("disk is full")
        write(folder, name, text)

    monkeypatch.setattr(Folder, "write", fail)
    try:
        world.live_with_tasks(**TASKS)
    except OSError:
        world.open = 0
        world.tasks_results = {}
        world.transfers += [MOVED, MOVED]
        world.live_with_tasks(None, **TASKS)
    else:
        assert at > 11
    ran = [json.dumps(options) for action, options in world.asked if action == "hook"]
    names = [action for action in world.actions if action.endswith(".yml")]
    assert len(names) == len(set(names)), world.actions
    assert ran.count(json.dumps({"argv": AFTER["command"]})) <= 1, world.actions
    assert ran.count(json.dumps({"argv": BEFORE["command"]})) <= 2, world.actions
    assert (
        world.holder is None and json.loads((world.folder / "jobs/web/data.json").read_text())["run_id"] == "this run"
    )


@pytest.mark.usefixtures("files")
def test_a_killed_run_owes_its_hooks_after_and_its_backup_is_begun_anew(world: World):
    world.live(run_id="killed", **TASKS)
    assert world.actions == ["begin", "hook"] and len(world.handed_over) == 1
    world.asked.clear()
    world.live_with_tasks(**TASKS)
    assert world.actions == [
        *("hold", "restart.yml", "hold", "hook"),
        *("begin", "hook", "dump.yml", "hook", "restart.yml", "hook", *WHOLE[1:]),
    ]


def test_a_backup_that_a_killed_run_has_begun_goes_before_no_other(tmp_path: Path):
    store = BackupStore(str(tmp_path), writes=True)
    store.save_state("web/data", BackupState("2026-01-01T00:00:00Z", "killed"))
    assert [store.has_begun("web/data", run) for run in ("killed", "this run")] == [True, False]
    assert not store.has_begun("web/other", "this run")


@pytest.mark.usefixtures("files")
def test_the_state_of_another_run_that_lives_is_left_alone(world: World):
    other = process_of(os.getppid())
    store = BackupStore(str(world.folder), writes=True)
    claim(store.claim_path("web/data"), other, "making this backup")
    assert world.live(run_id="killed", **TASKS).busy and world.actions == []
    assert store.read_state("web/data") is None


def test_a_claim_that_cannot_be_read_ends_this_backup_alone(world: World):
    """An error that left the workflow would end all other backups, with their sources stopped."""
    (world.folder / "state/web/data.json").mkdir(parents=True)
    world.live(before=[BEFORE], after=[AFTER])
    assert world.failures == [f"begin: {world.folder}/state/web/data.json on the control node: Is a directory"]
    assert "hook" not in world.actions


def test_a_record_that_cannot_be_written_is_a_failure_of_this_backup_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def fail(_folder: Folder, name: str, _text: str) -> None:
        raise OSError(28, "No space left on device", name)

    monkeypatch.setattr(Folder, "write", fail)
    workflow = world.live(before=[BEFORE], after=[AFTER])
    assert world.failures == ["check: jobs/web/data.json on the control node: No space left on device"]
    assert workflow.record == world.reports[-1] and len(world.reports) == 1 and world.holder is None
    assert world.actions.count("hook") == 2


def test_a_comparison_whose_host_was_lost_is_made_again(world: World):
    """It was promised, and the snapshot must not be completed without it."""
    world.answers["finish"] = [lost("vault"), GOOD["finish"]]
    world.live(src="/srv/data")
    assert world.compared == [True, True] and world.failures == []


CONSISTENT: Mapping[str, Any] = {
    "src": "/srv/data",
    "consistent": [{"postgresql": {}}, {"btrfs": {"subvolume": "/srv"}}],
}


def test_consistent_sources_are_made_before_the_transfer_and_undone_after_it(world: World):
    life = world.live(**CONSISTENT, **HOOKS)
    expected = ["begin", "hook", "hook", "prepare", "undo", "hook", "hook", *WHOLE[1:]]
    assert world.actions == expected and world.failures == [] and not life.state.prepared
    (job,) = world.jobs
    assert (
        job["src"].startswith("/srv/.longhaul-")
        and job["src"].endswith("/data/")
        and "+ /.longhaul-dumps/" in job["filter"]
    )
    assert [one.src for one in world.reports[-1].transfers] == ["/srv/data/"] and world.compared == [False]


def test_check_mode_prepares_nothing(world: World):
    world.live(check_mode=True, **CONSISTENT)
    assert "prepare" not in world.actions and world.jobs[0]["src"] == "/srv/data/"
    assert "expected_entries" not in dict(world.asked)["finish"]


def test_what_cannot_be_prepared_fails_the_backup_and_is_undone(world: World):
    world.prepares = {"state": "failed", "alive": False, "failure": "the disk is full"}
    world.live(**CONSISTENT, **HOOKS)
    assert world.actions == ["begin", "hook", "hook", "prepare", "undo", "hook", "hook", "list"]
    assert world.failures == ["prepare: web: the disk is full"] and world.jobs == []


def test_nothing_is_prepared_where_another_run_is_at_work(world: World):
    world.answers["begin"] = BUSY[1]
    assert world.live(**CONSISTENT).busy and world.actions == ["begin"]


def test_a_failed_transfer_has_its_sources_undone(world: World):
    world.transfers = [TransferError("the disk is full")]
    world.live(**CONSISTENT)
    assert world.actions == ["begin", "prepare", "undo", "list", "prune"]
    assert world.failures == ["transfer: the disk is full"]


def test_a_snapshot_whose_sources_were_gone_is_not_completed(world: World):
    def gone(self: World, *given: Any) -> Any:
        self.client = {"state": "died", "alive": False}
        return World.finish(self, *given)

    world.__class__ = type("Gone", (World,), {"finish": gone})
    world.live(**CONSISTENT, **HOOKS)
    assert world.actions[-5:] == ["undo", "hook", "hook", "list", "prune"] and "finish" not in world.actions
    assert len(world.failures) == 1 and "transfer: web did not have the consistent sources" in world.failures[0]


def test_a_client_that_is_lost_at_the_end_completes_nothing_and_is_tried_again(world: World):
    world.lost_client = lost()
    life = world.live(**CONSISTENT)
    assert world.paused == list(RETRY_DELAYS) and life.state.prepared and "finish" not in world.actions
    assert "3600 s after they were read last" in world.failures[0]


def test_what_stays_on_the_client_is_a_failure_of_a_complete_backup(world: World):
    run = World.run

    def stays(self: World, *steps: Mapping[str, Any]) -> list[Any]:
        answers = run(self, *steps)
        if steps[-1]["do"] == "clear":
            answers[-2] = {"state": "failed", "alive": False, "failure": "/srv/x: busy"}
        return answers

    world.__class__ = type("Stays", (World,), {"run": stays})
    world.live(**CONSISTENT)
    assert world.actions == ["begin", "prepare", "undo", *WHOLE[1:]] and world.failures == ["undo: web: /srv/x: busy"]


# Drills

DRILL = {"into": {"host": "client", "path": "/scratch"}, "validate": {"command": ["check", "{folder}"]}}


class Drill:
    """A drill whose steps end as a test says."""

    def __init__(self, failure: str | Exception = "") -> None:
        self.steps: list[str] = []
        self.failure = failure

    def new_record(self, at: str, before: DrillRecord | None) -> DrillRecord:
        record = DrillRecord(at, "web", "/scratch/longhaul-drill-1")
        record.begin_after(before)
        return record

    def tree_of(self, record: DrillRecord) -> str:
        return f"{record.path}/data"

    def predict(self, _record: DrillRecord) -> Any:
        self.steps.append("predict")
        yield from ()

    def restore(self, record: DrillRecord) -> Any:
        self.steps.append("restore")
        yield from ()
        if self.failure:
            raise self.failure if isinstance(self.failure, Exception) else JobStopped(self.failure)
        record.snapshot, record.files, record.seconds, record.restored = COMPLETE["name"], 4, 2.0, True

    def sockets_of(self, _record: DrillRecord) -> Any:
        return {"postgresql": "/scratch/longhaul-drill-1-0/server"}

    def keep(self, record: DrillRecord) -> Any:
        self.steps.append("keep")
        yield from ()
        record.kept = True
        return "It is kept"

    def remove(self, _record: DrillRecord) -> Any:
        self.steps.append("remove")
        yield from ()


def test_a_drill_follows_a_backup_and_is_made_again_when_it_is_due(world: World):
    world.drill = Drill()
    world.live(drill=DRILL)
    (record,) = world.reports
    assert world.actions == [*WHOLE, "hook"] and world.drill.steps == ["restore", "remove"] and world.failures == []
    assert dict(world.asked)["hook"] == {
        "argv": ["check", "/scratch/longhaul-drill-1/data"],
        "chdir": "/scratch/longhaul-drill-1/data",
    }
    assert record.drill and record.drill.has_succeeded and record.drill.validated
    assert record.drill.at == record.at, "else a schedule would make each drill one run later"
    assert world.last == [], "the lease is not given away before the drill"
    world.before, world.transfers = record, [MOVED] * 4
    world.live(drill=DRILL)
    assert (
        world.failures == [] and world.drill.steps == ["restore", "remove"] and world.reports[-1].drill == record.drill
    )
    world.before = None
    world.live(check_mode=True, drill=DRILL)
    assert world.drill.steps == ["restore", "remove", "predict"]


def test_a_drill_that_fails_fails_the_job_and_the_next_run_makes_it_again(world: World):
    world.drill = Drill("no room there")
    world.live(drill=DRILL)
    assert world.failures == ["drill: no room there"] and world.reports[-1].snapshot == COMPLETE["name"]
    world.before, world.drill, world.transfers = world.reports[-1], Drill(), [MOVED, MOVED]
    world.live(drill=DRILL)
    assert world.failures == [] and world.drill.steps == ["restore", "remove"]


def test_a_drill_with_an_answer_that_cannot_be_used_has_failed(world: World):
    world.drill = Drill(ValueError("it is no number"))
    world.live(drill=DRILL)
    drill = world.reports[-1].drill
    assert world.failures == ["drill: it is no number"] and drill and drill.failure == "it is no number"


def test_a_drill_that_is_asked_for_fails_where_there_is_no_snapshot(world: World):
    world.answers["list"] = {"snapshots": []}
    world.drill, world.drills_only = Drill("there is no complete snapshot"), True
    world.live(drill=DRILL)
    assert world.failures == ["drill: there is no complete snapshot"]


def test_what_a_failed_validation_looked_at_is_kept(world: World):
    world.drill, world.rcs = Drill(), [1]
    world.live(drill=DRILL)
    (failure,) = world.failures
    assert "validation of what was restored" in failure and "it went wrong" in failure
    assert failure.endswith("The snapshot stays. It is kept")
    assert world.drill.steps == ["restore", "keep"]
    drill = world.reports[-1].drill
    assert drill is not None and drill.kept and drill.failure and not drill.succeeded


@pytest.mark.parametrize("fails", [False, True])
def test_a_validation_by_tasks_interrupts_the_drill(world: World, fails: bool):
    (world.folder.parent / "validate.yml").write_text("[]")
    world.drill = Drill()
    answer = TasksResult("", failed=fails, result={"msg": "rows are missing"})
    world.live_with_tasks(answer, drill={**DRILL, "validate": {"tasks": "validate.yml"}})
    assert world.handed_over[-1].folder == "/scratch/longhaul-drill-1/data" and world.handed_over[-1].host == "web"
    assert world.handed_over[-1].sockets == {"postgresql": "/scratch/longhaul-drill-1-0/server"}
    assert world.drill.steps == (["restore", "keep"] if fails else ["restore", "remove"])
    assert ("rows are missing" in "".join(world.failures)) == fails


def test_a_drill_alone_makes_no_backup_and_keeps_its_record(world: World):
    world.live()
    before = world.reports[-1]
    world.before, world.drill, world.drills_only = before, Drill(), True
    world.asked.clear()
    world.live(drill=DRILL)
    assert world.actions == ["list", "hook"] and world.drill.steps == ["restore", "remove"]
    after = world.reports[-1]
    assert after.drill and replace(after, drill=None) == before and world.holder is None
    world.before, world.drill = after, Drill("no room there")
    world.live(drill=DRILL)
    assert world.failures == ["drill: no room there"] and world.reports[-1].newest == before.newest
    assert world.reports[-1].failing_since > before.at
    world.before, world.drill = world.reports[-1], Drill()
    world.live(drill=DRILL)
    assert world.failures == [] and world.reports[-1].failing_since == ""


# Copies


class OneCopy:
    """A copy whose host is away once when a repair needs it, and that has no intact contents."""

    away = True

    def __init__(self, *_given: object) -> None:
        self.notes: list[str] = []
        self.changed = False
        self.described: Any = None
        self.others: Any = None

    def bring_up_to_date(self, _made: object, _makes_one: bool, others: Any = ()) -> Any:
        self.others, self.described = others, "a place"
        yield from ()

    def repair_first(self, _first: object) -> Any:
        yield from ()
        if self.away:
            self.away = False
            raise JobStopped("vault: no route", may_pass=True)
        return RepairedSnapshots(left=1)

    def check_and_repair(self, _made: object) -> Any:
        yield from ()

    def close(self) -> None:
        pass


def test_new_damage_is_reported_although_its_repair_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workflow_module, "CopyWorkflow", OneCopy)
    monkeypatch.setattr(World, "with_copy", lambda _self, _copy: None, raising=False)
    world.answers["check"] = [FilesDamaged("it rots", "vault"), GOOD["check"]]  # which is known then
    copies = [{"host": "vault2", "path": "/c"}, {"host": "vault3", "path": "/c"}]
    workflow = world.live(copies=copies)
    (failure,) = world.failures
    assert failure.startswith("check: it rots. vault:/b has 1 damaged entry")
    found: Any = workflow._copies
    assert [one.others for one in found] == [[], ["a place"]]


@pytest.mark.parametrize("left", [0, 1])
def test_known_damage_is_told_while_a_repair_leaves_any(world: World, monkeypatch: pytest.MonkeyPatch, left: int):
    class Repairs(OneCopy):
        away = False

        def repair_first(self, _first: object) -> Any:
            yield from ()
            return RepairedSnapshots(left=left)

    monkeypatch.setattr(workflow_module, "CopyWorkflow", Repairs)
    monkeypatch.setattr(World, "with_copy", lambda _self, _copy: None, raising=False)
    known = f"{KNOWN_DAMAGE}, which {COMPLETE['name']} does not have"
    world.answers["check"] = {**GOOD["check"], "warnings": [known, "another"]}
    world.live(copies=[{"host": "vault2", "path": "/c"}])
    assert world.failures == [] and world.reports[-1].notes == [*([known] if left else []), "another"]
