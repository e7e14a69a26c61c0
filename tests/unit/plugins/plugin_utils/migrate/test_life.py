# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a job, with hosts and transfers that answer as they are told to; the states are real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.workflow import RETRY_DELAYS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.life import STEPS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.record import parse_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import HOOKS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.standing import standing_of_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.migrating import (
    COUNTS,
    FOUND,
    NOTHING,
    World,
    compared,
    result,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "longhaul-migrate")


def test_preflight_seed_and_no_pass_where_the_seed_was_short(world: World):
    world.transfers = [result(), result()]
    life = world.live()
    assert life.record.failure is None and life.record.changed and not world.transfers
    assert list(world.state["phases"]) == ["preflight", "seed", "sync"]
    assert world.state["phases"]["sync"]["passes"] == []
    assert world.began == [(True, None), (False, None)]
    assert [report["name"] for report in world.reports] == ["data"]


def test_the_destination_keeps_that_the_copy_is_complete(world: World):
    """Where no pass follows, nothing else would say so to other control nodes."""
    world.transfers = [result(), result(bytes_total=70)]
    world.live(phase=Phase.SEED)
    assert [(one["phase"], one["seeded"]) for one in world.kept] == [("seed", False), ("seed", True)]
    record = parse_record("new", world.state["identity"], {"id": "x", "age": 5.0, "record": world.kept[-1]})
    standing = standing_of_record(record)
    assert (standing.bytes_done, standing.bytes_total) == (70, 70) and standing.state is State.WAITING
    world.transfers = [NOTHING]
    world.live()
    assert [(one["phase"], one["seeded"]) for one in world.kept[2:]] == [("sync", True), ("sync", True)]


def test_passes_until_one_is_short(world: World):
    world.transfers = [result(), result(duration=900.0), result(duration=300.0), result(duration=20.0)]
    world.live()
    assert [one["duration"] for one in world.state["phases"]["sync"]["passes"]] == [300.0, 20.0]


def test_no_cutover_where_all_passes_are_long(world: World):
    world.transfers = [result(), *[result(duration=900.0)] * 4]
    life = world.live(phase=Phase.CUTOVER)
    assert (
        life.record.failure and life.record.failure.phase == "sync" and "after 3 passes" in life.record.failure.reason
    )


def test_what_has_hooks_is_left_to_the_role_and_its_report(world: World):
    world.transfers = [result(), result()]
    life = world.live(phase=Phase.CUTOVER)
    assert life.left == (Step.CUTOVER, Step.SWITCH, Step.VERIFY)
    assert not world.reports and list(world.state["phases"]) == ["preflight", "seed", "sync"]


def test_a_copy_that_is_complete_is_left_to_the_final_pass(world: World):
    world.transfers = [NOTHING]
    life = world.live(phase=Phase.CUTOVER)
    assert world.began == [(True, None)] and life.record.failure is None and not life.record.changed


def test_a_rerun_goes_on_where_the_last_run_stopped(world: World):
    world.transfers = [result(), result()]
    world.live(phase=Phase.SEED)
    world.transfers = [NOTHING]
    life = world.live()
    assert world.began[2:] == [(False, None)] and not life.record.changed
    assert len(world.state["phases"]["sync"]["passes"]) == 1


def test_check_mode_predicts_and_writes_nothing(world: World):
    world.transfers = [result(changes=["<f x"])]
    life = world.live(check_mode=True)
    assert world.began == [(True, None)] and not world.folder.exists()
    assert life.record.changed and life.record.diff == ["<f x"] and not life.left
    assert world.reports[0]["predicted"]["bytes_sent"] == 7


def test_all_problems_at_once_and_nothing_is_sent(world: World):
    world.found["source"] = {**FOUND, "problems": ["/srv does not exist"]}
    world.found["dest"] = {**FOUND, "problems": ["/srv is a file"]}
    life = world.live()
    assert life.record.failure and not world.began
    assert "old: /srv does not exist\n- new: /srv is a file" in life.record.failure.reason
    assert world.state["failure"]["phase"] == "preflight" and "preflight" not in world.state["phases"]


def test_a_host_that_this_run_never_reached_is_not_tried_again(world: World):
    world.unreachable = HostFailed("old cannot be used: Connection refused", unreachable=True)
    life = world.live()
    assert life.record.failure and "Connection refused" in life.record.failure.reason and not world.paused


