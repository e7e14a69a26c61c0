# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of one job: its state, its hosts, its result, and what the steps of its workflow are made of.

The order of the steps is in ``workflow``, which tables decide (``phases``).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ...fleet.console import Activity
from ...fleet.scheduler import Barrier, Call, HandOver, Workflow
from ...hosts.host_runner import HostFailed, HostRunner
from ..hook_steps import HookRun, TasksResult, explain_failure, explain_tasks_failure, find_tasks, tell_failure
from ..hooks import Hook, HookDescription, HookResult, read_hook, tell_hook
from ..source_changes import tell_changes
from ..workflow import JobStopped, Transfer, hook_to_end, transfer_to_end
from .advice import advice, begin_again
from .forecast import UNKNOWN, Forecast, forecast_downtime, with_comparison, with_pass, with_prediction
from .groups import NEEDED, Gate, begin_switch, enter, joins_begun, siblings
from .history import with_transfer
from .hosts import SIDES, MigrationHosts
from .phases import Decision, Phase, Step, decide
from .prediction_check import PredictionCheck
from .preflight import lacking
from .record import find_conflict, is_switched_elsewhere, make_record
from .report import make_report
from .state import (
    AFTER,
    BEFORE,
    ComparisonResult,
    CutoverForecast,
    Identity,
    MigrationState,
    PassKind,
    ProbedHost,
    RunInfo,
    TransferSummary,
    comparison_of,
    firmness,
    summary_of,
)
from .store import MigrationStore

T = TypeVar("T")


class Options(NamedTuple):
    """Options of a run, for all its jobs. The role's variables have the same names, see its argument specs."""

    phase: Phase
    steps: Collection[Step]  # those that the user's tags leave
    started_by: str = ""
    check_mode: bool = False
    manage_packages: bool = True
    preflight_predict: bool = True
    reset: bool = False
    allow_delete: Collection[str] = ()  # names of jobs, or all
    sync_short_enough: float = 300
    sync_max_passes: int = 5
    takeover: bool = False  # of jobs that another control node works on
    run_id: str = ""  # one run may call the action several times
    compares_first: bool = True  # trees are compared before the switch
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({})  # for all jobs, by list
    hook_folder: str = ""  # of files of tasks
    groups: Mapping[str, Sequence[str]] = MappingProxyType({})  # of all jobs, the names of those in each
    hands_over: Collection[str] = ()  # names of jobs whose cutover is left to a later call of this run
    tasks_results: Mapping[str, TasksResult] = MappingProxyType({})  # by job
    continues: bool = False  # an earlier call of this run has begun the jobs
    stopped_by_hooks: Collection[str] = ()  # jobs whose group has hooks that stop it


class Services(NamedTuple):
    """What a job uses of the control node and of hosts."""

    hosts: Callable[[Mapping[str, Any]], MigrationHosts]
    # of a job and its hosts, in check mode or not, with a limit of deletions; whether one that has ended is collected
    # and what it compares at its end
    transfer: Callable[[Mapping[str, Any], MigrationHosts, bool, int | None, bool, str], Transfer]
    # of the trees of a job as its state knows them; waits for its hosts, and returns what the module verify does
    compare: Callable[[Mapping[str, Any], MigrationHosts, MigrationState], Mapping[str, Any]]
    errors: tuple[type[Exception], ...]  # that these may raise, with ``details`` for the result, or without
    store: MigrationStore
    now: Callable[[], str]  # UTC, as reports have it
    tell: Callable[[str], None]  # a line for the terminal
    report: Callable[[Mapping[str, Any]], None]  # writes the report of a job and shows it
    hook_runner: Callable[[str, Hook], HostRunner]
    # decides for the jobs of a group that wait at a gate, and returns for each why it does not go on
    decide_group: Callable[[str, Gate, Sequence[str]], Mapping[str, str]]
    # claims a job by its name, or returns why another run here has it; and lets others have it, once its destination
    # has kept a record of it, unless that is None
    claim: Callable[[str], str] = lambda _job: ""
    release: Callable[[str, Mapping[str, object] | None], None] = lambda _job, _record: None
    forecast: Callable[[MigrationState], Forecast] = lambda state: forecast_downtime(
        state, {state.name: state}, lambda seconds: sum(seconds.values())
    )
    check_predictions: Callable[[MigrationState], list[PredictionCheck]] = lambda _state: []


