# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a fleet stands, as a table for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..common.host_text import one_line
from ..common.units import format_bytes, format_duration, percent, short_time
from .columns import cells, fit
from .rows import FINAL, FleetTotals, Row, State, in_order

_NARROWEST = 60  # columns
_NAME = 14  # the columns of a name, at least


class _Column(NamedTuple):
    title: str
    width: int
    of: Callable[[Row], str]
    right: bool = True


def _share(row: Row) -> str:
    share = percent(row.bytes_done, row.bytes_total)
    return "" if share is None else f"{share}%"


def _size(row: Row) -> str:
    return format_bytes(row.bytes_total) if row.bytes_total else ""


def _done(row: Row) -> str:
    return format_bytes(row.bytes_done) if row.bytes_done or row.bytes_total else ""


def _rate(row: Row) -> str:
    return "" if row.rate is None else f"{format_bytes(row.rate)}/s"


def _eta(row: Row) -> str:
    return "" if row.eta is None else short_time(row.eta)


def _age(row: Row) -> str:
    return "" if row.age is None else short_age(row.age)


_COLUMNS = (
    _Column("phase", 9, lambda row: row.phase, right=False),
    _Column("state", 11, lambda row: row.state.value, right=False),
    _Column("done", 4, _share),
    _Column("size", 10, _size),
    _Column("rate", 12, _rate),
    _Column("eta", 6, _eta),
    _Column("age", 4, _age),
)
_WIDER = {3: _Column("bytes", 10, _done)}  # where there is room: what comes before which column
_PAIR = 24  # columns for the two hosts, at least
_SLOW = 5  # jobs of which is said what held them back


def short_age(seconds: float) -> str:
    """Return how old something is, in four characters at most."""
    for unit, length, most in (("s", 1, 100), ("m", 60, 100), ("h", 3600, 48), ("d", 86400, 1000)):
        if seconds < most * length:
            return f"{int(seconds // length)}{unit}"
    return "old"


def render_table(rows: Sequence[Row], sums: FleetTotals, width: int, most: int) -> list[str]:
    """Return the lines of a table, none longer than ``width``; of the rows only the ``most`` that come first."""
    width = max(width, _NARROWEST)
    columns, name, pair, has_paths = _layout(width, rows)
    shown = in_order(rows)
    lines = [_line(["job", *(["hosts"] if pair else [])], columns, name, pair, [one.title for one in columns])]
    for row in shown[:most]:
        ends = [_ends(row, has_paths)] if pair else []
        lines.append(
            _line(
                [one_line(row.name) if pair else _named(row), *ends],
                columns,
                name,
                pair,
                [one.of(row) for one in columns],
            )
        )
    left = shown[most:]
    if left:
        lines += wrap(f"... and {len(left)} more: {_counts(left)}", width)
    lines += ["", *_sum_lines(rows, sums, width)]
    notes = (_holders, _problems, _uncollected, _slow)
    return [line.rstrip() for line in lines] + [line for note in notes for line in note(shown, width)]


def _named(row: Row) -> str:
    """Return what a row is called if its hosts have no column: a transfer that is of no job has nothing but an id."""
    return one_line(row.name) if row.is_job else f"{row.src_host} -> {row.dest_host}"


def _ends(row: Row, has_paths: bool = False) -> str:
    """Return the hosts of a row; those of a transfer of no job with its trees, if ``has_paths``."""
    if row.is_job or not has_paths:
        return f"{row.src_host} -> {row.dest_host}"
    return f"{_place(row.src_host, row.src)} -> {_place(row.dest_host, row.dest)}"


def _place(host: str, path: str) -> str:
    return f"{host}:{one_line(path)}" if path else host


def _layout(width: int, rows: Sequence[Row]) -> tuple[list[_Column], int, int, bool]:
    """Return the layout: the columns for which there is room, and the widths of the names and the hosts.

    The hosts are not shown if theirs is 0. The last member says if there is room for paths beside them.
    """
    columns = list(_COLUMNS)
    rest = width - sum(one.width + 1 for one in columns)
    name = max((cells(one_line(row.name)) for row in rows), default=_NAME)
    for place, column in _WIDER.items():
        if rest - max(name, _NAME) > column.width:
            columns.insert(place, column)
            rest -= column.width + 1
    while rest < _NAME:  # a very narrow window
        rest += columns.pop().width + 1
    longest = max((cells(_ends(row)) for row in rows), default=_PAIR)
    if rest - max(name, _NAME) - 1 >= min(longest, _PAIR):
        room = rest - max(name, 3) - 1
        with_paths = max((cells(_ends(row, True)) for row in rows), default=_PAIR)
        has_paths = with_paths <= room
        return columns, max(name, 3), with_paths if has_paths else min(longest, room), has_paths
    name = max((cells(_named(row)) for row in rows), default=_NAME)
    return columns, min(rest, max(name, _NAME)), 0, False


