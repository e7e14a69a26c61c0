# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both hosts of a transfer: the steps that they are asked, by a pure class, and what asks them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer, Serve
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import as_object

from ..hosts.endpoint import Endpoint, make_endpoint, ssh_port
from ..hosts.host_runner import HostFailed, HostRunner
from ..hosts.pair import run_parallel
from . import steps
from .comparison import SIDES, Comparison
from .owners import names_to_look_up
from .plan import Ends, Plan, transfer_id
from .probe import parse_probe
from .roots import child_name
from .status import Status, parse_status
from .verification import comparison_of

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import ProbeFacts
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import TransferRequest
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Probe, Start, Step

_SERVE_WAIT = 60.0  # seconds for a serving end to be ready
_CONNECTED = 30.0  # seconds after which the ends have found each other, or have given up
_DRIVE_WAIT = 4.0  # seconds in which a short transfer ends, so that it needs no poll
_UNWATCHED = 1.0  # seconds in which it can fail at once, where the task does not wait for its end
_FILL_WAIT = 10.0  # seconds in which the transfer into most snapshots ends


@dataclass(frozen=True)
class TransferSteps:
    """Makes the steps of one transfer. Pure."""

    names: tuple[str, str]  # of source and destination in the inventory
    options: Mapping[str, Any]  # of the module, with their defaults
    fingerprint: str  # of the options
    check: bool
    remembers: bool = False  # what both hosts have is kept for the next run
    fills_snapshot: bool = False
    compares_later: bool = False  # the step that completes the snapshot compares it
    compares_rounded: bool = False  # a comparison reads the files whose times the destination keeps too coarsely

    @property
    def id(self) -> str:
        """The id of the transfer."""
        return transfer_id(self.names[0], self.options["src"], self.names[1], self.options["dest"])

    @property
    def label(self) -> str:
        """The transfer, as lines and messages name it."""
        return " -> ".join(self.names)

    @property
    def compares(self) -> bool:
        """Whether both trees are compared in the end."""
        return not self.check and bool(self.options["verify"] != "none")

    def folder(self, side: str) -> JobKey:
        """Return what names the job of a side."""
        return {"id": self.id, "side": side}

    def probe(
        self, side: str, ssh_port: int, methods: Sequence[str], expected: str = "", then: Sequence[Step] = ()
    ) -> Probe:
        """Return the step that probes a host; ``then`` follow if its probe has the fingerprint ``expected``."""
        return {
            "do": "probe",
            "path": self.options["src" if side == "source" else "dest"],
            "child": child_name(self.options["src"]) if side == "dest" else "",
            "methods": list(methods),
            "ssh_ports": [self.options["port"] or ssh_port, ssh_port],
            "rsyncd_module": self.options["rsyncd_module"],
            "link_dest": self.options["link_dest"] if side == "dest" else [],
            "owners": names_to_look_up(self.options["owner_map"], side),
            "expected": expected,
            "then": list(then),
            **self.folder(side),
        }

    def serve(self, plan: Plan, end: Endpoint, public: Serve, secrets: Sequence[str]) -> Start:
        """Return the step that starts the serving end, with the names of its secrets and what it may know openly."""
        request = self._request(plan, end, "serve")
        request["serve"] = {**plan.serve, **public}
        return {**self._start(end, request, secrets), "until": ["serving"], "wait": _SERVE_WAIT}

    def drive(
        self, plan: Plan, end: Endpoint, ready: Peer, secrets: Sequence[str], comparison: Comparison | None
    ) -> Start:
        """Return the step that starts the driving end, and what follows if the transfer has ended by then.

        ``ready`` is what the serving end said. ``comparison`` is that in the end, None if there is none.
        """
        request = self._request(plan, end, "drive")
        request["peer"] = {**ready, **plan.peer}  # the inventory's address wins over the one that it listens at
        seconds = _DRIVE_WAIT if self.options["wait"] else _FILL_WAIT if self.fills_snapshot else _UNWATCHED
        return {**self._start(end, request, secrets), "wait": seconds, "then": self._last(plan, end, comparison)}

    def _last(self, plan: Plan, end: Endpoint, comparison: Comparison | None) -> list[Step]:
        """Return the last steps that need no execution of their own.

        They never follow a poll, which is asked again where its answer was lost, and would find nothing then.
        """
        if comparison is None:
            return self.end(plan, end.side)
        by_name = not plan.settings["numeric_ids"]  # the outcome says what the owners have become
        if by_name or not plan.short or (self.compares_later and end.side == "dest"):
            return []
        return [steps.stop(self.folder(end.side)), comparison.quick_digest_step(end.side, self.after(plan, end))]

    def after(self, plan: Plan, end: Endpoint) -> list[Step]:
        """Return the steps that follow the comparison on a host.

        A destination that was empty is another one by then, so that it is probed again for the next run.
        """
        done: list[Step] = [steps.clear(self.folder(end.side)), *self._sync(plan, end.side)]
        if self.remembers and not self.fills_snapshot and end.side == "dest" and plan.roots.target["empty"]:
            done.append(self.probe(end.side, end.ssh_port, end.probe["methods"]))
        return done

    def end(self, plan: Plan, side: str) -> list[Step]:
        """Return the last steps on a host where nothing is compared."""
        return [*steps.end(self.folder(side)), *self._sync(plan, side)]

    def _sync(self, plan: Plan, side: str) -> list[Step]:
        """Return the step that waits for the disk, after all that is written to it, where the user wants that."""
        wanted = side == "dest" and self.options["sync"] == "data" and not self.check
        return [steps.sync(plan.roots.dest)] if wanted else []

    def _request(self, plan: Plan, end: Endpoint, part: str) -> TransferRequest:
        is_source = end.side == "source"
        return {
            "side": end.side,
            "part": part,
            "root": plan.roots.source if is_source else plan.roots.dest,
            "settings": plan.settings,
            "peer_name": self.names[1 if is_source else 0],
            "fingerprint": self.fingerprint,
            "probed": (end.probe["path"] if is_source else plan.roots.target).get("folder"),
        }

    def _start(self, end: Endpoint, request: TransferRequest, secrets: Sequence[str]) -> Start:
        job = end.probe["job"]
        return {
            "do": "start",
            "kind": "job",
            "request": request,
            "secrets": list(secrets),
            "replace": job["status"].get("pid") if job["running"] else None,
            "until": [],
            "wait": 0.0,
            "then": [],
            **self.folder(end.side),
        }


