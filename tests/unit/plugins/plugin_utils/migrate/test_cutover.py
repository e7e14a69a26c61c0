# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The acts of a cutover, as the role's tasks ask for them, each in a task of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.modules.migrate_cutover import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.workflow import RETRY_DELAYS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hooks import tell_hook
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.cutover import Act
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.groups import Standing
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.migrating import COUNTS, World, compared, result

TASKS = Path(__file__).resolve().parents[5] / "roles/migrate/tasks"
HOOKS: dict[str, Any] = {"stops": True, "revives": True, "switches": True}
REHEARSAL: dict[str, Any] = {**HOOKS, "phase": Phase.REHEARSE}
DIFFERS = {"path": "log", "kind": "differs", "fields": ["size"]}


def told(kind: str, name: str = "do it") -> dict[str, Any]:
    return dict(tell_hook({"name": name, "host": "dest", "command": ["true"]}, kind, "new"))


def comparison(**changes: Any) -> dict[str, Any]:
    """Return the result of the module verify."""
    found = {"algorithm": "blake2b", "source": COUNTS, "dest": COUNTS, "duration": 4.0, "differences": []}
    return {**found, "differences_total": 0, **changes}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A job that was brought up to its cutover, with hooks."""
    world = World(tmp_path / "longhaul-migrate")
    world.transfers = [result(), result()]
    assert world.live(phase=Phase.CUTOVER).left == (Step.CUTOVER, Step.SWITCH, Step.VERIFY)
    world.asked, world.kept, world.reports = [], [], []
    return world


def hook(world: World, kind: str, **wanted: Any) -> None:
    world.do(Act.BEGIN_HOOK, hook=told(kind), **wanted)
    assert world.state["hook"]["kind"] == kind
    ended = world.do(Act.END_HOOK, **wanted)
    assert ended.hook == {} and not ended.stopped


def test_a_whole_cutover_with_hooks(world: World):
    assert not world.do(Act.STOP, **HOOKS).state["failure"]
    assert world.state["quiesced"] and world.asked == []  # the hook asks
    hook(world, "before_cutover")
    world.transfers = [compared()]
    assert world.do(Act.COPY, Act.SWITCH, **HOOKS).record.changed
    assert world.compared[-1] == "checksum" and world.state["phases"]["verify"]["identical"]
    assert world.state["switch"] == {"done": False, "at": world.state["switch"]["at"], "hooks": [], "steps": 0}
    hook(world, "after_cutover")
    assert [one["name"] for one in world.state["switch"]["hooks"]] == ["do it"]
    ended = world.do(Act.COMPLETE, Act.COMPARE, Act.REPORT, **HOOKS)
    assert world.state["switch"]["done"] and not world.state["quiesced"] and ended.record.failure is None
    (downtime,) = world.state["downtimes"]
    assert downtime["serves"] == "the new host" and downtime["from"] < downtime["to"]
    # With the transfer, too, without an execution of its own.
    assert [one["stage"] for one in world.kept] == ["stopped", "stopped", "switching", "switched"]
    assert world.asked == ["keep", "keep", "release"]  # the last record and the release in one execution
    assert [report["next"] for report in world.reports] == ["Done. Keep the tree on old until you trust the new one."]
    assert world.released == ["data"]
    assert [(one["kind"], one["result"]) for one in world.state["hooks"]] == [
        ("before_cutover", "done"),
        ("after_cutover", "done"),
    ]


def test_without_hooks_the_destination_is_asked_before_the_source_counts_as_stopped(world: World):
    world.do(Act.STOP)
    world.transfers = [compared()]
    world.do(Act.COPY, Act.SWITCH)
    world.do(Act.COMPLETE, Act.COMPARE, Act.REPORT)
    assert world.asked == ["keep", "keep", "release"] and world.state["switch"]["done"]
    assert "downtimes" not in world.state  # nothing is known of it


@pytest.mark.parametrize("acts", [[Act.STOP], [Act.BEGIN_HOOK]], ids=["the cutover", "a hook"])
def test_nothing_stops_the_source_where_the_destination_cannot_say_whose_the_job_is(world: World, acts: list[Act]):
    world.away = "new cannot be reached"
    begun = world.do(*acts, hook=told("before_cutover"))
    assert begun.state["failure"]["reason"] == "new cannot be reached" and "hook" not in world.state


def test_later_hooks_run_although_the_destination_cannot_be_asked(world: World):
    world.do(Act.STOP, **HOOKS)
    world.away = "new cannot be reached"
    assert not world.do(Act.BEGIN_HOOK, hook=told("cutover_failed")).state["failure"]
    assert "new keeps no record of this job: new cannot be reached" in world.state["warnings"]


def test_a_failed_final_pass_brings_the_source_back(world: World):
    world.do(Act.STOP, **HOOKS)
    world.transfers = [TransferError("no space left")]
    failed = world.do(Act.COPY, Act.SWITCH, **HOOKS)
    assert failed.state["failure"]["phase"] == "cutover" and failed.remedies == ["revive"]
    assert world.do(Act.FAIL, reason="the same, as the task said it").remedies == ["revive"]
    assert world.state["failure"]["reason"] == "no space left" and not world.state["switch"]
    hook(world, "cutover_failed")  # in spite of the failure
    assert world.do(Act.SERVE, **HOOKS).remedies == [] and not world.state["quiesced"]
    assert world.state["downtimes"][-1]["serves"] == "the old host again"
    ended = world.do(Act.REPORT, **HOOKS)
    assert ended.record.failure and "old still serves" in ended.record.failure.next
    assert world.kept[-1]["failure"] == "no space left" and world.asked[-1] == "release"


def test_a_failed_copy_is_handed_over_to_what_brings_the_source_back(world: World):
    failure = {"phase": "seed", "at": "before", "reason": "no space left"}
    Store(str(world.folder), writes=True).save("data", {**world.state, "quiesced": True, "failure": failure})
    begun = world.do(Act.STOP, **HOOKS)
    assert begun.stopped == "no space left" and begun.remedies == ["revive"]
    assert world.do(Act.FAIL, reason="no space left").state["failure"] == failure


def test_what_nothing_brings_back_stays_stopped(world: World):
    world.do(Act.STOP, stops=True)
    world.transfers = [TransferError("no space left")]
    world.do(Act.COPY, stops=True)
    world.do(Act.FAIL, Act.SERVE, stops=True)
    assert world.state["quiesced"] and "downtimes" not in world.state
    ended = world.do(Act.REPORT, stops=True)
    assert ended.record.failure and "may still be stopped" in ended.record.failure.next


def test_what_may_pass_is_tried_once_more_while_the_source_is_stopped(world: World):
    world.do(Act.STOP, **HOOKS)
    world.transfers = [HostFailed("lost", "new", unreachable=True)] * 2
    assert world.do(Act.COPY, **HOOKS).state["failure"] and world.paused == [RETRY_DELAYS[0]]
    assert world.transfers == []


def test_trees_that_differ_are_named(world: World):
    world.do(Act.STOP, **HOOKS)
    details = compared(differences_total=1, differences=[DIFFERS])
    world.transfers = [TransferError("1 entry is not the same", details)]
    assert world.do(Act.COPY, Act.SWITCH, **HOOKS).state["failure"]["phase"] == "verify"
    found = world.state["phases"]["verify_failed"]
    assert (found["identical"], found["differences"], found["compared"]) == (False, [DIFFERS], "checksum")
    assert "verify" not in world.state["phases"] and not world.state["switch"]


def test_a_failed_hook_of_the_switch_is_handled_by_its_own_hooks(world: World):
    world.do(Act.STOP, **HOOKS)
    world.transfers = [compared()]
    world.do(Act.COPY, Act.SWITCH, **HOOKS)
    world.do(Act.BEGIN_HOOK, hook=told("after_cutover", "start it"))
    failed = world.do(Act.FAIL, reason="hook start it failed")
    assert failed.remedies == ["switch_failed"] and world.state["failure"]["phase"] == "switch"
    assert (world.state["hooks"][-1]["name"], world.state["hooks"][-1]["result"]) == ("start it", "failed")
    assert "hook" not in world.state and world.state["switch"]["hooks"] == []
    world.do(Act.BEGIN_HOOK, hook=told("switch_failed", "stop it"))
    world.do(Act.FAIL_AGAIN, reason="hook stop it failed")
    both = "hook start it failed -- and a hook of switch_failed failed, too: hook stop it failed"
    assert world.state["failure"]["reason"] == both
    ended = world.do(Act.REPORT, **HOOKS)
    assert ended.record.failure and "The switch has begun (0 of its steps are done)" in ended.record.failure.next


def test_a_rehearsal_puts_the_source_back_and_keeps_what_it_took(world: World):
    world.do(Act.STOP, **REHEARSAL)
    world.transfers = [compared()]
    world.do(Act.COPY, Act.SWITCH, **REHEARSAL)
    assert not world.state["switch"]
    hook(world, "cutover_failed", phase=Phase.REHEARSE)
    world.do(Act.COMPLETE, Act.COMPARE, Act.REPORT, **REHEARSAL)
    phases = world.state["phases"]
    assert {"cutover", "verify"} & set(phases) == set() and phases["rehearsal"]["verify"]["identical"]
    assert world.state["downtimes"][-1]["rehearsal"] and not world.state["quiesced"] and not world.state["switch"]


@pytest.mark.parametrize("total", [0, 2])
def test_a_comparison_after_the_switch(world: World, total: int):
    after = {**HOOKS, "compares_first": False}
    world.do(Act.STOP, **after)
    world.transfers = [compared(verified="size")]
    world.do(Act.COPY, Act.SWITCH, **after)
    assert world.compared[-1] == "size" and "verify" not in world.state["phases"]
    world.comparisons = [comparison(differences_total=total, differences=[DIFFERS] * total)]
    ended = world.do(Act.COMPLETE, Act.COMPARE, Act.REPORT, **after)
    assert world.state["switch"]["done"] and world.asked[-1] == ("keep" if total else "release")
    if total:
        reason = ended.state["failure"]["reason"]
        assert reason.startswith("the trees differ in 2 places, for example log (differs: size), log (differs: size).")
        assert ended.state["failure"]["phase"] == "verify" and ended.remedies == []
    else:
        assert world.state["phases"]["verify"]["identical"] and world.reports


def test_what_the_tags_leave_out_is_not_done(world: World):
    world.do(Act.STOP, Act.COPY, Act.SWITCH, Act.COMPLETE, Act.COMPARE, Act.REPORT, **{**HOOKS, "steps": ()})
    assert not world.state["quiesced"] and not world.state["switch"] and len(world.reports) == 1


def test_a_job_of_a_group_says_how_far_it_is(world: World):
    group = {"name": "server", "run": "1", "stands": Standing.WAITING.value}
    Store(str(world.folder), writes=True).save("data", {**world.state, "group": group})
    world.do(Act.STOP, **HOOKS)
    assert world.state["group"]["stands"] == "waiting"
    world.do(Act.STOPPED, **HOOKS)
    assert world.state["group"]["stands"] == "stopped"
    world.transfers = [compared()]
    world.do(Act.COPY, **HOOKS)
    assert world.state["group"]["stands"] == "ready" and not world.state["switch"]


def test_a_job_that_another_control_node_has_is_left_alone(world: World):
    world.do(Act.STOP, **HOOKS)
    lost = "somebody has taken over job data"
    world.lease = type("Lease", (), {"lost": lost, "firm": None, "told": ""})()
    begun = world.do(Act.BEGIN_HOOK, hook=told("before_cutover"))
    assert begun.state["failure"]["lost"] and begun.remedies == [] and begun.state["failure"]["reason"] == lost
    assert "hook" not in world.state
    ended = world.do(Act.REPORT)
    assert ended.record.failure and "the control node knows that has it now" in ended.record.failure.next


@pytest.mark.parametrize("text", ["{", None], ids=["damaged", "gone"])
def test_a_state_that_cannot_be_read_is_a_failure(world: World, text: str | None):
    path = world.folder / "state/data.json"
    path.unlink() if text is None else path.write_text(text)
    begun = world.do(Act.STOP, **HOOKS)
    assert f"{path} " in begun.stopped and begun.remedies == [] and not world.asked


def test_the_role_asks_for_each_act():
    text = "\n".join(path.read_text() for path in TASKS.glob("*.yml"))
    written = [one for found in re.findall(r"__migrate_acts: (.*)", text) for one in re.findall(r"[a-z_]+", found)]
    assert {act.value for act in Act} <= set(written)
    assert yaml.safe_load(DOCUMENTATION)["options"]["acts"]["choices"] == [act.value for act in Act]


def test_the_source_is_brought_back_although_a_host_is_refused_by_then(world: World):
    """As one whose facts have set variables of the role since the cutover began."""
    world.do(Act.STOP, **HOOKS)
    world.refused = HostFailed("longhaul_trust: set among the facts of new")
    stopped = world.do(Act.BEGIN_HOOK, hook=told("before_cutover"), **HOOKS)
    assert "set among the facts of new" in stopped.stopped and stopped.remedies == ["revive"]
    hook(world, "cutover_failed", **HOOKS)
    assert not world.do(Act.SERVE, **HOOKS).stopped and not world.state["quiesced"]
    world.do(Act.REPORT, **HOOKS)
    assert "set among the facts of new" in world.reports[-1]["failure"]["reason"] and world.released == ["data"]
