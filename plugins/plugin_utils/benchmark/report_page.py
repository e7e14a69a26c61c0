# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on benchmarks as a page for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ..common.units import both_times, format_bytes, format_duration, format_size
from ..report.model import (
    Bar,
    BarChart,
    Cell,
    Chart,
    ChartRow,
    Column,
    Fact,
    FactList,
    Notice,
    NoticeList,
    Page,
    PageBlock,
    Section,
    Table,
    Tone,
    Unit,
    attention_fact,
)
from .candidates import SIDES
from .measurement import BenchmarkResult, Candidate, LinkRates, PairMeasurement, Prediction, Recommendation
from .recommend import describe
from .result_text import tell_rate

_MOST_NOTICES = 5
_MOST_PAIRS = 100  # whose measurements are on the page; the table has all


def make_benchmark_page(results: Sequence[BenchmarkResult], now: float, by: str = "") -> Page:
    """Return the page on the benchmarks of pairs. ``now`` is in seconds since 1970."""
    notices = [notice for one in results for notice in _notices(one)]
    unusable = sum(one.recommendation is None for one in results)
    measured = [one.measurement for one in results]
    begin = min((one.at for one in measured), default=now)
    cost = sum(one.seconds for one in measured)
    pairs = counted(len(results), "pair", "pairs")
    facts = [
        Fact("What was measured", pairs, f"{format_bytes(sum(one.bytes_sent for one in measured))} sent"),
        Fact("Began", both_times(begin)),
        Fact("Took", format_duration(cost)),
        Fact("Run by", by or "not known"),
        attention_fact(len(notices), bool(unusable)),
    ]
    verdict = f"{unusable} of {pairs} have no method that can run." if unusable else f"Measured {pairs}."
    sections = [Section("Pairs", [_pair_table(results)])]
    sections += [Section(_name(one), _pair_blocks(one)) for one in results[:_MOST_PAIRS]]
    return Page(
        title="Benchmark",
        verdict=verdict,
        tone=Tone.BAD if unusable else Tone.CAUTION if notices else Tone.GOOD,
        facts=facts,
        attention=notices[:_MOST_NOTICES],
        attention_left=max(0, len(notices) - _MOST_NOTICES),
        sections=sections,
        made_at=both_times(now),
        made_by=by,
    )


def _name(one: BenchmarkResult) -> str:
    return f"{one.measurement.source} → {one.measurement.dest}"


def _notices(one: BenchmarkResult) -> list[Notice]:
    found = []
    if one.recommendation is None:
        told = "No method can run between these hosts. The table of methods says why."
        found.append(Notice(_name(one), told, one.advice))
    return [*found, *(Notice(_name(one), gap, tone=Tone.CAUTION) for gap in one.measurement.gaps)]


# All pairs


def _pair_table(results: Sequence[BenchmarkResult]) -> Table:
    numbers = ("Top speed", "First copy", "Pass without changes", "Comparison")
    titles = ("Pair", "Use", *numbers, "Limited by")
    columns = [Column(title, is_number=title in numbers) for title in titles]
    return Table("All pairs", columns, [_pair_row(one) for one in results])


def _pair_row(one: BenchmarkResult) -> Sequence[Cell]:
    tree = one.measurement.tree
    size = f"{tree.entries:,} entries, {format_size(tree.bytes_on_disk, tree.bytes_apparent)}" if tree.entries else ""
    chosen = one.recommendation
    if chosen is None:
        return (Cell(_name(one), note=size), Cell("nothing can run", Tone.BAD), *(Cell("") for _column in range(5)))
    return (
        Cell(_name(one), note=size),
        Cell(describe(chosen), note=_how(chosen)),
        Cell(tell_rate(_chosen_rate(one))),
        *(_predicted_cell(made) for made in (chosen.first_copy, chosen.unchanged, chosen.comparison)),
        Cell(one.bottleneck or "nothing by itself"),
    )


