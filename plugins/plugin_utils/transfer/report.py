# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task returns, made of what the hosts said. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Iterable

from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.plan import MEASURES
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import (
    BYTES_DONE,
    ENTRIES_DONE,
    MAX_DELETED,
    Outcome,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import CHROOT, CONFINE_ROOT
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record import UNOWNED, UNTRUSTED

from ..common.host_text import harmless, harmless_data
from ..common.units import format_bytes, format_size
from ..hosts.trust import FULL, NONE
from .bottleneck import Line, TransferFacts, find_bottleneck
from .plan import PRESERVE, Plan
from .result import Result
from .status import Status

_SHORT = 160  # characters of a path in a message
_PRINTED = 20  # members of a list in a result without diff mode
_LISTED = 3  # paths with errors that stand in the message itself


class TransferError(Exception):
    """The transfer failed; ``details`` is what is known of it all the same.

    ``may_pass``: the same task may succeed later, since the cause was a line or a host that went away.
    """

    def __init__(self, message: str, details: Result | None = None, may_pass: bool = False) -> None:
        super().__init__(harmless(message))
        self.details = harmless_data(details)
        self.may_pass = may_pass


def shape_result(plan: Plan, status: Status, state: str, phases: Mapping[str, float], ready: Peer) -> Result:
    """Return the task's result for the last status of the driving end; ``state`` is running, finished or failed.

    ``ready`` is what the serving end said when it was.
    """
    outcome, progress = status.outcome, status.progress
    if outcome is None:  # it runs
        outcome = Outcome(
            bytes_apparent=progress.bytes_apparent,
            bytes_total=progress.bytes_total,
            bytes_content=progress.bytes_done,
            bytes_sent=progress.bytes_sent,
        )
    seconds = max(phases.get("transfer", 0.0), status.ran)  # who attached to it has seen a part only
    result: Result = {
        "bytes_apparent": outcome.bytes_apparent,
        "bytes_total": outcome.bytes_total,
        "bytes_content": outcome.bytes_content,
        "bytes_sent": outcome.bytes_sent,
        # Unchanged files are the destination's already, whether or not a program counts them as matched.
        "bytes_matched": max(0, outcome.bytes_total - outcome.bytes_content) if status.outcome else 0,
        "bytes_from_basis": outcome.bytes_from_basis,
        "bytes_shared": outcome.bytes_shared,
        "files_total": outcome.files_total,
        "files_created": outcome.files_created,
        "files_updated": outcome.files_updated,
        "files_deleted": outcome.files_deleted,
        "files_unchanged": outcome.files_unchanged,
        "attributes_changed": outcome.attributes_changed,
        "vanished": outcome.vanished,
        "left_out": outcome.left_out,
        "errors_total": outcome.errors_total,
        "errors_unstable": outcome.errors_unstable,
        "changed": outcome.changed or state == "running",
        "state": state,
        "transfer_id": plan.transfer_id,
        "method": plan.choice.method,
        "method_reason": plan.choice.reason,
        "encrypted": plan.encrypted,
        "trust": plan.trust,
        "confinement": confinement_of(plan.driver, status.outcome, ready),
        "preserved": [word for word in plan.settings["preserve"] if word in PRESERVE],
        "errors": outcome.errors,
        "only_unstable": _only_unstable(status, outcome),
        "deleted": outcome.deleted,
        "changes": outcome.changes,
        "changes_total": outcome.changes_total,
        "changes_truncated": outcome.changes_total > len(outcome.changes),
        "resumed": outcome.resumed,
        "streams": outcome.streams or plan.settings["streams"],
        "attached": False,
        "verified": "none",
        "by_rsync": 0,
        "repaired": [],
        "repaired_total": 0,
        "duration": round(sum(phases.values()), 3),
        "throughput": int(outcome.bytes_sent / seconds) if seconds > 0 else 0,
        "phases": dict(phases),
        "cmd": outcome.cmd,
        "stderr": outcome.stderr,
    }
    if outcome.spent:
        facts = TransferFacts(
            method=plan.choice.method,
            streams=result["streams"],
            bytes_sent=outcome.bytes_sent,
            encrypted=plan.encrypted,
            moved=_is_moved(plan, outcome),
        )
        line = Line(plan.line_rate, plan.settings["bwlimit"])
        result["bottleneck"] = find_bottleneck(outcome.spent, facts, line)
    warnings = [*plan.warnings, *outcome.warnings]
    if plan.relabel and (outcome.files_created or outcome.files_updated):
        warnings.append(plan.relabel)
    if warnings:
        result["warnings"] = warnings
    return result


def _is_moved(plan: Plan, outcome: Outcome) -> bool:
    """Whether contents or entries went to the destination, and were not only predicted or looked at."""
    return not plan.settings["check"] and bool(outcome.bytes_content or outcome.files_created or outcome.files_updated)


def _only_unstable(status: Status, outcome: Outcome) -> bool:
    """Whether nothing failed but entries that changed each time they were read."""
    if status.failure or outcome.failure:
        return False
    return 0 < outcome.errors_total == outcome.errors_unstable


def summary_line(label: str, result: Result, check: bool, joined: str = "") -> str:
    """Return the line that ends a transfer of ``label``.

    ``check``: it is predicted. ``joined``: the part that an earlier run had in it, empty if it had none.
    """
    counts = [
        (result["files_created"], "new"),
        (result["files_updated"], "updated"),
        (result["attributes_changed"], "with other attributes"),
        (result["files_deleted"], "deleted"),
    ]
    changes = ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing to change"
    size = format_size(result["bytes_total"], result["bytes_apparent"])
    tree = f"{label}: {entries_text(result['files_total'])}, {size}; {changes}"
    if check:
        content = result["bytes_content"]
        return f"{tree} (check mode){f'; {format_bytes(content)} to send' if content else ''}"
    if result["state"] == "running":
        return f"{label}: transfer {result['transfer_id']} goes on, on the hosts. Run the task again to wait for it"
    how = f"{result['method']}, {'encrypted' if result['encrypted'] else 'not encrypted'}"
    took = f"{result['phases'].get('transfer', 0.0):.1f} s"
    sent = f"sent {format_bytes(result['bytes_sent'])} in {took}{' in all' if joined else ''} ({how})"
    sent = f"{joined}: {sent}" if joined else sent
    moving = result.get("unstable", 0)
    but = f" but for {entries_text(moving)} that changed at the source" if moving else ""
    verified = "" if result["verified"] == "none" else f"; compared by {result['verified']}: identical{but}"
    return f"{tree}; {sent}{verified}"


def shorten_lists(result: Result) -> None:
    """Leave no more in the lists of a task's result than a terminal has room for: Ansible prints all of a result.

    Of each list there is a count beside it.
    """
    result["changes"] = result["changes"][:_PRINTED]
    result["changes_truncated"] = result["changes_total"] > len(result["changes"])
    result["deleted"], result["errors"] = result["deleted"][:_PRINTED], result["errors"][:_PRINTED]
    result["repaired"] = result["repaired"][:_PRINTED]
    if "differences" in result:
        result["differences"] = result["differences"][:_PRINTED]


def show_changes(result: Result, as_diff: bool) -> None:
    """Make the diff of a task from the changes, or shorten its lists."""
    if as_diff:
        result["diff"] = {"prepared": "".join(f"{line}\n" for line in result["changes"])}
    else:
        shorten_lists(result)


def with_earlier(status: Status, earlier: Outcome | None) -> Status:
    """Add what a run that nobody waited for had changed already: the task's user sees it only now."""
    if status.outcome is None or earlier is None or not earlier.changed:
        return status
    merged = Outcome(**vars(status.outcome))
    for name in (*ENTRIES_DONE, *BYTES_DONE):
        setattr(merged, name, getattr(merged, name) + getattr(earlier, name))
    merged.changes = [*earlier.changes, *merged.changes]
    merged.changes_total += earlier.changes_total
    merged.deleted = [*earlier.deleted, *merged.deleted][:MAX_DELETED]
    return replace(status, outcome=merged)


def failure_of_paths(outcome: Outcome) -> str:
    """Return a sentence that some paths failed; empty if none did."""
    total = outcome.errors_total
    if not total:
        return ""
    listed = "; ".join(f"{_short(error['path'])}: {error['reason']}" for error in outcome.errors[:_LISTED])
    more = f" and {total - _LISTED} more (see errors)" if total > _LISTED else ""
    return (
        f"{total} of the entries could not be transferred: {listed}{more}. The rest is in place; fix these and run "
        "the task again, it sends only what is missing"
    )


def _short(path: str) -> str:
    """Return a path that fits into a sentence; the whole one stands in ``errors``."""
    return path if len(path) <= _SHORT else f"{path[: _SHORT // 2]}...{path[-_SHORT // 2 :]}"


def with_server_side(message: str, failures: Mapping[str, str], driver: str) -> str:
    """Add what the serving end said when it failed too (``failures`` by side): the cause often stands there."""
    failure = failures["dest" if driver == "source" else "source"]
    return f"{message} (the peer: {failure})" if failure and failure not in message else message


def with_unreachable(message: str, error: Exception) -> str:
    """Add that a host could not be asked and cleared up after a failure, which often has the same cause."""
    return f"{message}. Afterwards {error}. When that host can be reached again, run the task again: it resumes"


def coarse_times(units: Mapping[str, int], root: str, host: str) -> str:
    """Return the notice that a destination keeps times coarsely; ``units`` are those of an outcome."""
    coarse = {path: unit for path, unit in units.items() if unit > 1}
    path, unit = min(coarse.items())
    more = f" (and in {counted(len(coarse) - 1, 'other place', 'other places')} below it)" if len(coarse) > 1 else ""
    return (
        f"the file system of {os.path.join(root, path).rstrip('/')} on {host} keeps modification times in steps of "
        f"{_interval(unit)}{more}, so times are compared in these steps: a file that changes within one step, and "
        "keeps its size, counts as unchanged. checksum: true compares contents instead"
    )


def _interval(nanoseconds: int) -> str:
    for name, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds // size} {name}"
    return f"{nanoseconds} ns"


def verified_fields(preserve: list[str], checksum: bool, all_xattrs: bool, trust: str = FULL) -> list[str]:
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
        if trust == NONE:
            fields.append(UNTRUSTED)
    return fields + (["content"] if checksum else [])


_KNOWN = (*MEASURES, CHROOT, CONFINE_ROOT)


def confinement_of(driver: str, outcome: Outcome | None, ready: Peer) -> dict[str, list[str]]:
    """Return what was in force on each side: each says it of itself, and a word that means nothing here is left out.

    ``ready`` is what the serving end said when it was.
    """
    server = "dest" if driver == "source" else "source"
    rsync = [CHROOT] if ready.get("chroot") else [ready.get("confined", "")]
    return {
        driver: _known(outcome.confinement if outcome is not None else ()),
        server: _known([*ready.get("confinement", ()), *rsync]),
    }


def _known(words: Iterable[str]) -> list[str]:
    said = set(words)
    return [word for word in _KNOWN if word in said]
