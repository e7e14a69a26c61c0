# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparisons of the trees of jobs that are not a part of a transfer: how one is made, and what is told of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.modules.verify import DOCUMENTATION

from ...common.argument_spec import spec_from_documentation, validate_options
from ...transfer.tree_comparison import compare_trees
from ..failures import KeptFailure, ReportedFailure, keep_failures
from .hosts import MigrationHosts
from .state import ComparisonResult, MigrationState

# What a comparison calls the things that preserve of a transfer names, where one stands for one.
_FIELDS = {"permissions": "mode", "times": "mtime", "acls": "acls", "hardlinks": "links"}
_RULES = ("filter", "include", "exclude", "exclude_if_present", "exclude_caches")
_MOST_DIFFERENCES = 20  # of one job
_NAMED = 5  # differences in one sentence
NEXT = (
    "If nothing writes to either tree any more, transfer it again, and compare again. After a switch the new host has "
    "changes of its own."
)


def compared_fields(state: MigrationState | None, job: Mapping[str, Any]) -> list[str]:
    """Return what can be the same at the destination, since a transfer kept it; empty if nothing is known of that.

    ``state`` is what is kept of a job, if anything is. Root and other users may not read the same extended attributes.
    """
    phases = state.phases if state else None
    preserved = (phases.cutover.preserved if phases and phases.cutover else []) or job.get("preserve") or []
    if not preserved:
        return []
    fields = ["size", "target", *(_FIELDS[one] for one in preserved if one in _FIELDS)]
    fields += ["owner"] if {"owner", "group"} <= set(preserved) else []
    looked = phases.preflight if phases else None
    is_alike = looked is None or not (looked.source and looked.dest) or looked.source.root == looked.dest.root
    return fields + (["xattrs"] if "xattrs" in preserved and is_alike else [])


def finds_extra(job: Mapping[str, Any]) -> bool:
    """Return whether what only the destination has is a difference.

    With ``delete`` it has nothing of its own, but for what filter rules may protect there.
    """
    return boolean(job.get("delete") or False, strict=False) and not any(job.get(name) for name in _RULES)


def compare_job(
    say: Callable[[str], None], job: Mapping[str, Any], hosts: MigrationHosts, state: MigrationState | None
) -> Mapping[str, Any]:
    """Return what the module verify does of the trees of a job; waits for its hosts, and ``say`` gets its lines.

    Raises Refusal, HostFailed and ComparisonFailed.
    """
    spec = spec_from_documentation(DOCUMENTATION)
    own = {
        "checksum": (job.get("verify") or "checksum") == "checksum",
        "fields": compared_fields(state, job) or None,
        "extra": finds_extra(job),
        "on_difference": "report",
    }
    given = {name: value for name, value in {**job, **own}.items() if name in spec and value is not None}
    options = validate_options(given, spec, (), f"job {job['name']}")
    last = state.passes[-1] if state and state.passes else None
    expects = (last.files_total, max(last.bytes_apparent, last.bytes_total)) if last else (0, 0)
    return compare_trees(hosts.runners["source"], hosts.runners["dest"], options, say, None, True, expects)


class VerifySummary(TypedDict):
    """The statistics of a run; a guide documents them."""

    check_mode: bool
    jobs: int
    identical: int
    different: int
    failed: int  # different, or not compared
    entries: int  # at the sources that were compared
    failed_jobs: list[KeptFailure]


class VerifyReport(NamedTuple):
    """What all comparisons found."""

    lines: list[str]
    summary: VerifySummary
    failures: list[ReportedFailure]


def tell_found(results: Sequence[tuple[str, Mapping[str, Any]]], check_mode: bool = False) -> VerifyReport:
    """Return what was found. ``results`` are what the module verify returns, by job."""
    lines, failures = [], []
    for name, one in results:
        if "identical" not in one:
            reason = str(one.get("msg") or "the comparison failed")
            failures.append(
                ReportedFailure(name, "was not compared", reason, "Fix what is named, and run the same command again.")
            )
            continue
        total = int(one["differences_total"])
        verdict = "the trees are the same" if one["identical"] else f"they differ in {places(total)}"
        entries = [entries_text(int(one[side]["entries"])) for side in ("source", "dest")]
        lines.append(f"{name}: {verdict}, {entries[0]} at the source, {entries[1]} at the destination")
        if not one["identical"]:
            failures.append(ReportedFailure(name, "is different", _tell_differences(total, one["differences"]), NEXT))
    compared = [one for _name, one in results if "identical" in one]
    identical = sum(bool(one["identical"]) for one in compared)
    return VerifyReport(
        lines,
        {
            "check_mode": check_mode,
            "jobs": len(results),
            "identical": identical,
            "different": len(compared) - identical,
            "failed": len(failures),
            "entries": sum(int(one["source"]["entries"]) for one in compared),
            "failed_jobs": keep_failures(failures),
        },
        failures,
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


def tell_differences(found: ComparisonResult) -> str:
    """Return why a comparison is a failure; ``found`` is what is kept of it."""
    named = [
        f"{one['path']} ({one['kind']}{': ' + ', '.join(one['fields']) if one.get('fields') else ''})"
        for one in found.differences[:_NAMED]
    ]
    return (
        f"the trees differ in {places(found.differences_total)}, for example {', '.join(named)}. Either something "
        "still writes to one of them, or a transfer left something out"
    )
