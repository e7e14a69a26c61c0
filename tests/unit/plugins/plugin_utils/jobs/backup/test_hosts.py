# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a backup asks of the repository host, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock import Lease, Terms
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed, LeaseLost
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.hosts import (
    BackupHosts,
    Filling,
    RepositoryBusy,
    lease_id,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import BegunSnapshot
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.completion import Uncompared

RUN: Any = {"host": "web1", "name": "data", "repository": {"host": "vault", "path": "/srv/backup"}}


class Runner:
    """Answers every step with the same, or each with its own of a tuple."""

    def __init__(self, name: str, answer: object) -> None:
        self.name, self.answer = name, answer
        self.steps: list[Any] = []
        self.guard: Any = None

    def run(self, *steps: Any) -> list[object]:
        self.steps += steps
        return list(self.answer) if isinstance(self.answer, tuple) else [self.answer] * len(steps)


def ask(*answers: Any, uncompared: Any = None) -> tuple[Any, Any]:
    """Ask for three actions, of which each has its own answer, up to the last one that is given."""
    answer = None
    for one in reversed(answers):
        answer = {**one, "then": [] if answer is None else [answer]} if isinstance(one, dict) else one
    runner = Runner("vault", answer)
    made: Any = lambda name: runner if name == "vault" else Runner(name, None)  # noqa: E731
    said = BackupHosts(RUN, made).snapshots({"finish": {"run": "first"}, "list": {}, "prune": {}}, True, uncompared)
    return said, runner.steps


def test_the_repository_host_is_asked_for_the_snapshots_of_the_run():
    answer = {"changed": True, "name": "2026-01-01T000000Z", "warnings": ["so small"], "diff": []}
    said, (step,) = ask({**answer, "more": 1}, answer, answer)
    assert said == {"finish": answer, "list": answer, "prune": answer}
    asked = []
    while step:
        asked.append((step["action"], step["options"]))
        assert step["do"] == "snapshot" and step["place"] == ["/srv/backup", "web1", "data"] and step["check"]
        step = next(iter(step["then"]), None)
    assert asked == [("finish", {"run": "first"}), ("list", {}), ("prune", {})]


def test_what_was_done_before_something_is_refused_is_not_lost():
    done = {"changed": True, "warnings": [], "diff": []}
    assert ask(done, {"refused": "no space"})[0] == {"finish": done}
    with pytest.raises(HostFailed, match="^vault: no space"):
        ask({"refused": "no space"}, done)


TERMS = Terms(
    "web1/data", "vault", lease_id(RUN), "a" * 32, "ada@control1", variable="backup_takeover", hooks="its hooks"
)
RELEASED = {"held": True, "problem": "", "found": None}


@pytest.mark.parametrize("firm", [False, True], ids=["", "after a file of tasks"])
@pytest.mark.parametrize("answer", [RELEASED, {"held": False}, None], ids=["released", "wrong", "none"])
def test_the_lease_is_released_by_the_last_action_that_succeeds(answer: Any, firm: bool):
    lease = Lease(TERMS, firm=firm, held=True)
    done = {"changed": True, "warnings": [], "diff": []}
    runner = Runner("vault", {**done, "then": [{**done, "then": [] if answer is None else [answer]}]})
    made: Any = lambda name: runner if name == "vault" else Runner(name, None)  # noqa: E731
    hosts = BackupHosts(RUN, made, lease=lease)
    assert hosts.snapshots({"finish": {}, "list": {}}, False, is_last=True) == {"finish": done, "list": done}
    (step,) = runner.steps[0]["then"][0]["then"]
    assert (step["do"], step["act"], step["id"], step["firm"]) == ("lease", "release", lease_id(RUN), False)
    assert lease.held == (answer is not RELEASED), "else the end of the run releases it"
    hosts.snapshots({"list": {}}, False)
    assert runner.steps[-1]["then"] == []


def test_what_is_asked_of_a_copy_depends_on_the_lease_of_the_backup():
    lease = Lease(TERMS, held=True)
    runners = {name: Runner(name, None) for name in ("web1", "vault", "vault2")}
    made: Any = runners.get
    copy: Any = {"host": "vault2", "path": "/c"}
    hosts = BackupHosts(RUN, made, lease=lease).with_copy(copy)
    assert hosts.runners["dest"].name == "vault2"
    guard = runners["vault2"].guard
    with guard.turn([{"do": "snapshot"}]) as steps:
        assert steps == () and len(runners["vault"].steps) == 0, "an execution without steps renews it"
    lease.lost = "ben has taken it over"
    with pytest.raises(LeaseLost, match="ben has taken"), guard.turn([]):
        pytest.fail("it is another's")
    BackupHosts(RUN, made, TERMS).with_copy(copy)


def test_another_run_at_work_is_told_from_other_refusals():
    with pytest.raises(RepositoryBusy, match="^vault: in use"):
        ask({"refused": "in use", "busy": True})
    with pytest.raises(HostFailed) as refused:
        ask({"refused": "no space", "busy": False})
    assert not isinstance(refused.value, RepositoryBusy)


def test_check_mode_says_which_control_node_has_the_backup_and_takes_no_lease():
    runner = Runner("vault", None)
    made: Any = lambda name: runner if name == "vault" else Runner(name, None)  # noqa: E731
    BackupHosts(RUN, made, TERMS)
    with runner.guard.turn([]) as (step,):
        assert (step["act"], step["guard"]) == ("look", False)
    free = {"held": False, "problem": "", "found": None}
    runner.guard.judge([free])
    seen = {"holder": "b" * 32, "who": "ben@control2", "age": 60.0, "left": 600.0, "firm": False, "released": False}
    with pytest.raises(LeaseLost, match=r"ben@control2 has been working on job web1/data .* backup_takeover=true"):
        runner.guard.judge([{**free, "found": seen}])
    with pytest.raises(LeaseLost, match="since its hooks have begun"):
        runner.guard.judge([{**free, "found": {**seen, "firm": True}}])


def test_a_snapshot_is_compared_between_the_last_steps_of_its_transfer():
    compare: Any = {"request": {}, "sums": "sums"}
    stop, clear = ({"do": name, "id": "1", "side": "dest"} for name in ("stop", "clear"))
    uncompared = Uncompared([stop], compare, [clear], lambda: pytest.fail("nothing is known to differ"))  # type: ignore[list-item]
    said, steps = ask({"differs": True, "warnings": []}, uncompared=uncompared)
    assert [step["do"] for step in steps] == ["stop", "snapshot", "clear"] and steps[1]["compare"] == compare
    assert said == {"finish": {"differs": True, "changed": False, "warnings": [], "diff": []}}


def test_the_snapshot_to_fill_is_where_it_is_expected():
    path = "/srv/backup/web1/data/.unfinished/data"
    begun = {"path": path, "link_dest": ["/old"], "resumed": False, "changed": True, "warnings": []}
    hosts: Any = BackupHosts(RUN, lambda name: Runner(name, None))  # type: ignore[arg-type,return-value]

    def taken(said: Mapping[str, Any]) -> BegunSnapshot:
        return BegunSnapshot(said["begin"]["path"], said["begin"]["link_dest"])

    def fill(answer: dict[str, Any]) -> Any:
        return Filling(hosts, RUN, "etc", {"run": "first"}, False, False, taken).take([answer])

    assert fill(begun) == {"link_dest": ["/old/etc"], "link_dest_exclude": []}
    with pytest.raises(HostFailed, match="the snapshot to fill is /etc, and /srv/"):
        fill({**begun, "path": "/etc"})


@pytest.mark.parametrize("answer", [None, [], {"warnings": "text"}, {"warnings": [1]}, {"changed": True}])
def test_an_answer_that_is_none_fails_this_host_alone(answer):
    with pytest.raises(HostFailed, match="^vault: what it says of the snapshots cannot be read"):
        ask(answer)


def test_the_difference_is_lines():
    diff = {"before": "old\ngone\n", "after": "old\nnew\n"}
    done = {"changed": True, "warnings": [], "diff": diff}
    assert ask(done, {"refused": "no space"})[0]["finish"]["diff"] == ["-gone", "+new"]
