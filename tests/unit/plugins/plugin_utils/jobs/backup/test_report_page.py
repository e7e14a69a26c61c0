# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on all backups as a page."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.capacity import find_repositories, used_a_day
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import JobHealth
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_page import (
    make_overview,
    new_bytes_a_day,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    BackupRecord,
    PathTransfer,
    RepositorySpace,
    RunFigures,
    StepFailure,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import HookRun
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE

DAY = 86400
NOW = 1_790_000_000
GIB = 1 << 30
REPOSITORY = {"host": "store", "path": "/backup"}


def at(days):
    """Return a time so many days ago."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - days * DAY))


def history(free=100, less=2, runs=10):
    """Return the figures of a run a day, with so many GiB free at last, and so many less each day."""
    return [
        RunFigures(at(day), False, GIB if day < runs - 1 else 50 * GIB, 50 * GIB, 60, (free + less * day) * GIB, 1000)
        for day in reversed(range(runs))
    ]


def record(name="web/files", **more):
    """Return the record of a backup that is well."""
    given = {
        "host": name.split("/")[0], "name": name.split("/")[1], "repository": REPOSITORY, "at": at(0), "ended": at(0),
        "duration": 61, "snapshot": "2026-01-01T013000Z", "newest": at(0), "oldest": at(30), "verified": at(3),
        "snapshots": 30, "figures": {"new_bytes": GIB, "gone": 3, "entries": 1234}, "size": 50 * GIB,
        "space": RepositorySpace(1000 * GIB, 100 * GIB, 2000, 1000), "history": history(),
        "transfers": [PathTransfer("/srv", "stream", encrypted=True, files_total=1234, bytes_total=50 * GIB)],
        "kept": {"2026-01-01T013000Z": ["latest", "daily"]}, "removed": ["2025-12-01T013000Z"], **more,
    }  # fmt: skip
    return BackupRecord(name, **given)


def health(made, state="ok", why=(), **more):
    """Return the state of a job."""
    return JobHealth(
        made.id, made.host, made.name, REPOSITORY, made, state, list(why), "Fix it." if why else "", True, 3600,
        stale_after=2 * DAY, **more,
    )  # fmt: skip


SICK = health(
    record("db/dump", failures=[StepFailure("transfer", "no room")], failing_since=at(4), notes=["2 entries changed"],
           hooks=[HookRun("before", "db", "freeze", result="failed", rc=1, began=1.0, ended=3.5)]),
    "failed", ["transfer: no room"],
)  # fmt: skip
NEVER = JobHealth("new/x", "new", "x", REPOSITORY, None, "never", [], "", False, None)


def plain(entries):
    """Return the text of a page, which is well-formed."""
    outline = Outline.of(render_page(make_overview(entries, at(0), "ada@control")))
    assert outline.problems == []
    return outline.plain


def test_the_page_begins_with_what_is_kept_and_what_needs_attention():
    page = make_overview([health(record()), NEVER, SICK], at(0), "ada@control")
    facts = {fact.label: (fact.value, fact.note) for fact in page.facts}
    assert page.verdict == "1 of 3 backups need attention: 1 failed, 1 not run yet, 1 well."
    assert facts["Size of the newest snapshots"] == ("100.0 GiB", "with holes; 3 backups of 3 hosts")
    assert (
        facts["Repositories"] == ("full in about 50 days", "store:/backup") and facts["New data"][0] == "2.0 GiB a day"
    )
    assert facts["Last verified"][0] == "2 of 3 completely"
    assert (
        page.attention[0].subject.startswith("db/dump: failed since 2026-09-17")
        and page.attention[0].advice == "Fix it."
    )


def test_a_check_of_parts_is_no_verification_and_is_told():
    checked = {"sound": True, "files_read": 437, "parts": [3], "of": 7}
    one = health(record(verified=None, check=checked))
    (fact,) = [fact for fact in make_overview([one], at(0)).facts if fact.label == "Last verified"]
    assert fact.value == "0 of 1 completely" and "has read parts of the snapshots" in fact.note
    assert "437 files read, 1 part of 7" in plain([one]) and "1 backup of 1 host" in plain([one])
    (fact,) = [fact for fact in make_overview([health(record(verified=None))], at(0)).facts if "verified" in fact.label]
    assert fact.note == "no check has read the contents of a snapshot yet"


def test_the_sick_come_first_with_ages_and_since_when():
    text = plain([health(record()), NEVER, SICK])
    assert text.index("\n| db/dump") < text.index("\n| new/x") < text.index("\n| web/files")
    (row,) = [
        line for line in text.splitlines() if line.startswith("| db/dump in store:/backup | ✕ failed transfer: no")
    ]
    assert "1 h old, stale after 2 d" in row and row.endswith("| ✕ 2026-09-17 14:13:20 UTC |")
    assert "| Sum of 3 | 1 sick |" in text


def test_a_repository_has_its_room_and_the_day_on_which_it_is_full():
    text = plain([health(record())])
    (row,) = [line for line in text.splitlines() if line.startswith("| store:/backup |")]
    assert row.startswith("| store:/backup | 1 | 100.0 GiB 10 % of 1000.0 GiB | 1,000 50 % of 2,000 | 2.0 GiB |")
    assert "| 2026-11-10 in about 50 days |" in row


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (record(history=history(10, 2)), "10.0 GiB free; full in about 5 days"),
        (record(history=[], space=RepositorySpace(1000 * GIB, GIB, None, None)), "store:/backup has little room left"),
        (record(history=[], space=RepositorySpace(10, 9, 2000, 1)), "store:/backup has little inodes left"),
    ],
)
def test_little_room_needs_attention(made, told):
    made.space = replace(made.space, bytes_free=10 * GIB) if made.history else made.space
    text = plain([health(made)])
    assert told in text and "▲ All is well with 1 backup." in text


@pytest.mark.parametrize(
    ("free", "used"),
    [
        ([], None),
        ([(at(1), 5.0), (at(0), 4.0)], None),
        ([(at(0.2), 5.0), (at(0.1), 5.0), (at(0), 4.0)], None),
        ([(at(2), 50.0), (at(1), 40.0), (at(0), 30.0)], 10.0),
        ([(at(2), 30.0), (at(1), 30.0), (at(0), 30.0)], 0.0),
        ([(at(100), 1e9), (at(2), 20.0), (at(1), 25.0), (at(0), 30.0)], -5.0),
    ],
)
def test_the_trend_is_that_of_the_last_month_and_is_not_guessed(free, used):
    found = used_a_day(free)
    assert found is None if used is None else found == pytest.approx(used, abs=1e-3)


def test_a_repository_that_does_not_become_full_has_no_day():
    (one,) = find_repositories([health(record(history=history(less=0)))])
    assert one.days_left is None and "not by this trend" in plain([health(record(history=history(less=0)))])


def test_a_repository_that_is_almost_steady_has_no_day():
    text = plain([health(record(history=history(less=1e-6)))])
    assert "in more than 10 years" in text and "not known when full" in text and "full in about" not in text


def test_the_first_snapshot_is_no_daily_growth():
    assert new_bytes_a_day(history()) == pytest.approx(GIB)
    assert new_bytes_a_day(history(runs=1)) is None and new_bytes_a_day([]) is None


def test_a_job_has_its_runs_transfers_hooks_and_snapshots():
    text = plain([SICK])
    assert "| freeze | before | db | 2.5 s | ✕ failed (rc 1) |" in text
    assert "| /srv | stream | 1,234 | 50.0 GiB |" in text
    assert "| 2025-12-01T013000Z | ▲ removed |" in text and "| 2026-01-01T013000Z | kept | latest, daily |" in text
    assert "New data by day" in text and "Time of each run" in text


def test_a_busy_job_and_no_job_are_shown():
    assert "busy" in plain([replace(health(record()), busy="another run is at work")])
    assert "There are no backups." in plain([])


def test_whatever_a_host_says_is_shown_as_text():
    made = record(notes=[HOSTILE], transfers=[PathTransfer(HOSTILE, HOSTILE)], kept={HOSTILE: [HOSTILE]})
    html = render_page(make_overview([health(made, "failed", [HOSTILE * 1000])], at(0), HOSTILE))
    assert Outline.of(html).problems == [] and "</script>" not in html and "\u202e" not in html


def test_a_job_in_the_table_alone_takes_little_room():
    sizes = [len(render_page(make_overview([health(record())] * count, at(0))).encode()) for count in (30, 60)]
    assert (sizes[1] - sizes[0]) / 30 < 2_500
