# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore as a page for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ...common.typed_json import parse_dataclass
from ...common.units import format_bytes, format_duration, format_size, shown_time
from ...report.model import (
    Bar,
    BarChart,
    Cell,
    Chart,
    ChartRow,
    Column,
    Fact,
    FactList,
    Notice,
    Page,
    PageBlock,
    Section,
    Table,
    Tone,
    Unit,
    attention_fact,
)
from .report import CHECKS, DONE, RestoreFigures, RestoreReport

_MOST_ROWS = 200  # of damaged entries; the rest is counted


def make_page(report: RestoreReport) -> Page:
    """Return the page on a restore, also on one that has begun or failed."""
    figures = parse_dataclass(RestoreFigures, report.result, "the result")
    identity = report.identity
    notices = _notices(report, figures)
    failed = report.state in ("failed", "unloaded")
    sections = [Section("What was restored", _blocks(report, figures))]
    if report.problems:
        sections.append(Section("Damaged in the snapshot", [_problems(report)]))
    return Page(
        title=f"Restore of {identity['from']}, {identity['job']}",
        verdict=_verdict(report, figures),
        tone=Tone.BAD if failed else Tone.CAUTION if notices or report.state == "begun" else Tone.GOOD,
        facts=_headline(report, figures, len(notices)),
        attention=notices,
        sections=sections,
        made_at=shown_time(report.at),
        made_by=report.by,
    )


def _verdict(report: RestoreReport, figures: RestoreFigures) -> str:
    if report.state == "failed":
        return "The restore is not complete."
    if report.state == "begun":
        return "The restore has begun and has not ended yet."
    if report.state == "unloaded":
        return "All files are restored, and not all dumps are loaded."
    entries = f"{entries_text(figures.files_total)}, {format_size(figures.bytes_total, figures.bytes_apparent)}"
    return f"{'Would restore' if report.check_mode else 'Restored'} {entries}."


def _headline(report: RestoreReport, figures: RestoreFigures, attention: int) -> list[Fact]:
    identity = report.identity
    return [
        Fact("What", identity["path"] or "all", f"of the snapshot {identity['snapshot']}, {report.why}"),
        Fact("From", f"{identity['from']}, {identity['job']}", f"in {identity['repository']}"),
        Fact("To", f"{identity['to']}:{identity['dest']}", "over what was there" if report.over else ""),
        Fact("Began", shown_time(report.began) or "not known"),
        Fact("Ended", shown_time(report.at) if report.state != "begun" else "not yet"),
        _verified(report, figures),
        Fact("Run by", report.by or "not known"),
        attention_fact(attention, report.state in ("failed", "unloaded")),
    ]


def _verified(report: RestoreReport, figures: RestoreFigures) -> Fact:
    before = f"the snapshot was compared with its manifest before: {CHECKS[report.checked]}"
    if report.state not in ("restored", "unloaded") or report.check_mode or not figures.verified:
        return Fact("Verified", "not yet", before)
    how = "by content and attributes" if figures.verified == "checksum" else "by size and attributes"
    return Fact(
        "Verified", f"{figures.files_total:,} of {figures.files_total:,} entries", f"{how}; {before}", Tone.GOOD
    )


def _notices(report: RestoreReport, figures: RestoreFigures) -> list[Notice]:
    found = []
    if figures.failure and report.state == "unloaded":
        found.append(Notice("Not all dumps are loaded", figures.failure, ""))
    elif figures.failure:
        advice = "The snapshot is unchanged. Fix the cause and run the same command again to resume it."
        found.append(Notice("The restore is not complete", figures.failure, advice))
    if report.problems_total:
        told = f"{entries_text(report.problems_total)} of the snapshot are not as they were when it was made"
        found.append(Notice("The snapshot is damaged", told, "The table below names them and where they are intact."))
    return [*found, *(Notice("", text, tone=Tone.CAUTION) for text in report.warnings)]


def _blocks(report: RestoreReport, figures: RestoreFigures) -> list[PageBlock]:
    facts = [Fact("Snapshot", report.identity["snapshot"], report.snapshot_state)]
    if report.delete:
        facts.append(Fact("Deletes", "what the snapshot has not", "delete was asked for"))
    if figures.method:
        facts += [
            Fact("Method", figures.method, "" if figures.encrypted else "not encrypted"),
            Fact(
                "Would be sent" if report.check_mode else "Sent",
                format_bytes(figures.bytes_sent),
                "" if report.check_mode else f"in {format_duration(figures.duration)}",
            ),
            Fact("Rate", f"{format_bytes(figures.throughput)}/s" if figures.throughput else "not known"),
            Fact("Resumed", "yes" if figures.resumed else "no"),
        ]
    facts += [Fact("Loaded", kind, databases) for kind, databases in report.loaded.items()]
    if figures.preserved:
        facts.append(Fact("Preserved", ", ".join(figures.preserved)))
    blocks: list[PageBlock] = [FactList(facts)]
    charts = _charts(figures)
    return [*blocks, ChartRow(charts)] if charts else blocks


def _charts(figures: RestoreFigures) -> list[Chart]:
    if not figures.method:
        return []
    bars = [Bar(word, getattr(figures, name)) for name, word in DONE.items()]
    done = ", ".join(f"{one.value:,.0f} {one.label}" for one in bars)
    charts: list[Chart] = [BarChart("Entries by what was done", f"{done}.", Unit.COUNT, bars)]
    if figures.phases:
        phases = [Bar(name, seconds) for name, seconds in figures.phases.items()]
        longest = max(phases, key=lambda one: one.value)
        summary = f"The longest was {longest.label}, {format_duration(longest.value)}."
        charts.append(BarChart("Time by phase", summary, Unit.SECONDS, phases))
    return charts


def _problems(report: RestoreReport) -> Table:
    shown = report.problems[:_MOST_ROWS]
    rows: list[Sequence[Cell]] = [
        (
            Cell("the snapshot itself") if one["path"] is None else Cell(one["path"], code=True),
            Cell(one["detail"], Tone.BAD),
            Cell(", ".join(one["intact_in"]) or "no snapshot that was looked at"),
        )
        for one in shown
    ]
    columns = [Column(title) for title in ("Path", "Damage", "Intact in")]
    return Table(f"{len(shown)} of {report.problems_total:,}", columns, rows)
