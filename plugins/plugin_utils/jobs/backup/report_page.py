# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on all backups as a page for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import format_bytes, format_duration, format_size, seconds_of, shown_time
from ...report.model import (
    Cell,
    Chart,
    ChartRow,
    Column,
    Curve,
    Detail,
    EarlierReport,
    Fact,
    FactList,
    LineChart,
    Notice,
    NoticeList,
    Page,
    PageBlock,
    Point,
    Section,
    Table,
    Tone,
    Unit,
    attention_fact,
)
from ..hook_steps import HookRun
from .capacity import (
    RepositoryStanding,
    capacity_fact,
    find_repositories,
    repository_blocks,
    repository_notices,
)
from .copies import CopyState
from .drill import DrillRecord, seconds_for_all, tell_all
from .health import ASIDE, FAILED, NEVER, OK, SICK, STALE, UNCOPIED, JobHealth, sentences
from .state import BackupRecord, PathTransfer, RunFigures

_DAY = 86400
_MOST_NOTICES = 5  # in the headline: the table has all
_MOST_DETAILS = 25  # jobs, the sick ones first; the file of each job has the rest
_MOST_ROWS = 100
_LONGEST_REASON = 200  # characters in the table of all jobs
_STATES = {
    FAILED: ("failed", Tone.BAD),
    ASIDE: ("set aside", Tone.CAUTION),
    STALE: ("stale", Tone.BAD),
    UNCOPIED: ("copy needs attention", Tone.BAD),
    NEVER: ("not run yet", Tone.PLAIN),
    OK: ("well", Tone.GOOD),
}


def make_overview(health: Sequence[JobHealth], now: str, by: str = "", earlier: Sequence[EarlierReport] = ()) -> Page:
    """Return the page on all backups."""
    ordered = sorted(health, key=lambda one: (list(_STATES).index(one.state), not one.busy, one.id))
    repositories = find_repositories(health)
    notices = [notice for one in ordered for notice in _notices(one)]
    notices += [notice for one in repositories for notice in repository_notices(one)]
    notices.sort(key=lambda one: one.tone is not Tone.BAD)
    sick = sum(one.state in SICK for one in health)
    sections = [Section("Jobs", [_job_table(ordered)])]
    if repositories:
        sections.append(Section("Repositories", repository_blocks(repositories)))
    copies = _copy_table(ordered)
    if copies.rows:
        sections.append(Section("Copies", [copies]))
    charts = _charts(health)
    if charts:
        sections.append(Section("Over time", [ChartRow(charts)]))
    if health:
        sections.append(_details(ordered))
    return Page(
        title="Backups",
        verdict=_verdict(health, sick),
        tone=Tone.BAD if sick else Tone.CAUTION if notices else Tone.GOOD,
        facts=_headline(health, repositories, by, len(notices)),
        attention=notices[:_MOST_NOTICES],
        attention_left=max(0, len(notices) - _MOST_NOTICES),
        sections=sections,
        made_at=shown_time(now),
        made_by=by,
        earlier=earlier,
    )


# The headline


def _verdict(health: Sequence[JobHealth], sick: int) -> str:
    if not health:
        return "There are no backups."
    count = Counter(_STATES[one.state][0] for one in health)
    words = [f"{count[word]} {word}" for word, _tone in _STATES.values() if count[word]]
    total = counted(len(health), "backup", "backups")
    return f"{sick} of {total} need attention: {', '.join(words)}." if sick else f"All is well with {total}."


def _headline(
    health: Sequence[JobHealth], repositories: Sequence[RepositoryStanding], by: str, attention: int
) -> list[Fact]:
    records = [one.record for one in health if one.record is not None]
    ends = sorted(one.ended for one in records if one.ended)
    newest = sorted(one.newest for one in records if one.newest)
    oldest = sorted(one.oldest for one in records if one.oldest)
    verified = sorted(one.verified for one in records if one.verified)
    size = sum(one.size or 0 for one in records)
    hosts = len({one.host for one in health})
    daily = [rate for one in records if (rate := new_bytes_a_day(one.history)) is not None]
    unverified = (
        "by content; the last check has read parts of the snapshots, and no snapshot was read completely yet"
        if any(one.check.get("files_read") for one in records)
        else "no check has read the contents of a snapshot yet"
    )
    return [
        Fact(
            "Size of the newest snapshots",
            format_bytes(size),
            f"with holes; {counted(len(health), 'backup', 'backups')} of {counted(hosts, 'host', 'hosts')}",
        ),
        Fact("Last run", shown_time(ends[-1]) if ends else "none yet", f"by {by}" if by else ""),
        Fact("Newest snapshots", _span(newest)),
        Fact("Oldest snapshot", shown_time(oldest[0]) if oldest else "not known"),
        Fact(
            "Last verified",
            f"{len(verified)} of {len(health)} completely",
            f"by content, {_span(verified)}" if verified else unverified,
        ),
        *_drill_headline([one.drill for one in records if one.drill is not None], len(health)),
        Fact("New data", f"{format_bytes(sum(daily))} a day" if daily else "not known yet"),
        capacity_fact(repositories),
        attention_fact(attention, any(one.state in SICK for one in health)),
    ]


