# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a migration job: what the control node keeps of it between runs, in one JSON file for each job.

The names of members on disk are older than some names here. Files of the version before are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from ...common.typed_json import EMPTY, SPARSE, dump_dataclass, parse_dataclass
from ..hook_steps import HookRun
from ..source_changes import tell_changes
from .samples import ProgressSample

# The lists of hooks: keys of a job, and role variables for all jobs.
BEFORE, AFTER, FAILED, SWITCH_FAILED = HOOKS = ("before_cutover", "after_cutover", "cutover_failed", "switch_failed")
BACK = ".from-new"  # ends the names of jobs that go back, and of the folders that they go to
SERVED_BY_NEW, SERVED_BY_OLD = "the new host", "the old host again"  # after a downtime
_MOST_DIFFERENCES = 20  # that are kept
_COUNTS = ("files_created", "files_updated", "files_deleted", "attributes_changed", "vanished", "errors_total")


class Stage(Enum):
    """How far a job is."""

    SERVING = "serving"  # the source serves; a first copy may be there
    STOPPED = "stopped"  # a cutover has begun or failed, and the source may be stopped
    SWITCHING = "switching"  # some steps of the switch may be done; which host serves, only a person knows
    SWITCHED = "switched"  # the destination serves


class Readiness(Enum):
    """What a job of a group has done in a run, in this order."""

    BACK = "back"  # the group was told not to go on
    WAITING = "waiting"  # its copy is up to date, and its source serves
    STOPPED = "stopped"  # the hooks of before_cutover have run
    READY = "ready"  # the final pass and the comparison succeeded


@dataclass(frozen=True)
class Identity:
    """The trees of a job, to which its state belongs whatever else of the job changes."""

    src_host: str
    src: str
    dest_host: str
    dest: str


@dataclass
class ChangedMeanwhile:
    """What changed at the source during a transfer, see ``jobs/source_changes``."""

    count: int = 0
    example: str = ""
    only: str = ""


@dataclass
class TransferSummary:
    """The result of a transfer, as far as it is kept. Counts are of entries, sizes in bytes, times in seconds."""

    at: str = ""
    transfer_id: str = ""
    state: str = ""
    method: str = ""
    method_reason: str = ""
    streams: int | None = None
    encrypted: bool | None = None
    trust: str | None = None
    bytes_apparent: int = 0
    bytes_total: int = 0
    bytes_content: int | None = None  # the version before did not count it
    bytes_sent: int = 0
    bytes_matched: int = 0
    bytes_from_basis: int = 0
    bytes_shared: int = 0
    files_total: int = 0
    files_created: int = 0
    files_updated: int = 0
    files_deleted: int = 0
    deleted: list[str] = field(default_factory=list)
    files_unchanged: int = 0
    attributes_changed: int = 0
    vanished: int = 0
    errors_total: int = 0
    unstable: int = field(default=0, metadata=SPARSE)
    source_missing: bool = field(default=False, metadata=SPARSE)
    errors: list[object] = field(default_factory=list)
    resumed: bool = False
    attached: bool = False
    verified: str | None = None
    preserved: list[str] = field(default_factory=list)
    owner_mismatches: object = None
    owner_hints: object = None
    duration: float = 0.0
    throughput: float | None = None
    phases: Mapping[str, object] = field(default_factory=dict)  # seconds of each
    warnings: list[str] = field(default_factory=list, metadata=SPARSE)
    bottleneck: str = field(default="", metadata=SPARSE)  # a sentence; empty if nothing stood out
    changed: bool = False
    changed_meanwhile: ChangedMeanwhile = field(default_factory=ChangedMeanwhile)


@dataclass
class TreeCount:
    """One side of a comparison."""

    entries: int = 0
    bytes: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    digest: str = field(default="", metadata=SPARSE)  # of all that was compared


@dataclass
class ComparisonResult:
    """A comparison of the trees."""

    identical: bool = False
    at: str = ""
    compared: str = ""  # checksum or size
    algorithm: str = ""
    source: TreeCount = field(default_factory=TreeCount)
    dest: TreeCount = field(default_factory=TreeCount)
    duration: float = 0.0
    differences: list[dict[str, Any]] = field(default_factory=list)
    differences_total: int = 0


