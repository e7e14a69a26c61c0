# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a migration job until its first hook: preflight, first copy, delta passes.

``steps`` decides which of these a run makes, ``fleet/conductor`` drives the lives of all jobs. What follows, from the
first hook on, is in the role's tasks, since hooks are the user's own tasks. A job that has none, and waits for no other
job, is switched over here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..fleet.conductor import Call, Life
from ..fleet.life import Stopped, Transfer, persist, transfer_to_end
from ..fleet.source_changes import tell_changes
from ..host_runner import HostFailed
from .advice import advice, begin_again
from .deletions import agreement, tell_deletions
from .groups import begin_switch, enter, joins_begun, siblings
from .hosts import SIDES, Found, Hosts
from .preflight import judge_preflight
from .programs import lacking, needed_programs
from .record import find_conflict, is_switched_elsewhere, make_record
from .remedies import find_remedies
from .report import make_report
from .stages import HOOKS, Stage, is_seeded, stage_of
from .steps import Decision, Phase, Step, decide
from .store import Store, fresh_state, identity_of
from .transfers import comparison_of, finds_nothing_to_do, summary_of

STEPS = (Step.PREFLIGHT, Step.SEED, Step.SYNC)  # of which a life consists, and for a job without hooks, the cutover
_IN_SERVICE = ("unread", "differs")  # what may happen to files while the source is in service


class Options(NamedTuple):
    """What a run wants of all jobs. The role's variables have the same names, see its argument specs."""

    phase: Phase
    check_mode: bool
    steps: Collection[Step]  # those that the user's tags leave
    installs: bool
    predicts: bool
    reset: bool
    may_delete: Collection[str]  # names of jobs, or all
    short_enough: float
    max_passes: int
    started_by: str
    takeover: bool = False  # of jobs that another control node works on
    run_id: str = ""  # what the jobs of a group know by that they are in the same run
    has_hooks: bool = True  # the role has hooks for all jobs
    compares_first: bool = True  # trees are compared before the switch


class Services(NamedTuple):
    """What a life uses of the outside."""

    hosts: Callable[[Mapping[str, Any]], Hosts]
    # of a job and its hosts, in check mode or not, with a limit of deletions; whether one that has ended is collected
    # and what it compares at its end
    transfer: Callable[[Mapping[str, Any], Hosts, bool, int | None, bool, str], Transfer]
    errors: tuple[type[Exception], ...]  # that a transfer may raise, with ``details`` for its result, or without
    store: Store
    now: Callable[[], str]  # UTC, as reports have it
    tell: Callable[[str], None]  # a line for the terminal
    report: Callable[[Mapping[str, Any]], None]  # writes the report of a job and shows it
    # claims a job by its name, or returns why another run here has it; and lets others have it
    claim: Callable[[str], str] = lambda _job: ""
    release: Callable[[str], None] = lambda _job: None


class Failure(NamedTuple):
    """Why a run did not do what it was to do with a job."""

    job: str
    phase: str
    reason: str
    next: str


@dataclass
class Record:
    """What a run did with a job."""

    name: str
    changed: bool = False
    failure: Failure | None = None
    diff: list[str] = field(default_factory=list)
    untouched: bool = False  # it is another run's, so no hook may run


