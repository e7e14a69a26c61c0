# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of an audit of all backups. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import format_duration, shown_time
from ...report.model import Cell, Column, EarlierReport, Fact, Notice, Page, PageBlock, Section, Table, Tone
from .audit import BackupAudit, ClockStanding, JobAudit, RuleStanding, SnapshotDecision
from .capacity import capacity_fact, repository_blocks, repository_notices
from .health import SICK

_MOST_NOTICES = 12
_MOST_NAMED = 8  # in one sentence
_MOST_ROWS = 500  # of a table but that of the jobs; the JSON has more
_HOUR = 3600.0
_PERIODS = {"hourly": "hours", "daily": "days", "weekly": "weeks", "monthly": "months", "yearly": "years"}
_ACTS = {
    "accepted": Tone.CAUTION,
    "discarded": Tone.CAUTION,
    "aside": Tone.CAUTION,
    "removed": Tone.BAD,
    "missed": Tone.BAD,
}


def make_audit_page(audit: BackupAudit, earlier: Sequence[EarlierReport] = ()) -> Page:
    """Return the page for an auditor."""
    notices = _find_notices(audit)
    is_bad = any(one.tone is Tone.BAD for one in notices)
    return Page(
        title="Audit of the backups",
        verdict=_verdict(audit, len(notices)),
        tone=Tone.BAD if is_bad else Tone.CAUTION if notices else Tone.GOOD,
        facts=_headline(audit),
        attention=notices[:_MOST_NOTICES],
        attention_left=max(0, len(notices) - _MOST_NOTICES),
        sections=[
            Section("Coverage", _coverage_blocks(audit)),
            Section("Policy and verification", [_job_table(audit)]),
            Section("Deleted, accepted, restored", [_decision_table(audit)], _intro(audit)),
            Section("Capacity", repository_blocks(audit.standings)),
            Section("Clocks", [_clock_table(audit.clocks)], "Against the clock of the control node."),
        ],
        made_at=shown_time(audit.at),
        made_by=audit.by,
        earlier=earlier,
    )


def tell_audit(audit: BackupAudit) -> list[str]:
    """Return the lines for the terminal: the verdict, and what needs attention."""
    notices = _find_notices(audit)
    return [_verdict(audit, len(notices)), *(f"- {one.subject}: {one.text}" for one in notices)]


def _verdict(audit: BackupAudit, attention: int) -> str:
    size = f"{counted(len(audit.jobs), 'backup', 'backups')} of {counted(audit.hosts, 'host', 'hosts')}"
    if audit.unread:
        return f"The audit is not complete: not all of {size} could be read."
    if attention:
        return f"{counted(attention, 'finding', 'findings')} in {size}."
    return f"Nothing was found to be wrong with {size}."


# The headline


def _headline(audit: BackupAudit) -> list[Fact]:
    jobs = audit.jobs
    whole = sum(bool(one.snapshots) and one.verified == one.snapshots for one in jobs)
    oldest = min((one.verified_oldest for one in jobs if one.verified_oldest), default=None)
    short = sum(one.is_short for one in jobs)
    off = [one for one in audit.clocks if one.is_off]
    wanted = audit.hosts - audit.exempt
    covered = wanted - len(audit.uncovered)
    return [
        Fact(
            "Hosts with a backup",
            f"{covered:,} of {wanted:,}",
            f"{counted(audit.exempt, 'other', 'others')} without need" if audit.exempt else "",
            Tone.CAUTION if audit.uncovered else Tone.GOOD,
        ),
        Fact(
            "Folders without a job",
            f"{len(audit.orphans):,}",
            f"beside {counted(len(jobs), 'job', 'jobs')}",
            Tone.CAUTION if audit.orphans else Tone.PLAIN,
        ),
        Fact(
            "Snapshots by policy",
            f"{len(jobs) - short:,} of {counted(len(jobs), 'job', 'jobs')}",
            "have what keep wants",
            Tone.CAUTION if short else Tone.GOOD,
        ),
        Fact(
            "Verified as a whole",
            f"{whole:,} of {counted(len(jobs), 'job', 'jobs')}",
            f"the longest ago {shown_time(oldest)}" if oldest else "no check has read all of a snapshot",
            Tone.GOOD if whole == len(jobs) else Tone.PLAIN,
        ),
        Fact(
            "Decisions of people",
            f"{audit.decisions_total:,}",
            f"the last {shown_time(audit.decisions[0].at)}" if audit.decisions else "",
        ),
        capacity_fact(audit.standings),
        Fact(
            "Clocks",
            f"{counted(len(off), 'clock is', 'clocks are')} off" if off else "all agree",
            f"{sum(one.offset is not None for one in audit.clocks):,} of {counted(len(audit.clocks), 'host', 'hosts')} "
            "asked",
            Tone.CAUTION if off else Tone.GOOD,
        ),
    ]


