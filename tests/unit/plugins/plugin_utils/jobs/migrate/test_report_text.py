# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of migrations for people."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_text import (
    render_overall,
    render_report,
    render_summary,
)

SEED = {
    "at": "2026-01-01T01:00:00Z", "method": "stream", "encrypted": True, "files_total": 1000, "files_created": 990,
    "files_updated": 0, "attributes_changed": 20, "files_deleted": 1, "bytes_total": 3 << 30,
    "bytes_apparent": 5 << 30, "bytes_sent": 2 << 30, "duration": 100.04, "throughput": 20 << 20,
    "changed_meanwhile": {"count": 2, "example": "a|b.log", "only": "unread"},
}  # fmt: skip
LAST = {
    **SEED, "at": "2026-01-01T03:00:00Z", "encrypted": False, "files_created": 1, "attributes_changed": 0,
    "bytes_apparent": 0, "bytes_sent": 4096, "duration": 7, "throughput": None, "changed_meanwhile": {"count": 0},
}  # fmt: skip
PREDICTED = {**SEED, "at": "2026-01-01T00:30:00Z", "files_deleted": 5, "changed_meanwhile": {"count": 0}}
FOUND = {
    "at": "2026-01-01T03:01:00Z", "identical": True, "compared": "checksum", "algorithm": "xxh128", "duration": 30.0,
    "source": {"entries": 1000, "bytes": 3 << 30}, "dest": {"entries": 1000, "bytes": 3 << 30}, "differences": [],
    "differences_total": 0,
}  # fmt: skip
DIFFERS = {
    **FOUND, "identical": False, "compared": "size", "differences_total": 2, "differences": [
        {"path": "a`b", "kind": "differs", "fields": ["mode", "owner"]},
        {"path": "<c>\n", "kind": "missing", "fields": []},
    ],
}  # fmt: skip
HOOK = {"host": "old", "at": "2026-01-01T02:59:00Z", "seconds": 2.5}
TOTALS = {"entries": 1000, "bytes": 3 << 30, "bytes_apparent": 5 << 30, "bytes_sent": 2 << 30, "files_deleted": 1}


OVER = r"""# web

old:`/srv/a\|b` to new:`` /srv/`b` ``

Run 2026-01-01T00:00:00Z by root@node, up to phase cutover. All times are UTC.

Go on.

| phase | when | method | entries | changed | deleted | changed meanwhile | bytes | sent | seconds | rate |
|---|---|---|---|---|---|---|---|---|---|---|
| preflight (predicted) | 2026-01-01T00:30:00Z | stream | 1000 | 1000 | 5 | 0 | 3.0 GiB (5.0 GiB with holes) | 2.0 GiB | 100.0 | 20.0 MiB/s |
| seed | 2026-01-01T01:00:00Z | stream | 1000 | 1000 | 1 | 2 | 3.0 GiB (5.0 GiB with holes) | 2.0 GiB | 100.0 | 20.0 MiB/s |
| sync | 2026-01-01T03:00:00Z | stream | 1000 | 1 | 1 | 0 | 3.0 GiB | 4.0 KiB | 7 | 0 B/s |
| sync | 2026-01-01T03:00:00Z | stream | 1000 | 1 | 1 | 0 | 3.0 GiB | 4.0 KiB | 7 | 0 B/s |
| rehearsal | 2026-01-01T03:00:00Z | stream | 1000 | 1 | 1 | 0 | 3.0 GiB | 4.0 KiB | 7 | 0 B/s |
| cutover | 2026-01-01T03:00:00Z | stream | 1000 | 1 | 1 | 0 | 3.0 GiB | 4.0 KiB | 7 | 0 B/s |

**Comparison** (2026-01-01T03:01:00Z): the trees are the same, by content (xxh128) and attributes; 1000 entries and 3.0 GiB at the source, 1000 entries and 3.0 GiB at the destination; 30.0 s.


**Switched over** on 2026-01-01T03:02:00Z by root@node.

**Downtime**, from the first hook of before_cutover until a host serves again

* 0:01:00 (2026-01-01T01:59:00Z to 2026-01-01T02:00:00Z), then served by old (rehearsal)
* 0:04:00 (2026-01-01T02:59:00Z to 2026-01-01T03:03:00Z), then served by new

| hook | list | host | when | seconds | result |
|---|---|---|---|---|---|
| stop \[it](http://x) | before_cutover | old | 2026-01-01T02:59:00Z | 2.5 | done |
| start | after_cutover | old | 2026-01-01T02:59:00Z | 2.5 | **failed: no \| such unit** |

**Warnings**

- x\\x1b\[31m \<b>
"""  # noqa: E501

