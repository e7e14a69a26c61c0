# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the comparisons of the playbook verify found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text

from ..fleet.failures import Failed, Kept, keep_failures

_MOST_DIFFERENCES = 20  # of one job


class Summary(TypedDict):
    """The statistics of a run; a guide documents them."""

    check_mode: bool
    jobs: int
    identical: int
    different: int
    failed: int  # different, or not compared
    entries: int  # at the sources that were compared
    failed_jobs: list[Kept]


class Found(NamedTuple):
    """What all comparisons found."""

    lines: list[str]
    summary: Summary
    failures: list[dict[str, str]]


def tell_found(results: Sequence[Mapping[str, Any]], check_mode: bool = False) -> Found:
    """Return what was found. ``results`` are those of the tasks, each with the job as ``__migrate_entry``."""
    made = [one for one in results if not one.get("skipped")]
    lines, failures = [], []
    for one in made:
        name = str(one["__migrate_entry"]["name"])
        if "identical" not in one:
            reason = str(one.get("msg") or "the comparison failed")
            failures.append(
                Failed(name, "was not compared", reason, "Fix what is named, and run the same command again.")
            )
            continue
        total = int(one["differences_total"])
        verdict = "the trees are the same" if one["identical"] else f"they differ in {places(total)}"
        entries = [entries_text(int(one[side]["entries"])) for side in ("source", "dest")]
        lines.append(f"{name}: {verdict}, {entries[0]} at the source, {entries[1]} at the destination")
        if not one["identical"]:
            failures.append(Failed(name, "is different", _tell_differences(total, one["differences"]), _NEXT))
    compared = [one for one in made if "identical" in one]
    identical = sum(bool(one["identical"]) for one in compared)
    return Found(
        lines,
        {
            "check_mode": check_mode,
            "jobs": len(made),
            "identical": identical,
            "different": len(compared) - identical,
            "failed": len(failures),
            "entries": sum(int(one["source"]["entries"]) for one in compared),
            "failed_jobs": keep_failures(failures),
        },
        [one._asdict() for one in failures],
    )


_NEXT = (
    "If nothing writes to either tree any more, transfer it again, and compare again. After a switch the new host has "
    "changes of its own."
)


def _tell_differences(total: int, differences: Sequence[Mapping[str, Any]]) -> str:
    shown = differences[:_MOST_DIFFERENCES]
    lines = [f"the trees differ in {places(total)}"]
    lines += [
        f"  {one['path']}: {one['kind']}{' in ' + ', '.join(one['fields']) if one.get('fields') else ''}"
        for one in shown
    ]
    return "\n".join([*lines, *([f"  and in {places(total - len(shown))} more"] if total > len(shown) else [])])


def places(count: int) -> str:
    """Return so many places in words."""
    return counted(count, "place", "places")
