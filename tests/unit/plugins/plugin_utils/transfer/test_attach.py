# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which job of an earlier run a task follows: a table of what two probes find, and what follows."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.attach import (
    RunningTransfer,
    earlier_run,
    find_job,
    task_fingerprint,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end

RUNNING = RunningTransfer("a1b2", "To stop it: ansible source,dest")
OURS = "0123456789abcdef"
DONE = {"state": "finished", "outcome": Outcome(files_created=2).as_dict(), "started": 50.0}
NO_JOB = {"running": False, "request": {}, "status": {}}


def job(running: bool, part: str = "drive", check: bool = False, fingerprint: str = OURS, **status: Any) -> Any:
    settings = {"check": check, "method": "tar_nc"}
    return {
        "running": running,
        "request": {"part": part, "fingerprint": fingerprint, "settings": settings},
        "status": {"pid": 7, **status},
    }


def ends(source: Any = NO_JOB, dest: Any = NO_JOB) -> Any:
    jobs = {"source": (source, 100 * 10**9), "dest": (dest, 130 * 10**9)}
    return {side: end(side, job=given, now_ns=now) for side, (given, now) in jobs.items()}


@pytest.mark.parametrize("collect", [False, True])
@pytest.mark.parametrize("side", ["source", "dest"])
def test_a_running_job_of_the_same_task_is_attached_to(side: str, collect: bool) -> None:
    other = "dest" if side == "source" else "source"
    given = {side: job(True, started=90.0), other: job(True, "serve", ready={"port": 5})}
    found = find_job(ends(**given), OURS, collect, False, RUNNING)
    assert found and (found.side, found.status.alive, found.method, found.ready) == (side, True, "tar_nc", {"port": 5})
    # The clock of the destination is 30 seconds ahead, and times of the source are what counts.
    assert found.started_ns == (90 if side == "source" else 60) * 10**9


@pytest.mark.parametrize(
    ("given", "fingerprint", "check", "why"),
    [
        (job(True), "another", False, "this task has other options"),
        (job(True), OURS, True, "in check mode nothing can be told of it"),
    ],
)
def test_a_running_job_of_another_task_is_in_the_way(given: Any, fingerprint: str, check: bool, why: str) -> None:
    for side in ("source", "dest"):
        with pytest.raises(Refusal, match=rf"transfer a1b2 .*process 7 on {side}\), and {why}.*To stop it: ansible"):
            find_job(ends(**{side: given}), fingerprint, True, check, RUNNING)


@pytest.mark.parametrize(
    "given",
    [NO_JOB, job(True, check=True), job(True, "serve"), job(False, **DONE)],
    ids=["no job", "predicts", "serves", "ended"],
)
def test_a_transfer_is_begun_where_no_other_runs(given: Any) -> None:
    assert find_job(ends(source=given), OURS, False, False, RUNNING) is None


@pytest.mark.parametrize(
    ("given", "fingerprint", "check", "collected"),
    [
        (job(False, **DONE), OURS, False, True),
        (job(False, **DONE), OURS, True, False),
        (job(False, **DONE), "another", False, False),
        (job(False, state="died"), OURS, False, False),
        (job(False, "serve", **DONE), OURS, False, False),
    ],
)
def test_a_result_is_collected_once_it_is_there(given: Any, fingerprint: str, check: bool, collected: bool) -> None:
    found = find_job(ends(dest=given), fingerprint, True, check, RUNNING)
    assert bool(found) == collected
    if found:
        assert found.status.state == "finished" and found.status.outcome and found.status.outcome.files_created == 2


def test_what_an_ended_job_did_counts_for_the_next_run() -> None:
    done = earlier_run(ends(dest=job(False, **DONE, ended=66.0)))
    assert done and done.outcome.files_created == 2 and done.seconds == 16.0
    assert earlier_run(ends(dest=job(True, **DONE))) is None
    assert earlier_run(ends(dest=job(False, check=True, **DONE))) is None
    died = earlier_run(ends(source=job(False, state="died")))
    assert died and not died.outcome.changed and died.seconds == 0.0


def test_tasks_are_the_same_where_only_how_they_wait_differs() -> None:
    given = {
        "src": "/a",
        "owner_map": {"users": {1: 2, "b": "c"}},
        "trust": "full",
        "wait": True,
        "rsyncd_password": "x",
    }
    same = {"src": "/a", "owner_map": {"users": {"b": "c", 1: 2}}, "wait": False, "timeout": 9, "verify": "none"}
    assert task_fingerprint(given) == task_fingerprint(same)
    for changes in ({"src": "/b"}, {"trust": "none"}, {"owner_map": {"users": {"1": 2, "b": "c"}}}):
        assert task_fingerprint({**given, **changes}) != task_fingerprint(given)
