# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of migrations as pages: all jobs for a manager, and each job. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import format_bytes, format_duration, format_entries, format_size, shown_time
from ...report.model import (
    Cell,
    ChartRow,
    Column,
    Detail,
    EarlierReport,
    Page,
    PageBlock,
    Section,
    Table,
    Tone,
)
from .job_blocks import job_blocks
from .report_charts import charts_over_time, downtime_charts
from .report_facts import (
    Downtimes,
    JobReport,
    RunFacts,
    find_downtimes,
    find_left,
    find_notices,
    find_standing,
    find_total,
    list_some,
    make_headline,
    name_some,
    tell_comparison,
    tell_end,
    time_left,
)
from .state import MigrationState, Stage

_MOST_NOTICES = 5  # in the headline: the table has all
_MOST_DETAILS = 25  # jobs whose details are on the page of all; each job has a page of its own
_MOST_UNITS = 12  # downtimes that are drawn
_LONGEST_ERROR = 200  # characters in the table of all jobs
_JOB_COLUMNS = (
    Column("Job"),
    Column("State"),
    Column("Copied"),
    Column("Left", is_number=True),
    Column("Size", is_number=True),
    Column("Sent", is_number=True),
    Column("Deleted", is_number=True),
    Column("Compared"),
    Column("Downtime expected", is_number=True),
    Column("Downtime real", is_number=True),
)


def make_overview(reports: Sequence[JobReport], run: RunFacts, earlier: Sequence[EarlierReport] = ()) -> Page:
    """Return the page on all jobs."""
    ordered = sorted(reports, key=lambda one: (find_standing(one).rank, one.state.name))
    notices = [notice for report in ordered for notice in find_notices(report)]
    notices.sort(key=lambda one: one.tone is not Tone.BAD)
    units = find_downtimes(reports)
    sections = [Section("Jobs", [_job_table(ordered)])]
    charts = charts_over_time(reports)
    if charts:
        sections.append(Section("Over time", [ChartRow(charts)]))
    if any(one.expected or one.real or one.unmeasured for one in units):
        sections.append(Section("Downtime", _downtime_blocks(units)))
    if reports:
        sections.append(_details(ordered))
    failed = sum(one.state.failure is not None for one in reports)
    return Page(
        title="Migration",
        verdict=_verdict(reports, failed),
        tone=Tone.BAD if failed else Tone.CAUTION if notices else Tone.GOOD,
        facts=make_headline(reports, units, run, len(notices)),
        attention=notices[:_MOST_NOTICES],
        attention_left=max(0, len(notices) - _MOST_NOTICES),
        sections=sections,
        made_at=shown_time(run.now),
        made_by=run.by,
        earlier=earlier,
    )


def make_job_page(report: JobReport, run: RunFacts) -> Page:
    """Return the page on one job."""
    standing, notices = find_standing(report), find_notices(report)
    return Page(
        title=f"Migration of {report.state.name}",
        verdict=f"{standing.word[:1].upper()}{standing.word[1:]}. {report.more.next}",
        tone=standing.tone,
        facts=make_headline([report], find_downtimes([report]), run, len(notices)),
        attention=notices,
        sections=[Section("Details", job_blocks(report, with_notices=False))],
        made_at=shown_time(run.now),
        made_by=run.by,
    )


def _verdict(reports: Sequence[JobReport], failed: int) -> str:
    switched = sum(one.state.stage is Stage.SWITCHED for one in reports)
    total = counted(len(reports), "job", "jobs")
    words = (
        [f"{failed} of {total} stopped"] if failed else [f"All is well with {total}" if reports else "No job has run"]
    )
    return f"{'; '.join([*words, f'{switched} of {len(reports)} switched over'])}."


def _job_table(reports: Sequence[JobReport]) -> Table:
    moved = [one for one in reports if not one.state.is_back]
    totals = [one.more.totals for one in moved]
    left = sum(find_left(one) or 0 for one in moved)
    foot = (
        Cell(f"Sum of {len(moved)}"),
        Cell(f"{sum(one.state.failure is not None for one in reports)} stopped"),
        Cell(""),
        Cell(format_bytes(left)),
        Cell(format_bytes(sum(one.bytes for one in totals)), note=format_entries(sum(one.entries for one in totals))),
        Cell(format_bytes(sum(one.bytes_sent for one in totals))),
        Cell(f"{sum(one.files_deleted for one in totals):,}"),
        Cell(f"{sum(one.state.is_compared for one in moved)} of {len(moved)}"),
        Cell(""),
        Cell(""),
    )
    return Table("All jobs, the sick ones first", _JOB_COLUMNS, [_job_row(one) for one in reports], foot)


