# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One transfer from the control node's side: probe, plan, serve, drive, watch, compare, clean up."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer, parse_peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, member
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

from . import credentials, steps
from .bottleneck import met_by
from .comparison import Comparison, Digest, parse_after, parse_quick_digest
from .endpoint import Endpoint, Refusal, make_endpoint, ssh_port
from .engine import packed_engine
from .host_runner import ControllerGone, HostFailed, HostRunner, LeaseLost
from .host_text import harmless_data
from .interruption import Interruption
from .known_line import UNKNOWN, keep_line, recall_line
from .memory import Memory
from .methods import METHODS, OWN_PORT
from .options import check_options
from .owner_census import Owners, judge, take_census
from .owners import add_owners, merged, names_to_look_up
from .parallel import run_parallel
from .plan import CHANGES_LISTED, Plan, first_look, needs_all, transfer_id
from .probe import parse_probe
from .remembered import (
    is_same_plan,
    may_begin,
    recall,
    recall_time_units,
    remember,
    remember_time_units,
)
from .repair import WHOLE_PROGRAM, add_repair
from .report import (
    TransferError,
    coarse_times,
    failure_of_paths,
    shape_result,
    with_earlier,
    with_server_side,
    with_unreachable,
)
from .result import Result
from .roots import child_name, refuse_lost_dest
from .rsync_fallback import make_plan, plan_by_rsync
from .status import Status, parse_status
from .trust import FULL, NO_PORT, NONE
from .verification import Verification, comparison_of
from .watching import watch

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import ProbeFacts
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import Request, TransferRequest
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Compare, Folder, Probe, Start, Step

_SERVE_WAIT = 60.0  # seconds for a serving end to be ready
_CONNECTED = 30.0  # seconds after which the ends have found each other, or have given up
_DRIVE_WAIT = 4.0  # seconds in which a short transfer ends, so that it needs no poll
_UNWATCHED = 1.0  # seconds in which it can fail at once, where the task does not wait for its end
_FILL_WAIT = 10.0  # seconds in which the transfer into most snapshots ends
_READ_WAIT = 30.0  # seconds in which a source is read whose entries are no more than these
_MOST_READ = 200_000
_NOT_COMPARED = (
    "wait",
    "collect",
    "timeout",
    "verify",
    "sync",
    "owner_warnings",
)  # options in which a run that attaches may differ


class Place(NamedTuple):
    """A host that knows how far a transfer is."""

    runner: HostRunner
    folder: Folder
    drives: bool  # the connecting side, which alone knows how the transfer ended


@dataclass(frozen=True)
class Running:
    """A transfer that has begun."""

    plan: Plan
    source: Endpoint
    dest: Endpoint
    status: Status  # of its connecting side when it had begun
    places: tuple[Place, ...]
    earlier: Outcome | None = None  # of a run that nobody waited for
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


