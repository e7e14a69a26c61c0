# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions about copies of snapshots: which are made, what repairs which, where none may be, their health."""

from __future__ import annotations

import calendar
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.copies import (
    CopyState,
    WantedContent,
    choose_snapshots,
    copy_job,
    find_same_place,
    lag_of,
    plan_repair,
    repair_job,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import find_sick, judge, summarize
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.metrics import write_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_page import make_overview
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_text import render_summary
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    BackupRecord,
    BackupState,
    BackupStep,
    ListedSnapshot,
    SnapshotAnswers,
    SnapshotList,
    copy_before,
    make_record,
    parse_record,
)

DAYS = [f"2026-11-{day:02d}T120000Z" for day in range(1, 11)]
NOW = calendar.timegm((2026, 11, 10, 13, 0, 0))
JOB = {
    "name": "data",
    "host": "web",
    "src": "/srv",
    "repository": {"host": "vault", "path": "/b"},
    "keep": {"last": 9},
    "stale_after": "2d",
    "trust": "full",
    "exclude": ["*.tmp"],
    "one_file_system": True,
    "copies": [{"host": "vault2", "path": "/c/", "bwlimit": "20M"}],
}
(RUN,) = make_runs([JOB], {"all": ["web", "vault", "vault2"]})
(COPY,) = RUN["copies"]


@pytest.mark.parametrize(
    ("made", "there", "keep", "expected"),
    [
        (DAYS, [], {"last": 3}, DAYS[-3:]),
        (DAYS, DAYS[-2:], {"last": 3}, DAYS[-3:-2]),
        (DAYS, DAYS, {"last": 3}, []),
        (DAYS[:4], DAYS[4:], {"last": 3}, []),  # what the copy has is newer
        (DAYS, [], {"weekly": 2}, [DAYS[7], DAYS[9]]),
        ([], DAYS, {"last": 3}, []),
        ([*DAYS, "2027-01-01T000000Z"], [], {"last": 1}, DAYS[-1:]),  # a clock was wrong
        (["latest", ".unfinished", "aside-2026-11-10T120000Z"], [], {"last": 3}, []),
    ],
)
def test_a_copy_gets_what_it_lacks_and_would_keep(made, there, keep, expected):
    assert choose_snapshots(made, there, keep, "UTC", NOW) == expected


def test_a_copy_is_as_far_behind_as_its_newest_snapshot():
    assert (lag_of(90, 30), lag_of(30, 90), lag_of(None, 1), lag_of(1, None)) == (60, 0, None, None)


def test_contents_come_from_as_few_snapshots_as_have_them():
    wanted = [WantedContent("a", DAYS[:3]), WantedContent("b", DAYS[1:2]), WantedContent("c", DAYS[5:6])]
    assert plan_repair(wanted, DAYS[:5]) == {DAYS[2]: ["a"], DAYS[1]: ["b"]}
    assert plan_repair([*wanted[1:], wanted[0]], DAYS[:5]) == {DAYS[1]: ["b", "a"]}
    assert plan_repair([WantedContent("a", DAYS[:3]), WantedContent("a", DAYS[2:4])], DAYS) == {DAYS[2]: ["a"]}
    assert plan_repair(wanted, []) == {}


def test_the_host_of_the_copy_always_connects():
    job = copy_job(RUN, COPY, DAYS[0])
    assert (job["src"], job["dest"]) == (f"/b/web/data/{DAYS[0]}/", "/c/web/data/.unfinished")
    assert (job["connect"], job["bwlimit"], job["trust"]) == ("pull", "20M", "full")
    assert not {"exclude", "one_file_system"} & set(job)
    first: Any = RUN["repository"]
    for dest, connect in ((COPY, "pull"), (first, "push")):
        source = COPY if dest is first else first
        back = repair_job(RUN, source, dest, DAYS[0], ["a/b*"], is_to_copy=dest is COPY, bwlimit="0")
        assert (back["src_host"], back["connect"]) == (source["host"], connect)
        assert back["dest"] == f"{dest['path']}/web/data/.repair/data"
        assert back["filter"] == ["+ /a", "+ /a/b\\*", "- *"]


def place(machine: str, real: str, device_path: str = "") -> Any:
    return {"machine": machine, "path": {"real": real, "device_path": device_path}}


