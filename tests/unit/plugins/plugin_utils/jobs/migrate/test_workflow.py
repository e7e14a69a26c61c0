# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a job, with hosts and transfers that answer as they are told to; the states are real files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_status import standing_of_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.phases import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.record import make_record, parse_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import RunFacts, parse_report
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_page import make_job_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import Identity, parse_state
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.workflow import RETRY_DELAYS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.migrating import (
    COUNTS,
    FOUND,
    JOB,
    NOTHING,
    TAKEN,
    FakeLease,
    Killed,
    World,
    compared,
    result,
    what_runs,
)

IDENTITY = Identity("old", "/srv/", "new", "/srv")


def comparison(**changes: Any) -> dict[str, Any]:
    """Return the result of the module verify."""
    found = {"algorithm": "blake2b", "source": COUNTS, "dest": COUNTS, "duration": 4.0, "differences": []}
    return {**found, "differences_total": 0, **changes}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "longhaul-migrate")


def test_preflight_seed_and_no_pass_where_the_seed_was_short(world: World):
    world.transfers = [result(), result()]
    ran = world.run()
    assert ran.result.failure is None and ran.result.changed and not world.transfers
    assert list(world.state["phases"]) == ["preflight", "seed", "sync"]
    assert world.state["phases"]["sync"]["passes"] == []
    assert world.began == [(True, None), (False, None)]
    assert [report["name"] for report in world.reports] == ["data"]


def test_the_destination_keeps_that_the_copy_is_complete(world: World):
    """Where no pass follows, nothing else would say so to other control nodes."""
    world.transfers = [result(), result(bytes_total=70)]
    world.run(phase=Phase.SEED)
    assert [(one["phase"], one["seeded"]) for one in world.kept] == [("seed", False), ("seed", True)]
    record = parse_record("new", IDENTITY, {"id": "x", "age": 5.0, "record": world.kept[-1]})
    standing = standing_of_record(record)
    assert (standing.bytes_done, standing.bytes_total) == (70, 70) and standing.state is State.WAITING
    world.transfers = [NOTHING]
    world.run()
    assert [(one["phase"], one["seeded"]) for one in world.kept[2:]] == [("sync", True), ("sync", True)]


def test_passes_until_one_is_short(world: World):
    world.transfers = [result(), result(duration=900.0), result(duration=300.0), result(duration=20.0)]
    world.run()
    assert [one["duration"] for one in world.state["phases"]["sync"]["passes"]] == [300.0, 20.0]


def test_no_cutover_where_all_passes_are_long(world: World):
    world.transfers = [result(), *[result(duration=900.0)] * 4]
    ran = world.run(phase=Phase.CUTOVER)
    assert ran.result.failure and ran.result.failure.phase == "sync" and "after 3 passes" in ran.result.failure.reason
    world.transfers = [result(duration=900.0)]
    ran = world.run(phase=Phase.CUTOVER, sync_max_passes=1)
    assert ran.result.failure and "after 1 pass the last one" in ran.result.failure.reason


def test_what_has_a_file_of_tasks_is_left_to_a_later_call_and_its_report(world: World):
    world.transfers = [result(), result()]
    ran = world.begin({"before_cutover": [{"host": "source", "tasks": "stop.yml"}]}, phase=Phase.CUTOVER)
    assert ran.result.left and world.holds == 1 and not world.released
    assert not world.reports and list(world.state["phases"]) == ["preflight", "seed", "sync"]


def test_a_copy_that_is_complete_is_left_to_the_final_pass(world: World):
    world.transfers = [NOTHING, compared(changed=False)]
    ran = world.run(phase=Phase.CUTOVER)
    assert world.compared == ["none", "checksum"] and ran.result.failure is None and not ran.result.changed


def test_a_rerun_goes_on_where_the_last_run_stopped(world: World):
    world.transfers = [result(), result()]
    world.run(phase=Phase.SEED)
    world.transfers = [NOTHING]
    ran = world.run()
    assert world.began[2:] == [(False, None)] and not ran.result.changed
    assert len(world.state["phases"]["sync"]["passes"]) == 1


def test_check_mode_predicts_and_writes_nothing(world: World):
    world.transfers = [result(changes=["<f x"])]
    ran = world.run(check_mode=True)
    assert world.began == [(True, None)] and not world.folder.exists()
    assert ran.result.changed and ran.result.diff == ["<f x"] and not ran.result.left
    assert world.reports[0]["predicted"]["bytes_sent"] == 7


def test_all_problems_at_once_and_nothing_is_sent(world: World):
    world.found["source"] = {**FOUND, "problems": ["/srv does not exist"]}
    world.found["dest"] = {**FOUND, "problems": ["/srv is a file"]}
    ran = world.run()
    assert ran.result.failure and not world.began
    assert "old: /srv does not exist\n- new: /srv is a file" in ran.result.failure.reason
    assert world.state["failure"]["phase"] == "preflight" and "preflight" not in world.state["phases"]


def test_a_host_that_this_run_never_reached_is_not_tried_again(world: World):
    world.unreachable = HostFailed("old cannot be used: Connection refused", unreachable=True)
    ran = world.run()
    assert ran.result.failure and "Connection refused" in ran.result.failure.reason and not world.paused


def test_what_may_pass_is_tried_again_with_the_same_limit(world: World):
    lost = TransferError("the line broke", may_pass=True)
    world.transfers = [result(), lost, lost, result()]
    ran = world.run()
    assert ran.result.failure is None and world.paused == list(RETRY_DELAYS[:2])
    assert "data: the line broke. Trying again in 30 s" in world.said
    assert world.began == [(True, None), *[(False, None)] * 3]


def test_what_will_not_pass_is_not_tried_again(world: World):
    world.transfers = [result(), TransferError("no space left")]
    ran = world.run()
    assert ran.result.failure and ran.result.failure.phase == "seed" and not world.paused
    assert ran.result.failure.reason == "no space left"


def test_after_the_last_try_the_job_fails(world: World):
    world.transfers = [result(), *[TransferError("the line broke", may_pass=True)] * (len(RETRY_DELAYS) + 1)]
    ran = world.run()
    assert ran.result.failure and world.paused == list(RETRY_DELAYS)


def test_files_that_change_while_they_are_read_are_left_to_the_next_pass(world: World):
    unread = {"errors_unstable": 2, "errors_total": 2, "only_unstable": True, "errors": [{"path": "log"}]}
    world.transfers = [result(), TransferError("2 of the entries", {**result(), **unread}), result()]
    ran = world.run()
    assert ran.result.failure is None
    assert world.state["phases"]["seed"]["changed_meanwhile"] == {"count": 2, "example": "log", "only": "unread"}


