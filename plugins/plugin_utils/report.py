# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task returns, made of what the hosts said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import MAX_DELETED
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record import UNOWNED

from .bottleneck import Line, find_bottleneck
from .plan import PRESERVE, Plan
from .status import Progress, Status

_COUNTS = (
    "bytes_total",
    "bytes_sent",
    "bytes_matched",
    "files_total",
    "files_created",
    "files_updated",
    "files_deleted",
    "files_unchanged",
    "attributes_changed",
    "vanished",
    "errors_total",
    "errors_unstable",
)
_EARLIER = ("files_created", "files_updated", "files_deleted", "attributes_changed", "bytes_sent")
_SHORT = 160  # characters of a path in a message
_PRINTED = 20  # changes in a result without diff mode
_LISTED = 3  # paths with errors that stand in the message itself


class TransferError(Exception):
    """The transfer failed; ``details`` is what is known of it all the same."""

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}


def shape_result(plan: Plan, status: Status, state: str, phases: Mapping[str, float]) -> dict[str, Any]:
    """Give the task's result for the last status of the driving end; ``state`` is running, finished or failed."""
    outcome = status.get("outcome") or {}
    result: dict[str, Any] = {name: outcome.get(name, 0) for name in _COUNTS}
    # Unchanged files are the destination's already, whether or not a program counts them as matched.
    result["bytes_matched"] = max(0, result["bytes_total"] - result["bytes_sent"])
    if not outcome:
        progress = status.get("progress", Progress())
        result.update({k: v for k, v in (("bytes_total", progress.get("bytes_total", 0)),) if v})
        result["bytes_sent"] = progress.get("bytes_done", 0)
    seconds = phases.get("transfer", 0.0)
    changes = outcome.get("changes", [])
    result.update(
        changed=bool(outcome.get("changed")) or state == "running",
        state=state,
        transfer_id=plan.transfer_id,
        method=plan.choice.method,
        method_reason=plan.choice.reason,
        encrypted=plan.encrypted,
        preserved=[word for word in plan.settings["preserve"] if word in PRESERVE],
        errors=outcome.get("errors", []),
        only_unstable=_only_unstable(status, outcome),
        deleted=outcome.get("deleted", []),
        changes=changes,
        changes_total=outcome.get("changes_total", 0),
        changes_truncated=outcome.get("changes_total", 0) > len(changes),
        resumed=bool(outcome.get("resumed")),
        streams=outcome.get("streams") or plan.settings["streams"],
        attached=False,
        verified="none",
        by_rsync=0,
        repaired=[],
        repaired_total=0,
        duration=round(sum(phases.values()), 3),
        throughput=int(result["bytes_sent"] / seconds) if seconds > 0 else 0,
        phases=dict(phases),
        cmd=outcome.get("cmd", {}),
        stderr=outcome.get("stderr", ""),
    )
    if outcome.get("spent"):
        line = Line(plan.line_rate, plan.settings["bwlimit"])
        result["bottleneck"] = find_bottleneck(
            outcome["spent"], plan.choice.method, result["streams"], outcome["bytes_sent"], line
        )
    warnings = [*plan.warnings, *outcome.get("warnings", [])]
    if plan.relabel and (result["files_created"] or result["files_updated"]):
        warnings.append(plan.relabel)
    if warnings:
        result["warnings"] = warnings
    return result


def _only_unstable(status: Status, outcome: Mapping[str, Any]) -> bool:
    """Whether nothing failed but entries that changed each time they were read."""
    if status.get("failure") or outcome.get("failure"):
        return False
    return 0 < int(outcome.get("errors_total", 0)) == int(outcome.get("errors_unstable", 0))


def shorten_changes(result: dict[str, Any]) -> None:
    """Leave no more changes in a task's result than a terminal has room for: Ansible prints all of a result."""
    if "changes" in result:
        result["changes"] = result["changes"][:_PRINTED]
        result["changes_truncated"] = result["changes_total"] > len(result["changes"])


def with_earlier(status: Status, earlier: Mapping[str, Any]) -> Status:
    """Add what a run that nobody waited for had changed already: the task's user sees it only now."""
    outcome = status.get("outcome")
    if not outcome or not earlier.get("changed"):
        return status
    counts = {name: outcome[name] + earlier.get(name, 0) for name in _EARLIER}
    changes = [*earlier.get("changes", []), *outcome["changes"]]
    total = outcome["changes_total"] + earlier.get("changes_total", 0)
    deleted = [*earlier.get("deleted", []), *outcome.get("deleted", [])][:MAX_DELETED]
    merged = dict(outcome, changed=True, changes=changes, changes_total=total, deleted=deleted, **counts)
    touched = sum(merged[name] for name in ("files_created", "files_updated", "attributes_changed"))
    merged["files_unchanged"] = max(0, merged["files_total"] - touched)
    return {**status, "outcome": merged}


def failure_of_paths(outcome: Mapping[str, Any]) -> str:
    """Say in one sentence that some paths failed; empty where none did."""
    total = outcome.get("errors_total", 0)
    if not total:
        return ""
    listed = "; ".join(f"{_short(error['path'])}: {error['reason']}" for error in outcome["errors"][:_LISTED])
    more = f" and {total - _LISTED} more (see errors)" if total > _LISTED else ""
    return (
        f"{total} of the entries could not be transferred: {listed}{more}. The rest is in place; mend these and run "
        "the task again, it sends only what is missing"
    )


def _short(path: str) -> str:
    """Give a path that fits into a sentence; the whole one stands in ``errors``."""
    return path if len(path) <= _SHORT else f"{path[: _SHORT // 2]}...{path[-_SHORT // 2 :]}"


def with_server_side(message: str, said: Mapping[str, Mapping[str, Any]], driver: str) -> str:
    """Add what the serving end said when it failed too: the cause often stands there."""
    server = said["dest" if driver == "source" else "source"]
    failure = server.get("failure")
    return f"{message} (the other end: {failure})" if failure and failure not in message else message


def with_unreachable(message: str, error: Exception) -> str:
    """Add that a host could not be asked and cleared up after a failure, which often has the same cause."""
    return f"{message}. Afterwards {error}. When that host can be reached again, run the task again: it resumes"


def verified_fields(preserve: list[str], checksum: bool, all_xattrs: bool) -> list[str]:
    """Name what a comparison after a transfer looks at: what the transfer was to keep, no more.

    ``all_xattrs``: both ends may read the same extended attributes, which only root or only ordinary users do.
    """
    fields = ["size", "target"]
    for option, name in (("times", "mtime"), ("permissions", "mode"), ("acls", "acls"), ("hardlinks", "links")):
        if option in preserve:
            fields.append(name)
    if "owner" in preserve and "group" in preserve:
        fields.append("owner")
    else:
        fields.append(UNOWNED)
    if "xattrs" in preserve and all_xattrs:
        fields.append("xattrs")
    return fields + (["content"] if checksum else [])
