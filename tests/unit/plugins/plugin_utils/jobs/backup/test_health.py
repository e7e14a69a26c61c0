# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said of the health of backups: records, states, metrics."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import replace
from typing import Any

import pytest
from ansible.parsing.splitter import parse_kv
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import find_sick, judge, summarize
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.metrics import write_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_text import render_overall
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    MOST_RUNS,
    BackupRecord,
    BackupState,
    PathTransfer,
    RunFigures,
    StepFailure,
    make_record,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import render_failures

NOON = 1795262400  # 2026-11-21T12:00:00Z
DAY = 86400
RUN: Any = {
    "id": "web1/data",
    "host": "web1",
    "name": "data",
    "repository": {"host": "vault", "path": "/srv/backup"},
    "stale_after": 2 * DAY,
    "copies": [],
}
COMPLETE = {"name": "2026-11-21T110000Z", "state": "complete", "time": "2026-11-21T11:00:00Z", "reason": ""}
OLDER = {"name": "2026-11-20T110000Z", "state": "complete", "time": "2026-11-20T11:00:00Z", "reason": ""}
ASIDE = {
    "name": "aside-2026-11-21T113000Z",
    "state": "aside",
    "time": "2026-11-21T11:30:00Z",
    "reason": "60 % are gone",
}
SAID = {
    "begin": {"path": "/b", "resumed": True},
    "finish": {"name": "2026-11-21T110000Z", "figures": {"bytes": 5, "new_bytes": 2, "entries": 3, "gone": 0}},
    "list": {"snapshots": [OLDER, COMPLETE]},
    "prune": {"removed": [OLDER["name"]], "kept": {COMPLETE["name"]: ["latest"]}},
    "check": {"sound": True, "checked": {"of": 7, "parts": [1]}},
}


def figures(number: int, free: int) -> RunFigures:
    return RunFigures(f"2026-11-{number:02d}T11:00:00Z", False, 2, 5, 60, free, 100)


def record(said: Any = None, failures: Any = (), before: BackupRecord | None = None) -> BackupRecord:
    state = BackupState("2026-11-21T10:59:58Z", notes=["one", "one"], failures=[*failures])
    state.said.update(SAID if said is None else said)
    return make_record(RUN, state, "2026-11-21T11:01:00Z", before)


def failed(step: str, reason: str) -> list[StepFailure]:
    return [StepFailure(step, reason)]


def state(found, now=NOON, wanted=("web1/data",), made=("web1/data",), run=None):
    (entry,) = judge([run or RUN], [found] if found else [], wanted, made, now)
    return entry.state, "; ".join(entry.why)


def test_a_snapshot_that_was_set_aside_has_the_commands_to_look_at_it_and_to_accept_it():
    found = record({**SAID, "list": {"snapshots": [OLDER, COMPLETE, ASIDE]}})
    (one,) = judge([RUN], [found], [RUN["id"]], [RUN["id"]], NOON, inventories=["/etc/my hosts", "b.yml"])
    place = "repository=/srv/backup host=web1 job=data"
    begin = "ansible -i '/etc/my hosts' -i b.yml vault -m longhaul.fleet.snapshot -a"
    name = ASIDE["name"]
    lines = render_failures(find_sick([one]))
    assert lines[1:] == [
        f"  next: Look at what differs: {begin} 'action=diff new={name} {place}'",
        f"  Then accept the snapshot (action=discard removes it instead): {begin} 'action=accept name={name} {place}'",
    ]
    strange = {**RUN, "repository": {"host": "vault", "path": '/srv/it\'s "here"'}}
    (one,) = judge([strange], [found], [], [], NOON)
    told = shlex.split(one.next.splitlines()[0].partition(": ")[2])
    assert parse_kv(told[-1])["repository"] == '/srv/it\'s "here"' and told[:2] == ["ansible", "vault"]


def test_a_job_at_which_another_run_is_at_work_keeps_its_state_and_its_metrics():
    why = "ada@control1 has been working on job web1/data for 12 min"
    runs = [RUN, {**RUN, "id": "web1/etc", "name": "etc"}]
    records = [record(failures=failed("transfer", "no line")), replace(record(), id="web1/etc")]
    ids = [run["id"] for run in runs]
    found = judge(runs, records, ids, ids[1:], NOON, busy={ids[0]: why})
    assert [(one.state, one.busy) for one in found] == [("failed", why), ("ok", "")] and find_sick(found) == []
    assert write_metrics(found) == write_metrics(judge(runs, records, [], [], NOON))
    assert summarize(found, [], [], "", "", check_mode=False)["busy"] == 1
    assert f"BUSY web1/data: 1 snapshot, the newest of 2026-11-21T11:00:00Z: {why}" in render_overall(found, "")
    # A run that did nothing else has not done what it was asked for, and one that never ends is noticed.
    (alone,) = find_sick(judge(runs[:1], records, ids[:1], [], NOON, busy={ids[0]: why}))
    assert (alone.name, alone.what, alone.reason) == ("web1/data", "is busy", why) and "Wait" in alone.next
    (stale,) = find_sick(judge(runs, records, ids, ids[1:], NOON + 9 * DAY, busy=dict.fromkeys(ids, why)))[:1]
    assert (stale.what, why[1:] in stale.reason) == ("is stale", True)


