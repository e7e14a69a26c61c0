# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An audit: answers of hosts, what they come to, and the page."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.audit import (
    ClockStanding,
    HostAnswer,
    compare_clock,
    find_uncovered,
    make_audit,
    parse_now,
    parse_repository,
    summarize_audit,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.audit_page import make_audit_page, tell_audit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.copies import CopyState
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.drill import DrillRecord
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import judge
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.hosts import ask_for_audit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import BackupRecord
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import Tone
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE

AT = "2026-11-21T12:00:00Z"
NOON = 1795262400
GROUPS = {"all": ["web1", "web2", "vault", "switch1", "db1"], "network": ["switch1"]}
VAULT = "vault:/srv/backup"
DAYS = [f"2026-11-{day:02d}T013000Z" for day in range(2, 22)]
FOLDER: dict[str, Any] = {
    "host": "web1", "job": "data", "complete": DAYS, "complete_total": 20, "aside": [], "verified": 18,
    "verified_oldest": "2026-11-14T02:00:00Z", "verified_newest": "2026-11-20T02:00:00Z", "parts_read": 1,
    "parts_of": 7, "damaged": [], "missing": [], "decisions": [], "decisions_total": 0, "pruned": 3,
    "pruned_at": "2026-11-20T01:31:00Z", "pruned_by": "ada@control1",
}  # fmt: skip
ACCEPTED = {
    "act": "accepted", "name": DAYS[0], "at": "2026-11-03T09:00:00Z", "by": "bob@control2", "why": "", "was": "",
}  # fmt: skip
SPACE = {"bytes_total": 1000, "bytes_free": 400, "files_total": None, "files_free": None}


def job(name: str = "data", **more: Any) -> dict[str, Any]:
    given = {"name": name, "hosts": ["web1"], "src": "/srv", "repository": {"host": "vault", "path": "/srv/backup"}}
    return {**given, "keep": {"daily": 7}, **more}


def answer(*folders: Any, **more: Any) -> dict[str, Any]:
    return {"changed": False, "now": NOON, "space": SPACE, "folders": copy.deepcopy([*folders]), "unread": [], **more}


def audit(*folders: Any, jobs: Any = None, failed: Any = None, exempt: Any = (), **more: Any) -> Any:
    runs = make_runs([job()] if jobs is None else jobs, GROUPS)
    found = parse_repository(answer(*folders, **more))
    answers = {} if failed else {"vault": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
    return make_audit(runs, judge(runs, [], [], [], NOON), GROUPS, exempt, answers, failed or {}, AT, "ada@control1")


def plain(found: Any) -> str:
    outline = Outline.of(render_page(make_audit_page(found)))
    assert outline.problems == []
    return outline.plain


@pytest.mark.parametrize(
    ("exempt", "uncovered", "excused"),
    [
        ((), ["web2", "switch1", "db1"], 1),
        (("network", "db1"), ["web2"], 3),
        (("web1",), ["web2", "switch1", "db1"], 1),  # it has a job
        (("gone",), ["web2", "switch1", "db1"], 1),
    ],
)
def test_hosts_without_a_job_are_found_but_for_those_that_need_none(exempt, uncovered, excused):
    assert find_uncovered(GROUPS, make_runs([job()], GROUPS), exempt) == (uncovered, excused)


@pytest.mark.parametrize(
    ("answer_of_host", "offset", "within", "is_off"),
    [
        (HostAnswer(100.0, 102.0, 101.0, 101.0, {}, {}), 0.0, 1.0, False),
        (HostAnswer(100.0, 102.0, 401.0, 401.0, {}, {}), 300.0, 1.0, True),
        (HostAnswer(100.0, 102.0, 1.0, 1.0, {}, {}), -100.0, 1.0, True),
        (HostAnswer(100.0, 300.0, 130.0, 130.0, {}, {}), -70.0, 100.0, False),  # it may agree
        (HostAnswer(100.0, 112.0, 1000.0, 1010.0, {}, {}), 899.0, 1.0, True),  # it read for ten seconds
    ],
)
def test_a_clock_is_known_as_exactly_as_the_answer_was_quick(answer_of_host, offset, within, is_off):
    found = compare_clock("web1", answer_of_host)
    assert (found.offset, found.within, found.is_off) == (offset, within, is_off)


def test_all_is_well():
    found = audit({**FOLDER, "verified": 20, "parts_read": 7}, exempt=["web2", "network", "db1"])
    page = make_audit_page(found)
    assert (page.tone, page.attention) == (Tone.GOOD, []) and "Nothing was found" in page.verdict
    (one,) = found.jobs
    assert (one.newest, one.oldest, one.snapshots) == ("2026-11-21T01:30:00Z", "2026-11-02T01:30:00Z", 20)
    assert [(rule.rule, rule.wanted, rule.there) for rule in one.rules] == [("daily", 7, 7)]
    assert tell_audit(found) == ["Nothing was found to be wrong with 1 backup of 5 hosts."]


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ({"complete": [*DAYS[:-4], DAYS[-1]]}, "Fewer snapshots than wanted (1)"),
        ({"missing": DAYS[:2]}, "Gone (2): Snapshots that nothing of this collection removed are gone: web1/data"),
        ({"damaged": DAYS[:2]}, "Damaged (1)"),
        ({"verified": 0, "parts_read": 0}, "Never verified (1)"),
        ({"complete": [], "complete_total": 0, "verified": 0, "parts_read": 0}, "Without a snapshot (1)"),
    ],
)  # fmt: skip
def test_findings_of_a_job_are_told(folder, words):
    found = audit({**FOLDER, **folder}, exempt=["web2", "network", "db1"])
    lines = tell_audit(found)
    assert lines[0].startswith("1 finding in") and words in lines[1].replace("- ", "", 1)
    assert words.split(":")[0] in plain(found)