def test_what_may_pass_is_tried_again_with_the_same_limit(world: World):
    lost = TransferError("the line broke", may_pass=True)
    world.transfers = [result(), lost, lost, result()]
    life = world.live()
    assert life.record.failure is None and world.paused == list(RETRY_DELAYS[:2])
    assert "data: the line broke. Trying again in 30 s" in world.said
    assert world.began == [(True, None), *[(False, None)] * 3]


def test_what_will_not_pass_is_not_tried_again(world: World):
    world.transfers = [result(), TransferError("no space left")]
    life = world.live()
    assert life.record.failure and life.record.failure.phase == "seed" and not world.paused
    assert life.record.failure.reason == "no space left"


def test_after_the_last_try_the_job_fails(world: World):
    world.transfers = [result(), *[TransferError("the line broke", may_pass=True)] * (len(RETRY_DELAYS) + 1)]
    life = world.live()
    assert life.record.failure and world.paused == list(RETRY_DELAYS)


def test_files_that_change_while_they_are_read_are_left_to_the_next_pass(world: World):
    unread = {"errors_unstable": 2, "errors_total": 2, "only_unstable": True, "errors": [{"path": "log"}]}
    world.transfers = [result(), TransferError("2 of the entries", {**result(), **unread}), result()]
    life = world.live()
    assert life.record.failure is None
    assert world.state["phases"]["seed"]["changed_meanwhile"] == {"count": 2, "example": "log", "only": "unread"}


def test_the_first_copy_deletes_nothing_that_nobody_agreed_to(world: World):
    job = {"delete": True}
    world.transfers = [result(files_deleted=2, deleted=["a", "b"])]
    life = world.live(job)
    assert life.record.failure and "would delete 2 entries" in life.record.failure.reason and len(world.began) == 1
    # Without a prediction its limit is 0, which a rerun keeps, and the message says how to agree.
    world.transfers = [TransferError("2 entries would go, and max_delete is 0: nothing was deleted")]
    life = world.live(job, predicts=False)
    assert world.began[1:] == [(False, 0)]
    assert life.record.failure and '{"migrate_allow_delete": ["data"]}' in life.record.failure.reason
    world.transfers = [result()]
    world.live(job, predicts=False, may_delete=["data"])
    assert world.began[2:] == [(False, None)]


def test_missing_programs_are_installed_where_ansible_is_root(world: World):
    world.found["source"] = {**FOUND, "tools": {}, "root": False}
    world.found["dest"] = {**FOUND, "tools": {"ssh": "/s"}}
    world.transfers = [result(), result()]
    world.live()
    assert world.installed == [("dest", ["rsync"])]


@pytest.mark.parametrize("wanted", [{"installs": False}, {"check_mode": True}])
def test_nothing_is_installed_that_was_not_to_be(world: World, wanted: dict[str, Any]):
    world.found["dest"] = {**FOUND, "tools": {}}
    world.transfers = [result(), result()]
    world.live(**wanted)
    assert world.installed == []


def test_a_state_of_another_tree_is_left_alone(world: World):
    world.transfers = [result(), result()]
    world.live()
    before = world.state
    life = world.live({"dest": "/elsewhere"})
    assert life.record.failure and "was written for old:/srv/ to new:/srv" in life.record.failure.reason
    assert not life.left and world.state == before and len(world.reports) == 1


def test_a_state_that_cannot_be_read_stops_its_job_alone(world: World):
    (world.folder / "state").mkdir(parents=True)
    (world.folder / "state/data.json").write_text("{ torn")
    life = world.live()
    assert life.record.failure and "data.json cannot be read" in life.record.failure.reason and not world.began


def test_reset_begins_again(world: World):
    world.transfers = [result(), result(), result(), result()]
    world.live()
    world.live(reset=True)
    assert world.began == [(True, None), (False, None)] * 2


def test_tags_leave_steps_out(world: World):
    world.transfers = [result()]
    world.live(steps={Step.SEED})
    assert list(world.state["phases"]) == ["seed"] and world.began == [(False, None)]