@dataclass(frozen=True)
class Uncompared:
    """A destination that is still to be compared with the source, which was read."""

    before: Sequence[Step]  # the last steps at the destination, before its tree is read
    compare: Compare
    after: Sequence[Step]
    send_again: Callable[[], Result]  # compares both sides, and sends what differs; raises as Session.finish does


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
        self._snapshot, self._expects = snapshot, expects
        self.uncompared: Uncompared | None = None
        self._compares_rounded = compares_rounded
        self._kept_mounts: list[str] = []
        self._runners = {"source": source, "dest": dest}
        if options["trust"] == NONE:
            for runner in self._runners.values():
                runner.keep_off_disks()
        self._options = options
        self._check = check
        self._say = say
        self._interruption = interruption
        self._phases: dict[str, float] = {}
        self._names = (source.name, dest.name)
        self.label = " -> ".join(self._names)
        self._owners: Owners | None = None  # set if a count was needed
        self._ready: Peer = {}  # what the serving end of the last plan said
        self.id = transfer_id(source.name, options["src"], dest.name, options["dest"])
        self._fingerprint = self._given = _fingerprint(options)  # of the options, and of those that were given
        self._memory = memory
        self._line = recall_line(memory, self._names) if memory is not None else UNKNOWN
        self._time_units = recall_time_units(memory, self.id)
        self._looked_at: tuple[str, ...] = ()  # methods, by the last probes
        self._at_dest: object = None  # what the destination has in the end, where it was probed again

    def run(self) -> Result:
        """Do it all and give the result. Raises Refusal, HostFailed or TransferError."""
        running = self.begin()
        status = running.status
        if status.alive and not running.attached:
            return harmless_data(shape_result(running.plan, status, "running", self._phases, self._ready))
        return self._account_for(running, self._watch_driver(running.plan) if status.alive else status)

    def begin(self) -> Running:
        """Start the transfer, or attach to it where it runs already; with the option ``wait`` it has ended by then.

        Raises Refusal, HostFailed or TransferError. Nobody needs to be there while it runs: ``finish`` can be called
        at any time after it has ended.
        """
        check_options(self._options)
        probed = self._begin_snapshot()
        begun = None if self._options["collect"] else self._begin_as_remembered(probed)
        if begun:
            source, dest, plan, status = begun
            return self._begin_plan(plan, source, dest, status)
        source, dest = self._probe(probed)
        driver = self._running_driver(source, dest)
        if driver:
            plan = self._attach(source, dest, driver)
            return Running(plan, source, dest, Status("running", alive=True), self._places(plan), attached=True)
        ended = self._ended_driver(source, dest) if self._options["collect"] else ""
        if ended:
            plan = self._plan_of_job(source, dest, ended)
            job = (source if ended == "source" else dest).probe["job"]
            status = parse_status({**job["status"], "alive": False})
            return Running(plan, source, dest, status, self._places(plan), attached=True)
        earlier = self._earlier_outcome(source, dest)
        return self._begin_plan(self._make_plan(source, dest), source, dest, earlier=earlier)

    def _make_plan(
        self, source: Endpoint, dest: Endpoint, pull: bool = False, avoid: Mapping[str, str] | None = None
    ) -> Plan:
        """Decide the whole transfer. Raises Refusal."""
        plan = make_plan(self._options, source, dest, self._check, pull, avoid, self._line)
        refuse_lost_dest(plan.roots, dest.name, self._expects)
        return replace(plan, settings={**plan.settings, "time_units": self._time_units})

    def _begin_plan(
        self,
        plan: Plan,
        source: Endpoint,
        dest: Endpoint,
        begun: Status | None = None,
        earlier: Outcome | None = None,
    ) -> Running:
        """Transfer in one of the ways that are there. ``begun`` is the status where it was started."""
        plan, status = self._either_way(plan, source, dest, begun=begun)
        if status.unreachable and plan.choice.tentative:
            plan, status = self._fall_back(plan, status, source, dest)
        elif status.unreachable and plan.trust == NONE and self._options["method"] == "auto":
            status = replace(status, failure=f"{status.failure}. {NO_PORT}")
        return Running(plan, source, dest, status, self._places(plan), earlier)

    def finish(self, running: Running, status: Status) -> Result:
        """Account for a transfer that has ended with ``status``, clean up, and give the result; raises as ``begin``.

        If it ran when it was begun, or an earlier run began it, the time counts that it took by itself: nobody here
        has waited for its end.
        """
        if running.status.alive or running.attached:
            self._phases["transfer"] = round(max(self._phases.get("transfer", 0.0), status.ran), 3)
        return self._account_for(running, status)

    def _account_for(self, running: Running, status: Status) -> Result:
        status = with_earlier(status, running.earlier)
        return self._conclude(running.plan, running.source, running.dest, status, running.attached)

    def _places(self, plan: Plan) -> tuple[Place, ...]:
        """Return where to ask how far the transfer is: first its connecting side, which knows most."""
        sides = (plan.driver, _other(plan.driver))
        return tuple(Place(self._runners[side], self._folder(side), side == plan.driver) for side in sides)

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = round(self._phases.get(name, 0.0) + time.monotonic() - start, 3)

    def _folder(self, side: str) -> Folder:
        return {"id": self.id, "side": side}

    # Probe

    def _begin_snapshot(self) -> dict[str, Endpoint]:
        """Begin the snapshot if there is one to fill, and return its end, which was probed in the same execution."""
        if self._snapshot is None:
            return {}
        with self._phase("probe"):
            self._looked_at = first_look(self._options)
            *answers, found = self._runners["dest"].run(
                *self._snapshot.steps, self._probe_step("dest", self._looked_at)
            )
        self._options = {**self._options, **self._snapshot.take(answers)}
        check_options(self._options)
        self._fingerprint = _fingerprint(self._options)
        return {"dest": self._endpoint("dest", parse_probe(found))}

    def _probe(self, probed: Mapping[str, Endpoint]) -> tuple[Endpoint, Endpoint]:
        source, dest = self._probe_for(first_look(self._options), probed)
        return self._probe_for(METHODS) if needs_all(self._options, source, dest) else (source, dest)

    def _probe_for(
        self, methods: tuple[str, ...], probed: Mapping[str, Endpoint] = MappingProxyType({})
    ) -> tuple[Endpoint, Endpoint]:
        """Ask both hosts for what they have, as far as the methods need it; not those that were ``probed``."""
        self._looked_at = methods
        with self._phase("probe"):
            asked = [side for side in self._runners if side not in probed]
            ends = {**probed, **run_parallel({side: partial(self._probe_end, side, methods) for side in asked})}
        return ends["source"], ends["dest"]

    def _probe_end(self, side: str, methods: tuple[str, ...]) -> Endpoint:
        (found,) = self._runners[side].run(self._probe_step(side, methods))
        return self._endpoint(side, parse_probe(found))

    def _endpoint(self, side: str, facts: ProbeFacts) -> Endpoint:
        runner = self._runners[side]
        return make_endpoint(runner.name, side, runner.variables, runner.connection, facts)

    def _probe_step(self, side: str, methods: Sequence[str], expected: str = "", then: Sequence[Step] = ()) -> Probe:
        """Return the step that probes a host; ``then`` follow where that has the fingerprint that is ``expected``."""
        runner = self._runners[side]
        port = ssh_port(runner.variables, runner.connection)
        return {
            "do": "probe",
            "path": self._options["src" if side == "source" else "dest"],
            "child": child_name(self._options["src"]) if side == "dest" else "",
            "methods": list(methods),
            "ssh_ports": [self._options["port"] or port, port],
            "rsyncd_module": self._options["rsyncd_module"],
            "link_dest": self._options["link_dest"] if side == "dest" else [],
            "owners": names_to_look_up(self._options["owner_map"], side),
            "expected": expected,
            "then": list(then),
            **self._folder(side),
        }

    # A transfer that was made before: each host is probed in the execution that starts its job

    @property
    def _remembered_as(self) -> list[object]:
        """What the memory of this pair is about: the transfer, its options, and how the hosts are asked."""
        ports = [ssh_port(runner.variables, runner.connection) for runner in self._runners.values()]
        return [self.id, self._given, ports, packed_engine().digest]

    def _begin_as_remembered(self, probed: Mapping[str, Endpoint]) -> tuple[Endpoint, Endpoint, Plan, Status] | None:
        """Start both ends by the plan of the last run, where both hosts still have what they had then.

        If they do not, or nothing is remembered, return None: then nothing runs on them, and they are to be probed.
        Those that were ``probed`` are taken as they are now.
        """
        known = recall(self._memory, self._remembered_as) if self._memory else {}
        if not known or any(end.probe["job"]["running"] or end.probe["job"]["request"] for end in probed.values()):
            return None
        ends = {**{side: self._endpoint(side, facts) for side, facts in known.items()}, **probed}
        try:
            plan = self._make_plan(ends["source"], ends["dest"])
        except Refusal:  # what is so now decides that
            return None
        if self._counts_owners(plan) or not may_begin(plan, ends["dest"]):
            return None
        self._interruption.in_transfer(self.id, self.label, self._names, certain=False)
        server = _other(plan.driver)
        with self._phase("connect"):
            secrets, serve = self._serve_step(plan, ends[server])
            ready = self._start_where_same(ends, server, serve, secrets["serve"], server in probed)
        if ready is None:
            return None
        try:
            started = self._drive_as_remembered(plan, ends, ready, secrets["drive"], plan.driver in probed)
        except BaseException:  # nothing may remain, whatever ended it
            self._give_up(plan)
            raise
        return started and (ends["source"], ends["dest"], *started)

    def _drive_as_remembered(
        self, plan: Plan, ends: dict[str, Endpoint], ready: Status, secrets: dict[str, str], is_probed: bool
    ) -> tuple[Plan, Status] | None:
        """Start the driving end, and return the plan of what both probes found, and its status."""
        driver, server = plan.driver, _other(plan.driver)
        self._require_ready(ready, ends[server])
        with self._phase("transfer"):
            drive = self._drive_step(plan, ends[driver], ready, list(secrets))
            status = self._start_where_same(ends, driver, drive, secrets, is_probed)
        if status is None:
            self._stop_end(server, succeeded=False, clear=True)
            return None
        self._count_last_steps(status)
        found = self._make_plan(ends["source"], ends["dest"])
        if not is_same_plan(plan, found):
            raise TransferError("the hosts were no longer as they had been found before: run the task again")
        return found, status

    def _start_where_same(
        self, ends: dict[str, Endpoint], side: str, start: Start, secrets: dict[str, str], is_probed: bool
    ) -> Status | None:
        """Probe a host unless it was probed now, and start its job if it has what it had; else return None.

        Its endpoint becomes the new one.
        """
        if is_probed:
            return self._start_end(ends[side], start, secrets)
        before = ends[side].probe
        step = self._probe_step(side, before["methods"], before["fingerprint"], [start])
        (found,) = self._runners[side].run(step, secrets=secrets)
        facts = parse_probe(found)
        ends[side] = self._endpoint(side, facts)
        return parse_status(facts["then"][0]) if facts.get("then") else None

    def _note_last_steps(self, asked: Sequence[Step], answers: Sequence[object]) -> None:
        """Keep what the destination says of itself in the end, and count the time until its disk had everything."""
        for step, said in zip(asked, answers):
            if step["do"] == "probe":
                self._at_dest = said
            elif step["do"] == "sync":
                seconds = member(as_object(said, "the answer to sync"), "seconds", float)
                self._count_apart("sync", seconds, self._last_phase)

    def _remember_line(self, outcome: Outcome) -> None:
        """Remember what a transfer found out about the line between the hosts."""
        if self._memory is not None and not self._check:
            keep_line(self._memory, self._names, self._line, met_by(outcome.spent), outcome.streams)

    def _remember(self, source: Endpoint, dest: Endpoint) -> None:
        """Remember what both hosts have, after a transfer that succeeded."""
        if self._memory is not None and not self._check:
            at_dest = parse_probe(self._at_dest) if self._at_dest else dest.probe
            remember(self._memory, self._remembered_as, {"source": source.probe, "dest": at_dest})

    # A transfer that an earlier run started

    def _running_driver(self, source: Endpoint, dest: Endpoint) -> str:
        """Return the side whose driving job is alive; empty if none is.

        One that only predicts (left behind by a check mode run) writes nothing: it makes way for this run.
        """
        for end in (source, dest):
            job = end.probe["job"]
            if job["running"] and _transfers(job["request"]):
                return end.side
        return ""

    def _attach(self, source: Endpoint, dest: Endpoint, side: str) -> Plan:
        request = (source if side == "source" else dest).probe["job"]["request"]
        if self._check or request.get("fingerprint") != self._fingerprint:
            pid = (source if side == "source" else dest).probe["job"]["status"].get("pid")
            what = "in check mode nothing can be told of it" if self._check else "this task has other options"
            raise Refusal(
                f"this transfer is running already (process {pid} on {self._runners[side].name}), and {what}. "
                "Wait for its end, run the task with the same options to attach to it, or end that process"
            )
        self._say(f"{self.label}: attached to the running transfer {self.id}")
        return self._plan_of_job(source, dest, side)

    def _ended_driver(self, source: Endpoint, dest: Endpoint) -> str:
        """Return the side whose driving job has ended and left a result of this task; empty if none has."""
        for end in (source, dest):
            job = end.probe["job"]
            is_this = _transfers(job["request"]) and job["request"].get("fingerprint") == self._fingerprint
            if is_this and not job["running"] and not self._check and job["status"].get("outcome"):
                return end.side
        return ""

    def _plan_of_job(self, source: Endpoint, dest: Endpoint, side: str) -> Plan:
        """Return the plan of a transfer that an earlier run of this task began, and whose job drives on a side."""
        end, server = (source, dest) if side == "source" else (dest, source)
        with contextlib.suppress(WrongShape):
            self._ready = parse_peer(server.probe["job"]["status"].get("ready", {}))
        method = end.probe["job"]["request"].get("settings", {}).get("method", "")
        clocks = source.probe["now_ns"] - end.probe["now_ns"]
        started_ns = int(end.probe["job"]["status"].get("started", 0) * 1e9) + clocks
        if method not in source.probe["methods"]:
            source, dest = self._probe_for((method,))
        others = dict.fromkeys(set(METHODS) - {method}, "another is running")
        plan = self._make_plan(source, dest, pull=side == "dest", avoid=others)
        return replace(plan, started_ns=min(started_ns, plan.started_ns))

    def _earlier_outcome(self, source: Endpoint, dest: Endpoint) -> Outcome | None:
        """Return what a run that nobody waited for did, so that its changes are not lost; None if there is none."""
        for end in (source, dest):
            job = end.probe["job"]
            if not job["running"] and _transfers(job["request"]):
                return Outcome.from_json(job["status"].get("outcome") or {})
        return None

    # Serve and drive

    def _either_way(
        self,
        plan: Plan,
        source: Endpoint,
        dest: Endpoint,
        avoid: Mapping[str, str] | None = None,
        begun: Status | None = None,
    ) -> tuple[Plan, Status]:
        """Transfer; let the destination connect where the source cannot. Where both fail, the first failure counts."""
        status = self._transfer(plan, source, dest, begun)
        if not status.unreachable or self._options["connect"] != "auto" or plan.driver == "dest":
            return plan, status
        self._say(f"{self.label}: {status.failure}. Trying the other direction")
        self._stop(plan, succeeded=False, clear=True)
        try:
            other = self._make_plan(source, dest, pull=True, avoid=avoid)
            turned = self._transfer(other, source, dest)
        except (Refusal, HostFailed, TransferError) as error:
            return plan, _both(status, "The other direction was tried too", str(error))
        if turned.unreachable:
            self._stop(other, succeeded=False)
            return plan, _both(status, "The other direction was tried too", turned.failure)
        return other, turned

    def _fall_back(self, plan: Plan, status: Status, source: Endpoint, dest: Endpoint) -> tuple[Plan, Status]:
        """Use a method that needs no port but ssh's, since that of the chosen one cannot be reached."""
        self._say(f"{self.label}: {status.failure}. Trying without a port of its own")
        self._stop(plan, succeeded=False, clear=True)
        avoid = dict.fromkeys(OWN_PORT, status.failure)
        try:
            source, dest = self._probe_for(METHODS)
            other = self._make_plan(source, dest, avoid=avoid)
        except (Refusal, HostFailed) as error:
            return plan, _both(status, "Methods that use the port of ssh were looked at too", str(error))
        advice = (
            f"method {plan.choice.method} was tried first, and its port could not be reached, which took time: open "
            f"one between the hosts (port, port_range), or name method {other.choice.method}"
        )
        return self._either_way(replace(other, warnings=(*other.warnings, advice)), source, dest, avoid)

    def _transfer(self, plan: Plan, source: Endpoint, dest: Endpoint, begun: Status | None = None) -> Status:
        """Start both ends, and wait for the end of the driving one unless the task must not wait; gives its status."""
        status = begun or self._start_plan(plan, source, dest)
        if status.alive and self._options["wait"]:
            return self._watch_driver(plan)
        if status.alive and (plan.choice.tentative or self._options["connect"] == "auto"):
            return self._wait_for_connection(plan, status)
        return status

    def _wait_for_connection(self, plan: Plan, status: Status) -> Status:
        """Wait until the ends have found each other: afterwards nobody is there who could try another method."""
        deadline = time.monotonic() + _CONNECTED
        while status.alive and _has_not_met(status) and time.monotonic() < deadline:
            (said,) = self._runners[plan.driver].run(steps.poll(self._folder(plan.driver), 1.0))
            status = parse_status(said)
        return status

    def _start_plan(self, plan: Plan, source: Endpoint, dest: Endpoint) -> Status:
        ends = {"source": source, "dest": dest}
        plan = self._with_owners(plan)
        driver, server = plan.driver, _other(plan.driver)
        self._interruption.in_transfer(self.id, self.label, self._names, certain=False)
        try:
            with self._phase("connect"):
                secrets, serve = self._serve_step(plan, ends[server])
                ready = self._start_end(ends[server], serve, secrets["serve"])
                self._require_ready(ready, ends[server])
            with self._phase("transfer"):
                drive = self._drive_step(plan, ends[driver], ready, list(secrets["drive"]))
                status = self._start_end(ends[driver], drive, secrets["drive"])
            self._count_last_steps(status)
            return status
        except BaseException:  # nothing may remain, whatever ended it; a driving job that was started is stopped too
            self._give_up(plan)
            raise

    def _serve_step(self, plan: Plan, end: Endpoint) -> tuple[dict[str, dict[str, str]], Start]:
        """Return the secrets of both parts, and the step that starts the serving one."""
        self._ready = {}
        password = (self._options["rsyncd_password"] or "") if self._options["rsyncd_module"] else None
        secrets, public = credentials.for_transfer(plan.choice.method, plan.settings["encrypt"], password)
        request = self._request(end, plan, "serve")
        request["serve"] = {**plan.serve, **public}
        return secrets, self._start_step(end, request, list(secrets["serve"]), "serving", _SERVE_WAIT)

    def _drive_step(self, plan: Plan, end: Endpoint, ready: Status, secrets: list[str]) -> Start:
        """Return the step that starts the driving end; ``secrets`` are the names of its own."""
        request = self._request(end, plan, "drive")
        self._ready = ready.ready
        request["peer"] = {**ready.ready, **plan.peer}  # the inventory's address wins over the one that it listens at
        seconds = _DRIVE_WAIT if self._options["wait"] else _UNWATCHED if self._snapshot is None else _FILL_WAIT
        return self._start_step(end, request, secrets, "", seconds, self._last_steps(plan, plan.driver))

    @staticmethod
    def _require_ready(ready: Status, server: Endpoint) -> None:
        if ready.state != "serving":
            raise TransferError(f"{server.name}: {ready.failure or 'the serving end is not ready'}")

    def _counts_owners(self, plan: Plan) -> bool:
        """Whether owners must be counted before the transfer, since its program does not say whom it meets."""
        return plan.choice.method in WHOLE_PROGRAM and (not plan.settings["numeric_ids"] or self._check)

    def _with_owners(self, plan: Plan) -> Plan:
        """Have the owners counted for a program that does not say whom it meets, and tell it what they become."""
        if not self._counts_owners(plan):
            return plan
        if self._owners is None:
            with self._phase("owners"):
                self._owners = take_census(
                    self._runners,
                    self.id,
                    plan.roots.source,
                    plan.settings,
                    self._say,
                    self.label,
                    self._options["timeout"],
                )
        return replace(plan, settings={**plan.settings, "numeric_ids": True, "owner_map": self._owners.table})

    def _request(self, end: Endpoint, plan: Plan, part: str) -> TransferRequest:
        return {
            "side": end.side,
            "part": part,
            "root": plan.roots.source if end.side == "source" else plan.roots.dest,
            "settings": plan.settings,
            "peer_name": self._runners[_other(end.side)].name,
            "fingerprint": self._fingerprint,
            "probed": (end.probe["path"] if end.side == "source" else plan.roots.target).get("folder"),
        }

    def _start_step(
        self,
        end: Endpoint,
        request: TransferRequest,
        secrets: list[str],
        until: str,
        seconds: float,
        then: Sequence[Step] = (),
    ) -> Start:
        """Return the step that starts a job, and waits so long until it is in a state (empty: until its end)."""
        job = end.probe["job"]
        return {
            "do": "start",
            "kind": "job",
            "request": request,
            "secrets": secrets,
            "replace": job["status"].get("pid") if job["running"] else None,
            "until": [until] if until else [],
            "wait": seconds,
            "then": list(then),
            **self._folder(end.side),
        }

    def _start_end(self, end: Endpoint, step: Start, secrets: dict[str, str]) -> Status:
        (said,) = self._runners[end.side].run(step, secrets=secrets)
        return parse_status(said)

    def _watch_driver(self, plan: Plan) -> Status:
        self._interruption.in_transfer(self.id, self.label, self._names)
        with self._phase("transfer"):
            runner = self._runners[plan.driver]
            return watch(runner, self._folder(plan.driver), self.label, self._say, self._options["timeout"])

    # The end

    def _conclude(self, plan: Plan, source: Endpoint, dest: Endpoint, status: Status, attached: bool) -> Result:
        self._interruption.after_transfer(self.label)
        failure = self._failure(plan, status)
        if failure:
            raise TransferError(failure, self._shape(plan, status, "failed"), may_pass=_may_pass(status))
        result = self._shape(plan, status, "finished")
        result["attached"] = attached
        done = {plan.driver: status.then} if status.then else {}
        outcome = status.outcome or Outcome()
        # What every owner has become, for the comparison and for what it sends again.
        owner_map = merged(plan.settings["owner_map"], outcome.owners)
        known_units = plan.settings["time_units"]
        plan = replace(plan, settings={**plan.settings, "owner_map": owner_map, "time_units": dict(outcome.time_units)})
        if outcome.deferred:
            self._hand_to_rsync(plan, outcome.deferred, source, dest, result)
            done = {}
        if self._compares:
            quick_digests = {side: parse_quick_digest(said[-1]) for side, said in done.items()}
            self._kept_mounts = outcome.kept_mounts
            if outcome.time_units != known_units or outcome.kept_mounts:  # of which they did not know
                quick_digests = dict.fromkeys(quick_digests)
            if "dest" in done:
                self._note_last_steps(self._after(plan, "dest"), parse_after(done["dest"][-1]))
            if not self._read_source(plan, source, dest, result, quick_digests):
                self._verify(plan, source, dest, result, quick_digests)
        else:
            with self._phase("finish"):
                done = self._finish(plan, done)
            self._note_last_steps(self._end(plan, "dest"), done["dest"])
        self._remember(source, dest)
        self._remember_line(outcome)
        if self._memory is not None and not self._check:
            remember_time_units(self._memory, self.id, outcome.time_units)
        result["phases"] = dict(self._phases)
        result["duration"] = round(sum(self._phases.values()), 3)
        return harmless_data(result)

    def _shape(self, plan: Plan, status: Status, state: str) -> Result:
        """Return the task's result, with what either the engine or a count found about owners."""
        result = shape_result(plan, status, state, self._phases, self._ready)
        outcome = status.outcome or Outcome()
        if outcome.time_units and "times" in plan.settings["preserve"]:
            coarse = coarse_times(outcome.time_units, plan.roots.dest, self._names[1])
            result["warnings"] = [*result.get("warnings", []), coarse]
        found = self._owners or Owners({}, outcome.owner_mismatches, outcome.owner_hints)
        add_owners(result, found.mismatches, found.hints, self._names, self._options["owner_warnings"])
        return result

    def _failure(self, plan: Plan, status: Status) -> str:
        """Return why a transfer failed, and clean up on the hosts; empty if it did not."""
        outcome = status.outcome or Outcome()
        failure = status.failure or outcome.failure or failure_of_paths(outcome)
        if not failure and status.state == "finished" and status.outcome is not None:
            return ""
        failure = failure or f"the transfer ended as {status.state}"
        try:
            with self._phase("finish"):
                said = self._stop(plan, succeeded=False)
                self._clear()
        except (ControllerGone, LeaseLost):
            raise
        except HostFailed as error:
            return with_unreachable(failure, error)
        return with_server_side(failure, said, plan.driver)

    def _hand_to_rsync(self, plan: Plan, paths: list[str], source: Endpoint, dest: Endpoint, result: Result) -> None:
        """Let rsync bring the files that stream left to it, and add that to the result."""
        left = counted(len(paths), "file", "files")
        self._say(f"{self.label}: content moved in {left}, so rsync sends that")
        with self._phase("finish"):
            self._stop(plan, succeeded=True, clear=True)
        try:
            by_rsync = plan_by_rsync(plan, self._options, source, dest, paths)
            add_repair(result, self._send_again(by_rsync, source, dest), CHANGES_LISTED)
        except (Refusal, TransferError) as error:
            raise TransferError(
                f"all but {left} arrived. That was left to rsync (delta), which failed: {error}",
                result,
            ) from error
        result["by_rsync"] = len(paths)

    def _send_again(self, plan: Plan, source: Endpoint, dest: Endpoint) -> Outcome:
        """Transfer what a comparison found to differ, to its end; gives the outcome. Raises TransferError."""
        status = self._start_plan(replace(plan, short=False), source, dest)
        if status.alive:
            status = self._watch_driver(plan)
        self._interruption.after_transfer(self.label)
        failure = self._failure(plan, status)
        if failure:
            raise TransferError(failure)
        return status.outcome or Outcome()

    @property
    def _compares(self) -> bool:
        return not self._check and self._options["verify"] != "none"

    @property
    def _compares_later(self) -> bool:
        return self._compares and self._snapshot is not None and self._snapshot.compares

    def _last_steps(self, plan: Plan, side: str) -> list[Step]:
        """Return the steps that follow on the connecting side if the transfer has ended by then, without an execution.

        It never follows a poll, which is asked again where its answer was lost, and would find nothing then.
        """
        folder = self._folder(side)
        if self._compares_later and side == "dest":
            return []
        if not self._compares:
            return self._end(plan, side)
        met_by_name = not plan.settings["numeric_ids"]  # what they have become, the outcome says
        if not plan.short or met_by_name:
            return []
        comparison = self._comparison(plan)
        return [steps.stop(folder), comparison.quick_digest_step(side, self._after(plan, side))]

    def _comparison(self, plan: Plan) -> Comparison:
        return comparison_of(plan, self._runners, self._options, self.label, self._compares_rounded, self._kept_mounts)

    def _after(self, plan: Plan, side: str) -> list[Step]:
        """Return the steps with which all ends on a host.

        A destination that was empty is another one by then, so that it is probed again for the next run.
        """
        done = [steps.clear(self._folder(side)), *self._sync(plan, side)]
        if self._memory is not None and self._snapshot is None and side == "dest" and plan.roots.target["empty"]:
            done.append(self._probe_step(side, self._looked_at))
        return done

    def _end(self, plan: Plan, side: str) -> list[Step]:
        """Return the steps with which all ends on a host, without a comparison."""
        return [*steps.end(self._folder(side)), *self._sync(plan, side)]

    def _sync(self, plan: Plan, side: str) -> list[Step]:
        """Return the step that waits for the disk, after all that is written to it, where the user wants that."""
        wanted = side == "dest" and self._options["sync"] == "data" and not self._check
        return [steps.sync(plan.roots.dest)] if wanted else []

    @property
    def _last_phase(self) -> str:
        return "verify" if self._compares else "finish"

    def _count_last_steps(self, status: Status) -> None:
        """Take the last steps out of the time of the transfer: most of it is one side's half of the comparison."""
        self._count_apart(self._last_phase, status.then_seconds, "transfer")

    def _count_apart(self, phase: str, seconds: float, counted_in: str) -> None:
        """Count seconds in one phase that were counted in another."""
        self._phases[counted_in] = round(self._phases[counted_in] - seconds, 3)
        self._phases[phase] = round(self._phases.get(phase, 0.0) + seconds, 3)

    def _finish(self, plan: Plan, done: Mapping[str, Sequence[object]]) -> dict[str, Sequence[object]]:
        """End what both sides have, but for those where that is ``done``; return the answers of both to that."""
        left = [side for side in self._runners if side not in done]
        said = run_parallel({side: partial(self._runners[side].run, *self._end(plan, side)) for side in left})
        return {**done, **said}

    def _verify(
        self,
        plan: Plan,
        source: Endpoint,
        dest: Endpoint,
        result: Result,
        quick_digests: Mapping[str, Digest | None],
    ) -> None:
        """Compare both trees by each host's own walk. The transfer's last steps are sent in the same executions."""
        verification = Verification(
            plan=plan,
            comparison=self._comparison(plan),
            before={side: [steps.stop(self._folder(side))] for side in self._runners},
            after={side: self._after(plan, side) for side in self._runners},
            label=self.label,
            say=self._say,
            phase=self._phase,
            send_again=lambda again: self._send_again(again, source, dest),
        )
        found = verification.run(result, quick_digests)
        counted = found.owners
        self._note_last_steps(self._after(plan, "dest"), found.after.get("dest", ()))
        result["verified"] = self._options["verify"]
        if counted and self._owners is None:
            with self._phase("verify"):
                judged = judge(self._runners["dest"], counted, True, plan.settings["owner_map"])
            add_owners(result, judged.mismatches, judged.hints, self._names, self._options["owner_warnings"])

    def _read_source(
        self,
        plan: Plan,
        source: Endpoint,
        dest: Endpoint,
        result: Result,
        quick_digests: Mapping[str, Digest | None],
    ) -> bool:
        """Read the source, and leave the destination to the step that completes the snapshot; False if it cannot."""
        comparison = self._comparison(plan)
        if not self._compares_later or not comparison.is_of_one_walk or result["files_total"] > _MOST_READ:
            return False
        digest = quick_digests.get("source")
        if "source" not in quick_digests:
            with self._phase("verify"):
                read = comparison.quick_digest_step("source", self._after(plan, "source"), _READ_WAIT)
                digest = parse_quick_digest(self._runners["source"].run(steps.stop(self._folder("source")), read)[-1])
        if digest is None or digest.errors_total:
            return False
        result["unstable"] = result["differences_total"] = 0
        result["compared"] = {"algorithm": "", "source": digest.counts, "dest": digest.counts}
        result["verified"] = self._options["verify"]
        self.uncompared = Uncompared(
            before=[steps.stop(self._folder("dest"))],
            compare={"request": comparison.request("dest"), "sums": digest.sums},
            after=self._after(plan, "dest"),
            send_again=partial(self._compare_again, plan, source, dest, result),
        )
        return True

    def _compare_again(self, plan: Plan, source: Endpoint, dest: Endpoint, result: Result) -> Result:
        self._verify(replace(plan, short=False), source, dest, result, {})
        return harmless_data(result)

    def _stop(self, plan: Plan, succeeded: bool, clear: bool = False) -> dict[str, str]:
        """Stop the job on both hosts; return why each failed, empty if it did not.

        Where neither host can be asked, the error of the driving one counts.
        """
        sides = (plan.driver, _other(plan.driver))
        return run_parallel({side: partial(self._stop_end, side, succeeded, clear) for side in sides})

    def _stop_end(self, side: str, succeeded: bool, clear: bool) -> str:
        asked: list[Step] = [steps.stop(self._folder(side), succeeded)]
        if clear:
            asked.append(steps.clear(self._folder(side)))
        status = as_object(self._runners[side].run(*asked)[0], "the last status of a job")
        return str(status.get("failure") or "")

    def _give_up(self, plan: Plan) -> None:
        """Stop and clear both hosts, the one that can be reached although the other cannot."""
        with contextlib.suppress(HostFailed):  # both were asked before the error of one of them counts
            self._stop(plan, succeeded=False, clear=True)

    def _clear(self) -> None:
        run_parallel(
            {side: partial(runner.run, steps.clear(self._folder(side))) for side, runner in self._runners.items()}
        )