class JobLife:
    """What one run does with one job."""

    def __init__(self, job: Mapping[str, Any], options: Options, services: Services) -> None:
        self.record = Record(job["name"])
        self._job, self._options, self._services = job, options, services
        self.state: dict[str, Any] = {}  # empty if it could not be read
        self._warnings: list[str] = []
        self._predicted: Mapping[str, Any] = {}
        self._deletions = {"told": "", "problem": ""}
        self._seeded: Mapping[str, Any] | None = None  # by this run, from its beginning
        self._is_elsewhere = False  # check mode found that another control node works on it
        self._hosts: Any = None  # once a step needs them
        self.step = Step.PREFLIGHT  # that is made now, or was made last

    def live(self) -> Life:
        """Make the steps of this run, one after the other, and report."""
        name = self._job["name"]
        problem = "" if self._options.check_mode else self._services.claim(name)
        if problem:
            self.record.failure, self.record.untouched = Failure(name, "start", problem, "Nothing was done."), True
            return
        yield from self._live()
        if not (self.goes_on or self._options.check_mode):
            self._services.release(name)

    @property
    def goes_on(self) -> bool:
        """Whether the role has more to do with the job in this run: its hooks, or those that undo what failed."""
        if self._options.check_mode or self.record.untouched:
            return False
        if self.record.failure:
            return bool(self.state and find_remedies(self.state, in_switch=False))
        return bool(self.left)

    def _live(self) -> Life:
        try:
            self.state = dict(self._read_state())
        except Stopped as stopped:
            self.record.failure = Failure(self._job["name"], "start", str(stopped), "Nothing was done.")
            return
        decision = self._decide()
        if decision.refused:
            phase = self._options.phase.value
            self.record.failure = Failure(self._job["name"], phase, decision.refused, decision.instead)
            return
        if self.state["switch"].get("done"):
            self._services.tell(
                f"{self._job['name']} was switched over on {self.state['switch']['at']}, so nothing is transferred. To "
                f"begin it again: {begin_again(self._job['name'])}"
            )
        try:
            yield from self._make_steps()
            if self.left and not self._options.check_mode:
                yield from self._hold()
        except Stopped as stopped:
            reason = self._lost or str(stopped) + self._how_to_agree(str(stopped))
            self.record.untouched = bool(self._lost or stopped.is_held)
            self.state["failure"] = {
                "phase": self.step.value,
                "at": self._services.now(),
                "reason": reason,
                **({"lost": True} if self.record.untouched else {}),
            }
            self.record.failure = Failure(self._job["name"], self.step.value, reason, advice(self.state))
            is_final = not (stopped.may_pass or self._options.check_mode or self.record.untouched)
            if self.step is not Step.PREFLIGHT and is_final:
                yield Call(partial(self._hosts.keep_now, self._made_record(advice(self.state))))
        finally:
            if self._hosts is not None:
                self._hosts.close()
        if self.record.failure or not self.left:
            self._report()
        else:
            self.state = dict(enter(self.state, str(self._job.get("cutover_group") or ""), self._options.run_id))
            self._save()  # the role's tasks go on from there

    @property
    def _lost(self) -> str:
        """Why the job is another control node's, if it is."""
        lease = self._hosts.lease if self._hosts is not None else None
        return lease.lost if lease is not None else ""

    @property
    def left(self) -> tuple[Step, ...]:
        """What is left of this run when the life has ended: the steps with hooks, and what follows them."""
        return tuple(step for step in self._decide().steps if step not in STEPS) if self.state else ()

    def _read_state(self) -> Mapping[str, Any]:
        """Return the state as this run finds it. Raises Stopped if it belongs to another tree."""
        store, job = self._services.store, self._job
        before = {} if self._options.reset else self._load(job["name"])
        others = [self._load(name) for name in siblings(before)]
        state = {**fresh_state(job), **before, "failure": {}}
        interrupted = state.pop("hook", None)
        if joins_begun(state, others):  # of its group, decided by a run that did not come to write it down here
            state = dict(begin_switch(state, self._services.now()))
        if state["identity"] != identity_of(job):
            was = state["identity"]
            raise Stopped(
                f"{store.state_path(job['name'])} was written for {was['src_host']}:{was['src']} to "
                f"{was['dest_host']}:{was['dest']}, which is not what this job moves. Use another name for the job, or "
                f"begin it again with {begin_again(job['name'])}"
            )
        self._warnings = list(state.get("warnings", []))
        if self._options.reset:
            state["begun_again"] = self._services.now()
        state["run"] = {
            "at": self._services.now(),
            "by": self._options.started_by,
            "phase": self._options.phase.value,
            "id": self._options.run_id,
            "verify": self._verify,
            "notes": [_tell_interrupted(interrupted)] if interrupted else [],
        }
        return state

    def _load(self, name: str) -> Mapping[str, Any]:
        store = self._services.store
        try:
            return store.read(name)
        except (OSError, ValueError) as error:
            raise Stopped(
                f"{store.state_path(name)} cannot be read: {error}. Restore it, or remove it to begin the job again"
            ) from None

    def _decide(self) -> Decision:
        """Return what is left for this run, by the state as it is now."""
        compares = self._job.get("verify", "checksum") != "none"
        return decide(self.state, self._options.phase, compares=compares, check_mode=self._options.check_mode)

    @property
    def _is_by_itself(self) -> bool:
        """Whether nothing but this life is needed to switch the job over: no hook, and no other job."""
        job, options = self._job, self._options
        waits = options.has_hooks or job.get("cutover_group") or any(job.get(kind) for kind in HOOKS)
        in_order = options.compares_first or self._verify == "none"
        return options.phase is Phase.CUTOVER and stage_of(self.state) is Stage.SERVING and in_order and not waits

    @property
    def _verify(self) -> str:
        """How the trees are compared: by checksum or size, or none."""
        return str(self._job.get("verify") or "checksum")

    def _make_steps(self) -> Life:
        steps = (*STEPS, Step.CUTOVER) if self._is_by_itself else STEPS
        wanted = [step for step in steps if step in self._options.steps]
        if not set(wanted) & set(self._decide().steps):
            return
        self._reach()
        made: dict[Step, Callable[[], Life]] = {
            Step.PREFLIGHT: self._preflight,
            Step.SEED: partial(self._persist, self._seed),
            Step.SYNC: partial(self._persist, self._sync),
            Step.CUTOVER: partial(self._persist, self._cut_over),
        }
        for step in wanted:
            if step in self._decide().steps:  # which the state after the step before decides
                self.step = step
                yield from made[step]()

    def _reach(self) -> None:
        if self._hosts is None:
            try:
                self._hosts = self._services.hosts(self._job)
            except HostFailed as error:
                raise Stopped(str(error)) from error

    def _hold(self) -> Life:
        """Make sure that the role, which goes on from here, has the job."""
        self._reach()
        try:
            yield Call(self._hosts.hold)
        except HostFailed as error:
            raise Stopped(str(error), error.unreachable) from error

    def _persist(self, step: Callable[[], Life]) -> Life:
        """Make a step, and make it again after a failure that may have passed.

        The preflight is not tried again: a host that this run has not reached yet may be named wrongly.
        """
        return persist(self._job["name"], step, self._services.tell)

    # Preflight

    def _preflight(self) -> Life:
        needed = needed_programs(self._job)
        self._warnings = []
        probes = yield from self._probe()
        path = self._services.store.state_path(self._job["name"])
        self._respect(probes["dest"].get("lease"))
        record = probes["dest"].get("record")
        conflict = "" if self._options.reset else find_conflict(self.state, record, path)
        if conflict:  # a source that another control node switched over must not be brought back by this one
            raise Stopped(conflict, is_held=is_switched_elsewhere(self.state, record))
        if self._options.installs and (yield from self._install(probes, needed)):
            probes = yield from self._probe()
        problems: list[str] = []
        if self._predicts and not any(probes[side]["problems"] for side in SIDES):
            try:
                self._predicted = yield from self._transfer(check=True)
            except Stopped as stopped:
                problems.append(str(stopped))
            else:
                first = not is_seeded(self.state)
                allowed = self._may_delete or (not self._is_first and int(self.state["seeding"]["limit"]) < 0)
                self._deletions = tell_deletions(self._predicted, self._job, first, allowed)
        verdict = judge_preflight(probes, self._job, needed, self._predicted)
        problems = [*filter(None, [self._deletions["problem"]]), *verdict["problems"], *problems]
        self._warn(verdict["warnings"])
        if problems:
            raise Stopped("the preflight found these problems:" + "".join(f"\n- {one}" for one in problems))
        before = self.state["phases"].get("preflight", {})
        self._keep(
            "preflight",
            {
                "at": self._services.now(),
                "predicted": self._predicted or before.get("predicted", {}),
                "source": probes["source"],
                "dest": probes["dest"],
            },
        )

    def _respect(self, found: object) -> None:
        """Leave the job alone if another control node works on it; ``found`` is the lease at the destination."""
        told = self._hosts.find_holder(found)
        if not told or self._options.takeover:
            return
        if not self._options.check_mode:
            raise Stopped(told, is_held=True)
        self._is_elsewhere = True
        self._warn([told])

    def _probe(self) -> Generator[Any, Any, dict[str, Found]]:
        try:
            probes: dict[str, Found] = yield Call(self._hosts.probe)
        except HostFailed as error:
            raise Stopped(str(error), error.unreachable) from error
        return probes

    def _install(self, probes: Mapping[str, Found], needed: Collection[str]) -> Generator[Any, Any, bool]:
        """Install what the hosts lack where Ansible is root; return whether something was."""
        installed = False
        for side in SIDES:
            programs = lacking(needed, probes[side]["tools"])
            if not programs or not probes[side]["root"] or self._options.check_mode:
                continue
            packages, failure = yield Call(partial(self._hosts.install, side, programs))
            installed = installed or bool(packages)
            # Another method may do without them, and if none does, the transfer says so.
            self._warn([failure] if failure else [])
        self.record.changed = self.record.changed or installed
        return installed

    @property
    def _predicts(self) -> bool:
        """Whether this run predicts what the transfer would do.

        Whenever the user asks for it, and until the first copy has begun, since both trees may change. Afterwards a
        rerun may find the seed running, with which a prediction would interfere.
        """
        asked = self._options.phase is Phase.PREFLIGHT or self._is_first
        if self._is_elsewhere:  # whose transfer may run
            return False
        return self._options.check_mode or (self._options.predicts and asked)

    # Transfers

    def _seed(self) -> Life:
        summary = self._predicted
        has_begun = bool(self.state.get("seeding"))  # in an earlier run, whose transfer may have ended since
        # If this run's prediction found nothing to do, the copy is complete, and the final pass makes sure of it.
        if Step.CUTOVER not in self._decide().steps or not finds_nothing_to_do(self._predicted):
            if self._is_first:
                # Entries that only the destination has are removed only if the user agreed, or if a prediction of this
                # run found none. A rerun uses the same limit, since only the same options attach to a running seed.
                is_free = not self._job.get("delete") or bool(self._predicted)
                self.state["seeding"] = {"at": self._services.now(), "limit": -1 if is_free else 0}
            self._save()
            limit = int(self.state["seeding"]["limit"])
            is_limited = not self._may_delete and limit >= 0
            summary = yield from self._transfer(
                limit=limit if is_limited else None, tolerates=_IN_SERVICE, collect=has_begun
            )
        self._keep("seed", summary)
        self._seeded = None if summary.get("attached") else summary
        self._save()

    def _sync(self) -> Life:
        """Make delta passes until one is short enough; a seed of this very run that was is as good as a pass."""
        passes: list[Mapping[str, Any]] = []
        while not self._is_up_to_date(passes) and len(passes) < max(1, self._options.max_passes):
            passes.append((yield from self._transfer(tolerates=_IN_SERVICE)))
        self._keep("sync", {"passes": passes, "at": self._services.now()})
        self._save()
        if Step.CUTOVER in self._decide().steps and not self._is_up_to_date(passes):
            raise Stopped(
                f"after {len(passes)} passes the last one still took {passes[-1]['duration']:.0f} s, and "
                f"migrate_sync_short_enough is {self._options.short_enough:g} s. The final pass would keep the source "
                "stopped for about that long. Run again when less changes, or raise migrate_sync_short_enough"
            )

    def _cut_over(self) -> Life:
        """Make the final pass with the comparison, and write down that the destination serves from now on.

        Nobody stopped the source for this run, so it goes on serving if anything fails.
        """
        services = self._services
        self.state["cutover_at"] = services.now()
        result = yield from self._transferred(verify=self._verify)
        summary = summary_of(result, services.now())
        changed = summary["changed_meanwhile"]
        if changed["only"] == "differs":
            raise Stopped(
                f"{changed['count']} entries changed at the source during the transfer, {changed['example']} among "
                "them: something still writes there. Stop it (hooks in before_cutover do so), and run the same command "
                "again"
            )
        others = {name: one for name, one in self.state["phases"].items() if name not in ("verify", "verify_failed")}
        compared = {} if self._verify == "none" else {"verify": comparison_of(result, summary["at"])}
        self.state["phases"] = {**others, "cutover": summary, **compared}
        self.state["switch"] = {
            "done": True,
            "at": services.now(),
            "by": self._options.started_by,
            "hooks": [],
            "steps": 0,
        }
        self._save()
        self.step = Step.SWITCH
        yield Call(partial(self._hosts.keep_now, self._made_record()))

    def _is_up_to_date(self, passes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the last pass of this run was short enough, or without one the seed of this run."""
        last = passes[-1] if passes else self._seeded
        return last is not None and last["duration"] <= self._options.short_enough

    def _transfer(
        self, check: bool = False, limit: int | None = None, tolerates: Collection[str] = (), collect: bool = False
    ) -> Generator[Any, Any, Mapping[str, Any]]:
        """Make a transfer to its end and return what is kept of it; see _transferred."""
        result = yield from self._transferred(check, limit, tolerates, collect)
        return summary_of(result, self._services.now())

    def _transferred(
        self,
        check: bool = False,
        limit: int | None = None,
        tolerates: Collection[str] = (),
        collect: bool = False,
        verify: str = "none",
    ) -> Generator[Any, Any, Mapping[str, Any]]:
        """Make a transfer to its end and return its result. Raises Stopped if it fails.

        What changes at the source while it is read is a failure only if ``tolerates`` does not have it (see
        source_changes). With ``collect`` the result of one that has ended since an earlier run counts. ``verify`` is
        the comparison at its end.
        """
        services = self._services
        predicts = check or self._options.check_mode

        def make() -> Transfer:
            transfer = services.transfer(self._job, self._hosts, predicts, limit, collect, verify)
            if not predicts:
                self._hosts.keep(self._made_record())
            return transfer

        result, _begun, may_pass = yield from transfer_to_end(self._job, make, services.errors)
        changes = tell_changes(result)
        if not check or self._options.check_mode:  # the preflight of a real run predicts for itself only
            self.record.changed = self.record.changed or bool(result.get("changed"))
            self.record.diff += result.get("changes", [])
        if result.get("failed") and (self._lost or changes["only"] not in tolerates):
            raise Stopped(result["msg"], may_pass and not self._lost)
        self._warn(changes["warnings"])
        return result

    # State

    @property
    def _is_first(self) -> bool:
        """Whether no copy has begun, so that all that the destination holds is its own."""
        return not is_seeded(self.state) and not self.state.get("seeding")

    @property
    def _may_delete(self) -> bool:
        """Whether the first copy may delete what the destination has of its own."""
        return bool({"all", "true", self._job["name"]} & set(self._options.may_delete))

    def _how_to_agree(self, reason: str) -> str:
        """Return what to type where the limit of a first copy that nobody predicted was in the way."""
        is_limited = self.step is Step.SEED and int(self.state.get("seeding", {}).get("limit", -1)) == 0
        if not is_limited or self._may_delete or "max_delete" not in reason:
            return ""
        return f". Where the first copy may delete them: {agreement(self._job['name'])}"

    def _keep(self, phase: str, found: Mapping[str, Any]) -> None:
        self.state["phases"] = {**self.state["phases"], phase: dict(found)}

    def _warn(self, warnings: Collection[str]) -> None:
        self._warnings = list(dict.fromkeys([*self._warnings, *warnings]))

    def _save(self) -> None:
        self._services.store.save(self._job["name"], self._saved)

    def _made_record(self, advised: str = "") -> Mapping[str, object]:
        """Return what the destination is to keep of the job as it is now."""
        return make_record(self.state, self.step.value, self._services.now(), advised)

    @property
    def _saved(self) -> Mapping[str, Any]:
        if self._hosts is not None and self._hosts.has_kept:
            self.state["kept"] = True  # so that a run notices where it is gone
        if self._hosts is not None and self._hosts.lease is not None and self._hosts.lease.told:
            notes = dict.fromkeys([*self.state["run"]["notes"], self._hosts.lease.told])
            self.state["run"] = {**self.state["run"], "notes": list(notes)}
        return {**self.state, "warnings": self._warnings, "hooks": self.state.get("hooks", [])}

    def _report(self) -> None:
        if self._hosts is not None and self._hosts.not_kept:
            self._warn([f"{self._job['dest_host']} keeps no record of this job: {self._hosts.not_kept}"])
        self._save()
        report = make_report(
            self._saved, self._warnings, self._options.check_mode, self._predicted, self._deletions["told"]
        )
        self._services.report(report)


def _tell_interrupted(hook: Mapping[str, Any]) -> str:
    """Return what to tell of a hook that began in an earlier run, which did not write down that it ended."""
    return (
        f"the hook {hook['name']} of {hook['kind']} began on {hook['host']} ({hook['at']}), and the run was killed "
        "before it recorded its end. Where this list of hooks is run again, so is this hook"
    )
