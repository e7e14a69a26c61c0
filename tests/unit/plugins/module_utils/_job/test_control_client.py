# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers of every method that are paused, slowed, resumed and cancelled while they run: real jobs of this host."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.commands import StepContext, run_steps
from ansible_collections.longhaul.fleet.plugins.module_utils._job.control_client import (
    Wish,
    parse_wish,
    select,
    wanted_ticket,
    why_not,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ticket import FREE, Ticket
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.running_jobs import RunningJobs, arrived, rate_over, run_module

pytestmark = pytest.mark.newest  # the module needs Ansible, which older Pythons have not

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_programs = pytest.mark.skipif(
    not SSHD or not shutil.which("rsync") or os.geteuid() != 0, reason="cannot run here: needs root, sshd and rsync"
)
MIB = 1 << 20
SIZE = 40 * MIB  # of each of three files
JOB: dict[str, Any] = {"id": "0123456789abcdef", "side": "dest", "part": "drive", "peer": "old"}


@pytest.mark.parametrize(
    ("before", "state", "bwlimit", "after"),
    [
        (FREE, "paused", None, Ticket(paused=True)),
        (Ticket(paused=True, rate=5), "running", None, Ticket(rate=5)),
        (Ticket(paused=True), None, "1M", Ticket(paused=True, rate=MIB)),
        (Ticket(rate=5), "running", "0", Ticket(rate=0)),
        (Ticket(paused=True), "cancelled", None, Ticket(cancelled=True)),
    ],
)
def test_what_a_wish_makes_of_a_ticket(before, state, bwlimit, after):
    assert wanted_ticket(before, parse_wish(state, bwlimit)) == after


@pytest.mark.parametrize(("state", "bwlimit"), [("stopped", None), (None, "fast"), (None, "9999999T")])
def test_a_wish_that_is_none(state, bwlimit):
    with pytest.raises(ValueError):
        parse_wish(state, bwlimit)


@pytest.mark.parametrize(
    ("job", "state", "obeys", "foreign_daemon", "reason"),
    [
        (JOB, "paused", True, False, ""),
        (JOB, "paused", True, True, ""),  # this end connects to it
        (JOB, "cancelled", False, True, ""),
        (JOB, "paused", False, False, "earlier version.*Cancel it"),
        ({**JOB, "part": "serve"}, "paused", True, True, "not its own. Run this on old"),
        ({**JOB, "part": "compare"}, "paused", True, False, "only be cancelled"),
    ],
)
def test_what_cannot_be_done_is_said(job, state, obeys, foreign_daemon, reason):
    import re

    said = why_not(job, Wish(state), obeys, foreign_daemon)
    assert bool(said) == bool(reason) and re.search(reason, said), said


def test_all_means_transfers():
    jobs: list[Any] = [
        {**JOB, "id": str(number), "part": part} for number, part in enumerate(("drive", "serve", "compare"))
    ]
    assert select(jobs, None) == (jobs[:2], [])
    assert select(jobs, ["2", "9"]) == (jobs[2:], ["9"])


Make = Callable[..., RunningJobs]


@pytest.fixture(name="make")
def makes_running_jobs(tmp_path: Path) -> Iterator[Make]:
    made: list[RunningJobs] = []

    def make(method: str, serving: str, files: int = 3, size: int = SIZE, **changes: Any) -> RunningJobs:
        source, dest = tmp_path / "source", tmp_path / "dest"
        if not source.exists():
            source.mkdir()
            dest.mkdir()
            for number in range(files):
                (source / f"f{number}").write_bytes(os.urandom(size))
        made.append(RunningJobs(tmp_path, source, dest, method, serving, **changes))
        return made[-1]

    yield make
    for jobs in made:
        jobs.stop()


def under_way(jobs: RunningJobs) -> Callable[[], int]:
    """Start a transfer, and wait until contents arrive; return what counts them."""
    count = partial(arrived, jobs.roots["dest"])
    jobs.start()
    wait_for(lambda: count() > 0, seconds=60)
    return count


def why(last: dict[str, Any]) -> object:
    """Return what a job that has ended says of its failure."""
    outcome = last.get("outcome") or {}
    return last.get("failure") or [outcome.get(part) for part in ("failure", "errors", "stderr")]


ALL = [
    (method, serving)
    for method in ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")
    for serving in ("dest", "source")
]
# The engine of the collection, rsync, and a program that an engine of the collection feeds.
EACH_KIND = [("stream", "dest"), ("rsync", "source"), ("tar_nc", "source")]
TOLD = ("drive", "serve")
FEW = [(*ALL[0], "drive"), (*ALL[2], "serve")]


@needs_programs
@pytest.mark.parametrize(("method", "serving"), [*EACH_KIND, *rarely(*(one for one in ALL if one not in EACH_KIND))])
def test_a_transfer_is_paused_slowed_and_resumed(make: Make, method: str, serving: str) -> None:
    """In force within 2 seconds, whichever end connects; the module is run on both ends here."""
    jobs = make(method, serving, bwlimit=6 * MIB)
    count = under_way(jobs)
    predicted = jobs.control(check=True, state="paused")
    assert predicted["changed"] and all(one["paused"] for one in predicted["transfers"]), predicted
    began = time.monotonic()
    done = jobs.control(state="paused")
    assert done["changed"] and all(one["paused"] for one in done["transfers"]), (done, jobs.log())
    assert done["diff"]["before"] != done["diff"]["after"]
    assert not jobs.control(state="paused")["changed"]
    time.sleep(max(0.0, began + 2 - time.monotonic()))
    assert rate_over(count, 2) == 0, jobs.log()
    shown = run_module("transfer_info", transfer_id=jobs.id)["transfers"]
    assert [(one["paused"], one["bwlimit"]) for one in shown] == [(True, 6 * MIB)] * 2
    slowed = jobs.control(state="running", bwlimit="1M")
    assert slowed["changed"] and [one["bwlimit"] for one in slowed["transfers"]] == [MIB] * 2, slowed
    time.sleep(2)
    assert 0.2 * MIB < rate_over(count, 6) < 2.2 * MIB, jobs.log()
    assert jobs.control(bwlimit="0")["changed"]
    last = jobs.wait()
    assert last["state"] == "finished" and not last["outcome"]["errors_total"], (why(last), jobs.log())
    jobs.stop()
    assert differences(jobs.roots["source"], jobs.roots["dest"]) == []


@pytest.mark.newest
@needs_programs
@pytest.mark.parametrize("told", ["drive", *rarely("serve")])
@pytest.mark.parametrize(("method", "serving"), [ALL[0], *rarely(*ALL[1:])])
def test_the_ticket_of_one_end_is_enough(make: Make, method: str, serving: str, told: str) -> None:
    jobs = make(method, serving, size=12 * MIB, bwlimit=6 * MIB, timeout=12)
    count = under_way(jobs)
    side = jobs.serving if told == "serve" else jobs.driving
    other = "source" if side == "dest" else "dest"
    tell_one(jobs, side, Ticket(paused=True))
    time.sleep(2)
    assert rate_over(count, 8) == 0, jobs.log()  # longer than what rsync bears of silence: half of the timeout
    if method not in ("rsync", "rsyncd"):
        assert jobs.status(other)["paused"]
    tell_one(jobs, side, FREE)
    wait_for(lambda: rate_over(count, 0.5) > 0, seconds=30)
    last = jobs.wait()
    assert last["state"] == "finished" and not last["outcome"]["errors_total"], (why(last), jobs.log())
    assert "made again" not in jobs.log()  # nothing was lost and connected again
    jobs.stop()
    assert differences(jobs.roots["source"], jobs.roots["dest"]) == []


@pytest.mark.newest
@needs_programs
@pytest.mark.parametrize(("method", "serving"), [("stream", "dest"), *rarely(("tar_nc", "dest"), ("sftp", "source"))])
def test_the_serving_end_ends_by_itself_after_a_transfer(make: Make, method: str, serving: str) -> None:
    jobs = make(method, serving, files=1, size=4 * MIB, timeout=2, bwlimit=2 * MIB)
    jobs.start()
    assert jobs.wait()["state"] == "finished", jobs.log()
    assert jobs.wait(jobs.serving, 20)["state"] == "served", jobs.log()
    jobs.stop()
    assert sorted(os.listdir(jobs.roots["dest"])) == sorted(os.listdir(jobs.roots["source"]))


def tell_one(jobs: RunningJobs, side: str, ticket: Ticket) -> None:
    """Tell one end alone, as the module does where it runs on one of two hosts."""
    from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.ticket_file import OWN, write_ticket

    write_ticket(jobs.folders[side].path, OWN, ticket)


@pytest.mark.newest
@needs_programs
@pytest.mark.parametrize(
    ("method", "serving", "told"),
    [*FEW, *rarely(*((*one, told) for one in ALL for told in TOLD if (*one, told) not in FEW))],
)
def test_a_pause_longer_than_the_timeout_ends_and_is_resumed(make: Make, method: str, serving: str, told: str) -> None:
    jobs = make(method, serving, bwlimit=6 * MIB, timeout=6)
    count = under_way(jobs)
    wait_for(lambda: count() > 30 * MIB, seconds=60)
    tell_one(jobs, jobs.serving if told == "serve" else jobs.driving, Ticket(paused=True))
    last = jobs.wait(seconds=60)
    failure = last.get("failure") or last["outcome"]["failure"]
    assert told == "serve" or last["state"] == "paused", (why(last), jobs.log())
    if (method, told) != ("rsyncd", "serve"):  # a daemon cannot say why it goes
        assert last["state"] == "paused" and "paused for longer than its timeout (6 seconds)" in failure, (
            last,
            jobs.log(),
        )
    jobs.stop()
    before = count()
    again = make(method, serving, timeout=60)
    again.id, again.folders, again.settings["id"] = jobs.id, jobs.folders, jobs.id
    again.start()
    last = again.wait()
    assert last["state"] == "finished" and not last["outcome"]["errors_total"], (last, again.log())
    again.stop()
    assert differences(jobs.roots["source"], jobs.roots["dest"]) == []
    if method not in ("tar_nc", "scp"):  # which start the file again that was on its way
        assert last["outcome"]["bytes_sent"] <= 3 * SIZE - before + 8 * MIB, last  # a range that was not complete


@pytest.mark.newest
@needs_programs
@pytest.mark.parametrize(("method", "serving"), [ALL[0], *rarely(*ALL[1:])])
def test_what_is_cancelled_while_it_is_paused_is_resumed(make: Make, method: str, serving: str) -> None:
    jobs = make(method, serving, bwlimit=6 * MIB)
    count = under_way(jobs)
    wait_for(lambda: count() > 20 * MIB, seconds=60)
    jobs.control(state="paused")
    assert {one["state"] for one in jobs.control(check=True, state="cancelled")["transfers"]} == {"cancelled"}
    done = jobs.control(state="cancelled")
    assert done["changed"] and not jobs.control(state="cancelled")["changed"]
    assert {one["state"] for one in done["transfers"]} == {"cancelled"}, done
    assert not any(folder.is_running() for folder in jobs.folders.values())
    assert count() > 20 * MIB or method in ("tar_nc", "scp")  # partial files stay
    again = make(method, serving)
    again.id, again.folders, again.settings["id"] = jobs.id, jobs.folders, jobs.id
    again.start()
    last = again.wait()
    assert last["state"] == "finished" and not last["outcome"]["errors_total"], (last, again.log())
    again.stop()
    assert differences(jobs.roots["source"], jobs.roots["dest"]) == []


def test_a_peer_learns_of_a_cancellation(make: Make) -> None:
    jobs = make("stream", "dest", bwlimit=2 * MIB)
    under_way(jobs)
    tell_one(jobs, jobs.driving, Ticket(cancelled=True))
    assert [jobs.wait(side, 20)["state"] for side in (jobs.driving, jobs.serving)] == ["cancelled"] * 2, jobs.log()
    assert not any(folder.is_running() for folder in jobs.folders.values()), jobs.log()


def test_the_control_node_can_ask_for_several_at_once(make: Make) -> None:
    jobs = make("stream", "dest", bwlimit=2 * MIB)
    under_way(jobs)
    step = {"do": "control", "ids": [jobs.id, "f" * 16], "state": "paused", "bwlimit": "1M"}
    (found,) = run_steps([step], StepContext({}, ""))
    assert isinstance(found, dict) and found["missing"] == ["f" * 16]
    assert [(one["changed"], one["problem"], one["after"]["paused"]) for one in found["told"]] == [(True, "", True)] * 2


def test_ids_and_all_exclude_each_other() -> None:
    for given in ({}, {"id": ["0"], "all": True}):
        failed = run_module("transfer_control", state="paused", **given)
        assert failed["failed"] and "not both" in failed["msg"]
    failed = run_module("transfer_control", all=True, bwlimit="fast")
    assert failed["failed"] and "no rate" in failed["msg"]
    assert run_module("transfer_control", id=["0"])["failed"]  # neither state nor bwlimit
