# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An audit of a repository: its folders, their snapshots, the contents that checks have read, and the decisions.

Private to the collection. Reads names, small files and histories alone, no tree and no manifest.
"""

from __future__ import annotations

import time
from typing import Callable, Iterable, NamedTuple

from . import history, names
from .errors import Refused
from .facts import CheckRecord
from .history import Event, find_missing, read_history
from .hold import active_holds, ending_clock
from .repository import Series
from .room import Room, find_room
from .search import Skipped, find_folders

MOST_NAMES = 2_000  # of snapshots of a job, the newest
MOST_DECISIONS = 100  # of a job, the newest
_MOST_FOLDERS = 20_000
# A policy prunes each night, so that is only counted, and nobody decides that a snapshot is made or found.
_ROUTINE = (history.MADE, history.FOUND, history.PRUNED, history.COPIED, history.REPAIRED)


class SnapshotDecision(NamedTuple):
    """An act of a person, or one that no run of this collection did."""

    act: str
    name: str  # of the snapshot
    at: str
    by: str
    why: str
    was: str


class FolderAudit(NamedTuple):
    """The folder of a job. Times are texts in UTC; None: never."""

    host: str
    job: str
    complete: list[str]  # names, the oldest first
    complete_total: int
    aside: list[str]
    verified: int  # complete snapshots of which all contents were read and found intact
    verified_oldest: str | None
    verified_newest: str | None
    parts_read: int  # of the contents of the newest complete snapshot
    parts_of: int
    damaged: list[str]  # complete snapshots in which a check found a problem
    missing: list[str]  # snapshots that are gone, although nothing of this collection removed them
    decisions: list[SnapshotDecision]  # the newest first
    decisions_total: int
    pruned: int
    pruned_at: str | None
    pruned_by: str
    protected: list[str]  # snapshots that nobody may remove yet


class AuditResult(NamedTuple):
    """The contents of a repository."""

    changed: bool
    now: float  # by the clock of this host, in seconds since 1970, when all was read
    space: Room
    folders: list[FolderAudit]
    unread: list[dict[str, str]]


def audit(repository: str, now: int) -> AuditResult:
    """Return what a repository has. Raises Refused if it cannot be listed, and OSError."""
    folders: list[FolderAudit] = []
    skipped: list[Skipped] = []
    for number, (host, job) in enumerate(find_folders(repository, None, None, skipped)):
        if number == _MOST_FOLDERS:
            skipped.append(Skipped("", "", "", f"there are more than {_MOST_FOLDERS} folders of jobs"))
            break
        try:
            with Series(repository, host, job) as series:
                folders.append(_audit_folder(series, now))
        except (Refused, OSError) as error:
            skipped.append(Skipped(host, job, "", str(error)))
    unread = [dict(zip(Skipped._fields, one)) for one in skipped]
    return AuditResult(False, time.time(), find_room(repository), folders, unread)


def _audit_folder(series: Series, now: int) -> FolderAudit:
    complete = series.named()
    checks = [(name, record) for name in complete if (record := _checked(series, name)) is not None]
    verified = [record.verified for _name, record in checks if record.verified is not None]
    newest = next((record for name, record in checks if name == complete[-1]), None)
    read, parts = _parts_of(newest)
    events = read_history(series)
    decisions = [event for event in events if event.act not in _ROUTINE]
    pruned = [event for event in events if event.act == history.PRUNED]
    return FolderAudit(
        series.host,
        series.job,
        complete[-MOST_NAMES:],
        len(complete),
        series.named(names.ASIDE)[-MOST_DECISIONS:],
        len(verified),
        _pick(min, verified),
        _pick(max, verified),
        read,
        parts,
        [name for name, record in checks if record.findings or record.too_many][-MOST_DECISIONS:],
        [one.name for one in find_missing(series, now, events)][-MOST_DECISIONS:],
        [_decision(event) for event in reversed(decisions[-MOST_DECISIONS:])],
        len(decisions),
        len(pruned),
        _pick(max, [event.at for event in pruned]),
        pruned[-1].by if pruned else "",
        _find_protected(series, now),
    )


def _find_protected(series: Series, now: int) -> list[str]:
    clock = ending_clock(series, now)
    found = [*active_holds(series, names.COMPLETE, clock), *active_holds(series, names.ASIDE, clock)]
    return found[-MOST_DECISIONS:]


def _checked(series: Series, name: str) -> CheckRecord | None:
    """Return what checks found of a snapshot; None if it was removed at this moment."""
    try:
        with series.snapshot(name) as snapshot:
            return snapshot.checked()
    except OSError:
        return None


def _parts_of(record: CheckRecord | None) -> tuple[int, int]:
    """Return how many parts of the contents of a snapshot were read, of how many."""
    if record is not None and record.shares is not None:
        return len(record.shares.times), record.shares.of
    return int(record is not None and record.verified is not None), 1


def _decision(event: Event) -> SnapshotDecision:
    return SnapshotDecision(event.act, event.name, names.time_text(event.at), event.by, event.why, event.was)


def _pick(choose: Callable[[Iterable[int]], int], times: list[int]) -> str | None:
    return names.time_text(choose(times)) if times else None
