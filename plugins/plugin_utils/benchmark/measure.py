# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure a pair of hosts: the tree, both disks, the line between them and both processors.

Each part is a job of idle priority on its host, one after the other under one id; the two hosts work at the same time
where they do not disturb each other. Whatever happens, both are asked to stop and to remove what is theirs.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import as_object

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint, make_endpoint, ssh_port
from ..hosts.host_runner import HostFailed, HostRunner, fails_alone
from ..hosts.pair import run_parallel
from ..transfer import credentials, steps
from ..transfer.comparison import SIDES
from ..transfer.methods import METHODS
from ..transfer.plan import choose_streams, own_addresses
from ..transfer.probe import parse_probe
from ..transfer.status import Status, parse_status
from .answers import (
    DiskAnswer,
    LinkAnswer,
    parse_disk_answer,
    parse_gaps,
    parse_link_answer,
    parse_processor,
)
from .measurement import DiskMeasurement, LinkMeasurement, PairMeasurement, ProcessorMeasurement, TreeMeasurement

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Serve
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import BenchmarkRequest
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Probe, Start

LEAST_SECONDS, LEAST_BYTES = 5.0, 32 << 20  # with less, nothing that is measured says anything
_DISK_SHARE, _LINK_SHARE, _PROCESSOR_SHARE = 0.5, 0.35, 0.1  # of the seconds
_LEAST_OF_SHARE = 0.5  # of the seconds of a part, where earlier parts took longer than theirs
_GRACE = 60.0  # seconds by which a job may take longer: a sync on a slow disk ends when it ends
_NO_PATH = "/dev/null"  # where there is nothing to describe
_NO_DISK = DiskAnswer(DiskMeasurement(), None, None, ())
_MADE_RATIO = 1.0  # of what is written at the destination: a file system that compresses must not shine


@dataclass(frozen=True)
class MeasureRequest:
    """Request to measure a pair, with its budget. No byte of the user's data leaves its host."""

    src: str  # empty, as dest is then: no tree and no disk is measured
    dest: str
    seconds: float = 20.0
    bytes: int = 1 << 30  # that are read, written or sent by each part
    rules: Sequence[str] = ()
    one_file_system: bool = False
    connect: str = "auto"  # as transfer has it
    ports: Sequence[int] = ()  # to listen at; none: any


class MeasuredPair(NamedTuple):
    """What was measured of a pair, and its hosts by their sides, with the programs of all methods."""

    measurement: PairMeasurement
    ends: Mapping[str, Endpoint]


def measure_pair(
    source: HostRunner, dest: HostRunner, request: MeasureRequest, say: Callable[[str], None]
) -> MeasuredPair:
    """Measure a pair. Nothing stays on the hosts.

    Raises Refusal for a budget that is too small, HostFailed beside a transfer or another benchmark, for a tree that
    cannot be read, and for hosts that cannot be asked, and ValueError for an answer that is none.
    """
    if request.seconds < LEAST_SECONDS or request.bytes < LEAST_BYTES:
        raise Refusal(
            f"{request.seconds:g} seconds and {request.bytes >> 20} MiB are too little to measure anything: give at "
            f"least {LEAST_SECONDS:g} seconds and {LEAST_BYTES >> 20} MiB"
        )
    return fails_alone(_PairBenchmark({"source": source, "dest": dest}, request, say).run)


