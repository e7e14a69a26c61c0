# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The charts of reports of migrations: what was left over time, throughput, passes and downtimes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import both_times, format_bytes, format_duration, format_entries, seconds_of
from ...report.charts import thin
from ...report.model import (
    Bar,
    BarChart,
    Chart,
    Curve,
    LineChart,
    Point,
    Span,
    Timeline,
    Tone,
    Unit,
)
from ..hook_steps import HookRun
from .report_facts import Downtimes, JobReport, count_changed, find_passes
from .samples import ProgressSample, split_gaps, split_passes
from .state import AFTER, MigrationState

_MOST_CURVES = 4
_MOST_BARS = 20


def charts_over_time(reports: Sequence[JobReport]) -> list[Chart]:
    sampled = [one for one in reports if one.state.samples]
    if not sampled:
        return []
    several = len(sampled) > 1
    charts: list[Chart] = [
        *_left_chart("Bytes left, all jobs" if several else "Bytes left", Unit.BYTES, sampled),
        *_left_chart("Entries left, all jobs" if several else "Entries left", Unit.COUNT, sampled),
    ]
    sent = {one.state.name: one.more.totals.bytes_sent for one in sampled}
    busiest = sorted(sampled, key=lambda one: -sent[one.state.name])[:_MOST_CURVES]
    curves = [Curve(_pair(one), parts) for one in busiest if (parts := _rates(one.state.samples))]
    if curves:
        of = f", {len(busiest)} busiest of {len(sampled)} jobs" if len(sampled) > _MOST_CURVES else ""
        most = max(point.value for one in curves for part in one.parts for point in part)
        summary = f"At most {format_bytes(most)}/s. Where a line is interrupted, nothing was transferred or seen."
        limits = [(one, parts) for one in busiest if (parts := _limits(one.state.samples))]
        curves += [Curve(f"bwlimit of {one.state.name}", parts, is_forecast=True) for one, parts in limits]
        summary += " A broken line is the bwlimit of a job." if limits else ""
        charts.append(LineChart(f"Throughput{of}", summary, Unit.RATE, curves))
    return charts


def _pair(report: JobReport) -> str:
    identity = report.state.identity
    return f"{report.state.name} ({identity.src_host} → {identity.dest_host})"


def _rates(samples: Sequence[ProgressSample]) -> list[list[Point]]:
    """Return the bytes a second between each two samples, in parts without interruption."""
    parts = []
    for one in split_passes(samples):
        for part in split_gaps(one):
            rates = [
                Point(after.at, max(0, after.bytes_done - before.bytes_done) / (after.at - before.at))
                for before, after in zip(part, part[1:])
                if after.at > before.at
            ]
            parts += [rates] if rates else []
    return parts


def _limits(samples: Sequence[ProgressSample]) -> list[list[Point]]:
    """Return the bytes a second that were allowed at each sample, in parts in which there was a limit."""
    parts: list[list[Point]] = []
    was_limited = False
    for one in (one for made in split_passes(samples) for part in split_gaps(made) for one in part):
        if one.bwlimit:
            parts += [] if was_limited else [[]]
            parts[-1].append(Point(one.at, one.bwlimit))
        was_limited = bool(one.bwlimit)
    return [part for part in parts if len(part) > 1]


def _left_chart(title: str, unit: Unit, reports: Sequence[JobReport]) -> list[LineChart]:
    """Return what was left over time, of all jobs together, with the time at which nothing will be."""
    is_bytes = unit is Unit.BYTES
    if len(reports) == 1:
        passes = split_passes(reports[0].state.samples)
        parts = [points for one in passes if (points := _left_points(one, is_bytes))]
    else:
        whole = sum_over_time({one.state.name: _left_points(one.state.samples, is_bytes) for one in reports})
        parts = [whole] if whole else []
    if not parts:
        return []
    curves = [Curve("left", parts)]
    first, last, slope = parts[0][0], parts[-1][-1], _slope(parts[-1])
    summary = f"{unit.format(first.value)} at first, {unit.format(last.value)} at last."
    if last.value and slope < 0:
        end = Point(last.at - last.value / slope, 0.0)
        curves.append(Curve("forecast", [[last, end]], is_forecast=True))
        summary += f" At the rate of late nothing is left at {both_times(end.at)}."
    return [LineChart(title, summary, unit, curves)]