STOPPED = r"""# db

old:`/srv/a\|b` to new:`` /srv/`b` ``

Run 2026-01-01T00:00:00Z by root@node, up to phase cutover. All times are UTC.

**Stopped in phase cutover** (2026-01-01T03:01:00Z): no \<room> on new

Go on.

| phase | when | method | entries | changed | deleted | changed meanwhile | bytes | sent | seconds | rate |
|---|---|---|---|---|---|---|---|---|---|---|
| seed | 2026-01-01T01:00:00Z | stream | 1000 | 1000 | 1 | 2 | 3.0 GiB (5.0 GiB with holes) | 2.0 GiB | 100.0 | 20.0 MiB/s |

**Comparison** (2026-01-01T03:01:00Z): they differ in 2 places, by size and attributes; 1000 entries and 3.0 GiB at the source, 1000 entries and 3.0 GiB at the destination; 30.0 s.

- ``a`b``: differs in mode, owner
- `<c> `: missing

**Downtime to expect**: about 0:01:40, as long as the last pass took.

**Downtime**: old is stopped since 2026-01-01T02:59:00Z.
"""  # noqa: E501

ALL = r"""# Migration

Made 2026-01-02T00:00:00Z by root@node. All times are UTC.

## Stopped

* **db** stopped in phase cutover (2026-01-01T03:01:00Z): no \<room> on new. Go on.

## All jobs

| job | from | to | entries | bytes | sent | deleted | compared | downtime | state |
|---|---|---|---|---|---|---|---|---|---|
| [db](db.md) | old:`/srv/a\|b` | new:`` /srv/`b` `` | 1000 | 3.0 GiB | 2.0 GiB | 1 | not yet | about 0:01:40 (forecast) | stopped in cutover |
| [web](web.md) | old:`/srv/a\|b` | new:`` /srv/`b` `` | 1000 | 3.0 GiB | 2.0 GiB | 1 | the same | 0:04:00 | switched over |
| [mail](mail.md) | old:`/srv/a\|b` | new:`` /srv/`b` `` | 1000 | 3.0 GiB | 2.0 GiB (predicted) | 5 (predicted) | not yet |  | preflight |
| [new](new.md) | old:`/srv/a\|b` | new:`` /srv/`b` `` |  |  |  |  | not yet |  | not begun |
| **sum of 4** | | | 3000 | 9.0 GiB | 6.0 GiB | 7 | | | 1 stopped, 1 switched over |
"""  # noqa: E501

LINES = """web: old:/srv/a|b to new:/srv/`b`
1000 entries, 3.0 GiB; sent 2.0 GiB, then 4.0 KiB, then 4.0 KiB, then 4.0 KiB (method stream, not encrypted)
compared: the trees are the same, by content and attributes, 1000 entries
downtime: 0:01:00, then 0:04:00
warning: x[31m <b>
next: Go on.
"""

LINES_BEFORE = """mail: old:/srv/a|b to new:/srv/`b`
DELETIONS: would delete 5 <entries>
1000 entries, 3.0 GiB (5.0 GiB with holes); would send 2.0 GiB and delete 5 entries (method stream)
warning: no ACLs
next: Go on.
"""

LINES_STOPPED = """db: old:/srv/a|b to new:/srv/`b`
1000 entries, 3.0 GiB (5.0 GiB with holes); sent 2.0 GiB (method stream)
downtime to expect: about 0:01:40, as long as the last pass took
stopped in phase cutover: no <room> on new
next: Go on.
"""


def report(name="web", **changes):
    """Return a report as its JSON file has it."""
    return {
        "name": name,
        "identity": {"src_host": "old", "src": "/srv/a|b", "dest_host": "new", "dest": "/srv/`b`"},
        "run": {"at": "2026-01-01T00:00:00Z", "by": "root@node", "phase": "cutover"},
        "phases": {}, "switch": {}, "failure": {}, "quiesced": False, "predicted": {}, "forecast": {}, "totals": {},
        "deletions": "", "downtimes": [], "hooks": [], "warnings": [], "next": "Go on.", **changes,
    }  # fmt: skip


