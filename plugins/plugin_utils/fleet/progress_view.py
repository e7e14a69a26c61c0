# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a run is, in lines for a window of a terminal. Pure."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ..common.host_text import one_line
from ..common.units import format_bytes, format_duration, percent, short_time
from .columns import cells, cut, fit
from .progress_file import PairProgress, ProgressSnapshot

_NAME, _LONGEST_NAME = 12, 32  # columns of a name in a window of usual width; in a wide one it may have a third
_BAR, _WIDEST_BAR = 8, 40  # columns of a bar, with its ends
_FIXED = (9, 5, 10, 12, 6)  # phase, share, size, rate, time left
_STALE = 20.0  # seconds after which a figure's age is shown in place of its rate


def live_lines(snapshot: ProgressSnapshot, width: int, height: int, now: float) -> list[str]:
    """Return a line for each pair, as far as there is room, and one for the fleet; none is wider than the window.

    ``now`` is the time by the clock of the pairs. Those that need longest come first: they decide when all is done.
    """
    width = max(width, 20)
    pairs = sorted(snapshot.pairs, key=_weight)
    room = max(1, height - 2)  # one line for the fleet, and the last one of the window stays free
    shown = pairs if len(pairs) <= room else pairs[: room - 1]
    name = min(max(_LONGEST_NAME, width // 3), max([_NAME, *(cells(one_line(one.name)) for one in shown)]))
    lines = [_pair_line(one, width, name, now) for one in shown]
    if len(shown) < len(pairs):
        lines.append(f"... and {len(pairs) - len(shown)} more run")
    return [cut(line, width) for line in [*lines, fleet_line(snapshot, width)]]


def fleet_line(snapshot: ProgressSnapshot, width: int | None = None) -> str:
    """Return the line for all pairs together: as much as fits into the width, all without one."""
    ended = (
        f"{snapshot.ended} of {counted(snapshot.total, 'job has', 'jobs have')} ended, {snapshot.failed} of them failed"
    )
    shorter = f"{snapshot.ended} of {snapshot.total} ended, {snapshot.failed} failed"
    pairs = snapshot.pairs
    if not pairs:
        return ended if width is None or cells(ended) <= width else shorter
    done = sum(one.bytes_done for one in pairs)
    rate = sum(one.rate or 0.0 for one in pairs if one.amounts.is_bytes)
    total = sum(one.bytes_total for one in pairs) if all(one.bytes_total for one in pairs) else 0
    amount = f"{format_bytes(done)} of {format_bytes(total)}" if total else f"{format_bytes(done)} so far"
    left = [one.left for one in pairs if one.left is not None]
    others_wait = snapshot.ended + len(pairs) < snapshot.total
    speed = [f"{format_bytes(rate)}/s"] if any(one.rate is not None and one.amounts.is_bytes for one in pairs) else []
    speed += [f"{format_duration(max(left))} {'for these' if others_wait else 'left'}"] if left else []
    running = counted(len(pairs), "transfer runs", "transfers run")
    lines = (
        f"{ended}; {running}: {', '.join([amount, *speed])}",
        f"{shorter}; {len(pairs)} run: {', '.join([amount, *speed])}",
        f"{shorter}; {len(pairs)} run: {', '.join(speed or [amount])}",
    )
    return next((line for line in lines if width is None or cells(line) <= width), shorter)


def _weight(pair: PairProgress) -> tuple[bool, float, str]:
    left = pair.left
    return left is not None, -(left or 0.0), pair.name


def _pair_line(pair: PairProgress, width: int, name: int, now: float) -> str:
    done, total, is_bytes = pair.amounts
    share = percent(done, total)
    age = now - pair.at
    if pair.paused:
        rate = "paused"
    elif age > _STALE:
        rate = f"{short_time(age)} ago"
    else:
        rate = "" if pair.rate is None else f"{format_bytes(pair.rate)}/s" if is_bytes else f"{pair.rate:,.0f}/s"
    size = format_bytes(total or done) if is_bytes else f"{total:,}"
    values = (
        pair.phase,
        "" if share is None else f"{share} %",
        size,
        rate,
        "" if pair.left is None else short_time(max(0.0, pair.left - age)),
    )
    rest = width - sum(_FIXED) - len(_FIXED)
    name = min(name, max(_NAME, rest))
    room = min(_WIDEST_BAR, rest - name - 1)
    columns = [fit(one_line(pair.name), name), fit(values[0], _FIXED[0])]
    if room >= _BAR:
        columns.append(_bar(share, room))
    columns += [fit(value, column, right=True) for value, column in zip(values[1:], _FIXED[1:])]
    return " ".join(columns)


def _bar(share: int | None, width: int) -> str:
    filled = (width - 2) * (share or 0) // 100
    return f"[{'#' * filled}{'.' * (width - 2 - filled)}]"
