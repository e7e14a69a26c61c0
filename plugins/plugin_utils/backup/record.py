# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of one backup, as the report and the next run know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ..units import seconds_of
from .jobs import Repository


class Failure(TypedDict):
    """What failed, and why."""

    step: str
    reason: str


class Record(TypedDict):
    """What became of a run, as reports and the next run read it. An earlier version may have left out something."""

    id: str
    host: str
    name: str
    repository: Repository
    at: str  # ISO 8601, UTC
    ended: str
    duration: int  # seconds
    failures: list[Failure]
    notes: list[str]
    snapshot: str  # empty if none was finished
    resumed: bool
    aside: str  # what waits for a decision
    newest: str | None  # when the newest complete snapshot was begun that is not of the future
    snapshots: int | None  # complete ones
    figures: dict[str, int]  # of the snapshot
    size: int | None  # bytes of the snapshot, or of the one before
    transfers: list[dict[str, object]]  # see transfers.KEPT
    kept: dict[str, list[str]]  # the rules by snapshot
    removed: list[str]
    check: dict[str, object]  # empty if nothing was checked


def make_record(
    run: Mapping[str, Any],
    at: str,
    ended: str,
    failures: Sequence[Failure],
    notes: Sequence[str],
    said: Mapping[str, Mapping[str, Any]],
    transfers: Sequence[Mapping[str, Any]],
    before: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of a run.

    ``at`` and ``ended`` are when it began and ended. ``failures`` have ``step`` and ``reason``, and ``notes`` are what
    a person should know although it succeeded. ``said`` is what the module snapshot answered, by action, and
    ``transfers`` are what the report keeps of the transfers. What the repository did not tell this time is taken from
    the record ``before``.
    """
    before = before or {}
    begun, finished, pruned, checked = (said.get(action) or {} for action in ("begin", "finish", "prune", "check"))
    listed = (said.get("list") or {}).get("snapshots")
    complete = [one for one in listed or () if one["state"] == "complete"]
    present = [one for one in complete if not is_future(one["time"], ended)]
    future = [one["name"] for one in complete if one not in present]
    waiting = [one for one in listed or () if one["state"] == "aside"]
    figures = dict(finished.get("figures") or {})
    removed = list(pruned.get("removed", []))
    return {
        "id": run["id"],
        "host": run["host"],
        "name": run["name"],
        "repository": run["repository"],
        "at": at,
        "ended": ended,
        "duration": (seconds_of(ended) or 0) - (seconds_of(at) or 0),
        "failures": [{"step": failure["step"], "reason": failure["reason"]} for failure in failures],
        "notes": list(dict.fromkeys([*notes, *_tell_future(future)])),
        "snapshot": finished.get("name", ""),
        "resumed": bool(begun.get("resumed")),
        "aside": before.get("aside", "") if listed is None else _aside(waiting),
        "newest": before.get("newest") if listed is None else (present[-1]["time"] if present else None),
        "snapshots": before.get("snapshots") if listed is None else len(complete) - len(removed),
        "figures": figures,
        "size": figures.get("bytes", before.get("size", (before.get("figures") or {}).get("bytes"))),
        "transfers": [dict(transfer) for transfer in transfers],
        "kept": dict(pruned.get("kept", {})),
        "removed": removed,
        "check": {**checked.get("checked", {}), "sound": bool(checked["sound"])} if "sound" in checked else {},
    }


def is_future(at: str, now: str) -> bool:
    """Return whether a snapshot's time is so far after ``now``, on the control node, that a clock was wrong."""
    return (seconds_of(at) or 0) > (seconds_of(now) or 0) + names.LARGEST_STEP


def _tell_future(found: Sequence[str]) -> list[str]:
    if not found:
        return []
    return [
        f"{', '.join(found)}: a date of the future. The clock of the repository was wrong, or that of the control node "
        "is. Such a snapshot never counts as the newest, and no policy removes it. If both clocks are right and you do "
        f"not need it, rename it to {names.REMOVING_PREFIX}{found[0]}, and the next prune removes it"
    ]


def _aside(waiting: Sequence[Mapping[str, Any]]) -> str:
    """Return what waits for a decision; empty if nothing does."""
    if not waiting:
        return ""
    last = waiting[-1]
    return (
        f"{last['name']} lost suspiciously much ({last['reason']}). Until somebody has compared it with the one "
        "before and accepted or discarded it (longhaul.fleet.snapshot, action accept or discard), nothing is pruned"
    )
