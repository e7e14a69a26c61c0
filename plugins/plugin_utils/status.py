# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job last said of itself, as the endpoint module returns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast


class Progress(TypedDict, total=False):
    """How far a job is."""

    phase: str
    bytes_done: int
    bytes_total: int  # 0: not known yet
    files_done: int
    files_total: int
    current: str


class _Always(TypedDict):
    state: str  # starting, running, serving, served, finished, failed or died
    alive: bool


class Status(_Always, total=False):
    """The status of a job; what is optional depends on the kind of job, and on how far it is."""

    pid: int
    started: float
    updated: float
    ended: float
    failure: str
    unreachable: bool  # it failed because its peer could not be reached
    staging_left: bool
    progress: Progress
    ready: dict[str, Any]  # by the serving end, for the driving one
    outcome: dict[str, Any]  # of a transfer
    digest: dict[str, Any]  # of a tree that was compared
    owners: dict[str, Any]  # of a tree whose owners were counted
    then: list[dict[str, Any]]  # results of the steps that followed in the same execution
    then_seconds: float


def parse_status(values: Mapping[str, Any]) -> Status:
    """Return the status in a result of the endpoint module; raise ValueError where it is none."""
    if not isinstance(values.get("state"), str) or not isinstance(values.get("alive"), bool):
        raise ValueError("a host returned no status of a job: run the task again")
    return cast(Status, values)
