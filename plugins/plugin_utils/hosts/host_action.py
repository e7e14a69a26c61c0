# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules on one host, whose answers never reach ansible-core.

ansible-core puts ``ansible_facts`` of any answer into the variables of the play's host, keeps ``ansible_stats``, and
prints warnings, deprecations, unknown keys and whatever stands around an answer as they came. So the text that a host
prints is parsed here, ansible-core gets an empty answer in its place, and only members that the caller names are read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ansible.plugins.action import ActionBase

MOST_CHARACTERS = 64 * 2**20
MOST_LEVELS = 64  # objects and lists inside each other; the deepest honest answer has a dozen
_FAILED = "MODULE FAILURE"  # where a host printed no answer


class Unreadable(ValueError):
    """A host printed no answer, or one beyond the limits."""


class HostAction(ActionBase):
    """Runs modules on the host of its connection."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._said = threading.local()

    def run(self, tmp: str | None = None, task_vars: dict[str, object] | None = None) -> dict[str, object]:
        """Refuse: this is no action of a task."""
        raise NotImplementedError

    def ask(
        self, module_name: str, module_args: dict[str, object], task_vars: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Run a module and return its answer as ``read_answer`` does. Untrusted input. Raises AnsibleError."""
        self._execute_module(module_name=module_name, module_args=module_args, task_vars=task_vars)
        return cast(Mapping[str, object], self._said.answer)

    def _parse_returned_data(self, res: Mapping[str, Any], *profile: Any) -> Any:
        """Keep the answer, and give ansible-core an empty one."""
        self._said.answer = read_answer(str(res.get("stdout") or ""), str(res.get("stderr") or ""))
        return super()._parse_returned_data({**res, "stdout": "{}", "stderr": ""}, *profile)


def read_answer(stdout: str, stderr: str = "") -> Mapping[str, object]:
    """Return the members of a module's answer; if there is none, say so as ansible-core does (``failed``, ``msg``)."""
    try:
        return _parse(stdout)
    except Unreadable as error:
        return {"failed": True, "msg": str(error), "module_stdout": "", "module_stderr": ""}
    except ValueError:
        return {"failed": True, "msg": _FAILED, "module_stdout": stdout, "module_stderr": stderr}


def _parse(printed: str) -> Mapping[str, object]:
    """Return the object in what a host printed. Raises ValueError if there is none, Unreadable beyond the limits."""
    if len(printed) > MOST_CHARACTERS:
        raise Unreadable(f"its answer has {len(printed)} characters, and {MOST_CHARACTERS} are the limit")
    try:
        found = json.loads(_object_in(printed), parse_constant=_refuse_constant)
    except RecursionError:
        found = None
        levels = MOST_LEVELS + 1
    else:
        levels = _levels(found)
    if levels > MOST_LEVELS:
        raise Unreadable(f"its answer has more than {MOST_LEVELS} levels")
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _object_in(printed: str) -> str:
    """Return the lines from the first that begins an object to the last that ends one: ssh and shells print more."""
    lines = [line.strip() for line in printed.split("\n")]
    begins = next((number for number, line in enumerate(lines) if line.startswith("{")), None)
    ends = next((number for number in range(len(lines) - 1, -1, -1) if lines[number].endswith("}")), None)
    if begins is None or ends is None:
        raise ValueError("no object")
    return "\n".join(lines[begins : ends + 1])


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _levels(value: object) -> int:
    """Return how many objects and lists are inside each other at most, as far as the limit needs it."""
    levels, inside = 0, [value]
    while inside and levels <= MOST_LEVELS + 1:
        inside = [
            member
            for one in inside
            if isinstance(one, (dict, list))
            for member in (one.values() if isinstance(one, dict) else one)
        ]
        levels += 1
    return levels - 1
