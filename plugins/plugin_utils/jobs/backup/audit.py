# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An audit of all backups: what the repositories have against the jobs, and who decided what. Pure.

Answers of hosts are untrusted input: names are checked, and texts and lists have a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, number
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, policy, time_zones
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused

from ...common.host_text import one_line
from ...common.typed_json import parse_dataclass
from ...common.units import seconds_of
from .capacity import RepositoryStanding, SeenSpace, find_repositories, name_of
from .copies import CopyState, lag_of, time_text
from .drill import DrillRecord
from .health import ASIDE, OK, STALE, UNCOPIED, JobHealth, find_lacking
from .jobs import Groups, Run, places_of
from .state import RepositorySpace, is_future

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_LONGEST = 200  # characters of a text of a host
_MOST_FOLDERS = 20_000
_MOST_NAMES = 2_000  # snapshots of a job, and decisions about them
_MOST_DECISIONS = 1_000  # in the report, the newest
_MOST_UNREAD = 100
_MOST_BAD = 5  # snapshots of a copy that are named
_LARGEST = 1 << 63
_CLOCK_STEP = 60.0  # seconds that a clock may be off


@dataclass
class SnapshotDecision:
    """An act of a person, or one that no run of this collection did."""

    act: str
    name: str  # of the snapshot
    at: str
    by: str
    why: str
    was: str
    job: str = ""  # HOST/JOB
    repository: str = ""  # HOST:PATH


@dataclass
class FolderAnswer:
    """The folder of a job, as the host of the repository describes it. See ``_snapshot/audit.py``."""

    host: str
    job: str
    complete: list[str]
    complete_total: int
    aside: list[str]
    verified: int
    verified_oldest: str | None
    verified_newest: str | None
    parts_read: int
    parts_of: int
    damaged: list[str]
    missing: list[str]
    decisions: list[SnapshotDecision]
    decisions_total: int
    pruned: int
    pruned_at: str | None
    pruned_by: str
    protected: list[str] = field(default_factory=list)  # snapshots that nobody may remove


@dataclass
class UnreadFolder:
    """A folder that could not be read; without a job that of a host."""

    host: str
    job: str
    snapshot: str
    reason: str


@dataclass
class RepositoryAnswer:
    """A repository, as its host describes it."""

    now: float  # seconds since 1970
    space: RepositorySpace
    folders: list[FolderAnswer]
    unread: list[UnreadFolder]


class HostAnswer(NamedTuple):
    """The answer of a host, with the times of both clocks, in seconds since 1970."""

    asked: float  # by the control node
    answered: float
    first: float  # by the host: when it began
    last: float
    repositories: Mapping[str, RepositoryAnswer]  # by path
    refused: Mapping[str, str]  # paths of repositories that could not be read, and why


@dataclass
class ClockStanding:
    """The clock of a host against that of the control node, in seconds."""

    host: str
    offset: float | None = None  # ahead of the control node; None: not known
    within: float = 0.0  # as exactly as that is known
    reason: str = ""  # it is not known

    @property
    def is_off(self) -> bool:
        """Whether it is certainly further off than a clock may be."""
        return self.offset is not None and abs(self.offset) - self.within > _CLOCK_STEP


@dataclass
class RuleStanding:
    """The number that a rule of the policy wants and the number that it has: of snapshots, periods or seconds."""

    rule: str
    wanted: int
    there: int
    is_short: bool


@dataclass
class JobAudit:
    """A job for one host."""

    id: str
    repository: str  # HOST:PATH
    state: str
    newest: str | None
    folder: bool  # whether the repository has it
    snapshots: int = 0  # complete ones
    oldest: str | None = None
    aside: list[str] = field(default_factory=list)
    rules: list[RuleStanding] = field(default_factory=list)
    verified: int = 0  # snapshots of which all contents were read and found intact
    verified_oldest: str | None = None
    verified_newest: str | None = None
    parts_read: int = 0  # of the contents of the newest one
    parts_of: int = 1
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pruned: int = 0
    pruned_at: str | None = None
    pruned_by: str = ""
    unread: str = ""  # why nothing is known of the repository
    protected: list[str] = field(default_factory=list)
    copies: list[CopyState] = field(default_factory=list)
    drill: DrillRecord | None = None

    @property
    def is_short(self) -> bool:
        """Whether the policy wants more than there is."""
        return any(one.is_short for one in self.rules)

    @property
    def is_unverified(self) -> bool:
        """Whether no check has read any contents of its snapshots."""
        return bool(self.snapshots) and not self.verified and not self.parts_read


