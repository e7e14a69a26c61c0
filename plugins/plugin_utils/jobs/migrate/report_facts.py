# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts of reports of migrations: what each job and each downtime came to, and the headline of a page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.host_text import one_line
from ...common.typed_json import EMPTY, parse_dataclass
from ...common.units import format_bytes, format_duration, format_entries, seconds_of, shown_time
from ...report.model import (
    Fact,
    Notice,
    Tone,
    attention_fact,
)
from .history import history_of, make_record_of_pass
from .prediction_check import PredictionCheck
from .samples import bytes_left, latest_rate
from .state import (
    ComparisonResult,
    Downtime,
    MigrationState,
    PassKind,
    PassRecord,
    Stage,
    TransferSummary,
    parse_state,
)

_NAMES = {PassKind.SEED: "first copy", PassKind.REHEARSAL: "rehearsal", PassKind.CUTOVER: "final pass"}


@dataclass
class ExpectedDowntime:
    """How long the source will be stopped, as far as known."""

    seconds: float = 0.0
    lasted: str = ""
    why: str = ""


@dataclass
class JobTotals:
    """The sums of all transfers of a job."""

    entries: int = 0
    bytes: int = 0
    bytes_apparent: int = 0
    bytes_sent: int = 0
    files_deleted: int = 0


@dataclass
class ReportMembers:
    """The members of a job's report beside its state."""

    next: str = ""
    check_mode: bool = False
    predicted: TransferSummary | None = field(default=None, metadata=EMPTY)
    deletions: str = ""
    forecast: ExpectedDowntime = field(default_factory=ExpectedDowntime)
    totals: JobTotals = field(default_factory=JobTotals)
    benchmark: list[PredictionCheck] = field(default_factory=list)  # of the same trees


class JobReport(NamedTuple):
    """The report of a job, as its JSON file has it."""

    state: MigrationState
    more: ReportMembers


class RunFacts(NamedTuple):
    """The run that makes a report."""

    now: str  # UTC
    by: str
    phase: str = ""


class Downtimes(NamedTuple):
    """The downtime of a group, or of a job that switches over alone."""

    name: str
    reports: Sequence[JobReport]
    expected: float  # seconds; 0: not known yet
    real: float  # 0: it was not stopped yet
    begin: str
    end: str
    is_rehearsal: bool
    unmeasured: str = ""  # why nothing is known of the downtime of a switch


class JobStanding(NamedTuple):
    """Where a job stands, in a word."""

    word: str
    tone: Tone
    rank: int  # the sick ones first


class JobPass(NamedTuple):
    name: str
    made: PassRecord


def parse_report(value: object) -> JobReport:
    """Return the report that a file holds, of this version or the one before. Raises WrongShape."""
    return JobReport(parse_state(value), parse_dataclass(ReportMembers, value, "the report"))


def parse_reports(values: Iterable[Mapping[str, object]]) -> tuple[list[JobReport], list[str]]:
    """Return the reports that can be read, and a warning for each other one."""
    reports, warnings = [], []
    for value in values:
        try:
            reports.append(parse_report(value))
        except ValueError as error:
            name, reason = one_line(str(value.get("name"))), one_line(str(error))
            warnings.append(
                f"The report on all jobs leaves out job {name}, since {name}.json cannot be read: {reason}. The next "
                "run of the job writes it again"
            )
    return reports, warnings


def find_standing(report: JobReport) -> JobStanding:
    state = report.state
    if state.failure is not None:
        return JobStanding(f"stopped in {state.failure.phase}", Tone.BAD, 0)
    if state.stage is Stage.SWITCHING:
        return JobStanding("switch begun, not ended", Tone.BAD, 0)
    if state.stage is Stage.STOPPED:
        return JobStanding("source stopped", Tone.CAUTION, 1)
    if state.stage is Stage.SWITCHED:
        compared = state.is_compared or state.run.verify == "none"
        return (
            JobStanding("switched over", Tone.GOOD, 4)
            if compared
            else JobStanding("switched over, not compared", Tone.CAUTION, 2)
        )
    phases = state.phases
    if state.is_back and phases.sync is not None:
        return JobStanding("copied back", Tone.GOOD, 4)
    for made, word in (
        (phases.rehearsal, "rehearsed"),
        (phases.sync, "up to date"),
        (phases.seed, "first copy made"),
        (phases.preflight, "preflight passed"),
    ):
        if made is not None:
            return JobStanding(word, Tone.PLAIN, 3)
    return JobStanding("not begun", Tone.PLAIN, 3)


