# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does with one migration job, from its preflight to its last comparison.

``phases`` decides by tables which of the steps below a run makes, and what it does after a failure. A step that waits
for something yields it to the scheduler. The state of the job is written before each hook and after each step, so
that a run that was killed continues here; so does a run that was handed over to the role, for a file of tasks.

    preflight   probe both hosts, install what they lack, predict the first copy
    seed        make the first copy
    sync        make delta passes until one is short enough
    cutover     [group] hooks of before_cutover [group] final pass and comparison [group]
    rehearse    hooks of cutover_failed: the source is back in service
    switch      hooks of after_cutover: the destination serves
    verify      compare the trees, unless the final pass did

At [group], jobs with the same cutover_group wait for each other, and none goes on without the others. After a failure:
before the switch the hooks of cutover_failed put the source back in service; in the switch, the hooks of switch_failed
run, since only a person can decide which host should serve.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from functools import partial
from typing import Any

from ..fleet.scheduler import Call, Workflow
from ..fleet.workflow import Stopped, retry, stop_alone
from ..host_runner import HostFailed
from .advice import advice, begin_again
from .groups import Gate, begin_switch, enter, joins_begun, siblings
from .hosts import SIDES
from .job_run import Failure, JobRun, divide_hooks
from .phases import Phase, Remedy, Step, find_remedies
from .preflight import Deletions, agreement, judge_preflight, lacking, needed_programs, tell_deletions
from .record import find_conflict, is_switched_elsewhere
from .state import (
    AFTER,
    BEFORE,
    FAILED,
    HOOKS,
    SWITCH_FAILED,
    Downtime,
    HookRun,
    MigrationState,
    PreflightResult,
    ProbedHost,
    Readiness,
    Rehearsal,
    RunInfo,
    Seeding,
    Stage,
    Switch,
    SyncResult,
    TransferSummary,
    finds_nothing_to_do,
)
from .verify import tell_differences

_IN_SERVICE = ("unread", "differs")  # what may happen to files while the source is in service
_STOPS = (Step.CUTOVER, Step.REHEARSE, Step.SWITCH)  # the steps with hooks