@dataclass
class OrphanFolder:
    """The folder of a job in a repository that no job has."""

    repository: str
    host: str
    job: str
    snapshots: int
    newest: str | None


@dataclass
class RepositoryCapacity:
    """The room of a repository, and the day on which it will be full; empty if that is not known or far away."""

    name: str
    space: RepositorySpace
    bytes_a_day: float | None
    full_on: str


@dataclass
class BackupAudit:
    """All that an audit found."""

    at: str
    by: str
    hosts: int  # of the inventory
    exempt: int  # that need no backup, or only have a repository
    uncovered: list[str]  # hosts without a job
    orphans: list[OrphanFolder]
    jobs: list[JobAudit]
    decisions: list[SnapshotDecision]  # the newest first
    decisions_total: int
    clocks: list[ClockStanding]
    capacity: list[RepositoryCapacity]
    unread: list[str]  # what could not be read, and why
    standings: list[RepositoryStanding] = field(default_factory=list)  # for the page

    def dump(self) -> dict[str, object]:
        """Return it as JSON has it."""
        values = asdict(self)
        del values["standings"]
        return values


class AuditSummary(TypedDict):
    """The figures of an audit for the statistics of Ansible; a guide documents them."""

    check_mode: bool
    at: str  # UTC
    jobs: int
    hosts: int
    uncovered: int  # hosts without a job
    orphans: int  # folders without a job
    short: int  # jobs with fewer snapshots than the policy wants
    missing: int  # snapshots
    damaged: int  # snapshots
    unverified: int  # jobs of which no contents were read
    clocks_off: int
    unread: int  # hosts, repositories or folders
    report: str


def summarize_audit(audit: BackupAudit, report: str, check_mode: bool) -> AuditSummary:
    """Return the figures of an audit. ``report`` is the path of the page, empty if there is none."""
    jobs = audit.jobs
    return {
        "check_mode": check_mode,
        "at": audit.at,
        "jobs": len(jobs),
        "hosts": audit.hosts,
        "uncovered": len(audit.uncovered),
        "orphans": len(audit.orphans),
        "short": sum(one.is_short for one in jobs),
        "missing": sum(len(one.missing) for one in jobs),
        "damaged": sum(len(one.damaged) for one in jobs),
        "unverified": sum(one.is_unverified for one in jobs),
        "clocks_off": sum(one.is_off for one in audit.clocks),
        "unread": len(audit.unread),
        "report": report,
    }


# What hosts say


def parse_now(value: object) -> float:
    """Return the time of a host, by its answer to an overview. Raises WrongShape."""
    now = float(number(as_object(value, "its answer"), "now"))
    if not 0 <= now < _LARGEST:
        raise WrongShape("its time cannot be")
    return now


def parse_repository(value: object) -> RepositoryAnswer:
    """Return the answer about a repository, all its texts harmless. Raises WrongShape."""
    found = parse_dataclass(RepositoryAnswer, value, "its answer")
    if len(found.folders) > _MOST_FOLDERS or not 0 <= found.now < _LARGEST:
        raise WrongShape("it has more folders than can be, or its time cannot be")
    room = vars(found.space).values()
    if any(one is not None and not 0 <= one < _LARGEST for one in room):
        raise WrongShape("its room cannot be")
    for folder in found.folders:
        _check_folder(folder)
    found.unread = [
        UnreadFolder(*(one_line(text)[:_LONGEST] for text in vars(one).values())) for one in found.unread[:_MOST_UNREAD]
    ]
    return found


def _check_folder(folder: FolderAnswer) -> None:
    """Make the texts of a folder harmless. Raises WrongShape for what cannot be."""
    for what, text in (("host", folder.host), ("job", folder.job)):
        try:
            names.check_part(what, text)
        except (Refused, UnicodeError) as error:
            raise WrongShape(f"it has a folder with a name that cannot be: {one_line(str(error))}") from None
    lists = (folder.complete, folder.aside, folder.damaged, folder.missing, folder.protected, folder.decisions)
    counts = (folder.complete_total, folder.verified, folder.parts_read, folder.parts_of, folder.pruned)
    if any(len(one) > _MOST_NAMES for one in lists) or any(
        not 0 <= one < _LARGEST for one in (*counts, folder.decisions_total)
    ):
        raise WrongShape(f"it says more of {folder.host}/{folder.job} than can be")
    kinds = {names.COMPLETE: [*folder.complete, *folder.damaged], names.ASIDE: folder.aside}
    if not all(names.kind_of(name) == kind for kind, named in kinds.items() for name in named) or not all(
        map(names.kind_of, [*folder.missing, *folder.protected])
    ):
        raise WrongShape(f"{folder.host}/{folder.job} has a snapshot with a name that cannot be")
    folder.complete.sort()
    times = [folder.verified_oldest, folder.verified_newest, folder.pruned_at, *(one.at for one in folder.decisions)]
    if not all(_is_time(one) for one in times if one is not None):
        raise WrongShape(f"{folder.host}/{folder.job} has a time that cannot be")
    folder.pruned_by = one_line(folder.pruned_by)[:_LONGEST]
    for one in folder.decisions:
        one.act, one.name, one.by, one.why, one.was = (
            one_line(text)[:_LONGEST] for text in (one.act, one.name, one.by, one.why, one.was)
        )


