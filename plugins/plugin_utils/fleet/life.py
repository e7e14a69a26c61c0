# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lives of all kinds of jobs have in common: a transfer to its end, and a step that is tried again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..host_runner import OF_ANSWERS, unusable
from ..host_text import harmless
from ..session import Place
from ..status import Status
from .conductor import Call, Life, Pause
from .looks import Watch
from .retries import delay_before

_PATIENCE = 300.0  # seconds for which the hosts of a transfer may be out of reach, where its job does not say


class Running(Protocol):
    """A transfer that has begun."""

    @property
    def status(self) -> Status:
        """The status of its connecting side at that time."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Where to ask how far it is."""


class Transfer(Protocol):
    """A transfer of a job, as the session makes it. Both functions wait for hosts, and may raise what a task may."""

    def begin(self) -> Running:
        """Start it, or attach to it if it runs already."""

    def finish(self, running: Any, status: Status) -> Mapping[str, Any]:
        """Account for one that has ended, clean up, and return its result."""


class Ended(NamedTuple):
    """A transfer that has ended."""

    result: Mapping[str, Any]  # as of the task; with failed and msg if it failed
    begun: bool  # both hosts were reached
    may_pass: bool  # why it failed may be gone later


class Stopped(Exception):
    """A step cannot go on; ``may_pass``: the cause may be gone later; ``is_held``: another run works on the job."""

    def __init__(self, reason: str, may_pass: bool = False, is_held: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        self.is_held = is_held


def transfer_to_end(
    job: Mapping[str, Any], make: Callable[[], Transfer], errors: tuple[type[Exception], ...]
) -> Generator[Any, Any, Ended]:
    """Make the transfer of a job, and return how it ended.

    ``errors`` are what it may raise, with ``details`` for its result, or without.
    """
    begun = False
    try:
        transfer = make()
        running = yield Call(transfer.begin)
        begun, status = True, running.status
        if status.alive:
            status = yield Watch(running.places, float(job.get("timeout") or _PATIENCE))
        return Ended(dict((yield Call(partial(transfer.finish, running, status)))), begun, False)
    except errors as error:
        result = {**(getattr(error, "details", None) or {}), "failed": True, "msg": str(error)}
        return Ended(result, begun, bool(getattr(error, "may_pass", False)))


def stop_alone(steps: Life) -> Life:
    """Make steps of a job. Whatever an answer of a host does in them stops this job alone: raises Stopped."""
    try:
        return (yield from steps)
    except OF_ANSWERS as error:
        raise Stopped(harmless(unusable(error))) from error


def persist(name: str, step: Callable[[], Life], tell: Callable[[str], None], most: int | None = None) -> Life:
    """Make a step of the job ``name``, and make it again after a failure that may have passed, ``most`` times.

    Raises Stopped.
    """
    tries = 0
    while True:
        try:
            yield from step()
            return
        except Stopped as stopped:
            tries += 1
            is_last = most is not None and tries > most
            delay = delay_before(tries, stopped.may_pass and not is_last)
            if delay is None:
                raise
            tell(f"{name}: {stopped}. Trying again in {delay:.0f} s")
            yield Pause(delay)