def test_the_first_copy_deletes_nothing_that_nobody_agreed_to(world: World):
    job = {"delete": True}
    world.transfers = [result(files_deleted=2, deleted=["a", "b"])]
    ran = world.run(job)
    assert ran.result.failure and "would delete 2 entries" in ran.result.failure.reason and len(world.began) == 1
    # Without a prediction its limit is 0, which a rerun keeps, and the message says how to agree.
    world.transfers = [TransferError("2 entries would go, and max_delete is 0: nothing was deleted")]
    ran = world.run(job, preflight_predict=False)
    assert world.began[1:] == [(False, 0)]
    assert ran.result.failure and '{"migrate_allow_delete": ["data"]}' in ran.result.failure.reason
    world.transfers = [result()]
    world.run(job, preflight_predict=False, allow_delete=["data"])
    assert world.began[2:] == [(False, None)]


def test_missing_programs_are_installed_where_ansible_is_root(world: World):
    world.found["source"] = {**FOUND, "tools": {}, "root": False}
    world.found["dest"] = {**FOUND, "tools": {"ssh": "/s"}}
    world.transfers = [result(), result()]
    world.run()
    assert world.installed == [("dest", ["rsync"])]


@pytest.mark.parametrize("wanted", [{"manage_packages": False}, {"check_mode": True}])
def test_nothing_is_installed_that_was_not_to_be(world: World, wanted: dict[str, Any]):
    world.found["dest"] = {**FOUND, "tools": {}}
    world.transfers = [result(), result()]
    world.run(**wanted)
    assert world.installed == []


def test_a_state_of_another_tree_is_left_alone(world: World):
    world.transfers = [result(), result()]
    world.run()
    before = world.state
    ran = world.run({"dest": "/elsewhere"})
    assert ran.result.failure and "was written for old:/srv/ to new:/srv" in ran.result.failure.reason
    assert not ran.result.left and world.state == before and len(world.reports) == 1


def test_a_state_that_cannot_be_read_stops_its_job_alone(world: World):
    (world.folder / "state").mkdir(parents=True)
    (world.folder / "state/data.json").write_text("{ torn")
    ran = world.run()
    assert ran.result.failure and "data.json cannot be read" in ran.result.failure.reason and not world.began


def test_reset_begins_again(world: World):
    world.transfers = [result(), result(), result(), result()]
    world.run()
    world.run(reset=True)
    assert world.began == [(True, None), (False, None)] * 2


def test_tags_leave_steps_out(world: World):
    world.transfers = [result()]
    world.run(steps={Step.SEED})
    assert list(world.state["phases"]) == ["seed"] and world.began == [(False, None)]


def test_a_job_that_was_switched_over_is_left_alone(world: World):
    world.transfers = [result(), result()]
    world.run()
    world.write(switch={"done": True, "at": "yesterday"})
    world.comparisons = [comparison()]
    ran = world.run(phase=Phase.CUTOVER)
    assert ran.result.failure is None and len(world.began) == 2 and not world.comparisons
    assert any("was switched over on yesterday" in line for line in world.said)


def record_of(world: World, **changes: Any) -> dict[str, Any]:
    """Return what the step discover finds of the last record."""
    return {"id": "x", "age": 5.0, "record": {**world.kept[-1], **changes}}


def test_the_destination_keeps_each_phase_with_executions_that_are_made_anyhow(world: World):
    world.transfers = [result(), result(), result(duration=20.0)]
    world.run(sync_short_enough=5.0, sync_max_passes=1)
    # And that it ended, with the execution that lets others have the job.
    assert [(one["phase"], one["stage"]) for one in world.kept] == [("seed", "serving"), *[("sync", "serving")] * 2]
    assert world.kept[0]["identity"] == {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}
    assert world.state["kept"] is True


def test_a_failure_is_kept_and_one_that_may_pass_or_before_any_copy_is_not(world: World):
    world.transfers = [result(), TransferError("no space left")]
    world.run()
    assert [one["failure"] for one in world.kept] == ["", "no space left"]
    assert "old still serves" in world.kept[-1]["next"]
    world.kept.clear()
    world.found["dest"] = {**FOUND, "problems": ["/srv is a file"]}
    world.run()
    assert not world.kept


def test_nothing_is_kept_in_check_mode(world: World):
    world.transfers = [result()]
    world.run(check_mode=True)
    assert not world.kept