@dataclass
class TreeUser:
    """A process at the destination that uses the tree there."""

    pid: int
    name: str
    user: str
    path: str  # of one file or folder, relative to the tree
    writes: bool


@dataclass
class TreeUsers:
    """The processes that use a tree, as the step find_tree_users returns them."""

    users: list[TreeUser] = field(default_factory=list)
    unseen: str = ""  # why there may be others


@dataclass
class ProbedHost:
    """What one host says of itself before a migration, as the step discover returns it."""

    base: str  # what exists of the path
    root: bool  # whether Ansible is root there
    mount: str
    fstype: str
    bytes_free: int
    case_insensitive: bool
    tools: Mapping[str, str | None]  # where programs are
    peer: str  # whether the ssh port of the other host answers
    problems: list[str]
    warnings: list[str]
    files_free: int | None = None  # None: no fixed number of inodes
    largest_file: int | None = None
    xattrs: bool | None = None  # None: not known
    acls: bool | None = None
    record: object = None  # of the job, at its destination; see record
    lease: object = None  # likewise; see fleet/lock
    users: list[TreeUser] = field(default_factory=list, metadata=SPARSE)  # of the tree, as in TreeUsers
    unseen: str = field(default="", metadata=SPARSE)
    disks: list[str] = field(default_factory=list, metadata=SPARSE)  # that its tree is on; hosts before 0.3.0 said none


@dataclass
class PreflightResult:
    """What the preflight found."""

    at: str
    predicted: TransferSummary | None = field(default=None, metadata=EMPTY)
    source: ProbedHost | None = field(default=None, metadata=EMPTY)
    dest: ProbedHost | None = field(default=None, metadata=EMPTY)


@dataclass
class SyncResult:
    """The delta passes of the last run that made some."""

    passes: list[TransferSummary] = field(default_factory=list)
    at: str = ""


class PassKind(Enum):
    """The phase that made a transfer."""

    SEED = "seed"
    SYNC = "sync"
    REHEARSAL = "rehearsal"
    CUTOVER = "cutover"


@dataclass
class PassRecord:
    """A transfer as reports list it. The fields that ``TransferSummary`` has mean the same there."""

    kind: PassKind
    at: str = ""
    number: int = 1  # among those of its kind
    run: str = field(default="", metadata=SPARSE)  # when the run began that made it; the version before did not say
    failed: bool = field(default=False, metadata=SPARSE)  # the trees differed, or files changed meanwhile
    method: str = ""
    encrypted: bool | None = None
    files_total: int = 0
    files_created: int = field(default=0, metadata=SPARSE)
    files_updated: int = field(default=0, metadata=SPARSE)
    files_deleted: int = field(default=0, metadata=SPARSE)
    attributes_changed: int = field(default=0, metadata=SPARSE)
    bytes_total: int = 0
    bytes_apparent: int = 0
    bytes_sent: int = field(default=0, metadata=SPARSE)
    duration: float = 0.0
    throughput: float | None = None
    deleted: list[str] = field(default_factory=list, metadata=SPARSE)
    changed_meanwhile: ChangedMeanwhile = field(default_factory=ChangedMeanwhile, metadata=SPARSE)


@dataclass
class PassHistory:
    """The transfers of all runs since the first copy, with the sums of all; see ``history``."""

    passes: list[PassRecord] = field(default_factory=list)  # the first copy and the newest ones, in their order
    count: int = 0
    bytes_sent: int = 0
    files_deleted: int = 0


@dataclass
class Rehearsal:
    """A cutover that put the source back in service."""

    at: str
    since: str = field(default="", metadata={"key": "from"})
    cutover: TransferSummary | None = None
    verify: ComparisonResult | None = None


@dataclass
class PhaseResults:
    """What each phase of a job came to; None if it was not made, or if it does not count any more."""

    preflight: PreflightResult | None = None
    seed: TransferSummary | None = None
    sync: SyncResult | None = None
    cutover: TransferSummary | None = None
    verify: ComparisonResult | None = None
    verify_failed: ComparisonResult | None = None
    rehearsal: Rehearsal | None = None