def _how(chosen: Recommendation) -> str:
    words = [counted(chosen.streams, "connection", "connections"), f"compress: {chosen.compress}"]
    return ", ".join([*words, f"connect: {chosen.connect}"])


def _chosen_rate(one: BenchmarkResult) -> float:
    """Return the top speed of the recommended method with this tree's data."""
    chosen = one.recommendation
    same = [
        made for made in one.candidates if chosen and (made.method, made.variant) == (chosen.method, chosen.variant)
    ]
    return max((max(made.plain, made.compressed) for made in same), default=0.0)


def _predicted_cell(made: Prediction) -> Cell:
    return Cell(f"about {format_duration(made.seconds)}", note=_range(made)) if made.seconds else Cell("not known")


def _range(made: Prediction) -> str:
    return f"{format_duration(made.low)} to {format_duration(made.high)}"


# One pair


def _pair_blocks(one: BenchmarkResult) -> list[PageBlock]:
    chosen = one.recommendation
    facts = []
    if chosen is not None:
        facts.append(Fact("Recommended", describe(chosen), f"{_how(chosen)}. {chosen.reason}"))
    if one.bottleneck:
        facts.append(Fact("Bottleneck", one.bottleneck, one.advice))
    if one.src:
        facts.append(Fact("Tree", one.src, f"to {one.dest}" if one.dest else ""))
    facts += _line_facts(one.measurement)
    blocks: list[PageBlock] = [FactList(facts)]
    if one.measurement.gaps:
        gaps = [Notice("", gap, tone=Tone.CAUTION) for gap in one.measurement.gaps]
        blocks.append(NoticeList("Not measured", gaps))
    charts = [*_candidate_charts(one.candidates), *_part_charts(one.measurement)]
    blocks += [ChartRow(charts)] if charts else []
    blocks += [_candidate_table(one.candidates)] if one.candidates else []
    blocks += [_prediction_table(chosen)] if chosen is not None else []
    return [*blocks, *_host_tables(one.measurement)]


def _line_facts(measured: PairMeasurement) -> list[Fact]:
    line = measured.link
    facts = []
    if line.round_trip:
        facts.append(Fact("Round trip", f"{line.round_trip * 1000:.1f} ms", f"{line.loss:.2%} sent again"))
    if line.path_mtu:
        facts.append(Fact("Path MTU", f"{line.path_mtu:,} bytes"))
    if line.window:
        facts.append(Fact("Window", format_bytes(line.window), f"congestion control: {line.congestion or 'not known'}"))
    for side in SIDES:
        rate = line.interfaces.get(side, 0.0)
        if rate:
            facts.append(Fact(f"Interface of the {side}", tell_rate(rate), line.bonds.get(side, "")))
    return facts


def _candidate_charts(candidates: Sequence[Candidate]) -> list[Chart]:
    usable = [one for one in candidates if one.plain or one.compressed]
    if not usable:
        return []
    ordered = sorted(usable, key=lambda one: -max(one.plain, one.compressed))
    bars = [
        Bar(
            f"{describe(one)}{'' if one.allowed else ', not allowed'}",
            max(one.plain, one.compressed),
            one.refused or one.limited_by,
            Tone.PLAIN if one.allowed else Tone.CAUTION,
        )
        for one in ordered
    ]
    return [BarChart("Top speed of each method", f"The fastest is {bars[0].label}.", Unit.RATE, bars)]


def _part_charts(measured: PairMeasurement) -> list[Chart]:
    """Return the speed of each part on the way: the slowest one decides."""
    forth = measured.link.forth
    parts = {"line, one connection": forth.one_stream, f"line, {forth.streams} connections": forth.several_streams}
    parts[f"line with TLS, {forth.streams} connections"] = forth.encrypted
    for side in SIDES:
        disk = measured.disks.get(side)
        if disk is not None:
            parts[f"disk of the {side}, large files"] = disk.large
            parts[f"disk of the {side}, read and compared"] = disk.compared
    bars = [Bar(name, rate) for name, rate in parts.items() if rate]
    if not bars:
        return []
    slowest = min(bars, key=lambda bar: bar.value)
    summary = f"The slowest is {slowest.label}, {tell_rate(slowest.value)}."
    return [BarChart("Speed of each part", summary, Unit.RATE, bars)]


