# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a backup that runs, the steps that are left of it, and the record that it leaves.

The state is kept on the control node only while the role runs a file of tasks. The record is kept until the next run.
Records of the version before are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ...common.typed_json import dump_dataclass, parse_dataclass
from ...common.units import seconds_of
from ..hook_steps import HookRun
from .copies import CopyState, RepairedFile, WantedContent, lag_of
from .drill import DrillRecord
from .jobs import Copy, Run


class BackupStage(Enum):
    """How far a backup is. Reports name what failed by these words."""

    BEGIN = "begin"  # takes the claim, and begins the snapshot
    HOOKS_BEFORE = "hook before"
    PREPARE = "prepare"  # consistent sources
    TRANSFER = "transfer"
    FILLED = "filled"  # everything has arrived; the hooks after run
    FINISH = "finish"
    PRUNE = "prune"
    CHECK = "check"
    DRILL = "drill"


HOOKS_AFTER = "hook after"  # names failures of these hooks; they do not change the stage
UNDO = "undo"  # names failures to remove what was prepared; they do not change the stage either
OWED, OWED_HOOKS = "owed", "owed hook after"  # count hooks after that are run for a killed run, and name failures


class BackupStep(Enum):
    """A step of a backup, in their order."""

    CLAIM = "claim"  # keeps other runs from making the same backup
    OWED = "owed"  # the hooks after that a killed run did not come to
    BEGIN = "begin"
    HOOKS_BEFORE = "hooks_before"
    PREPARE = "prepare"  # has the client make consistent sources
    TRANSFER = "transfer"
    UNDO = "undo"  # has it remove them
    HOOKS_AFTER = "hooks_after"
    FINISH = "finish"
    LIST = "list"  # asks what snapshots there are
    PRUNE = "prune"
    COPY = "copy"  # copies snapshots to other repositories; a copy that fails is no failure of the backup
    CHECK = "check"
    DRILL = "drill"  # practises a restore
    RECORD = "record"
    RELEASE = "release"  # lets another run begin


# However a backup ends, what a hook stopped is started again, and it has a record. Where a hook after failed, the
# snapshot is as good as before, so it is completed, and the backup has failed. A list after a failure prunes, too, and
# snapshots of earlier runs are copied then.
_END = (BackupStep.RECORD, BackupStep.RELEASE)
_RECORD = (BackupStep.LIST, BackupStep.COPY, *_END)
_CHECK = (BackupStep.CHECK, BackupStep.DRILL, *_END)
_COMPLETE = (BackupStep.FINISH, BackupStep.LIST, BackupStep.PRUNE, BackupStep.COPY, *_CHECK)
_UNDO = (BackupStep.UNDO, BackupStep.HOOKS_AFTER, *_RECORD)
_FILL = (BackupStep.PREPARE, BackupStep.TRANSFER, BackupStep.UNDO, BackupStep.HOOKS_AFTER, *_COMPLETE)
GOES_ON: Mapping[BackupStage, tuple[BackupStep, ...]] = {
    BackupStage.BEGIN: tuple(BackupStep),
    BackupStage.HOOKS_BEFORE: (BackupStep.HOOKS_BEFORE, *_FILL),
    BackupStage.PREPARE: _FILL,
    BackupStage.TRANSFER: _FILL[1:],
    BackupStage.FILLED: (BackupStep.UNDO, BackupStep.HOOKS_AFTER, *_COMPLETE),
    BackupStage.FINISH: _COMPLETE,
    BackupStage.PRUNE: (BackupStep.PRUNE, BackupStep.COPY, *_CHECK),
    BackupStage.CHECK: _CHECK,
    BackupStage.DRILL: (BackupStep.CLAIM, BackupStep.LIST, BackupStep.DRILL, *_END),  # also for a drill alone
}
AFTER_FAILURE: Mapping[BackupStage, tuple[BackupStep, ...]] = {
    BackupStage.BEGIN: _RECORD,
    BackupStage.HOOKS_BEFORE: _UNDO,
    BackupStage.PREPARE: _UNDO,
    BackupStage.TRANSFER: _UNDO,
    BackupStage.FILLED: _COMPLETE,
    BackupStage.FINISH: _RECORD,
    BackupStage.PRUNE: _RECORD,
    BackupStage.CHECK: (BackupStep.LIST, *_END),
    BackupStage.DRILL: _END,
}


