# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every stage has its rows, the tables keep what the role promises, and files hold states and records."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    AFTER_FAILURE,
    GOES_ON,
    BackupRecord,
    BackupStage,
    BackupState,
    BackupStep,
    BegunSnapshot,
    ListedSnapshot,
    PathTransfer,
    SnapshotAnswers,
    SnapshotList,
    StepFailure,
    expected_snapshots,
    make_record,
    parse_record,
    parse_state,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import HookRun

EVERY = list(itertools.product((False, True), BackupStage))
COMPLETES = {BackupStep.FINISH, BackupStep.PRUNE, BackupStep.CHECK}
BEGINS = {BackupStep.CLAIM, BackupStep.BEGIN, BackupStep.HOOKS_BEFORE, BackupStep.PREPARE, BackupStep.TRANSFER}
RUN: Any = {
    "id": "web/data",
    "host": "web",
    "name": "data",
    "repository": {"host": "vault", "path": "/b"},
    "copies": [],
}


def state(stage: BackupStage, failed: bool = False, **changes: Any) -> BackupState:
    """Return a backup at a stage, at which a step may have failed."""
    failures = [StepFailure(stage.value, "no space")] if failed else []
    return replace(BackupState("2026-01-01T00:00:00Z", "a run", stage, "a token", failures=failures), **changes)


def row(failed: bool, stage: BackupStage) -> tuple[BackupStep, ...]:
    return (AFTER_FAILURE if failed else GOES_ON)[stage]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 3),
        ({"snapshots": None}, 0),
        ({"snapshots": 0}, 0),
        ({"repository": {"host": "vault", "path": "/other"}}, 0),
        ({"repository": {"host": "other", "path": "/b"}}, 0),
        ({"repository": {}}, 0),
    ],
)
def test_snapshots_are_expected_where_the_last_run_left_them(changes, expected):
    before = replace(BackupRecord("web/data", repository=dict(RUN["repository"]), snapshots=3), **changes)
    assert expected_snapshots(RUN, before) == expected
    assert expected_snapshots(RUN, None) == 0


def test_the_tables_have_each_stage():
    assert set(GOES_ON) == set(AFTER_FAILURE) == set(BackupStage)


@pytest.mark.parametrize("failed, stage", EVERY)
def test_a_failure_is_one_of_its_own_stage(failed: bool, stage: BackupStage):
    assert state(stage, failed).has_failed is failed


def test_a_hook_after_that_failed_counts_where_all_has_arrived_only():
    failures = [StepFailure("hook after", "rc 1")]
    assert [stage for stage in BackupStage if state(stage, failures=failures).has_failed] == [BackupStage.FILLED]


@pytest.mark.parametrize("failed, stage", EVERY)
def test_what_holds_for_every_row(failed: bool, stage: BackupStage):
    steps = row(failed, stage)
    assert list(steps) == [step for step in BackupStep if step in steps], "in their order, none twice"
    assert steps[-2:] == (BackupStep.RECORD, BackupStep.RELEASE), "there is a record, and another run may begin"
    assert (BackupStep.CLAIM in steps) == (not failed and stage in (BackupStage.BEGIN, BackupStage.DRILL))
    if BackupStep.TRANSFER in steps:
        assert BackupStep.HOOKS_AFTER in steps, "what a hook before stopped is started again"
    if BackupStep.HOOKS_BEFORE in steps:
        assert BackupStep.TRANSFER in steps and BackupStep.PREPARE in steps
    if failed:
        assert not BEGINS & set(steps), "nothing is tried again in this run"
        begun = (BackupStage.HOOKS_BEFORE, BackupStage.PREPARE, BackupStage.TRANSFER)
        assert (BackupStep.HOOKS_AFTER in steps) == (BackupStep.UNDO in steps) == (stage in begun)
        completes = stage is BackupStage.FILLED
        assert COMPLETES & set(steps) == (COMPLETES if completes else set()), "only a full snapshot is completed"
    else:
        wanted = {
            BackupStage.PRUNE: COMPLETES - {BackupStep.FINISH},
            BackupStage.CHECK: {BackupStep.CHECK},
            BackupStage.DRILL: set(),
        }.get(stage, COMPLETES)
        assert COMPLETES & set(steps) == wanted


def snapshots(*states: str) -> SnapshotList:
    return SnapshotList([ListedSnapshot(f"2026-11-2{number}", one, "") for number, one in enumerate(states)])