class HostChanged(Exception):
    """A host is not as it was remembered, so that no job was started there."""


@dataclass
class TransferHosts:
    """Asks the hosts of a transfer, and counts the seconds of each phase. ``say`` takes lines to show."""

    runners: Mapping[str, HostRunner]  # by side
    steps: TransferSteps
    say: Callable[[str], None]
    phases: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of this block to a phase."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - start, 3)

    def count_apart(self, phase: str, seconds: float, counted_in: str) -> None:
        """Count seconds in one phase that were counted in another."""
        self.phases[counted_in] = round(self.phases[counted_in] - seconds, 3)
        self.phases[phase] = round(self.phases.get(phase, 0.0) + seconds, 3)

    def ask(self, asked: Mapping[str, Sequence[Step]]) -> dict[str, Sequence[object]]:
        """Return the answers of each side to its steps."""
        return run_parallel({side: partial(self.runners[side].run, *asked[side]) for side in asked})

    def ssh_port(self, side: str) -> int:
        """Return the port of a host's own sshd."""
        return ssh_port(self.runners[side].variables, self.runners[side].connection)

    def probe_step(self, side: str, methods: Sequence[str]) -> Probe:
        """Return the step that probes a host of which nothing is known."""
        return self.steps.probe(side, self.ssh_port(side), methods)

    def endpoint(self, side: str, facts: ProbeFacts) -> Endpoint:
        """Return a host with what its probe found."""
        runner = self.runners[side]
        return make_endpoint(runner.name, side, runner.variables, runner.connection, facts)

    def probe(self, methods: Sequence[str], known: Ends = MappingProxyType({})) -> Ends:
        """Return what both hosts have, as far as the methods need it; those that are ``known`` are not asked."""
        with self.phase("probe"):
            answers = self.ask({side: [self.probe_step(side, methods)] for side in SIDES if side not in known})
        found = {side: self.endpoint(side, parse_probe(said[0])) for side, said in answers.items()}
        return {side: known.get(side) or found[side] for side in SIDES}

    def start(self, end: Endpoint, step: Start, secrets: dict[str, str]) -> Status:
        """Start a job."""
        (said,) = self.runners[end.side].run(step, secrets=secrets)
        return parse_status(said)

    def start_if_same(self, end: Endpoint, step: Start, secrets: dict[str, str]) -> tuple[Endpoint, Status]:
        """Probe a host, and start its job in the same execution if it is as before. Raises HostChanged."""
        before = end.probe
        probe = self.steps.probe(end.side, end.ssh_port, before["methods"], before["fingerprint"], [step])
        (found,) = self.runners[end.side].run(probe, secrets=secrets)
        facts = parse_probe(found)
        if not facts.get("then"):
            raise HostChanged
        return self.endpoint(end.side, facts), parse_status(facts["then"][0])

    def wait_for_connection(self, plan: Plan, status: Status) -> Status:
        """Wait until the ends have found each other: afterwards nobody is there who could try another method."""
        deadline = time.monotonic() + _CONNECTED
        while status.alive and status.progress.phase == "starting" and time.monotonic() < deadline:
            (said,) = self.runners[plan.driver].run(steps.poll(self.steps.folder(plan.driver), 1.0))
            status = parse_status(said)
        return status

    def stop(self, sides: Sequence[str], succeeded: bool = False, clear: bool = False) -> dict[str, str]:
        """Stop the jobs of these sides; return why each failed, empty if it did not.

        Where no host can be asked, the error of the first one counts.
        """
        asked: dict[str, list[Step]] = {side: [steps.stop(self.steps.folder(side), succeeded)] for side in sides}
        if clear:
            asked = {side: [*ones, steps.clear(self.steps.folder(side))] for side, ones in asked.items()}
        said = {side: as_object(ones[0], "the last status of a job") for side, ones in self.ask(asked).items()}
        return {side: str(status.get("failure") or "") for side, status in said.items()}

    def give_up(self, plan: Plan) -> None:
        """Stop and clear both hosts, the one that can be reached although the other cannot."""
        with contextlib.suppress(HostFailed):  # both were asked before the error of one of them counts
            self.stop(plan.sides, clear=True)

    def comparison(self, plan: Plan, kept_mounts: Sequence[str] = ()) -> Comparison:
        """Return the comparison after a transfer."""
        asked = self.steps
        return comparison_of(plan, self.runners, asked.options, asked.label, asked.compares_rounded, kept_mounts)