def _candidate_table(candidates: Sequence[Candidate]) -> Table:
    numbers = ("Plain", "Compressed", "First byte", "Cores, source", "Cores, destination")
    titles = ("Method", *numbers, "Resumes", "Encrypted", "Allowed", "From", "Limited by")
    rows = [
        (
            Cell(describe(one)),
            Cell(tell_rate(one.plain)),
            Cell(f"{format_bytes(one.compressed)}/s" if one.compressed else "cannot"),
            Cell(format_duration(one.first_byte) if one.first_byte else ""),
            *(Cell(f"{one.processor[side]:.2f}" if side in one.processor else "") for side in SIDES),
            Cell(one.resumes),
            Cell("yes" if one.encrypted else "no"),
            Cell("yes", Tone.GOOD) if one.allowed else Cell("no", Tone.CAUTION, one.refused),
            Cell("derived" if one.derived else "measured"),
            Cell(one.limited_by.replace("_", " ")),
        )
        for one in candidates
    ]
    return Table("Methods for this pair", [Column(title, is_number=title in numbers) for title in titles], rows)


def _prediction_table(chosen: Recommendation) -> Table:
    columns = [Column("What"), *(Column(title, is_number=True) for title in ("Predicted", "Range"))]
    rows = [
        (Cell(name), Cell(format_duration(made.seconds) if made.seconds else "not known"), Cell(_range(made)))
        for name, made in (
            ("first copy", chosen.first_copy),
            ("pass without changes", chosen.unchanged),
            ("comparison by content", chosen.comparison),
        )
    ]
    return Table("Predictions", columns, rows)


def _host_tables(measured: PairMeasurement) -> list[PageBlock]:
    numbers = ("Large files", "Small files a second", "Entries a second", "Read and compared", "Busy")
    disks = [
        (
            Cell(side),
            Cell(tell_rate(disk.large)),
            Cell(f"{disk.small:,.0f}" if disk.small else "not measured"),
            Cell(f"{disk.entries:,.0f}" if disk.entries else "not measured"),
            Cell(tell_rate(disk.compared)),
            Cell(f"{disk.busy:.0%}"),
            Cell(disk.note or ("counted by the kernel" if disk.kernel else "by the time of the calls")),
        )
        for side, disk in measured.disks.items()
    ]
    columns = [Column("Disk"), *(Column(title, is_number=True) for title in numbers), Column("Note")]
    blocks: list[PageBlock] = [Table("Disks", columns, disks)] if disks else []
    rates = [
        (Cell(name), Cell(side), Cell(kind), Cell(tell_rate(rate)))
        for side, one in measured.processors.items()
        for kind, found in (("cipher", one.ciphers), ("hash", one.hashes), ("compression", one.compression))
        for name, rate in found.items()
    ]
    columns = [Column("What"), Column("Side"), Column("Kind"), Column("One core", is_number=True)]
    blocks += [Table("Processors", columns, rates)] if rates else []
    line = measured.link
    ways = [_link_row(name, one) for name, one in (("forth", line.forth), ("back", line.back)) if one != LinkRates()]
    titles = ("One connection", "Several", "With TLS")
    columns = [Column("Line"), *(Column(title, is_number=True) for title in titles)]
    return [*blocks, Table("The line, without disks", columns, ways)] if ways else blocks


def _link_row(name: str, one: LinkRates) -> Sequence[Cell]:
    several = Cell(tell_rate(one.several_streams), note=counted(one.streams, "connection", "connections"))
    return (Cell(name), Cell(tell_rate(one.one_stream)), several, Cell(tell_rate(one.encrypted)))
