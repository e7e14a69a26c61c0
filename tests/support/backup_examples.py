# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of a fleet, as the pages of the report and of the audit show them."""

from __future__ import annotations

import time
from typing import Any

from ...plugins.plugin_utils.jobs.backup.audit import BackupAudit, HostAnswer, make_audit, parse_repository
from ...plugins.plugin_utils.jobs.backup.health import JobHealth, judge
from ...plugins.plugin_utils.jobs.backup.jobs import Run, make_runs
from ...plugins.plugin_utils.jobs.backup.state import (
    BackupRecord,
    PathTransfer,
    RepositorySpace,
    RunFigures,
    StepFailure,
)
from ...plugins.plugin_utils.jobs.hook_steps import HookRun

NOW = 1_790_000_000
_DAY, _GIB = 86400, 1 << 30


def days_ago(days: float) -> str:
    """Return a time as reports have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - days * _DAY))


def backup_runs(count: int) -> tuple[list[Run], dict[str, list[str]]]:
    """Return so many runs, with the hosts of the inventory."""
    hosts = [f"web-{number:03d}.example" for number in range(count)]
    groups = {"all": [*hosts, "vault.example", "switch-1.example", "printer.example"]}
    job = {
        "name": "data",
        "hosts": hosts,
        "src": "/srv/data",
        "repository": {"host": "vault.example", "path": "/srv/backup"},
        "keep": {"daily": 7, "weekly": 5, "monthly": 12},
        "stale_after": "36h",
    }
    return make_runs([job], groups), groups


def backup_health(count: int, hostile: str = "") -> list[JobHealth]:
    """Return the states of so many jobs, some of them sick; ``hostile`` is what a host says."""
    runs, _groups = backup_runs(count)
    records = [_record(run, number, hostile) for number, run in enumerate(runs) if number % 8 != 6]
    return judge(runs, records, [run["id"] for run in runs], [record.id for record in records], NOW)


def _record(run: Run, number: int, hostile: str) -> BackupRecord:
    size = (20 + number % 50) * _GIB
    history = [
        RunFigures(
            days_ago(day), False, _GIB if day < 29 else size, size, 60 + day, (300 + 4 * day) * _GIB, 10**6 + day
        )
        for day in reversed(range(30))
    ]
    failures = [StepFailure("transfer", hostile or "no space left on device")] if number % 8 == 3 else []
    return BackupRecord(
        run["id"],
        run["host"],
        run["name"],
        dict(run["repository"]),
        days_ago(0.1),
        days_ago(0.1),
        duration=61 + number,
        failures=failures,
        notes=[hostile or "3 entries changed during the transfer"] if number % 5 == 2 else [],
        hooks=[HookRun("before", run["host"], hostile or "dump the database", result="done", rc=0, began=1, ended=4.5)],
        snapshot="" if failures else "2026-09-21T013000Z",
        aside="aside-2026-09-21T013000Z is suspicious: 60 % are gone" if number % 8 == 5 else "",
        aside_name="aside-2026-09-21T013000Z" if number % 8 == 5 else "",
        newest=days_ago(0.1 if number % 8 != 4 else 4),
        oldest=days_ago(300),
        verified=days_ago(3) if number % 3 else None,
        snapshots=24,
        figures={"new_bytes": _GIB, "gone": 3, "entries": 54_321, "bytes": size},
        size=size,
        space=RepositorySpace(4000 * _GIB, 300 * _GIB, 2 * 10**6, 10**6),
        history=history,
        transfers=[PathTransfer("/srv/data", "stream", encrypted=True, files_total=54_321, bytes_total=size)],
        kept={"2026-09-21T013000Z": ["latest", "daily"], "2026-09-20T013000Z": ["daily"]},
        removed=["2026-09-13T013000Z"],
        failing_since=days_ago(4) if failures else "",
    )


def backup_audit(count: int, hostile: str = "") -> BackupAudit:
    """Return the audit of so many jobs with findings of all kinds; ``hostile`` is what a host says."""
    runs, groups = backup_runs(count)
    names = [
        time.strftime("%Y-%m-%dT013000Z", time.gmtime(NOW - day * _DAY))
        for day in (*range(7), *range(7, 35, 7), *range(35, 300, 31))
    ]
    folders = [_folder(run["host"], number, sorted(names), hostile) for number, run in enumerate(runs)]
    folders.append({**folders[0], "host": "retired.example"})
    space = {"bytes_total": 4000 * _GIB, "bytes_free": 290 * _GIB, "files_total": 2 * 10**6, "files_free": 10**6}
    found = parse_repository({"now": NOW, "space": space, "folders": folders, "unread": []})
    answers = {"vault.example": HostAnswer(NOW, NOW + 1, NOW, NOW, {"/srv/backup": found}, {})}
    for number, run in enumerate(runs[1:]):
        answers[run["host"]] = HostAnswer(NOW, NOW + 1, NOW + (400 if number % 9 == 4 else 0.5), NOW + 400, {}, {})
    failed = {runs[0]["host"]: hostile or "the connection timed out"} if count > 1 else {}
    return make_audit(
        runs, backup_health(count), groups, ["printer.example"], answers, failed, days_ago(0), "ada@control"
    )


def _folder(host: str, number: int, names: list[str], hostile: str) -> dict[str, Any]:
    gaps = names[:-6] + names[-4:] if number % 6 == 1 else names
    decision = {
        "act": "accepted",
        "name": names[-9],
        "at": days_ago(9.5),
        "by": "bob@control2",
        "why": hostile,
        "was": "",
    }
    removed = {**decision, "act": "removed", "at": days_ago(number % 30 + 0.5), "by": hostile, "why": "renamed by hand"}
    return {
        "host": host,
        "job": "data",
        "complete": gaps,
        "complete_total": len(gaps),
        "aside": [],
        "verified": len(gaps) - number % 4,
        "verified_oldest": days_ago(20),
        "verified_newest": days_ago(1),
        "parts_read": number % 7,
        "parts_of": 7,
        "damaged": names[:1] if number % 10 == 7 else [],
        "missing": names[1:3] if number % 12 == 11 else [],
        "decisions": [removed, decision] if number % 4 == 2 else [],
        "decisions_total": 2 if number % 4 == 2 else 0,
        "pruned": 275,
        "pruned_at": days_ago(0.1),
        "pruned_by": "ada@control",
    }