@dataclass
class ListedSnapshot:
    """A snapshot in the list of a repository."""

    name: str
    state: str  # complete, aside, unfinished or removing
    time: str
    reason: str = ""  # why it was set aside
    verified: str | None = None  # when its contents were last found to be intact


@dataclass
class RepositorySpace:
    """The room on the file system of a repository. None: not known, or no fixed number."""

    bytes_total: int | None = None
    bytes_free: int | None = None
    files_total: int | None = None
    files_free: int | None = None


@dataclass
class BegunSnapshot:
    """The snapshot that was begun."""

    path: str  # of its tree
    link_dest: list[str] = field(default_factory=list)  # trees of earlier snapshots to link to
    link_dest_exclude: list[str] = field(default_factory=list)
    resumed: bool = False


@dataclass
class FinishedSnapshot:
    """The snapshot that was completed. If it ``differs`` from the source, it was not."""

    name: str = ""
    figures: dict[str, int] = field(default_factory=dict)
    differs: bool = False
    unproven: list[str] = field(default_factory=list)  # paths of a copy that its manifest does not describe


@dataclass
class SnapshotList:
    """The snapshots of the job."""

    snapshots: list[ListedSnapshot]
    space: RepositorySpace | None = None


@dataclass
class PrunedSnapshots:
    """The snapshots that the policy keeps, each with its rules, and those that it removed."""

    kept: dict[str, list[str]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)


@dataclass
class CheckedSnapshots:
    """The result of reading a part of the snapshots."""

    sound: bool
    checked: dict[str, object] = field(default_factory=dict)


@dataclass
class RepairedSnapshots:
    """The damaged files that were replaced, the contents that are wanted for others, and how many findings are left."""

    repaired: list[RepairedFile] = field(default_factory=list)
    wanted: list[WantedContent] = field(default_factory=list)
    left: int = 0


@dataclass
class SnapshotAnswers:
    """The answers of a repository about its snapshots, by action; None: it was not asked."""

    begin: BegunSnapshot | None = None
    finish: FinishedSnapshot | None = None
    list: SnapshotList | None = None
    prune: PrunedSnapshots | None = None
    check: CheckedSnapshots | None = None
    repair: RepairedSnapshots | None = None

    def update(self, answers: Mapping[str, object]) -> None:
        """Take new answers, by action. Raises WrongShape."""
        found = parse_dataclass(SnapshotAnswers, answers, "the answer about snapshots")
        for action in answers:
            setattr(self, action, getattr(found, action))


@dataclass
class PathTransfer:
    """The transfer of one path. Sizes are in bytes, times in seconds."""

    src: str
    method: str = "none"
    streams: int | None = None
    encrypted: bool | None = None
    bytes_apparent: int = 0
    bytes_total: int = 0
    bytes_content: int | None = 0
    bytes_sent: int = 0
    bytes_from_basis: int = 0
    bytes_shared: int = 0
    files_total: int = 0
    vanished: int = 0
    left_out: int = 0  # directories, by exclude_if_present or exclude_caches
    unstable: int = 0
    resumed: bool = False
    attached: bool = False
    verified: str | None = None
    duration: float | None = None
    throughput: float | None = None
    changed: bool = False


@dataclass
class StepFailure:
    """A step that failed, named by its stage, and the reason."""

    step: str
    reason: str