def _find_notices(audit: BackupAudit) -> list[Notice]:
    """Return what needs attention, one sentence for each kind, the worst first."""
    jobs = audit.jobs
    found = []

    def add(subject: str, those: Sequence[str], text: str, advice: str, tone: Tone = Tone.CAUTION) -> None:
        if those:
            found.append(Notice(f"{subject} ({len(those):,})", f"{text}: {_some(those)}", advice, tone))

    add(
        "Not read",
        audit.unread,
        "These could not be asked, or not read",
        "Fix what is named, and run the audit again.",
        Tone.BAD,
    )
    add(
        "Gone",
        [f"{one.id} {name}" for one in jobs for name in one.missing],
        "Snapshots that nothing of this collection removed are gone",
        "Find out who removed them. If it was meant, say so (longhaul.fleet.snapshot, action discard).",
        Tone.BAD,
    )
    add(
        "Damaged",
        [f"{one.id} ({counted(len(one.damaged), 'snapshot', 'snapshots')})" for one in jobs if one.damaged],
        "Checks found contents or attributes that are not as they were",
        "See the output of the check; the next backup takes from the source what that still has.",
        Tone.BAD,
    )
    add(
        "Failing",
        [f"{one.id} {SICK[one.state]}" for one in jobs if one.state in SICK],
        "Jobs need somebody to look",
        "The report of the last run says why.",
        Tone.BAD,
    )
    add(
        "Without a snapshot",
        [one.id for one in jobs if not one.unread and not one.snapshots],
        "Jobs have no complete snapshot in their repository",
        "Run them.",
        Tone.BAD,
    )
    add(
        "Copies that fail",
        [f"{one.id} to {copy.host}:{copy.path} ({copy.error})" for one in jobs for copy in one.copies if copy.error],
        "Copies in a second repository are not as they should be",
        "The report of the last run says since when. A check with copies repairs what is damaged (check_subset).",
        Tone.BAD,
    )
    add(
        "Restores that fail",
        [f"{one.id} ({one.drill.failure})" for one in jobs if one.drill is not None and one.drill.failure],
        "The last restore that was practised did not succeed",
        "The report of the last run has the details.",
        Tone.BAD,
    )
    add(
        "Hosts without a backup",
        audit.uncovered,
        "No job backs up these hosts of the inventory",
        "Add a job, or name those that need none in backup_audit_exempt.",
    )
    add(
        "Folders without a job",
        [f"{one.repository}/{one.host}/{one.job}" for one in audit.orphans],
        "No job keeps, prunes or checks these folders",
        "Add the job again, rename the folder, or remove it.",
    )
    add(
        "Fewer snapshots than wanted",
        [f"{one.id} ({', '.join(_rule(rule) for rule in one.rules if rule.is_short)})" for one in jobs if one.is_short],
        "In these jobs backups were left out, or snapshots were removed",
        "Find out in which periods there was none.",
    )
    add(
        "Never verified",
        [one.id for one in jobs if one.is_unverified],
        "No check has read contents of these jobs",
        "Set check_subset, such as 1/7.",
    )
    add(
        "Clocks",
        [f"{one.host} {_offset(one)}" for one in audit.clocks if one.is_off],
        "These are more than a minute off",
        "Let a time service set them: policies, reports and certificates go by the time.",
    )
    found += [notice for one in audit.standings for notice in repository_notices(one)]
    return sorted(found, key=lambda one: one.tone is not Tone.BAD)


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED:,} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more