@pytest.mark.parametrize(
    ("there", "copied", "words"),
    [
        (FOLDER, ("2026-11-21T01:30:00Z", 20), ""),
        ({**FOLDER, "complete": DAYS[:-1], "complete_total": 19}, ("2026-11-20T01:30:00Z", 19), ""),
        ({**FOLDER, "damaged": DAYS[:1]}, ("2026-11-21T01:30:00Z", 20), f"{DAYS[0]} is damaged"),
        (None, (None, 0), "there is no snapshot"),
    ],
)
def test_a_copy_is_told_as_its_host_has_it(there, copied, words):
    runs = make_runs([job(copies=[{"host": "db1", "path": "/srv/copy"}])], GROUPS)
    answers = {
        host: HostAnswer(NOON, NOON + 1, NOON, NOON, {path: parse_repository(answer(*filter(None, folders)))}, {})
        for host, path, folders in (("vault", "/srv/backup", [FOLDER]), ("db1", "/srv/copy", [there]))
    }
    found = make_audit(runs, judge(runs, [], [], [], NOON), GROUPS, [], answers, {}, AT, "ada@control1")
    (one,) = found.jobs[0].copies
    assert (one.newest, one.snapshots) == copied and one.error == words and not found.orphans
    assert [room.name for room in found.capacity] == ["vault:/srv/backup", "db1:/srv/copy"]
    assert ("Copies that fail (1)" in plain(found)) == bool(words) and one.lag_seconds == {19: 86400, 0: None}.get(
        copied[1], 0
    )


def test_folders_without_a_job_and_hosts_without_one_are_told():
    found = audit(FOLDER, {**FOLDER, "host": "old", "job": "data"}, {**FOLDER, "job": "former", "complete": []})
    assert [(one.host, one.job) for one in found.orphans] == [("old", "data"), ("web1", "former")]
    text = plain(found)
    assert (
        "Folders in the repositories without a job (2)" in text and "Hosts of the inventory without a job (3)" in text
    )
    summary = summarize_audit(found, "/r/audit.html", check_mode=False)
    assert (summary["orphans"], summary["uncovered"], summary["report"]) == (2, 3, "/r/audit.html")


def test_decisions_are_told_the_newest_first_with_who():
    later = {**ACCEPTED, "act": "discarded", "at": "2026-11-20T09:00:00Z", "job": "x/y", "repository": "no"}
    found = audit({**FOLDER, "decisions": [ACCEPTED]}, {**FOLDER, "job": "etc", "decisions": [later]})
    assert [(one.act, one.job, one.repository) for one in found.decisions] == [
        ("discarded", "web1/etc", VAULT),
        ("accepted", "web1/data", VAULT),
    ]
    text = plain(found)
    assert "▲ discarded" in text and "bob@control2" in text and text.index("discarded") < text.index("▲ accepted")


