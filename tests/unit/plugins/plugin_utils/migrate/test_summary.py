# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of a migration did, in figures, and what comparisons found."""

from __future__ import annotations

import json

from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.comparisons import tell_found
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.groups import find_groups, find_together
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.summary import (
    all_failures,
    summarize,
    tell_failures,
)

ABOUT = {
    "phase": "sync",
    "check_mode": False,
    "at": "2026-11-21T12:00:00Z",
    "by": "root@node",
    "report": "/srv/report.md",
}
TOTALS = {"entries": 5, "bytes": 100, "bytes_apparent": 200, "bytes_sent": 60, "files_deleted": 1}


def record(name: str, reason: str = "", left: bool = False, **more) -> dict:
    failure = {"job": name, "phase": "seed", "reason": reason, "next": "Fix it."} if reason else {}
    return {"name": name, "dest_host": "new", "changed": True, "left": left, "failure": failure, "switched": False,
            "totals": TOTALS, **more}  # fmt: skip


def test_figures_are_added_up_and_those_of_reports_count_where_the_role_went_on():
    records = [record("a"), record("b", left=True), record("c", "no room", changed=False)]
    reports = {"b": {"totals": {**TOTALS, "bytes_sent": 70}, "switch": {"done": True}}}
    failures = all_failures(records, [])
    found = summarize(records, reports, failures, ABOUT)
    assert (found["jobs"], found["changed"], found["switched_over"], found["failed"]) == (3, 2, 1, 1)
    assert (found["entries"], found["bytes"], found["bytes_sent"], found["files_deleted"]) == (15, 300, 190, 3)
    assert found["failed_jobs"][0]["name"] == "c" and json.loads(json.dumps(found)) == found


def test_a_thousand_jobs_of_which_all_failed_are_bounded():
    records = [record(f"n{number}", "no room " * 1000) for number in range(1000)]
    found = summarize(records, {}, all_failures(records, []), ABOUT)
    assert found["failed"] == 1000 and len(found["failed_jobs"]) == 50 and len(json.dumps(found)) < 100_000


def test_each_failed_job_is_told_once_in_the_order_of_the_jobs():
    # What failed before its source was put back in service is left to the role, which tells how that ended.
    records = [record("a"), record("b", "lost", left=True), record("c", "no room")]
    later = [{"job": "b", "phase": "cutover", "reason": "a hook failed", "next": "Start it."}]
    told = [(one["name"], one["what"], one["reason"]) for one in tell_failures(later, records)]
    assert told == [("b", "stopped in phase cutover", "a hook failed"), ("c", "stopped in phase seed", "no room")]


def test_hosts_of_groups_run_together_where_one_of_their_jobs_is_left():
    jobs = [{"name": name, "dest_host": host, "cutover_group": group} for name, host, group in
            (("a", "new1", "shop"), ("b", "new2", "shop"), ("c", "new3", "one"), ("d", "new3", "one"))]  # fmt: skip
    groups = find_groups(jobs)
    assert find_together(groups, ["b"]) == ["new1", "new2"]
    assert find_together(groups, ["c"]) == [] and find_together(groups, []) == []


def compared(name: str, *differences: str, total: int = 0) -> dict:
    return {
        "__migrate_entry": {"name": name}, "identical": not differences,
        "source": {"entries": 3}, "dest": {"entries": 3},
        "differences_total": total or len(differences),
        "differences": [{"path": path, "kind": "differs", "fields": ["mode"]} for path in differences],
    }  # fmt: skip


def test_what_comparisons_found_is_told_of_all_jobs_together():
    results = [compared("a"), compared("b", "x", "y", total=7), {"__migrate_entry": {"name": "c"}, "msg": "lost"},
               {"__migrate_entry": {"name": "d"}, "skipped": True}]  # fmt: skip
    found = tell_found(results)
    assert [line.split(",")[0] for line in found.lines] == ["a: the trees are the same", "b: they differ in 7 places"]
    assert [(one["name"], one["what"]) for one in found.failures] == [("b", "is different"), ("c", "was not compared")]
    assert (
        "  x: differs in mode" in found.failures[0]["reason"] and "and in 5 places more" in found.failures[0]["reason"]
    )
    summary = found.summary
    assert (summary["jobs"], summary["identical"], summary["different"], summary["failed"]) == (3, 1, 1, 2)
