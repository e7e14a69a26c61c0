# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore: lines for the terminal, and a page."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.report import RestoreReport
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.report_page import make_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE

RESULT = {
    "method": "stream", "encrypted": False, "files_total": 10, "files_created": 4, "files_updated": 3,
    "files_deleted": 2, "files_unchanged": 3, "attributes_changed": 1, "bytes_total": 5 << 20,
    "bytes_apparent": 1 << 30, "bytes_sent": 1 << 20, "duration": 2.345, "verified": "checksum",
}  # fmt: skip
REPORT = {
    "identity": {"repository": "backup:/srv", "from": "web", "job": "files", "snapshot": "2026-01-01T013000Z",
                 "path": "a|b", "to": "new",
                 "dest": "/srv/<b>"},
    "state": "restored", "at": "2026-01-02T00:00:00Z", "why": "the newest complete one", "over": True,
    "check_mode": False, "checked": "contents", "problems": [], "problems_total": 0, "warnings": [], "result": RESULT,
    "delete": False, "snapshot_state": "complete",
}  # fmt: skip
PROBLEMS = [
    {"path": "x`y", "detail": "its <content> differs", "intact_in": ["2025-12-30T013000Z", "2025-12-31T013000Z"]},
    {"path": None, "detail": "no manifest", "intact_in": []},
]
PREDICTED = {
    **REPORT, "check_mode": True, "over": False, "problems": PROBLEMS, "problems_total": 900, "warnings": ["no | ACLs"],
}  # fmt: skip

RESTORED = """Restore of web, files
Restored (2026-01-02T00:00:00Z): a|b of 2026-01-01T013000Z (the newest complete one) to new:/srv/<b>, over what was there
10 entries, 5.0 MiB (1.0 GiB with holes): 4 created, 3 replaced, 1 with attributes set, 2 deleted, 3 as they were; 1.0 MiB sent in 2.3 s (method stream, not encrypted).
Compared with the snapshot by content and attributes: the same. Before that the snapshot was compared with its manifest: by content.
"""  # noqa: E501

WOULD_BE = """Restore of web, files
Would be restored (2026-01-02T00:00:00Z): a|b of 2026-01-01T013000Z (the newest complete one) to new:/srv/<b>
10 entries, 5.0 MiB (1.0 GiB with holes): 4 created, 3 replaced, 1 with attributes set, 2 deleted, 3 as they were; 1.0 MiB would be sent (method stream, not encrypted).
Damaged in the snapshot (900, the first 2 of them):
- x`y: its <content> differs; intact in 2025-12-30T013000Z, 2025-12-31T013000Z
- the snapshot itself: no manifest
warning: no | ACLs
"""  # noqa: E501


def plain(**changes):
    """Return the text of the page on a restore, which is well-formed."""
    outline = Outline.of(render_page(make_page(RestoreReport(**{**REPORT, "by": "ada@control", **changes}))))
    assert outline.problems == []
    return outline.plain


def test_a_restore_is_told_with_its_figures_and_comparisons():
    assert RestoreReport(**REPORT).lines() == RESTORED.splitlines()


def test_a_predicted_one_compared_nothing_and_names_what_is_damaged():
    assert RestoreReport(**PREDICTED).lines() == WOULD_BE.splitlines()


def test_an_incomplete_one_tells_why():
    failed = RestoreReport(**{**REPORT, "state": "failed", "result": {"failure": "no <room>"}}).lines()
    assert failed[1].startswith("Failed (2026-01-02T00:00:00Z): a|b of") and failed[-1] == "no <room>"
    assert RestoreReport(**{**REPORT, "state": "begun", "result": {}}).lines()[1].startswith("Begun (2026")


def test_the_files_are_told_where_dumps_could_not_be_loaded():
    given = {"state": "unloaded", "result": {**RESULT, "failure": "no room"}, "loaded": {"mariadb": "shop as old"}}
    lines = RestoreReport(**{**REPORT, **given}).lines()
    assert lines[1].startswith("Restored, dumps not loaded (2026") and lines[2] == "no room"
    assert lines[3:] == RESTORED.splitlines()[2:]
    text = plain(**given)
    assert "All files are restored, and not all dumps are loaded." in text and "10 of 10 entries by content" in text
    assert "shop as old" in text and "Not all dumps are loaded" in text and "run the same command again" not in text


def test_the_page_shows_what_was_restored_and_how_it_was_verified():
    text = plain(began="2026-01-01T23:00:00Z")
    assert "✓ Restored 10 entries, 5.0 MiB (1.0 GiB with holes)." in text and "ada@control" in text
    assert "2026-01-01 23:00:00 UTC" in text and "2026-01-02 00:00:00 UTC" in text
    assert "✓ 10 of 10 entries by content and attributes; the snapshot was compared with its manifest before" in text
    assert "| replaced | 3 |" in text and "over what was there" in text


def test_the_page_on_an_incomplete_or_damaged_one_tells_what_to_do():
    failed = plain(state="failed", result={"failure": HOSTILE})
    assert "✕ The restore is not complete" in failed and "run the same command again" in failed
    assert "</script><img src=x" in failed and "\u202e" not in failed
    damaged = plain(problems=PROBLEMS, problems_total=900, check_mode=True, warnings=["no | ACLs"])
    assert (
        "2 of 900" in damaged
        and "| x`y | ✕ its <content> differs | 2025-12-30T013000Z, 2025-12-31T013000Z |" in damaged
    )
    assert "▲ Would restore 10 entries" in damaged and "no | ACLs" in damaged
    assert "has not ended yet" in plain(state="begun", result={})
