# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps that the workflows of all kinds of jobs share: a transfer to its end, a step with retries, a hook."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from ..common.host_text import harmless
from ..fleet.polling import Watch
from ..fleet.scheduler import Call, HookCall, Pause, Workflow
from ..hosts.host_runner import OF_ANSWERS, HostFailed, HostRunner, unusable
from ..transfer.completion import Uncompared
from ..transfer.session import Place
from ..transfer.status import Status
from .hooks import Hook, HookResult, check_host, let_go, run_hook

T = TypeVar("T")
_PATIENCE = 300.0  # seconds for which the hosts of a transfer may be out of reach, where its job does not say
RETRY_DELAYS = (30.0, 120.0, 600.0)  # seconds before the second, third and fourth attempt of a step


class RunningTransfer(Protocol):
    """A transfer that has begun."""

    @property
    def status(self) -> Status:
        """The status of its connecting side at that time."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Where to ask how far it is."""


class Transfer(Protocol):
    """A transfer of a job, as the session makes it. Both functions wait for hosts, and may raise what a task may."""

    def begin(self) -> RunningTransfer:
        """Start it, or attach to it if it runs already."""

    uncompared: Uncompared | None

    def finish(self, running: Any, status: Status) -> Mapping[str, Any]:
        """Account for one that has ended, clean up, and return its result."""


class TransferEnd(NamedTuple):
    """A transfer that has ended."""

    result: Mapping[str, Any]  # as of the task; with failed and msg if it failed
    begun: bool  # both hosts were reached
    may_pass: bool  # why it failed may be gone later


class JobStopped(Exception):
    """A step cannot go on; ``may_pass``: the cause may be gone later; ``is_held``: another run works on the job."""

    def __init__(self, reason: str, may_pass: bool = False, is_held: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        self.is_held = is_held


def transfer_to_end(
    job: Mapping[str, Any], make: Callable[[], Transfer], errors: tuple[type[Exception], ...]
) -> Generator[Any, Any, TransferEnd]:
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
        return TransferEnd(dict((yield Call(partial(transfer.finish, running, status)))), begun, False)
    except errors as error:
        return TransferEnd(_result_of(error), begun, bool(getattr(error, "may_pass", False)))


def transfer_again(
    uncompared: Uncompared, errors: tuple[type[Exception], ...]
) -> Generator[Any, Any, Mapping[str, Any]]:
    """Compare the source with a destination that is known to differ; return the new result of the transfer."""
    try:
        return dict((yield Call(uncompared.send_again)))
    except errors as error:
        return _result_of(error)


def _result_of(error: Exception) -> Mapping[str, Any]:
    return {**(getattr(error, "details", None) or {}), "failed": True, "msg": str(error)}


def stop_alone(steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Run steps of a job. An answer of a host that cannot be used stops this job alone: raises JobStopped."""
    try:
        return (yield from steps)
    except OF_ANSWERS as error:
        raise JobStopped(harmless(unusable(error))) from error


def retry(name: str, step: Callable[[], Workflow], tell: Callable[[str], None], most: int | None = None) -> Workflow:
    """Run a step of the job ``name``, again after a failure that may pass, ``most`` times. Raises JobStopped."""
    tries = 0
    while True:
        try:
            yield from step()
            return
        except JobStopped as stopped:
            tries += 1
            is_last = tries > (len(RETRY_DELAYS) if most is None else min(most, len(RETRY_DELAYS)))
            if is_last or not stopped.may_pass:
                raise
            delay = RETRY_DELAYS[tries - 1]
            tell(f"{name}: {stopped}. Trying again in {delay:.0f} s")
            yield Pause(delay)


def hook_to_end(hook: Hook, host: str, runner: Callable[[str, Hook], HostRunner]) -> Generator[Any, Any, HookResult]:
    """Run a command or a module as a hook on ``host``, once, and return its result.

    For a file of tasks, check that its host can be reached. ``runner`` makes the runner of a host for a hook.
    """
    try:
        one = runner(host, hook)
    except HostFailed as error:
        return HookResult(failed=True, msg=str(error))

    def do() -> HookResult:
        try:
            return check_host(one, hook.timeout) if hook.tasks else run_hook(one, hook)
        finally:
            let_go(one)

    try:
        result: HookResult = yield HookCall(do)
    except HostFailed as error:
        return HookResult(failed=True, msg=str(error))
    if result.unreachable:
        return result._replace(msg=f"{host} cannot be reached: {result.msg or 'no answer'}")
    return result
