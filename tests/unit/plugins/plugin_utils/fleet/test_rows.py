# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where each pair stands, by what is kept of it and by what its hosts say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.answers import ListedTransfer
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import (
    Job,
    Standing,
    State,
    hosts_first,
    hosts_next,
    in_order,
    make_rows,
    sum_up,
)

JOB = Job("n01", "old01", "/srv/", "new01", "/srv", transfer="aa", comparison="bb")
SYNCED = Standing("sync", State.WAITING, "sync", 100, 100, age=60.0)


def seen(host, side, **changes):
    one = ListedTransfer(
        host=host, id="aa", side=side, part="drive" if side == "source" else "serve", method="stream",
        peer="new01" if side == "source" else "old01", root="/srv", state="running" if side == "source" else "serving",
        paused=False, failure="", age=1.0, bytes_done=30, bytes_total=100, files_done=3, files_total=10, rate=7.0,
    )  # fmt: skip
    return replace(one, **changes)


def row_of(job=JOB, said=(), failed=None):
    by_host = {}
    for one in said:
        by_host.setdefault(one.host, []).append(one)
    return make_rows([job], by_host, failed or {})[0]


def test_destinations_are_asked_first_each_once():
    jobs = [replace(JOB, name=str(n), src_host=f"old{n}", dest_host=f"new{n % 2}") for n in range(4)]
    assert hosts_first(jobs) == ["new0", "new1"]


@pytest.mark.parametrize(
    "dest, asked",
    [
        ([seen("new01", "dest")], []),  # stream: the destination knows as much
        ([seen("new01", "dest", method="rsync")], ["old01"]),
        ([seen("new01", "dest", method="rsync", state="failed")], []),
        ([seen("new01", "dest", method="rsync", part="drive")], []),
        ([], []),  # nothing runs
        (None, ["old01"]),  # it did not answer
    ],
)
def test_sources_are_asked_only_where_they_know_more(dest, asked):
    assert hosts_next([JOB], {} if dest is None else {"new01": dest}) == asked


def test_a_job_whose_transfer_runs():
    job = replace(JOB, standing=SYNCED)
    row = row_of(job, [seen("new01", "dest", bytes_total=0, rate=5.0), seen("old01", "source")])
    assert (row.phase, row.state, row.bytes_done, row.bytes_total, row.rate) == ("sync", State.RUNNING, 30, 100, 7.0)
    assert row.eta == 10.0 and row.age == 1.0


def test_the_total_is_that_of_the_last_transfer_until_the_tree_is_listed():
    row = row_of(replace(JOB, standing=SYNCED), [seen("old01", "source", bytes_total=0)])
    assert row.bytes_total == 100


@pytest.mark.parametrize(
    "changes, state",
    [
        ({"paused": True}, State.PAUSED),
        ({"state": "finished"}, State.ENDED),
        ({"state": "failed", "failure": "no space"}, State.FAILED),
        ({"state": "interrupted"}, State.INTERRUPTED),
        ({"state": "cancelled"}, State.INTERRUPTED),
        ({"state": "paused"}, State.PAUSED),
    ],
)
def test_what_became_of_a_transfer(changes, state):
    row = row_of(said=[seen("old01", "source", **changes)])
    assert row.state is state and row.eta is None
    assert row.error == (f"old01: {changes['failure']}" if "failure" in changes else "")


def test_a_job_without_a_transfer_is_as_it_is_kept():
    row = row_of(replace(JOB, standing=SYNCED), [])
    assert (row.phase, row.state, row.bytes_done, row.age) == ("sync", State.WAITING, 100, 60.0)
    assert row_of().state is State.NOT_BEGUN


def test_a_host_that_does_not_answer_is_a_row_with_what_is_known():
    row = row_of(replace(JOB, standing=SYNCED), failed={"new01": "timed out"})
    assert (row.state, row.phase, row.age, row.error) == (State.UNREACHABLE, "sync", 60.0, "new01: timed out")


def test_the_other_host_speaks_for_one_that_does_not_answer():
    row = row_of(said=[seen("old01", "source")], failed={"new01": "timed out"})
    assert (row.state, row.bytes_done, row.error) == (State.RUNNING, 30, "new01: timed out")