@pytest.mark.parametrize("stage, said", [("switched", "was switched over"), ("switching", "was being switched over")])
def test_a_run_that_does_not_know_of_a_switch_stops_and_asks(world: World, stage: str, said: str):
    world.transfers = [result(), result()]
    world.run(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": record_of(world, stage=stage)}
    began = len(world.began)
    ran = world.run()
    assert ran.result.failure and said in ran.result.failure.reason and "migrate_reset" in ran.result.failure.reason
    assert len(world.began) == began and len(world.kept) == 2
    # Begun again by name, what was kept before counts no more, also in later runs.
    world.transfers = [result(), result()]
    assert world.run(reset=True).result.failure is None
    world.found["dest"] = {**FOUND, "record": {"id": "x", "age": 5.0, "record": {**world.kept[0], "stage": stage}}}
    world.transfers = [NOTHING]
    assert world.run().result.failure is None


def test_a_run_whose_record_is_gone_stops_and_asks(world: World):
    world.transfers = [result(), result()]
    world.run(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": None}
    ran = world.run()
    assert ran.result.failure and "new has no record of job data any more" in ran.result.failure.reason


def test_what_is_no_record_stops_a_run_and_marks_nothing_done(world: World):
    world.transfers = [result(), result()]
    world.run(phase=Phase.SEED)
    for lie in ({"phase": "done"}, {"identity": {}}, {"bytes_total": "x"}, {"stage": ["switched"]}):
        world.found["dest"] = {**FOUND, "record": record_of(world, **lie)}
        ran = world.run()
        assert ran.result.failure and "cannot be read" in ran.result.failure.reason


def test_another_control_node_goes_on_with_what_was_not_switched_over(world: World, tmp_path: Path):
    world.transfers = [result(), result()]
    world.run(phase=Phase.SEED)
    world.found["dest"] = {**FOUND, "record": record_of(world, phase="sync")}
    world.folder = tmp_path / "another"
    world.transfers = [result(), result()]
    ran = world.run()
    assert ran.result.failure is None and list(world.state["phases"]) == ["preflight", "seed", "sync"]


def test_a_job_of_a_group_enters_its_run_with_an_up_to_date_copy(world: World):
    world.transfers = [result(), result()]
    job = {"cutover_group": "server", "before_cutover": [{"host": "source", "tasks": "stop.yml"}]}
    ran = world.begin(job, phase=Phase.CUTOVER, run_id="run-1")
    assert world.state["group"] == {"name": "server", "run": "run-1", "stands": "waiting"} and ran.result.left
    assert world.state["run"]["id"] == "run-1"
    world.transfers = [NOTHING]
    world.run()
    assert "group" not in world.state


def test_a_job_whose_group_was_decided_goes_on_with_the_switch(world: World):
    world.transfers = [result(), result()]
    world.run({"cutover_group": "server"})
    group = {"name": "server", "run": "run-1", "stands": "ready", "members": ["data", "other"]}
    world.write(quiesced=True, group=group)
    ready = world.state
    world.write("other", switch={"done": False, "hooks": [], "steps": 0})
    world.comparisons = [comparison()]
    ran = world.run({"cutover_group": "server"}, phase=Phase.CUTOVER)
    assert ran.result.failure is None and world.state["group"] == group
    assert world.state["switch"]["done"] and len(world.began) == 2
    # As long as nobody can tell whether it was, nothing is done.
    world.write(**{**ready, "switch": {}})
    (world.folder / "state/other.json").write_text("{")
    before = world.state
    ran = world.run({"cutover_group": "server"}, phase=Phase.CUTOVER)
    assert ran.result.failure and "other.json cannot be read" in ran.result.failure.reason and world.state == before


def test_a_job_that_another_control_node_has_is_not_touched(world: World):
    world.holder = "ada@control1 has been working on job data"
    ran = world.run(phase=Phase.CUTOVER)
    assert (
        ran.result.failure and ran.result.failure.reason == world.holder and "fleet_status" in ran.result.failure.next
    )
    assert not world.began and not world.kept and not ran.result.left and world.released == ["data"]
    # Not even what an earlier cutover of this control node left to be done.
    world.write(quiesced=True, quiesced_at="2026-01-01T00:00:00Z")
    ran = world.run(phase=Phase.CUTOVER)
    assert ran.result.failure and not ran.result.left and world.state["failure"]["lost"]


def test_check_mode_only_says_who_has_it_and_a_takeover_does_not_ask(world: World):
    world.holder = "ada@control1 has been working on job data"
    world.transfers = [result()]
    ran = world.run(check_mode=True)
    assert ran.result.failure is None and world.holder in world.reports[0]["warnings"] and world.released == []
    assert world.began == []  # its transfer may run
    world.transfers = [result(), result()]
    world.lease = FakeLease(told="taken over from ada@control1 at new, as migrate_takeover says")
    ran = world.run(takeover=True)
    assert ran.result.failure is None and world.reports[-1]["hints"] == [world.lease.told]


def test_a_run_that_loses_a_job_records_nothing_over_it_and_does_not_try_again(world: World):
    world.lease = FakeLease()

    world.is_taken_with_transfer = True
    world.transfers = [result(), TransferError("the line broke", may_pass=True)]
    ran = world.run(phase=Phase.CUTOVER)
    assert ran.result.failure and ran.result.failure.reason == TAKEN
    assert world.kept == [] and world.paused == [] and not ran.result.left and ran.result.failure.phase == "seed"


def test_another_run_on_this_control_node_is_named_and_nothing_is_written(world: World):
    world.claimed = "another run (process 4711) is working on this job at this moment"
    ran = world.run()
    assert ran.result.failure and "4711" in ran.result.failure.reason
    assert not world.folder.exists() and world.released == [] and not ran.result.left
    world.transfers = [result()]
    assert world.run(check_mode=True).result.failure is None


def test_what_a_later_call_goes_on_with_is_held_and_not_released(world: World):
    world.transfers = [result(), result()]
    job = {"after_cutover": [{"host": "dest", "tasks": "start.yml"}]}
    assert world.begin(job, phase=Phase.CUTOVER).result.left and world.holds == 1 and world.released == []
    world.transfers = [NOTHING]
    assert not world.run().result.left and world.holds == 1 and world.released == ["data"]


def test_a_hook_whose_end_nobody_recorded_is_named(world: World):
    world.transfers = [result(), result()]
    world.run()
    hook = {"name": "stop", "kind": "before_cutover", "host": "old", "at": "2026-01-01T00:00:00Z"}
    world.write(hook=hook)
    world.transfers = [NOTHING]
    world.run()
    (hint,) = world.reports[-1]["hints"]
    assert "the hook stop of before_cutover began on old" in hint and "hook" not in world.state
    world.transfers = [NOTHING]
    world.run()
    assert world.reports[-1]["hints"] == []


CUTOVER: dict[str, Any] = {"phase": Phase.CUTOVER}


def test_what_has_no_hooks_is_switched_over_at_once(world: World):
    world.transfers = [result(), result(), compared(changed=False)]
    ran = world.run(**CUTOVER)
    assert ran.result.failure is None and ran.result.changed and not ran.result.left
    assert world.compared == ["none", "none", "checksum"] and world.holds == 0 and world.released == ["data"]
    switch = world.state["switch"]
    assert (switch["done"], switch["by"], switch["hooks"], world.state["quiesced"]) == (True, "me", [], False)
    verify = world.state["phases"]["verify"]
    assert (verify["identical"], verify["compared"], verify["duration"]) == (True, "checksum", 2.5)
    assert verify["source"] == COUNTS and verify["algorithm"] == "blake2b"
    assert world.reports[-1]["next"] == "Done. Keep the tree on old until you trust the new one."
    assert [record["stage"] for record in world.kept][-1] == "switched" and world.kept[-1]["compared"] is True
    again = world.run(**CUTOVER)
    assert again.result.failure is None and not again.result.changed and not again.result.left and not world.transfers


def test_without_a_comparison_none_is_recorded(world: World):
    world.transfers = [result(), result(), result()]
    world.run({"verify": "none"}, **{**CUTOVER, "compares_first": False})
    assert world.compared[-1] == "none" and "verify" not in world.state["phases"]
    assert world.state["switch"]["done"]


def test_what_an_earlier_cutover_stopped_is_switched_over(world: World):
    world.transfers = [result(), result()]
    world.run()
    world.write(quiesced=True)
    world.transfers = [NOTHING, compared()]
    assert world.run(**CUTOVER).result.failure is None and world.state["switch"]["done"]


def test_a_final_pass_that_fails_leaves_the_source_in_service(world: World):
    differs = TransferError("2 entries are not the same on both hosts", {})
    world.transfers = [result(), result(), differs]
    ran = world.run(**CUTOVER)
    assert ran.result.failure and ran.result.failure.phase == "cutover" and not world.state["switch"]
    assert "old still serves" in ran.result.failure.next and not ran.result.left
    world.transfers = [NOTHING, compared()]
    assert world.run(**CUTOVER).result.failure is None and world.state["switch"]["done"]


def test_what_changes_during_the_final_pass_is_a_failure(world: World):
    one = {"path": "log", "kind": "differs", "fields": ["size"]}
    changed = compared(unstable=1, differences_total=1, differences=[one], verified="size")
    world.transfers = [result(), result(), changed]
    ran = world.run({"verify": "size"}, **CUTOVER)
    assert ran.result.failure and "1 entry changed at the source" in ran.result.failure.reason
    assert "for example log" in ran.result.failure.reason and not world.state["switch"]


def test_a_cutover_whose_line_was_lost_is_tried_again(world: World):
    world.transfers = [result(), result(), HostFailed("lost", "new", unreachable=True), compared()]
    assert world.run(**CUTOVER).result.failure is None
    assert world.paused == [RETRY_DELAYS[0]] and world.state["switch"]["done"]


# The cutover, with hooks

STOP = {"host": "source", "name": "stop", "command": ["stop", "app"]}
PROXY = {"host": "proxy", "module": "web.proxy.drain", "args": {"name": "drain"}}
START = {"host": "dest", "name": "start", "command": ["start", "app"]}
DNS = {"host": "localhost", "command": ["set-dns", "new"]}
REVIVE = {"host": "source", "command": ["start", "old"]}
UNDO = {"host": "dest", "command": ["stop", "new"]}
HOOKS: dict[str, Any] = {
    "before_cutover": [STOP, PROXY],
    "after_cutover": [START, DNS],
    "cutover_failed": [REVIVE],
    "switch_failed": [UNDO],
}
STOPPED, SWITCHED = ["stop app", "web.proxy.drain drain"], ["start app", "set-dns new"]
FAILS = {"rc": 3, "stderr": "it does not want to"}
DIFFERS = {"path": "log", "kind": "differs", "fields": ["size"]}


@pytest.fixture
def synced(world: World) -> World:
    """A job that was brought up to its cutover, of which nothing but the cutover is left."""
    world.transfers = [result(), result()]
    assert world.run().result.failure is None
    world.asked, world.kept, world.reports, world.released = [], [], [], []
    return world


def cut_over(world: World, *final: dict[str, Any] | Exception, **wanted: Any) -> Any:
    """Make the cutover, where the delta pass finds nothing, and the final pass ends like this."""
    job = wanted.pop("job", HOOKS)
    world.transfers = [NOTHING, *final]
    return world.run(job, **{**CUTOVER, **wanted})


def test_a_whole_cutover_with_hooks(synced: World):
    ran = cut_over(synced, compared())
    state = synced.state
    assert ran.result.failure is None and ran.result.changed and synced.ran == STOPPED + SWITCHED
    assert synced.compared[-1] == "checksum" and state["phases"]["verify"]["identical"]
    assert state["switch"]["done"] and not state["quiesced"]
    assert [one["name"] for one in state["switch"]["hooks"]] == ["start", "set-dns new"]
    (downtime,) = state["downtimes"]
    assert downtime["serves"] == "the new host" and downtime["from"] < downtime["to"]
    stages = ["serving", *["stopped"] * 3, *["switching"] * 2, "switched"]
    assert [one["stage"] for one in synced.kept] == stages  # with each transfer and before each hook
    assert synced.asked == [*["keep"] * 4, "release"]  # the last record and the release in one execution
    assert [report["next"] for report in synced.reports] == ["Done. Keep the tree on old until you trust the new one."]
    assert synced.released == ["data"]
    assert [(one["kind"], one["result"], one["rc"]) for one in state["hooks"]] == [
        *[("before_cutover", "done", 0)] * 2,
        *[("after_cutover", "done", 0)] * 2,
    ]
    assert [(name, become) for name, become, _hidden in synced.hook_hosts] == [
        (name, None) for name in ("old", "proxy", "new", "localhost")
    ]


def test_a_run_with_nothing_to_do_does_not_claim_the_job(synced: World):
    cut_over(synced, compared(), started_by="ada@control")
    worked = synced.state["worked"]
    assert (worked["by"], worked["phase"]) == ("ada@control", "cutover") and worked["at"] == synced.state["run"]["at"]
    synced.run(HOOKS, phase=Phase.SYNC, started_by="bob@control")
    assert synced.state["worked"] == worked and synced.state["switch"]["by"] == "ada@control"
    page = make_job_page(parse_report(synced.reports[-1]), RunFacts("2026-01-02T00:00:00Z", "bob@control", "sync"))
    facts = {fact.label: (fact.value, fact.note) for fact in page.facts}
    assert facts["Run by"] == ("ada@control", "up to phase cutover")
    text = Outline.of(render_page(page)).plain
    assert "by ada@control, up to phase cutover; the run of bob@control on " in text and "had nothing to do" in text
    assert "Switched over" in text


def test_the_run_before_counts_where_a_state_does_not_say_which_one_had_something_to_do(synced: World):
    cut_over(synced, compared(), started_by="ada@control")
    state = {name: value for name, value in synced.state.items() if name != "worked"}
    synced.write(**{**state, "worked": {}})
    synced.run(HOOKS, phase=Phase.SYNC, started_by="bob@control")
    assert synced.state["worked"]["by"] == "ada@control"
    synced.write(phases={**state["phases"], "verify": {}})
    synced.comparisons = [comparison()]
    assert synced.run(HOOKS, phase=Phase.VERIFY, started_by="eve@control").result.failure is None
    assert synced.state["worked"]["by"] == "eve@control"
    page = make_job_page(parse_report(synced.reports[-1]), RunFacts("2026-01-02T00:00:00Z", "eve@control", "verify"))
    (fact,) = [one for one in page.facts if one.label == "Run by"]
    assert (fact.value, fact.note) == ("eve@control", "up to phase verify; switched over by ada@control")


def test_hooks_for_all_jobs_come_before_those_of_the_job(synced: World):
    cut_over(synced, compared(), job={"before_cutover": [STOP]}, hooks={"before_cutover": [PROXY]})
    assert synced.ran == STOPPED[::-1]


def test_each_hook_is_told_with_its_return_code(synced: World):
    cut_over(synced, compared())
    assert "data: hook stop (before_cutover) begins on old" in synced.said
    assert any(line.startswith("data: hook stop (before_cutover) done, rc 0 in ") for line in synced.said)


def test_of_a_hidden_hook_only_its_name_is_told(synced: World):
    hidden = {**START, "no_log": True, "command": ["start", "--password", "s3cret"]}
    synced.answers["start --password s3cret"] = {**FAILS, "stderr": "s3cret is wrong"}
    cut_over(synced, compared(), job={**HOOKS, "after_cutover": [hidden]})
    assert ("new", None, True) in synced.hook_hosts
    assert "s3cret" not in repr((synced.said, synced.reports, synced.state, synced.kept))
    assert "hook start (after_cutover) on new failed" in synced.state["failure"]["reason"]


def test_a_group_alone_asks_the_destination_before_its_source_counts_as_stopped(synced: World):
    """It has no hooks that ask."""
    cut_over(synced, compared(), job={"cutover_group": "server"})
    assert synced.asked == ["keep", "keep", "release"] and synced.state["switch"]["done"]
    assert "downtimes" not in synced.state  # nothing is known of it


@pytest.mark.parametrize("job", [{"cutover_group": "server"}, HOOKS], ids=["the cutover", "a hook"])
def test_nothing_stops_the_source_where_the_destination_cannot_say_whose_the_job_is(synced: World, job: Any):
    synced.away = "new cannot be reached"
    ran = cut_over(synced, job=job)
    assert ran.result.failure and ran.result.failure.reason == "new cannot be reached"
    assert "hook" not in synced.state and not set(STOPPED) & set(synced.ran) and len(synced.transfers or ()) == 0


def test_later_hooks_run_although_the_destination_cannot_be_asked(synced: World):
    synced.answers["web.proxy.drain drain"] = {"failed": True, "msg": "no such pool"}
    synced.away, synced.away_from = "new cannot be reached", 3
    cut_over(synced)
    assert synced.ran == [*STOPPED, "start old"]
    assert "new keeps no record of this job: new cannot be reached" in synced.state["warnings"]


def test_a_failed_final_pass_brings_the_source_back(synced: World):
    ran = cut_over(synced, TransferError("no space left"))
    state = synced.state
    assert synced.ran == [*STOPPED, "start old"] and state["failure"]["phase"] == "cutover"
    assert state["failure"]["reason"] == "no space left" and not state["switch"] and not state["quiesced"]
    assert state["downtimes"][-1]["serves"] == "the old host again"
    assert ran.result.failure and "old still serves" in ran.result.failure.next
    assert synced.asked[-1] == "release"
    assert (synced.kept[-1]["failure"], synced.kept[-1]["stage"]) == ("no space left", "serving")


def test_a_copy_that_fails_while_the_source_is_stopped_brings_it_back(synced: World):
    """As an earlier cutover, which was killed, left it."""
    synced.write(quiesced=True)
    synced.transfers = [TransferError("no space left")]
    ran = synced.run(HOOKS, **CUTOVER)
    assert ran.result.failure and ran.result.failure.phase == "sync" and synced.ran == ["start old"]
    assert not synced.state["quiesced"]


def test_what_nothing_brings_back_stays_stopped(synced: World):
    ran = cut_over(synced, TransferError("no space left"), job={"before_cutover": [STOP]})
    assert synced.state["quiesced"] and "downtimes" not in synced.state
    assert ran.result.failure and "may still be stopped" in ran.result.failure.next


def test_what_may_pass_is_tried_once_more_while_the_source_is_stopped(synced: World):
    ran = cut_over(synced, *[HostFailed("lost", "new", unreachable=True)] * 2)
    assert ran.result.failure and synced.paused == [RETRY_DELAYS[0]] and synced.transfers == []


def test_trees_that_differ_are_named(synced: World):
    details = compared(differences_total=1, differences=[DIFFERS])
    cut_over(synced, TransferError("1 entry is not the same", details))
    state = synced.state
    found = state["phases"]["verify_failed"]
    assert (found["identical"], found["differences"], found["compared"]) == (False, [DIFFERS], "checksum")
    assert state["failure"]["phase"] == "verify" and "verify" not in state["phases"] and not state["switch"]
    assert synced.ran == [*STOPPED, "start old"]


def test_the_second_hook_before_the_cutover_fails(synced: World):
    """No final pass is made, the source serves again, and the reason has what the hook said."""
    synced.answers["web.proxy.drain drain"] = {"failed": True, "msg": "no such pool"}
    ran = cut_over(synced)
    state = synced.state
    assert synced.ran == [*STOPPED, "start old"] and synced.transfers == []
    assert (state["failure"]["phase"], state["quiesced"], state["switch"]) == ("cutover", False, {})
    reason = state["failure"]["reason"]
    assert reason.startswith("hook web.proxy.drain (name: drain) (before_cutover) on proxy failed")
    assert "no such pool" in reason
    assert [(one["kind"], one["result"]) for one in state["hooks"]] == [
        ("before_cutover", "done"),
        ("before_cutover", "failed"),
        ("cutover_failed", "done"),
    ]
    assert ran.result.failure and "old still serves" in ran.result.failure.next
    # The same command again begins the hooks from the start.
    synced.answers.clear()
    synced.ran.clear()
    assert cut_over(synced, compared()).result.failure is None and synced.ran == STOPPED + SWITCHED


@pytest.mark.parametrize(
    ("answer", "rc", "words"),
    [
        (FAILS, 3, "(rc 3): it does not want to"),
        ({"stdout": "?"}, None, "its host gave no return code"),
        (HostFailed("No route to host", "old", unreachable=True), None, "old cannot be reached: No route to host"),
        (HostFailed("the connection broke", "old"), None, "the connection broke"),
        (2.0, None, "it did not end within 0.05 s, its timeout, and may still run"),
    ],
    ids=["fails", "no return code", "unreachable", "lost", "does not end"],
)
def test_how_a_hook_may_end(synced: World, answer: object, rc: int | None, words: str):
    synced.answers["stop app"] = answer
    cut_over(synced, job={**HOOKS, "before_cutover": [{**STOP, "timeout": 0.05}]})
    assert words in synced.state["failure"]["reason"] and synced.ran == ["stop app", "start old"], "never twice"
    assert (synced.state["hooks"][0]["result"], synced.state["hooks"][0].get("rc")) == ("failed", rc)


def test_a_failed_hook_of_the_switch_is_handled_by_its_own_hooks(synced: World):
    synced.answers = {"start app": FAILS, "stop new": FAILS}
    ran = cut_over(synced, compared())
    state = synced.state
    assert synced.ran == [*STOPPED, "start app", "stop new"] and state["failure"]["phase"] == "switch"
    assert [(one["name"], one["result"]) for one in state["hooks"]][-2:] == [
        ("start", "failed"),
        ("stop new", "failed"),
    ]
    assert "hook" not in state and state["switch"]["hooks"] == []
    first, again = state["failure"]["reason"].split(" -- and a hook of switch_failed failed, too: ")
    assert first.startswith("hook start (after_cutover) on new failed") and "hook stop new" in again
    assert ran.result.failure and "The switch has begun (0 of its steps are done)" in ran.result.failure.next
    # The next run continues with the hooks that have not ended well, and runs none of those before the switch.
    synced.answers, synced.ran = {}, []
    synced.transfers = []
    assert synced.run(HOOKS, **CUTOVER).result.failure is None and synced.ran == SWITCHED


def test_a_failed_hook_of_the_remedy_is_told_and_leaves_the_source_as_it_is(synced: World):
    synced.answers = {"start old": FAILS}
    cut_over(synced, TransferError("no space left"))
    reason = synced.state["failure"]["reason"]
    assert reason.startswith("no space left -- and a hook of cutover_failed failed, too: hook start old")
    assert synced.state["quiesced"] and "may still be stopped" in synced.reports[-1]["next"]


def test_a_rehearsal_puts_the_source_back_and_keeps_what_it_took(synced: World):
    ran = cut_over(synced, compared(), phase=Phase.REHEARSE)
    state, phases = synced.state, synced.state["phases"]
    assert ran.result.failure is None and synced.ran == [*STOPPED, "start old"]
    assert {"cutover", "verify"} & set(phases) == set() and phases["rehearsal"]["verify"]["identical"]
    assert state["downtimes"][-1]["rehearsal"] and not state["quiesced"] and not state["switch"]


def test_a_rehearsal_of_a_group_decides_no_switch(synced: World):
    ran = cut_over(synced, compared(), phase=Phase.REHEARSE, job={**HOOKS, "cutover_group": "server"})
    assert ran.result.failure is None and synced.ran == [*STOPPED, "start old"] and not synced.state["switch"]


@pytest.mark.parametrize("total", [0, 2])
def test_a_comparison_after_the_switch(synced: World, total: int):
    synced.comparisons = [comparison(differences_total=total, differences=[DIFFERS] * total)]
    cut_over(synced, compared(verified="size"), compares_first=False)
    state = synced.state
    assert synced.compared[-1] == "size" and state["switch"]["done"] and synced.ran == STOPPED + SWITCHED
    if total:
        reason = state["failure"]["reason"]
        assert reason.startswith("the trees differ in 2 places, for example log (differs: size), log (differs: size).")
        assert state["failure"]["phase"] == "verify"
    else:
        assert state["phases"]["verify"]["identical"] and synced.reports


def test_what_the_tags_leave_out_is_not_done(synced: World):
    ran = cut_over(synced, steps=(Step.SYNC,))
    assert ran.result.failure is None and not synced.ran
    assert not synced.state["quiesced"] and not synced.state["switch"] and len(synced.reports) == 1


@pytest.mark.parametrize("number", range(1, 5))
def test_a_job_that_another_control_node_takes_over_is_left_alone(synced: World, number: int):
    """Before each hook the destination is asked: where the lease is lost, neither it nor a remedy runs."""
    synced.lease, synced.taken_at = FakeLease(), number
    ran = cut_over(synced, *([compared()] if number > 2 else ()))
    failure = synced.state["failure"]
    assert synced.ran == [*STOPPED, *SWITCHED][: number - 1]
    assert failure["lost"] and failure["reason"] == TAKEN and "hook" not in synced.state
    assert ran.result.untouched and ran.result.failure
    assert "the control node knows that has it now" in ran.result.failure.next
    assert not any(one["failure"] for one in synced.kept)


@pytest.mark.parametrize("text", ["{", "[]", '{"name": 1}'])
def test_a_state_that_cannot_be_read_is_a_failure(synced: World, text: str):
    path = synced.folder / "state/data.json"
    path.write_text(text)
    ran = synced.run(HOOKS, **CUTOVER)
    assert ran.result.failure and f"{path} cannot be read" in ran.result.failure.reason and not synced.asked
    assert path.read_text() == text


def test_the_source_is_brought_back_although_a_host_is_refused_by_then(synced: World):
    """As one whose facts have set variables of the role since the cutover began."""
    job = {**HOOKS, "before_cutover": [STOP, {"host": "source", "tasks": "drain.yml"}]}
    synced.refused_after = "drain.yml"
    cut_over(synced, job=job)
    assert "set among the facts of new" in synced.state["failure"]["reason"]
    assert synced.ran == ["stop app", "drain.yml", "start old"] and not synced.state["quiesced"]
    assert synced.released == ["data"]


# Files of tasks

TASKS = {"host": "source", "name": "drain", "tasks": "drain.yml"}


def test_a_file_of_tasks_is_handed_over_and_its_answer_ends_the_hook(synced: World):
    ran = cut_over(synced, compared(), job={**HOOKS, "before_cutover": [STOP, TASKS, PROXY]})
    assert ran.result.failure is None and ran.result.changed
    assert synced.ran == ["stop app", "drain.yml", "web.proxy.drain drain", *SWITCHED]
    (handed,) = synced.handed_over
    assert (handed.job, handed.host, handed.file) == ("data", "old", str(synced.folder.parent / "drain.yml"))
    assert [one["result"] for one in synced.state["hooks"]] == ["done"] * 5
    assert "ping old" not in synced.ran and len(synced.released) == 1 and len(synced.reports) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"failed": True, "msg": "no such service"}, "drain.yml: do it: no such service"),
        (None, "a host could not be reached, so Ansible ended its tasks"),
    ],
    ids=["fails", "no answer"],
)
def test_a_file_of_tasks_that_fails_or_never_answers_brings_the_source_back(synced: World, answer: Any, words: str):
    synced.tasks_answers["drain.yml"] = answer
    cut_over(synced, job={**HOOKS, "before_cutover": [STOP, TASKS, PROXY]})
    assert synced.ran == ["stop app", "drain.yml", "start old"] and not synced.state["quiesced"]
    reason = synced.state["failure"]["reason"]
    assert reason.startswith("hook drain (before_cutover) on old failed") and words in reason, reason