def _job_row(report: JobReport) -> Sequence[Cell]:
    state, totals, standing = report.state, report.more.totals, find_standing(report)
    identity, left, total = state.identity, find_left(report), find_total(report)
    share = 1 - min(left, total) / total if left is not None and total else None
    predicted = " (predicted)" if report.more.predicted else ""
    error = state.failure.reason.strip() if state.failure else ""
    cut = f"{error[:_LONGEST_ERROR]}…" if len(error) > _LONGEST_ERROR else error
    (unit,) = find_downtimes([report])
    compared = (
        Cell("the same", Tone.GOOD, tell_comparison(state.phases.verify)) if state.phases.verify else Cell("not yet")
    )
    if state.phases.verify_failed and not state.phases.verify:
        compared = Cell("different", Tone.BAD)
    return (
        Cell(
            state.name,
            note=f"{tell_end(identity.src_host, identity.src)} → {tell_end(identity.dest_host, identity.dest)}",
            link=f"{state.name}.html",
        ),
        Cell(standing.word, standing.tone, cut),
        Cell(f"{_floor_percent(share)} %", share=share) if share is not None else Cell("not known"),
        Cell(format_bytes(left), note=time_left(report, left)) if left is not None else Cell("not known"),
        Cell(format_size(totals.bytes, totals.bytes_apparent), note=format_entries(totals.entries)),
        Cell(f"{format_bytes(totals.bytes_sent)}{predicted}"),
        Cell(f"{totals.files_deleted:,}{predicted}", Tone.CAUTION if totals.files_deleted else Tone.PLAIN),
        compared,
        Cell(format_duration(unit.expected) if unit.expected else ""),
        _real_downtime(unit, state),
    )


def _real_downtime(unit: Downtimes, state: MigrationState) -> Cell:
    if state.stopped and state.stopped_at:
        return Cell("stopped", Tone.BAD, f"since {shown_time(state.stopped_at)}")
    return _measured_downtime(unit, "")


def _measured_downtime(unit: Downtimes, unless: str) -> Cell:
    if unit.unmeasured:
        return Cell("not measured", note=unit.unmeasured)
    return Cell(f"{format_duration(unit.real)}{' (rehearsal)' if unit.is_rehearsal else ''}" if unit.real else unless)


def _floor_percent(share: float) -> int:
    return int(100 * share + 1e-9)  # 100 % means all


def _downtime_blocks(units: Sequence[Downtimes]) -> list[PageBlock]:
    titles = ("Group or job", "Servers", "Expected", "Real", "From", "To", "Why so long")
    columns = [Column(title, is_number=title in ("Expected", "Real")) for title in titles]
    known = [one for one in units if one.expected or one.real or one.unmeasured]
    rows = [
        (
            Cell(
                one.name, note=list_some([member.state.name for member in one.reports]) if len(one.reports) > 1 else ""
            ),
            Cell(name_some(sorted({member.state.identity.src_host for member in one.reports}))),
            Cell(format_duration(one.expected) if one.expected else ""),
            _measured_downtime(one, "not yet"),
            Cell(shown_time(one.begin)),
            Cell(shown_time(one.end)),
            Cell(max((member.more.forecast for member in one.reports), key=lambda found: found.seconds).why),
        )
        for one in known
    ]
    drawn = [timeline for one in known[:_MOST_UNITS] for timeline in downtime_charts(one)]
    blocks: list[PageBlock] = [
        Table("From the first hook that stops a source until a host serves again", columns, rows)
    ]
    return [*blocks, ChartRow(drawn)] if drawn else blocks


def _details(reports: Sequence[JobReport]) -> Section:
    shown = reports[:_MOST_DETAILS]
    intro = "Each job with its passes, hooks and comparison."
    if len(reports) > len(shown):
        intro += f" These are the first {len(shown)} of {len(reports)}; each has a page of its own, see the table."
    return Section("Jobs in detail", [_detail(one) for one in shown], intro)


def _detail(report: JobReport) -> Detail:
    standing, identity = find_standing(report), report.state.identity
    where = f"{tell_end(identity.src_host, identity.src)} → {tell_end(identity.dest_host, identity.dest)}"
    return Detail(report.state.name, job_blocks(report), standing.tone, standing.word, where)
