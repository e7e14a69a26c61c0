# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One transfer from the control node's side: probe, plan, serve, drive, watch, compare, clean up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

from ..common.host_text import harmless_data
from ..common.memory import Memory
from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.engine_digest import engine_digest
from ..hosts.host_runner import ControllerGone, HostFailed, HostRunner, LeaseLost
from ..hosts.interruption import Interruption
from ..hosts.trust import NONE
from . import credentials, steps
from .account import met_by
from .attach import EarlierJob, EarlierRun, RunningTransfer, earlier_run, find_job, task_fingerprint
from .comparison import SIDES
from .completion import Completion, Uncompared, clean_up_failed
from .link_memory import UNKNOWN, keep_line, recall_line
from .methods import METHODS
from .options import check_options
from .owner_census import Owners, take_census
from .owners import add_owners
from .plan import Ends, Plan, first_look, needs_all
from .probe import parse_probe
from .remembered import (
    is_same_plan,
    may_begin,
    recall,
    recall_time_units,
    remember,
    remember_size,
    remember_time_units,
)
from .repair import WHOLE_PROGRAM
from .report import TransferError, coarse_times, shape_result, with_earlier
from .result import Result
from .roots import refuse_lost_dest
from .routes import Routes
from .rsync_fallback import make_plan
from .status import Status, parse_status
from .transfer_hosts import HostChanged, TransferHosts, TransferSteps
from .watching import watch

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Probe, Start, Step


Answers = Mapping[str, object]  # to a step of each of these sides
_NO_ANSWERS: Answers = MappingProxyType({})
_WORTH_AN_EXECUTION = 5.0  # seconds that a program ran, for the listening side to be asked for its account


class Place(NamedTuple):
    """A host that knows how far a transfer is."""

    runner: HostRunner
    folder: JobKey
    drives: bool  # the connecting side, which alone knows how the transfer ended


@dataclass(frozen=True)
class Running:
    """A transfer that has begun."""

    plan: Plan
    ends: Ends
    status: Status  # of its connecting side when it had begun
    places: tuple[Place, ...]
    earlier: EarlierRun | None = None  # that nobody waited for
    attached: bool = False


class Snapshot(Protocol):
    """A snapshot at the destination, which is begun in the execution that probes it."""

    @property
    def steps(self) -> Sequence[Step]:
        """The steps that begin it."""

    @property
    def compares(self) -> bool:
        """Whether the step that completes it reads its tree anyway, and compares it with the source."""

    def take(self, answers: Sequence[object]) -> Mapping[str, object]:
        """Return the options of the transfer that the answers to these steps decide. Raises HostFailed."""


_StartJob = Callable[[Endpoint, "Start", dict[str, str]], Status]