def test_a_file_of_tasks_may_bring_the_source_back(synced: World):
    job = {**HOOKS, "cutover_failed": [{**TASKS, "tasks": "revive.yml"}]}
    cut_over(synced, TransferError("no space left"), job=job)
    assert synced.ran == [*STOPPED, "revive.yml"] and not synced.state["quiesced"]
    assert synced.state["failure"]["reason"] == "no space left"


@pytest.mark.parametrize("case", ["missing", "unreachable"])
def test_a_file_of_tasks_that_cannot_run_is_not_handed_over(synced: World, case: str):
    if case == "missing":
        synced.missing = ["drain.yml"]
    else:
        synced.answers["ping old"] = HostFailed("No route to host", "old", unreachable=True)
    cut_over(synced, job={**HOOKS, "before_cutover": [TASKS]})
    words = {"missing": "there is no file", "unreachable": "old cannot be reached: No route to host"}[case]
    assert words in synced.state["failure"]["reason"] and not synced.handed_over and synced.ran == ["start old"]


# Files that the version before this one wrote, by what was done then.
BEFORE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("states_before.json").read_text())


@pytest.mark.parametrize("name", BEFORE)
def test_a_job_of_the_version_before_is_finished(world: World, name: str):
    (world.folder / "state").mkdir(parents=True)
    (world.folder / "state/data.json").write_text(json.dumps(BEFORE[name]))
    state = parse_state(BEFORE[name])
    if state.kept:
        world.records["data"] = make_record(state, "sync", "2026-01-01T00:00:00Z")
    world.transfers, world.comparisons = None, [comparison()]
    ran = world.run(HOOKS, **CUTOVER)
    assert ran.result.failure is None and world.state["switch"]["done"] and not world.state["quiesced"]
    has_run = {"switching": STOPPED, "switching, a hook has run": [*STOPPED, "start app"]}
    left = [one for one in STOPPED + SWITCHED if one not in has_run.get(name, [])]
    assert world.ran == ([] if name == "switched" else left)


