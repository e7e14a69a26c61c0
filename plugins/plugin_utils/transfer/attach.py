# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The job of an earlier run of a transfer: this run attaches to it, collects its result, or starts another."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer, parse_peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import FULL
from .plan import Ends
from .status import Status, parse_status, seconds_of_run

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import Request

# Options in which a run that attaches may differ.
_NOT_COMPARED = ("wait", "collect", "timeout", "verify", "sync", "owner_warnings")


class RunningTransfer(NamedTuple):
    """The transfer of a task, as an error names it if it runs already."""

    id: str
    how_to_stop: str


class EarlierRun(NamedTuple):
    """The result of a run that nobody waited for."""

    outcome: Outcome
    seconds: float  # that it took


class EarlierJob(NamedTuple):
    """The connecting job that an earlier run of the same task has started."""

    side: str
    status: Status  # alive: this run attaches to it; else this run collects its result
    method: str
    ready: Peer  # what the serving end said
    started_ns: int  # by the source's clock


def task_fingerprint(options: Mapping[str, Any]) -> str:
    """Return a digest that is equal for tasks with the same meaning."""
    kept = {name: value for name, value in options.items() if name not in _NOT_COMPARED and "password" not in name}
    if kept.get("trust") == FULL:  # as in a release that did not have the option yet
        del kept["trust"]
    return hashlib.sha256(json.dumps(_sorted(kept)).encode()).hexdigest()[:16]


def _sorted(value: Any) -> Any:
    """Return data without tables: the keys of owner_map are names and numbers, which have no order."""
    if isinstance(value, Mapping):
        return sorted(([repr(key), _sorted(one)] for key, one in value.items()), key=lambda pair: pair[0])
    return value


def find_job(ends: Ends, fingerprint: str, collect: bool, check: bool, running: RunningTransfer) -> EarlierJob | None:
    """Return the job that this run follows, by what both probes found; None if it begins a transfer.

    A running job that only predicts (left behind by a check mode run) writes nothing: it makes way for this run.
    ``collect`` is the option; ``running`` is for the error.
    Raises Refusal if the transfer runs with other options, or if this is check mode.
    """
    for end in ends.values():
        job = end.probe["job"]
        if job["running"] and _transfers(job["request"]):
            _refuse_other_task(end, fingerprint, check, running)
            return _earlier_job(ends, end, Status("running", alive=True))
    for end in ends.values() if collect and not check else ():
        job = end.probe["job"]
        is_this = _transfers(job["request"]) and job["request"].get("fingerprint") == fingerprint
        if is_this and job["status"].get("outcome"):
            return _earlier_job(ends, end, parse_status({**job["status"], "alive": False}))
    return None


def earlier_run(ends: Ends) -> EarlierRun | None:
    """Return what a run that nobody waited for did, so that its changes are not lost; None if there is none."""
    for end in ends.values():
        job = end.probe["job"]
        if not job["running"] and _transfers(job["request"]):
            return EarlierRun(Outcome.from_json(job["status"].get("outcome") or {}), seconds_of_run(job["status"]))
    return None


def _transfers(request: Request) -> bool:
    """Whether a job's request is that of a driving end that writes."""
    return request.get("part") == "drive" and not request.get("settings", {}).get("check")


def _refuse_other_task(end: Endpoint, fingerprint: str, check: bool, running: RunningTransfer) -> None:
    job = end.probe["job"]
    if check or job["request"].get("fingerprint") != fingerprint:
        why = "in check mode nothing can be told of it" if check else "this task has other options"
        raise Refusal(
            f"transfer {running.id} is running already (process {job['status'].get('pid')} on {end.name}), and {why}. "
            f"Wait for its end, or run the task with the same options to attach to it. {running.how_to_stop}"
        )


def _earlier_job(ends: Ends, end: Endpoint, status: Status) -> EarlierJob:
    job, ready, server = end.probe["job"], Peer(), ends["dest" if end.side == "source" else "source"]
    with contextlib.suppress(WrongShape):
        ready = parse_peer(server.probe["job"]["status"].get("ready", {}))
    clocks = ends["source"].probe["now_ns"] - end.probe["now_ns"]
    method = job["request"].get("settings", {}).get("method", "")
    return EarlierJob(end.side, status, method, ready, int(job["status"].get("started", 0) * 1e9) + clocks)
