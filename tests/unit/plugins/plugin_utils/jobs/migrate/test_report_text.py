# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines about a migration job for the terminal."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_text import render_summary

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
HOOK = {"host": "old", "at": "2026-01-01T02:59:00Z", "seconds": 2.5}
TOTALS = {"entries": 1000, "bytes": 3 << 30, "bytes_apparent": 5 << 30, "bytes_sent": 2 << 30, "files_deleted": 1}


LINES = """web: old:/srv/a|b to new:/srv/`b`
1,000 entries, 3.0 GiB; sent 8.0 KiB in 2 passes, 2.0 GiB in all runs so far (method stream, not encrypted)
compared: the trees are the same, by content and attributes, 1,000 entries
downtime: 1 min in a rehearsal, 4 min at the switch
warning: x[31m <b>
next: Go on.
"""

LINES_BEFORE = """mail: old:/srv/a|b to new:/srv/`b`
DELETIONS: would delete 5 <entries>
1,000 entries, 3.0 GiB (5.0 GiB with holes); would send 2.0 GiB and delete 5 entries (method stream)
warning: no ACLs
next: Go on.
"""

LINES_STOPPED = """db: old:/srv/a|b to new:/srv/`b`
1,000 entries, 3.0 GiB (5.0 GiB with holes); sent 2.0 GiB (method stream)
downtime to expect: about 1 min 40 s: the final pass 1 min 40 s (as long as the last pass)
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
        "deletions": "", "downtimes": [], "hooks": [], "warnings": [], "next": "Go on.",
        "history": history(1, 2 << 30), **changes,
    }  # fmt: skip


def history(earlier, *sent):
    """Return the passes of a job, of which so many were made by earlier runs."""
    runs = [*["2025-12-31T00:00:00Z"] * earlier, *["2026-01-01T00:00:00Z"] * (len(sent) - earlier)]
    return {"passes": [{"kind": "sync", "run": run, "bytes_sent": one} for run, one in zip(runs, sent)]}


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
        history=history(2, 2 << 30, 4096, 4096, 4096),
        downtimes=[
            {"from": "2026-01-01T01:59:00Z", "to": "2026-01-01T02:00:00Z", "lasted": "1 min", "rehearsal": True,
             "serves": "the old host again"},
            {"from": "2026-01-01T02:59:00Z", "to": "2026-01-01T03:03:00Z", "lasted": "4 min", "serves": "the new host"},
        ],
        hooks=[{**HOOK, "name": "stop [it](http://x)", "kind": "before_cutover", "result": "done"},
               {**HOOK, "name": "start", "kind": "after_cutover", "result": "failed: no | such unit"}],
        warnings=["x\x1b[31m <b>"],
    )  # fmt: skip


def stopped():
    """Return the report of a job that failed while its source was stopped."""
    return report(
        "db",
        phases={"seed": SEED},
        failure={"phase": "cutover", "at": "2026-01-01T03:01:00Z", "reason": "no <room> on new"},
        forecast={
            "seconds": 100.0,
            "lasted": "1 min 40 s",
            "why": "the final pass 1 min 40 s (as long as the last pass)",
        },
        totals=TOTALS,
        history=history(0, 2 << 30),
        quiesced=True,
        quiesced_at="2026-01-01T02:59:00Z",
    )


def test_the_lines_for_the_terminal():
    assert render_summary(switched()) == LINES.splitlines()
    assert render_summary(begun()) == LINES_BEFORE.splitlines()
    assert render_summary(stopped()) == LINES_STOPPED.splitlines()


def test_the_slowest_part_is_that_of_the_last_transfer_in_which_one_stood_out():
    seed = {**SEED, "bottleneck": "The source's disk was <busy>: a faster disk would help."}
    given = report(phases={"seed": seed, "sync": {"passes": [LAST]}}, totals=TOTALS)
    assert "slowest part: The source's disk was <busy>: a faster disk would help." in render_summary(given)
    quiet = report(phases={"seed": SEED}, totals=TOTALS)
    assert "lowest part" not in "".join(render_summary(quiet))


@pytest.mark.parametrize(
    ("passes", "total", "words"),
    [
        (history(0, 273), 273, "sent 273 B"),
        (history(0, 273, 0, 0), 273, "sent 273 B in 3 passes"),
        (history(1, 273, 0), 273, "sent nothing, 273 B in all runs so far"),
        (history(1, 273), 273, "sent nothing, 273 B in all runs so far"),
        (history(1, 273, 2, 1), 276, "sent 3 B in 2 passes, 276 B in all runs so far"),
    ],
)
def test_what_this_run_sent_is_told_apart_from_what_all_runs_sent(passes, total, words):
    given = report(phases={"seed": SEED}, history=passes, totals={**TOTALS, "bytes_sent": total})
    assert f"; {words} (method stream)" in render_summary(given)[1]


def test_each_downtime_says_of_what_it_was():
    switch = {"lasted": "3 s", "serves": "the new host"}
    failed = {"lasted": "4 s", "serves": "the old host again"}
    for downtimes, words in (
        ([switch], "3 s"),
        ([failed], "4 s in a cutover that failed"),
        (
            [failed] * 5,
            "2 before, 4 s in a cutover that failed, 4 s in a cutover that failed, 4 s in a cutover that failed",
        ),
        ([failed, switch], "4 s in a cutover that failed, 3 s at the switch"),
    ):
        assert f"downtime: {words}" in render_summary(report(downtimes=downtimes))