# The sections


def _coverage_blocks(audit: BackupAudit) -> list[PageBlock]:
    hosts = [(Cell(host),) for host in audit.uncovered[:_MOST_ROWS]]
    folders = [
        (Cell(f"{one.host}/{one.job}"), Cell(one.repository), Cell(f"{one.snapshots:,}"), Cell(shown_time(one.newest)))
        for one in audit.orphans[:_MOST_ROWS]
    ]
    columns = [Column("Folder"), Column("Repository"), Column("Snapshots", is_number=True), Column("Newest")]
    return [
        Table(_caption("Hosts of the inventory without a job", hosts, audit.uncovered), [Column("Host")], hosts),
        Table(_caption("Folders in the repositories without a job", folders, audit.orphans), columns, folders),
    ]


def _caption(title: str, shown: Sequence[object], every: Sequence[object]) -> str:
    if not every:
        return f"{title}: none"
    return f"{title} ({len(every):,})" if len(shown) == len(every) else f"{title} ({len(shown):,} of {len(every):,})"


def _job_table(audit: BackupAudit) -> Table:
    more = {
        "Second copy": (_copy_cell, any(one.copies for one in audit.jobs)),
        "Last drill": (_drill_cell, any(one.drill is not None for one in audit.jobs)),
    }
    shown = {title: cell_of for title, (cell_of, is_used) in more.items() if is_used}
    titles = ("Job", "Newest", "Oldest", "Snapshots", "Policy: there of wanted", "Verified", "Pruned", *shown)
    columns = [Column(title, is_number=title == "Snapshots") for title in titles]
    ordered = sorted(audit.jobs, key=lambda one: (not one.missing, not one.damaged, not one.is_short, one.id))
    rows = [(*_job_row(one), *(cell_of(one) for cell_of in shown.values())) for one in ordered]
    return Table("All jobs, those with findings first", columns, rows)


def _job_row(one: JobAudit) -> Sequence[Cell]:
    job = Cell(one.id, note=f"in {one.repository}")
    if one.unread:
        return (job, Cell(one.unread, Tone.BAD), *(Cell("") for _column in range(5)))
    notes = [
        *([f"{counted(len(one.aside), 'is', 'are')} set aside"] if one.aside else []),
        *([f"{counted(len(one.missing), 'is', 'are')} gone"] if one.missing else []),
        *([f"{counted(len(one.damaged), 'is', 'are')} damaged"] if one.damaged else []),
        *([f"{counted(len(one.protected), 'is', 'are')} protected"] if one.protected else []),
    ]
    tone = Tone.BAD if one.missing or one.damaged or not one.snapshots else Tone.CAUTION if one.aside else Tone.PLAIN
    return (
        job,
        Cell(shown_time(one.newest) or "none", Tone.PLAIN if one.newest else Tone.BAD),
        Cell(shown_time(one.oldest)),
        Cell(f"{one.snapshots:,}", tone, ", ".join(notes)),
        Cell(", ".join(_rule(rule) for rule in one.rules), Tone.CAUTION if one.is_short else Tone.PLAIN),
        _verified_cell(one),
        Cell(f"{one.pruned:,}" if one.pruned else "", note=_pruned_note(one)),
    )


def _rule(one: RuleStanding) -> str:
    if one.rule == "within":
        return f"back {format_duration(one.there)} of {format_duration(one.wanted)}"
    return f"{one.there:,} of {one.wanted:,} {_PERIODS.get(one.rule, one.rule)}"