@dataclass
class Switch:
    """A switch that has begun."""

    done: bool = False
    at: str = ""
    by: str = field(default="", metadata=SPARSE)
    hooks: list[HookRun] | None = None  # that have run; versions before 0.2.0 wrote only how many
    steps: int = 0


@dataclass
class JobFailure:
    """Why the last run stopped."""

    phase: str
    at: str
    reason: str
    lost: bool = field(default=False, metadata=SPARSE)  # another control node has the job


@dataclass
class RunInfo:
    """The last run, and how far it is: a file of tasks ends the action, and the next call goes on here."""

    at: str = ""
    by: str = ""
    phase: str = ""
    id: str = ""
    verify: str = ""
    notes: list[str] = field(default_factory=list)
    step: str = field(default="", metadata=SPARSE)
    done: list[str] = field(default_factory=list, metadata=SPARSE)  # what this run has ended
    hooks_run: dict[str, int] = field(default_factory=dict, metadata=SPARSE)  # how many hooks of each list


@dataclass
class WorkingRun:
    """A run that had something to do for a job."""

    at: str = ""  # when it began
    by: str = ""
    phase: str = ""


@dataclass
class Downtime:
    """A time in which neither host served."""

    since: str = field(default="", metadata={"key": "from"})
    to: str = ""
    serves: str = ""
    rehearsal: bool | None = None  # true, or absent


@dataclass
class MeasuredRates:
    """What the hosts of a job did in a second, by its passes and comparisons; 0: not measured. See ``forecast``."""

    entries: float = 0.0  # looked at by a pass that had little to send
    entries_at: str = ""
    copied: float = 0.0  # bytes of contents, by a pass that sent much
    copied_at: str = ""
    compared: float = 0.0  # bytes that each host read for a comparison of contents
    compared_at: str = ""
    compared_entries: float = 0.0  # by a comparison without contents
    compared_entries_at: str = ""


@dataclass
class CutoverForecast:
    """The downtime that was expected when a cutover began, and how long its final passes and comparisons took."""

    at: str = ""
    lasted: str = ""  # in words
    why: str = ""
    seconds: float | None = None  # None: not known
    with_hooks: bool = False  # whether the time of hooks is among it
    began: float = 0.0  # seconds since 1970: when the group began its final passes
    took: float | None = None  # seconds until all of them had been compared


@dataclass
class GroupState:
    """How far a job is with the others of its group, in a run."""

    name: str
    run: str
    stands: Readiness
    members: list[str] | None = None  # once they are to stop


@dataclass
class Seeding:
    """A first copy that has begun."""

    at: str
    limit: int  # of deletions; -1: none