def _is_time(text: str) -> bool:
    try:
        return bool(_TIME.fullmatch(text)) and seconds_of(text) is not None
    except ValueError:
        return False


# Decisions


def compare_clock(host: str, answer: HostAnswer) -> ClockStanding:
    """Return how far the clock of a host is from that of the control node.

    The host looked at its clock at some moment between the question and the answer, which is as exact as it gets.
    """
    slack = max(0.0, (answer.answered - answer.asked) - max(0.0, answer.last - answer.first))
    offset = answer.first - (answer.asked + slack / 2)
    return ClockStanding(host, round(offset, 1), round(slack / 2, 1))


def find_uncovered(groups: Groups, runs: Sequence[Run], exempt: Collection[str]) -> tuple[list[str], int]:
    """Return the hosts of the inventory without a job, and the number of those that need none.

    ``exempt`` are names of hosts and groups. A host that has a repository, or a copy of one, needs no job of its own.
    """
    covered = {run["host"] for run in runs}
    excused = {place["host"] for place in places_of(runs)}
    for name in exempt:
        excused |= set(groups.get(name, (name,)))
    hosts = list(dict.fromkeys(groups["all"]))
    uncovered = [host for host in hosts if host not in covered | excused]
    return uncovered, sum(host in excused - covered for host in hosts)


def make_audit(
    runs: Sequence[Run],
    health: Sequence[JobHealth],
    groups: Groups,
    exempt: Collection[str],
    answers: Mapping[str, HostAnswer],
    failed: Mapping[str, str],
    at: str,
    by: str,
) -> BackupAudit:
    """Return the audit of all jobs.

    ``health`` has the state of each run, ``answers`` are those of the hosts, and ``failed`` says why others gave none.
    """
    uncovered, excused = find_uncovered(groups, runs, exempt)
    found = {
        f"{host}:{path}": repository
        for host, answer in answers.items()
        for path, repository in answer.repositories.items()
    }
    unread = [f"{host}: {reason}" for host, reason in failed.items()]
    unread += [f"{host}:{path}: {why}" for host, answer in answers.items() for path, why in answer.refused.items()]
    for name, repository in found.items():
        unread += [f"{name}/{'/'.join(filter(None, (one.host, one.job)))}: {one.reason}" for one in repository.unread]
    folders = {
        (name, folder.host, folder.job): folder for name, repository in found.items() for folder in repository.folders
    }
    jobs = [
        _audit_job(run, one, folders.get((name_of(one), one.host, one.name)), name_of(one) in found, at)
        for run, one in zip(runs, health)
    ]
    for run, job in zip(runs, jobs):
        job.copies = [
            _look_at_copy(copy, job, folders.get((copy.place, run["host"], run["name"])), copy.place in found, at)
            for copy in _copies_of(run, job)
        ]
    known = {
        (f"{place['host']}:{place['path']}", run["host"], run["name"]) for run in runs for place in places_of([run])
    }
    orphans = [
        OrphanFolder(name, host, job, folder.complete_total, _time_of(folder.complete[-1:]))
        for (name, host, job), folder in folders.items()
        if (name, host, job) not in known
    ]
    decisions = [one for key, folder in folders.items() for one in _decisions_of(key, folder)]
    decisions.sort(key=lambda one: one.at, reverse=True)
    seen = {name: SeenSpace(repository.space, at) for name, repository in found.items()}
    standings = find_repositories(health, seen)
    of_jobs = {one.name for one in standings}
    of_copies = [RepositoryCapacity(name, one, None, "") for name, (one, _at) in seen.items() if name not in of_jobs]
    clocks = [compare_clock(host, answer) for host, answer in answers.items()]
    clocks.sort(key=lambda one: abs(one.offset or 0.0), reverse=True)
    return BackupAudit(
        at=at,
        by=by,
        hosts=len(groups["all"]),
        exempt=excused,
        uncovered=uncovered,
        orphans=orphans,
        jobs=jobs,
        decisions=decisions[:_MOST_DECISIONS],
        decisions_total=sum(folder.decisions_total for folder in folders.values()),
        clocks=[*(ClockStanding(host, reason=reason) for host, reason in failed.items()), *clocks],
        capacity=[
            *(RepositoryCapacity(one.name, one.space, one.bytes_a_day, one.full_on) for one in standings),
            *of_copies,
        ],
        unread=unread,
        standings=standings,
    )