def _drill_headline(drills: Sequence[DrillRecord], jobs: int) -> list[Fact]:
    """Return the fact about drills, none if there was no drill."""
    if not drills:
        return []
    failed = sum(not one.has_succeeded for one in drills)
    good = sorted(one.succeeded for one in drills if one.succeeded)
    times = [seconds for one in drills if (seconds := seconds_for_all(one)) is not None]
    longest = f"; the largest job would take about {format_duration(max(times))}" if times else ""
    return [
        Fact(
            "Restores practised",
            f"{len(good)} of {jobs}" + (f", {failed} failed" if failed else ""),
            f"{_span(good)}{longest}",
            Tone.BAD if failed else Tone.PLAIN,
        )
    ]


def _span(times: Sequence[str]) -> str:
    """Return the first and the last of sorted times in words."""
    if not times:
        return "none"
    return shown_time(times[-1]) if times[0] == times[-1] else f"{shown_time(times[0])} to {shown_time(times[-1])}"


def _notices(one: JobHealth) -> list[Notice]:
    record = one.record or BackupRecord(one.id)
    word, tone = _STATES[one.state]
    found = []
    if one.state in SICK:
        since = f" since {shown_time(record.failing_since)}" if record.failing_since and one.state == FAILED else ""
        found.append(Notice(f"{one.id}: {word}{since}", "\n".join(one.why), one.next, tone))
    if record.check and not record.check.get("sound", True):
        told = "A check found contents or names that are not as they were. See the output of that run."
        found.append(Notice(f"{one.id}: damaged", told))
    if one.busy:
        found.append(Notice(f"{one.id}: busy", one.busy, tone=Tone.CAUTION))
    return [*found, *(Notice(one.id, text, tone=Tone.CAUTION) for text in record.notes)]


# The table of all jobs


def _job_table(health: Sequence[JobHealth]) -> Table:
    numbers = ("Snapshots", "Size", "New a day", "Took")
    titles = ("Job", "State", "Newest snapshot", "Oldest", *numbers, "Last verified", "Failing since")
    columns = [Column(title, is_number=title in numbers) for title in titles]
    records = [one.record for one in health if one.record is not None]
    daily = [rate for one in records if (rate := new_bytes_a_day(one.history)) is not None]
    foot = (
        Cell(f"Sum of {len(health)}"),
        Cell(f"{sum(one.state in SICK for one in health)} sick"),
        Cell(""),
        Cell(""),
        Cell(f"{sum(one.snapshots or 0 for one in records):,}"),
        Cell(format_bytes(sum(one.size or 0 for one in records))),
        Cell(format_bytes(sum(daily)) if daily else ""),
        Cell(""),
        Cell(""),
        Cell(""),
    )
    return Table("All backups, the sick ones first", columns, [_job_row(one) for one in health], foot)


def _job_row(one: JobHealth) -> Sequence[Cell]:
    record = one.record or BackupRecord(one.id)
    word, tone = _STATES[one.state]
    why = sentences(one.why)
    cut = f"{why[:_LONGEST_REASON]}…" if len(why) > _LONGEST_REASON else why
    rate = new_bytes_a_day(record.history)
    return (
        Cell(one.id, note=f"in {one.repository['host']}:{one.repository['path']}"),
        Cell("busy" if one.busy else word, tone, cut or one.busy),
        Cell(shown_time(record.newest) or "none", Tone.BAD if one.is_stale else Tone.PLAIN, _age(one)),
        Cell(shown_time(record.oldest)),
        Cell("" if record.snapshots is None else f"{record.snapshots:,}"),
        Cell("" if record.size is None else format_bytes(record.size)),
        Cell("" if rate is None else format_bytes(rate)),
        Cell(format_duration(record.duration) if one.record else ""),
        Cell(shown_time(record.verified) or "never"),
        Cell(shown_time(record.failing_since), Tone.BAD if record.failing_since else Tone.PLAIN),
    )


def _age(one: JobHealth) -> str:
    if one.age is None:
        return ""
    limit = f", stale after {format_duration(one.stale_after)}" if one.stale_after else ""
    return f"{format_duration(one.age)} old{limit}"


def new_bytes_a_day(history: Sequence[RunFigures]) -> float | None:
    """Return the new bytes of snapshots in a day, without the first run, to which all is new. None: not known."""
    known = [(one.at, one.new_bytes) for one in history if one.new_bytes is not None]
    if len(known) < 2:
        return None
    length = (seconds_of(known[-1][0]) or 0) - (seconds_of(known[0][0]) or 0)
    return sum(count for _at, count in known[1:]) * _DAY / length if length >= _DAY / 4 else None