@pytest.mark.parametrize(
    ("copy", "client", "expected"),
    [
        (place("two", "/b"), None, ""),
        (place("two", "/b"), place("web", "/"), ""),
        (place("one", "/c", "8:1 /c"), None, ""),
        (place("one", "/b"), None, "the repository itself"),
        (place("one", "/b/copy"), None, "inside the other"),
        (place("one", "/"), None, "inside the other"),
        (place("one", "/mnt", "8:1 /b"), None, "the repository itself"),
        (place("web", "/c"), place("web", "/"), "the client itself"),
    ],
)
def test_a_copy_is_in_another_place(copy, client, expected):
    found = find_same_place(copy, place("one", "/b", "8:1 /b"), client)
    assert expected in found and bool(expected) == bool(found)


def test_two_copies_of_a_job_are_in_different_places():
    first, third = place("one", "/b"), place("three", "/c")
    assert find_same_place(place("two", "/c"), first, None, [third]) == ""
    assert "another copy of the job" in find_same_place(place("three", "/c/in"), first, None, [third])


def listed(*found: str) -> SnapshotList:
    return SnapshotList([ListedSnapshot(name, "complete", f"{name[:13]}:00:00Z") for name in found])


def test_a_job_without_copies_has_no_such_step_and_one_with_copies_after_a_failure_too():
    state = BackupState("2026-11-10T12:00:00Z", claim="a token", said=SnapshotAnswers(list=listed(DAYS[0])))
    assert BackupStep.COPY not in state.find_steps()
    assert BackupStep.COPY in state.find_steps(has_copies=True)
    state.said.list = None  # nobody knows what there is to copy
    assert BackupStep.COPY not in state.find_steps(has_copies=True)


def make(copies: list[CopyState], before: BackupRecord | None = None) -> BackupRecord:
    said = SnapshotAnswers(list=listed(*DAYS))
    return make_record(
        RUN, BackupState("2026-11-10T12:00:00Z", said=said, copies=copies), "2026-11-10T12:30:00Z", before
    )


def test_the_record_keeps_what_is_known_of_a_copy_that_this_run_did_not_see():
    first = make([CopyState("vault2", "/c", "2026-11-08T12:00:00Z", snapshots=8, copied=DAYS[:8], bytes_sent=5)])
    assert first.copies[0].lag_seconds == 2 * 86400 and parse_record(first.dump()) == first
    (later,) = make([], first).copies
    assert (later.newest, later.snapshots, later.copied, later.lag_seconds) == (
        "2026-11-08T12:00:00Z",
        8,
        [],
        2 * 86400,
    )
    assert make([]).copies == [CopyState("vault2", "/c")]
    elsewhere: Any = {**COPY, "path": "/d"}
    assert copy_before(elsewhere, first) == CopyState("vault2", "/d")


def test_a_copy_that_fails_or_is_old_needs_attention_and_the_backup_is_well():
    good = CopyState("vault2", "/c", "2026-11-10T12:00:00Z", snapshots=3, copied=DAYS[-1:], bytes_sent=2048, repaired=2)
    bad = CopyState(
        "vault2", "/c", "2026-11-09T12:00:00Z", error="it cannot be reached", failing_since="2026-11-09T13:00:00Z"
    )
    old = CopyState("vault2", "/c", "2026-11-01T12:00:00Z")
    for copy, state, word in ((good, "ok", ""), (bad, "uncopied", "cannot be reached"), (old, "uncopied", "days old")):
        record = make([copy])
        (health,) = entries = judge([RUN], [record], ["web/data"], ["web/data"], NOW)
        assert health.state == state and (not word or word in health.why[0] or "d " in health.why[0])
        assert [one.name for one in find_sick(entries)] == (["web/data"] if state != "ok" else [])
        assert summarize(entries, [record], [], "", "", False)["uncopied"] == (state != "ok")
        labels = '{host="web",job="data",repository="vault:/b",copy="vault2:/c"}'
        assert f"longhaul_backup_copy_healthy{labels} {int(not copy.error)}\n" in write_metrics(entries)
        tables = make_overview(entries, "2026-11-10T13:00:00Z").sections
        assert "Copies" in [section.title for section in tables]
    assert any(
        "copied 2026-11-10T120000Z, sent 2.0 KiB; repaired 2 files" in line
        for line in render_summary(make([good]), False)
    )
    assert any(line == "copy in vault2:/c failed: it cannot be reached" for line in render_summary(make([bad]), False))
