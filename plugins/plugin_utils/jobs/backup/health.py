# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the backups of a fleet are: what the state of each job is, and why. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import LARGEST_STEP

from ...common.units import format_duration, seconds_of
from ..failures import IS_ASIDE, IS_BUSY, IS_STALE, IS_UNCOPIED, KeptFailure, ReportedFailure, keep_failures
from .jobs import Run
from .state import BackupRecord

_PLAIN = re.compile(r"[\w./@%+:,-]+", re.ASCII)
OK, FAILED, ASIDE, STALE, UNCOPIED, NEVER = STATES = ("ok", "failed", "aside", "stale", "uncopied", "never")


@dataclass
class JobHealth:
    """A job for one host, with its last backup and its state."""

    id: str
    host: str
    name: str
    repository: Mapping[str, str]
    record: BackupRecord | None  # None: it never ran
    state: str  # one of STATES
    why: list[str]
    next: str  # what to do; empty if it is well
    wanted: bool  # it was to run now
    age: int | None  # seconds, of the newest complete snapshot
    is_stale: bool = False  # also where another state counts
    busy: str = ""  # why it did not run: another run is at work
    stale_after: int | None = None  # seconds; None: it never is

    def dump(self) -> dict[str, object]:
        """Return it as reports have it: one object with the members of the record, without the runs before."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "record"}
        record = self.record.dump() if self.record else {}
        record.pop("history", None)
        return {**record, **own}


def judge(
    runs: Sequence[Run],
    records: Sequence[BackupRecord],
    wanted: Sequence[str],
    made: Sequence[str],
    now: float,
    predicted: bool = False,
    busy: Mapping[str, str] = MappingProxyType({}),
    inventories: Sequence[str] = (),
) -> list[JobHealth]:
    """Return the state of each run.

    ``runs`` are those of all jobs and ``records`` what is known of them, from whatever time. ``wanted`` are the ids of
    those that were to run now, ``made`` of those that did. ``now`` is in seconds since 1970. ``predicted``: that was
    in check mode: those that would succeed would have a new snapshot, so they are not stale. ``busy`` says of which
    another run is at work: their last record counts. ``inventories`` are those of the run, for commands that a person
    may type.

    The worst counts: failed, then aside, stale, uncopied (a copy fails, or is too old), ok. ``never`` is one that has
    not run yet and was not to.
    """
    known = {record.id: record for record in records}
    found = []
    for run in runs:
        record, is_made = known.get(run["id"]), run["id"] in made
        may_be_stale = not (predicted and is_made and record is not None and not record.failures)
        why_busy = "" if is_made else busy.get(run["id"], "")
        one = _judge_one(run, record, run["id"] in wanted, is_made, now if may_be_stale else None, why_busy)
        if one.state == ASIDE and record is not None and record.aside_name:
            one.next = tell_aside_commands(one, record.aside_name, inventories)
        found.append(one)
    return found


def tell_aside_commands(one: JobHealth, name: str, inventories: Sequence[str]) -> str:
    """Return the commands by which a person looks at a snapshot that was set aside, and decides about it."""
    place = {"repository": one.repository["path"], "host": one.host, "job": one.name}
    options = "".join(f" -i {shlex.quote(path)}" for path in inventories)

    def command(**own: str) -> str:
        words = " ".join(f"{key}={_option(value)}" for key, value in {**own, **place}.items())
        return f"ansible{options} {one.repository['host']} -m longhaul.fleet.snapshot -a {shlex.quote(words)}"

    look, accept = command(action="diff", new=name), command(action="accept", name=name)
    return f"Look at what differs: {look}\nThen accept the snapshot (action=discard removes it instead): {accept}"


def _option(value: str) -> str:
    """Return a value as Ansible reads it in a text of options."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


def _judge_one(
    run: Run, record: BackupRecord | None, wanted: bool, made: bool, now: float | None, busy: str
) -> JobHealth:
    newest = seconds_of(record.newest if record else None)
    if newest is not None and now is not None and newest > now + LARGEST_STEP:
        newest = None  # as a record has it that was written with a wrong clock
    age = None if newest is None or now is None else max(0, int(now) - newest)
    limit = run["stale_after"]
    state, why = NEVER if record is None else OK, []
    is_stale = False
    lacking = find_lacking(run, record, now)
    if lacking:
        state, why = UNCOPIED, lacking
    if limit and now is not None and (age is None or age > limit):
        state, is_stale = STALE, True
        is_old = "there is no complete snapshot" if age is None else f"the newest one is {format_duration(age)} old"
        why.insert(0, f"{is_old}, and stale_after is {format_duration(limit)}")
    if record and record.aside:
        state = ASIDE
        why.insert(0, record.aside)
    failures, only_drill = record.failures if record else [], False
    if wanted and not made and not busy:
        why = ["it did not run: an error ended the tasks that were to make it, see above. Run it again", *why]
        state = FAILED
    elif failures:
        why = [*(f"{failure.step}: {failure.reason}" for failure in failures), *why]
        state = FAILED
        is_made = bool(record and record.newest) and not (is_stale or (record and record.aside))
        only_drill = is_made and all(failure.step == "drill" for failure in failures)
    return JobHealth(
        id=run["id"],
        host=run["host"],
        name=run["name"],
        repository={"host": run["repository"]["host"], "path": run["repository"]["path"]},
        record=record,
        state=state,
        why=why,
        next=(_NEXT_DRILL if only_drill else _NEXT.get(state, "")).format(id=run["id"]),
        wanted=wanted,
        age=age,
        is_stale=is_stale,
        busy=busy,
        stale_after=limit or None,
    )