# Copies


def _copy_table(health: Sequence[JobHealth]) -> Table:
    """Return the table of all copies of snapshots in other repositories."""
    numbers = ("Snapshots", "Sent", "Repaired")
    titles = ("Job", "Copy", "State", "Newest snapshot", "Behind", *numbers, "Last verified", "Failing since")
    columns = [Column(title, is_number=title in numbers) for title in titles]
    rows = [_copy_row(one, copy) for one in health if one.record for copy in one.record.copies]
    return Table("Copies of snapshots in other repositories, as the last run of each job left them", columns, rows)


def _copy_row(one: JobHealth, copy: CopyState) -> Sequence[Cell]:
    cut = f"{copy.error[:_LONGEST_REASON]}…" if len(copy.error) > _LONGEST_REASON else copy.error
    lag = copy.lag_seconds
    return (
        Cell(one.id),
        Cell(copy.place),
        Cell("failing" if copy.error else "well", Tone.BAD if copy.error else Tone.GOOD, cut),
        Cell(shown_time(copy.newest) or "none"),
        Cell(
            "not known" if lag is None else format_duration(lag) if lag else "no", Tone.CAUTION if lag else Tone.PLAIN
        ),
        Cell("" if copy.snapshots is None else f"{copy.snapshots:,}"),
        Cell(format_bytes(copy.bytes_sent) if copy.copied else ""),
        Cell(f"{copy.repaired:,}" if copy.repaired else ""),
        Cell(shown_time(copy.verified) or "never"),
        Cell(shown_time(copy.failing_since), Tone.BAD if copy.failing_since else Tone.PLAIN),
    )


# Over time


def _charts(health: Sequence[JobHealth]) -> list[Chart]:
    days: dict[str, int] = {}
    for one in health:
        for figures in one.record.history[1:] if one.record else ():
            if figures.new_bytes is not None:
                day = figures.at[: len("2026-01-01")]
                days[day] = days.get(day, 0) + figures.new_bytes
    if len(days) < 2:
        return []
    points = [Point(seconds_of(f"{day}T00:00:00Z") or 0, days[day]) for day in sorted(days)]
    mean = sum(days.values()) / len(days)
    most = max(days.values())
    summary = f"{format_bytes(mean)} on average, {format_bytes(most)} at most, of all jobs together."
    return [LineChart("New data by day", summary, Unit.BYTES, [Curve("new", [points])])]


# A job in detail


def _details(health: Sequence[JobHealth]) -> Section:
    known = [one for one in health if one.record is not None]
    shown = known[:_MOST_DETAILS]
    intro = f" These are the first {len(shown)} of {len(known)}." if len(known) > len(shown) else ""
    return Section(
        "Jobs in detail", [_detail(one, one.record) for one in shown if one.record], f"The last run of each job.{intro}"
    )


def _detail(one: JobHealth, record: BackupRecord) -> Detail:
    word, tone = _STATES[one.state]
    figures = record.figures
    facts = [
        Fact("Last run", shown_time(record.at), f"in {format_duration(record.duration)}"),
        Fact("Snapshot", record.snapshot or "none was completed", "resumed" if record.resumed else ""),
        Fact("Entries", f"{figures['entries']:,}" if "entries" in figures else "not known"),
        Fact("New", format_bytes(figures["new_bytes"]) if "new_bytes" in figures else "not known"),
        Fact("Moved or renamed", f"{figures.get('moved', 0):,}"),
        Fact("Gone since the one before", f"{figures.get('gone', 0):,}"),
        _check_fact(record),
        *([_drill_fact(record.drill)] if record.drill is not None else []),
    ]
    blocks: list[PageBlock] = [FactList(facts)]
    notices = _notices(one)
    blocks += [NoticeList("", notices)] if notices else []
    charts = _job_charts(record)
    blocks += [ChartRow(charts)] if charts else []
    blocks += [_transfer_table(record.transfers)] if record.transfers else []
    blocks += [_hook_table(record.hooks)] if record.hooks else []
    blocks += [_kept_table(record)] if record.kept or record.removed else []
    return Detail(one.id, blocks, tone, word, f"in {one.repository['host']}:{one.repository['path']}")


