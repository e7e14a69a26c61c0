# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One transfer from the control node's side: probe, plan, serve, drive, watch, compare, clean up."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from . import credentials
from .endpoint import Endpoint, Refusal, make_endpoint, ssh_port
from .host_runner import ControllerGone, HostFailed, HostRunner
from .interruption import Interruption
from .methods import METHODS, OWN_PORT
from .options import check_options
from .owner_census import Owners, judge, take_census
from .owners import add_owners, merged, names_to_look_up
from .parallel import run_parallel
from .plan import CHANGES_LISTED, Plan, first_look, needs_all, transfer_id
from .repair import WHOLE_PROGRAM, add_repair
from .report import TransferError, failure_of_paths, shape_result, with_earlier, with_server_side, with_unreachable
from .roots import child_name
from .rsync_fallback import make_plan, plan_by_rsync
from .status import Progress, Status, parse_status
from .verification import Verification, comparison_of
from .watching import watch

_SERVE_WAIT = 60.0  # seconds for a serving end to be ready
_CONNECTED = 30.0  # seconds after which the ends have found each other, or have given up
_DRIVE_WAIT = 4.0  # seconds in which a short transfer ends, so that it needs no poll
_UNWATCHED = 1.0  # seconds in which it can fail at once, where the task does not wait for its end
_NOT_COMPARED = ("wait", "timeout", "verify", "owner_warnings")  # options in which a run that attaches may differ


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
    ) -> None:
        """Take both ends, the module's options with their defaults, where progress lines go, and last words."""
        self._runners = {"source": source, "dest": dest}
        self._options = options
        self._check = check
        self._say = say
        self._interruption = interruption
        self._phases: dict[str, float] = {}
        self._names = (source.name, dest.name)
        self._label = " -> ".join(self._names)
        self._owners: Owners | None = None  # where a count was needed
        self.id = transfer_id(source.name, options["src"], dest.name, options["dest"])
        self._fingerprint = _fingerprint(options)

    def run(self) -> dict[str, Any]:
        """Do it all and give the result. Raises Refusal, HostFailed or TransferError."""
        check_options(self._options)
        source, dest = self._probe()
        running = self._running_driver(source, dest)
        if running:
            plan = self._attach(source, dest, running)
            status = self._watch_driver(plan)
        else:
            earlier = self._earlier_outcome(source, dest)
            plan, status = self._either_way(make_plan(self._options, source, dest, self._check), source, dest)
            if status.get("unreachable") and plan.choice.tentative:
                plan, status = self._fall_back(plan, status, source, dest)
            if status["alive"]:
                return shape_result(plan, status, "running", self._phases)
            status = with_earlier(status, earlier)
        return self._conclude(plan, source, dest, status, attached=bool(running))

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = round(self._phases.get(name, 0.0) + time.monotonic() - start, 3)

    def _folder(self, side: str) -> dict[str, str]:
        return {"id": self.id, "side": side}

    # Probe

    def _probe(self) -> tuple[Endpoint, Endpoint]:
        source, dest = self._probe_for(first_look(self._options))
        return self._probe_for(METHODS) if needs_all(self._options, source, dest) else (source, dest)

    def _probe_for(self, methods: tuple[str, ...]) -> tuple[Endpoint, Endpoint]:
        """Ask both hosts for what they have, as far as the methods need it."""
        with self._phase("probe"):
            ends = run_parallel(
                {
                    "source": partial(self._probe_end, "source", "src", methods),
                    "dest": partial(self._probe_end, "dest", "dest", methods),
                }
            )
        return ends["source"], ends["dest"]

    def _probe_end(self, side: str, option: str, methods: tuple[str, ...]) -> Endpoint:
        runner = self._runners[side]
        port = ssh_port(runner.variables, runner.connection)
        step = {
            "do": "probe",
            "path": self._options[option],
            "child": child_name(self._options["src"]) if side == "dest" else "",
            "methods": methods,
            "ssh_ports": [self._options["port"] or port, port],
            "rsyncd_module": self._options["rsyncd_module"],
            "link_dest": self._options["link_dest"] if side == "dest" else [],
            "owners": names_to_look_up(self._options["owner_map"], side),
            **self._folder(side),
        }
        (found,) = runner.run(step)
        return make_endpoint(runner.name, side, runner.variables, runner.connection, found)

    # A transfer that an earlier run started

    def _running_driver(self, source: Endpoint, dest: Endpoint) -> str:
        """Give the side whose driving job is alive; empty where none is.

        One that only predicts (left behind by a check mode run) writes nothing: it makes way for this run.
        """
        for end in (source, dest):
            job = end.probe["job"]
            request = job["request"]
            if job["running"] and request.get("part") == "drive" and not request["settings"]["check"]:
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
        self._say(f"{self._label}: attached to the running transfer {self.id}")
        method = request["settings"]["method"]
        if method not in source.probe["methods"]:
            source, dest = self._probe_for((method,))
        others = dict.fromkeys(set(METHODS) - {method}, "another is running")
        return make_plan(self._options, source, dest, self._check, pull=side == "dest", avoid=others)

    def _earlier_outcome(self, source: Endpoint, dest: Endpoint) -> dict[str, Any]:
        """Give what a run that nobody waited for did, so that its changes are not lost; empty where there is none."""
        for end in (source, dest):
            job = end.probe["job"]
            if not job["running"] and job["request"].get("part") == "drive" and not job["request"]["settings"]["check"]:
                outcome: dict[str, Any] = job["status"].get("outcome", {})
                return outcome
        return {}

    # Serve and drive

    def _either_way(
        self, plan: Plan, source: Endpoint, dest: Endpoint, avoid: Mapping[str, str] | None = None
    ) -> tuple[Plan, Status]:
        """Transfer; let the destination connect where the source cannot. Where both fail, the first failure counts."""
        status = self._transfer(plan, source, dest)
        if not status.get("unreachable") or self._options["connect"] != "auto" or plan.driver == "dest":
            return plan, status
        self._say(f"{self._label}: {status['failure']}. Trying the other direction")
        self._stop(plan, succeeded=False, clear=True)
        try:
            other = make_plan(self._options, source, dest, self._check, pull=True, avoid=avoid)
            turned = self._transfer(other, source, dest)
        except (Refusal, HostFailed, TransferError) as error:
            return plan, _both(status, "The other direction was tried too", str(error))
        if turned.get("unreachable"):
            self._stop(other, succeeded=False)
            return plan, _both(status, "The other direction was tried too", turned["failure"])
        return other, turned

    def _fall_back(self, plan: Plan, status: Status, source: Endpoint, dest: Endpoint) -> tuple[Plan, Status]:
        """Use a method that needs no port but ssh's, since that of the chosen one cannot be reached."""
        self._say(f"{self._label}: {status['failure']}. Trying without a port of its own")
        self._stop(plan, succeeded=False, clear=True)
        avoid = dict.fromkeys(OWN_PORT, status["failure"])
        try:
            source, dest = self._probe_for(METHODS)
            other = make_plan(self._options, source, dest, self._check, avoid=avoid)
        except (Refusal, HostFailed) as error:
            return plan, _both(status, "Methods that use the port of ssh were looked at too", str(error))
        advice = (
            f"method {plan.choice.method} was tried first, and its port could not be reached, which took time: open "
            f"one between the hosts (port, port_range), or name method {other.choice.method}"
        )
        return self._either_way(replace(other, warnings=(*other.warnings, advice)), source, dest, avoid)

    def _transfer(self, plan: Plan, source: Endpoint, dest: Endpoint) -> Status:
        """Start both ends, and wait for the end of the driving one unless the task shall not wait; gives its status."""
        status = self._start_plan(plan, source, dest)
        if status["alive"] and self._options["wait"]:
            return self._watch_driver(plan)
        if status["alive"] and plan.choice.tentative:
            return self._wait_for_connection(plan, status)
        return status

    def _wait_for_connection(self, plan: Plan, status: Status) -> Status:
        """Wait until the ends have found each other: afterwards nobody is there who could try another method."""
        deadline = time.monotonic() + _CONNECTED
        while status["alive"] and _has_not_met(status) and time.monotonic() < deadline:
            (said,) = self._runners[plan.driver].run({"do": "poll", "wait": 1.0, **self._folder(plan.driver)})
            status = parse_status(said)
        return status

    def _start_plan(self, plan: Plan, source: Endpoint, dest: Endpoint) -> Status:
        ends = {"source": source, "dest": dest}
        plan = self._with_owners(plan)
        driver, server = plan.driver, "dest" if plan.driver == "source" else "source"
        self._interruption.in_transfer(self.id, self._label, self._names, certain=False)
        try:
            with self._phase("connect"):
                password = (self._options["rsyncd_password"] or "") if self._options["rsyncd_module"] else None
                secrets, public = credentials.for_transfer(plan.choice.method, plan.settings["encrypt"], password)
                serve = {"serve": dict(plan.serve, **public)}
                wait = {"until": ["serving"], "wait": _SERVE_WAIT}
                ready = self._start_end(ends[server], plan, "serve", serve, secrets["serve"], wait)
                if ready["state"] != "serving":
                    said = ready.get("failure") or "the serving end is not ready"
                    raise TransferError(f"{ends[server].name}: {said}")
            with self._phase("transfer"):
                peer = {**ready["ready"], **plan.peer}  # the inventory's address wins over the one that it listens at
                seconds = _DRIVE_WAIT if self._options["wait"] else _UNWATCHED
                wait = {"until": [], "wait": seconds, "then": self._last_steps(plan, driver)}
                status = self._start_end(ends[driver], plan, "drive", {"peer": peer}, secrets["drive"], wait)
            self._count_last_steps(status)
            return status
        except BaseException:  # nothing may remain, whatever ended it; a driving job that was started is stopped too
            self._give_up(plan)
            raise

    def _with_owners(self, plan: Plan) -> Plan:
        """Have the owners counted for a program that does not say whom it meets, and tell it what they become."""
        if plan.choice.method not in WHOLE_PROGRAM or (plan.settings["numeric_ids"] and not self._check):
            return plan
        if self._owners is None:
            with self._phase("owners"):
                self._owners = take_census(
                    self._runners,
                    self.id,
                    plan.roots.source,
                    plan.settings,
                    self._say,
                    self._label,
                    self._options["timeout"],
                )
        return replace(plan, settings={**plan.settings, "numeric_ids": True, "owner_map": self._owners.table})

    def _start_end(
        self,
        end: Endpoint,
        plan: Plan,
        part: str,
        connection: dict[str, Any],
        secrets: dict[str, str],
        wait: dict[str, Any],
    ) -> Status:
        request = {
            "side": end.side,
            "part": part,
            "root": plan.roots.source if end.side == "source" else plan.roots.dest,
            "settings": dict(plan.settings),
            "peer_name": self._runners["dest" if end.side == "source" else "source"].name,
            "fingerprint": self._fingerprint,
            **connection,
        }
        step = {
            "do": "start",
            "kind": "job",
            "request": request,
            "secrets": list(secrets),
            "replace": end.probe["job"]["status"].get("pid") if end.probe["job"]["running"] else None,
            **wait,
            **self._folder(end.side),
        }
        (said,) = self._runners[end.side].run(step, secrets=secrets)
        return parse_status(said)

    def _watch_driver(self, plan: Plan) -> Status:
        self._interruption.in_transfer(self.id, self._label, self._names)
        with self._phase("transfer"):
            runner = self._runners[plan.driver]
            return watch(runner, self._folder(plan.driver), self._label, self._say, self._options["timeout"])

    # The end

    def _conclude(self, plan: Plan, source: Endpoint, dest: Endpoint, status: Status, attached: bool) -> dict[str, Any]:
        self._interruption.after_transfer(self._label)
        failure = self._failure(plan, status)
        if failure:
            raise TransferError(failure, self._shape(plan, status, "failed"))
        result = self._shape(plan, status, "finished")
        result["attached"] = attached
        done = {plan.driver: status["then"][-1]} if "then" in status else {}
        # What every owner has become, for the comparison and for what it sends again.
        owner_map = merged(plan.settings["owner_map"], status["outcome"].get("owners") or {})
        plan = replace(plan, settings={**plan.settings, "owner_map": owner_map})
        if status["outcome"].get("deferred"):
            self._hand_to_rsync(plan, status["outcome"]["deferred"], source, dest, result)
            done = {}
        if self._compares:
            self._verify(plan, source, dest, result, done)
        else:
            with self._phase("finish"):
                self._finish(done)
        result["phases"] = dict(self._phases)
        result["duration"] = round(sum(self._phases.values()), 3)
        return result

    def _shape(self, plan: Plan, status: Status, state: str) -> dict[str, Any]:
        """Return the task's result, with what either the engine or a count found about owners."""
        result = shape_result(plan, status, state, self._phases)
        outcome = status.get("outcome") or {}
        found = self._owners or Owners({}, outcome.get("owner_mismatches", []), outcome.get("owner_hints", []))
        add_owners(result, found.mismatches, found.hints, self._names, self._options["owner_warnings"])
        return result

    def _failure(self, plan: Plan, status: Status) -> str:
        """Say why a transfer failed, and leave nothing of it on the hosts; empty where it did not."""
        outcome = status.get("outcome", {})
        failure = status.get("failure") or outcome.get("failure") or failure_of_paths(outcome)
        if not failure and status["state"] == "finished":
            return ""
        failure = failure or f"the transfer ended as {status['state']}"
        try:
            with self._phase("finish"):
                said = self._stop(plan, succeeded=False)
                self._clear()
        except ControllerGone:
            raise
        except HostFailed as error:
            return with_unreachable(failure, error)
        return with_server_side(failure, said, plan.driver)

    def _hand_to_rsync(
        self, plan: Plan, paths: list[str], source: Endpoint, dest: Endpoint, result: dict[str, Any]
    ) -> None:
        """Let rsync bring the files that stream left to it, and add that to the result."""
        self._say(f"{self._label}: {len(paths)} files whose content moved are left to rsync")
        with self._phase("finish"):
            self._stop(plan, succeeded=True, clear=True)
        try:
            by_rsync = plan_by_rsync(plan, self._options, source, dest, paths)
            add_repair(result, self._send_again(by_rsync, source, dest), CHANGES_LISTED)
        except (Refusal, TransferError) as error:
            raise TransferError(
                f"all but {len(paths)} files were transferred. These were left to rsync (delta), which failed: {error}",
                result,
            ) from error
        result["by_rsync"] = len(paths)

    def _send_again(self, plan: Plan, source: Endpoint, dest: Endpoint) -> dict[str, Any]:
        """Transfer what a comparison found to differ, to its end; gives the outcome. Raises TransferError."""
        status = self._start_plan(replace(plan, short=False), source, dest)
        if status["alive"]:
            status = self._watch_driver(plan)
        self._interruption.after_transfer(self._label)
        failure = self._failure(plan, status)
        if failure:
            raise TransferError(failure)
        return status["outcome"]

    @property
    def _compares(self) -> bool:
        return not self._check and self._options["verify"] != "none"

    def _last_steps(self, plan: Plan, side: str) -> list[dict[str, Any]]:
        """Give what follows on the driving side at once where the transfer has ended by then: it costs no execution.

        It never follows a poll, which is asked again where its answer was lost, and would find nothing then.
        """
        stop, clear = self._stop_step(side), self._clear_step(side)
        if not self._compares:
            return [stop, clear]
        met_by_name = not plan.settings["numeric_ids"]  # what they have become, the outcome says
        if not plan.short or met_by_name:
            return []
        comparison = comparison_of(plan, self._runners, self._options, self._label)
        return [stop, comparison.quick_digest_step(side, [clear])]

    def _count_last_steps(self, status: Status) -> None:
        """Take the last steps out of the time of the transfer: most of it is one side's half of the comparison."""
        seconds, phase = status.get("then_seconds", 0.0), "verify" if self._compares else "finish"
        self._phases["transfer"] = round(self._phases["transfer"] - seconds, 3)
        self._phases[phase] = round(self._phases.get(phase, 0.0) + seconds, 3)

    def _finish(self, done: Collection[str]) -> None:
        """End what both sides have, but for those where that is done."""
        left = [side for side in self._runners if side not in done]
        run_parallel({side: partial(self._stop_end, side, succeeded=True, clear=True) for side in left})

    def _verify(
        self,
        plan: Plan,
        source: Endpoint,
        dest: Endpoint,
        result: dict[str, Any],
        quick_digests: Mapping[str, dict[str, Any]],
    ) -> None:
        """Compare both trees by each host's own walk. The last steps of the transfer travel in the same executions."""
        verification = Verification(
            plan=plan,
            comparison=comparison_of(plan, self._runners, self._options, self._label),
            repairs=self._options["verify"] == "checksum",
            before={side: [self._stop_step(side)] for side in self._runners},
            after={side: [self._clear_step(side)] for side in self._runners},
            label=self._label,
            say=self._say,
            phase=self._phase,
            send_again=lambda again: self._send_again(again, source, dest),
        )
        counted = verification.run(result, quick_digests)
        result["verified"] = self._options["verify"]
        if counted and self._owners is None:
            with self._phase("verify"):
                found = judge(self._runners["dest"], counted, True, plan.settings["owner_map"])
            add_owners(result, found.mismatches, found.hints, self._names, self._options["owner_warnings"])

    def _stop(self, plan: Plan, succeeded: bool, clear: bool = False) -> dict[str, dict[str, Any]]:
        """Stop the job on both hosts; gives each side's last status. Of two errors the driving host's counts."""
        sides = (plan.driver, "dest" if plan.driver == "source" else "source")
        return run_parallel({side: partial(self._stop_end, side, succeeded, clear) for side in sides})

    def _stop_end(self, side: str, succeeded: bool, clear: bool) -> dict[str, Any]:
        steps = [self._stop_step(side, succeeded), *([self._clear_step(side)] if clear else [])]
        return self._runners[side].run(*steps)[0]

    def _stop_step(self, side: str, succeeded: bool = True) -> dict[str, Any]:
        return {"do": "stop", "succeeded": succeeded, **self._folder(side)}

    def _clear_step(self, side: str) -> dict[str, Any]:
        return {"do": "clear", **self._folder(side)}

    def _give_up(self, plan: Plan) -> None:
        """Stop and clear both hosts, the one that can be reached although the other cannot."""
        with contextlib.suppress(HostFailed):  # both were asked before the error of one of them counts
            self._stop(plan, succeeded=False, clear=True)

    def _clear(self) -> None:
        run_parallel({side: partial(runner.run, self._clear_step(side)) for side, runner in self._runners.items()})


def _has_not_met(status: Status) -> bool:
    return status.get("progress", Progress()).get("phase", "starting") == "starting"


def _both(status: Status, what: str, other: str) -> Status:
    return {**status, "failure": f"{status['failure']}. {what}: {other}"}


def _fingerprint(options: Mapping[str, Any]) -> str:
    """Tell two runs with the same meaning from two with different options."""
    kept = {name: value for name, value in options.items() if name not in _NOT_COMPARED and "password" not in name}
    return hashlib.sha256(json.dumps(_sorted(kept)).encode()).hexdigest()[:16]


def _sorted(value: Any) -> Any:
    """Return data without tables: the keys of owner_map are names and numbers, which have no order."""
    if isinstance(value, Mapping):
        return sorted(([repr(key), _sorted(one)] for key, one in value.items()), key=lambda pair: pair[0])
    return value
