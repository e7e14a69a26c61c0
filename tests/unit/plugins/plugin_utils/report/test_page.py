# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages as HTML: valid, without reference to anything else, and harmless whatever a host says."""

from __future__ import annotations

import re
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import (
    Bar,
    BarChart,
    Cell,
    ChartRow,
    Column,
    Curve,
    Detail,
    EarlierReport,
    Fact,
    FactList,
    LineChart,
    Mark,
    Notice,
    NoticeList,
    Page,
    Point,
    Section,
    Span,
    Table,
    Timeline,
    Tone,
    Unit,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE


def page_of(text):
    """Return a page that has a text everywhere."""
    lines = LineChart(
        text, text, Unit.BYTES, [Curve(text, [[Point(0, 1), Point(60, 2)]]), Curve(text, [[Point(60, 2)]], True)],
        [Mark(text, 30)],
    )  # fmt: skip
    bars = BarChart(text, text, Unit.COUNT, [Bar(text, 5, text, Tone.BAD)])
    spans = Timeline(text, text, [Span(text, 0, 10, Tone.GOOD, text)])
    cells = [Cell(text, Tone.BAD, text, 0.5, link=text), Cell(text, code=True), Cell("")]
    table = Table(text, [Column(text), Column(text, is_number=True), Column(text)], [cells], cells)
    notice = Notice(text, text, text)
    blocks = [
        FactList([Fact(text, text, text, Tone.CAUTION)]),
        NoticeList(text, [notice]),
        ChartRow([lines, bars, spans]),
    ]
    return Page(
        title=text, verdict=text, tone=Tone.BAD, facts=[Fact(text, text, text)], attention=[notice],
        sections=[Section(text, [table, *blocks, Detail(text, [table, *blocks], Tone.BAD, text, text)], text)],
        made_at=text, made_by=text, attention_left=3, earlier=[EarlierReport(text, text)],
    )  # fmt: skip


@pytest.fixture(scope="module")
def hostile():
    """Return the outline of a page whose texts all come from a hostile host."""
    return Outline.of(render_page(page_of(HOSTILE)))


def test_a_page_is_well_formed_and_has_landmarks_and_headings_in_their_order():
    outline = Outline.of(render_page(page_of("a & b < c")))
    assert outline.problems == []
    assert [name for name in outline.names if name in ("header", "main", "footer")] == ["header", "main", "footer"]
    assert outline.headings == [1, 2, 2, 3]
    assert outline.tags["html"][0] == {"lang": "en"}
    assert {"scope"} <= set.intersection(*(set(one) for one in outline.tags["th"]))
    assert len(outline.tags["caption"]) == len(outline.tags["table"])


def test_each_chart_is_named_described_and_has_a_table():
    outline = Outline.of(render_page(page_of("text")))
    drawn = [one for one in outline.tags["svg"] if one.get("role") == "img"]
    named = {part for one in drawn for part in one["aria-labelledby"].split()}
    assert len(drawn) == 6 == len(outline.tags["figure"])
    assert named == {one["id"] for one in (*outline.tags["title"][1:], *outline.tags["desc"])}
    ids = [one["id"] for tags in outline.tags.values() for one in tags if "id" in one]
    assert len(ids) == len(set(ids))


def test_what_a_host_says_is_text_and_nothing_else(hostile):
    plain = Outline.of(render_page(page_of("text")))
    assert hostile.problems == [] and hostile.names == plain.names
    assert not any(name.startswith("on") for tags in hostile.tags.values() for one in tags for name in one)
    assert hostile.text.count("</script><img src=x onerror=") > 30 < hostile.text.count("\\u202egnp.\\x1b[31m")


def test_a_page_refers_to_nothing_but_earlier_reports_and_pages_of_jobs(hostile):
    outline = Outline.of(render_page(page_of("text")))
    assert {"script", "link", "img", "iframe", "object", "base", "form", "use", "image"}.isdisjoint(outline.tags)
    assert [one.get("content", "") for one in outline.tags["meta"] if "http-equiv" in one] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]
    assert not {"src", "srcset", "xlink:href"} & {
        name for tags in outline.tags.values() for one in tags for name in one
    }
    assert {one["href"] for one in outline.tags["a"]} == {"text"}
    assert not re.search(r"url\(|@import|://", render_page(page_of("text")))
    assert all(re.fullmatch(r"[\w.%/~-]+", one["href"]) for one in hostile.tags["a"])


def test_a_long_name_is_cut_in_its_middle():
    page = render_page(page_of("begin" + "x" * 10_000 + "end"))
    runs = {len(run) for run in re.findall("x+", Outline.of(page).text)}
    assert max(runs) < 1_001 and "[8008 characters left out]" in page and "xend<" in page


def test_colours_are_never_alone():
    outline = Outline.of(render_page(page_of("text")))
    toned = [one for one in outline.tags["span"] if one.get("class") in ("good", "bad", "caution")]
    signs = [one for one in outline.tags["span"] if one.get("aria-hidden") == "true"]
    assert toned and len(signs) >= len(toned)


def test_times_of_the_control_node_stand_beside_utc(monkeypatch):
    from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import both_times

    for zone, shown in (
        ("UTC", "2026-09-21 13:33:20 UTC"),
        ("Europe/Berlin", "2026-09-21 13:33:20 UTC (15:33:20 CEST)"),
        ("Pacific/Auckland", "2026-09-21 13:33:20 UTC (2026-09-22 01:33:20 NZST)"),
    ):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert both_times(1_789_997_600) == shown
    monkeypatch.undo()
    time.tzset()