def test_a_job_that_was_switched_over_is_left_alone(world: World):
    world.transfers = [result(), result()]
    world.live()
    path = world.folder / "state/data.json"
    path.write_text(json.dumps({**world.state, "switch": {"done": True, "at": "yesterday"}}))
    life = world.live(phase=Phase.CUTOVER)
    assert len(world.began) == 2 and life.left == (Step.VERIFY,)
    assert any("was switched over on yesterday" in line for line in world.said)


def record_of(world: World, **changes: Any) -> dict[str, Any]:
    """Return what the step discover finds of the last record."""
    return {"id": "x", "age": 5.0, "record": {**world.kept[-1], **changes}}


def test_the_destination_keeps_each_phase_with_executions_that_are_made_anyhow(world: World):
    world.transfers = [result(), result(), result(duration=20.0)]
    world.live(short_enough=5.0, max_passes=1)
    # And that it ended, with the execution that lets others have the job.
    assert [(one["phase"], one["stage"]) for one in world.kept] == [("seed", "serving"), *[("sync", "serving")] * 2]
    assert world.kept[0]["identity"] == {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}
    assert world.state["kept"] is True


def test_a_failure_is_kept_and_one_that_may_pass_or_before_any_copy_is_not(world: World):
    world.transfers = [result(), TransferError("no space left")]
    world.live()
    assert [one["failure"] for one in world.kept] == ["", "no space left"]
    assert "old still serves" in world.kept[-1]["next"]
    world.kept.clear()
    world.found["dest"] = {**FOUND, "problems": ["/srv is a file"]}
    world.live()
    assert not world.kept


def test_nothing_is_kept_in_check_mode(world: World):
    world.transfers = [result()]
    world.live(check_mode=True)
    assert not world.kept


