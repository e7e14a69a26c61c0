# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes and times as people write and read them. Pure."""

from __future__ import annotations

import calendar
import time

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

_ISO = "%Y-%m-%dT%H:%M:%SZ"


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


def format_seconds(seconds: float) -> str:
    """Return ``0:01:23`` for 83, ``2d 3:00:00`` for more than a day."""
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{days}d {clock}" if days else clock


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


def progress_line(pair: str, progress: Progress, rate: float | None, paused: bool = False) -> str:
    """Return the line that says how far a transfer is; ``rate`` is bytes a second lately, None: not known."""
    done, total = progress.bytes_done, progress.bytes_total
    words = [counted(progress.files_done, "file", "files")]
    if paused:
        words.append("paused")
    elif rate is not None:
        words.append(f"{format_bytes(rate)}/s")
    if not total:
        return ", ".join([f"{pair}: {progress.phase}", format_bytes(done), *words])
    left = None if paused else seconds_left(done, total, rate)
    if left:
        words.append(f"{format_seconds(left)} left")
    share = percent(done, total)
    return ", ".join([f"{pair}: {format_bytes(done)} of {format_bytes(total)} ({share} %)", *words])