def _transfers(request: Request) -> bool:
    """Whether a job's request is that of a driving end that writes."""
    return request.get("part") == "drive" and not request.get("settings", {}).get("check")


def _other(side: str) -> str:
    return "dest" if side == "source" else "source"


def _has_not_met(status: Status) -> bool:
    return status.progress.phase == "starting"


def _may_pass(status: Status) -> bool:
    """Whether what ended a transfer may be gone later: the line between the hosts, or a host that was restarted."""
    return status.unreachable or status.lost or status.state == "died"


def _both(status: Status, what: str, other: str) -> Status:
    return replace(status, failure=f"{status.failure}. {what}: {other}")


def _fingerprint(options: Mapping[str, Any]) -> str:
    """Return a digest that is equal for runs with the same meaning."""
    kept = {name: value for name, value in options.items() if name not in _NOT_COMPARED and "password" not in name}
    if kept.get("trust") == FULL:  # as in a release that did not have the option yet
        del kept["trust"]
    return hashlib.sha256(json.dumps(_sorted(kept)).encode()).hexdigest()[:16]


def _sorted(value: Any) -> Any:
    """Return data without tables: the keys of owner_map are names and numbers, which have no order."""
    if isinstance(value, Mapping):
        return sorted(([repr(key), _sorted(one)] for key, one in value.items()), key=lambda pair: pair[0])
    return value
