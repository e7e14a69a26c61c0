# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the backups of a fleet are: what each job's state is, and the same for Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .units import format_seconds, seconds_of

OK, FAILED, ASIDE, STALE, NEVER = STATES = ("ok", "failed", "aside", "stale", "never")


def judge(
    runs: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    wanted: Sequence[str],
    made: Sequence[str],
    now: float,
    predicted: bool = False,
) -> list[dict[str, Any]]:
    """Give one entry for each run: its record, with ``state`` and ``why``.

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


def metrics(entries: Sequence[Mapping[str, Any]]) -> str:
    """Give the text of a file for the textfile collector of Prometheus' node exporter. Times are seconds since 1970."""
    lines = []
    for name, text, value_of in _METRICS:
        found = [(entry, value_of(entry)) for entry in entries]
        lines += [f"# HELP longhaul_backup_{name} {text}", f"# TYPE longhaul_backup_{name} gauge"]
        lines += [f"longhaul_backup_{name}{{{_labels(entry)}}} {value}" for entry, value in found if value is not None]
    lines += [
        "# HELP longhaul_backup_state What became of the job: 1 for its state, 0 for the others.",
        "# TYPE longhaul_backup_state gauge",
    ]
    lines += [
        f'longhaul_backup_state{{{_labels(entry)},state="{state}"}} {int(entry["state"] == state)}'
        for entry in entries
        for state in STATES
    ]
    return "".join(line + "\n" for line in lines)


def _labels(entry: Mapping[str, Any]) -> str:
    words = {
        "host": entry["host"],
        "job": entry["name"],
        "repository": f"{entry['repository']['host']}:{entry['repository']['path']}",
    }
    return ",".join(f'{name}="{_escape(str(value))}"' for name, value in words.items())


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _figure(name: str) -> Any:
    return lambda entry: (entry.get("figures") or {}).get(name)


_METRICS = (
    (
        "healthy",
        "Whether the last run succeeded, and the newest is not too old.",
        lambda e: int(e["state"] == OK),
    ),
    ("last_run_timestamp_seconds", "When the last run began.", lambda e: seconds_of(e.get("at"))),
    ("newest_timestamp_seconds", "When the newest complete snapshot was begun.", lambda e: seconds_of(e.get("newest"))),
    ("duration_seconds", "How long the last run took.", lambda e: e.get("duration")),
    ("snapshots", "How many complete snapshots there are.", lambda e: e.get("snapshots")),
    ("size_bytes", "The bytes of the last run's snapshot.", _figure("bytes")),
    ("new_bytes", "The bytes in it that it does not share with the one before.", _figure("new_bytes")),
    ("entries", "The entries of the last run's snapshot.", _figure("entries")),
    ("gone", "The entries of the snapshot before that are not in it.", _figure("gone")),
)
