# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the backups of a fleet are: what the state of each job is, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..units import format_seconds, seconds_of
from .jobs import Run
from .record import Record

OK, FAILED, ASIDE, STALE, NEVER = STATES = ("ok", "failed", "aside", "stale", "never")


class Entry(Record, total=False):
    """A run with its state; of one that never ran there is no more than what it is."""

    state: str  # one of STATES
    why: list[str]
    wanted: bool  # it was to run now
    age: int | None  # seconds, of the newest complete snapshot


def judge(
    runs: Sequence[Run],
    records: Sequence[Record],
    wanted: Sequence[str],
    made: Sequence[str],
    now: float,
    predicted: bool = False,
) -> list[Entry]:
    """Return one entry for each run: its record, with ``state`` and ``why``.

    ``runs`` are those of all jobs and ``records`` what is known of them, from whatever time. ``wanted`` are the ids of
    those that were to run now, ``made`` of those that did. ``now`` is in seconds since 1970. ``predicted``: that was
    in check mode: those that would succeed would have a new snapshot, so they are not stale.

    The worst counts: failed, then aside, stale, ok. ``never`` is one that has not run yet and was not to.
    """
    known = {record["id"]: record for record in records}
    found = []
    for run in runs:
        record, is_made = known.get(run["id"]), run["id"] in made
        may_be_stale = not (predicted and is_made and record is not None and not record["failures"])
        found.append(_judge_one(run, record, run["id"] in wanted, is_made, now if may_be_stale else None))
    return found


def _judge_one(run: Run, record: Record | None, wanted: bool, made: bool, now: float | None) -> Entry:
    newest = seconds_of(record.get("newest") if record else None)
    age = None if newest is None or now is None else max(0, int(now) - newest)
    limit = run["stale_after"]
    state, why = NEVER if record is None else OK, []
    if limit and now is not None and (age is None or age > limit):
        state = STALE
        is_old = "there is no complete snapshot" if age is None else f"the newest one is {format_seconds(age)} old"
        why.append(f"{is_old}, and stale_after is {format_seconds(limit)}")
    if record and record["aside"]:
        state = ASIDE
        why.insert(0, record["aside"])
    failures = [f"{failure['step']}: {failure['reason']}" for failure in (record.get("failures", []) if record else [])]
    if wanted and not made:
        failures = [
            "it did not run: a hook lost its host on the same lane, and again when the lane was resumed. Run it again"
        ]
    if failures:
        state = FAILED
        why = failures + why
    entry = {
        **(record or {}),
        "id": run["id"],
        "host": run["host"],
        "name": run["name"],
        "repository": run["repository"],
        "state": state,
        "why": why,
        "wanted": wanted,
        "age": age,
    }
    return cast(Entry, entry)


# What a person must look at, the worst first, and how that is said.
SICK = {FAILED: "failed", ASIDE: "was set aside", STALE: "is stale"}


def name_sick(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each job that was to run and is not well, from what ``judge`` returned."""
    return [
        f"{one['id']} {SICK[one['state']]}: {'. '.join(one['why'])}"
        for one in entries
        if one["wanted"] and one["state"] in SICK
    ]