# Groups, and runs that are killed

MEMBERS = ("data", "home")


def member(name: str, **changes: Any) -> dict[str, Any]:
    """Return a job of a group, whose hooks end with its name."""
    hooks: dict[str, list[dict[str, Any]]] = {
        "before_cutover": [{"host": "source", "name": f"stop {name}", "command": ["stop", name]}],
        "after_cutover": [{"host": "dest", "name": f"start {name}", "command": ["start", name]}],
        "cutover_failed": [{"host": "source", "name": f"revive {name}", "command": ["revive", name]}],
    }
    return {**JOB, "name": name, "cutover_group": "server", **hooks, **changes}


def runs_of(kinds: str, name: str, step: str) -> list[dict[str, Any]]:
    """Return hooks of a list: a command, a module and a file of tasks, as the letters say."""
    made = {
        "c": {"command": [step, name]},
        "m": {"module": f"a.b.{step}", "args": {"name": name}},
        "t": {"tasks": f"{step}-{name}.yml"},
    }
    return [{"host": "dest", "name": f"{step} {kind} {name}", **made[kind]} for kind in kinds]


def test_no_source_of_a_group_stops_before_all_copies_are_up_to_date_and_all_switch_together(world: World):
    world.transfers = None
    done = world.run_all([member(name) for name in MEMBERS], **CUTOVER)
    assert all(one.result.failure is None for one in done.values())
    assert sorted(world.ran[:2]) == ["stop data", "stop home"] and sorted(world.ran[2:]) == ["start data", "start home"]
    assert all(world.read(name)["switch"]["done"] for name in MEMBERS)
    last = max(number for number, verify in enumerate(world.compared) if verify == "none")
    assert last < min(number for number, verify in enumerate(world.compared) if verify == "checksum")