class Session:
    """One run of a transfer task."""

    def __init__(
        self,
        source: HostRunner,
        dest: HostRunner,
        options: Mapping[str, Any],
        check: bool,
        say: Callable[[str], None],
        interruption: Interruption,
        memory: Memory | None = None,
        compares_rounded: bool = False,
        snapshot: Snapshot | None = None,
        expects: int = 0,
    ) -> None:
        """Take both ends, the module's options with their defaults, where progress lines go, and last words.

        ``memory`` is what the control node remembers of earlier runs. ``compares_rounded``: a comparison at the end
        reads the files whose times the destination keeps too coarsely to tell that they did not change. ``snapshot`` is
        the one to fill; what is ``uncompared`` after ``finish`` is completed by its owner. ``expects``: how many
        entries an earlier pass left at the destination.
        """
        runners = {"source": source, "dest": dest}
        if options["trust"] == NONE:
            for runner in runners.values():
                runner.keep_off_disks()
        made = TransferSteps(
            names=(source.name, dest.name),
            options=options,
            fingerprint=task_fingerprint(options),
            check=check,
            remembers=memory is not None,
            fills_snapshot=snapshot is not None,
            compares_later=snapshot is not None and snapshot.compares,
            compares_rounded=compares_rounded,
        )
        self.id, self.label = made.id, made.label
        self._given = made.fingerprint  # of the options before a snapshot was begun
        self._hosts = TransferHosts(runners, made, say)
        self._snapshot, self._interruption, self._memory = snapshot, interruption, memory
        self._expects = expects
        self._line = recall_line(memory, made.names) if memory is not None else UNKNOWN
        self._time_units = recall_time_units(memory, self.id)
        self._owners: Owners | None = None  # set if a count was needed
        self._ready: Peer = {}  # what the serving end of the last plan said
        self.uncompared: Uncompared | None = None
        self.joined = ""  # the part that an earlier run of the task had in the result, in words; empty: none

    @property
    def _steps(self) -> TransferSteps:
        return self._hosts.steps

    def probe_step(self, side: str) -> Probe:
        """Return the step that probes a host, for an execution that its owner makes before this begins. Raises Refusal.

        See ``begin`` for its answer.
        """
        check_options(self._steps.options)
        return self._hosts.probe_step(side, first_look(self._steps.options))

    def run(self, probed: Answers = _NO_ANSWERS, seen: Answers = _NO_ANSWERS) -> Result:
        """Run the transfer and return its result; for the answers see ``begin``.

        Raises Refusal, HostFailed or TransferError.
        """
        running = self.begin(probed, seen)
        status = running.status
        if status.alive and not running.attached:
            return harmless_data(shape_result(running.plan, status, "running", self._hosts.phases, self._ready))
        last = self._watch(running.plan) if status.alive else status
        return self.finish(running, last) if running.attached else self._conclude(running, last)

    def begin(self, probed: Answers = _NO_ANSWERS, seen: Answers = _NO_ANSWERS) -> Running:
        """Start the transfer, or attach to it where it runs already; with the option ``wait`` it has ended by then.

        ``probed`` are the answers to ``probe_step`` of hosts that were asked a moment ago. ``seen`` are those of hosts
        that were asked when it was not known yet which transfer this would be: they are probed again in the execution
        that starts their job, as after an earlier run.

        Raises Refusal, HostFailed or TransferError. Nobody needs to be there while it runs: ``finish`` can be called
        at any time after it has ended.
        """
        check_options(self._steps.options)
        there = {side: self._hosts.endpoint(side, parse_probe(said)) for side, said in probed.items()}
        ends: Ends = {**there, **self._begin_snapshot()}
        collect = self._steps.options["collect"]
        begun = None if collect else self._begin_as_known(ends, seen)
        if begun:
            return begun
        ends = self._hosts.probe(first_look(self._steps.options), ends)
        if needs_all(self._steps.options, ends["source"], ends["dest"]):
            ends = self._hosts.probe(METHODS)
        how_to_stop = self._interruption.how_to_stop(self.id, self._steps.names)
        running = RunningTransfer(self.id, how_to_stop)
        job = find_job(ends, self._steps.fingerprint, collect, self._steps.check, running)
        if job is None:
            return self._begin_plan(self._make_plan(ends), ends, earlier=earlier_run(ends))
        if job.status.alive:
            self._hosts.say(f"{self.label}: attached to the running transfer {self.id}")
        plan = self._plan_of_job(job, ends)
        return Running(plan, ends, job.status, self._places(plan), attached=True)

    def finish(self, running: Running, status: Status) -> Result:
        """Account for a transfer that has ended with ``status``, clean up, and give the result; raises as ``begin``.

        If it ran when it was begun, or an earlier run began it, the time counts that it took by itself: nobody here
        has waited for its end.
        """
        if running.status.alive or running.attached:
            phases = self._hosts.phases
            phases["transfer"] = round(max(phases.get("transfer", 0.0), status.ran), 3)
        return self._conclude(running, status)

    # Begin

    def _begin_snapshot(self) -> Ends:
        """Begin the snapshot if there is one to fill, and return its end, which was probed in the same execution."""
        if self._snapshot is None:
            return {}
        steps = self._steps
        with self._hosts.phase("probe"):
            probe = self._hosts.probe_step("dest", first_look(steps.options))
            *answers, found = self._hosts.runners["dest"].run(*self._snapshot.steps, probe)
        options = {**steps.options, **self._snapshot.take(answers)}
        check_options(options)
        self._hosts.steps = replace(steps, options=options, fingerprint=task_fingerprint(options))
        return {"dest": self._hosts.endpoint("dest", parse_probe(found))}

    def _begin_as_known(self, probed: Ends, seen: Answers) -> Running | None:
        """Start both ends by a plan of what is known of them, where both hosts still have that.

        It is known of the last run, or was ``seen``. Each host is probed in the execution that starts its job. If one
        has changed, or not both are known, return None: then nothing runs on them, and they are to be probed. Those
        that were ``probed`` are taken as they are now.
        """
        hosts, known = self._hosts, recall(self._memory, self._remembered_as) if self._memory else {}
        asked = {side: parse_probe(said) for side, said in seen.items()}
        if not all(facts.get("fingerprint") for facts in asked.values()):  # by which the next probe is compared
            return None
        now = [*asked.values(), *(end.probe for end in probed.values())]
        if any(facts["job"]["running"] or facts["job"]["request"] for facts in now):
            return None
        known.update(asked)
        ends = {**{side: hosts.endpoint(side, facts) for side, facts in known.items()}, **probed}
        is_recent = {*probed, *seen} >= set(SIDES)
        if len(ends) < len(SIDES) or (is_recent and needs_all(self._steps.options, ends["source"], ends["dest"])):
            return None
        try:
            plan = self._make_plan(ends)
        except Refusal:  # what is so now decides that
            return None
        if self._counts_owners(plan) or not (is_recent or may_begin(plan, ends["dest"])):
            return None

        def start(end: Endpoint, step: Start, secrets: dict[str, str]) -> Status:
            if end.side in probed:
                return hosts.start(end, step, secrets)
            ends[end.side], status = hosts.start_if_same(end, step, secrets)
            return status

        (driver, server), serves = plan.sides, False
        try:
            ready, secrets = self._serve(plan, ends[server], start)
            serves = True
            status = self._drive(plan, ends[driver], ready, secrets, start)
            found = self._make_plan(ends)
            if not is_same_plan(plan, found):
                raise TransferError("the hosts were no longer as they had been found before: run the task again")
        except HostChanged:
            if serves:
                hosts.stop([server], clear=True)
            return None
        except BaseException:  # nothing may remain, whatever ended it
            if serves:
                hosts.give_up(plan)
            raise
        return self._begin_plan(found, ends, status)

    def _plan_of_job(self, job: EarlierJob, ends: Ends) -> Plan:
        """Return the plan of a transfer that an earlier run of this task began."""
        self._ready = job.ready
        if job.method not in ends["source"].probe["methods"]:
            ends = self._hosts.probe((job.method,))
        others = dict.fromkeys(set(METHODS) - {job.method}, "another is running")
        plan = self._make_plan(ends, pull=job.side == "dest", avoid=others)
        return replace(plan, started_ns=min(job.started_ns, plan.started_ns))

    def _make_plan(self, ends: Ends, pull: bool = False, avoid: Mapping[str, str] | None = None) -> Plan:
        """Decide the whole transfer. Raises Refusal."""
        options, check = self._steps.options, self._steps.check
        plan = make_plan(options, ends["source"], ends["dest"], check, pull, avoid, self._line)
        refuse_lost_dest(plan.roots, ends["dest"].name, self._expects)
        return replace(plan, settings={**plan.settings, "time_units": self._time_units})

    def _begin_plan(
        self, plan: Plan, ends: Ends, started: Status | None = None, earlier: EarlierRun | None = None
    ) -> Running:
        """Transfer in one of the ways that are there. ``started`` is the status where it was started."""
        plan, status = Routes(self._hosts, self._make_plan, self._transfer).try_all(plan, ends, started)
        return Running(plan, ends, status, self._places(plan), earlier)

    def _places(self, plan: Plan) -> tuple[Place, ...]:
        """Return where to ask how far the transfer is: first its connecting side, which knows most."""
        runners, folder = self._hosts.runners, self._steps.folder
        return tuple(Place(runners[side], folder(side), side == plan.driver) for side in plan.sides)

    # Serve and drive

    def _transfer(self, plan: Plan, ends: Ends, started: Status | None) -> Status:
        """Start both ends, and wait for the end of the driving one unless the task must not wait; gives its status."""
        status, options = started or self._start(plan, ends), self._steps.options
        if status.alive and options["wait"]:
            return self._watch(plan)
        if status.alive and (plan.choice.tentative or options["connect"] == "auto"):
            return self._hosts.wait_for_connection(plan, status)
        return status

    def _start(self, plan: Plan, ends: Ends) -> Status:
        plan, (driver, server) = self._with_owners(plan), plan.sides
        try:
            ready, secrets = self._serve(plan, ends[server], self._hosts.start)
            return self._drive(plan, ends[driver], ready, secrets, self._hosts.start)
        except BaseException:  # nothing may remain, whatever ended it; a driving job that was started is stopped too
            self._hosts.give_up(plan)
            raise

    def _serve(self, plan: Plan, end: Endpoint, start: _StartJob) -> tuple[Status, dict[str, str]]:
        """Start the serving end; return its status, and the secrets of the driving one."""
        options = self._steps.options
        self._interruption.in_transfer(self.id, self.label, self._steps.names, certain=False)
        self._ready = {}
        with self._hosts.phase("connect"):
            password = (options["rsyncd_password"] or "") if options["rsyncd_module"] else None
            secrets, public = credentials.for_transfer(plan.choice.method, plan.settings["encrypt"], password)
            step = self._steps.serve(plan, end, public, list(secrets["serve"]))
            return start(end, step, secrets["serve"]), secrets["drive"]

    def _drive(self, plan: Plan, end: Endpoint, ready: Status, secrets: dict[str, str], start: _StartJob) -> Status:
        """Start the driving end, and return its status."""
        if ready.state != "serving":
            raise TransferError(f"{plan.peer['host']}: {ready.failure or 'the serving end is not ready'}")
        self._ready = ready.ready
        comparison = self._hosts.comparison(plan) if self._steps.compares else None
        with self._hosts.phase("transfer"):
            status = start(end, self._steps.drive(plan, end, ready.ready, list(secrets), comparison), secrets)
        # Most of the time of the last steps is one side's half of the comparison.
        self._hosts.count_apart("verify" if comparison else "finish", status.then_seconds, "transfer")
        return status

    def _watch(self, plan: Plan) -> Status:
        hosts, folder = self._hosts, self._steps.folder(plan.driver)
        self._interruption.in_transfer(self.id, self.label, self._steps.names)
        with hosts.phase("transfer"):
            return watch(hosts.runners[plan.driver], folder, self.label, hosts.say, self._steps.options["timeout"])

    def _counts_owners(self, plan: Plan) -> bool:
        """Whether owners must be counted before the transfer, since its program does not say whom it meets."""
        return plan.choice.method in WHOLE_PROGRAM and (not plan.settings["numeric_ids"] or self._steps.check)

    def _with_owners(self, plan: Plan) -> Plan:
        """Have the owners counted for a program that does not say whom it meets, and tell it what they become."""
        if not self._counts_owners(plan):
            return plan
        if self._owners is None:
            hosts, patience = self._hosts, self._steps.options["timeout"]
            with hosts.phase("owners"):
                self._owners = take_census(
                    hosts.runners, self.id, plan.roots.source, plan.settings, hosts.say, self.label, patience
                )
        return replace(plan, settings={**plan.settings, "numeric_ids": True, "owner_map": self._owners.table})

    # The end

    def _conclude(self, running: Running, status: Status) -> Result:
        self._interruption.after_transfer(self.label)
        plan, ends = running.plan, running.ends
        status = self._with_earlier(status, running.earlier)
        if running.attached:
            self.joined = "attached to a running transfer" if running.status.alive else "the transfer had ended already"
        failure = clean_up_failed(self._hosts, plan, status)
        if failure:
            may_pass = status.unreachable or status.lost or status.state == "died"  # the line, or a host restarted
            raise TransferError(failure, self._shape(plan, status, "failed"), may_pass)
        status = self._with_server_account(plan, status)
        result = self._shape(plan, status, "finished")
        result["attached"] = running.attached
        completion = Completion(
            self._hosts, ends, result, self._owners is not None, partial(self._send_again, ends=ends)
        )
        completion.run(plan, status)
        self.uncompared = completion.uncompared
        self._remember(ends, completion.dest_probe, status.outcome or Outcome())
        result["phases"] = dict(self._hosts.phases)
        result["duration"] = round(sum(self._hosts.phases.values()), 3)
        return harmless_data(result)

    def _with_earlier(self, status: Status, earlier: EarlierRun | None) -> Status:
        """Add the changes of an earlier run, and the time that it took for them."""
        merged = with_earlier(status, earlier.outcome if earlier else None)
        if earlier and merged is not status:
            phases = self._hosts.phases
            took = phases.get("transfer", 0.0)
            phases["transfer"] = round(took + earlier.seconds, 3)
            self.joined = "with an earlier run that had ended already"
            return replace(merged, ran=phases["transfer"])
        return merged

    def _with_server_account(self, plan: Plan, status: Status) -> Status:
        """Add the account of the listening side where the connecting side's program does not bring it along.

        That takes an execution, so nobody is asked after a short transfer, of which little can be said anyway.
        """
        outcome, server = status.outcome, plan.sides[1]
        if outcome is None or server in outcome.spent:
            return status
        if plan.choice.method not in WHOLE_PROGRAM or status.ran < _WORTH_AN_EXECUTION:
            return status
        try:
            (said,) = self._hosts.runners[server].run(steps.poll(self._steps.folder(server), 0.0))
            spent = parse_status(said).spent
        except (LeaseLost, ControllerGone):
            raise
        except (HostFailed, ValueError):  # the transfer has succeeded, and only its bottleneck is less well known
            return status
        return replace(status, outcome=Outcome(**{**vars(outcome), "spent": {**outcome.spent, server: spent}}))

    def _send_again(self, plan: Plan, ends: Ends) -> Outcome:
        """Transfer what a comparison found to differ, to its end; gives the outcome. Raises TransferError."""
        status = self._start(replace(plan, short=False), ends)
        if status.alive:
            status = self._watch(plan)
        self._interruption.after_transfer(self.label)
        failure = clean_up_failed(self._hosts, plan, status)
        if failure:
            raise TransferError(failure)
        return status.outcome or Outcome()

    def _shape(self, plan: Plan, status: Status, state: str) -> Result:
        """Return the task's result, with what either the engine or a count found about owners."""
        result = shape_result(plan, status, state, self._hosts.phases, self._ready)
        outcome, names = status.outcome or Outcome(), self._steps.names
        if outcome.time_units and "times" in plan.settings["preserve"]:
            coarse = coarse_times(outcome.time_units, plan.roots.dest, names[1])
            result["warnings"] = [*result.get("warnings", []), coarse]
        found = self._owners or Owners({}, outcome.owner_mismatches, outcome.owner_hints)
        add_owners(result, found.mismatches, found.hints, names, self._steps.options["owner_warnings"])
        return result

    @property
    def _remembered_as(self) -> list[object]:
        """What the memory of this pair is about: the transfer, its options, and how the hosts are asked."""
        return [self.id, self._given, [self._hosts.ssh_port(side) for side in SIDES], engine_digest()]

    def _remember(self, ends: Ends, dest_probe: object, outcome: Outcome) -> None:
        """Remember what both hosts have, and what a transfer that succeeded found out about the line between them."""
        if self._memory is None or self._steps.check:
            return
        at_dest = parse_probe(dest_probe) if dest_probe else ends["dest"].probe
        remember(self._memory, self._remembered_as, {"source": ends["source"].probe, "dest": at_dest})
        keep_line(self._memory, self._steps.names, self._line, met_by(outcome.spent), outcome.streams)
        remember_time_units(self._memory, self.id, outcome.time_units)
        remember_size(self._memory, self.id, outcome.files_total, max(outcome.bytes_apparent, outcome.bytes_total))