def _audit_job(run: Run, one: JobHealth, folder: FolderAnswer | None, is_read: bool, at: str) -> JobAudit:
    newest = one.record.newest if one.record is not None else None
    found = JobAudit(one.id, name_of(one), one.state, newest, folder is not None)
    if one.record is not None:
        found.copies, found.drill = one.record.copies, one.record.drill
    if folder is None:
        found.unread = "" if is_read else "the repository could not be read"
        return found
    times = [names.time_of(name) or 0 for name in folder.complete]
    found.newest = _newest_of(folder, at)
    found.oldest = _time_of(folder.complete[:1])
    if one.state == ASIDE and not folder.aside:  # somebody has decided since the last run
        found.state = _state_without_aside(run, one, found.newest, seconds_of(at) or 0)
    found.snapshots, found.aside = folder.complete_total, folder.aside
    found.rules = _compare_policy(run["keep"], run["timezone"], times, at)
    found.verified = folder.verified
    found.verified_oldest, found.verified_newest = folder.verified_oldest, folder.verified_newest
    found.parts_read, found.parts_of = folder.parts_read, folder.parts_of
    found.damaged, found.missing, found.protected = folder.damaged, folder.missing, folder.protected
    found.pruned, found.pruned_at, found.pruned_by = folder.pruned, folder.pruned_at, folder.pruned_by
    return found


def _copies_of(run: Run, job: JobAudit) -> list[CopyState]:
    """Return the states of the copies that a job is to have, by its last record where that knows them."""
    known = {copy.place: copy for copy in job.copies}
    return [known.get(f"{one['host']}:{one['path']}") or CopyState(one["host"], one["path"]) for one in run["copies"]]


def _look_at_copy(copy: CopyState, job: JobAudit, folder: FolderAnswer | None, is_read: bool, at: str) -> CopyState:
    """Return the state of a copy by what its host says of it now. One that was not read stays as it was."""
    if not is_read:
        return copy
    if folder is None or not folder.complete:
        return replace(copy, snapshots=0, newest=None, error=copy.error or "there is no snapshot")
    newest = _newest_of(folder, at)
    lag = lag_of(seconds_of(job.newest), seconds_of(newest))
    now = replace(
        copy, snapshots=folder.complete_total, newest=newest, lag_seconds=lag, verified=folder.verified_newest
    )
    bad = [*(f"{name} is damaged" for name in folder.damaged), *(f"{name} is gone" for name in folder.missing)]
    return replace(now, error=", ".join(bad[:_MOST_BAD]) or copy.error)


def _state_without_aside(run: Run, one: JobHealth, newest: str | None, now: int) -> str:
    """Return the state of a job of which no snapshot waits for a decision any more; ``newest`` is there now."""
    age = now - (seconds_of(newest) or 0)
    if one.stale_after and age > one.stale_after:
        return STALE
    return UNCOPIED if find_lacking(run, one.record, now) else OK


def _compare_policy(keep: Mapping[str, Any], zone: str, times: Sequence[int], at: str) -> list[RuleStanding]:
    """Return what the rules of a policy want and what is there, without those of a time zone that is not known here."""
    try:
        compared = policy.compare(times, policy.parse(keep), seconds_of(at) or 0, time_zones.calendar_of(zone))
    except Refused:
        return []
    return [RuleStanding(*one) for one in compared]


def _decisions_of(key: tuple[str, str, str], folder: FolderAnswer) -> list[SnapshotDecision]:
    repository, host, job = key
    for one in folder.decisions:
        one.repository, one.job = repository, f"{host}/{job}"
    return folder.decisions


def _newest_of(folder: FolderAnswer, at: str) -> str | None:
    """Return the time of the newest snapshot that is not of the future."""
    return _time_of([name for name in folder.complete if not is_future(_time_of([name]) or "", at)][-1:])


def _time_of(complete: Sequence[str]) -> str | None:
    """Return the time in the name of a snapshot as reports have it."""
    return next(map(time_text, complete), None)
