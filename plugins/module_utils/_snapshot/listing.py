# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List the snapshots of a job. Private to the collection."""

from __future__ import annotations

from typing import NamedTuple

from . import names
from .errors import Refused
from .facts import CheckRecord
from .hold import Hold, ending_clock, hold_of
from .repository import Series

UNFINISHED = "unfinished"


class SnapshotRow(NamedTuple):
    """What is told of a snapshot. Times are in seconds since 1970; what is not known is None."""

    name: str
    path: str
    state: str  # complete, aside, removing, unfinished
    complete: bool
    latest: bool
    time: int
    age: int  # seconds
    entries: int | None
    size: int | None  # bytes
    new_data: int | None  # bytes
    origin: str
    reason: str  # why it was set aside
    verified: int | None
    checked: int | None
    damaged: list[str]  # paths that the last checks found damaged
    problem: str
    hold: Hold | None  # even if it has ended
    protected: bool  # by a hold that has not ended
    read_only: bool  # the folders of its tree are made immutable


def listing(series: Series, now: int, control_time: int | None = None) -> list[SnapshotRow]:
    """Describe every snapshot, the oldest first, then the unfinished one. Nothing is read but facts."""
    latest, clock = series.latest(), ending_clock(series, now, control_time)
    found = []
    for kind in names.PREFIXES:
        for at in series.times(kind):
            found.append(_describe(series, names.name_of(at, kind), kind, at, now, latest, clock))
    found.sort(key=lambda item: item.time)
    if series.has(names.UNFINISHED):
        found.append(_describe(series, names.UNFINISHED, UNFINISHED, None, now, latest, clock))
    return found


def _describe(
    series: Series, name: str, state: str, at: int | None, now: int, latest: str | None, clock: int
) -> SnapshotRow:
    facts = hold = None
    checked = CheckRecord()
    problem = ""
    try:
        with series.snapshot(name) as snapshot:
            checked, hold = snapshot.checked(), hold_of(snapshot)
            facts = snapshot.facts()
    except Refused as refused:
        problem = str(refused)
    except OSError as error:
        problem = f"it cannot be opened: {error.strerror}"
    if at is None:
        at = facts.time if facts else now
    done = facts if facts and facts.finished is not None else None
    return SnapshotRow(
        name=name,
        path=f"{series.path}/{name}/{names.DATA}",
        state=state,
        complete=state == names.COMPLETE,
        latest=name == latest,
        time=at,
        age=now - at,
        entries=done.figures.entries if done else None,
        size=done.figures.bytes if done else None,
        new_data=done.figures.new_bytes if done else None,
        origin=facts.origin if facts else "",
        reason=(facts.aside or "") if facts else "",
        verified=checked.verified,
        checked=checked.checked,
        damaged=checked.damaged,
        # What a kill left of one that is being removed has no facts, and needs none.
        problem=problem if state in (names.COMPLETE, names.ASIDE) else "",
        hold=hold,
        protected=hold is not None and hold.holds(clock),
        read_only=facts is not None and facts.read_only,
    )
