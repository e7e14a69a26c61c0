# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts as inline SVG, drawn for a width of 380 pixels, and their figures as tables. Pure.

Colours come from the style of the page. Dashes, labels and the table say without colour what the colours say.
"""

from __future__ import annotations

import html
import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from ..common.host_text import page_text
from ..common.units import format_duration
from .model import BarChart, Cell, Chart, Column, Curve, LineChart, Mark, Span, Table, Timeline, Unit

T = TypeVar("T")
_WIDTH, _LEFT, _RIGHT = 380, 62, 12
_TOP, _HEIGHT, _FOOT = 12, 132, 34  # of the drawn area, and of the labels of its times
_LONGEST_LABEL = 46  # characters of one that is drawn
_MOST_ROWS = 40  # of a table below a chart
_MOST_BARS = 40
_STEPS = (1, 2, 2.5, 5, 10)
_TIME_STEPS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400)


class DrawnChart(NamedTuple):
    """A chart as markup, with its figures."""

    title: str
    svg: str  # markup, whose texts are escaped
    legend: Sequence[str]  # names of its curves, in their order, if there are several
    figures: Table


def draw(chart: Chart, number: int) -> DrawnChart:
    """Return a chart as markup; its ``number`` is unique on the page."""
    if isinstance(chart, BarChart):
        return DrawnChart(chart.title, _draw_bars(chart, number), (), _bar_figures(chart))
    if isinstance(chart, LineChart):
        names = [curve.name for curve in chart.curves] if len(chart.curves) > 1 else []
        return DrawnChart(chart.title, _draw_lines(chart, number), names, _line_figures(chart))
    return DrawnChart(chart.title, _draw_timeline(chart, number), (), _timeline_figures(chart))


def clock(at: float, step: float = 60) -> str:
    """Return a time in UTC as the axis of a chart with such steps names it."""
    form = "%d %b" if step >= 86400 else "%d %b %H:%M" if step >= 6 * 3600 else "%H:%M:%S" if step < 60 else "%H:%M"
    return time.strftime(form, time.gmtime(at))


def moment(at: float) -> str:
    """Return a time in UTC as tables name it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def value_ticks(most: float, unit: Unit) -> list[float]:
    """Return the values at which the axis from 0 to at least ``most`` has a line."""
    if most <= 0:
        return [0.0, 1.0]
    base = 1.0
    if unit in (Unit.BYTES, Unit.RATE):
        base = 1024.0 ** max(0, int(math.log(most, 1024) + 1e-9))
    rough = most / base / 3
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9)) * base
    if unit in (Unit.BYTES, Unit.COUNT):
        step = max(1.0, step)
    count = max(1, math.ceil(most / step * (1 - 1e-9)))
    return [step * number for number in range(count + 1)]


