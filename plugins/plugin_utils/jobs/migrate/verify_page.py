# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on comparisons of the trees of jobs, as the playbook verify makes them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.typed_json import dump_dataclass
from ...common.units import format_bytes, format_duration, format_entries, shown_time
from ...report.model import (
    Bar,
    BarChart,
    Cell,
    ChartRow,
    Column,
    Detail,
    EarlierReport,
    Fact,
    Notice,
    Page,
    Section,
    Table,
    Tone,
    Unit,
    attention_fact,
)
from .job_blocks import proof_blocks
from .report_facts import RunFacts, tell_comparison, tell_end
from .state import ComparisonResult, comparison_of
from .verify import NEXT, places

_MOST_NOTICES = 5
_MOST_DETAILS = 50
_MOST_BARS = 20
_LONGEST_REASON = 200


class JobComparison(NamedTuple):
    """The trees of a job, and the comparison; None: it could not be made, and ``problem`` says why."""

    name: str
    source: str
    dest: str
    found: ComparisonResult | None
    problem: str = ""

    def dump(self) -> dict[str, object]:
        """Return it as the file for programs has it."""
        found = dump_dataclass(self.found) if self.found is not None else {}
        return {**self._asdict(), "found": found}


def read_comparisons(
    results: Sequence[tuple[str, Mapping[str, Any]]], jobs: Mapping[str, Mapping[str, Any]], now: str
) -> list[JobComparison]:
    """Return comparisons by what the module verify returned of each job; ``now`` is when they ended."""
    read = []
    for name, one in results:
        job = jobs[name]
        source, dest = (tell_end(str(job[f"{side}_host"]), str(job[side])) for side in ("src", "dest"))
        if "identical" in one:
            found = comparison_of(one, "checksum" if one.get("algorithm") else "size", now)
            read.append(JobComparison(name, source, dest, found))
        else:
            read.append(JobComparison(name, source, dest, None, str(one.get("msg") or "the comparison failed")))
    return read


def make_verify_page(
    compared: Sequence[JobComparison], run: RunFacts, began: str, earlier: Sequence[EarlierReport] = ()
) -> Page:
    """Return the page on the trees of all jobs, those that differ or could not be compared first."""
    ordered = sorted(compared, key=lambda one: (_rank(one), one.name))
    notices = [_notice(one) for one in ordered if _rank(one) < 2]
    same = len(compared) - len(notices)
    found = [one.found for one in compared if one.found is not None]
    entries, size = sum(one.source.entries for one in found), sum(one.source.bytes for one in found)
    how = sorted({tell_comparison(one) for one in found})
    facts = [
        Fact(
            "What was compared",
            f"{format_bytes(size)} in {format_entries(entries)}",
            counted(len(compared), "job", "jobs"),
        ),
        Fact("Began", shown_time(began)),
        Fact("Ended", shown_time(run.now)),
        Fact(
            "Verified",
            f"{same} of {counted(len(compared), 'job', 'jobs')} are the same",
            ", ".join(how),
            Tone.BAD if notices else Tone.GOOD,
        ),
        Fact("Run by", run.by or "not known"),
        attention_fact(len(notices), bool(notices), "job", "jobs"),
    ]
    details = [
        Detail(one.name, proof_blocks(one.found), *_standing(one), f"{one.source} → {one.dest}")
        for one in ordered[:_MOST_DETAILS]
        if one.found is not None
    ]
    sections = [Section("Jobs", [_job_table(ordered)])]
    if len(found) > 1:
        sections.append(Section("Time", [ChartRow([_duration_chart(compared)])]))
    if details:
        sections.append(Section("Proof", details, "What was counted on both sides, and the first differences."))
    verdict = f"{len(notices)} of {counted(len(compared), 'job', 'jobs')} are not the same or could not be compared."
    return Page(
        title="Comparison",
        verdict=verdict if notices else f"The trees of {counted(len(compared), 'job', 'jobs')} are the same.",
        tone=Tone.BAD if notices else Tone.GOOD,
        facts=facts,
        attention=notices[:_MOST_NOTICES],
        attention_left=max(0, len(notices) - _MOST_NOTICES),
        sections=sections,
        made_at=shown_time(run.now),
        made_by=run.by,
        earlier=earlier,
    )


def _rank(one: JobComparison) -> int:
    return 0 if one.found is None else 2 if one.found.identical else 1


def _standing(one: JobComparison) -> tuple[Tone, str]:
    if one.found is None:
        return Tone.BAD, "not compared"
    return (Tone.GOOD, "the same") if one.found.identical else (Tone.BAD, "different")


def _notice(one: JobComparison) -> Notice:
    if one.found is None:
        return Notice(f"{one.name} was not compared", one.problem, "Fix what is named, and run the same command again.")
    return Notice(f"{one.name} differs", f"The trees differ in {places(one.found.differences_total)}.", NEXT)


def _job_table(compared: Sequence[JobComparison]) -> Table:
    numbers = ("Entries at the source", "At the destination", "Size", "Differences", "Took")
    columns = [Column(title, is_number=title in numbers) for title in ("Job", "Result", "How", *numbers)]
    return Table("All jobs, those that differ first", columns, [_job_row(one) for one in compared])


def _job_row(one: JobComparison) -> Sequence[Cell]:
    tone, word = _standing(one)
    name = Cell(one.name, note=f"{one.source} → {one.dest}")
    found = one.found
    if found is None:
        return (name, Cell(word, tone, one.problem[:_LONGEST_REASON]), *(Cell("") for _column in range(6)))
    return (
        name,
        Cell(word, tone),
        Cell(tell_comparison(found)),
        Cell(f"{found.source.entries:,}"),
        Cell(f"{found.dest.entries:,}"),
        Cell(format_bytes(found.source.bytes)),
        Cell(f"{found.differences_total:,}", Tone.BAD if found.differences_total else Tone.PLAIN),
        Cell(format_duration(found.duration)),
    )


def _duration_chart(compared: Sequence[JobComparison]) -> BarChart:
    took = sorted(((one.found.duration, one.name) for one in compared if one.found is not None), reverse=True)
    bars = [Bar(name, seconds) for seconds, name in took[:_MOST_BARS]]
    summary = f"The longest was {bars[0].label}, {format_duration(bars[0].value)}."
    return BarChart("Time of each comparison", summary, Unit.SECONDS, bars)
