# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the backups of a fleet are: what the state of each job is, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..units import format_seconds, seconds_of

OK, FAILED, ASIDE, STALE, NEVER = STATES = ("ok", "failed", "aside", "stale", "never")


def judge(
    runs: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    wanted: Sequence[str],
    made: Sequence[str],
    now: float,
    predicted: bool = False,
) -> list[dict[str, Any]]:
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


def _judge_one(
    run: Mapping[str, Any], record: Mapping[str, Any] | None, wanted: bool, made: bool, now: float | None
) -> dict[str, Any]:
    newest = seconds_of((record or {}).get("newest"))
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
    failures = [f"{failure['step']}: {failure['reason']}" for failure in (record or {}).get("failures", [])]
    if wanted and not made:
        failures = [
            "it did not run: a hook lost its host on the same lane, and again when that was gone on with. Run it again"
        ]
    if failures:
        state = FAILED
        why = failures + why
    facts = {key: run[key] for key in ("id", "host", "name", "repository")}
    return {**(record or {}), **facts, "state": state, "why": why, "wanted": wanted, "age": age}


# What a person must look at, the worst first, and how that is said.
SICK = {FAILED: "failed", ASIDE: "was set aside", STALE: "is stale"}


def name_sick(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each job that was to run and is not well, from what ``judge`` returned."""
    return [
        f"{one['id']} {SICK[one['state']]}: {'. '.join(one['why'])}"
        for one in entries
        if one["wanted"] and one["state"] in SICK
    ]