def test_what_could_not_be_read_is_the_first_finding():
    found = audit(failed={"vault": "no route to host"})
    (one,) = found.jobs
    assert one.unread and not one.is_unverified and found.clocks == [ClockStanding("vault", reason="no route to host")]
    page = make_audit_page(found)
    assert page.tone is Tone.BAD and "not complete" in page.verdict and "no route to host" in page.attention[0].text
    partly = audit(FOLDER, unread=[{"host": "db1", "job": "dump", "snapshot": "", "reason": "belongs to user 7"}])
    assert partly.unread == [f"{VAULT}/db1/dump: belongs to user 7"]


def test_a_snapshot_that_somebody_has_accepted_since_is_no_finding():
    runs = make_runs([job()], GROUPS)
    record = BackupRecord("web1/data", aside=f"aside-{DAYS[0]} is suspicious", aside_name=f"aside-{DAYS[0]}")
    for aside, state in ([f"aside-{DAYS[0]}"], "aside"), ([], "ok"):
        found = parse_repository(answer({**FOLDER, "aside": aside}))
        answers = {"vault": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
        made = make_audit(runs, judge(runs, [record], [], [], NOON), GROUPS, (), answers, {}, AT, "ada@control1")
        assert made.jobs[0].state == state and any("Failing" in line for line in tell_audit(made)) == bool(aside)


@pytest.mark.parametrize(
    ("record", "state"),
    [({}, "ok"), ({"copies": [CopyState("safe", "/c", error="no route")]}, "uncopied"), ({"old": True}, "stale")],
)
def test_a_decision_hides_nothing_else_that_is_wrong(record, state):
    runs = make_runs([job(stale_after="2d", copies=[{"host": "safe", "path": "/c"}])], GROUPS)
    days = DAYS[:3] if record.pop("old", False) else DAYS
    before = BackupRecord("web1/data", aside="it is suspicious", aside_name=f"aside-{DAYS[0]}", **record)
    found = parse_repository(answer({**FOLDER, "complete": days}))
    answers = {"vault": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
    made = make_audit(runs, judge(runs, [before], [], [], NOON), GROUPS, (), answers, {}, AT, "ada@control1")
    assert made.jobs[0].state == state


def test_copies_are_no_folders_without_a_job():
    copied = job(copies=[{"host": "db1", "path": "/srv/backup"}])
    other = job("etc", repository={"host": "db1", "path": "/srv/backup"})
    runs = make_runs([copied, other], GROUPS)
    found = parse_repository(answer(FOLDER, {**FOLDER, "job": "etc"}, {**FOLDER, "job": "old"}))
    answers = {"db1": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
    made = make_audit(runs, judge(runs, [], [], [], NOON), GROUPS, (), answers, {}, AT, "ada@control1")
    assert [one.job for one in made.orphans] == ["old"]
    assert find_uncovered(GROUPS, make_runs([copied], GROUPS), ()) == (["web2", "switch1"], 2)


@pytest.mark.parametrize("error", ["", "no route to host"])
def test_copies_drills_and_protected_snapshots_are_shown_where_there_are_any(error):
    copies = [{"host": "safe", "path": "/copy"}, {"host": "safe", "path": "/copy2"}]
    runs = make_runs([job(copies=copies)], {**GROUPS, "all": [*GROUPS["all"], "safe"]})
    kept = CopyState("safe", "/copy", "2026-11-19T01:30:00Z", lag_seconds=172800, snapshots=3, error=error)
    drill = DrillRecord(AT, "safe", "/scratch", succeeded="" if error else AT, failure=error and "3 files differ")
    record = BackupRecord(
        "web1/data", copies=[kept, replace(kept, path="/copy2", newest=AT, lag_seconds=0, error="")], drill=drill
    )
    found = parse_repository(answer({**FOLDER, "protected": DAYS[:2]}))
    answers = {"vault": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
    made = make_audit(runs, judge(runs, [record], [], [], NOON), GROUPS, (), answers, {}, AT, "ada@control1")
    text = plain(made)
    assert "2 are protected" in text and "| Second copy | Last drill |" in text
    assert ("2 d behind" in text) != bool(error) and "in safe:/copy" in text
    assert ("Copies that fail (1)" in text and "Restores that fail (1)" in text) == bool(error)
    assert "Second copy" not in plain(audit(FOLDER))


def test_a_snapshot_of_the_future_is_never_the_newest():
    found = audit({**FOLDER, "complete": ["2027-11-21T013000Z", *DAYS]})
    assert found.jobs[0].newest == "2026-11-21T01:30:00Z"


@pytest.mark.parametrize(
    "change",
    [
        {"host": "../x"}, {"job": ".hidden"}, {"complete": ["x"]}, {"complete": ["aside-" + DAYS[0]]}, {"aside": DAYS},
        {"complete": [1]}, {"verified": -1}, {"verified": 1 << 70}, {"verified": True}, {"missing": ["/etc"]},
        {"verified_oldest": "now"}, {"verified_newest": "2026-13-01T00:00:00Z"}, {"pruned_at": "x" * 99},
        {"complete": DAYS * 101}, {"decisions": [ACCEPTED] * 2001}, {"decisions": [{**ACCEPTED, "at": ""}]},
        {"damaged": [".removing-" + DAYS[0]]}, {"parts_of": None},
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_is_refused(change):
    with pytest.raises(WrongShape):
        parse_repository(answer({**FOLDER, **change}))


@pytest.mark.parametrize("more", [{"now": -1}, {"now": float("inf")}, {"space": {"bytes_free": -1}}, {"folders": {}}])
def test_a_repository_that_cannot_be_is_refused(more):
    with pytest.raises(WrongShape):
        parse_repository(answer(FOLDER, **more))
    for value in (None, {}, {"now": "1"}, {"now": -5}, {"now": float("nan")}):
        with pytest.raises(WrongShape):
            parse_now(value)


def test_hostile_texts_are_harmless_and_short_in_the_page_and_the_json():
    loud = HOSTILE + "\x1b[2J" + "y" * 10_000
    decision = {**ACCEPTED, "by": loud, "why": loud, "act": loud, "was": loud, "name": loud}
    folder = {**FOLDER, "decisions": [decision], "pruned_by": loud}
    found = audit(folder, unread=[{"host": loud, "job": loud, "snapshot": loud, "reason": loud}] * 200)
    page = render_page(make_audit_page(found))
    assert Outline.of(page).problems == [] and "<script" not in page and "\x1b" not in page and len(page) < 100_000
    dumped = json.dumps(found.dump())
    assert len(dumped) < 200_000 and "y" * 201 not in dumped and "standings" not in found.dump()
    assert all(len(line) < 6_000 and "\x1b" not in line for line in tell_audit(found))


def test_a_thousand_jobs_make_one_page():
    groups = {"all": [f"web{number}" for number in range(1000)] + ["vault"]}
    runs = make_runs([job(hosts=groups["all"][:-1])], groups)
    found = parse_repository(answer(*({**FOLDER, "host": host} for host in groups["all"][:-1])))
    answers = {"vault": HostAnswer(NOON, NOON + 1, NOON, NOON, {"/srv/backup": found}, {})}
    made = make_audit(runs, judge(runs, [], [], [], NOON), groups, (), answers, {}, AT, "ada@control1")
    page = render_page(make_audit_page(made))
    assert len(made.jobs) == 1000 and len(page) < 2_000_000


def test_a_host_is_asked_in_one_execution():
    asked: list[Any] = []

    def run(*steps: Any) -> Any:
        asked.append([(step["do"], step.get("place")) for step in steps])
        return [{"now": NOON}, answer(FOLDER), {"refused": "no\nrepository"}]

    runner: Any = SimpleNamespace(name="vault", run=run)
    found = ask_for_audit(runner, ["/srv/backup", "/srv/gone"])
    assert asked == [[("overview", None), ("snapshot", ["/srv/backup", "", ""]), ("snapshot", ["/srv/gone", "", ""])]]
    assert list(found.repositories) == ["/srv/backup"] and found.refused == {"/srv/gone": "no repository"}
    runner.run = lambda *_steps: [{"now": NOON}, {"folders": 7}, {}]
    with pytest.raises(HostFailed, match="vault: its answer cannot be read"):
        ask_for_audit(runner, ["/srv/backup", "/srv/gone"])
