# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of a job at its destination, and what a hostile destination can make of it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import Standing, State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_status import merged, standing_of_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.record import (
    find_conflict,
    make_record,
    parse_record,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import Identity, parse_state

IDENTITY = {"src_host": "old", "src": "/a/", "dest_host": "new", "dest": "/a"}
STATE = {"name": "data", "identity": IDENTITY, "phases": {}, "quiesced": False, "switch": {}, "failure": {}}
SERVING, STOPPED = STATE, {**STATE, "quiesced": True}
SWITCHING, SWITCHED = {**STATE, "switch": {"done": False}}, {**STATE, "switch": {"done": True}}
FAILURE = {"phase": "seed", "at": "x", "reason": ""}
NOW = "2026-11-21T12:00:00Z"


def found(state, age=5.0, **changes):
    record = json.loads(json.dumps(make_record(parse_state({**state, "run": {"by": "me@here"}}), "switch", NOW)))
    return {"id": "x", "age": age, "record": {**record, **changes}}


@pytest.mark.parametrize("here", [SERVING, STOPPED])
@pytest.mark.parametrize("there, stops", [(SERVING, False), (STOPPED, False), (SWITCHING, True), (SWITCHED, True)])
def test_a_switch_that_the_copy_does_not_know_stops_a_run(here, there, stops):
    problem = find_conflict(parse_state(here), found(there), "/f/state/data.json")
    assert bool(problem) is stops
    if stops:
        assert "new holds a record" in problem and "/f/state/data.json" in problem and "migrate_reset=true" in problem


def test_a_record_counts_no_more_where_the_job_was_begun_again_after_it():
    assert find_conflict(parse_state({**SERVING, "begun_again": "2026-11-21T12:00:01Z"}), found(SWITCHED), "p") == ""
    assert find_conflict(parse_state({**SERVING, "begun_again": "2026-11-21T11:00:00Z"}), found(SWITCHED), "p") != ""
    assert find_conflict(parse_state(SERVING), found(SWITCHED, at=""), "p") != ""


def test_a_record_that_is_gone_stops_a_run_only_where_there_was_one():
    assert find_conflict(parse_state(SERVING), None, "p") == ""
    told = find_conflict(parse_state({**SERVING, "kept": True}), None, "p", ["data", "home"])
    assert "has no record of job data any more" in told and '{"migrate_only": ["data", "home"]}' in told


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "all done"},
        {"stage": "splendid"},
        {"stage": 1},
        {"identity": {**IDENTITY, "src": "/b"}},
        {"identity": None},
        {"bytes_total": "many"},
        {"compared": 1},
        {"seeded": 1},
        {"by": ["me"]},
    ],
    ids=str,
)
def test_what_is_no_record_of_this_job_is_refused(changes):
    with pytest.raises(ValueError, match="cannot be read"):
        parse_record("new", Identity(**IDENTITY), found(SERVING, **changes))
    assert "cannot be read" in find_conflict(parse_state(SERVING), found(SERVING, **changes), "p")


def test_texts_and_numbers_are_bounded_and_harmless():
    record = parse_record(
        "new", Identity(**IDENTITY), found(SERVING, age=-3, failure="\x1b[2J\n" + "x" * 9000, bytes_total=10**40)
    )
    assert record and record.failure.startswith("\\x1b[2J xxx") and len(record.failure) < 600
    assert record.bytes_total == 2**63 - 1 and record.age == 0.0


def test_what_is_kept_is_small():
    state = {**STATE, "failure": {**FAILURE, "reason": "x" * 100_000}, "run": {"by": "y" * 100_000}}
    assert len(json.dumps(make_record(parse_state(state), "seed", NOW, "z" * 100_000))) < 4000


@pytest.mark.parametrize(
    "state, changes, word",
    [
        (SERVING, {}, State.WAITING),
        (SERVING, {"failure": "no space"}, State.FAILED),
        (SWITCHING, {}, State.SWITCHING),
        (SWITCHED, {}, State.SWITCHED),
        (SWITCHED, {"compared": True}, State.DONE),
    ],
)
def test_where_a_job_stands_by_its_record(state, changes, word):
    assert standing_of_record(parse_record("new", Identity(**IDENTITY), found(state, **changes))).state is word


@pytest.mark.parametrize(
    ("phase", "seeded", "done"),
    [("seed", False, 0), ("seed", True, 70), ("sync", True, 70), ("seed", None, 0), ("sync", None, 70)],
)
def test_how_much_is_done_by_a_record(phase, seeded, done):
    """Earlier versions say nothing of the first copy."""
    record = parse_record("new", Identity(**IDENTITY), found(SERVING, phase=phase, seeded=seeded, bytes_total=70))
    assert standing_of_record(record).bytes_done == done


def test_the_copy_here_decides_and_the_younger_of_two_tells():
    kept = Standing("sync", State.WAITING, "sync", 5, 5, age=60.0)
    younger = Standing("sync", State.FAILED, "sync", 5, 5, age=1.0, error="no space")
    assert merged(Standing(), younger, "new") is younger
    assert merged(kept, younger, "new") is younger
    assert merged(kept, Standing("seed", State.WAITING, age=99.0), "new") is kept
    denied = merged(kept, Standing("verify", State.DONE, age=1.0), "new")
    assert (denied.state, denied.phase) == (State.WAITING, "sync") and "new has a record" in denied.error
    done = Standing("verify", State.DONE, age=60.0)
    assert merged(done, younger, "new") is done
