# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job last said of itself, as the endpoint module returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer, Progress, parse_peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    member,
    number,
    optional,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

_LONGEST = 1e9  # seconds that a job may say it ran
_LARGEST_LIMIT = 1 << 50  # bytes a second


@dataclass(frozen=True)
class Status:
    """The status of a job; what is there besides ``state`` depends on the kind of job, and on how far it is."""

    state: str  # starting, running, serving, served, finished, failed or died
    alive: bool
    failure: str = ""
    unreachable: bool = False  # it failed because its peer could not be reached
    lost: bool = False  # it failed because the connection to its peer broke for good
    idle: bool = False  # it serves, and its peer was connected and is not any more
    progress: Progress = field(default_factory=Progress)
    paused: bool = False  # by a ticket of either side
    bwlimit: int = 0  # bytes a second that are allowed; 0: any number
    ready: Peer = field(default_factory=Peer)  # by the serving end, for the driving one
    spent: object = None  # by the serving end until its peer went: see time_accounting.Account
    outcome: Outcome | None = None  # of a transfer
    digest: object = None  # of a tree that was compared
    owners: object = None  # of a tree whose owners were counted
    benchmark: object = None  # what was measured
    loaded: object = None  # databases into which dumps were loaded: pairs of names
    then: Sequence[object] | None = None  # results of the steps that followed in the same execution
    then_seconds: float = 0.0
    ran: float = 0.0  # seconds from its start to its end, by the clock of its host; 0 while it runs


def parse_status(value: object) -> Status:
    """Return the status in a result of the endpoint module; raise ValueError if it is none."""
    try:
        values = as_object(value, "the status")
        return Status(
            state=member(values, "state", str),
            alive=member(values, "alive", bool),
            failure=optional(values, "failure", str) or "",
            unreachable=optional(values, "unreachable", bool) or False,
            lost=optional(values, "lost", bool) or False,
            idle=optional(values, "idle", bool) or False,
            progress=parse_progress(values.get("progress", {})),
            paused=optional(values, "paused", bool) or False,
            bwlimit=max(0, min(_LARGEST_LIMIT, optional(values, "bwlimit", int) or 0)),
            ready=parse_peer(values.get("ready", {})),
            spent=values.get("spent"),
            outcome=_outcome(values["outcome"]) if values.get("outcome") else None,
            digest=values.get("digest"),
            owners=values.get("owners"),
            benchmark=values.get("benchmark"),
            loaded=values.get("loaded"),
            then=optional(values, "then", list),
            then_seconds=number(values, "then_seconds") if "then_seconds" in values else 0.0,
            ran=seconds_of_run(values),
        )
    except WrongShape as error:
        raise ValueError(f"a host returned no status of a job ({error}): run the task again") from error


def _outcome(value: object) -> Outcome:
    """Return what a transfer did; a job of an earlier version knew of no holes."""
    values = as_object(value, "an outcome")
    outcome = Outcome.from_json(values)
    if "bytes_content" not in values:
        outcome.bytes_content, outcome.bytes_apparent = outcome.bytes_sent, outcome.bytes_total
    return outcome


def seconds_of_run(values: Mapping[str, Any]) -> float:
    """Return the seconds from the start of a job to its end; 0 while it runs. Raises WrongShape."""
    if not ("started" in values and "ended" in values):
        return 0.0
    return min(max(0.0, number(values, "ended") - number(values, "started")), _LONGEST)


def parse_progress(value: object) -> Progress:
    """Return how far a job is; raise WrongShape if that cannot be read. What it does not name is nothing."""
    values, progress = as_object(value, "progress"), Progress()
    for name, default in vars(progress).items():
        if name in values:
            setattr(progress, name, member(values, name, type(default)))
    return progress