@pytest.mark.parametrize("stage, said", [("switched", "was switched over"), ("switching", "was being switched over")])
def test_a_run_that_does_not_know_of_a_switch_stops_and_asks(world: World, stage: str, said: str):
    world.transfers = [result(), result()]
    world.live(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": record_of(world, stage=stage)}
    began = len(world.began)
    life = world.live()
    assert life.record.failure and said in life.record.failure.reason and "migrate_reset" in life.record.failure.reason
    assert len(world.began) == began and len(world.kept) == 2
    # Begun again by name, what was kept before counts no more, also in later runs.
    world.transfers = [result(), result()]
    assert world.live(reset=True).record.failure is None
    world.found["dest"] = {**FOUND, "record": {"id": "x", "age": 5.0, "record": {**world.kept[0], "stage": stage}}}
    world.transfers = [NOTHING]
    assert world.live().record.failure is None


def test_a_run_whose_record_is_gone_stops_and_asks(world: World):
    world.transfers = [result(), result()]
    world.live(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": None}
    life = world.live()
    assert life.record.failure and "new has no record of job data any more" in life.record.failure.reason


def test_what_is_no_record_stops_a_run_and_marks_nothing_done(world: World):
    world.transfers = [result(), result()]
    world.live(phase=Phase.SEED)
    for lie in ({"phase": "done"}, {"identity": {}}, {"bytes_total": "x"}, {"stage": ["switched"]}):
        world.found["dest"] = {**FOUND, "record": record_of(world, **lie)}
        life = world.live()
        assert life.record.failure and "cannot be read" in life.record.failure.reason


def test_another_control_node_goes_on_with_what_was_not_switched_over(world: World, tmp_path: Path):
    world.transfers = [result(), result()]
    world.live(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": record_of(world, phase="sync")}
    world.folder = tmp_path / "another"
    world.transfers = [result(), result()]
    life = world.live()
    assert life.record.failure is None and list(world.state["phases"]) == ["preflight", "seed", "sync"]


def test_a_job_of_a_group_enters_its_run_with_an_up_to_date_copy(world: World):
    world.transfers = [result(), result()]
    world.live({"cutover_group": "server"}, phase=Phase.CUTOVER, run_id="run-1")
    assert world.state["group"] == {"name": "server", "run": "run-1", "stands": "waiting"}
    assert world.state["run"]["id"] == "run-1"
    world.transfers = [NOTHING]
    world.live(phase=Phase.CUTOVER)
    assert "group" not in world.state


def test_a_job_whose_group_was_decided_goes_on_with_the_switch(world: World):
    world.transfers = [result(), result()]
    world.live({"cutover_group": "server"}, phase=Phase.CUTOVER, run_id="run-1")
    group = {"name": "server", "run": "run-1", "stands": "ready", "members": ["data", "other"]}
    ready = {**world.state, "quiesced": True, "group": group}
    store = Store(str(world.folder), writes=True)
    store.save("data", ready)
    store.save("other", {**ready, "name": "other", "switch": {"done": False, "hooks": [], "steps": 0}})
    life = world.live({"cutover_group": "server"}, phase=Phase.CUTOVER, run_id="run-2")
    assert life.left == (Step.SWITCH, Step.VERIFY) and world.state["group"] == group
    assert world.state["switch"]["done"] is False
    # As long as nobody can tell whether it was, nothing is done.
    store.save("data", ready)
    (world.folder / "state/other.json").write_text("{")
    life = world.live({"cutover_group": "server"}, phase=Phase.CUTOVER, run_id="run-3")
    assert life.record.failure and world.state == ready


class Held:
    """A lease that another control node has."""

    held, age, life, told = False, 0.0, 900.0, ""

    def __init__(self, lost: str = "", told: str = "") -> None:
        self.lost, self.told = lost, told


def test_a_job_that_another_control_node_has_is_not_touched(world: World):
    world.holder = "ada@control1 has been working on job data"
    life = world.live(phase=Phase.CUTOVER)
    assert (
        life.record.failure
        and life.record.failure.reason == world.holder
        and "fleet_status" in life.record.failure.next
    )
    assert not world.began and not world.kept and not life.goes_on and world.released == ["data"]
    # Not even what an earlier cutover of this control node left to be done.
    store = Store(str(world.folder), writes=True)
    store.save("data", {**world.state, "quiesced": True, "quiesced_at": "2026-01-01T00:00:00Z"})
    life = world.live(phase=Phase.CUTOVER)
    assert life.record.failure and not life.goes_on and world.state["failure"]["lost"]


def test_check_mode_only_says_who_has_it_and_a_takeover_does_not_ask(world: World):
    world.holder = "ada@control1 has been working on job data"
    world.transfers = [result()]
    life = world.live(check_mode=True)
    assert life.record.failure is None and world.holder in world.reports[0]["warnings"] and world.released == []
    assert world.began == []  # its transfer may run
    world.transfers = [result(), result()]
    world.lease = Held(told="taken over from ada@control1 at new, as migrate_takeover says")
    life = world.live(takeover=True)
    assert life.record.failure is None and world.reports[-1]["hints"] == [world.lease.told]


def test_a_run_that_loses_a_job_records_nothing_over_it_and_does_not_try_again(world: World):
    world.lease = Held()

    def lose(*_told: object) -> World:
        world.lease.lost = "ada@control1 has taken over job data"
        return world

    world.transfers = [result(), TransferError("the line broke", may_pass=True)]
    began = world.begin
    world.begin = lambda: lose() if world.riding else began()  # type: ignore[method-assign]
    life = world.live(phase=Phase.CUTOVER)
    assert life.record.failure and life.record.failure.reason == "ada@control1 has taken over job data"
    assert world.kept == [] and world.paused == [] and not life.goes_on and life.record.failure.phase == "seed"


def test_another_run_on_this_control_node_is_named_and_nothing_is_written(world: World):
    world.claimed = "another run (process 4711) is working on this job at this moment"
    life = world.live()
    assert life.record.failure and "4711" in life.record.failure.reason
    assert not world.folder.exists() and world.released == [] and not life.goes_on
    world.transfers = [result()]
    assert world.live(check_mode=True).record.failure is None


def test_what_the_role_goes_on_with_is_held_and_not_released(world: World):
    world.transfers = [result(), result()]
    life = world.live(phase=Phase.CUTOVER)
    assert life.goes_on and world.holds == 1 and world.released == []
    world.transfers = [NOTHING]
    assert not world.live().goes_on and world.holds == 1 and world.released == ["data"]


def test_a_hook_whose_end_nobody_recorded_is_named(world: World):
    world.transfers = [result(), result()]
    world.live()
    hook = {"name": "stop", "kind": "before_cutover", "host": "old", "at": "2026-01-01T00:00:00Z"}
    Store(str(world.folder), writes=True).save("data", {**world.state, "hook": hook})
    world.transfers = [NOTHING]
    world.live()
    (hint,) = world.reports[-1]["hints"]
    assert "the hook stop of before_cutover began on old" in hint and "hook" not in world.state
    world.transfers = [NOTHING]
    world.live()
    assert world.reports[-1]["hints"] == []


WITHOUT_HOOKS: dict[str, Any] = {"phase": Phase.CUTOVER, "has_hooks": False, "steps": (*STEPS, Step.CUTOVER)}


def test_what_has_no_hooks_is_switched_over_at_once(world: World):
    world.transfers = [result(), result(), compared(changed=False)]
    life = world.live(**WITHOUT_HOOKS)
    assert life.record.failure is None and life.record.changed and life.left == () and not life.goes_on
    assert world.compared == ["none", "none", "checksum"] and world.holds == 0 and world.released == ["data"]
    switch = world.state["switch"]
    assert (switch["done"], switch["by"], switch["hooks"], world.state["quiesced"]) == (True, "me", [], False)
    verify = world.state["phases"]["verify"]
    assert (verify["identical"], verify["compared"], verify["duration"]) == (True, "checksum", 2.5)
    assert verify["source"] == COUNTS and verify["algorithm"] == "blake2b"
    assert world.reports[-1]["next"] == "Done. Keep the tree on old until you trust the new one."
    assert [record["stage"] for record in world.kept][-1] == "switched" and world.kept[-1]["compared"] is True
    again = world.live(**WITHOUT_HOOKS)
    assert again.record.failure is None and not again.record.changed and again.left == () and not world.transfers


def test_without_a_comparison_none_is_recorded(world: World):
    world.transfers = [result(), result(), result()]
    world.live({"verify": "none"}, **{**WITHOUT_HOOKS, "compares_first": False})
    assert world.compared[-1] == "none" and "verify" not in world.state["phases"]
    assert world.state["switch"]["done"]


@pytest.mark.parametrize(
    ("job", "options"),
    [
        ({}, {"has_hooks": True}),
        *(({kind: [{"command": ["true"]}]}, {}) for kind in HOOKS),
        ({"cutover_group": "server"}, {}),
        ({}, {"compares_first": False}),
        ({}, {"phase": Phase.REHEARSE}),
        ({}, {"steps": STEPS}),
    ],
)
def test_what_waits_for_a_hook_or_another_job_or_a_tag_is_left(world: World, job: dict[str, Any], options: Any):
    world.transfers = [result(), result()]
    life = world.live(job, **{**WITHOUT_HOOKS, **options})
    assert life.record.failure is None and Step.CUTOVER in life.left and not world.state["switch"]


def test_what_an_earlier_cutover_stopped_is_left_to_the_role(world: World):
    world.transfers = [result(), result()]
    world.live()
    Store(str(world.folder), writes=True).save("data", {**world.state, "quiesced": True})
    world.transfers = [NOTHING]
    assert Step.SWITCH in world.live(**WITHOUT_HOOKS).left


def test_a_final_pass_that_fails_leaves_the_source_in_service(world: World):
    differs = TransferError("2 entries are not the same on both hosts", {})
    world.transfers = [result(), result(), differs]
    life = world.live(**WITHOUT_HOOKS)
    assert life.record.failure and life.record.failure.phase == "cutover" and not world.state["switch"]
    assert "old still serves" in life.record.failure.next and not life.goes_on
    world.transfers = [NOTHING, compared()]
    assert world.live(**WITHOUT_HOOKS).record.failure is None and world.state["switch"]["done"]


def test_what_changes_during_the_final_pass_is_a_failure(world: World):
    one = {"path": "log", "kind": "differs", "fields": ["size"]}
    changed = compared(unstable=1, differences_total=1, differences=[one], verified="size")
    world.transfers = [result(), result(), changed]
    life = world.live({"verify": "size"}, **WITHOUT_HOOKS)
    assert life.record.failure and "1 entry changed at the source" in life.record.failure.reason
    assert "for example log" in life.record.failure.reason and not world.state["switch"]


def test_a_cutover_whose_line_was_lost_is_tried_again(world: World):
    world.transfers = [result(), result(), HostFailed("lost", "new", unreachable=True), compared()]
    assert world.live(**WITHOUT_HOOKS).record.failure is None
    assert world.paused == [RETRY_DELAYS[0]] and world.state["switch"]["done"]
