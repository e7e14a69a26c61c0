# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of reports as typed data. Texts are plain and may come from hosts: ``page`` makes them harmless. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Union

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ..common.units import format_bytes, format_duration


class Tone(Enum):
    """The meaning of a colour. Where it matters, a word or a sign beside says the same."""

    PLAIN = "plain"
    GOOD = "good"
    CAUTION = "caution"
    BAD = "bad"


class Unit(Enum):
    """The unit of the values of a chart."""

    BYTES = "bytes"
    RATE = "rate"  # bytes a second
    COUNT = "count"
    SECONDS = "seconds"

    def format(self, value: float) -> str:
        """Return a value as people read it."""
        if self is Unit.BYTES:
            return format_bytes(value)
        if self is Unit.RATE:
            return f"{format_bytes(value)}/s"
        if self is Unit.SECONDS:
            return format_duration(value)
        return f"{value:,.0f}"


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    tone: Tone = Tone.PLAIN
    note: str = ""  # in small letters below
    share: float | None = None  # 0 to 1, as a bar
    code: bool = False  # a path or a digest
    link: str = ""  # the name of a file beside the page, made by this program


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """A table. The first cell of each row is its header."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Cell] = ()


@dataclass(frozen=True)
class Fact:
    """A label and a value of the headline or a section."""

    label: str
    value: str
    note: str = ""
    tone: Tone = Tone.PLAIN


def attention_fact(found: int, is_bad: bool, one: str = "thing", more: str = "things") -> Fact:
    """Return how many things need attention, for a headline."""
    tone = Tone.BAD if is_bad else Tone.CAUTION if found else Tone.GOOD
    return Fact("Needs attention", counted(found, one, more) if found else "nothing", tone=tone)


@dataclass(frozen=True)
class FactList:
    """Facts side by side."""

    facts: Sequence[Fact]


@dataclass(frozen=True)
class Notice:
    """A sentence that a person must see, with what it is about and what to do."""

    subject: str
    text: str
    advice: str = ""
    tone: Tone = Tone.BAD


@dataclass(frozen=True)
class NoticeList:
    """Sentences with a title."""

    title: str
    notices: Sequence[Notice]


@dataclass(frozen=True)
class Bar:
    """A bar of a chart."""

    label: str
    value: float
    note: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars."""

    title: str
    summary: str  # in a sentence, for who cannot see it
    unit: Unit
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Point:
    """A value at a time, in seconds since 1970."""

    at: float
    value: float


@dataclass(frozen=True)
class Curve:
    """A line of a chart. Its parts are not joined: nothing is known of the time between."""

    name: str
    parts: Sequence[Sequence[Point]]
    is_forecast: bool = False


@dataclass(frozen=True)
class Mark:
    """A time that a chart names, in seconds since 1970."""

    label: str
    at: float


@dataclass(frozen=True)
class LineChart:
    """Values over time."""

    title: str
    summary: str
    unit: Unit
    curves: Sequence[Curve]
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Span:
    """A time that something took."""

    label: str
    begin: float  # seconds since 1970
    end: float
    tone: Tone = Tone.PLAIN
    note: str = ""


@dataclass(frozen=True)
class Timeline:
    """What happened one after the other or side by side."""

    title: str
    summary: str
    spans: Sequence[Span]


Chart = Union[BarChart, LineChart, Timeline]


@dataclass(frozen=True)
class ChartRow:
    """Charts beside each other where there is room."""

    charts: Sequence[Chart]


@dataclass(frozen=True)
class Detail:
    """Blocks that are shown when somebody asks for them, and on paper."""

    title: str
    blocks: Sequence[PageBlock]
    tone: Tone = Tone.PLAIN
    state: str = ""
    note: str = ""


PageBlock = Union[Table, FactList, NoticeList, ChartRow, Detail]


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    blocks: Sequence[PageBlock]
    intro: str = ""


@dataclass(frozen=True)
class EarlierReport:
    """The page of an earlier run: a file below the folder of this one."""

    file: str
    when: str


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    verdict: str  # in a sentence
    tone: Tone
    facts: Sequence[Fact]
    attention: Sequence[Notice]  # the worst first
    sections: Sequence[Section]
    made_at: str
    made_by: str = ""
    attention_left: int = 0  # that are in the sections alone
    earlier: Sequence[EarlierReport] = ()