def find_lacking(run: Run, record: BackupRecord | None, now: float | None) -> list[str]:
    """Return what is wrong with the copies of a job."""
    found = []
    for copy in record.copies if record else ():
        if copy.error:
            found.append(f"copy in {copy.place}: {copy.error}")
        elif run["stale_after"] and now is not None and copy.newest:
            age = int(now) - (seconds_of(copy.newest) or 0)
            if age > run["stale_after"]:
                limit = format_duration(run["stale_after"])
                found.append(
                    f"copy in {copy.place}: the newest one is {format_duration(age)} old, and stale_after is {limit}"
                )
    return found


# What a person must look at, the worst first, and how that is said.
SICK = {FAILED: "failed", ASIDE: IS_ASIDE, STALE: IS_STALE, UNCOPIED: IS_UNCOPIED}
_NEXT = {
    FAILED: "Fix what is named, and run it again: -e backup_only={id}",
    ASIDE: "Look at what is missing or has changed, and accept or discard the snapshot.",
    STALE: "Find out why it did not run, and run it: -e backup_only={id}",
    UNCOPIED: "The backup itself is as it should be. Fix what is named; the next run copies what is missing.",
}


_NEXT_DRILL = (
    "Only the drill failed. Fix what is named, and practise again: -e backup_only={id} -e backup_drill_only=true"
)
_WAIT = "Wait for that run to end; what it makes is in its own report."


def sentences(texts: Sequence[str]) -> str:
    """Return texts as sentences, each but the first with a capital letter."""
    return ". ".join([*texts[:1], *(text[:1].upper() + text[1:] for text in texts[1:])])


def find_sick(entries: Sequence[JobHealth]) -> list[ReportedFailure]:
    """Return each job that was to run and is not well, from what ``judge`` returned.

    A job at which another run is at work is well, unless its newest snapshot is stale. If all jobs are such, this run
    has done nothing that it was asked for, so they are returned.
    """
    wanted = [one for one in entries if one.wanted]
    sick = [
        ReportedFailure(one.id, SICK[STALE], sentences([*one.why, one.busy]), _NEXT[STALE].format(id=one.id))
        if one.busy
        else ReportedFailure(one.id, SICK[one.state], sentences(one.why), one.next)
        for one in wanted
        if (one.is_stale if one.busy else one.state in SICK)
    ]
    if sick or not all(one.busy for one in wanted):
        return sick
    return [ReportedFailure(one.id, IS_BUSY, one.busy, _WAIT) for one in wanted]


class BackupSummary(TypedDict):
    """The statistics of a run; a guide documents them."""

    check_mode: bool
    at: str  # UTC
    jobs: int  # all, each for one host
    wanted: int  # that were to run now
    made: int  # that did
    ok: int
    failed: int
    aside: int
    stale: int
    uncopied: int  # whose copies need attention
    never: int
    busy: int  # that were to run now, and at which another run is at work; the last record of each counts above
    bytes_sent: int  # by those that ran
    bytes_new: int  # that their snapshots take
    removed: int  # snapshots
    failed_jobs: list[KeptFailure]
    report: str


def summarize(
    entries: Sequence[JobHealth],
    made: Sequence[BackupRecord],
    sick: Sequence[ReportedFailure],
    at: str,
    report: str,
    check_mode: bool,
) -> BackupSummary:
    """Return the figures of a run. ``made`` are the records of the backups that it made."""
    count = Counter(one.state for one in entries)
    return {
        "check_mode": check_mode,
        "at": at,
        "jobs": len(entries),
        "wanted": sum(one.wanted for one in entries),
        "made": len(made),
        "ok": count[OK],
        "failed": count[FAILED],
        "aside": count[ASIDE],
        "stale": count[STALE],
        "uncopied": count[UNCOPIED],
        "never": count[NEVER],
        "busy": sum(bool(one.busy) for one in entries),
        "bytes_sent": sum(transfer.bytes_sent for record in made for transfer in record.transfers),
        "bytes_new": sum(record.figures.get("new_bytes", 0) for record in made),
        "removed": sum(len(record.removed) for record in made),
        "failed_jobs": keep_failures(sick),
        "report": report,
    }
