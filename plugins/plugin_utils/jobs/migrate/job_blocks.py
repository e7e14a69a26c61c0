# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A migration job on a page: its charts, passes, hooks, comparison, deletions and owners. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import format_bytes, format_duration, format_size, seconds_of, shown_time
from ...report.model import (
    Cell,
    Chart,
    ChartRow,
    Column,
    Fact,
    FactList,
    NoticeList,
    PageBlock,
    Table,
    Tone,
)
from ..hook_steps import HookRun
from .history import MOST_DELETED, history_of
from .prediction_check import PredictionCheck
from .report_charts import changed_charts, charts_over_time, downtime_charts
from .report_facts import (
    JobReport,
    count_changed,
    find_downtimes,
    find_notices,
    find_passes,
    find_prediction,
    tell_comparison,
    tell_end,
    tell_same,
)
from .state import ComparisonResult, MigrationState, PassHistory, TransferSummary

_MOST_ROWS = 100  # of hooks and differences of a job


def job_blocks(report: JobReport, with_notices: bool = True) -> list[PageBlock]:
    state, more = report.state, report.more
    identity, run = state.identity, state.last_work
    last = state.passes[-1] if state.passes else more.predicted
    facts = [
        Fact("From", tell_end(identity.src_host, identity.src)),
        Fact("To", tell_end(identity.dest_host, identity.dest)),
        Fact("Last run", shown_time(run.at), f"by {run.by}, up to phase {run.phase}{_tell_idle_run(state)}"),
        Fact("Method", last.method if last else "not known yet", last.method_reason if last else ""),
        Fact("Encrypted", {True: "yes", False: "no", None: "not known"}[last.encrypted if last else None]),
        Fact("Next", more.next),
    ]
    if state.switch is not None and state.switch.done:
        by = f"by {state.switch.by}" if state.switch.by else ""
        facts.append(Fact("Switched over", shown_time(state.switch.at), by))
    if state.stopped and state.stopped_at:
        since = f"{identity.src_host} is stopped since {shown_time(state.stopped_at)}"
        facts.append(Fact("Downtime", since, tone=Tone.BAD))
    for one in state.downtimes:
        took = format_duration((seconds_of(one.to) or 0) - (seconds_of(one.since) or 0))
        rehearsal = " (rehearsal)" if one.rehearsal else ""
        when = f"{shown_time(one.since)} to {shown_time(one.to)}, then served by {one.serves}"
        facts.append(Fact("Downtime", f"{took}{rehearsal}", when))
    if more.forecast.seconds:
        facts.append(Fact("Downtime to expect", f"about {more.forecast.lasted}", more.forecast.why))
    blocks: list[PageBlock] = [FactList(facts)]
    notices = find_notices(report) if with_notices else []
    blocks += [NoticeList("", notices)] if notices else []
    charts: list[Chart] = [
        *charts_over_time([report]),
        *changed_charts(state),
        *downtime_charts(find_downtimes([report])[0]),
    ]
    blocks += [ChartRow(charts)] if charts else []
    blocks += _pass_tables(state)
    blocks += [_prediction_table(more.benchmark)] if more.benchmark else []
    blocks += [_hook_table(state.hooks)] if state.hooks else []
    compared = state.phases.verify or state.phases.verify_failed
    blocks += proof_blocks(compared) if compared else [FactList([Fact("Comparison", "not made yet")])]
    blocks += _deletions(history_of(state))
    return [*blocks, *_owners(last)]


def _tell_idle_run(state: MigrationState) -> str:
    """Return what to tell of the last run if it had nothing to do."""
    run = state.run
    return f"; the run of {run.by} on {shown_time(run.at)} had nothing to do" if run.at > state.last_work.at else ""


def _pass_tables(state: MigrationState) -> list[Table]:
    made, count = find_passes(state), history_of(state).count
    passes = [*find_prediction(state), *made]
    if not passes:
        return []
    numbers = ("Entries", "Changed", "Deleted", "Changed meanwhile", "Size", "Sent", "Took", "Rate")
    columns = [Column(title, is_number=title in numbers) for title in ("Pass", "Ended", "Method", *numbers)]
    rows = [
        (
            Cell(name),
            Cell(one.at.replace("T", " ").replace("Z", "")),
            Cell(one.method, note="" if one.encrypted or one.encrypted is None else "not encrypted"),
            Cell(f"{one.files_total:,}"),
            Cell(f"{count_changed(one):,}"),
            Cell(f"{one.files_deleted:,}"),
            Cell(f"{one.changed_meanwhile.count:,}", note=one.changed_meanwhile.example),
            Cell(format_size(one.bytes_total, one.bytes_apparent)),
            Cell(format_bytes(one.bytes_sent)),
            Cell(format_duration(one.duration)),
            Cell(f"{format_bytes(one.throughput)}/s" if one.throughput else ""),
        )
        for name, one in passes
    ]
    title = f"Passes of all runs ({len(made)} of {count:,})" if count > len(made) else "Passes of all runs"
    return [Table(title, columns, rows)]


