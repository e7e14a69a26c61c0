# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of a migration did, in a few figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from ..fleet.failures import Failed, Kept, keep_failures

_SUMS = ("entries", "bytes", "bytes_apparent", "bytes_sent", "files_deleted")


class JobRecord(TypedDict):
    """What a call of the action returns of a job, for later calls and for the figures of the run."""

    name: str
    dest_host: str
    changed: bool
    left: bool  # a later call has more to do with it
    failure: dict[str, str]  # empty if it did not fail
    switched: bool  # by this run or an earlier one
    totals: dict[str, int]  # of all transfers; empty if there is no report of this run


class Summary(TypedDict):
    """The statistics of a run; a guide documents them."""

    phase: str
    check_mode: bool
    at: str  # UTC
    by: str
    jobs: int
    changed: int
    switched_over: int
    failed: int
    entries: int
    bytes: int
    bytes_apparent: int
    bytes_sent: int
    files_deleted: int
    failed_jobs: list[Kept]
    report: str


def find_failures(records: Iterable[JobRecord]) -> list[Failed]:
    """Return the failures of a run, in the order of its jobs."""
    return [
        Failed(name, f"stopped in phase {failure['phase']}", failure["reason"], failure["next"])
        for name, failure in ((one["name"], one["failure"]) for one in records)
        if failure
    ]


def summarize(records: Sequence[JobRecord], phase: str, check_mode: bool, at: str, by: str, report: str) -> Summary:
    """Return the figures of a run. ``report`` is the path of the report on all jobs, empty if there is none."""
    sums = {name: sum(int(one["totals"].get(name) or 0) for one in records) for name in _SUMS}
    failures = find_failures(records)
    return {
        "phase": phase,
        "check_mode": check_mode,
        "at": at,
        "by": by,
        "jobs": len(records),
        "changed": sum(one["changed"] for one in records),
        "switched_over": sum(one["switched"] for one in records),
        "failed": len(failures),
        "entries": sums["entries"],
        "bytes": sums["bytes"],
        "bytes_apparent": sums["bytes_apparent"],
        "bytes_sent": sums["bytes_sent"],
        "files_deleted": sums["files_deleted"],
        "failed_jobs": keep_failures(failures),
        "report": report,
    }