def find_notices(report: JobReport) -> list[Notice]:
    """Return what a person must know of a job, the worst first."""
    state, more = report.state, report.more
    found = []
    if state.failure is not None:
        subject = f"{state.name} stopped in phase {state.failure.phase} ({shown_time(state.failure.at)})"
        found.append(Notice(subject, state.failure.reason, more.next))
    elif state.stage is Stage.SWITCHING or state.stopped:
        found.append(Notice(f"{state.name}: {find_standing(report).word}", more.next))
    if more.deletions:
        found.append(Notice(f"{state.name} deletes", more.deletions, tone=Tone.CAUTION))
    told = [warning for warning in (*state.run.notes, *state.warnings) if warning != more.deletions]
    return [*found, *(Notice(state.name, text, tone=Tone.CAUTION) for text in dict.fromkeys(told))]


def find_left(report: JobReport) -> int | None:
    """Return the bytes that a job has still to bring, as its last pass knew; None if that is not known."""
    state = report.state
    last = state.samples[-1] if state.samples else None
    rehearsal = state.phases.rehearsal
    ends = [*(one.at for one in state.passes), *([rehearsal.at] if rehearsal else [])]
    ended = max((seconds_of(at) or 0 for at in ends), default=0)
    if last is not None and last.at > ended:
        return bytes_left(state.samples)
    if state.is_seeded:
        return 0
    predicted = report.more.predicted or (state.phases.preflight.predicted if state.phases.preflight else None)
    return predicted.bytes_total if predicted else None


def time_left(report: JobReport, left: int | None) -> str:
    rate = latest_rate(report.state.samples) if left else None
    return f"{format_duration(left / rate)} at {format_bytes(rate)}/s" if left and rate else ""


def find_total(report: JobReport) -> int:
    samples, predicted = report.state.samples, report.more.predicted
    last = samples[-1].bytes_total if samples else 0
    return report.more.totals.bytes or last or (predicted.bytes_total if predicted else 0)


def find_passes(state: MigrationState) -> list[JobPass]:
    """Return the transfers of all runs of a job in their order, each with a name."""
    return [JobPass(_name_pass(one), one) for one in history_of(state).passes]


def find_prediction(state: MigrationState) -> list[JobPass]:
    """Return what the preflight predicted, if it did."""
    predicted = state.phases.preflight.predicted if state.phases.preflight else None
    return [JobPass("preflight (predicted)", make_record_of_pass(PassKind.SEED, predicted))] if predicted else []


def _name_pass(one: PassRecord) -> str:
    return f"{_NAMES.get(one.kind, f'pass {one.number}')}{' (failed)' if one.failed else ''}"


def count_changed(one: PassRecord) -> int:
    return min(one.files_created + one.files_updated + one.attributes_changed, one.files_total)


def find_downtimes(reports: Sequence[JobReport]) -> list[Downtimes]:
    """Return the downtime of each group and of each job that switches over alone, in the order of the jobs."""
    units: dict[str, list[JobReport]] = {}
    for one in reports:
        if not one.state.is_back:
            group = one.state.group.name if one.state.group else ""
            units.setdefault(f"group {group}" if group else one.state.name, []).append(one)
    found = [_downtime_of(name, members) for name, members in units.items()]
    back = [one for one in reports if one.state.is_back]
    return found + [Downtimes(one.state.name, [one], 0.0, 0.0, "", "", False) for one in back]


def _downtime_of(name: str, reports: Sequence[JobReport]) -> Downtimes:
    expected = max((_expected_seconds(one) for one in reports), default=0.0)
    ended = [kept for one in reports if (kept := _last_downtime(one)) is not None]
    real = [one for one in ended if not one.rehearsal] or ended
    if not real:
        return Downtimes(name, reports, expected, 0.0, "", "", False, _why_unmeasured([one.state for one in reports]))
    begin, end = min(one.since for one in real), max(one.to for one in real)
    seconds = float((seconds_of(end) or 0) - (seconds_of(begin) or 0))
    return Downtimes(name, reports, expected, max(0.0, seconds), begin, end, bool(real[-1].rehearsal))


def _why_unmeasured(states: Sequence[MigrationState]) -> str:
    """Return why no downtime of a switch was measured; empty if jobs were not switched over."""
    switches = [one.switch for one in states if one.switch is not None and one.switch.done]
    if len(switches) < len(states):
        return ""
    ran = any(one.hooks for one in states) or any(one.steps for one in switches)
    return "no hook stopped the source" if ran else "no hook stopped or started anything"


def _last_downtime(report: JobReport) -> Downtime | None:
    """Return the downtime of the switch, else that of the last rehearsal; a cutover that failed before has none."""
    switch = report.state.switch
    is_switched = switch is not None and switch.done
    found = [one for one in report.state.downtimes if one.rehearsal or is_switched]
    real = [one for one in found if not one.rehearsal] or found
    return max(real, key=lambda one: one.since, default=None)