def _check_fact(record: BackupRecord) -> Fact:
    check = record.check
    if not check:
        verified = f"last verified {shown_time(record.verified)}" if record.verified else ""
        return Fact("Checked in this run", "no", verified)
    read = check.get("files_read")
    note = f"{read:,} {'file' if read == 1 else 'files'} read" if isinstance(read, int) else ""
    parts, of = check.get("parts"), check.get("of")
    if note and isinstance(parts, list) and isinstance(of, int) and len(parts) < of:
        note += f", {counted(len(parts), 'part', 'parts')} of {of}"
    repaired = check.get("repaired")
    if isinstance(repaired, int) and repaired:
        note += f"{', ' if note else ''}{repaired:,} damaged {'file' if repaired == 1 else 'files'} repaired"
    sound = bool(check.get("sound"))
    return Fact("Checked in this run", "sound" if sound else "damaged", note, Tone.GOOD if sound else Tone.BAD)


def _drill_fact(drill: DrillRecord) -> Fact:
    if not drill.has_succeeded:
        since = f", the last good one {shown_time(drill.succeeded)}" if drill.succeeded else ", none succeeded yet"
        return Fact("Restore drill", f"failed {shown_time(drill.at)}", f"{drill.failure}{since}", Tone.BAD)
    rate = f" at {format_bytes(drill.bytes_per_second)}/s" if drill.bytes_per_second else ""
    took = f"{counted(drill.files, 'file', 'files')}, {format_bytes(drill.bytes)}{rate}, to {drill.host}"
    seconds = seconds_for_all(drill)
    everything = f"; {tell_all(drill, seconds)}" if seconds is not None else ""
    return Fact("Restore drill", f"good {shown_time(drill.at)}", f"{took}{everything}", Tone.GOOD)


def _job_charts(record: BackupRecord) -> list[Chart]:
    """Return the charts of the runs that are kept."""
    charts: list[Chart] = []
    for title, unit, values in (
        ("New data of each run", Unit.BYTES, [(one.at, one.new_bytes) for one in record.history]),
        ("Size of the snapshots", Unit.BYTES, [(one.at, one.size) for one in record.history]),
        ("Time of each run", Unit.SECONDS, [(one.at, one.duration) for one in record.history]),
    ):
        points = [Point(seconds_of(at) or 0, float(value)) for at, value in values if value is not None]
        if len(points) > 1:
            summary = (
                f"{unit.format(points[-1].value)} at last, {unit.format(max(one.value for one in points))} at most."
            )
            charts.append(LineChart(title, summary, unit, [Curve(title, [points])]))
    return charts


def _transfer_table(transfers: Sequence[PathTransfer]) -> Table:
    numbers = ("Entries", "Size", "Sent", "Took", "Rate")
    columns = [Column(title, is_number=title in numbers) for title in ("Path", "Method", *numbers, "Compared")]
    rows = [
        (
            Cell(one.src, code=True),
            Cell(one.method, note="" if one.encrypted or one.encrypted is None else "not encrypted"),
            Cell(f"{one.files_total:,}", note=_told_entries(one)),
            Cell(format_size(one.bytes_total, one.bytes_apparent)),
            Cell(format_bytes(one.bytes_sent)),
            Cell("" if one.duration is None else format_duration(one.duration)),
            Cell(f"{format_bytes(one.throughput)}/s" if one.throughput else ""),
            Cell({"checksum": "by content", "size": "by size"}.get(one.verified or "", "no")),
        )
        for one in transfers[:_MOST_ROWS]
    ]
    return Table("Transfers", columns, rows)


def _told_entries(one: PathTransfer) -> str:
    """Return what a report notes beside the count of entries."""
    left_out = f"{counted(one.left_out, 'directory', 'directories')} left out" if one.left_out else ""
    return ", ".join(filter(None, (left_out, f"{one.vanished:,} vanished" if one.vanished else "")))


def _hook_table(hooks: Sequence[HookRun]) -> Table:
    columns = [Column(title) for title in ("Hook", "List", "Host", "Took", "Result")]
    rows = [
        (
            Cell(one.name, note="" if one.hidden or one.what == one.name else one.what),
            Cell(one.kind),
            Cell(one.host),
            Cell(format_duration(max(0.0, one.ended - one.began)) if one.ended else ""),
            Cell(
                f"{one.result or 'not ended'}{'' if one.rc is None else f' (rc {one.rc})'}",
                {"done": Tone.GOOD, "failed": Tone.BAD}.get(one.result, Tone.CAUTION),
            ),
        )
        for one in hooks[-_MOST_ROWS:]
    ]
    return Table("Hooks", columns, rows)


def _kept_table(record: BackupRecord) -> Table:
    kept = [(Cell(name), Cell("kept"), Cell(", ".join(rules))) for name, rules in sorted(record.kept.items())]
    removed = [(Cell(name), Cell("removed", Tone.CAUTION), Cell("")) for name in record.removed]
    rows = [*removed, *reversed(kept)]
    shown = f" ({_MOST_ROWS} of {len(rows)})" if len(rows) > _MOST_ROWS else ""
    columns = [Column(title) for title in ("Snapshot", "Decision", "By the rules")]
    return Table(f"Snapshots by the policy{shown}", columns, rows[:_MOST_ROWS])
