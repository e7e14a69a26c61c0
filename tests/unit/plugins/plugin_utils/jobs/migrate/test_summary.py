# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of a migration did, in figures, and what comparisons found."""

from __future__ import annotations

import json

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.groups import find_groups
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.jobs import Selection
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report import find_failures, summarize
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.verify import tell_found

ABOUT = ("sync", False, "2026-11-21T12:00:00Z", "root@node", "/srv/report.html")
TOTALS = {"entries": 5, "bytes": 100, "bytes_apparent": 200, "bytes_sent": 60, "files_deleted": 1}


def record(name: str, reason: str = "", left: bool = False, **more) -> dict:
    failure = {"job": name, "phase": "seed", "reason": reason, "next": "Fix it."} if reason else {}
    return {"name": name, "dest_host": "new", "changed": True, "left": left, "failure": failure, "switched": False,
            "totals": TOTALS, **more}  # fmt: skip


def test_figures_are_added_up():
    other = record("b", switched=True, totals={**TOTALS, "bytes_sent": 70})
    found = summarize([record("a"), other, record("c", "no room", changed=False), record("d", totals={})], *ABOUT)
    assert (found["jobs"], found["changed"], found["switched_over"], found["failed"]) == (4, 3, 1, 1)
    assert (found["entries"], found["bytes"], found["bytes_sent"], found["files_deleted"]) == (15, 300, 190, 3)
    assert found["failed_jobs"][0]["name"] == "c" and json.loads(json.dumps(found)) == found


def test_a_thousand_jobs_of_which_all_failed_are_bounded():
    found = summarize([record(f"n{number}", "no room " * 1000) for number in range(1000)], *ABOUT)
    assert found["failed"] == 1000 and len(found["failed_jobs"]) == 50 and len(json.dumps(found)) < 100_000


def test_each_failed_job_is_told_once_in_the_order_of_the_jobs():
    records = [record("a"), record("b", "lost"), record("c", "no room")]
    assert [(one.name, one.what, one.reason) for one in find_failures(records)] == [
        ("b", "stopped in phase seed", "lost"),
        ("c", "stopped in phase seed", "no room"),
    ]


def test_a_group_is_driven_by_the_first_of_its_hosts_in_the_play():
    jobs = [{"name": name, "dest_host": host, "cutover_group": group} for name, host, group in
            (("a", "new1", "shop"), ("b", "new2", "shop"), ("c", "new3", ""))]  # fmt: skip
    selection = Selection(jobs, find_groups(jobs), [])
    driven = {host: [job["name"] for job in selection.driven_by([host], ["new2", "new3"])] for host in
              ("new1", "new2", "new3")}  # fmt: skip
    assert driven == {"new1": [], "new2": ["a", "b"], "new3": ["c"]}
    assert [job["name"] for job in selection.driven_by(["new1"], ["new1", "new2"])] == ["a", "b"]


def compared(name: str, *differences: str, total: int = 0) -> tuple[str, dict]:
    return name, {
        "identical": not differences,
        "source": {"entries": 3}, "dest": {"entries": 3},
        "differences_total": total or len(differences),
        "differences": [{"path": path, "kind": "differs", "fields": ["mode"]} for path in differences],
    }  # fmt: skip


def test_what_comparisons_found_is_told_of_all_jobs_together():
    results = [compared("a"), compared("b", "x", "y", total=7), ("c", {"failed": True, "msg": "lost"})]
    found = tell_found(results)
    assert [line.split(",")[0] for line in found.lines] == ["a: the trees are the same", "b: they differ in 7 places"]
    assert [(one.name, one.what) for one in found.failures] == [("b", "is different"), ("c", "was not compared")]
    assert "  x: differs in mode" in found.failures[0].reason and "and in 5 places more" in found.failures[0].reason
    summary = found.summary
    assert (summary["jobs"], summary["identical"], summary["different"], summary["failed"]) == (3, 1, 1, 2)
