# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines about backups for the terminal."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.drill import DrillRecord
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import JobHealth
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_text import (
    render_overall,
    render_summary,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    BackupRecord,
    PathTransfer,
    StepFailure,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import HookRun

REPOSITORY = {"host": "store", "path": "/backup/a|b"}
MOVED = PathTransfer(
    "/srv", "stream", encrypted=True, files_total=9, bytes_total=3 << 20, bytes_apparent=5 << 20, bytes_sent=2 << 20,
    bytes_from_basis=1 << 10, bytes_shared=1 << 9,
)  # fmt: skip
RECORD = BackupRecord(
    "web/files", repository=REPOSITORY, at="2026-01-01T01:30:00Z", duration=61,
    notes=["2 entries changed, for example <a>"], snapshot="2026-01-01T013000Z", newest="2026-01-01T01:30:00Z",
    snapshots=30, figures={"new_bytes": 1 << 20, "gone": 3, "moved": 2}, size=3 << 20,
    transfers=[MOVED, replace(MOVED, src="/etc", method="none")],
    removed=["2025-12-01T013000Z", "2025-12-02T013000Z"],
)  # fmt: skip
FAILED = replace(
    RECORD, snapshot="", removed=[], aside="it lost much", notes=[],
    failures=[StepFailure("transfer", "no room"), StepFailure("after", "a hook failed")],
    transfers=[PathTransfer("/etc", "rsync", files_total=1, bytes_total=5, bytes_sent=7)],
    hooks=[HookRun("before", "web", "Freeze", result="failed", rc=1, changed=True)],
)  # fmt: skip


def health(record: BackupRecord | None, state: str, why: list[str], todo: str = "", job: str = "") -> JobHealth:
    """Return a job in a state."""
    name = job or (record.id if record else "")
    return JobHealth(name, name.split("/")[0], name, REPOSITORY, record, state, why, todo, True, None)


WELL = health(replace(RECORD, notes=[]), "ok", [])
NEVER = health(None, "never", [], job="db/dump")
STALE = health(
    replace(RECORD, id="mail/spool", snapshots=1, size=None, figures={}, removed=[]),
    "stale", ["the newest one is 3 d old"], "Run it.",
)  # fmt: skip

LINES = """web/files: to store:/backup/a|b
/srv: 9 entries, 3.0 MiB (5.0 MiB with holes); sent 2.0 MiB, took 1.0 KiB of changed files from the snapshot before, of which the disk shares 512 B (method stream)
2026-01-01T013000Z: 1.0 MiB are new, 2 files were moved or renamed, 3 names are gone
removed 2025-12-01T013000Z, 2025-12-02T013000Z
warning: 2 entries changed, for example <a>
"""  # noqa: E501

LINES_FAILED = """web/files: to store:/backup/a|b
/etc: 1 entry, 5 B; sent 7 B (method rsync, not encrypted)
set aside: it lost much
failed in transfer: no room
failed in after: a hook failed
"""

LINES_ALL = """STALE mail/spool: 1 snapshot, the newest of 2026-01-01T01:30:00Z: the newest one is 3 d old
not run yet db/dump
ok web/files: 30 snapshots, the newest of 2026-01-01T01:30:00Z
/srv/report.html
"""


def test_the_lines_about_one_backup():
    assert render_summary(RECORD, predicted=False) == LINES.splitlines()
    assert render_summary(FAILED, predicted=False) == LINES_FAILED.splitlines()


def test_only_the_drill_of_this_run_is_told():
    drill = DrillRecord("2026-01-02T00:00:00Z", "web", "/s", files=3, restored=True, succeeded="2026-01-02T00:00:00Z")
    record = replace(RECORD, drill=drill)
    (line,) = render_summary(record, False, only_drill=True)
    assert line.startswith("web/files: drill: restored 3 files")
    assert render_summary(record, True, only_drill=True) == []
    failed = replace(record, failures=[StepFailure("drill", "no room")])
    assert render_summary(failed, False, only_drill=True) == ["web/files: failed in drill: no room"]


def test_what_is_predicted_is_told_as_such():
    lines = render_summary(RECORD, predicted=True)
    assert lines[0].endswith(" (predicted)") and "; would send 2.0 MiB" in lines[1] and "would remove" in lines[3]


def test_the_lines_about_all_jobs_begin_with_the_worst():
    assert render_overall([WELL, NEVER, STALE], "/srv/report.html") == LINES_ALL.splitlines()


def test_no_more_jobs_in_the_same_state_are_shown_than_can_be_read():
    lines = render_overall([replace(WELL, id=f"web/{number}") for number in range(53)], "")
    assert len(lines) == 51 and lines[-1] == "ok and 3 more"