@dataclass
class MigrationState:
    """All that is kept of a job."""

    name: str
    identity: Identity
    phases: PhaseResults = field(default_factory=PhaseResults)
    stopped: bool = field(default=False, metadata={"key": "quiesced"})
    stopped_at: str = field(default="", metadata={"key": "quiesced_at", **SPARSE})
    cutover_at: str = field(default="", metadata=SPARSE)
    switch: Switch | None = field(default=None, metadata=EMPTY)
    failure: JobFailure | None = field(default=None, metadata=EMPTY)
    run: RunInfo = field(default_factory=RunInfo)
    worked: WorkingRun | None = None  # the last one; versions before 0.3.0 did not say
    seeding: Seeding | None = None
    hook: HookRun | None = None  # that runs
    hooks: list[HookRun] = field(default_factory=list)
    downtimes: list[Downtime] = field(default_factory=list, metadata=SPARSE)
    group: GroupState | None = None
    warnings: list[str] = field(default_factory=list)
    begun_again: str = field(default="", metadata=SPARSE)
    rates: MeasuredRates | None = None
    cutover_forecast: CutoverForecast | None = None  # of the last cutover
    history: PassHistory | None = None  # versions before 0.3.0 kept none
    samples: list[ProgressSample] = field(default_factory=list, metadata=SPARSE)  # at most MOST_SAMPLES
    kept: bool = field(default=False, metadata=SPARSE)  # the destination has a record; a run notices if it is gone

    @classmethod
    def fresh(cls, job: Mapping[str, Any]) -> MigrationState:
        """Return the state of a job that has not begun."""
        ends = (str(job[name]) for name in ("src_host", "src", "dest_host", "dest"))
        return cls(str(job["name"]), Identity(*ends))

    def dump(self) -> dict[str, object]:
        """Return what the file holds."""
        return dump_dataclass(self)

    @property
    def stage(self) -> Stage:
        """How far the job is."""
        if self.switch is not None:
            return Stage.SWITCHED if self.switch.done else Stage.SWITCHING
        return Stage.STOPPED if self.stopped else Stage.SERVING

    @property
    def is_switched(self) -> bool:
        """Whether the switch has begun, so that the destination may be in use."""
        return self.switch is not None

    @property
    def is_seeded(self) -> bool:
        """Whether the first copy was completed."""
        return self.phases.seed is not None

    @property
    def is_compared(self) -> bool:
        """Whether a comparison of the two trees found no difference since the last cutover began."""
        return self.phases.verify is not None

    @property
    def is_back(self) -> bool:
        """Whether the job goes back."""
        return self.identity.dest.endswith(BACK)

    @property
    def last_work(self) -> WorkingRun:
        """The last run that had something to do."""
        return self.worked or WorkingRun(self.run.at, self.run.by, self.run.phase)

    @property
    def passes(self) -> list[TransferSummary]:
        """The first copy, the delta passes of the last run that made some, and the final pass."""
        phases = self.phases
        made = [phases.seed, *(phases.sync.passes if phases.sync else []), phases.cutover]
        return [one for one in made if one is not None]


def parse_state(value: object) -> MigrationState:
    """Return the state in a file of this version or the one before. Raises WrongShape."""
    return parse_dataclass(MigrationState, value, "the state")


def firmness(state: MigrationState, reset: bool = False) -> bool | None:
    """Return whether the lease of a job must not expire: from the first hook before the cutover to the last one after.

    None if this control node does not know: another one from which the job was taken over may have stopped the source.
    With ``reset`` the user has said that nothing is left of that.
    """
    if state.stage in (Stage.STOPPED, Stage.SWITCHING):
        return True
    return False if reset or state.stage is Stage.SWITCHED else None


def summary_of(result: Mapping[str, Any], now: str) -> TransferSummary:
    """Return what is kept of a transfer's result; ``now`` is when it ended."""
    changes = tell_changes(result)
    kept = {one.name: result[one.name] for one in fields(TransferSummary) if result.get(one.name) is not None}
    meanwhile = ChangedMeanwhile(changes["count"], changes["example"], changes["only"])
    slow = result.get("bottleneck") or {}
    sentence = slow["sentence"] if slow.get("name", "none") != "none" else ""
    return TransferSummary(**{**kept, "at": now, "bottleneck": sentence, "changed_meanwhile": meanwhile})


def comparison_of(result: Mapping[str, Any], verify: str, now: str) -> ComparisonResult:
    """Return what is kept of a comparison: one that was a part of a transfer, or the result of the module verify.

    ``verify`` is what was compared: checksum or size.
    """
    total = int(result.get("differences_total", 0))
    counted = result.get("compared") or result
    return ComparisonResult(
        identical=not total,
        at=now,
        compared=verify,
        algorithm=counted["algorithm"],
        source=TreeCount(**counted["source"]),
        dest=TreeCount(**counted["dest"]),
        duration=result["phases"].get("verify", 0.0) if "phases" in result else result["duration"],
        differences=list(result.get("differences", ()))[:_MOST_DIFFERENCES],
        differences_total=total,
    )


def finds_nothing_to_do(predicted: TransferSummary) -> bool:
    """Whether the prediction of a transfer found a complete copy."""
    return predicted.state == "finished" and not any(getattr(predicted, name) for name in _COUNTS)
