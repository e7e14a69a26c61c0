# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cutover of a job that has hooks, or waits for the other jobs of its group.

Hooks are the user's own tasks, so the role runs them, and between them has this do the acts that follow one another.
From act to act the state of the job goes by way of the disk, so that a rerun of a killed run finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ..fleet.scheduler import Call, Workflow
from ..fleet.workflow import Stopped, stop_alone
from ..hooks import Told
from .advice import advice
from .comparisons import places
from .groups import Standing
from .remedies import find_remedies
from .stages import HOOKS, firmness
from .steps import Phase, Step
from .switch import KIND as AFTER
from .transfers import comparison_of
from .work import COMPARED, Failure, JobWork, Options, Services


class Act(Enum):
    """What is done with a job between its hooks, in about this order."""

    STOP = "stop"  # its cutover begins: hooks that stop the source follow
    STOPPED = "stopped"  # these have run
    COPY = "copy"  # the final pass, with the comparison
    SWITCH = "switch"  # the switch begins: the hooks after the cutover follow
    COMPLETE = "complete"  # these have run; or, in a rehearsal, those that put the source back in service
    COMPARE = "compare"  # the trees, where that was not done before the switch
    REPORT = "report"
    # Of one hook
    BEGIN_HOOK = "begin_hook"
    END_HOOK = "end_hook"
    # After a failure
    FAIL = "fail"
    SERVE = "serve"  # the hooks of cutover_failed have run
    FAIL_AGAIN = "fail_again"  # so has a remedy


_NAMED = 5  # differences in a message
_RECORDED = (Step.CUTOVER, Step.SWITCH, Step.VERIFY)  # of the others migrate_conduct has kept a record


class Asked(NamedTuple):
    """What the role's tasks ask for, beside the acts."""

    acts: Sequence[Act]
    stops: bool = False  # there are hooks that stop the source
    revives: bool = False  # there are hooks that put it back in service
    ran: Sequence[Told] = ()  # the hooks of the switch that have run
    switches: bool = False  # hooks of the switch are left
    hook: Mapping[str, Any] = MappingProxyType({})  # that begins, as hooks.tell_hook tells it
    reason: str = ""  # of a failure
    lost: bool = False  # it was that another control node has the job


