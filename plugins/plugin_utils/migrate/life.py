# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a migration job until its first hook: preflight, first copy, delta passes.

``steps`` decides which of these a run makes, ``fleet/conductor`` drives the lives of all jobs. What follows, from the
first hook on, is in ``cutover`` and the role's tasks, since hooks are the user's own tasks. A job that has none, and
waits for no other job, is switched over here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from ..fleet.scheduler import Call, Workflow
from ..fleet.workflow import Stopped, stop_alone
from ..host_runner import HostFailed
from .advice import advice, begin_again
from .deletions import agreement, tell_deletions
from .groups import begin_switch, enter, joins_begun, siblings
from .hosts import SIDES, Found
from .preflight import judge_preflight
from .programs import lacking, needed_programs
from .record import find_conflict, is_switched_elsewhere
from .remedies import find_remedies
from .stages import HOOKS, Stage, is_seeded, stage_of
from .steps import Phase, Step
from .store import fresh_state, identity_of
from .transfers import finds_nothing_to_do
from .work import Failure, JobWork, Options, Services

STEPS = (Step.PREFLIGHT, Step.SEED, Step.SYNC)  # of which a life consists, and for a job without hooks, the cutover
_IN_SERVICE = ("unread", "differs")  # what may happen to files while the source is in service


class JobLife(JobWork):
    """What the conductor does with a job in one run."""

    def __init__(self, job: Mapping[str, Any], options: Options, services: Services) -> None:
        super().__init__(job, options, services)
        self._predicted: Mapping[str, Any] = {}
        self._deletions = {"told": "", "problem": ""}
        self._seeded: Mapping[str, Any] | None = None  # by this run, from its beginning
        self._is_elsewhere = False  # check mode found that another control node works on it

    def live(self) -> Workflow:
        """Make the steps of this run, one after the other, and report."""
        name = self._job["name"]
        problem = "" if self._options.check_mode else self._services.claim(name)
        if problem:
            self.record.failure, self.record.untouched = Failure(name, "start", problem, "Nothing was done."), True
            return
        yield from self._live()
        if not (self.goes_on or self._options.check_mode):
            is_known = self._hosts is None or self.record.failure is not None or self.step is Step.SWITCH
            self._services.release(name, None if is_known else self._made_record())

    @property
    def goes_on(self) -> bool:
        """Whether the role has more to do with the job in this run: its hooks, or those that undo what failed."""
        if self._options.check_mode or self.record.untouched:
            return False
        if self.record.failure:
            return bool(self.state and find_remedies(self.state, in_switch=False))
        return bool(self.left)

    def _live(self) -> Workflow:
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
            yield from stop_alone(self._make_steps())
            if self.left and not self._options.check_mode:
                yield from self._hold()
        except Stopped as stopped:
            reason = self._lost or str(stopped) + self._how_to_agree(str(stopped))
            self.record.untouched = bool(self._lost or stopped.is_held)
            self._note_failure(reason, lost=self.record.untouched)
            self.record.failure = Failure(self._job["name"], self.step.value, reason, advice(self.state))
            is_final = not (stopped.may_pass or self._options.check_mode or self.record.untouched)
            if self.step is not Step.PREFLIGHT and is_final:
                yield Call(partial(self._hosts.keep_now, self._made_record(advice(self.state))))
        finally:
            if self._hosts is not None:
                self._hosts.close()
        if self.record.failure or not self.left:
            self._report(self._predicted, self._deletions["told"])
        else:
            self.state = dict(enter(self.state, str(self._job.get("cutover_group") or ""), self._options.run_id))
            self._save()  # the role's tasks go on from there

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

    @property
    def _is_by_itself(self) -> bool:
        """Whether nothing but this life is needed to switch the job over: no hook, and no other job."""
        job, options = self._job, self._options
        waits = options.has_hooks or job.get("cutover_group") or any(job.get(kind) for kind in HOOKS)
        in_order = options.compares_first or self._verify == "none"
        return options.phase is Phase.CUTOVER and stage_of(self.state) is Stage.SERVING and in_order and not waits

    def _make_steps(self) -> Workflow:
        steps = (*STEPS, Step.CUTOVER) if self._is_by_itself else STEPS
        wanted = [step for step in steps if step in self._options.steps]
        if not set(wanted) & set(self._decide().steps):
            return
        self._reach()
        made: dict[Step, Callable[[], Workflow]] = {
            Step.PREFLIGHT: self._preflight,  # not again: a host that was not reached yet may be named wrongly
            Step.SEED: partial(self._persist, self._seed),
            Step.SYNC: partial(self._persist, self._sync),
            Step.CUTOVER: partial(self._persist, self._cut_over),
        }
        for step in wanted:
            if step in self._decide().steps:  # which the state after the step before decides
                self.step = step
                yield from made[step]()

    def _hold(self) -> Workflow:
        """Make sure that the role, which goes on from here, has the job."""
        self._reach()
        try:
            yield Call(self._hosts.hold)
        except HostFailed as error:
            raise Stopped(str(error), error.unreachable) from error

    # Preflight

    def _preflight(self) -> Workflow:
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

    def _seed(self) -> Workflow:
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

    def _sync(self) -> Workflow:
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

    def _cut_over(self) -> Workflow:
        """Make the final pass with the comparison, and write down that the destination serves from now on.

        Nobody stopped the source for this run, so it goes on serving if anything fails.
        """
        services = self._services
        self.state["cutover_at"] = services.now()
        yield from self._final_pass(compares=True)
        self._note_switched(services.now())
        self._save()
        self.step = Step.SWITCH
        yield Call(partial(self._hosts.keep_now, self._made_record()))

    def _is_up_to_date(self, passes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the last pass of this run was short enough, or without one the seed of this run."""
        last = passes[-1] if passes else self._seeded
        return last is not None and last["duration"] <= self._options.short_enough

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


def _tell_interrupted(hook: Mapping[str, Any]) -> str:
    """Return what to tell of a hook that began in an earlier run, which did not write down that it ended."""
    return (
        f"the hook {hook['name']} of {hook['kind']} began on {hook['host']} ({hook['at']}), and the run was killed "
        "before it recorded its end. Where this list of hooks is run again, so is this hook"
    )