@pytest.mark.parametrize(
    "listed, share, expected",
    [
        (None, "1/7", {BackupStep.LIST, BackupStep.PRUNE, BackupStep.CHECK}),
        (None, "", {BackupStep.LIST, BackupStep.PRUNE}),
        (snapshots(), "1/7", {BackupStep.PRUNE}),
        (snapshots("unfinished"), "1/7", {BackupStep.PRUNE}),
        (snapshots("complete"), "1/7", {BackupStep.PRUNE, BackupStep.CHECK}),
        (snapshots("complete"), "", {BackupStep.PRUNE}),
        (snapshots("complete", "aside"), "1/7", {BackupStep.CHECK}),
        (snapshots("aside"), "", set()),
    ],
)
def test_what_the_repository_holds_decides_what_follows(
    listed: SnapshotList | None, share: str, expected: set[BackupStep]
):
    steps = state(BackupStage.FINISH, said=SnapshotAnswers(list=listed)).find_steps(share)
    assert set(steps) == expected | {BackupStep.FINISH, BackupStep.RECORD, BackupStep.RELEASE}


@pytest.mark.parametrize("failed, stage", EVERY)
def test_only_what_was_claimed_is_released(failed: bool, stage: BackupStage):
    assert BackupStep.RELEASE in state(stage, failed).find_steps()
    assert (BackupStep.RELEASE in state(stage, failed, claim="").find_steps()) == (
        BackupStep.CLAIM in row(failed, stage)
    )


@pytest.mark.parametrize("failed, stage", EVERY)
def test_a_state_is_read_as_it_was_written(failed: bool, stage: BackupStage):
    said = SnapshotAnswers(begin=BegunSnapshot("/b/\udcff", ["/b/1"]), list=snapshots("complete"))
    hook = HookRun("before", "web", "freeze", at="2026", began=1.5, rc=0)
    made = state(stage, failed, said=said, notes=["a note"], hook=hook, hooks=[hook], hooks_run={"before": 1})
    made.transfers = [PathTransfer("/srv/", "stream", verified="size", throughput=1.5)]
    assert parse_state(json.loads(json.dumps(made.dump()))) == made


def test_a_stage_that_is_not_known_is_no_state():
    with pytest.raises(ValueError, match="stage of the state is none of begin, "):
        parse_state({**state(BackupStage.BEGIN).dump(), "stage": "none"})


def test_a_run_that_failed_keeps_the_size_of_the_snapshot_before():
    def record(said: Any, before: BackupRecord | None = None) -> BackupRecord:
        found = state(BackupStage.TRANSFER, failed=not said)
        found.said.update(said)
        return make_record(RUN, found, "2026-01-01T00:01:00Z", before)

    good = record({"finish": {"name": "2026", "figures": {"bytes": 5, "new_bytes": 1}}})
    failed = record({}, good)
    assert (good.size, failed.size, failed.figures, failed.duration) == (5, 5, {}, 60)
    assert record({}, failed).size == 5
    assert record({}, replace(good, size=None, figures={"bytes": 7})).size == 7  # as an older version wrote it
    assert record({}).size is None
    elsewhere = replace(
        good, repository={"host": "vault", "path": "/elsewhere"}, snapshots=14, newest="2026", aside="x"
    )
    moved = record({}, elsewhere)  # which says nothing of the snapshots here
    assert (moved.snapshots, moved.newest, moved.aside, moved.size) == (None, None, "", None)


# A record of 0.2.0.
BEFORE = {
    "aside": "", "at": "2026-11-21T10:59:58Z", "check": {"of": 7, "parts": [1], "sound": True}, "duration": 62,
    "ended": "2026-11-21T11:01:00Z", "failures": [{"reason": "no space", "step": "prune"}], "figures": {"bytes": 5},
    "host": "web", "id": "web/data", "kept": {"2026-11-21T110000Z": ["latest"]}, "name": "data", "newest": None,
    "notes": ["one"], "removed": [], "repository": {"host": "vault", "path": "/b"}, "resumed": True, "size": None,
    "snapshot": "2026-11-21T110000Z", "snapshots": None, "transfers": [
        {"src": "/srv/", "method": "stream", "streams": 2, "encrypted": True, "bytes_sent": 7, "verified": "size",
         "throughput": None, "duration": 1.5, "bytes_content": 9, "changed": True},
    ],
}  # fmt: skip


def test_a_record_of_the_version_before_is_read():
    record = parse_record(BEFORE)
    assert (record.failures, record.newest, record.check["sound"]) == ([StepFailure("prune", "no space")], None, True)
    assert record.transfers[0].bytes_sent == 7 and record.hooks == []
    assert {name: value for name, value in record.dump().items() if name in BEFORE and name != "transfers"} == {
        name: value for name, value in BEFORE.items() if name != "transfers"
    }
