# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports have the transfers of all runs of a job, the newest of them one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.history import (
    MOST_DELETED,
    MOST_PASSES,
    history_of,
    with_transfer,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.phases import Phase
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import (
    RunFacts,
    find_passes,
    parse_report,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_page import make_job_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    MigrationState,
    PassKind,
    TransferSummary,
    parse_state,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.migrating import JOB, NOTHING, World, compared, result

BEFORE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("states_before.json").read_text())
STOP = {"host": "source", "name": "stop", "command": ["stop"]}
DELETED = {"files_deleted": 1, "files_created": 0, "files_updated": 21, "bytes_sent": 100}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a job whose first copy was made."""
    made = World(tmp_path / "longhaul-migrate")
    made.transfers = [result(), result()]
    made.run()
    return made


def kinds(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["kind"], one["number"], one.get("failed", False)) for one in report["history"]["passes"]]


def test_a_cutover_that_is_run_again_keeps_the_passes_of_the_failed_one(world: World):
    world.transfers = [result(**DELETED, deleted=["old.txt"])]
    job = {"before_cutover": [STOP]}
    world.answers = {"stop": {"rc": 5, "stderr": "no such unit"}}
    failed = world.run(job, phase=Phase.CUTOVER)
    assert failed.result.failure
    world.answers = {}
    world.transfers = [NOTHING, compared(files_deleted=1, deleted=["late.txt"], bytes_sent=3)]
    world.run(job, phase=Phase.CUTOVER)
    report = world.reports[-1]
    assert report["totals"]["files_deleted"] == 2 and report["totals"]["bytes_sent"] == 110
    assert kinds(report) == [("seed", 1, False), ("sync", 1, False), ("sync", 2, False), ("cutover", 1, False)]
    text = Outline.of(render_page(make_job_page(parse_report(report), RunFacts("", "ada")))).plain
    assert "Deleted at the destination (2 of 2)" in text and "old.txt" in text and "late.txt" in text
    assert "| pass 1 |" in text and "| pass 2 |" in text


def test_final_passes_of_rehearsals_and_of_failed_cutovers_count(world: World):
    differs = {**compared(bytes_sent=5), "differences_total": 2, "failed": True}
    world.transfers = [NOTHING, TransferError("the trees differ", differs)]
    assert world.run(phase=Phase.CUTOVER).result.failure
    world.transfers = [NOTHING, compared(bytes_sent=2)]
    world.run(phase=Phase.REHEARSE)
    world.transfers = [NOTHING, compared(bytes_sent=1)]
    world.run(phase=Phase.CUTOVER)
    report = world.reports[-1]
    assert report["totals"]["bytes_sent"] == 7 + 5 + 2 + 1
    made = [(one.name, one.made.bytes_sent) for one in find_passes(parse_state(report))]
    assert made == [
        ("first copy", 7), ("pass 1", 0), ("final pass (failed)", 5), ("pass 2", 0), ("rehearsal", 2), ("pass 3", 0),
        ("final pass", 1),
    ]  # fmt: skip


def test_what_was_interrupted_counts_once(world: World):
    world.transfers = [TransferError("the line broke", result(bytes_sent=50), may_pass=True), result(bytes_sent=90)]
    world.run()
    assert world.reports[-1]["totals"]["bytes_sent"] == 7 + 90


def test_decisions_are_made_by_the_passes_of_the_last_run(world: World):
    for _night in range(3):
        world.transfers = [result(duration=900.0), result(duration=20.0)]
        world.run()
    assert len(world.state["phases"]["sync"]["passes"]) == 2
    assert len(world.state["history"]["passes"]) == 7


def test_job_that_begins_again_has_no_history(world: World):
    world.transfers = [result(), result(bytes_sent=1)]
    world.run(reset=True)
    assert [one["bytes_sent"] for one in world.state["history"]["passes"]] == [1]


def test_many_passes_are_bounded_and_their_sums_are_not():
    state = MigrationState.fresh(JOB)
    count = MOST_PASSES + 20
    for number in range(count):
        made = TransferSummary(bytes_sent=1, files_deleted=10, deleted=[f"{number}/{name}" for name in range(10)])
        kind = PassKind.SYNC if number else PassKind.SEED
        state.history = with_transfer(state, kind, made, failed=False)
    history = history_of(state)
    assert (history.count, history.bytes_sent, history.files_deleted) == (count, count, 10 * count)
    assert [(one.kind.value, one.number) for one in history.passes[:2]] == [("seed", 1), ("sync", 21)]
    assert len(history.passes) == MOST_PASSES and history.passes[-1].number == count - 1
    assert sum(len(one.deleted) for one in history.passes) == MOST_DELETED and history.passes[-1].deleted
    assert parse_state(json.loads(json.dumps(state.dump()))) == state


@pytest.mark.parametrize(
    ("name", "passes"),
    [("preflight", 0), ("synced", 2), ("switched", 3), ("rehearsed", 3)],
)
def test_a_state_of_the_version_before_has_the_passes_of_its_phases(name: str, passes: int):
    state = parse_state(BEFORE[name])
    assert state.history is None and len(history_of(state).passes) == history_of(state).count == passes
    state.history = with_transfer(state, PassKind.SYNC, TransferSummary(bytes_sent=4), failed=False)
    assert state.history.count == passes + 1
