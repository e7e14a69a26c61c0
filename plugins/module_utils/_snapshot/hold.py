# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protect snapshots from being removed until a date, as a legal hold does. Private to the collection.

A hold is a small file in the folder of the snapshot, so it stays with the snapshot whatever is renamed. A file that
cannot be read counts as a hold without an end: damage must not release a snapshot.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from calendar import timegm
from typing import NamedTuple

from .._core.json_shape import WrongShape, as_object, member, optional
from . import names
from .atomic_io import read_json, write_json
from .errors import Refused
from .history import PROTECTED, UNPROTECTED, event_of, note
from .repository import Series, SnapshotFolder

FOREVER = "forever"
_DAY = 86400
_LONGEST = 500  # characters of a reason
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)Z)?", re.ASCII)
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z


class Hold(NamedTuple):
    """Why a snapshot must stay. Times are in seconds since 1970."""

    reason: str
    until: int | None = None  # None: until it is unprotected
    by: str = ""  # user and control node; empty if that is not known
    at: int | None = None  # when it began

    def holds(self, clock: int) -> bool:
        """Return whether it has not ended at the time of ``ending_clock``."""
        return self.until is None or clock < self.until

    def end(self) -> str:
        """Return until when, as a user writes it."""
        return FOREVER if self.until is None else names.time_text(self.until)

    @property
    def rule(self) -> str:
        """The rule by which a prune keeps the snapshot."""
        return f"protected {FOREVER}" if self.until is None else f"protected until {names.time_text(self.until)}"

    def describe(self) -> str:
        """Return what a refusal says of it."""
        by = f" by {self.by}" if self.by else ""
        until = "until it is unprotected" if self.until is None else f"until {self.end()}"
        return f"protected{by} {until}: {self.reason}"

    def shown(self) -> dict[str, object]:
        """Return what results tell of it."""
        return {
            "reason": self.reason,
            "until": self.end(),
            "by": self.by,
            "since": None if self.at is None else names.time_text(self.at),
        }


_UNREADABLE = Hold(f"{names.HOLD} of the snapshot cannot be read, so nobody knows when it may be removed")


def parse_hold(value: object) -> Hold:
    """Return what the file of a hold says. Raises WrongShape."""
    values = as_object(value, "the file")
    hold = Hold(
        member(values, "reason", str)[:_LONGEST],
        optional(values, "until", int),
        (optional(values, "by", str) or "")[:_LONGEST],
        optional(values, "at", int),
    )
    if any(at is not None and not 0 <= at <= _LAST_SECOND for at in (hold.until, hold.at)):
        raise WrongShape("it has a time that no calendar has")
    return hold


def parse_until(text: str) -> int | None:
    """Return when a hold ends: behind the day of a date, at a time, or never (None). Raises Refused."""
    if text == FOREVER:
        return None
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        end = timegm(time.strptime(text, _FORMAT)) if found[4] else timegm(time.strptime(text, "%Y-%m-%d")) + _DAY
    except ValueError:
        raise Refused(
            f"until is {text!r}. Write the last day in UTC, such as 2027-12-31, a time, such as 2027-12-31T17:30:00Z, "
            f"or {FOREVER}"
        ) from None
    if end > _LAST_SECOND:
        raise Refused(f"until is {text!r}, which is too late for a calendar: write {FOREVER}")
    return end


def parse_reason(text: str | None, action: str) -> str:
    """Return the reason of an action. Raises Refused if there is none, or more than a line."""
    reason = (text or "").strip()
    if not reason or len(reason) > _LONGEST or not reason.isprintable():
        raise Refused(
            f"action {action} needs a reason of one line, of up to {_LONGEST} characters. It is kept in "
            f"{names.HISTORY}: say who asked for it, and why"
        )
    return reason


def ending_clock(series: Series, now: int, control_time: int | None = None) -> int:
    """Return the time by which holds end, in seconds since 1970: the earliest of what is known of the time.

    A clock that is ahead must release nothing. So the clock of this host does not suffice: that of the control node, if
    it was told, and the time of the newest complete snapshot must have passed the end as well.
    """
    return min([now, *([control_time] if control_time is not None else []), *series.times()[-1:]])


def hold_of(snapshot: SnapshotFolder) -> Hold | None:
    """Return the hold of a snapshot, whether or not it has ended; None if there is none."""
    try:
        return read_json(snapshot.fd, names.HOLD, parse_hold)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return _UNREADABLE


def active_hold(series: Series, name: str, clock: int) -> Hold | None:
    """Return the hold of the snapshot of that name if it has not ended at ``ending_clock``; else None."""
    with contextlib.suppress(FileNotFoundError), series.snapshot(name) as snapshot:
        hold = hold_of(snapshot)
        return hold if hold is not None and hold.holds(clock) else None
    return None


def active_holds(series: Series, kind: str, clock: int) -> dict[str, Hold]:
    """Return the holds of the snapshots of a kind that have not ended at ``ending_clock``, by their names."""
    found = {name: active_hold(series, name, clock) for name in series.named(kind)}
    return {name: hold for name, hold in found.items() if hold is not None}


def refuse_held(series: Series, name: str, clock: int, action: str) -> None:
    """Refuse to do an action with a protected snapshot. Raises Refused."""
    hold = active_hold(series, name, clock)
    if hold is not None:
        raise Refused(
            f"{name} in {series.path} is {hold.describe()}. So it was left as it is ({action}). If that is not right "
            f"any more, unprotect it first (action unprotect, name {name}, and a reason)"
        )


def protect(series: Series, name: str, until: str, reason: str, now: int, *, check: bool = False) -> bool:
    """Protect a snapshot, complete or set aside; say whether that was to be done. The lock is the caller's.

    A hold can be made longer, and not shorter. Raises Refused.
    """
    end, why = parse_until(until), parse_reason(reason, "protect")
    with _open(series, name) as snapshot:
        found = hold_of(snapshot)
        if found is not None and (found.until, found.reason) == (end, why):
            return False
        if end is not None and end <= now:
            raise Refused(
                f"until is {until!r}, which is past: this host says that it is {names.time_text(now)}. Write a later "
                "date, or set the clock that is wrong (timedatectl)"
            )
        if found is not None and (end is not None and (found.until is None or end < found.until)):
            raise Refused(
                f"{name} is {found.describe()}. An earlier end would release it sooner: unprotect it first, with a "
                "reason, or write a later end"
            )
        if not check:
            series.step("hold")
            write_json(snapshot.fd, names.HOLD, Hold(why, end, series.by, now)._asdict())
            end_text = FOREVER if end is None else names.time_text(end)
            note(series, event_of(series, PROTECTED, name, now, f"until {end_text}: {why}"))
    return True


def unprotect(series: Series, name: str, reason: str, now: int, *, check: bool = False) -> bool:
    """End the protection of a snapshot; say whether there was one. The lock is the caller's. Raises Refused."""
    why = parse_reason(reason, "unprotect")
    with _open(series, name) as snapshot:
        if hold_of(snapshot) is None:
            return False
        if not check:
            series.step("hold")
            os.unlink(names.HOLD, dir_fd=snapshot.fd)
            os.fsync(snapshot.fd)
            note(series, event_of(series, UNPROTECTED, name, now, why))
    return True


def _open(series: Series, name: str) -> SnapshotFolder:
    if names.kind_of(name) not in (names.COMPLETE, names.ASIDE) or not series.has(name):
        raise Refused(
            f"there is no snapshot {name} in {series.path} that could be protected: list shows those that there are. "
            "One that is unfinished or being removed cannot be"
        )
    return series.snapshot(name)