@pytest.mark.parametrize("tasks", [False, True], ids=["in one call", "with a file of tasks"])
def test_one_job_of_a_group_that_fails_brings_all_sources_back(world: World, tasks: bool):
    world.transfers = None
    own = {"before_cutover": runs_of("t", "home", "stop")} if tasks else {}
    world.answers["stop home"], world.tasks_answers["stop-home.yml"] = FAILS, {"failed": True, "msg": "no"}
    done = world.run_all([member("data"), member("home", **own)], **CUTOVER)
    assert sorted(world.ran[:2]) == ["stop data", "stop-home.yml" if tasks else "stop home"]
    assert sorted(world.ran[2:]) == ["revive data", "revive home"]
    data, home = (world.read(name) for name in MEMBERS)
    assert (
        "no job of its group goes on without the others: job home stopped in phase cutover"
        in (data["failure"]["reason"])
    )
    assert "hook stop" in home["failure"]["reason"]
    for one in (data, home):
        assert not one["quiesced"] and not one["switch"]
    assert all(one.result.failure and "old still serves" in one.result.failure.next for one in done.values())


@pytest.mark.parametrize("phase", [Phase.CUTOVER, Phase.REHEARSE])
@pytest.mark.parametrize("fails", ["revive home", ""], ids=["its hook fails", "it has no hook"])
def test_a_source_that_one_job_of_a_group_leaves_stopped_serves_for_none_of_them(
    world: World, fails: str, phase: Phase
):
    world.transfers = None
    if phase is Phase.CUTOVER:
        world.answers["stop home"] = FAILS
    elif not fails:
        return  # refused: nothing would bring the source back
    world.answers[fails] = FAILS
    plain: dict[str, Any] = {kind: [] for kind in ("before_cutover", "cutover_failed")}
    own: dict[str, Any] = {} if fails else {"cutover_failed": []}
    away = member("away", src_host="older", **plain)
    jobs = [member("data"), member("home", **own), member("logs", **plain), away]
    done = world.run_all(jobs, **{**CUTOVER, "phase": phase})
    advised = {name: one.result.failure.next if one.result.failure else "" for name, one in done.items()}
    assert all("old may still be stopped. Start it by hand" in advised[name] for name in ("data", "home", "logs")), (
        advised
    )
    assert "older still serves" in advised["away"] or phase is Phase.REHEARSE
    for name in ("data", "logs"):
        state = world.read(name)
        assert state["quiesced"] and not state.get("downtimes")
        assert "old may still be stopped by the hooks of job home" in state["failure"]["reason"]
    assert not world.read("away")["quiesced"]


