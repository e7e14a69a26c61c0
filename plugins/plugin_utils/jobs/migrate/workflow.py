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

import contextlib
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...fleet.console import Activity
from ...fleet.scheduler import Barrier, Workflow
from ..workflow import JobStopped, retry, stop_alone
from .advice import advice
from .groups import Gate
from .job_run import Failure, JobRun, divide_hooks
from .phases import Phase, Remedy, Step, find_remedies
from .preflight import agreement, judge_preflight, judge_tree_users, needed_programs
from .state import (
    AFTER,
    BEFORE,
    FAILED,
    HOOKS,
    SERVED_BY_NEW,
    SERVED_BY_OLD,
    SWITCH_FAILED,
    Downtime,
    JobFailure,
    PassKind,
    PreflightResult,
    Rehearsal,
    Seeding,
    Stage,
    Switch,
    SyncResult,
    TransferSummary,
    WorkingRun,
    finds_nothing_to_do,
)
from .verify import tell_differences

_IN_SERVICE = ("unread", "differs")  # what may happen to files while the source is in service
_REVIVED = "revived"  # among what a run has done
_STOPS = (Step.CUTOVER, Step.REHEARSE, Step.SWITCH)  # the steps with hooks


class MigrationWorkflow(JobRun):
    """The steps of one job in one run."""

    _predicted: TransferSummary | None = None
    _deletions = ""  # that the prediction found
    _seeded: TransferSummary | None = None  # by this call, from its beginning

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
        self.result.failure = self._begin()
        if self.result.failure is not None:
            return False
        try:
            if self.state.failure is None and (yield from stop_alone(self._make_steps())):
                return True
        except JobStopped as stopped:
            self._note_stopped(stopped)
        failure = self.state.failure
        if failure is not None and not self.result.untouched and not self._options.check_mode:
            if self._hands_over and (self.group or self._remedies):
                self._save()
                return True
            yield from self._handle_failure(failure)
        yield from self._end()
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
            self.state.worked = WorkingRun(self.state.run.at, self.state.run.by, self.state.run.phase)
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
        self._report(self._predicted, self._deletions)

    @property
    def _is_plain(self) -> bool:
        """Whether nothing but this workflow is needed to switch over: no hook, and no other job."""
        return not self.group and not any(self.hooks_of(kind) for kind in HOOKS)

    @property
    def _hands_over(self) -> bool:
        """Whether the role has to run files of tasks later, so that this call ends before the cutover."""
        return self._job["name"] in self._options.hands_over

    def _retry(self, step: Callable[[], Workflow], most: int | None = None) -> Workflow:
        return retry(self._job["name"], step, self._services.tell, most)

    # Preflight

    def _preflight(self) -> Workflow:
        """Probe both hosts, install what they lack, predict the first copy, and judge by all that."""
        needed, self._warnings = needed_programs(self._job), []
        probes = yield from self._probe()
        if self._options.manage_packages and (yield from self._install(probes, needed)):
            probes = yield from self._probe()
        unpredicted = []
        if self._predicts and not any(probe.problems for probe in probes.values()):
            try:
                self.activity = Activity("reading", "preflight, reading")
                self._predicted = yield from self._predict()
            except JobStopped as stopped:
                unpredicted.append(str(stopped))
        is_seeded, may_delete = self.state.is_seeded, self._deletes_freely
        found = judge_preflight(probes, self._job, needed, self._predicted, is_seeded, may_delete)
        self._deletions = found.deletions
        self._warn(found.warnings)
        problems = [*found.problems, *unpredicted]
        if problems:
            raise JobStopped("the preflight found these problems:" + "".join(f"\n- {one}" for one in problems))
        before = self.state.phases.preflight
        predicted = self._predicted or (before.predicted if before else None)
        self.state.phases.preflight = PreflightResult(self._services.now(), predicted, probes["source"], probes["dest"])

    @property
    def _predicts(self) -> bool:
        """Whether this run predicts what the transfer would do.

        Whenever the user asks for it, and until the first copy has begun, since both trees may change. Afterwards a
        rerun may find the seed running, with which a prediction would interfere.
        """
        if self._is_elsewhere:  # whose transfer may run
            return False
        is_first = not self.state.is_seeded and self.state.seeding is None
        asked = self._options.phase is Phase.PREFLIGHT or is_first
        return self._options.check_mode or (self._options.preflight_predict and asked)

    # Copies while the source serves

    def _seed(self) -> Workflow:
        """Make the first copy.

        Entries that only the destination has are removed only if the user agreed, or if a prediction of this run found
        none. A rerun uses the same limit, since only the same options attach to a running seed.
        """
        summary, state = self._predicted, self.state
        # If this run's prediction found nothing to do, the copy is complete, and the final pass makes sure of it.
        if summary is None or Step.CUTOVER not in self._decide().steps or not finds_nothing_to_do(summary):
            has_begun = state.seeding is not None  # in an earlier run, whose transfer may have ended since
            if state.seeding is None:
                is_free = not self._job.get("delete") or self._predicted is not None
                state.seeding = Seeding(self._services.now(), -1 if is_free else 0)
            self._save()
            limit = None if self._deletes_freely else 0
            self.activity = Activity(Step.SEED.value, "first copy")
            try:
                summary = yield from self._transfer(PassKind.SEED, limit, tolerates=_IN_SERVICE, collect=has_begun)
            except JobStopped as stopped:
                if limit is None or "max_delete" not in str(stopped):
                    raise
                how = f"{stopped}. Where the first copy may delete them: {agreement(self._job['name'])}"
                raise JobStopped(how, stopped.may_pass, stopped.is_held) from stopped
        state.phases.seed = summary
        self._seeded = None if summary.attached else summary

    def _sync(self) -> Workflow:
        """Make delta passes until one is short enough; a seed of this very run that was is as good as a pass."""
        options = self._options
        passes: list[TransferSummary] = []

        def is_up_to_date() -> bool:
            last = passes[-1] if passes else self._seeded
            return last is not None and last.duration <= options.sync_short_enough

        most = max(1, options.sync_max_passes)
        while not is_up_to_date() and len(passes) < most:
            number = len(passes) + 1
            self.activity = Activity(f"pass {number}/{most}", f"pass {number} of at most {most}")
            passes.append((yield from self._transfer(PassKind.SYNC, tolerates=_IN_SERVICE)))
        self.state.phases.sync = SyncResult(passes, self._services.now())
        if Step.CUTOVER in self._decide().steps and not is_up_to_date():
            made = counted(len(passes), "pass", "passes")
            raise JobStopped(
                f"after {made} the last one still took {passes[-1].duration:.0f} s, and "
                f"migrate_sync_short_enough is {options.sync_short_enough:g} s. The final pass would keep the source "
                "stopped for about that long. Run again when less changes, or raise migrate_sync_short_enough"
            )

    @property
    def _deletes_freely(self) -> bool:
        """Whether the first copy may delete what the destination has of its own."""
        seeding, agreed = self.state.seeding, {"all", "true", self._job["name"]} & set(self._options.allow_delete)
        return bool(agreed) or (seeding is not None and seeding.limit < 0)

    # The cutover

    def _cut_over(self) -> Workflow:
        """Stop the source, and bring what is left to the destination."""
        state = self.state
        if not self._has_done("stop"):
            yield from self._require_unused()
        yield from self._pass_gate(Gate.STOP)
        if not self._has_done("stop"):
            self._keep_forecast()
            now = self._services.now()
            state.cutover_at = now
            if not self._is_plain:  # else nobody stopped it, and it serves if anything fails
                state.stopped_at = state.stopped_at if state.stopped and state.stopped_at else now
                state.stopped = True
            self._mark_done("stop")
            if not self.hooks_of(BEFORE) and not self._is_plain:  # each hook asks for itself
                yield from self._require_job(required=True)
        yield from self._run_hooks(BEFORE, self.hooks_of(BEFORE))
        yield from self._pass_gate(Gate.COPY)
        self._time_final_passes(ended=False)
        self.activity = Activity("final", "final pass")
        # Nothing serves meanwhile, so what does not pass soon brings the source back.
        yield from self._retry(self._final_pass, most=1 if state.stage is Stage.STOPPED else None)
        yield from self._pass_gate(Gate.SWITCH)  # which begins the switch of the whole group
        self._time_final_passes(ended=True)

    def _require_unused(self) -> Workflow:
        """Stop before the source does, if something writes to the tree at the destination since the preflight."""
        self._reach()
        found = judge_tree_users(self._job, (yield from self._ask(self._hosts.find_tree_users)))
        self._warn(found.warnings)
        if found.problems:
            raise JobStopped(". ".join(found.problems))

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
        self._end_downtime(now, SERVED_BY_NEW)
        state.switch.done, state.switch.at, state.switch.by = True, now, state.run.by
        state.stopped = False
        self._is_unkept = True

    def _rehearse(self) -> Workflow:
        """Put the source back in service, and note how long a cutover takes."""
        state, phases = self.state, self.state.phases
        yield from self._run_hooks(FAILED, self.hooks_of(FAILED))
        served = self._services.now()
        still = yield from self._serve_again(served)
        if still:
            raise JobStopped(still)
        # What was found says nothing about the trees from now on.
        phases.rehearsal = Rehearsal(served, state.cutover_at, phases.cutover, phases.verify)
        phases.cutover = phases.verify = phases.verify_failed = None
        self._is_unkept = True

    def _compare(self) -> Workflow:
        yield from self._keep_record()  # a comparison may take hours
        found = yield from self._compared()
        self._is_unkept = True
        if not found.identical:
            raise JobStopped(tell_differences(found))

    # Failures

    def _note_stopped(self, stopped: JobStopped) -> None:
        """Note why the step at hand failed. A job that another run has is left as it is."""
        lost = self.result.untouched = bool(self._lost or stopped.is_held)
        self.state.failure = JobFailure(self.step.value, self._services.now(), self._lost or str(stopped), lost)
        self._end_hook("failed")
        is_copy = self.step in (Step.SEED, Step.SYNC)
        self._is_unkept = is_copy and not stopped.may_pass
        self._save()

    def _handle_failure(self, failure: JobFailure) -> Workflow:
        """Run what undoes a failure, once the rest of the group knows of it."""
        for gate in Gate:
            yield from self._pass_gate(gate)
        for remedy in self._remedies:
            if not self._has_done(f"undo {remedy.value}"):
                kind = FAILED if remedy is Remedy.REVIVE else SWITCH_FAILED
                try:
                    yield from stop_alone(self._run_hooks(kind, self.hooks_of(kind)))
                    if remedy is Remedy.REVIVE:
                        still = yield from self._serve_again(self._services.now())
                        failure.reason += f" -- and {still}" if still else ""
                except JobStopped as stopped:
                    is_of_hook = bool(self.state.hooks and self.state.hooks[-1].result == "failed")
                    then = f"a hook of {kind} failed, too" if is_of_hook else "what was to undo it could not be done"
                    failure.reason += f" -- and {then}: {stopped}"
                self._is_unkept = True
                self._mark_done(f"undo {remedy.value}")

    @property
    def _remedies(self) -> tuple[Remedy, ...]:
        return find_remedies(self.state, in_switch=self.step is Step.SWITCH)

    def _serve_again(self, now: str) -> Generator[Any, Any, str]:
        """Note that the source is back in service since ``now``, unless nothing puts it there.

        Its group has one truth: what a job of it stopped on the same host and could not bring back may be what serves
        this tree, too. Return a sentence on that, empty if there is no such job.
        """
        has_hooks = bool(self.hooks_of(FAILED)) or not self.hooks_of(BEFORE)
        if has_hooks:
            self._mark_done(_REVIVED)
        if self.group:
            yield Barrier(self.group, lambda waiting: dict.fromkeys(waiting, ""))
        still = self._find_unrevived()
        if has_hooks and not still:
            self._end_downtime(now, SERVED_BY_OLD)
        self.state.stopped = bool(still) or not has_hooks
        if not (has_hooks and still):
            return ""
        source = self.state.identity.src_host
        return f"{source} may still be stopped by the hooks of job {', '.join(still)}, which could not bring it back"

    def _find_unrevived(self) -> list[str]:
        """Return the other jobs of the group that may have left the same source stopped."""
        found = []
        for name in self.members:
            with contextlib.suppress(JobStopped):
                other = self._load(name) if name != self.state.name else None
                is_revived = other and other.run.id == self._options.run_id and _REVIVED in other.run.done
                if other and other.stopped and other.identity.src_host == self.state.identity.src_host:
                    found += [] if is_revived else [name]
        return found

    def _end_downtime(self, now: str, serves: str) -> None:
        """Note the time from the first hook that stops the source until a host serves again.

        The downtime of a group begins with the first of its jobs. Without such hooks nothing is known of it.
        """
        state = self.state
        if state.stopped_at and (self.hooks_of(BEFORE) or state.name in self._options.stopped_by_hooks):
            rehearses = self._options.phase is Phase.REHEARSE
            state.downtimes.append(Downtime(self._find_stop(), now, serves, rehearses or None))

    def _find_stop(self) -> str:
        """Return when the first job of the group was stopped in this run."""
        others = [one.stopped_at for one in self._others_of_run() if one.stopped_at]
        return min([self.state.stopped_at, *others])