def _line(first: Sequence[str], columns: Sequence[_Column], name: int, pair: int, values: Sequence[str]) -> str:
    beginning = [fit(text, width) for text, width in zip(first, (name, pair))]
    return " ".join([*beginning, *(fit(value, one.width, one.right) for one, value in zip(columns, values))])


def _counts(rows: Sequence[Row]) -> str:
    states: dict[str, int] = {}
    for row in rows:
        states[row.state.value] = states.get(row.state.value, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _sum_lines(rows: Sequence[Row], sums: FleetTotals, width: int) -> list[str]:
    """Return what all rows come to, in as few lines as there is room for."""
    words = [f"{len(rows)} in all: {', '.join(f'{count} {state}' for state, count in sums.states.items()) or 'none'}"]
    if sums.bytes_total:
        words.append(f"{format_bytes(sums.bytes_done)} of {format_bytes(sums.bytes_total)}")
    elif sums.bytes_done:
        words.append(f"{format_bytes(sums.bytes_done)} so far")
    if sums.rate:
        words.append(f"{format_bytes(sums.rate)}/s")
    if sums.eta is not None:
        words.append(f"{format_duration(sums.eta)} left{' at least' if sums.unknown else ''}")
    if sums.unknown:
        words.append(f"{sums.unknown} of unknown size")
    first, *more = wrap("; ".join([words[0], *([", ".join(words[1:])] if words[1:] else [])]), width)
    return [first, *wrap(" ".join(more), width - 2, "  ")]


def _some(names: Sequence[str]) -> str:
    """Return the first names of several, and how many more there are."""
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"


def _holders(rows: Sequence[Row], width: int) -> list[str]:
    """Return which control nodes work on which jobs."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.holder:
            names.setdefault(row.holder, []).append(one_line(row.name))
    return [line for who, jobs in names.items() for line in wrap(f"driven by {who}: {_some(jobs)}", width)]


def _problems(rows: Sequence[Row], width: int) -> list[str]:
    """Return what is wrong, each cause once, with the jobs that have it and what to do.

    Errors that differ in the names of the job's own hosts alone have one cause.
    """
    causes: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.error:
            causes.setdefault((_of_any_host(row, row.error), _of_any_host(row, row.next)), []).append(row)
    lines = []
    for found in causes.values():
        first = found[0]
        same = [one_line(row.name) for row in found if row.error == first.error]
        like = [one_line(row.name) for row in found if row.error != first.error]
        lines += ["", *wrap(f"{_some(same)}: {one_line(first.error)}", width)]
        lines += wrap(f"The same with the hosts of {_some(like)}." if like else "", width - 2, "  ")
        lines += wrap(one_line(first.next), width - 2, "  ")
    return lines


def _uncollected(rows: Sequence[Row], width: int) -> list[str]:
    """Return which transfers of no job have ended without a task that collected the result, and what to do."""
    found = [row for row in rows if row.state is State.ENDED and not row.is_job]
    if not found:
        return []
    named = [f"{one_line(row.name)} ({_ends(row, has_paths=True)})" for row in found]
    advice = (
        "Run the task of such a transfer again to collect it. To forget it, remove /var/lib/longhaul/ID on both hosts "
        "(~/.local/state/longhaul/ID of other users than root)."
    )
    return ["", *wrap(f"ended, result not collected: {_some(named)}", width), *wrap(advice, width - 2, "  ")]


def _slow(rows: Sequence[Row], width: int) -> list[str]:
    """Return what held back the last transfer of jobs that are not done and did not fail."""
    held = [row for row in rows if row.bottleneck and not row.error and row.state not in FINAL]
    lines = []
    for row in held[:_SLOW]:
        first, *more = wrap(f"{one_line(row.name)} was slow: {one_line(row.bottleneck)}", width)
        lines += ["", first, *wrap(" ".join(more), width - 2, "  ")]
    left = len(held) - _SLOW
    return lines + (
        ["", *wrap(f"... and {left} more that were slow, as fleet_status returns", width)] if left > 0 else []
    )


def _of_any_host(row: Row, text: str) -> str:
    """Return a text without the names of the row's hosts."""
    for host in sorted(filter(None, (row.src_host, row.dest_host)), key=len, reverse=True):
        text = text.replace(host, "\0source" if host == row.src_host else "\0dest")
    return text


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text as lines of this many columns; words that are longer are cut into pieces."""
    lines: list[str] = []
    for word in text.split():
        while cells(word) > width:
            piece = word[: max(1, width // 2)] if not word.isascii() else word[:width]
            lines.append(piece)
            word = word[len(piece) :]
        if lines and cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [f"{indent}{line}" for line in lines]
