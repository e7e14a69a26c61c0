# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert times to a calendar: UTC, or a time zone by its name. Private to the collection."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from typing import Callable

from .errors import Refused

Calendar = Callable[[int], datetime]  # seconds since 1970 -> local time that knows its offset from UTC

_DATABASES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")


def utc(seconds: int) -> datetime:
    """Return the time in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc)


def calendar_of(name: str) -> Calendar:
    """Return the calendar of a time zone, ``UTC`` or a name such as ``Europe/Berlin``.

    Raises Refused for an unknown one.
    """
    if name == "UTC":
        return utc
    parts = name.split("/")
    if not name.isascii() or "" in parts or "." in parts or ".." in parts:
        raise _unknown(name)
    try:
        from zoneinfo import ZoneInfo  # not in Python 3.8
    except ImportError:
        return _by_the_c_library(name)
    try:
        zone = ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise _unknown(name) from None
    return lambda seconds: datetime.fromtimestamp(seconds, zone)


def _by_the_c_library(name: str) -> Calendar:
    """Return the calendar as the C library knows it, which takes one zone for the whole process."""
    if not any(os.path.isfile(os.path.join(folder, name)) for folder in _DATABASES):
        raise _unknown(name)  # the C library would take UTC without a word

    def local(seconds: int) -> datetime:
        before = os.environ.get("TZ")
        os.environ["TZ"] = name
        time.tzset()
        try:
            found = time.localtime(seconds)
        finally:
            if before is None:
                del os.environ["TZ"]
            else:
                os.environ["TZ"] = before
            time.tzset()
        return datetime(*found[:6], tzinfo=timezone(timedelta(seconds=found.tm_gmtoff)))

    return local


def _unknown(name: str) -> Refused:
    return Refused(
        f"the time zone '{name}' is not known on this host. Name one of its time zone database, such as Europe/Berlin "
        "(timedatectl list-timezones lists them), install the package tzdata, or take UTC"
    )