def begun():
    """Return the report of a job that would delete, and has not copied anything."""
    deletions = "would delete 5 <entries>"
    told = {"predicted": PREDICTED, "deletions": deletions, "warnings": [deletions, "no ACLs"]}
    return report("mail", phases={"preflight": {}}, totals={**TOTALS, "files_deleted": 5}, **told)


def switched():
    """Return the report of a job that is over, with a rehearsal before."""
    return report(
        phases={"preflight": {"predicted": PREDICTED}, "seed": SEED, "sync": {"passes": [LAST, LAST]},
                "rehearsal": {"at": "2026-01-01T02:00:00Z", "from": "2026-01-01T01:59:00Z", "cutover": LAST},
                "cutover": LAST, "verify": FOUND},
        switch={"done": True, "at": "2026-01-01T03:02:00Z", "by": "root@node"},
        totals=TOTALS,
        downtimes=[
            {"from": "2026-01-01T01:59:00Z", "to": "2026-01-01T02:00:00Z", "lasted": "0:01:00", "serves": "old",
             "rehearsal": True},
            {"from": "2026-01-01T02:59:00Z", "to": "2026-01-01T03:03:00Z", "lasted": "0:04:00", "serves": "new"},
        ],
        hooks=[{**HOOK, "name": "stop [it](http://x)", "kind": "before_cutover", "result": "done"},
               {**HOOK, "name": "start", "kind": "after_cutover", "result": "failed: no | such unit"}],
        warnings=["x\x1b[31m <b>"],
    )  # fmt: skip


def stopped():
    """Return the report of a job that failed while its source was stopped."""
    return report(
        "db",
        phases={"seed": SEED, "verify_failed": DIFFERS},
        failure={"phase": "cutover", "at": "2026-01-01T03:01:00Z", "reason": "no <room> on new"},
        forecast={"seconds": 100.0, "lasted": "0:01:40", "why": "as long as the last pass took"},
        totals=TOTALS,
        quiesced=True,
        quiesced_at="2026-01-01T02:59:00Z",
    )


def test_the_report_on_a_job_tells_all_that_is_known_of_it():
    assert render_report(switched()) == OVER
    assert render_report(stopped()) == STOPPED


def test_what_would_be_deleted_is_told_first():
    text = render_report(begun())
    assert text.index("\nGo on.\n\n**Deletions**: would delete 5 \\<entries>\n\n| phase |") > 0
    assert text.endswith("\n**Comparison**: not made yet.\n\n**Warnings**\n\n- would delete 5 \\<entries>\n- no ACLs\n")


def test_the_lines_for_the_terminal():
    assert render_summary(switched()) == LINES.splitlines()
    assert render_summary(begun()) == LINES_BEFORE.splitlines()
    assert render_summary(stopped()) == LINES_STOPPED.splitlines()


def test_the_report_on_all_jobs_tells_what_stopped_first():
    reports = [switched(), begun(), stopped(), report("new")]
    assert render_overall(reports, "2026-01-02T00:00:00Z", "root@node") == ALL


def test_reports_of_earlier_versions_can_be_told_together():
    added = ("predicted", "forecast", "totals", "downtimes")
    early = {name: value for name, value in report("early").items() if name not in added}
    row = "| [early](early.md) | old:`/srv/a\\|b` | new:`` /srv/`b` `` |  |  |  |  | not yet |  | not begun |\n"
    assert row in render_overall([early], "2026-01-02T00:00:00Z", "root@node")


def test_a_job_that_goes_back_has_no_downtime_and_is_in_no_sum():
    identity = {"src_host": "new", "src": "/srv/", "dest_host": "old", "dest": "/srv.from-new"}
    forecast = {"seconds": 100.0, "lasted": "0:01:40", "why": "as long as the last pass took"}
    phases = {"seed": SEED, "sync": {"passes": []}}
    back = report("web.from-new", identity=identity, phases=phases, forecast=forecast, totals=TOTALS)
    lines = render_overall([switched(), back], "2026-01-02T00:00:00Z", "root@node").splitlines()
    assert lines[-2].endswith("| not yet |  | copied back |") and "(forecast)" not in lines[-2]
    assert lines[-1].startswith("| **sum of 1** | | | 1000 | 3.0 GiB |")