def test_no_source_of_a_group_is_brought_back_while_another_is_being_stopped(world: World):
    """What one job stops, the hooks of another may need: all are stopped, or at a gate, before the first comes back."""
    world.transfers = None
    stops = [{"host": "source", "command": [step, "data"]} for step in ("stop", "drain", "unmount")]
    world.answers.update({"stop home": FAILS, "stop data": 0.2, "drain data": 0.2})
    world.run_all([member("data", before_cutover=stops), member("home")], **CUTOVER)
    assert sorted(world.ran[-2:]) == ["revive data", "revive home"], world.ran


def test_a_job_of_a_group_whose_copy_fails_stops_no_source(world: World):
    world.found["source"] = {**FOUND, "problems": ["/srv does not exist"]}
    done = world.run_all([member(name) for name in MEMBERS], **CUTOVER)
    assert all(one.result.failure for one in done.values()) and not world.ran


def test_the_files_of_tasks_of_a_group_run_at_its_barriers(world: World):
    world.transfers = None
    own = {name: {"before_cutover": runs_of("t", name, "stop"), "after_cutover": []} for name in MEMBERS}
    done = world.run_all([member(name, **own[name]) for name in MEMBERS], **CUTOVER)
    assert all(one.result.failure is None for one in done.values())
    assert sorted(world.ran) == ["stop-data.yml", "stop-home.yml"]