def test_a_record_has_what_happened():
    found = record()
    assert (found.duration, found.snapshots, found.newest) == (62, 1, "2026-11-21T11:00:00Z")
    assert (found.snapshot, found.resumed, found.aside) == ("2026-11-21T110000Z", True, "")
    assert found.removed == [OLDER["name"]] and found.check == {"sound": True, "of": 7, "parts": [1]}
    assert found.notes == ["one"]


def test_what_the_repository_did_not_say_is_what_it_was():
    found = record({}, failed("begin", "no"), before=record())
    assert (found.snapshots, found.newest, found.snapshot) == (1, "2026-11-21T11:00:00Z", "")
    assert record({}).newest is None


def test_no_secret_of_a_job_is_in_its_record():
    said = make_record({**RUN, "transfer": {"rsyncd_password": "hidden"}}, BackupState(""), "")
    assert "hidden" not in repr(said)


@pytest.mark.parametrize(
    "found, options, expected, words",
    [
        (record(), {}, "ok", ""),
        (record(failures=failed("prune", "no room")), {}, "failed", "prune: no room"),
        (record({**SAID, "list": {"snapshots": [OLDER, COMPLETE, ASIDE]}}), {}, "aside", "60 % are gone"),
        (record(), {"now": NOON + 2 * DAY}, "stale", "the newest one is 2 d 1 h old, and stale_after is 2 d"),
        (record(), {"now": NOON + 2 * DAY, "run": {**RUN, "stale_after": 0}}, "ok", ""),
        (record({}), {}, "stale", "there is no complete snapshot"),
        (record(), {"made": ()}, "failed", "it did not run"),
        (None, {"made": ()}, "failed", "it did not run"),
        (None, {"wanted": (), "made": ()}, "stale", "there is no complete snapshot"),
        (None, {"wanted": (), "made": (), "run": {**RUN, "stale_after": 0}}, "never", ""),
    ],
)
def test_states(found, options, expected, words):
    said, why = state(found, **options)
    assert said == expected and words in why and bool(why) == bool(words)


def test_what_would_succeed_in_check_mode_is_not_stale():
    for found, expected in ((record({}), "ok"), (record({}, failed("transfer", "no")), "failed")):
        (entry,) = judge([RUN], [found], ["web1/data"], ["web1/data"], NOON, predicted=True)
        assert entry.state == expected
    (entry,) = judge([RUN], [record({})], [], [], NOON, predicted=True)
    assert entry.state == "stale"


def test_the_worst_counts_and_all_of_it_is_told():
    both = record({"list": {"snapshots": [OLDER, ASIDE]}}, failed("check", "rot"))
    said, why = state(both, NOON + 5 * DAY)
    assert said == "failed"
    assert "check: rot" in why and "60 %" in why and "stale_after" in why


def test_the_filter_knows_the_time():
    (entry,) = judge([RUN], [record()], ["web1/data"], ["web1/data"], time.time())
    assert entry.age >= 0 and entry.wanted


def test_metrics_are_what_prometheus_reads():
    odd = {**RUN, "host": 'we"b\\1\n', "id": "other"}
    text = write_metrics(judge([RUN, odd], [record()], ["web1/data"], ["web1/data"], NOON))
    lines = text.splitlines()
    labels = 'host="web1",job="data",repository="vault:/srv/backup"'
    assert f"longhaul_backup_newest_timestamp_seconds{{{labels}}} {NOON - 3600}" in lines
    assert f"longhaul_backup_new_bytes{{{labels}}} 2" in lines
    assert f'longhaul_backup_state{{{labels},state="ok"}} 1' in lines
    assert r'longhaul_backup_healthy{host="we\"b\\1\n",job="data",repository="vault:/srv/backup"} 0' in lines
    value = re.compile(r'longhaul_backup_\w+\{(\w+="([^"\\]|\\.)*",?)+\} -?[0-9.]+')
    comment = re.compile(r"# (HELP|TYPE) longhaul_backup_\w+ .+")
    assert [line for line in lines if not value.fullmatch(line) and not comment.fullmatch(line)] == []
    for line in lines:
        if line.startswith("# TYPE"):
            assert line.split()[3] == "gauge" and lines.count(line) == 1


@pytest.mark.parametrize(
    ("steps", "later", "words"),
    [(["drill"], 0, True), (["drill"], 5 * DAY, False), (["check", "drill"], 0, False), (["check"], 0, False)],
)
def test_after_a_failed_drill_the_next_command_practises_alone(steps, later, words):
    found = record(SAID, [StepFailure(step, "rot") for step in steps])
    (entry,) = judge([RUN], [found], ["web1/data"], ["web1/data"], NOON + later)
    assert entry.state == "failed" and "-e backup_only=web1/data" in entry.next
    assert ("-e backup_drill_only=true" in entry.next) == words