def _prediction_table(checks: Sequence[PredictionCheck]) -> Table:
    """Return what a benchmark predicted beside what it really took."""
    columns = [Column("What"), *(Column(title, is_number=True) for title in ("Predicted", "Range", "Real", "Apart"))]
    rows = []
    for one in checks:
        row = [Cell(one.what), Cell(format_duration(one.predicted))]
        row.append(Cell(f"{format_duration(one.low)} to {format_duration(one.high)}"))
        if one.real is None:
            row += [Cell("not made yet"), Cell("")]
        else:
            is_inside = one.low <= one.real <= one.high
            note = "within the range" if is_inside else "outside of the range"
            apart = f"{(one.real - one.predicted) / one.predicted:+.0%}"
            row += [Cell(format_duration(one.real)), Cell(apart, Tone.GOOD if is_inside else Tone.CAUTION, note)]
        rows.append(tuple(row))
    return Table("Predictions of the benchmark against reality", columns, rows)


def _hook_table(hooks: Sequence[HookRun]) -> Table:
    """Return all attempts of hooks."""
    columns = [Column(title) for title in ("Hook", "List", "Host", "Attempt", "Began", "Took", "Result")]
    attempts: dict[tuple[str, str, str], int] = {}
    rows = []
    for one in hooks:
        key = (one.kind, one.host, one.name)
        attempts[key] = attempts.get(key, 0) + 1
        code = "" if one.rc is None else f" (rc {one.rc})"
        tone = {"done": Tone.GOOD, "failed": Tone.BAD}.get(one.result, Tone.CAUTION)
        took = format_duration(max(0.0, one.ended - one.began)) if one.ended else ""
        rows.append(
            (
                Cell(one.name, note="" if one.hidden or one.what == one.name else one.what),
                Cell(one.kind),
                Cell(one.host),
                Cell(str(attempts[key])),
                Cell(shown_time(one.at)),
                Cell(took),
                Cell(f"{one.result or 'not ended'}{code}", tone),
            )
        )
    return Table("Hooks, each attempt", columns, rows[-_MOST_ROWS:])


def proof_blocks(found: ComparisonResult) -> list[PageBlock]:
    """Return a comparison of both trees: what was counted on both sides, and the first differences."""
    verdict = (
        f"{found.source.entries:,} of {tell_same(found.source.entries)}"
        if found.identical
        else f"the trees differ in {counted(found.differences_total, 'place', 'places')}"
    )
    tone = Tone.GOOD if found.identical else Tone.BAD
    facts = FactList(
        [
            Fact(
                "Comparison",
                verdict,
                f"{tell_comparison(found)}, {shown_time(found.at)}, in {format_duration(found.duration)}",
                tone,
            )
        ]
    )
    kinds = sorted({*found.source.types, *found.dest.types})
    columns = [Column("Tree"), *(Column(title, is_number=True) for title in ("Entries", "Bytes", *map(_kind, kinds)))]
    sides = (("source", found.source), ("destination", found.dest))
    has_digests = bool(found.source.digest and found.dest.digest)
    columns += [Column("Digest")] if has_digests else []
    rows = [
        (
            Cell(side),
            Cell(f"{one.entries:,}"),
            Cell(f"{one.bytes:,}"),
            *(Cell(f"{one.types.get(kind, 0):,}") for kind in kinds),
            *([Cell(one.digest, code=True)] if has_digests else []),
        )
        for side, one in sides
    ]
    blocks: list[PageBlock] = [facts, Table("Both trees as they were compared", columns, rows)]
    if found.differences:
        columns = [Column(title) for title in ("Path", "Difference", "In")]
        more = f"Differences ({min(len(found.differences), _MOST_ROWS)} of {found.differences_total})"
        shown = [
            (Cell(str(one.get("path", "")), code=True), Cell(str(one.get("kind", "")), Tone.BAD), Cell(_fields(one)))
            for one in found.differences[:_MOST_ROWS]
        ]
        blocks.append(Table(more, columns, shown))
    return blocks


def _kind(letter: str) -> str:
    return {"f": "Files", "d": "Folders", "l": "Links"}.get(letter, letter)


def _fields(one: Mapping[str, object]) -> str:
    fields = one.get("fields")
    return ", ".join(map(str, fields)) if isinstance(fields, (list, tuple)) else ""


def _deletions(history: PassHistory) -> list[PageBlock]:
    """Return the newest deletions that are known by name, and how many there were in all runs."""
    named = [path for one in history.passes for path in one.deleted]
    rows = [(Cell(path, code=True),) for path in named[-MOST_DELETED:]]
    title = f"Deleted at the destination ({len(rows)} of {history.files_deleted:,})"
    return [Table(title, [Column("Path")], rows)] if rows else []


def _owners(last: TransferSummary | None) -> list[PageBlock]:
    """Return users and groups that are not the same on both hosts, as the last transfer found them."""
    found = last.owner_mismatches if last else None
    rows = [
        (
            Cell(f"{one.get('type', '')} {one.get('name') or one.get('id', '')}"),
            Cell(str(one.get("id", ""))),
            Cell(str(one.get("name_there") or "none")),
            Cell("none" if one.get("id_there") is None else str(one["id_there"])),
            Cell("number" if one.get("numeric_ids") else "name"),
            Cell(str(one.get("entries", ""))),
            Cell(str(one.get("path", "")), code=True),
        )
        for one in (found if isinstance(found, list) else [])[:_MOST_ROWS]
        if isinstance(one, Mapping)
    ]
    titles = ("Owner", "Number", "Name of the number there", "Number of the name there", "Kept by", "Entries", "First")
    columns = [Column(title, is_number=title == "Entries") for title in titles]
    return [Table("Owners that the hosts name or number otherwise", columns, rows)] if rows else []