@pytest.mark.parametrize(
    "names", [("data",), pytest.param(MEMBERS, marks=pytest.mark.long)], ids=["alone", "in a group"]
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("ctm", "mtc")], ids=["without hooks", "with hooks"])
def test_a_run_that_is_killed_anywhere_is_continued(
    tmp_path: Path, before: str, after: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """Before each wait, after it, and after each write of a state."""
    monkeypatch.setattr("os.fsync", lambda _stream: None)
    group = {"cutover_group": "server"} if len(names) > 1 else {}
    lists = {name: (runs_of(before, name, "stop"), runs_of(after, name, "start")) for name in names}
    jobs = [
        {**JOB, **group, "name": name, "before_cutover": stops, "after_cutover": starts}
        for name, (stops, starts) in lists.items()
    ]
    for number in itertools.count(1):
        world = World(tmp_path / str(number) / "longhaul-migrate")
        world.folder.parent.mkdir()
        world.transfers, world.dies_at = None, number
        try:
            world.run_all(jobs, **CUTOVER)
        except Killed:
            pass
        else:
            assert number > 20 + 4 * len(names) * len(before + after), "each event was tried"
            return
        where = f"killed at event {number}, after {world.ran}"
        killed = {name: world.read(name) if world.exists(name) else {} for name in names}
        has_begun = any(state.get("switch") for state in killed.values())
        first = world.ran[:]
        done = world.run_all(jobs, **CUTOVER)
        assert [one.result.failure for one in done.values()] == [None] * len(names), where
        for name, (stops, starts) in lists.items():
            state = world.read(name)
            assert state["switch"]["done"] and not state["quiesced"] and "hook" not in state, where
            # Those before the cutover run again from the start if the switch had not begun; of those of the switch, at
            # most the one whose end had not been written down.
            before_switch, of_switch = [what_runs(one) for one in stops], [what_runs(one) for one in starts]
            again = [one for one in world.ran[len(first) :] if one in before_switch]
            assert again == ([] if has_begun else before_switch), where
            ended = len(killed[name].get("switch", {}).get("hooks", []))
            assert len([one for one in first if one in of_switch]) - ended in (0, 1), where
            assert [one for one in world.ran[len(first) :] if one in of_switch] == of_switch[ended:], where


def test_a_service_that_writes_at_the_destination_stops_the_cutover_before_the_source_is_stopped(world: World):
    world.transfers = None
    world.used = {"users": [{"pid": 8, "name": "mariadbd", "user": "mysql", "path": "ibdata1", "writes": True}]}
    hooks = {"before_cutover": [{"host": "source", "command": ["stop"]}]}
    ran = world.run(hooks, phase=Phase.CUTOVER)
    assert ran.result.failure is not None and ran.result.failure.phase == "cutover"
    assert "mariadbd (process 8 of user mysql, for example ibdata1) has files in /srv open" in ran.result.failure.reason
    assert world.ran == [] and "old still serves" in ran.result.failure.next and not world.state["quiesced"]
    ran = world.run({**hooks, "dest_in_use": "warn"}, phase=Phase.CUTOVER)
    assert ran.result.failure is None and world.ran == ["stop"]
    assert any("mariadbd" in one for one in world.reports[-1]["warnings"])


def test_a_cutover_keeps_the_forecast_with_which_it_began_and_what_it_took(world: World):
    world.transfers = None
    world.run()
    assert world.state["rates"]["copied"] > 0 and "cutover_forecast" not in world.state
    ran = world.run(phase=Phase.CUTOVER)
    kept = world.state["cutover_forecast"]
    assert ran.result.failure is None and kept["seconds"] >= 10.0 and "as long as the last pass" in kept["why"]
    assert kept["took"] >= 0.0 and world.reports[-1]["foreseen"]["real"] == kept["took"]
    assert world.state["rates"]["compared"] == pytest.approx(7 / 2.5, abs=0.1)


def test_the_downtime_of_a_group_is_told_of_each_of_its_jobs_from_the_first_stop_on(world: World):
    world.transfers = None
    stop = [{"host": "source", "command": ["stop"]}]
    jobs = [{**JOB, "name": "a", "before_cutover": stop}, {**JOB, "name": "b"}]
    grouped = [{**job, "cutover_group": "server"} for job in jobs]
    world.run_all(grouped, phase=Phase.CUTOVER, stopped_by_hooks={"a", "b"})
    states = [json.loads((world.folder / f"state/{name}.json").read_text()) for name in "ab"]
    first = min(one["quiesced_at"] for one in states)
    assert [[stop["from"] for stop in one["downtimes"]] for one in states] == [[first], [first]]
    assert all(one["cutover_forecast"]["took"] >= 0.0 for one in states)
