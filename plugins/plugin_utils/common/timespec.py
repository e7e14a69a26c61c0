# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Points in time as people write them. Private to the collection.

Pure. A text names a span: a day, a minute or a second. ``2026-11-01`` means the state at the end of that day, and
``before 2026-11-01`` the state when it began; so with a minute and a second.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Any, Callable, Iterable, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.time_zones import Calendar, calendar_of

FORMS = "2026-11-01, 2026-11-01 14:30, 2026-11-01T14:30:09Z or 2026-11-01 14:30 +02:00, each with or without 'before'"

_MOMENT = re.compile(
    r"(?P<before>before\s+)?(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ]\s*(?P<hour>\d{1,2}):?(?P<minute>\d\d)(?::?(?P<second>\d\d))?\s*(?P<offset>Z|UTC|[+-]\d\d:?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_ANY_DATE = re.compile(r"\d+[./-]\d+[./-]\d+", re.ASCII)
_DAY = 86400  # seconds


class Moment(NamedTuple):
    """What a text means: ``holds`` says of a time, in seconds since 1970, whether it is not later."""

    holds: Callable[[int], bool]
    said: str  # the same in words, with the time zone

    def newest(self, times: Iterable[int]) -> int | None:
        """Return the newest of some times that is not later; None if all are."""
        return max((at for at in times if self.holds(at)), default=None)


def read_moment(given: Any, zone: str = "UTC") -> Moment:
    """Read a point in time: a text, or the date or time that YAML makes of one.

    ``zone`` is where the text has no offset of its own. Raises Refused for what is no time, or could be two.
    """
    text = as_text(given)
    calendar = calendar_of(zone)
    found = _MOMENT.fullmatch(text)
    if not found:
        raise Refused(_unreadable(text))
    year, month, day = (int(found.group(key)) for key in ("year", "month", "day"))
    hour, minute, second = (int(found.group(key) or 0) for key in ("hour", "minute", "second"))
    try:
        local = datetime(year, month, day, hour, minute, second)
    except ValueError as error:
        raise Refused(f"'{text}' is no time that there can be: {error}. Correct it") from None
    before = bool(found.group("before"))
    words = "before" if before else "at the end of"
    if found.group("hour") is None:
        return _of_a_day(local.date(), calendar, before, f"{words} {local.date()} ({zone})")
    offset = found.group("offset")
    start = _of_offset(local, offset) if offset else _start(local, calendar, zone, text)
    exact = found.group("second") is not None
    last = start - 1 if before else start if exact else start + 59
    shown = f"{local:%Y-%m-%d %H:%M}{f':{local.second:02}' if exact else ''} ({offset or zone})"
    return Moment(lambda at: at <= last, f"{'at' if exact and not before else words} {shown}")


def as_text(given: Any) -> str:
    """Return what YAML read as a date or a time as a text again; a text as it is, without spaces around it."""
    if isinstance(given, datetime):
        return given.isoformat(" ", "seconds")
    return given.isoformat() if isinstance(given, date) else str(given).strip()


def _of_a_day(day: date, calendar: Calendar, before: bool, said: str) -> Moment:
    # Without a conversion to seconds nothing is odd where a change of the clock takes midnight away or gives it twice.
    if before:
        return Moment(lambda at: calendar(at).date() < day, said)
    return Moment(lambda at: calendar(at).date() <= day, said)


def _of_offset(local: datetime, offset: str) -> int:
    return int(datetime.strptime(f"{local:%Y-%m-%d %H:%M:%S} {_plain(offset)}", "%Y-%m-%d %H:%M:%S %z").timestamp())


def _plain(offset: str) -> str:
    return "+0000" if offset.upper() in ("Z", "UTC") else offset.replace(":", "")


def _start(local: datetime, calendar: Calendar, zone: str, text: str) -> int:
    """Return the one time, in seconds since 1970, at which the clocks of the zone show ``local``."""
    naive = int(local.replace(tzinfo=timezone.utc).timestamp())
    offsets = {calendar(naive + shift).utcoffset() or timedelta(0) for shift in (-_DAY, 0, _DAY)}
    times = {naive - int(offset.total_seconds()) for offset in offsets}
    real = sorted(at for at in times if calendar(at).replace(tzinfo=None) == local)
    if len(real) > 1:
        both = " or ".join(f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%dT%H:%M:%SZ}" for at in real)
        raise Refused(
            f"'{text}' was there twice in {zone}, since the clocks were set back, so it could be two snapshots. Write "
            f"which: {both}"
        )
    if not real:
        raise Refused(
            f"'{text}' was never there in {zone}, since the clocks were set forward over it. Write a time before or "
            "after that hour, or one in UTC with a Z behind it"
        )
    return real[0]


def _unreadable(text: str) -> str:
    if _ANY_DATE.search(text):
        return f"'{text}' could be more than one time. Write the year first and the day last: {FORMS}"
    return f"'{text}' is no point in time that is understood. Write latest, the name of a snapshot, or a time: {FORMS}"