class Failure(NamedTuple):
    """Why a run did not do what it was to do with a job."""

    job: str
    phase: str
    reason: str
    next: str


@dataclass
class JobResult:
    """What a run did with a job."""

    name: str
    changed: bool = False
    failure: Failure | None = None
    diff: list[str] = field(default_factory=list)
    untouched: bool = False  # another run has it
    left: bool = False  # a later call of this run has more to do with it


class Differs(JobStopped):
    """The comparison at the end of a transfer found differences, which did not go away when they were sent again."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        """Take the result of the transfer."""
        super().__init__(result["msg"])
        self.result = result


class JobRun:
    """One run of one job."""

    def __init__(self, job: Mapping[str, Any], options: Options, services: Services) -> None:
        self.result = JobResult(job["name"])
        self._job, self._options, self._services = job, options, services
        self.state = MigrationState.fresh(job)
        self._warnings: list[str] = []
        self._hosts: Any = None  # once a step needs them
        self._is_unkept = False  # the destination does not know yet what was done
        self._is_elsewhere = False  # check mode found that another control node works on it
        self.step = Step.PREFLIGHT  # that is made now, or was made last
        self.activity = Activity(Step.PREFLIGHT.value)

    @property
    def group(self) -> str:
        """The jobs that switch over together; empty if it does so alone."""
        return str(self._job.get("cutover_group") or "")

    @property
    def members(self) -> Sequence[str]:
        """The names of the jobs that switch over together, this one among them."""
        return self._options.groups.get(self.group) or [str(self._job["name"])]

    def hooks_of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return a list of hooks: those for all jobs, and the job's own."""
        return [*self._options.hooks.get(kind, ()), *(self._job.get(kind) or ())]

    @property
    def _lost(self) -> str:
        """Why the job is another control node's, if it is."""
        lease = self._hosts.lease if self._hosts is not None else None
        return lease.lost if lease is not None else ""

    @property
    def _verify(self) -> str:
        """How the trees are compared: by checksum or size, or none."""
        return str(self._job.get("verify") or "checksum")

    def _decide(self) -> Decision:
        """Return the steps of this run, by the state as it is now."""
        compares = self._verify != "none"
        return decide(self.state, self._options.phase, compares=compares, check_mode=self._options.check_mode)

    # Its begin and its end

    def _begin(self) -> Failure | None:
        """Claim the job against other runs here, and read its state. Return why nothing can be done, None if it can."""
        name = self._job["name"]
        problem = "" if self._options.check_mode else self._services.claim(name)
        if problem:
            self.result.untouched = True
            return Failure(name, "start", problem, "Nothing was done.")
        try:
            self.state = self._read_state()
        except JobStopped as stopped:
            return self._refuse("start", str(stopped), "Nothing was done.")
        decision, switch = self._decide(), self.state.switch
        if decision.refused:
            return self._refuse(self._options.phase.value, decision.refused, decision.instead)
        if switch is not None and switch.done:
            self._services.tell(
                f"{name} was switched over on {switch.at}, so nothing is transferred. To begin it again: "
                f"{begin_again(self.members)}"
            )
        return None

    def _refuse(self, phase: str, reason: str, instead: str) -> Failure:
        self._services.release(self._job["name"], None)
        return Failure(self._job["name"], phase, reason, instead)

    def _read_state(self) -> MigrationState:
        """Return the state as this run finds it. Raises JobStopped if it belongs to another tree."""
        job, options, now = self._job, self._options, self._services.now
        before = None if options.reset and not options.continues else self._load(job["name"])
        state = before or MigrationState.fresh(job)
        was = state.identity
        if was != MigrationState.fresh(job).identity:
            raise JobStopped(
                f"{self._services.store.state_path(job['name'])} was written for {was.src_host}:{was.src} to "
                f"{was.dest_host}:{was.dest}, which is not what this job moves. Use another name for the job, or "
                f"begin it again with {begin_again(self.members)}"
            )
        self._warnings = list(state.warnings)
        if options.continues and state.run.id == options.run_id:
            self.step = Step(state.run.step)
            return state
        interrupted, state.hook, state.failure = state.hook, None, None
        others = [self._load(name) for name in siblings(state)]
        if joins_begun(state, others):  # of its group, decided by a run that did not come to write it down here
            begin_switch(state, now())
        if options.reset:
            state.begun_again = now()
        if state.run.at:
            state.worked = state.last_work
        state.run = RunInfo(
            at=now(),
            by=options.started_by,
            phase=options.phase.value,
            id=options.run_id,
            verify=self._verify,
            notes=[_tell_interrupted(interrupted)] if interrupted else [],
            step=self.step.value,
        )
        enter(state, self.group, options.run_id)
        return state

    def _load(self, name: str) -> MigrationState | None:
        """Return the state of a job, None if there is none. Raises JobStopped if it cannot be read."""
        store = self._services.store
        try:
            return store.read(name)
        except (OSError, ValueError) as error:
            raise JobStopped(
                f"{store.state_path(name)} cannot be read: {error}. Restore it, or remove it to begin the job again"
            ) from None

    def _reach(self) -> None:
        if self._hosts is None:
            try:
                self._hosts = self._services.hosts(self._job)
            except HostFailed as error:
                raise JobStopped(str(error)) from error

    def _let_go(self) -> Workflow:
        """Let other runs have the job, once its destination has kept where it stands."""
        is_known = self._hosts is None or self._is_unkept or self.state.failure is not None
        if self._is_unkept and not self.result.untouched:
            try:
                yield from self._keep_record(releases=True)
            except JobStopped as stopped:  # nobody can be asked, or another control node has the job
                self._warn([str(stopped)])
        self._services.release(self._job["name"], None if is_known else self._made_record())

    # What is asked of its hosts

    def _ask(self, do: Callable[[], T]) -> Generator[Any, Any, T]:
        """Wait for the answer of hosts. Raises JobStopped."""
        try:
            return (yield Call(do))  # type: ignore[no-any-return]  # what a call gives is what it returns
        except HostFailed as error:
            raise JobStopped(str(error), error.unreachable) from error

    def _hold(self) -> Workflow:
        """Make sure that a later call of this run, which goes on from here, has the job."""
        self._reach()
        yield from self._ask(self._hosts.hold)
        self._save()

    def _probe(self) -> Generator[Any, Any, dict[str, ProbedHost]]:
        """Return what both hosts say of themselves. Raises JobStopped if another control node has the job.

        A source that another control node switched over must not be brought back by this one.
        """
        probes: dict[str, ProbedHost] = yield from self._ask(self._hosts.probe)
        dest, options = probes["dest"], self._options
        holder = "" if options.takeover else self._hosts.find_holder(dest.lease)
        if holder and not options.check_mode:
            raise JobStopped(holder, is_held=True)
        self._is_elsewhere = bool(holder)
        self._warn([holder] if holder else [])
        path = self._services.store.state_path(self._job["name"])
        conflict = "" if options.reset else find_conflict(self.state, dest.record, path, self.members)
        if conflict:
            raise JobStopped(conflict, is_held=is_switched_elsewhere(self.state, dest.record))
        return probes

    def _install(self, probes: Mapping[str, ProbedHost], needed: Collection[str]) -> Generator[Any, Any, bool]:
        """Install what the hosts lack where Ansible is root; return whether something was."""
        installed = False
        for side in SIDES:
            programs = lacking(needed, probes[side].tools)
            if not programs or not probes[side].root or self._options.check_mode:
                continue
            packages, failure = yield Call(partial(self._hosts.install, side, programs))
            installed = installed or bool(packages)
            # Another method may do without them, and if none does, the transfer says so.
            self._warn([failure] if failure else [])
        self.result.changed = self.result.changed or installed
        return installed

    # Transfers

    def _predict(self) -> Generator[Any, Any, TransferSummary]:
        """Return the result of a transfer in check mode."""
        _result, summary = yield from self._transferred(None)
        self.state.rates = with_prediction(self.state.rates, summary)
        return summary

    def _transfer(
        self, kind: PassKind, limit: int | None = None, tolerates: Collection[str] = (), collect: bool = False
    ) -> Generator[Any, Any, TransferSummary]:
        """Make a transfer to its end and return what is kept of it; see _transferred."""
        _result, summary = yield from self._transferred(kind, limit, tolerates, collect)
        self.state.rates = with_pass(self.state.rates, summary)
        return summary

    def _transferred(
        self,
        kind: PassKind | None,
        limit: int | None = None,
        tolerates: Collection[str] = (),
        collect: bool = False,
        verify: str = "none",
    ) -> Generator[Any, Any, tuple[Mapping[str, Any], TransferSummary]]:
        """Make a transfer to its end and return its result, and what is kept of it. Raises JobStopped if it fails.

        Without a ``kind`` it runs in check mode. What changes at the source while it is read is a failure only if
        ``tolerates`` does not have it (see source_changes). With ``collect`` the result of one that has ended since an
        earlier run counts. ``verify`` is the comparison at its end.
        """
        services = self._services
        predicts = kind is None or self._options.check_mode

        def make() -> Transfer:
            transfer = services.transfer(self._job, self._hosts, predicts, limit, collect, verify)
            if not predicts:
                self._hosts.keep(self._made_record())
            return transfer

        result, _begun, may_pass = yield from transfer_to_end(self._job, make, services.errors)
        changes = tell_changes(result)
        if kind is not None or self._options.check_mode:  # the preflight of a real run predicts for itself only
            self.result.changed = self.result.changed or bool(result.get("changed"))
            self.result.diff += result.get("changes", [])
        summary = summary_of(result, services.now())
        failed = bool(result.get("failed") and (self._lost or changes["only"] not in tolerates))
        # One that was interrupted goes on in the next run, which counts all of it.
        if kind is not None and not predicts and (not failed or result.get("differences_total") or changes["only"]):
            self.state.history = with_transfer(self.state, kind, summary, failed=failed)
        if failed:
            if result.get("differences_total"):
                raise Differs(result)
            raise JobStopped(result["msg"], may_pass and not self._lost)
        self._warn(changes["warnings"])
        return result, summary

    def _final_pass(self) -> Workflow:
        """Bring what is left to the destination, compare the trees if that is due, and send again what differs.

        The source is in no service any more, so what changes there meanwhile is a failure.
        """
        services, phases = self._services, self.state.phases
        # A comparison of an earlier, failed cutover says nothing about this one.
        phases.verify = phases.verify_failed = None
        compares = self._options.compares_first or self._verify == "none"
        verify = self._verify if compares else "size"
        kind = PassKind.REHEARSAL if self._options.phase is Phase.REHEARSE else PassKind.CUTOVER
        try:
            result, summary = yield from self._transferred(kind, verify=verify)
        except Differs as differs:
            self.step = Step.VERIFY
            phases.verify_failed = comparison_of(differs.result, verify, services.now())
            raise
        changed = summary.changed_meanwhile
        if changed.only == "differs":
            raise JobStopped(
                f"{entries_text(changed.count)} changed at the source during the transfer, for example "
                f"{changed.example}: something still writes there. Stop it (hooks in before_cutover do so), and run "
                "the same command again"
            )
        phases.cutover = summary
        if compares and verify != "none":
            phases.verify = comparison_of(result, verify, summary.at)
            self.state.rates = with_comparison(self.state.rates, phases.verify)

    def _compared(self) -> Generator[Any, Any, ComparisonResult]:
        """Compare the trees, and keep what was found."""
        self._reach()
        try:
            result = yield Call(partial(self._services.compare, self._job, self._hosts, self.state))
        except self._services.errors as error:
            raise JobStopped(str(error)) from error
        found = comparison_of(result, self._verify, self._services.now())
        self.state.rates = with_comparison(self.state.rates, found)
        # Only a comparison that found nothing ends the phase.
        self.state.phases.verify = found if found.identical else None
        self.state.phases.verify_failed = None if found.identical else found
        return found

    # Hooks

    def _run_hooks(self, kind: str, hooks: Sequence[Mapping[str, Any]]) -> Workflow:
        """Run the hooks of a list, one after the other, without those that this run has ended. Raises JobStopped."""
        ended = self.state.run.hooks_run
        for number, hook in enumerate(hooks):
            if number >= ended.get(kind, 0):
                yield from self._run_hook(kind, hook)
                ended[kind] = number + 1
                self._save()

    def _run_hook(self, kind: str, written: Mapping[str, Any]) -> Workflow:
        """Run one hook, before which the destination says that the job is still this run's. Raises JobStopped."""
        hook, host = read_hook(written), hook_host(written, self.state.identity)
        told = tell_hook(written, kind, host)
        begun = self.state.hook
        if begun is None:
            yield from self._require_job(required=kind == BEFORE)
            self.state.hook = HookRun(**told, at=self._services.now(), began=time.time())
            self._save()
            self._services.tell(f"{self._job['name']}: hook {told['name']} ({kind}) begins on {host}")
            result = yield from hook_to_end(hook, host, self._services.hook_runner)
            if hook.tasks and not result.failed:
                yield self._hand_over(told, hook, self.state.hook)
            reason = explain_failure(told, hook, result) if result.failed else ""
        else:  # a file of tasks, which the role has run since
            result = HookResult(changed=True)
            reason = explain_tasks_failure(told, begun, self._options.tasks_results.get(self._job["name"]))
        self.result.changed = self.result.changed or result.changed
        self._end_hook("failed" if reason else "done", result.rc)
        if reason:
            raise JobStopped(reason, is_held=bool(self._lost))

    def _hand_over(self, told: HookDescription, hook: Hook, begun: HookRun) -> HandOver:
        """Return the file of tasks for the role. Raises JobStopped if there is none."""
        try:
            return HandOver(find_tasks(self._job["name"], begun, hook, self._options.hook_folder))
        except FileNotFoundError as error:
            self._end_hook("failed")
            raise JobStopped(tell_failure({"msg": str(error)}, hook=told)) from None

    def _end_hook(self, outcome: str, rc: int | None = None) -> None:
        """Note how the hook ended that ran."""
        hook, state = self.state.hook, self.state
        if hook is None:
            return
        hook.result, hook.ended, hook.rc = outcome, time.time(), rc
        state.hook = None
        state.hooks.append(hook)
        if hook.kind == AFTER and outcome == "done" and state.switch is not None:
            state.switch.hooks = [*(state.switch.hooks or ()), hook]
            state.switch.steps = len(state.switch.hooks)
        self._save()
        code = "" if rc is None else f", rc {rc}"
        seconds = (hook.ended or 0) - hook.began
        self._services.tell(f"{self._job['name']}: hook {hook.name} ({hook.kind}) {outcome}{code} in {seconds:.1f} s")

    # Groups

    def _pass_gate(self, gate: Gate) -> Workflow:
        """Wait until the whole group is at a gate. Raises JobStopped if the group does not go on."""
        group, stops = self.state.group, self._options.phase in (Phase.REHEARSE, Phase.CUTOVER)
        if not (self.group and stops) or self._has_done(f"gate {gate.value}"):
            return
        if group is not None and self.state.failure is None:
            group.stands = NEEDED[gate]
        self._save()
        reason = yield Barrier(self.group, partial(self._services.decide_group, self.group, gate))
        self._mark_done(f"gate {gate.value}")
        if reason and self.state.failure is None:
            raise JobStopped(reason)

    # State

    def _has_done(self, what: str) -> bool:
        """Whether an earlier call of this run has done a part."""
        return what in self.state.run.done

    def _mark_done(self, what: str) -> None:
        if what not in self.state.run.done:
            self.state.run.done.append(what)
        self._save()

    def _warn(self, warnings: Collection[str]) -> None:
        self._warnings = list(dict.fromkeys([*self._warnings, *warnings]))

    def _warn_unkept(self) -> None:
        """Warn if the destination did not keep the last record that it was given."""
        if self._hosts is not None and self._hosts.not_kept:
            self._warn([f"{self._job['dest_host']} keeps no record of this job: {self._hosts.not_kept}"])

    def _save(self) -> None:
        self.state.warnings = self._warnings
        if self._hosts is not None and self._hosts.has_kept:
            self.state.kept = True  # so that a run notices where it is gone
        if self._hosts is not None and self._hosts.lease is not None and self._hosts.lease.told:
            self.state.run.notes = list(dict.fromkeys([*self.state.run.notes, self._hosts.lease.told]))
        self._services.store.save(self.state)

    # What the destination keeps

    def _made_record(self) -> Mapping[str, object]:
        """Return what the destination is to keep of the job as it is now."""
        advised = advice(self.state) if self.state.failure is not None else ""
        return make_record(self.state, self.step.value, self._services.now(), advised)

    def _keep_forecast(self) -> None:
        """Keep the downtime to expect, now that the cutover begins, so that it can be compared with the real one."""
        found = self._services.forecast(self.state)
        self.state.cutover_forecast = CutoverForecast(
            at=self._services.now(),
            lasted=found.get("lasted", UNKNOWN),
            why=found.get("why", ""),
            seconds=found.get("seconds"),
            with_hooks=found.get("with_hooks", False),
        )

    def _time_final_passes(self, *, ended: bool) -> None:
        """Note that the final passes of the whole group begin, or that all of them have been compared."""
        kept = self.state.cutover_forecast
        if kept is not None and not ended and not kept.began:
            kept.began = time.time()
        elif kept is not None and ended and kept.began and kept.took is None:
            others = [one.cutover_forecast for one in self._others_of_run()]
            began = min([kept.began, *(one.began for one in others if one is not None and one.began)])
            kept.took = round(max(0.0, time.time() - began), 1)

    def _others_of_run(self) -> list[MigrationState]:
        """Return the states of the other jobs of the group, as far as they are in this run."""
        found = []
        for name in self.members:
            with contextlib.suppress(JobStopped):
                other = self._load(name) if name != self.state.name else None
                found += [other] if other is not None and other.run.id == self._options.run_id else []
        return found

    def _require_job(self, *, required: bool = False) -> Workflow:
        """Have the destination confirm that this run has the job, and keep where it stands.

        Raises JobStopped if it does not, and if ``required``, if it cannot be asked.
        """
        self._is_unkept = True
        yield from self._keep_record(required=required)

    def _keep_record(self, *, required: bool = False, releases: bool = False) -> Workflow:
        """Have the destination keep where the job stands, if it does not know. With ``releases`` others may have it."""
        if not (self._is_unkept or releases):
            return
        try:
            self._reach()
        except JobStopped as stopped:  # a host is refused now; what brings the source back must not wait for it
            if required:
                raise
            self._warn([str(stopped)])
            return
        hosts = self._hosts
        if hosts.lease is not None:
            hosts.lease.firm = firmness(self.state)
        record = self._made_record() if self._is_unkept else None
        yield Call(partial(hosts.keep_now, record, releases=releases))
        self._is_unkept = False
        if self._lost:
            raise JobStopped(self._lost, is_held=True)
        if record is not None and hosts.not_kept:
            if required:
                raise JobStopped(hosts.not_kept)
            self._warn_unkept()
            self._save()

    def _report(self, predicted: TransferSummary | None = None, deletions: str = "") -> None:
        self._warn_unkept()
        self._save()
        told = (predicted, deletions, self._services.forecast(self.state), self._services.check_predictions(self.state))
        self._services.report(make_report(self.state, self._warnings, self._options.check_mode, *told))


