# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables that people read, as Markdown that is also legible in a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure
from ansible_collections.longhaul.fleet.tests.bench.targets import Seen, Target

_MB, _MIB = 1e6, 1 << 20


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are figures, each column as wide as it must be."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "".join(
        "| " + " | ".join(_aligned(cell, widths[column], column) for column, cell in enumerate(line)) + " |\n"
        for line in [lines[0], rule, *lines[1:]]
    )


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def number(value: float | None) -> str:
    """Write a number with three digits that count; nothing if there is none."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def targets_table(seen: Iterable[Seen]) -> str:
    """Return the targets beside the results."""
    rows = [
        (
            one.target.what,
            _wanted(one.target, one.target.least),
            _wanted(one.target, one.target.aim),
            number(one.value) + (one.target.unit if one.value is not None else ""),
            number(one.phase),
            number(one.task),
            one.verdict or "-",
        )
        for one in seen
    ]
    return table(("what", "at least", "aim", "seen", "phase", "whole task", "reached"), rows)


def _wanted(target: Target, value: float | None) -> str:
    if value is None:
        return ""
    return ("<= " if target.low else "") + f"{value:g}{target.unit}"


COLUMNS = {  # heading, and how the quantity is written
    "phase": ("phase, s", number),
    "task": ("whole task, s", number),
    "processor": ("processor, s", number),
    "transfer": ("transfer, s", number),
    "finish": ("finish, s", number),
    "sync": ("sync, s", number),
    "wire": ("wire, MB", lambda value: number(value / _MB)),
    "allocated": ("allocated, MB", lambda value: number(value / _MB)),
    "growth": ("growth, MB", lambda value: number(value / _MB)),
    "times the change": ("wire by change", number),
    "growth by change": ("growth by change", number),
    "sent again": ("sent again, MB", lambda value: number(value / _MB)),
    "ranges again": ("by a range a stream", number),
    "share of the wire": ("share of the wire", lambda value: f"{value:.3f}"),
    "first byte": ("first byte, s", number),
    "memory source": ("memory source, MiB", lambda value: number(value / _MIB)),
    "memory dest": ("memory destination, MiB", lambda value: number(value / _MIB)),
}


def figures_table(figures: Sequence[Figure], size: int = 0, reference: str = "") -> str:
    """Return the medians of one part.

    ``size`` are the bytes that move, for a rate; 0 where a rate says nothing. ``reference`` is the tool that all others
    are compared with.
    """
    medians = {figure.tool: figure.median for figure in figures}
    shown = [name for name in COLUMNS if any(name in median for median in medians.values())]
    base = medians.get(reference, {}).get("seconds")
    head = ["tool", "s", *(["MB/s"] if size else []), *([f"times {reference}"] if base else [])]
    rows = []
    for figure in figures:
        row = [figure.tool, *_of_time(figure, size, base)]
        median = medians[figure.tool]
        row += [COLUMNS[name][1](median[name]) if name in median else "" for name in shown]
        row.append("failed" if figure.failed else f"{figure.spread:.2f}")
        rows.append(row)
    return table([*head, *(COLUMNS[name][0] for name in shown), "spread"], rows)


def _of_time(figure: Figure, size: int, base: float | None) -> list[str]:
    seconds = figure.median.get("seconds")
    cells = [number(seconds)]
    if size:
        cells.append(number(size / seconds / _MB) if seconds else "")
    if base:
        cells.append(number(base / seconds) if seconds else "")
    return cells


def by_part(figures: Iterable[Figure]) -> dict[str, list[Figure]]:
    """Return the figures of each part, in the order in which they were measured."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.part, []).append(figure)
    return found