@dataclass
class BackupState:
    """How far a backup is, and what happened so far."""

    at: str  # when it began, as ISO 8601 in UTC
    run_id: str = ""  # of the run of the role
    stage: BackupStage = BackupStage.BEGIN
    claim: str = ""  # the token of this run; empty while it has not claimed the backup
    ended_claim: str = ""  # that of an earlier run that never released its claim
    said: SnapshotAnswers = field(default_factory=SnapshotAnswers)
    transfers: list[PathTransfer] = field(default_factory=list)
    owed: str = ""  # when the run began that was killed before all its hooks after had ended; empty if none was
    prepared: bool = False  # the client may have consistent sources that are to be undone
    hook: HookRun | None = None  # that runs
    hooks: list[HookRun] = field(default_factory=list)  # that have run
    hooks_run: dict[str, int] = field(default_factory=dict)  # how many hooks of each list have ended
    hooks_failed: list[str] = field(default_factory=list)  # why hooks after failed, while others of the list are left
    failures: list[StepFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know although it succeeded
    drill: DrillRecord | None = None  # that runs or has ended
    copies: list[CopyState] = field(default_factory=list)  # that this run has looked at

    def dump(self) -> dict[str, object]:
        """Return what the file holds."""
        return dump_dataclass(self)

    def find_owed(self, hooks_after: int) -> str:
        """Return when the run began that still owes hooks after, of which the job has so many; empty if none does."""
        if self.owed and self.hooks_run.get(OWED, 0) < hooks_after:
            return self.owed
        has_begun = any(one.kind == "before" for one in (*self.hooks, *([self.hook] if self.hook else ())))
        return self.at if has_begun and self.hooks_run.get("after", 0) < hooks_after else ""

    @property
    def has_failed(self) -> bool:
        """Whether a step of the stage at hand has failed."""
        here = {self.stage.value} | ({HOOKS_AFTER} if self.stage is BackupStage.FILLED else set())
        return bool(here & {failure.step for failure in self.failures})

    def find_steps(
        self, check_subset: str = "", drills: bool = False, has_copies: bool = False
    ) -> tuple[BackupStep, ...]:
        """Return the steps that are left, in their order. ``drills``: a drill is due.

        While a snapshot is set aside those before may be the only good ones, so nothing is pruned. Without any snapshot
        there is nothing to check.
        """
        listed = self.said.list
        states = {one.state for one in listed.snapshots} if listed else set()
        unwanted = set() if self.owed else {BackupStep.OWED}
        if not self.prepared and self.stage is not BackupStage.BEGIN:
            unwanted.add(BackupStep.UNDO)
        if not has_copies or not listed or self.copies:
            unwanted.add(BackupStep.COPY)
        if listed:
            unwanted.add(BackupStep.LIST)
        if "aside" in states or (listed and self.said.prune):
            unwanted.add(BackupStep.PRUNE)
        if not check_subset or (listed and not states & {"complete", "aside"}):
            unwanted.add(BackupStep.CHECK)
        is_asked_for = self.stage is BackupStage.DRILL  # which fails then
        if not drills or (listed and "complete" not in states and not is_asked_for):
            unwanted.add(BackupStep.DRILL)
        if self.claim and self.stage is BackupStage.DRILL:
            unwanted.add(BackupStep.CLAIM)
        steps = (AFTER_FAILURE if self.has_failed else GOES_ON)[self.stage]
        if not self.claim and BackupStep.CLAIM not in steps:
            unwanted.add(BackupStep.RELEASE)
        return tuple(step for step in steps if step not in unwanted)


def parse_state(value: object) -> BackupState:
    """Return the state that a file holds. Raises WrongShape."""
    return parse_dataclass(BackupState, value, "the state")


MOST_RUNS = 60  # of a job, whose figures are kept


@dataclass
class RunFigures:
    """The figures of a run that charts show. None: not known."""

    at: str  # when it ended
    failed: bool = False
    new_bytes: int | None = None
    size: int | None = None
    duration: float = 0
    bytes_free: int | None = None
    files_free: int | None = None


@dataclass
class BackupRecord:
    """A backup as reports and the next run read it. An earlier version may have left out something."""

    id: str
    host: str = ""
    name: str = ""
    repository: dict[str, str] = field(default_factory=dict)  # host and path
    at: str = ""  # ISO 8601, UTC
    ended: str = ""
    duration: float = 0  # seconds
    failures: list[StepFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hooks: list[HookRun] = field(default_factory=list)
    snapshot: str = ""  # empty if none was finished
    resumed: bool = False
    aside: str = ""  # what waits for a decision
    aside_name: str = ""  # of the snapshot that does
    newest: str | None = None  # when the newest complete snapshot was begun that is not of the future
    snapshots: int | None = None  # complete ones
    figures: dict[str, int] = field(default_factory=dict)  # of the snapshot
    size: int | None = None  # bytes of the snapshot, or of the one before
    transfers: list[PathTransfer] = field(default_factory=list)
    kept: dict[str, list[str]] = field(default_factory=dict)  # the rules by snapshot
    removed: list[str] = field(default_factory=list)
    check: dict[str, object] = field(default_factory=dict)  # empty if nothing was checked
    run_id: str = ""  # of the run of the role
    oldest: str | None = None  # when the oldest complete snapshot was begun
    verified: str | None = None  # when the contents of a snapshot were last found to be intact
    failing_since: str = ""  # when the first of the runs began that have failed in a row
    space: RepositorySpace | None = None
    history: list[RunFigures] = field(default_factory=list)  # the oldest first, at most MOST_RUNS
    drill: DrillRecord | None = None  # the last one
    copies: list[CopyState] = field(default_factory=list)  # in the order of the job

    def dump(self) -> dict[str, object]:
        """Return what files and results hold: every member, also those that are None."""
        return asdict(self)


def parse_record(value: object) -> BackupRecord:
    """Return the record that a file holds, of this version or the one before. Raises WrongShape."""
    return parse_dataclass(BackupRecord, value, "the record")


def expected_snapshots(run: Run, before: BackupRecord | None) -> int:
    """Return how many complete snapshots the repository of a run must have by the record of the last backup there."""
    return (before.snapshots or 0) if before is not None and before.repository == _place_of(run) else 0


def _place_of(run: Run) -> dict[str, str]:
    return {"host": run["repository"]["host"], "path": run["repository"]["path"]}


def make_record(run: Run, state: BackupState, ended: str, before: BackupRecord | None = None) -> BackupRecord:
    """Return the record of a backup that ``ended``.

    Of what the repository did not tell this time, the record ``before`` counts, unless it is of another repository.
    """
    last = before if before is not None and before.repository == _place_of(run) else BackupRecord(run["id"])
    said = state.said
    finished, pruned = said.finish or FinishedSnapshot(), said.prune or PrunedSnapshots()
    record = BackupRecord(
        id=run["id"],
        host=run["host"],
        name=run["name"],
        repository=_place_of(run),
        at=state.at,
        ended=ended,
        duration=(seconds_of(ended) or 0) - (seconds_of(state.at) or 0),
        failures=state.failures,
        notes=list(dict.fromkeys(state.notes)),
        hooks=state.hooks,
        snapshot=finished.name,
        resumed=bool(said.begin and said.begin.resumed),
        aside=last.aside,
        aside_name=last.aside_name,
        newest=last.newest,
        snapshots=last.snapshots,
        figures=finished.figures,
        size=finished.figures.get("bytes", last.figures.get("bytes") if last.size is None else last.size),
        transfers=state.transfers,
        kept=pruned.kept,
        removed=pruned.removed,
        check={**said.check.checked, "sound": said.check.sound} if said.check else {},
        run_id=state.run_id,
        oldest=last.oldest,
        verified=last.verified,
        failing_since=(before.failing_since if before else "") or state.at if state.failures else "",
        space=said.list.space if said.list else None,
        history=last.history,
        drill=state.drill or last.drill,
        copies=_copies_of(run, state.copies, before),
    )
    # A repository without any of its snapshots is taken for another disk, and the next run is to say so again.
    if said.list and (said.list.snapshots or not expected_snapshots(run, before)):
        complete = [one for one in said.list.snapshots if one.state == "complete"]
        present = [one for one in complete if not is_future(one.time, ended)]
        record.notes += _tell_future([one.name for one in complete if one not in present])
        waiting = [one for one in said.list.snapshots if one.state == "aside"]
        record.aside, record.aside_name = _tell_aside(waiting), waiting[-1].name if waiting else ""
        record.newest = present[-1].time if present else None
        record.snapshots = len(complete) - len(pruned.removed)
        left = [one for one in present if one.name not in pruned.removed]
        record.oldest = left[0].time if left else None
        record.verified = max((one.verified for one in complete if one.verified), default=None)
    for copy in record.copies:
        copy.lag_seconds = lag_of(seconds_of(record.newest), seconds_of(copy.newest))
    record.history = [*record.history, _figures_of(record)][-MOST_RUNS:]
    return record


def record_drill(run: Run, state: BackupState, ended: str, before: BackupRecord | None) -> BackupRecord:
    """Return the record of a run that made no backup, only a drill: that of the last backup, with the drill."""
    if before is None:
        return make_record(run, state, ended)
    others = [failure for failure in before.failures if failure.step != BackupStage.DRILL.value]
    return replace(
        before,
        failures=[*others, *state.failures],
        failing_since=before.failing_since or state.at if others or state.failures else "",
        drill=state.drill or before.drill,
        run_id=state.run_id,
    )


def copy_before(copy: Copy, before: BackupRecord | None) -> CopyState:
    """Return what is known of a copy from the record of the last backup, as the state with which a run begins."""
    known = [one for one in (before.copies if before else ()) if (one.host, one.path) == (copy["host"], copy["path"])]
    last = known[-1] if known else CopyState(copy["host"], copy["path"])
    return replace(last, copied=[], removed=[], bytes_sent=0, repaired=0)


def _copies_of(run: Run, found: Sequence[CopyState], before: BackupRecord | None) -> list[CopyState]:
    """Return the state of each copy of the job: the one that this run found, or else the last one that is known."""
    by_place = {(one.host, one.path): one for one in found}
    return [by_place.get((copy["host"], copy["path"])) or copy_before(copy, before) for copy in run["copies"]]


def _figures_of(record: BackupRecord) -> RunFigures:
    space = record.space or RepositorySpace()
    return RunFigures(
        at=record.ended,
        failed=bool(record.failures),
        new_bytes=record.figures.get("new_bytes"),
        size=record.size,
        duration=record.duration,
        bytes_free=space.bytes_free,
        files_free=space.files_free,
    )


def is_future(at: str, now: str) -> bool:
    """Return whether a snapshot's time is so far after ``now``, on the control node, that a clock was wrong."""
    return (seconds_of(at) or 0) > (seconds_of(now) or 0) + names.LARGEST_STEP


def _tell_future(found: Sequence[str]) -> list[str]:
    if not found:
        return []
    return [
        f"{', '.join(found)}: a date of the future. The clock of the repository was wrong, or that of the control node "
        "is. Such a snapshot never counts as the newest, and no policy removes it. If both clocks are right and you do "
        f"not need it, rename it to {names.REMOVING_PREFIX}{found[0]}, and the next prune removes it"
    ]


def _tell_aside(waiting: Sequence[ListedSnapshot]) -> str:
    """Return what waits for a decision; empty if nothing does."""
    if not waiting:
        return ""
    last = waiting[-1]
    return (
        f"{last.name} is suspicious: {last.reason}. Until somebody has compared it with the one before and accepted or "
        "discarded it (longhaul.fleet.snapshot, action accept or discard), nothing is pruned"
    )