def hook_host(written: Mapping[str, Any], identity: Identity) -> str:
    """Return the inventory host that a hook names, maybe by its side in the job."""
    named = str(written.get("host"))
    return {"source": identity.src_host, "dest": identity.dest_host}.get(named, named)


class SwitchHooks(NamedTuple):
    """The hooks of a switch: those that ran, and those that are left, as the user wrote them."""

    done: list[HookRun]
    left: list[Mapping[str, Any]]


def divide_hooks(state: MigrationState, hooks: Sequence[Mapping[str, Any]]) -> SwitchHooks:
    """Divide the hooks of a job's switch by its state.

    A hook is known by its host and its name, one without a name by what it runs. Versions before 0.2.0 wrote down only
    how many had run: those are the first of the list.
    """
    switch = state.switch
    told = [HookRun(**tell_hook(hook, AFTER, hook_host(hook, state.identity))) for hook in hooks]
    if switch is None:
        return SwitchHooks([], list(hooks))
    if switch.hooks is None:
        return SwitchHooks(told[: switch.steps], list(hooks[switch.steps :]))
    unmatched = list(switch.hooks)
    waiting = list(range(len(hooks)))
    # Of those that share a name, what ran is found first by what it is.
    for keys in (("host", "name", "what"), ("host", "name")):
        for number in list(waiting):
            same = [one for one in unmatched if all(getattr(one, key) == getattr(told[number], key) for key in keys)]
            if same:
                unmatched.remove(same[0])
                waiting.remove(number)
    return SwitchHooks(list(switch.hooks), [hooks[number] for number in waiting])


def _tell_interrupted(hook: HookRun) -> str:
    """Return what to tell of a hook that began in an earlier run, which did not write down that it ended."""
    return (
        f"the hook {hook.name} of {hook.kind} began on {hook.host} ({hook.at}), and the run was killed before it "
        "recorded its end. Where this list of hooks is run again, so is this hook"
    )
