# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The history of a job's snapshots: who made, accepted, removed or restored each, and when. Private to the collection.

``history.jsonl`` in the folder of the job has a line of JSON for each act, and is only ever appended to. An act comes
first and its line right behind it, both under the lock: the names in the folder show an act whose line a kill
prevented, and the next act enters it. So snapshots of earlier versions, renamed and moved ones are entered, too.

A history that is missing, torn or full of nonsense changes nothing about what snapshots are worth.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from calendar import timegm
from typing import Collection, Iterable, Mapping, NamedTuple, Sequence

from .._core.counted import counted
from .._core.json_shape import WrongShape, as_object, member, optional
from . import names
from .errors import Refused
from .facts import RSNAPSHOT, Facts
from .repository import Series

# The acts. Others, of later versions, are ignored.
MADE, ASIDE, ADOPTED, ACCEPTED, DISCARDED, PRUNED = "made", "aside", "adopted", "accepted", "discarded", "pruned"
PROTECTED, UNPROTECTED = "protected", "unprotected"
RESTORED = "restored"
COPIED = "copied"  # from another repository
REPAIRED = "repaired"  # damaged files of it were replaced by intact ones
FOUND = "found"  # it was there, and in no history
RENAMED = "renamed"  # it had another name, or its folder was that of another host or job
REMOVED = "removed"  # it was renamed to be removed, by hand or by a run that was killed
MISSED = "missed"  # a check has told that it is gone
_TOLD = (MADE, ASIDE, ADOPTED, COPIED)  # with the time and the name of who made it
_ARRIVED = (*_TOLD, ACCEPTED, FOUND, RENAMED)
_LEFT = (DISCARDED, PRUNED, REMOVED)

LONGEST = 4096  # bytes of a line
# In which snapshots are renamed, so that one that is renamed while the folder is read is seen at least once.
_IN_ORDER = (names.ASIDE, names.COMPLETE, names.REMOVING)
_TEXT, _SHORT = 200, 40  # characters of a text, and where it must be shorter
_LARGEST = 32 << 20  # bytes from the end of the file that are read
_READ_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)  # strptime takes most of the time


class Event(NamedTuple):
    """A line: what was done with a snapshot."""

    act: str
    name: str  # in the folder of the job, afterwards if it stays
    at: int  # seconds since 1970, by the clock of this host
    job: str  # HOST/JOB: the folder
    by: str = ""  # user and control node; empty if that is not known
    why: str = ""
    was: str = ""  # HOST/JOB/NAME before it was renamed

    def line(self) -> bytes:
        """Return the line as the file has it."""
        for limit in (_TEXT, _SHORT):
            texts = {"by": self.by[:limit], "why": self.why[:limit]}
            values = {**self._asdict(), **texts, "at": names.time_text(self.at)}
            text = json.dumps({key: value for key, value in values.items() if value}).encode("ascii") + b"\n"
            if len(text) <= LONGEST:
                break
        return text


class HistoryEntry(NamedTuple):
    """A snapshot that should be there, by the history."""

    name: str
    made: int  # seconds since 1970
    by: str  # who made it
    places: frozenset[str] = frozenset()  # each HOST/JOB that it was a snapshot of
    is_missed: bool = False  # a check has told that it is gone

    def describe(self) -> str:
        """Return when and by whom it was made."""
        by = f" by {self.by}" if self.by else ""
        return f"made {names.time_text(self.made)}{by}"


def parse_event(line: bytes) -> Event:
    """Return what a line says. Untrusted input. Raises ValueError for what is no line of a history."""
    values = as_object(json.loads(line), "the line")
    found = _READ_TIME.fullmatch(member(values, "at", str))
    if found is None:
        raise WrongShape("at is no time")
    at = timegm(tuple(map(int, found.groups())))
    act, name, job = (member(values, key, str) for key in ("act", "name", "job"))
    by, why, was = (optional(values, key, str) or "" for key in ("by", "why", "was"))
    return Event(act, name, at, job, by[:_TEXT], why[:_TEXT], was)


def parse_events(data: bytes) -> list[Event]:
    """Return the events of a history. Lines that cannot be read, such as one that a kill cut off, are left out."""
    events = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            events.append(parse_event(line))
    return events


def known_of(events: Iterable[Event]) -> dict[str, HistoryEntry]:
    """Return the snapshots that should be there, by their names once accepted."""
    known: dict[str, HistoryEntry] = {}
    for event in events:
        key = names.once_accepted(event.name)
        if names.time_of(key) is None:
            continue
        if event.act in _LEFT:
            known.pop(key, None)
        elif event.act == MISSED and key in known:
            known[key] = known[key]._replace(is_missed=True)
        elif event.act in _ARRIVED:
            place, _slash, old = event.was.rpartition("/")
            before = known.pop(names.once_accepted(old), None) or known.get(key)
            if before is None or event.act in _TOLD:
                is_told = event.act in _TOLD
                before = HistoryEntry(event.name, event.at if is_told else _time_of(key), event.by if is_told else "")
            places = before.places | {event.job} | ({place} if place else set())
            known[key] = before._replace(name=event.name, places=places, is_missed=False)
    return known


def _time_of(key: str) -> int:
    return names.time_of(key) or 0