class _PairBenchmark:
    """One benchmark of one pair."""

    def __init__(self, runners: Mapping[str, HostRunner], request: MeasureRequest, say: Callable[[str], None]) -> None:
        self._runners, self._request, self._say = runners, request, say
        self._id = f"benchmark{secrets.token_hex(8)}"
        self._gaps: list[str] = []
        self._began = time.monotonic()
        self._serving = ""  # the side whose job has served the line, and may not have ended yet

    def run(self) -> MeasuredPair:
        """Measure everything."""
        started, self._began = time.time(), time.monotonic()
        ends = {side: self._endpoint(side) for side in SIDES}
        try:
            disks = self._measure_disks(ends) if self._request.src else dict.fromkeys(SIDES, _NO_DISK)
            link = self._measure_link(ends)
            processors = self._measure_processors(disks["source"])
        finally:
            execution = self._clean_up()
        measurement = PairMeasurement(
            source=self._runners["source"].name,
            dest=self._runners["dest"].name,
            at=started,
            seconds=round(time.monotonic() - self._began, 3),
            bytes_sent=link.bytes_sent,
            execution=round(execution, 3),
            is_one_machine=_is_one_machine(ends),
            link=link.link,
            disks={side: disks[side].disk for side in SIDES},
            processors=processors,
            tree=disks["source"].tree or TreeMeasurement(),
            gaps=tuple(dict.fromkeys(self._gaps)),
        )
        return MeasuredPair(measurement, ends)

    # Hosts

    def _endpoint(self, side: str) -> Endpoint:
        runner = self._runners[side]
        probe: Probe = {
            "do": "probe",
            "path": self._path(side),
            "methods": list(METHODS),
            "ssh_ports": [ssh_port(runner.variables, runner.connection)],
            "child": "",
            "rsyncd_module": None,
            "link_dest": [],
            "owners": {},
            "expected": "",
            "then": [],
            **self._folder(side),
        }
        (said,) = runner.run(probe)
        return make_endpoint(runner.name, side, runner.variables, runner.connection, parse_probe(said))

    def _path(self, side: str) -> str:
        return (self._request.src if side == "source" else self._request.dest) or _NO_PATH

    def _folder(self, side: str) -> JobKey:
        return {"id": self._id, "side": side}

    def _job(self, side: str, work: str, seconds: float) -> BenchmarkRequest:
        other = "dest" if side == "source" else "source"
        return {
            "side": side,
            "part": "benchmark",
            "root": self._path(side),
            "peer_name": self._runners[other].name,
            "work": work,
            "seconds": seconds,
            "bytes": self._request.bytes,
            "rules": list(self._request.rules),
            "one_file_system": self._request.one_file_system,
            "streams": 1,
            "ratio": _MADE_RATIO,
        }

    def _run(
        self,
        side: str,
        request: BenchmarkRequest,
        until: Sequence[str] = (),
        given: Mapping[str, str] = MappingProxyType({}),
    ) -> Status:
        """Run a job to its end, or until it is in a state, and return its status. Raises HostFailed if it failed."""
        start: Start = {
            "do": "start",
            "kind": "benchmark",
            "request": request,
            "until": list(until),
            "secrets": list(given),
            "replace": None,
            "then": [],
            "wait": request["seconds"] + _GRACE,
            **self._folder(side),
        }
        before = [steps.stop(self._folder(side))] if side == self._serving else []
        said = self._runners[side].run(*before, start, secrets=dict(given))[-1]
        self._serving = "" if before else self._serving
        status = parse_status(said)
        if status.alive and status.state not in until:
            raise HostFailed(
                f"the benchmark did not end in {request['seconds'] + _GRACE:.0f} seconds. A disk that hangs, or a host "
                "under heavy load, delays it: look at dmesg and at the load there",
                self._runners[side].name,
            )
        if status.failure:
            raise HostFailed(status.failure, self._runners[side].name)
        return status

    def _clean_up(self) -> float:
        """Stop both jobs and remove what is theirs, on the host that can be reached although the other cannot.

        Return the seconds that Ansible took for the slower host, which it asked nothing else; 0 if it reached neither.
        """
        longest = 0.0
        for side, runner in self._runners.items():
            began = time.monotonic()
            try:
                runner.run(*steps.end(self._folder(side)))
                longest = max(longest, time.monotonic() - began)
            except HostFailed as error:  # its seconds are those of a timeout, or of an error
                self._say(f"the benchmark could not be cleaned up, which the next one on this host does: {error}")
        return longest

    # Parts

    def _seconds_of(self, share: float, later: float) -> float:
        """Return the seconds for a part with this share; ``later`` is the share of all parts after it."""
        elapsed = time.monotonic() - self._began
        return share_left(self._request.seconds, elapsed, share, later)

    def _measure_disks(self, ends: Mapping[str, Endpoint]) -> dict[str, DiskAnswer]:
        self._say(f"{self._label}: measuring the tree and the disks")
        seconds = self._request.seconds * _DISK_SHARE / (2 if _is_one_machine(ends) else 1)
        found = self._on_both(
            ends, lambda side: self._run(side, self._job(side, "disk", seconds), given=self._certificate())
        )
        answers = {side: parse_disk_answer(found[side].benchmark, side == "source") for side in SIDES}
        for side in SIDES:
            self._gaps.extend(answers[side].gaps)
        return answers

    def _measure_processors(self, at_source: DiskAnswer) -> dict[str, ProcessorMeasurement]:
        """Measure the destination's processor with made data that compress as the source's sample does."""
        self._say(f"{self._label}: measuring the processors")
        ratio = at_source.tree.ratio if at_source.tree else 1.0
        source = at_source.processor if self._request.src else self._measure_processor("source", ratio)
        return {"source": source or ProcessorMeasurement(), "dest": self._measure_processor("dest", ratio)}

    def _measure_processor(self, side: str, ratio: float) -> ProcessorMeasurement:
        asked = self._job(side, "processor", self._seconds_of(_PROCESSOR_SHARE, 0.0))
        asked["ratio"] = ratio
        answer = as_object(self._run(side, asked, given=self._certificate()).benchmark, "the measurement")
        self._gaps.extend(parse_gaps(answer))
        return parse_processor(answer)

    @staticmethod
    def _certificate() -> dict[str, str]:
        """Make what TLS within one host needs."""
        made, _public = credentials.for_transfer("stream", True, None)
        return made["serve"]

    def _measure_link(self, ends: Mapping[str, Endpoint]) -> LinkAnswer:
        """Measure the line by whichever end can connect to the other; a gap if neither can."""
        self._say(f"{self._label}: measuring the line")
        failures = []
        for connect in ("push", "pull") if self._request.connect == "auto" else (self._request.connect,):
            driver, server = SIDES if connect == "push" else SIDES[::-1]
            try:
                answer = self._measure_from(ends, driver, server)
            except HostFailed as error:
                failures.append(str(error))
                self._runners[server].run(steps.stop(self._folder(server), succeeded=False))
                continue
            self._serving = server
            found = parse_link_answer(answer.benchmark, connect)
            self._gaps.extend(found.gaps)
            return found
        self._gaps.append(f"The line could not be measured: {' '.join(failures)}.")
        return LinkAnswer(LinkMeasurement(), 0, ())

    def _measure_from(self, ends: Mapping[str, Endpoint], driver: str, server: str) -> Status:
        """Measure the line from one end; return the status of its job. Raises HostFailed."""
        made, _public = credentials.for_transfer("stream", True, None)
        seconds = self._seconds_of(_LINK_SHARE, _PROCESSOR_SHARE)
        peer, own = ends[server], ends[driver]
        serve: Serve = {
            "address": peer.address,
            "allow": list(dict.fromkeys([own.address, *own_addresses(own, peer)])),
            "ports": list(self._request.ports),
        }
        asked = self._job(server, "serve", seconds)
        asked["serve"] = serve
        serving = self._run(server, asked, ("serving",), made["serve"])
        if serving.state != "serving":
            raise HostFailed("the serving end of the measurement ended before it was connected to", peer.name)
        asked = self._job(driver, "drive", seconds)
        asked["peer"] = {**serving.ready, "address": peer.address, "host": peer.name}
        asked["streams"] = choose_streams("auto", "stream", ends["source"], ends["dest"])
        return self._run(driver, asked, (), made["drive"])

    def _on_both(self, ends: Mapping[str, Endpoint], do: Callable[[str], Status]) -> dict[str, Status]:
        """Do something on both hosts at once; one after the other where they are one machine."""
        if _is_one_machine(ends):
            return {side: do(side) for side in SIDES}
        return run_parallel({side: partial(do, side) for side in SIDES})

    @property
    def _label(self) -> str:
        return " -> ".join(self._runners[side].name for side in SIDES)


def _is_one_machine(ends: Mapping[str, Endpoint]) -> bool:
    return ends["source"].probe["machine"] == ends["dest"].probe["machine"]


def share_left(budget: float, elapsed: float, share: float, later: float) -> float:
    """Return the seconds for a part of a measurement: less than its share where earlier parts took too long. Pure.

    ``share`` and ``later`` are the shares of this part and of all parts after it.
    """
    left = (budget - elapsed) / (budget * (share + later))
    return budget * share * min(1.0, max(_LEAST_OF_SHARE, left))
