# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts as SVG, and their figures."""

from __future__ import annotations

import re

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.charts import (
    draw,
    thin,
    time_ticks,
    value_ticks,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import (
    Bar,
    BarChart,
    Cell,
    Curve,
    LineChart,
    Mark,
    Point,
    Span,
    Timeline,
    Tone,
    Unit,
)

MIB = 1 << 20


@pytest.mark.parametrize(
    ("most", "unit", "ticks"),
    [
        (0, Unit.COUNT, [0, 1]),
        (1, Unit.COUNT, [0, 1]),
        (7, Unit.COUNT, [0, 2.5, 5, 7.5]),
        (1000, Unit.COUNT, [0, 500, 1000]),
        (3 * MIB, Unit.BYTES, [0, MIB, 2 * MIB, 3 * MIB]),
        (1024, Unit.RATE, [0, 512, 1024]),
        (0.5, Unit.SECONDS, [0, 0.2, 0.4, 0.6]),
    ],
)
def test_an_axis_has_few_round_values_and_reaches_the_largest(most, unit, ticks):
    assert value_ticks(most, unit) == pytest.approx(ticks)


@pytest.mark.parametrize("most", [1, 9, 99, 1234, 10**6 + 1, 2**40 + 7, 1e15])
@pytest.mark.parametrize("unit", list(Unit))
def test_any_axis_reaches_the_largest_value_with_at_most_five_lines(most, unit):
    ticks = value_ticks(most, unit)
    assert ticks[-1] >= most * (1 - 1e-6) and 2 <= len(ticks) <= 5 and ticks == sorted(ticks)


@pytest.mark.parametrize("length", [1, 59, 600, 7000, 86400, 86400 * 10, 86400 * 400])
def test_times_are_round_and_few(length):
    ticks, step = time_ticks(1_789_999_987, 1_789_999_987 + length)
    assert len(ticks) <= 5 and all(at % step == 0 for at in ticks)


def points_of(svg):
    """Return the points of each line that is drawn."""
    return [
        [tuple(map(float, point.split(","))) for point in line.split()]
        for line in re.findall(r'<polyline class="[^"]*" points="([^"]*)"', svg)
    ]


def test_a_line_goes_from_the_left_to_the_right_and_is_interrupted_where_nothing_is_known():
    parts = [[Point(0, 10 * MIB), Point(50, 5 * MIB)], [Point(80, 5 * MIB), Point(100, 0)]]
    chart = LineChart("left", "10 MiB at first", Unit.BYTES, [Curve("a", parts)], [Mark("window", 90)])
    drawn = draw(chart, 7)
    first, second = points_of(drawn.svg)
    assert first[0][0] == 62 and second[-1][0] == 368  # the edges of the drawn area
    assert first[0][1] < first[1][1] == second[0][1] < second[1][1]
    assert drawn.legend == [] and ">window<" in drawn.svg
    assert [[cell.text for cell in row] for row in drawn.figures.rows] == [
        ["1970-01-01 00:00:00", "10.0 MiB"],
        ["1970-01-01 00:00:50", "5.0 MiB"],
        ["1970-01-01 00:01:20", "5.0 MiB"],
        ["1970-01-01 00:01:40", "0 B"],
        ["1970-01-01 00:01:30", "window"],
    ]


def test_curves_are_told_apart_by_dashes_names_and_in_the_table():
    curves = [Curve("a", [[Point(0, 1), Point(1, 2)]]), Curve("b", [[Point(0, 3), Point(1, 1)]], is_forecast=True)]
    drawn = draw(LineChart("t", "s", Unit.COUNT, curves), 1)
    assert 'class="s0"' in drawn.svg and 'class="s1 forecast"' in drawn.svg
    assert drawn.legend == ["a", "b"] and [row[1].text for row in drawn.figures.rows] == ["a", "a", "b", "b"]


def test_nothing_to_draw_is_said():
    for chart in (LineChart("t", "s", Unit.COUNT, []), Timeline("t", "s", [])):
        assert ">no figures<" in draw(chart, 1).svg
    assert draw(BarChart("t", "s", Unit.COUNT, []), 1).figures.rows == []


def test_bars_are_as_long_as_their_values():
    drawn = draw(BarChart("t", "s", Unit.COUNT, [Bar("a", 100), Bar("b", 50, tone=Tone.BAD), Bar("c", 0)]), 1)
    widths = [float(width) for width in re.findall(r'class="(?:plain|bad)"[^>]* width="([\d.]+)"', drawn.svg)]
    assert widths == [356, 178, 1]


def test_spans_stand_where_they_were():
    drawn = draw(Timeline("t", "s", [Span("stop", 100, 110), Span("pass", 110, 200, Tone.BAD, "failed")]), 1)
    places = re.findall(r'class="(?:plain|bad)" x="([\d.]+)"[^>]* width="([\d.]+)"', drawn.svg)
    assert [tuple(map(float, one)) for one in places] == [(12.0, 35.6), (47.6, 320.4)]
    assert [cell.text for cell in drawn.figures.rows[1]] == [
        "pass", "1970-01-01 00:01:50", "1970-01-01 00:03:20", "1 min 30 s", "failed",
    ]  # fmt: skip


def test_a_long_table_is_thinned_and_keeps_its_ends():
    rows = thin([(Cell(str(number)),) for number in range(1001)], 11)
    assert [row[0].text for row in rows] == [str(number) for number in range(0, 1001, 100)]