def _left_points(samples: Sequence[ProgressSample], is_bytes: bool) -> list[Point]:
    if is_bytes:
        return [Point(one.at, max(0, one.bytes_total - one.bytes_done)) for one in samples if one.bytes_total]
    return [Point(one.at, max(0, one.files_total - one.files_done)) for one in samples if one.files_total]


def _slope(points: Sequence[Point]) -> float:
    """Return by how much the last third of a line rises in a second."""
    part = points[-max(2, len(points) // 3) :]
    if len(part) < 2 or part[-1].at <= part[0].at:
        return 0.0
    return (part[-1].value - part[0].value) / (part[-1].at - part[0].at)


def sum_over_time(lines: Mapping[str, Sequence[Point]], most: int = 200) -> list[Point]:
    """Return the sum of lines at their times; each counts with the last value that it had, before it with the first."""
    events = sorted((point.at, name, point.value) for name, points in lines.items() for point in points)
    values = {name: points[0].value for name, points in lines.items() if points}
    total = sum(values.values())
    found: list[Point] = []
    for at, name, value in events:
        total += value - values[name]
        values[name] = value
        if found and found[-1].at == at:
            found.pop()
        found.append(Point(at, max(0.0, total)))
    return thin(found, most)


def changed_charts(state: MigrationState) -> list[BarChart]:
    """Return how much each of the newest passes sent: it converges if none sends more than the one before."""
    made = find_passes(state)[-_MOST_BARS:]
    if len(made) < 2:
        return []
    sent = [one.made.bytes_sent for one in made]
    converges = all(after <= before for before, after in zip(sent, sent[1:]))
    summary = "No pass sends more than the one before." if converges else "Some passes send more than the one before."
    bars = [
        Bar(
            one.name,
            one.made.bytes_sent,
            f"{format_entries(count_changed(one.made))} changed, {one.made.files_deleted:,} deleted, "
            f"{format_duration(one.made.duration)}",
        )
        for one in made
    ]
    return [BarChart("Sent by each pass", summary, Unit.BYTES, bars)]


def downtime_charts(unit: Downtimes) -> list[Timeline]:
    """Return the steps of a downtime one below the other; none if nothing was stopped."""
    several = len(unit.reports) > 1
    spans: list[Span] = []
    for one in unit.reports:
        state, before = one.state, f"{one.state.name}: " if several else ""
        first = seconds_of(state.cutover_at) if state.cutover_at else None
        if first is None:
            continue
        spans += [_hook_span(hook, before) for hook in state.hooks if hook.ended and hook.began >= first - 1]
        spans += _pass_spans(state, before)
    spans.sort(key=lambda span: (span.begin, span.end))
    if not spans:
        return []
    took = format_duration(max(span.end for span in spans) - spans[0].begin)
    summary = f"{counted(len(spans), 'step', 'steps')} in {took}, from {spans[0].label} to {spans[-1].label}."
    return [Timeline(f"{'Cutover' if unit.unmeasured else 'Downtime'} of {unit.name}", summary, spans)]


def _hook_span(hook: HookRun, before: str) -> Span:
    failed = hook.result == "failed"
    tone = Tone.BAD if failed else Tone.GOOD if hook.kind == AFTER else Tone.PLAIN
    note = f"hook of {hook.kind}, {hook.result or 'not ended'}"
    return Span(
        f"{before}{hook.name} on {hook.host}{' (failed)' if failed else ''}", hook.began, hook.ended or 0, tone, note
    )


def _pass_spans(state: MigrationState, before: str) -> list[Span]:
    """Return the final pass and the comparison of a cutover, or of a rehearsal if that is all there is."""
    phases = state.phases
    rehearsal = phases.rehearsal
    made = phases.cutover or (rehearsal.cutover if rehearsal else None)
    compared = phases.verify or phases.verify_failed or (rehearsal.verify if rehearsal else None)
    if made is None:
        return []
    end = float(seconds_of(made.at) or 0)
    is_apart = compared is not None and compared.at > made.at  # after the switch
    took = compared.duration if compared is not None and not is_apart else 0.0
    spans = [Span(f"{before}final pass", end - made.duration, max(end - made.duration, end - took), Tone.CAUTION)]
    if compared is not None:
        last = float(seconds_of(compared.at) or 0)
        note = "the same" if compared.identical else "different"
        tone = Tone.PLAIN if compared.identical else Tone.BAD
        spans.append(Span(f"{before}comparison", last - compared.duration, last, tone, note))
    return spans