def _verified_cell(one: JobAudit) -> Cell:
    if not one.verified and not one.parts_read:
        return Cell("never" if one.snapshots else "", Tone.CAUTION if one.snapshots else Tone.PLAIN)
    newest = "all" if one.parts_read >= one.parts_of else f"{one.parts_read} of {one.parts_of} parts"
    span = (
        f"; whole ones {shown_time(one.verified_oldest)} to {shown_time(one.verified_newest)}" if one.verified else ""
    )
    share = one.verified / one.snapshots if one.snapshots else None
    text = f"{one.verified:,} of {one.snapshots:,} as a whole"
    return Cell(text, note=f"{newest} of the newest{span}", share=share)


def _copy_cell(one: JobAudit) -> Cell:
    """Return the newest snapshot of the copy that lags most."""
    if not one.copies:
        return Cell("none")
    worst = min(one.copies, key=lambda copy: (not copy.error, copy.newest or ""))
    lag = f"{format_duration(worst.lag_seconds)} behind" if worst.lag_seconds else ""
    note = ", ".join(filter(None, (f"in {worst.host}:{worst.path}", worst.error or lag)))
    return Cell(shown_time(worst.newest) or "nothing yet", Tone.BAD if worst.error else Tone.PLAIN, note)


def _drill_cell(one: JobAudit) -> Cell:
    if one.drill is None:
        return Cell("never")
    if one.drill.failure:
        return Cell("failed", Tone.BAD, f"{shown_time(one.drill.at)}: {one.drill.failure}")
    return Cell(shown_time(one.drill.succeeded or one.drill.at))


def _pruned_note(one: JobAudit) -> str:
    by = f" by {one.pruned_by}" if one.pruned_by else ""
    return f"last {shown_time(one.pruned_at)}{by}" if one.pruned_at else ""


def _intro(audit: BackupAudit) -> str:
    return (
        "What people did with snapshots, and what no run of this collection did, by the histories in the repositories. "
        "Whoever can write to a repository can write to its histories, too. The table above has what was pruned."
        if audit.decisions
        else "The histories in the repositories tell of nothing."
    )


def _decision_table(audit: BackupAudit) -> Table:
    titles = ("When", "What", "Snapshot", "Job", "By", "Why")
    rows = [_decision_row(one) for one in audit.decisions[:_MOST_ROWS]]
    shown = f" ({len(rows):,} of {audit.decisions_total:,})" if audit.decisions_total > len(rows) else ""
    return Table(f"The newest first{shown}", [Column(title) for title in titles], rows)


def _decision_row(one: SnapshotDecision) -> Sequence[Cell]:
    return (
        Cell(shown_time(one.at)),
        Cell(one.act, _ACTS.get(one.act, Tone.PLAIN)),
        Cell(one.name),
        Cell(one.job, note=f"in {one.repository}"),
        Cell(one.by or "not known"),
        Cell(one.why, note=f"before that {one.was}" if one.was else ""),
    )


def _clock_table(clocks: Sequence[ClockStanding]) -> Table:
    rows = [_clock_row(one) for one in clocks[:_MOST_ROWS]]
    columns = [Column("Host"), Column("Clock"), Column("Known to", is_number=True)]
    return Table(_caption("Hosts, those that are furthest off first", rows, clocks), columns, rows)


def _clock_row(one: ClockStanding) -> Sequence[Cell]:
    if one.offset is None:
        return (Cell(one.host), Cell("not known", Tone.CAUTION, one.reason), Cell(""))
    tone = Tone.PLAIN if not one.is_off else Tone.BAD if abs(one.offset) > _HOUR else Tone.CAUTION
    return (Cell(one.host), Cell(_offset(one), tone), Cell(f"± {format_duration(one.within)}"))


def _offset(one: ClockStanding) -> str:
    offset = one.offset or 0.0
    if abs(offset) <= max(one.within, 1.0):
        return "agrees"
    return f"{format_duration(abs(offset))} {'ahead' if offset > 0 else 'behind'}"