def _expected_seconds(report: JobReport) -> float:
    """Return the forecast of the downtime; after the cutover the one with which that began. 0: not known."""
    kept = report.state.cutover_forecast
    return report.more.forecast.seconds or (kept.seconds if kept is not None else None) or 0.0


def make_headline(
    reports: Sequence[JobReport], units: Sequence[Downtimes], run: RunFacts, attention: int
) -> list[Fact]:
    moved = [one for one in reports if not one.state.is_back]
    totals = [one.more.totals for one in moved]
    ends = [sorted({getattr(one.state.identity, side) for one in moved}) for side in ("src_host", "dest_host")]
    entries, size, sent = (sum(getattr(one, name) for one in totals) for name in ("entries", "bytes", "bytes_sent"))
    begin, end = _period(reports)
    return [
        Fact(
            "What moved",
            f"{format_bytes(size)} in {format_entries(entries)}",
            f"{counted(len(moved), 'job', 'jobs')}, from {name_some(ends[0])} to {name_some(ends[1])}; "
            f"{format_bytes(sent)} sent",
        ),
        Fact("Began", shown_time(begin) or "not begun"),
        Fact("Ended", shown_time(end) or "not begun"),
        _downtime_fact(units),
        _verified_fact(moved),
        _run_fact(reports, run),
        attention_fact(attention, any(one.state.failure for one in reports)),
    ]


def _run_fact(reports: Sequence[JobReport], run: RunFacts) -> Fact:
    """Return who made the last run that had something to do, and who switched over, if that was another run."""
    works = [one.state.last_work for one in reports if one.state.last_work.at]
    last = max(works, key=lambda one: one.at, default=None)
    by, phase = (last.by, last.phase) if last else (run.by, run.phase)
    switches = [one.state.switch for one in reports if one.state.switch is not None and one.state.switch.done]
    others = sorted({one.by for one in switches if one.by} - {by})
    notes = [f"up to phase {phase}"] if phase else []
    return Fact(
        "Run by", by or "not known", "; ".join([*notes, *([f"switched over by {list_some(others)}"] if others else [])])
    )


def _downtime_fact(units: Sequence[Downtimes]) -> Fact:
    real = [one for one in units if one.real and not one.is_rehearsal]
    expected = [one for one in units if one.expected and not one.unmeasured]
    if real:
        longest = max(real, key=lambda one: one.real)
        shown = [f"{one.name} {format_duration(one.real)}" for one in sorted(real, key=lambda one: -one.real)]
        return Fact("Downtime", f"{format_duration(longest.real)} at most", list_some(shown))
    if expected:
        longest = max(expected, key=lambda one: one.expected)
        shown = [
            f"{one.name} {format_duration(one.expected)}" for one in sorted(expected, key=lambda one: -one.expected)
        ]
        return Fact("Downtime to expect", f"about {format_duration(longest.expected)}", list_some(shown))
    unmeasured = sorted({one.unmeasured for one in units if one.unmeasured})
    if unmeasured:
        return Fact("Downtime", "not measured", "; ".join(unmeasured))
    return Fact("Downtime", "none yet", "how long it will be is not known yet")


def _verified_fact(reports: Sequence[JobReport]) -> Fact:
    found = [one.state.phases.verify for one in reports if one.state.phases.verify is not None]
    how = sorted({tell_comparison(one) for one in found})
    entries = sum(one.source.entries for one in found)
    if not found:
        return Fact("Verified", f"0 of {counted(len(reports), 'job', 'jobs')}", "the trees were not compared yet")
    return Fact(
        "Verified",
        f"{len(found)} of {counted(len(reports), 'job', 'jobs')}",
        f"{', '.join(how)}; {entries:,} of {tell_same(entries)}",
        Tone.GOOD if len(found) == len(reports) else Tone.PLAIN,
    )


def tell_comparison(found: ComparisonResult) -> str:
    return (
        f"by content ({found.algorithm}) and attributes" if found.compared == "checksum" else "by size and attributes"
    )


def tell_same(entries: int) -> str:
    return f"{format_entries(entries)} {'is' if entries == 1 else 'are'} the same"


def _period(reports: Iterable[JobReport]) -> tuple[str, str]:
    """Return when the first transfer began and the last step ended; times as reports have them sort as texts."""
    begins: list[str] = []
    ends: list[str] = []
    for one in (report.state for report in reports):
        begins += [one.seeding.at] if one.seeding else [made.at for made in one.passes[:1]]
        switch = one.switch.at if one.switch else ""
        compared = one.phases.verify.at if one.phases.verify else ""
        ends += [text for text in (*(made.at for made in one.passes), switch, compared) if text]
    return min(begins, default=""), max(ends, default="")


def tell_end(host: str, path: str) -> str:
    return f"{host}:{path}"


def name_some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names) if len(names) <= most else f"{len(names)} hosts"


def list_some(texts: Sequence[str], most: int = 4) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
