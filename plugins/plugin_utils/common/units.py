# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes and times as people write and read them. Pure."""

from __future__ import annotations

import calendar
import time
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from .host_text import one_line

_ISO = "%Y-%m-%dT%H:%M:%SZ"
_LONGEST_PATH = 40  # characters of a path in a line
_PLAIN = ("", "starting", "transfer")  # phases that say nothing beside an amount
_PHASES = {  # of programs, in words
    "predict": "reading",
    "divide": "dividing the tree",
    "shards": "transfer",
    "directories": "attributes of folders",
    "count_deletions": "counting deletions",
    "delete": "deleting",
}


def format_bytes(count: float) -> str:
    """Return ``1.2 GiB`` for 1288490188."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def format_size(total: int, apparent: int) -> str:
    """Return the size of files, and their apparent size if they have holes: ``1.0 MiB (2.0 GiB with holes)``."""
    return f"{format_bytes(total)} ({format_bytes(apparent)} with holes)" if apparent > total else format_bytes(total)


def format_entries(number: int) -> str:
    """Return a number of entries for a report: ``1 entry``, ``3,365 entries``."""
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def format_duration(seconds: float) -> str:
    """Return how long something took in two units at most: ``4.2 s``, ``10 min 5 s``, ``3 h 20 min``, ``2 d 4 h``."""
    whole = round(seconds)
    if seconds < 10 and seconds != whole:
        return f"{seconds:.1f} s"
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit} {rest} {small}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def short_time(seconds: float) -> str:
    """Return how long something takes, in six characters at most: ``37s``, ``10m05s``, ``5h12m``, ``2d03h``."""
    if seconds < 60:
        return f"{int(seconds)}s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if hours < 1:
        return f"{minutes}m{int(seconds % 60):02d}s"
    if days < 1:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24:02d}h" if days < 100 else f"{min(days, 99999)}d"


def seconds_left(done: int, total: int, rate: float | None) -> float | None:
    """Return the seconds until all of ``total`` bytes (0: not known) are done at this rate; None if nobody knows."""
    return max(0, total - done) / rate if rate and total else None


def percent(done: int, total: int) -> int | None:
    """Return the share of ``total`` that is done, 100 at most; None if the total is not known (0)."""
    return min(100, 100 * done // total) if total else None


def now_text() -> str:
    """Return the time as reports have it, in UTC: ``2026-11-21T12:00:00Z``."""
    return time.strftime(_ISO, time.gmtime())


def seconds_of(text: str | None) -> int | None:
    """Return the seconds since 1970 of a time as reports have it, ``2026-11-21T12:00:00Z``; None for none."""
    return calendar.timegm(time.strptime(text, _ISO)) if text else None


def both_times(seconds: float) -> str:
    """Return a time in UTC and as clocks of this machine show it: ``2026-11-21 12:00:05 UTC (13:00:05 CET)``."""
    world, here = time.gmtime(seconds), time.localtime(seconds)
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", world)
    if here[:6] == world[:6]:
        return text
    day = "" if here[:3] == world[:3] else "%Y-%m-%d "
    return f"{text} ({time.strftime(f'{day}%H:%M:%S %Z', here)})"


def shown_time(text: str | None) -> str:
    """Return a time as reports have it in the form of ``both_times``, empty for none."""
    return both_times(seconds_of(text) or 0) if text else ""


class Amounts(NamedTuple):
    """How much of a job is done: bytes, or entries where no contents are sent or read."""

    done: int
    total: int  # 0: not known
    is_bytes: bool


def amounts(progress: Progress) -> Amounts:
    """Return how much is done: in bytes where some are to be moved or read, else in entries."""
    return choose_amounts(progress.bytes_done, progress.bytes_total, progress.files_done, progress.files_total)


def choose_amounts(bytes_done: int, bytes_total: int, files_done: int, files_total: int) -> Amounts:
    """Return how much is done; see ``amounts``."""
    if bytes_total or bytes_done or not files_total:
        return Amounts(bytes_done, bytes_total, True)
    return Amounts(files_done, files_total, False)


def format_rate(rate: float, is_bytes: bool = True) -> str:
    """Return ``1.2 GiB/s``, or ``1,200 entries/s`` for entries."""
    return f"{format_bytes(rate)}/s" if is_bytes else f"{rate:,.0f} entries/s"


def progress_line(pair: str, progress: Progress, rate: float | None, paused: bool = False, activity: str = "") -> str:
    """Return the line that says how far a transfer or a comparison is.

    ``rate`` is what was done in a second lately, in bytes or entries (see ``amounts``), None: not known. ``activity``
    says what it is in words; empty: as the host says.
    """
    done, total, is_bytes = amounts(progress)
    words = [entries_text(progress.files_done)] if is_bytes else []  # folders count, too
    if paused:
        words.append("paused")
    elif rate is not None:
        words.append(format_rate(rate, is_bytes))
    left = None if paused else seconds_left(done, total, rate)
    if left:
        words.append(f"{format_duration(left)} left")
    if progress.current:
        words.append(f"at {_shorten(one_line(progress.current))}")
    phase = _PHASES.get(progress.phase, one_line(progress.phase))
    if not total:
        return ", ".join([f"{pair}: {activity or phase}", format_bytes(done), *words])
    share = f"({percent(done, total)} %)"
    if is_bytes:
        amount = f"{format_bytes(done)} of {format_bytes(total)} {share}"
    else:
        amount = f"{done:,} of {entries_text(total)} {share}"
    doing = activity or ("" if phase in _PLAIN else phase)
    return ", ".join([f"{pair}: {doing}", amount, *words] if doing else [f"{pair}: {amount}", *words])


def _shorten(path: str) -> str:
    """Return the end of a path, which tells more than its beginning."""
    return path if len(path) <= _LONGEST_PATH else f"...{path[3 - _LONGEST_PATH :]}"