class MigrationWorkflow(JobRun):
    """The steps of one job in one run."""

    _predicted: TransferSummary | None = None
    _deletions = Deletions()
    _seeded: TransferSummary | None = None  # by this call, from its beginning
    _is_elsewhere = False  # check mode found that another control node works on it

    def run(self) -> Workflow:
        """Make the steps that are left of this run, and report."""
        self.result.left = True
        try:
            self.result.left = yield from self._begin_and_run()
        finally:
            if self._hosts is not None:
                self._hosts.close()

    def _begin_and_run(self) -> Generator[Any, Any, bool]:
        """Make the steps, and return whether a later call of this run has more to do."""
        name = self._job["name"]
        problem = "" if self._options.check_mode else self._services.claim(name)
        if problem:
            self.result.failure = Failure(name, "start", problem, "Nothing was done.")
            self.result.untouched = True
            return False
        try:
            self.state = self._read_state()
        except Stopped as stopped:
            return self._refuse("start", str(stopped), "Nothing was done.")
        decision = self._decide()
        if decision.refused:
            return self._refuse(self._options.phase.value, decision.refused, decision.instead)
        switch = self.state.switch
        if switch is not None and switch.done:
            self._services.tell(
                f"{name} was switched over on {switch.at}, so nothing is transferred. To begin it again: "
                f"{begin_again(name)}"
            )
        try:
            if self.state.failure is None and (yield from stop_alone(self._make_steps())):
                return True
        except Stopped as stopped:
            self._note_stopped(stopped)
        if self.state.failure is not None and not self.result.untouched and not self._options.check_mode:
            if self._hands_over and (self.group or self._remedies):
                self._save()
                return True
            yield from self._handle_failure()
        yield from self._end()
        return False

    def _refuse(self, phase: str, reason: str, instead: str) -> bool:
        self.result.failure = Failure(self._job["name"], phase, reason, instead)
        self._services.release(self._job["name"], None)
        return False

    def _make_steps(self) -> Generator[Any, Any, bool]:
        """Make the steps; return whether the rest is left to a later call of this run."""
        steps: Mapping[Step, Callable[[], Workflow]] = {
            Step.PREFLIGHT: self._preflight,  # not again: a host that was not reached yet may be named wrongly
            Step.SEED: partial(self._retry, self._seed),
            Step.SYNC: partial(self._retry, self._sync),
            Step.CUTOVER: self._cut_over,
            Step.REHEARSE: self._rehearse,
            Step.SWITCH: self._switch,
            Step.VERIFY: self._compare,
        }
        for step in Step:
            # The state after the step before decides.
            if step not in self._options.steps or step not in self._decide().steps or self._has_done(step.value):
                continue
            if self._hands_over and step not in (Step.PREFLIGHT, Step.SEED, Step.SYNC):
                yield from self._hold()
                return True
            self.step = Step.CUTOVER if step is Step.REHEARSE else step  # of which a rehearsal is a part, for people
            self.state.run.step = self.step.value
            self._reach()
            yield from steps[step]()
            self._mark_done(step.value)
        return False

    def _end(self) -> Workflow:
        """Report, and let other runs have the job, unless its source may be stopped."""
        state, failure = self.state, self.state.failure
        if failure is not None:
            self.result.failure = Failure(self._job["name"], failure.phase, failure.reason, advice(state))
            is_of_earlier_call = self._options.continues and self.step is not Step.PREFLIGHT
            self._is_unkept = self._is_unkept or self.step in (*_STOPS, Step.VERIFY) or is_of_earlier_call
        if not self._options.check_mode:
            yield from self._let_go()
        self._report(self._predicted, self._deletions.told)

    def _let_go(self) -> Workflow:
        """Let other runs have the job, once its destination has kept where it stands."""
        is_known = self._hosts is None or self._is_unkept or self.state.failure is not None
        if self._is_unkept and not self.result.untouched:
            try:
                yield from self._keep_record(releases=True)
            except Stopped as stopped:  # nobody can be asked, or another control node has the job
                self._warn([str(stopped)])
        self._services.release(self._job["name"], None if is_known else self._made_record())

    # The state

    def _read_state(self) -> MigrationState:
        """Return the state as this run finds it. Raises Stopped if it belongs to another tree."""
        job, options, now = self._job, self._options, self._services.now
        before = None if options.reset and not options.continues else self._load(job["name"])
        state = before or MigrationState.fresh(job)
        fresh = MigrationState.fresh(job)
        if state.identity != fresh.identity:
            was = state.identity
            raise Stopped(
                f"{self._services.store.state_path(job['name'])} was written for {was.src_host}:{was.src} to "
                f"{was.dest_host}:{was.dest}, which is not what this job moves. Use another name for the job, or "
                f"begin it again with {begin_again(job['name'])}"
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

    @property
    def _is_plain(self) -> bool:
        """Whether nothing but this workflow is needed to switch over: no hook, and no other job."""
        return not self.group and not any(self.hooks_of(kind) for kind in HOOKS)

    @property
    def _hands_over(self) -> bool:
        """Whether the role has to run files of tasks later, so that this call ends before the cutover."""
        return self._job["name"] in self._options.hands_over

    def _hold(self) -> Workflow:
        """Make sure that a later call of this run, which goes on from here, has the job."""
        self._reach()
        try:
            yield Call(self._hosts.hold)
        except HostFailed as error:
            raise Stopped(str(error), error.unreachable) from error
        self._save()

    def _retry(self, step: Callable[[], Workflow], most: int | None = None) -> Workflow:
        return retry(self._job["name"], step, self._services.tell, most)

    # Preflight

    def _preflight(self) -> Workflow:
        needed = needed_programs(self._job)
        self._warnings = []
        probes = yield from self._probe()
        path = self._services.store.state_path(self._job["name"])
        self._respect(probes["dest"].lease)
        record = probes["dest"].record
        conflict = "" if self._options.reset else find_conflict(self.state, record, path)
        if conflict:  # a source that another control node switched over must not be brought back by this one
            raise Stopped(conflict, is_held=is_switched_elsewhere(self.state, record))
        if self._options.manage_packages and (yield from self._install(probes, needed)):
            probes = yield from self._probe()
        problems: list[str] = []
        if self._predicts and not any(probes[side].problems for side in SIDES):
            try:
                self._predicted = yield from self._transfer(check=True)
            except Stopped as stopped:
                problems.append(str(stopped))
            else:
                seeding = self.state.seeding
                allowed = self._may_delete or (seeding is not None and seeding.limit < 0)
                self._deletions = tell_deletions(self._predicted, self._job, not self.state.is_seeded, allowed)
        verdict = judge_preflight(probes, self._job, needed, self._predicted)
        problems = [*filter(None, [self._deletions.problem]), *verdict.problems, *problems]
        self._warn(verdict.warnings)
        if problems:
            raise Stopped("the preflight found these problems:" + "".join(f"\n- {one}" for one in problems))
        before = self.state.phases.preflight
        predicted = self._predicted or (before.predicted if before else None)
        self.state.phases.preflight = PreflightResult(self._services.now(), predicted, probes["source"], probes["dest"])

    def _respect(self, found: object) -> None:
        """Leave the job alone if another control node works on it; ``found`` is the lease at the destination."""
        told = self._hosts.find_holder(found)
        if not told or self._options.takeover:
            return
        if not self._options.check_mode:
            raise Stopped(told, is_held=True)
        self._is_elsewhere = True
        self._warn([told])

    def _probe(self) -> Generator[Any, Any, dict[str, ProbedHost]]:
        try:
            probes: dict[str, ProbedHost] = yield Call(self._hosts.probe)
        except HostFailed as error:
            raise Stopped(str(error), error.unreachable) from error
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

    @property
    def _predicts(self) -> bool:
        """Whether this run predicts what the transfer would do.

        Whenever the user asks for it, and until the first copy has begun, since both trees may change. Afterwards a
        rerun may find the seed running, with which a prediction would interfere.
        """
        if self._is_elsewhere:  # whose transfer may run
            return False
        asked = self._options.phase is Phase.PREFLIGHT or self._is_first
        return self._options.check_mode or (self._options.preflight_predict and asked)

    # Copies while the source serves

    def _seed(self) -> Workflow:
        summary, seeding = self._predicted, self.state.seeding
        # If this run's prediction found nothing to do, the copy is complete, and the final pass makes sure of it.
        if summary is None or Step.CUTOVER not in self._decide().steps or not finds_nothing_to_do(summary):
            has_begun = seeding is not None  # in an earlier run, whose transfer may have ended since
            if seeding is None and not self.state.is_seeded:
                # Entries that only the destination has are removed only if the user agreed, or if a prediction of this
                # run found none. A rerun uses the same limit, since only the same options attach to a running seed.
                is_free = not self._job.get("delete") or self._predicted is not None
                self.state.seeding = seeding = Seeding(self._services.now(), -1 if is_free else 0)
            self._save()
            limit = seeding.limit if seeding else -1
            is_limited = not self._may_delete and limit >= 0
            try:
                summary = yield from self._transfer(
                    limit=limit if is_limited else None, tolerates=_IN_SERVICE, collect=has_begun
                )
            except Stopped as stopped:
                if not is_limited or "max_delete" not in str(stopped):
                    raise
                how = f"{stopped}. Where the first copy may delete them: {agreement(self._job['name'])}"
                raise Stopped(how, stopped.may_pass, stopped.is_held) from stopped
        self.state.phases.seed = summary
        self._seeded = None if summary.attached else summary
        self._save()

    def _sync(self) -> Workflow:
        """Make delta passes until one is short enough; a seed of this very run that was is as good as a pass."""
        options = self._options
        passes: list[TransferSummary] = []

        def is_up_to_date() -> bool:
            last = passes[-1] if passes else self._seeded
            return last is not None and last.duration <= options.sync_short_enough

        while not is_up_to_date() and len(passes) < max(1, options.sync_max_passes):
            passes.append((yield from self._transfer(tolerates=_IN_SERVICE)))
        self.state.phases.sync = SyncResult(passes, self._services.now())
        self._save()
        if Step.CUTOVER in self._decide().steps and not is_up_to_date():
            raise Stopped(
                f"after {len(passes)} passes the last one still took {passes[-1].duration:.0f} s, and "
                f"migrate_sync_short_enough is {options.sync_short_enough:g} s. The final pass would keep the source "
                "stopped for about that long. Run again when less changes, or raise migrate_sync_short_enough"
            )

    @property
    def _is_first(self) -> bool:
        """Whether no copy has begun, so that all that the destination holds is its own."""
        return not self.state.is_seeded and self.state.seeding is None

    @property
    def _may_delete(self) -> bool:
        """Whether the first copy may delete what the destination has of its own."""
        return bool({"all", "true", self._job["name"]} & set(self._options.allow_delete))

    # The cutover

    def _cut_over(self) -> Workflow:
        """Stop the source, and bring what is left to the destination."""
        state = self.state
        yield from self._pass_gate(Gate.STOP)
        if not self._has_done("stop"):
            now = self._services.now()
            state.cutover_at = now
            if not self._is_plain:  # else nobody stopped it, and it serves if anything fails
                state.stopped_at = state.stopped_at if state.stopped and state.stopped_at else now
                state.stopped = True
            self._mark_done("stop")
            if not self.hooks_of(BEFORE) and not self._is_plain:  # each hook asks for itself
                yield from self._require_job(required=True)
        yield from self._run_hooks(BEFORE, self.hooks_of(BEFORE))
        self._stand(Readiness.STOPPED)
        yield from self._pass_gate(Gate.COPY)
        # Nothing serves meanwhile, so what does not pass soon brings the source back.
        yield from self._retry(self._final_pass, most=1 if state.stage is Stage.STOPPED else None)
        self._stand(Readiness.READY)
        yield from self._pass_gate(Gate.SWITCH)  # which begins the switch of the whole group

    def _switch(self) -> Workflow:
        """Let the destination serve. A switch that has begun is not undone, and the next run continues it."""
        state = self.state
        if state.switch is None:
            state.switch = Switch(at=self._services.now(), hooks=[])
        hooks = divide_hooks(state, self.hooks_of(AFTER))
        state.switch.hooks, state.switch.steps = list(hooks.done), len(hooks.done)
        self._save()
        if not hooks.left and not self._is_plain:  # each hook asks for itself
            yield from self._require_job()
        for hook in hooks.left:
            yield from self._run_hook(AFTER, hook)
        now = self._services.now()
        self._end_downtime(now, "the new host")
        state.switch.done, state.switch.at, state.switch.by = True, now, state.run.by
        state.stopped = False
        self._is_unkept = True
        self._save()

    def _rehearse(self) -> Workflow:
        """Put the source back in service, and note how long a cutover takes."""
        state, phases = self.state, self.state.phases
        yield from self._run_hooks(FAILED, self.hooks_of(FAILED))
        self._serve_again()
        served = state.downtimes[-1].to if self.hooks_of(BEFORE) else self._services.now()
        # What was found says nothing about the trees from now on.
        phases.rehearsal = Rehearsal(served, state.cutover_at, phases.cutover, phases.verify)
        phases.cutover = phases.verify = phases.verify_failed = None
        self._is_unkept = True
        self._save()

    def _compare(self) -> Workflow:
        yield from self._keep_record()  # a comparison may take hours
        found = yield from self._compared()
        self._is_unkept = True
        self._save()
        if not found.identical:
            raise Stopped(tell_differences(found))

    # Failures

    def _note_stopped(self, stopped: Stopped) -> None:
        """Note why the step at hand failed. A job that another run has is left as it is."""
        self.result.untouched = bool(self._lost or stopped.is_held)
        self._note_failure(self._lost or str(stopped), lost=self.result.untouched)
        self._end_hook("failed")
        is_copy = self.step in (Step.SEED, Step.SYNC)
        self._is_unkept = is_copy and not stopped.may_pass
        self._save()

    def _handle_failure(self) -> Workflow:
        """Run what undoes a failure, once the rest of the group knows of it."""
        for gate in Gate:
            yield from self._pass_gate(gate)
        for remedy in self._remedies:
            if not self._has_done(f"undo {remedy.value}"):
                kind = FAILED if remedy is Remedy.REVIVE else SWITCH_FAILED
                try:
                    yield from stop_alone(self._run_hooks(kind, self.hooks_of(kind)))
                    if remedy is Remedy.REVIVE:
                        self._serve_again()
                except Stopped as stopped:
                    self._note_failed_remedy(kind, stopped)
                self._is_unkept = True
                self._mark_done(f"undo {remedy.value}")

    @property
    def _remedies(self) -> tuple[Remedy, ...]:
        return find_remedies(self.state, in_switch=self.step is Step.SWITCH)

    def _note_failed_remedy(self, kind: str, stopped: Stopped) -> None:
        is_of_hook = bool(self.state.hooks and self.state.hooks[-1].result == "failed")
        then = f"and a hook of {kind} failed, too" if is_of_hook else "and what was to undo it could not be done"
        if self.state.failure is not None:
            self.state.failure.reason += f" -- {then}: {stopped}"

    def _serve_again(self) -> None:
        """Note that the source is back in service, unless nothing puts it there."""
        is_still = bool(self.hooks_of(BEFORE)) and not self.hooks_of(FAILED)
        if not is_still:
            self._end_downtime(self._services.now(), "the old host again")
        self.state.stopped = is_still

    def _end_downtime(self, now: str, serves: str) -> None:
        """Note the time from the first hook that stops the source until a host serves again.

        Without such hooks nothing is known of it.
        """
        state = self.state
        if self.hooks_of(BEFORE) and state.stopped_at:
            rehearses = self._options.phase is Phase.REHEARSE
            state.downtimes.append(Downtime(state.stopped_at, now, serves, rehearses or None))

    def _stand(self, standing: Readiness) -> None:
        """Write down how far the job is; the others of its group wait for it."""
        if self.state.group is not None:
            self.state.group.stands = standing
        self._save()


def _tell_interrupted(hook: HookRun) -> str:
    """Return what to tell of a hook that began in an earlier run, which did not write down that it ended."""
    return (
        f"the hook {hook.name} of {hook.kind} began on {hook.host} ({hook.at}), and the run was killed before it "
        "recorded its end. Where this list of hooks is run again, so is this hook"
    )
