# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files in a checkpoint's folder, in memory and as JSON.

``checkpoint.json`` is a ``CheckpointRequest``, ``apply.json`` an ``Application``, and ``NAME.last.json`` an ``Ending``.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .._core.json_shape import as_object, list_of, member, number, optional, texts
from .live import LinkState, parse_state
from .saved import SavedPath, parse_saved_path


class Timer(NamedTuple):
    """What reverts when the time is over: a ``unit`` of systemd, or the process ``pid``."""

    kind: str  # none, systemd, process
    unit: str | None = None
    pid: int | None = None

    def dump(self) -> dict[str, str | int]:
        """Return the timer as JSON holds it."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class ArmingTerms(NamedTuple):
    """Options by which two armings are the same."""

    paths: list[str]
    links: list[str] | None  # None: all
    made: list[str]  # links that the change makes
    commands: list[list[str]]  # after the files are back
    timeout: int  # seconds


class CheckpointRequest(NamedTuple):
    """What was armed, and all that its way back needs."""

    token: str  # a program that was started for another arming does nothing
    wanted: ArmingTerms
    files: list[SavedPath]
    state: LinkState
    made: list[str]
    commands: list[list[str]]
    boot_commands: list[list[str]]
    deadline: float = 0.0  # seconds since 1970
    timer: Timer = Timer("none")
    survives_reboot: str = "no"

    def dump(self) -> dict[str, Any]:
        """Return the request as JSON holds it."""
        return {
            **self._asdict(),
            "wanted": self.wanted._asdict(),
            "files": [one.dump() for one in self.files],
            "state": self.state.dump(),
            "timer": self.timer.dump(),
        }


class CommandResult(NamedTuple):
    """How a command of nic_apply ended."""

    argv: list[str]
    code: int
    said: str
    seconds: float


class Application(NamedTuple):
    """The commands of nic_apply, and what they came to so far."""

    commands: list[list[str]] = []
    results: tuple[CommandResult, ...] = ()
    finished: bool = False

    def dump(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**self._asdict(), "results": [one._asdict() for one in self.results]}


class Ending(NamedTuple):
    """How a checkpoint ended."""

    outcome: str  # confirmed, reverted
    by: str  # request, timer, boot
    at: float  # seconds since 1970
    errors: list[str]


def parse_request(value: object) -> CheckpointRequest:
    """Read what ``CheckpointRequest.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "the checkpoint")
    wanted = as_object(values.get("wanted"), "wanted")
    timer = as_object(values.get("timer"), "timer")
    return CheckpointRequest(
        member(values, "token", str),
        ArmingTerms(
            texts(wanted, "paths"),
            None if wanted.get("links") is None else texts(wanted, "links"),
            texts(wanted, "made"),
            _commands(wanted, "commands"),
            member(wanted, "timeout", int),
        ),
        [parse_saved_path(one) for one in member(values, "files", list)],
        parse_state(values.get("state")),
        texts(values, "made"),
        _commands(values, "commands"),
        _commands(values, "boot_commands"),
        number(values, "deadline"),
        Timer(member(timer, "kind", str), optional(timer, "unit", str), optional(timer, "pid", int)),
        member(values, "survives_reboot", str),
    )


def parse_application(value: object) -> Application:
    """Read what ``Application.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "what was applied")
    results = (as_object(one, "a result") for one in member(values, "results", list))
    return Application(
        _commands(values, "commands"),
        tuple(
            CommandResult(
                texts(one, "argv"), member(one, "code", int), member(one, "said", str), number(one, "seconds")
            )
            for one in results
        ),
        member(values, "finished", bool),
    )


def parse_ending(value: object) -> Ending:
    """Read how a checkpoint ended; raise WrongShape for anything else."""
    values = as_object(value, "the end of the checkpoint")
    return Ending(
        member(values, "outcome", str), member(values, "by", str), number(values, "at"), texts(values, "errors")
    )


def _commands(values: Mapping[str, Any], name: str) -> list[list[str]]:
    return [list_of(argv, name, str) for argv in member(values, name, list)]