def news_of(
    known: Mapping[str, HistoryEntry],
    there: Mapping[str, Facts | None],
    removing: Collection[str],
    job: str,
    now: int,
) -> list[Event]:
    """Return the events that the history lacks.

    ``there`` are the complete snapshots and those set aside, with the facts of those that the history does not know at
    this place. ``removing`` are the names of those that are being removed, as they were before.
    """
    news = []
    keys = {names.once_accepted(name) for name in there}
    for name, facts in there.items():
        key = names.once_accepted(name)
        one = known.get(key)
        if one is None or job not in one.places:
            news.append(_arrival(known, keys, name, facts, job, now))
        elif one.name != name:  # accepted, or set aside again by hand
            news.append(Event(ACCEPTED if name == key else ASIDE, name, now, job))
        elif one.is_missed:  # it is back
            news.append(Event(FOUND, name, now, job))
    renamed = {event.was.rpartition("/")[2] for event in news}
    why = "renamed to be removed, by hand or by a run that was killed"
    news += [
        Event(REMOVED, one.name, now, job, why=why)
        for key, one in known.items()
        if key not in keys and key not in renamed and key in removing
    ]
    return news


def _arrival(
    known: Mapping[str, HistoryEntry], keys: Collection[str], name: str, facts: Facts | None, job: str, now: int
) -> Event:
    """Return the event of a snapshot that the history does not know at this place."""
    key = names.once_accepted(name)
    if facts is None:
        return Event(FOUND, name, now, job)
    place, old = f"{facts.host}/{facts.job}", key
    with contextlib.suppress(ValueError):
        old = names.name_of(facts.time)
    if old == key or old in keys or old not in known:
        old = key
    if (place, old) != (job, key):
        return Event(RENAMED, name, now, job, was=f"{place}/{old}")
    if facts.origin == RSNAPSHOT:
        return Event(ADOPTED, name, now, job, why=facts.adopted or "")
    return Event(FOUND, name, now, job)


def read_history(series: Series) -> list[Event]:
    """Return the events of a job's history, none if there is no history that can be read."""
    if series.missing:
        return []
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(names.HISTORY, flags, dir_fd=series.fd), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return []
            file.seek(max(0, found.st_size - _LARGEST))
            return parse_events(file.read(_LARGEST))
    except OSError:
        return []


def note(series: Series, *events: Event) -> bool:
    """Append events to the history, on the disk when this returns; return whether that succeeded. Holds up nothing.

    The lock is the caller's. Why it failed stands in ``series.unnoted``.
    """
    if not events or series.missing:
        return True
    series.step("history")
    try:
        _append(series.fd, b"".join(event.line() for event in events))
    except OSError as error:
        series.unnoted = (
            f"{series.path}/{names.HISTORY} cannot be written: {error.strerror}. The snapshots are as they should be. "
            "Set that right: else a check may tell of snapshots that a prune removed"
        )
        return False
    series.unnoted = ""
    return True


def _append(folder: int, data: bytes) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(names.HISTORY, flags, 0o600, dir_fd=folder)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        size = found.st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # a kill cut off the last line
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            raise
        if not size:
            os.fsync(folder)
    finally:
        os.close(fd)


def event_of(series: Series, act: str, name: str, now: int, why: str = "") -> Event:
    """Return the line of the history for an ``act`` of this run with the snapshot ``name``; ``why`` is its reason."""
    return Event(act, name, now, f"{series.host}/{series.job}", series.by, why)


def find_news(series: Series, now: int, events: Iterable[Event]) -> list[Event]:
    """Return what the folder of a job shows and its history lacks."""
    if series.missing:
        return []
    known, job = known_of(events), f"{series.host}/{series.job}"
    found = {kind: series.named(kind) for kind in _IN_ORDER}
    there: dict[str, Facts | None] = {}
    for name in found[names.COMPLETE] + found[names.ASIDE]:
        one = known.get(names.once_accepted(name))
        there[name] = _facts(series, name) if one is None or job not in one.places else None
    removing = {name[len(names.REMOVING_PREFIX) :] for name in found[names.REMOVING]}
    return news_of(known, there, removing, job, now)


def _facts(series: Series, name: str) -> Facts | None:
    try:
        with series.snapshot(name) as snapshot:
            return snapshot.facts()
    except (Refused, OSError):
        return None


def enter_news(series: Series, now: int) -> list[str]:
    """Enter what the history lacks; return what a person should know. The lock is the caller's."""
    news = find_news(series, now, read_history(series))
    note(series, *news)
    here = f"{series.host}/{series.job}"
    moved: dict[str, int] = {}
    for event in news:
        place = event.was.rpartition("/")[0]
        if place and place != here:
            moved[place] = moved.get(place, 0) + 1
    return [
        f"{series.path} has {counted(count, 'snapshot', 'snapshots')} of {place}, as after a rename. From now on they "
        f"count as snapshots of {here} ({names.HISTORY} says so). If they belong elsewhere, move them back"
        for place, count in moved.items()
    ]


def find_places(series: Series, name: str) -> frozenset[str]:
    """Return each HOST/JOB that a snapshot was one of, as its folder was renamed."""
    if series.places is None:
        events = read_history(series)
        known = known_of([*events, *find_news(series, 0, events)])
        series.places = {key: one.places for key, one in known.items()}
    return series.places.get(names.once_accepted(name), frozenset())


def find_missing(series: Series, now: int, events: Sequence[Event] | None = None) -> list[HistoryEntry]:
    """Return the snapshots that the history knows and that are gone, although nothing here removed them.

    ``events`` are those of the history, if it was read at this moment. The lock need not be held: what a prune removes
    at this moment has its line before its tree is gone.
    """
    events = read_history(series) if events is None else events
    known = known_of([*events, *find_news(series, now, events)])
    there = {names.once_accepted(name) for kind in _IN_ORDER[:2] for name in series.named(kind)}
    lost = [key for key in known if key not in there]
    again = known_of(read_history(series)) if lost else {}
    removing = {name[len(names.REMOVING_PREFIX) :] for name in series.named(names.REMOVING)} if lost else set()
    return [known[key] for key in lost if key in again and key not in removing]