class Cutover(JobWork):
    """One task's part of the cutover of a job. Once it has lived, ``state`` is as it was saved."""

    def __init__(self, job: Mapping[str, Any], options: Options, services: Services, asked: Asked) -> None:
        super().__init__(job, options, services)
        self._asked = asked
        self._is_unkept = False  # the destination does not know yet what was done
        self.stopped = ""  # why the acts were not done

    @property
    def hook(self) -> Mapping[str, Any]:
        """The hook that runs, as it was told; empty if none does."""
        hook: Mapping[str, Any] = self.state.get("hook", {})
        return hook

    def live(self) -> Workflow:
        """Do the acts, up to one that fails."""
        try:
            self._read_state()
        except Stopped as stopped:
            self.stopped = str(stopped)
            return
        acts: Mapping[Act, Callable[[], Workflow | None]] = {
            Act.STOP: self._stop,
            Act.STOPPED: self._stopped,
            Act.COPY: self._copy,
            Act.SWITCH: self._switch,
            Act.COMPLETE: self._complete,
            Act.COMPARE: self._compare,
            Act.REPORT: self._end,
            Act.BEGIN_HOOK: self._begin_hook,
            Act.END_HOOK: self._end_hook,
            Act.FAIL: self._fail,
            Act.SERVE: self._serve,
            Act.FAIL_AGAIN: self._fail_again,
        }
        try:
            for act in self._asked.acts:
                waits = acts[act]()
                if waits is not None:
                    yield from stop_alone(waits)
            yield from self._keep_record()
        except Stopped as stopped:
            self.stopped = self._lost or str(stopped)
            if not self.state["failure"]:
                self._note_failure(self.stopped, lost=bool(self._lost or stopped.is_held))
            self._save()
        finally:
            if self._hosts is not None:
                self._hosts.close()

    def _read_state(self) -> None:
        """Read what the act before has left. Raises Stopped."""
        state = self._load(self._job["name"])
        if not state:
            path = self._services.store.state_path(self._job["name"])
            raise Stopped(f"{path} is gone, which the run has written. Run it again when you know why")
        self.state = dict(state)
        self._warnings = list(state.get("warnings", []))
        self.step = Step(state["run"].get("step", Step.CUTOVER.value))

    # The cutover

    def _stop(self) -> Workflow:
        if self.state["failure"]:  # of the copy; the source may be stopped since an earlier cutover
            raise Stopped(self.state["failure"]["reason"])
        if not self._is_due(Step.CUTOVER):
            return
        now = self._services.now()
        # An earlier cutover that failed may have left it stopped.
        since = self.state.get("quiesced_at", now) if self.state["quiesced"] else now
        self._enter(Step.CUTOVER)
        self.state.update(cutover_at=now, quiesced=True, quiesced_at=since)
        self._save()
        if not self._asked.stops:  # each hook asks for itself
            yield from self._require_job(required=True)

    def _stopped(self) -> None:
        if self._is_due(Step.CUTOVER):
            self._stand(Standing.STOPPED)

    def _copy(self) -> Workflow:
        if not self._is_due(Step.CUTOVER):
            return
        self._reach()
        # Nothing serves meanwhile, so what does not pass soon brings the source back.
        yield from self._persist(partial(self._final_pass, compares=self._options.compares_first), most=1)
        self._stand(Standing.READY)

    def _switch(self) -> Workflow:
        if not self._is_due(Step.SWITCH):
            return
        self._enter(Step.SWITCH)
        ran = list(self._asked.ran)
        begun = {"done": False, "at": self._services.now(), **self.state["switch"]}
        self.state["switch"] = {**begun, "hooks": ran, "steps": len(ran)}
        self._save()
        if not self._asked.switches:  # each hook asks for itself
            yield from self._require_job()

    def _complete(self) -> None:
        if self._is_due(Step.SWITCH):
            now = self._services.now()
            self._end_downtime(now, "the new host")
            self._note_switched(now)
            self.state["quiesced"] = False
        elif self._is_due(Step.REHEARSE):
            self._serve_again()
            self._note_rehearsal()
        else:
            return
        self._save()
        self._is_unkept = True

    def _compare(self) -> Workflow:
        if not self._is_due(Step.VERIFY):
            return
        yield from self._keep_record()  # a comparison may take hours
        self._enter(Step.VERIFY)
        self._reach()
        try:
            result = yield Call(partial(self._services.compare, self._job, self._hosts, self.state))
        except self._services.errors as error:
            raise Stopped(str(error)) from error
        found = comparison_of(result, self._verify, self._services.now())
        # Only a comparison that found nothing ends the phase.
        self._forget(*COMPARED)
        self._keep("verify" if found["identical"] else "verify_failed", found)
        self._save()
        self._is_unkept = True
        if not found["identical"]:
            raise Stopped(_tell_differences(found))

    def _end(self) -> Workflow:
        """Report, and let others have the job, unless its source may be stopped."""
        failure = self.state["failure"]
        if failure:
            reason, advised = failure["reason"], advice(self.state)
            self.record.failure = Failure(self._job["name"], failure["phase"], reason, advised)
            self._is_unkept = self._is_unkept or self.step in _RECORDED
        try:
            yield from self._keep_record(releases=True)
        except Stopped as stopped:  # nobody can be asked, or another control node has the job
            self._warn([str(stopped)])
        self._report()
        self._services.release(self._job["name"], None)

    # Hooks

    def _begin_hook(self) -> Workflow:
        """Make sure that the job is still this run's, and write down that the hook begins."""
        hook = {**self._asked.hook, "at": self._services.now(), "began": time.time()}
        yield from self._require_job(required=hook["kind"] == HOOKS[0])
        self.state["hook"] = hook
        self._save()

    def _end_hook(self) -> None:
        hook = self._ended(result="done")
        if hook and hook["kind"] == AFTER:
            ran = [*self.state["switch"].get("hooks", []), hook]
            self.state["switch"] = {**self.state["switch"], "hooks": ran, "steps": len(ran)}
        self._save()

    def _ended(self, result: str) -> Mapping[str, Any]:
        """Note how the hook ended that ran, and return what is kept of it; empty if there was none."""
        hook = self.state.pop("hook", None)
        if not hook:
            return {}
        ended = {**hook, "result": result, "ended": time.time()}
        self.state["hooks"] = [*self.state.get("hooks", []), ended]
        return ended

    # Failures

    def _fail(self) -> None:
        """Write down why the cutover failed, unless an act has done so."""
        self._ended(result="failed")
        if not self.state["failure"]:
            self._note_failure(self._asked.reason, self._asked.lost)
        self._save()

    def _fail_again(self) -> None:
        """Write down that a hook that is to undo the cutover, or to handle a failed switch, failed, too."""
        hook = self._ended(result="failed")
        then = f"and a hook of {hook['kind']} failed, too" if hook else "and what was to undo it could not be done"
        reason = f"{self.state['failure']['reason']} -- {then}: {self._asked.reason}"
        self.state["failure"] = {**self.state["failure"], "reason": reason}
        self._save()

    def _serve(self) -> None:
        self._serve_again()
        self._save()

    @property
    def remedies(self) -> list[str]:
        """What follows the failure of this run, in this order; nothing if there was none."""
        if not (self.state and self.state["failure"]):
            return []
        return [one.value for one in find_remedies(self.state, in_switch=self.step is Step.SWITCH)]

    # State

    def _is_due(self, step: Step) -> bool:
        """Whether a step is a part of this run, by the state as it is now and by the user's tags."""
        return not self.state["failure"] and step in self._options.steps and step in self._decide().steps

    def _enter(self, step: Step) -> None:
        self.step = step
        self.state["run"] = {**self.state["run"], "step": step.value}

    def _stand(self, standing: Standing) -> None:
        """Write down how far the job is; the others of its group wait for it."""
        if self.state.get("group"):
            self.state["group"] = {**self.state["group"], "stands": standing.value}
        self._save()

    def _serve_again(self) -> None:
        """Note that the source is back in service, unless nothing puts it there."""
        is_still = self._asked.stops and not self._asked.revives
        if not is_still:
            self._end_downtime(self._services.now(), "the old host again")
        self.state["quiesced"] = is_still

    def _end_downtime(self, now: str, serves: str) -> None:
        """Note the time from the first hook that stops the source until a host serves again.

        Without such hooks nothing is known of it.
        """
        if self._asked.stops and "quiesced_at" in self.state:
            downtime = {"from": self.state["quiesced_at"], "to": now, "serves": serves}
            if self._options.phase is Phase.REHEARSE:
                downtime["rehearsal"] = True
            self.state["downtimes"] = [*self.state.get("downtimes", []), downtime]

    def _note_rehearsal(self) -> None:
        """Note how long a cutover takes. What was found says nothing about the trees from now on."""
        found = self.state["phases"]
        served = self.state["downtimes"][-1]["to"] if self._asked.stops else self._services.now()
        rehearsal = {"at": served, "from": self.state["cutover_at"], "cutover": found["cutover"]}
        if "verify" in found:
            rehearsal["verify"] = found["verify"]
        self._forget("cutover", *COMPARED)
        self._keep("rehearsal", rehearsal)

    # What the destination keeps

    def _require_job(self, *, required: bool = False) -> Workflow:
        """Have the destination say that the job is this run's, and keep where it stands.

        Raises Stopped if it is not, and if ``required``, if that cannot be asked.
        """
        self._is_unkept = True
        yield from self._keep_record(required=required)

    def _keep_record(self, *, required: bool = False, releases: bool = False) -> Workflow:
        """Have the destination keep where the job stands, if it does not know. With ``releases`` others may have it."""
        if not (self._is_unkept or releases):
            return
        try:
            self._reach()
        except Stopped as stopped:  # a host is refused since then; what brings the source back must not wait for that
            if required:
                raise
            self._warn([str(stopped)])
            return
        hosts = self._hosts
        if hosts.lease is not None:
            hosts.lease.firm = firmness(self.state)
        record = self._made_record(advice(self.state) if self.state["failure"] else "") if self._is_unkept else None
        yield Call(partial(hosts.keep_now, record, releases=releases))
        self._is_unkept = False
        if self._lost:
            raise Stopped(self._lost, is_held=True)
        if record is not None and hosts.not_kept:
            if required:
                raise Stopped(hosts.not_kept)
            self._warn_unkept()
            self._save()


def _tell_differences(found: Mapping[str, Any]) -> str:
    """Return why a comparison is a failure; ``found`` is what is kept of it."""
    named = [
        f"{one['path']} ({one['kind']}{': ' + ', '.join(one['fields']) if one.get('fields') else ''})"
        for one in found["differences"][:_NAMED]
    ]
    return (
        f"the trees differ in {places(found['differences_total'])}, for example {', '.join(named)}. Either something "
        "still writes to one of them, or a transfer left something out"
    )