def time_ticks(first: float, last: float) -> tuple[list[float], float]:
    """Return at most four round times between two, and their distance."""
    length = max(1.0, last - first)
    step = next((float(one) for one in _TIME_STEPS if length / one <= 4), 0.0)
    if not step:
        step = 86400.0 * math.ceil(length / 86400 / 4)
    begin = math.ceil(first / step)
    return [step * number for number in range(begin, int(last // step) + 1)], step


class _Frame(NamedTuple):
    """The drawn area of a line chart or a timeline."""

    first: float
    last: float
    most: float
    height: float

    def x(self, at: float) -> float:
        share = (at - self.first) / max(1e-9, self.last - self.first)
        return round(_LEFT + min(1.0, max(0.0, share)) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = min(1.0, max(0.0, value / self.most)) if self.most else 0.0
        return round(_TOP + (1 - share) * self.height, 1)


def _escape(text: str, longest: int = 400) -> str:
    return html.escape(page_text(text, longest))


def _label(text: str) -> str:
    """Return the text of a drawn label, cut to its room."""
    line = " ".join(page_text(text, 400).split())
    return html.escape(line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…")


def _svg(title: str, summary: str, number: int, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {round(height)}" role="img" aria-labelledby="c{number}t c{number}d">'
        f'<title id="c{number}t">{_escape(title)}</title><desc id="c{number}d">{_escape(summary)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "", style: str = "") -> str:
    """Return a label; its text is escaped already."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{placed}{f" class={style!r}" if style else ""}>{text}</text>'


def _time_axis(frame: _Frame, bottom: float) -> list[str]:
    ticks, step = time_ticks(frame.first, frame.last)
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{bottom:g}" y2="{bottom:g}"/>']
    drawn = -1000.0
    for at in ticks:
        x = frame.x(at)
        parts.append(f'<line class="axis" x1="{x:g}" x2="{x:g}" y1="{bottom:g}" y2="{bottom + 4:g}"/>')
        if x - drawn >= 76 and x <= _WIDTH - 30:
            drawn = x
            parts.append(_text(x, bottom + 16, clock(at, step), "middle"))
    day = time.strftime("%Y-%m-%d", time.gmtime(frame.first))
    return [*parts, _text(_WIDTH - _RIGHT, bottom + 30, f"UTC, from {day}", "end", "dim")]


def _draw_lines(chart: LineChart, number: int) -> str:
    points = [point for curve in chart.curves for part in curve.parts for point in part]
    if not points:
        return _svg(chart.title, chart.summary, number, 40, [_text(_LEFT, 24, "no figures")])
    times = [*(point.at for point in points), *(mark.at for mark in chart.marks)]
    ticks = value_ticks(max(point.value for point in points), chart.unit)
    frame = _Frame(min(times), max(*times, min(times) + 1), ticks[-1], _HEIGHT)
    parts = []
    for value in ticks:
        y = frame.y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>')
        parts.append(_text(_LEFT - 6, y + 4, chart.unit.format(value), "end"))
    parts += _time_axis(frame, _TOP + _HEIGHT)
    for mark in chart.marks:
        parts += _draw_mark(frame, mark)
    for order, curve in enumerate(chart.curves):
        parts += _draw_curve(frame, curve, order)
    return _svg(chart.title, chart.summary, number, _TOP + _HEIGHT + _FOOT, parts)


def _draw_mark(frame: _Frame, mark: Mark) -> list[str]:
    x = frame.x(mark.at)
    anchor = "end" if x > _WIDTH / 2 else "start"
    return [
        f'<line class="mark" x1="{x:g}" x2="{x:g}" y1="{_TOP}" y2="{_TOP + _HEIGHT}"/>',
        _text(x + (-4 if anchor == "end" else 4), _TOP + 10, _label(mark.label), anchor),
    ]


def _draw_curve(frame: _Frame, curve: Curve, order: int) -> list[str]:
    kind = f"s{order % 4}{' forecast' if curve.is_forecast else ''}"
    parts = []
    for part in curve.parts:
        if len(part) == 1:
            parts.append(f'<circle class="{kind}" cx="{frame.x(part[0].at):g}" cy="{frame.y(part[0].value):g}" r="3"/>')
        elif part:
            path = " ".join(f"{frame.x(point.at):g},{frame.y(point.value):g}" for point in part)
            parts.append(f'<polyline class="{kind}" points="{path}"/>')
    return parts


def _draw_bars(chart: BarChart, number: int) -> str:
    bars = chart.bars[:_MOST_BARS]
    most = max((one.value for one in bars), default=0) or 1
    parts, y, room = [], 4, _WIDTH - 2 * _RIGHT
    for one in bars:
        value = _label(chart.unit.format(one.value))
        parts.append(_text(_RIGHT, y + 12, _label(one.label)))
        parts.append(_text(_WIDTH - _RIGHT, y + 12, value, "end", "value"))
        width = max(1.0, room * max(0.0, one.value) / most)
        parts.append(f'<rect class="rest" x="{_RIGHT}" y="{y + 17}" width="{room}" height="9" rx="2"/>')
        parts.append(
            f'<rect class="{one.tone.value}" x="{_RIGHT}" y="{y + 17}" width="{width:.1f}" height="9" rx="2"/>'
        )
        y += 34
    return _svg(chart.title, chart.summary, number, y + 2, parts)


def _draw_timeline(chart: Timeline, number: int) -> str:
    spans = chart.spans[:_MOST_BARS]
    if not spans:
        return _svg(chart.title, chart.summary, number, 40, [_text(_RIGHT, 24, "no figures")])
    first, last = min(span.begin for span in spans), max(span.end for span in spans)
    length, room = max(1.0, last - first), _WIDTH - 2 * _RIGHT
    parts, y = [], 4
    for span in spans:
        parts.append(_text(_RIGHT, y + 12, _label(span.label)))
        took = format_duration(max(0.0, span.end - span.begin))
        parts.append(_text(_WIDTH - _RIGHT, y + 12, took, "end", "value"))
        x = _RIGHT + room * (span.begin - first) / length
        width = max(2.0, room * (span.end - span.begin) / length)
        parts.append(f'<rect class="rest" x="{_RIGHT}" y="{y + 17}" width="{room}" height="9" rx="2"/>')
        x = min(x, _WIDTH - _RIGHT - width)
        parts.append(
            f'<rect class="{span.tone.value}" x="{x:.1f}" y="{y + 17}" width="{width:.1f}" height="9" rx="2"/>'
        )
        y += 34
    parts.append(_text(_RIGHT, y + 12, f"{clock(first, 1)} UTC", style="dim"))
    parts.append(_text(_WIDTH - _RIGHT, y + 12, f"{clock(last, 1)} UTC", "end", "dim"))
    return _svg(chart.title, chart.summary, number, y + 20, parts)


# Figures


def thin(items: Sequence[T], most: int = _MOST_ROWS) -> list[T]:
    """Return at most so many items, evenly chosen, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(number * (len(items) - 1) / (most - 1))] for number in range(most)]


def _line_figures(chart: LineChart) -> Table:
    several = len(chart.curves) > 1
    rows = [
        (Cell(moment(point.at)), *((Cell(curve.name),) if several else ()), Cell(chart.unit.format(point.value)))
        for curve in chart.curves
        for part in curve.parts
        for point in part
    ]
    shown = thin(rows)
    caption = chart.title if len(shown) == len(rows) else f"{chart.title} ({len(shown)} of {len(rows)} values)"
    columns = [Column("Time (UTC)"), *([Column("Line")] if several else []), Column("Value", is_number=True)]
    return Table(
        caption, columns, [*shown, *((Cell(moment(mark.at)), *_mark_cells(mark, several)) for mark in chart.marks)]
    )


def _mark_cells(mark: Mark, several: bool) -> Sequence[Cell]:
    return (Cell(mark.label), Cell("")) if several else (Cell(mark.label),)


def _bar_figures(chart: BarChart) -> Table:
    rows = [(Cell(one.label), Cell(chart.unit.format(one.value)), Cell(one.note)) for one in chart.bars]
    return Table(chart.title, [Column("Name"), Column("Value", is_number=True), Column("Note")], thin(rows))


def _timeline_figures(chart: Timeline) -> Table:
    columns = [
        Column("What"),
        Column("Begin (UTC)"),
        Column("End (UTC)"),
        Column("Took", is_number=True),
        Column("Note"),
    ]
    return Table(chart.title, columns, thin([_span_row(span) for span in chart.spans]))


def _span_row(span: Span) -> Sequence[Cell]:
    took = format_duration(max(0.0, span.end - span.begin))
    return (Cell(span.label), Cell(moment(span.begin)), Cell(moment(span.end)), Cell(took), Cell(span.note, span.tone))