def test_what_was_left_of_a_job_that_is_done_changes_nothing():
    done = replace(JOB, standing=Standing("verify", State.DONE, "verify", 100, 100, 5.0))
    assert row_of(done, [seen("new01", "dest", state="finished")]).state is State.DONE


def test_a_failed_job_keeps_its_reason_beside_what_was_left_of_its_transfer():
    standing = Standing("seed", State.FAILED, "seed", 0, 100, 5.0, error="no space", next="Make room")
    failed = replace(JOB, standing=standing)
    row = row_of(failed, [seen("new01", "dest", state="served")])
    assert (row.state, row.error, row.next) == (State.FAILED, "no space", "Make room")
    assert row_of(failed, [seen("old01", "source")]).state is State.RUNNING


def test_a_comparison_is_the_phase_verify():
    row = row_of(said=[seen("new01", "dest", id="bb", part="compare", state="running")])
    assert (row.phase, row.state) == ("verify", State.RUNNING)


def test_no_host_speaks_for_a_pair_that_it_is_not_in():
    lie = seen("mallory", "source", state="failed", failure="lost all")
    row, other = make_rows([JOB], {"mallory": [lie], "new01": []}, {})
    assert row.state is State.NOT_BEGUN and row.error == ""
    assert (other.name, other.src_host, other.state) == ("aa", "mallory", State.FAILED)


def test_a_transfer_of_no_job_is_one_row_for_both_hosts():
    (row,) = make_rows([], {"a": [seen("a", "source", peer="b")], "b": [seen("b", "dest", peer="a")]}, {})
    assert (row.name, row.src_host, row.src, row.dest_host, row.phase) == ("aa", "a", "/srv", "b", "transfer")


def test_two_hosts_that_disagree_on_their_peers_are_two_rows():
    rows = make_rows([], {"a": [seen("a", "source", peer="b")], "b": [seen("b", "dest", peer="c")]}, {})
    assert {(row.src_host, row.dest_host) for row in rows} == {("a", "b"), ("c", "b")}


def test_the_sums_and_the_time_that_is_left():
    running = row_of(said=[seen("old01", "source")])
    waiting = replace(running, state=State.WAITING, bytes_done=0, bytes_total=210, rate=None)
    failed = replace(waiting, state=State.FAILED, bytes_total=10**9)
    unknown = replace(waiting, state=State.NOT_BEGUN, bytes_total=0)
    sums = sum_up([running, waiting, failed, unknown])
    assert sums.states == {"failed": 1, "running": 1, "waiting": 1, "not begun": 1}
    assert (sums.rate, sums.unknown, sums.eta) == (7.0, 1, 40.0)  # 70 + 210 at 7 a second


def test_what_is_paused_has_no_time_left():
    paused = row_of(said=[seen("old01", "source", paused=True)])
    assert (paused.state, paused.rate, sum_up([paused] * 4).eta) == (State.PAUSED, None, None)
    running = row_of(said=[seen("old01", "source")])
    assert sum_up([paused, running]).eta == 10.0


@pytest.mark.parametrize(("state", "counts"), [("finished", False), ("failed", False), ("running", True)])
def test_what_others_left_behind_is_no_part_of_the_sums(state, counts):
    said = seen("old01", "source", id="cc", state=state, bytes_sent=5)
    job, other = make_rows([JOB], {"old01": [said]}, {})
    sums = sum_up([job, other])
    assert not other.is_job and sum(sums.states.values()) == 2
    assert (sums.bytes_done, sums.bytes_total, sums.bytes_sent) == ((30, 100, 5) if counts else (0, 0, 0))


def test_a_fleet_ends_no_sooner_than_its_slowest_pair():
    slow = row_of(said=[seen("old01", "source", rate=1.0)])
    fast = replace(slow, rate=1000.0, bytes_total=31)
    assert sum_up([slow, fast]).eta == 70.0
    assert sum_up([replace(slow, rate=None)]).eta is None


def test_what_needs_a_person_comes_first():
    rows = [replace(row_of(), name=state.value, state=state) for state in reversed(State)]
    assert [row.name for row in in_order(rows)][:2] == ["failed", "unreachable"]