def test_those_that_a_person_must_look_at_are_named():
    (one,) = judge([RUN], [], ["web1/data"], [], NOON)
    one = replace(one, why=["no space", "it is old"], next="Make room.")
    assert find_sick([replace(one, state=state) for state in ("ok", "never")]) == []
    assert find_sick([replace(one, wanted=False)]) == []
    assert render_failures(find_sick([replace(one, state=state) for state in ("failed", "aside", "stale")])) == [
        "web1/data failed: no space. It is old",
        "  next: Make room.",
        "web1/data was set aside: no space. It is old",
        "  next: Make room.",
        "web1/data is stale: no space. It is old",
        "  next: Make room.",
    ]


def test_an_entry_of_the_report_has_the_members_of_the_record():
    (one,) = judge([RUN], [record()], ["web1/data"], ["web1/data"], NOON)
    dumped = json.loads(json.dumps(one.dump()))
    assert (dumped["state"], dumped["snapshot"], dumped["age"], dumped["newest"]) == (
        "ok", "2026-11-21T110000Z", 3600, "2026-11-21T11:00:00Z",
    )  # fmt: skip
    (never,) = judge([RUN], [], [], [], NOON)
    assert "snapshot" not in never.dump() and "record" not in never.dump()


def test_the_figures_of_a_run_add_up_what_it_made():
    well, sick = record(), record(failures=failed("transfer", "no space"))
    sick.transfers = [PathTransfer("/a", bytes_sent=7), PathTransfer("/b", bytes_sent=5)]
    runs = [RUN, {**RUN, "id": "web2/data", "host": "web2"}]
    entries = judge(
        runs, [well, replace(sick, id="web2/data")], [run["id"] for run in runs], ["web1/data", "web2/data"], NOON
    )
    failures = find_sick(entries)
    found = summarize(entries, [well, sick], failures, "2026-11-21T12:00:00Z", "/srv/report.html", check_mode=False)
    assert (found["jobs"], found["wanted"], found["made"], found["ok"], found["failed"]) == (2, 2, 2, 1, 1)
    assert (found["bytes_sent"], found["bytes_new"], found["removed"]) == (12, 4, 2)
    assert [(one["name"], one["reason"]) for one in found["failed_jobs"]] == [("web2/data", "transfer: no space")]
    assert "backup_only=web2/data" in found["failed_jobs"][0]["next"] and json.loads(json.dumps(found)) == found


def test_a_snapshot_of_the_future_is_named_and_never_the_newest():
    future = {"name": "2027-11-21T110000Z", "state": "complete", "time": "2027-11-21T11:00:00Z"}
    found = record({**SAID, "list": {"snapshots": [OLDER, COMPLETE, future]}})
    assert found.newest == COMPLETE["time"] and found.snapshots == 2
    assert any(future["name"] in note and "date of the future" in note for note in found.notes)
    alone = record({**SAID, "list": {"snapshots": [future]}})
    assert alone.newest is None
    # A record that was written with a wrong clock
    run = {**RUN, "stale_after": 86400}
    wrong = replace(found, newest=future["time"])
    assert state(wrong, run=run)[0] == "stale"
    assert "longhaul_backup_newest_timestamp_seconds{" not in write_metrics(judge([RUN], [wrong], [], [], NOON))
    assert "longhaul_backup_newest_timestamp_seconds{" in write_metrics(judge([RUN], [found], [], [], NOON))


def test_a_record_keeps_the_figures_of_so_many_runs_and_since_when_they_fail():
    space = {"bytes_free": 7, "bytes_total": 70, "files_free": 3}
    listed = {"snapshots": [{**OLDER, "verified": "2026-11-20T12:00:00Z"}, COMPLETE], "space": space}
    good = record({**SAID, "list": listed, "prune": {}})
    assert (good.oldest, good.verified, good.failing_since) == (OLDER["time"], "2026-11-20T12:00:00Z", "")
    assert (good.space.bytes_free, good.space.files_total) == (7, None)
    assert good.history == [RunFigures(good.ended, False, 2, 5, 62, 7, 3)]
    assert record({**SAID, "list": listed}).oldest == COMPLETE["time"]  # the older one was pruned
    failed = record({}, [StepFailure("transfer", "no room")], good)
    assert (failed.failing_since, failed.oldest, failed.space) == (failed.at, OLDER["time"], None)
    again = record({}, [StepFailure("transfer", "no room")], replace(failed, failing_since="2026-11-01T00:00:00Z"))
    assert again.failing_since == "2026-11-01T00:00:00Z" and record(before=again).failing_since == ""
    assert [one.failed for one in again.history] == [False, True, True]
    many = replace(good, history=[figures(1, number) for number in range(100)])
    assert len(record(before=many).history) == MOST_RUNS
    (shown,) = judge([RUN], [good], [RUN["id"]], [RUN["id"]], NOON)
    assert shown.stale_after == 2 * DAY and "history" not in shown.dump() and shown.dump()["space"]["bytes_free"] == 7
