# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore for people."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.report import RestoreReport

RESULT = {
    "method": "stream", "encrypted": False, "files_total": 10, "files_created": 4, "files_updated": 3,
    "files_deleted": 2, "files_unchanged": 3, "attributes_changed": 1, "bytes_total": 5 << 20,
    "bytes_apparent": 1 << 30, "bytes_sent": 1 << 20, "duration": 2.345, "verified": "checksum",
}  # fmt: skip
REPORT = {
    "identity": {"from": "web", "job": "files", "snapshot": "2026-01-01T013000Z", "path": "a|b", "to": "new",
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

RESTORED = r"""# Restore of web, files

Restored (2026-01-02T00:00:00Z): `a\|b` of 2026-01-01T013000Z (the newest complete one) to new:`/srv/<b>`, over what was there

10 entries, 5.0 MiB (1.0 GiB with holes): 4 created, 3 replaced, 1 with attributes set, 2 deleted, 3 as they were; 1.0 MiB sent in 2.3 s (method stream, not encrypted).

Compared with the snapshot by content and attributes: the same. Before that the snapshot was compared with its manifest: by content.
"""  # noqa: E501

WOULD_BE = r"""# Restore of web, files

Would be restored (2026-01-02T00:00:00Z): `a\|b` of 2026-01-01T013000Z (the newest complete one) to new:`/srv/<b>`

10 entries, 5.0 MiB (1.0 GiB with holes): 4 created, 3 replaced, 1 with attributes set, 2 deleted, 3 as they were; 1.0 MiB sent in 2.3 s (method stream, not encrypted).


**Damaged in the snapshot** (900):

- ``x`y``: its \<content> differs; intact in 2025-12-30T013000Z, 2025-12-31T013000Z
- the snapshot itself: no manifest

**Warnings**

- no \| ACLs
"""  # noqa: E501


def test_a_restore_is_told_with_its_figures_and_comparisons():
    assert RestoreReport(**REPORT).text() == RESTORED


def test_a_predicted_one_compared_nothing_and_names_what_is_damaged():
    assert RestoreReport(**PREDICTED).text() == WOULD_BE


def test_an_incomplete_one_tells_why():
    failed = RestoreReport(**{**REPORT, "state": "failed", "result": {"failure": "no <room>"}}).text()
    assert "\n**Failed** (2026-01-02T00:00:00Z): `a\\|b` of" in failed and failed.endswith("\n\nno \\<room>\n")
    assert "\nBegun (2026" in RestoreReport(**{**REPORT, "state": "begun", "result": {}}).text()
