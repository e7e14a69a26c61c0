# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of a migration did, in a few figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ..fleet.failures import Failed, Kept, keep_failures, read_failures

_SUMS = ("entries", "bytes", "bytes_apparent", "bytes_sent", "files_deleted")


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


def all_failures(records: Sequence[Mapping[str, Any]], later: Sequence[Mapping[str, Any]]) -> list[Failed]:
    """Return the failures of a run in the order of its jobs.

    ``records`` are what migrate_conduct returned of each job, and ``later`` the failures of what was left to the role.
    """
    found = {one["name"]: one["failure"] for one in records if one["failure"] and not one["left"]}
    found.update({one["job"]: one for one in later})
    ordered = [found[one["name"]] for one in records if one["name"] in found]
    return read_failures(
        [
            {
                "name": one["job"],
                "what": f"stopped in phase {one['phase']}",
                "reason": one["reason"],
                "next": one["next"],
            }
            for one in ordered
        ]
    )


def tell_failures(later: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the failures of a run as data."""
    return [one._asdict() for one in all_failures(records, later)]


def summarize(
    records: Sequence[Mapping[str, Any]],
    reports: Mapping[str, Mapping[str, Any]],
    failures: Sequence[Failed],
    about: Mapping[str, Any],
) -> Summary:
    """Return the figures of a run. ``reports`` are those of the jobs that were left to the role, by name."""
    totals, switched = [], 0
    for one in records:
        report = reports.get(one["name"])
        totals.append((report or one).get("totals") or {})
        switched += bool((report.get("switch") or {}).get("done")) if report else bool(one["switched"])
    sums = {name: sum(int(total.get(name) or 0) for total in totals) for name in _SUMS}
    return {
        "phase": str(about["phase"]),
        "check_mode": bool(about["check_mode"]),
        "at": str(about["at"]),
        "by": str(about["by"]),
        "jobs": len(records),
        "changed": sum(bool(one["changed"] or one["name"] in reports) for one in records),
        "switched_over": switched,
        "failed": len(failures),
        "entries": sums["entries"],
        "bytes": sums["bytes"],
        "bytes_apparent": sums["bytes_apparent"],
        "bytes_sent": sums["bytes_sent"],
        "files_deleted": sums["files_deleted"],
        "failed_jobs": keep_failures(failures),
        "report": str(about["report"]),
    }
