# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks as steps of a workflow: the one that runs, files of tasks that the role runs, and why one failed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ..common.typed_json import SPARSE
from .hooks import TASKS, Hook, HookDescription, HookResult, path_of_tasks, short_name


@dataclass
class HookRun:
    """A hook that runs or has run."""

    kind: str = ""  # the list that it is in
    host: str = ""
    name: str = ""
    what: str = ""  # it runs; empty if it is hidden
    hidden: bool = False
    at: str = ""
    began: float = 0.0  # Unix time
    result: str = field(default="", metadata=SPARSE)  # done or failed
    ended: float | None = None
    rc: int | None = None
    changed: bool = field(default=False, metadata=SPARSE)

    @property
    def id(self) -> str:
        """The id of a hook that is handed over to the role, among those of its job."""
        return f"{self.kind} {self.began}"


class TasksHook(NamedTuple):
    """A file of tasks that the role has to run."""

    job: str
    id: str
    host: str
    file: str
    timeout: float
    hidden: bool
    folder: str  # that a drill has restored; empty: it is no validation of a drill
    sockets: Mapping[str, str]  # of servers that the drill has started, by kind


class TasksResult(NamedTuple):
    """How a file of tasks ended, which was handed over to the role."""

    hook: str  # its id
    failed: bool = False
    result: Mapping[str, Any] = MappingProxyType({})  # of the task that failed
    task: str = ""  # its name
    hidden: bool = False  # it had no_log


def read_tasks_results(given: list[dict[str, Any]]) -> dict[str, TasksResult]:
    """Return the results that the role gives to the action, by job."""
    return {
        one["job"]: TasksResult(
            hook=str(one["hook"]),
            failed=bool(one.get("failed")),
            result=one.get("result") or {},
            task=str(one.get("task") or ""),
            hidden=bool(one.get("hidden")),
        )
        for one in given
    }


def find_tasks(job: str, begun: HookRun, hook: Hook, folder: str) -> TasksHook:
    """Return a file of tasks for the role. Raises FileNotFoundError, with what to do, if there is none.

    ``folder`` is that of the inventory.
    """
    file = path_of_tasks(folder, hook.tasks)
    if not os.path.exists(file):
        raise FileNotFoundError(
            f"there is no file {file} on the control node. Correct tasks of the hook; a path is looked for in the "
            "folder of the inventory"
        )
    return TasksHook(job, begun.id, begun.host, file, hook.timeout or 0, hook.hidden, hook.folder, hook.sockets)


def explain_tasks_failure(told: HookDescription, begun: HookRun, answer: TasksResult | None) -> str:
    """Return why a file of tasks failed that the role has run; empty if it did not. ``answer`` is the last one."""
    if answer is None or answer.hook != begun.id:
        return tell_failure({"msg": "a host could not be reached, so Ansible ended its tasks"}, hook=told)
    return tell_failure(answer.result, answer.task, told, answer.hidden) if answer.failed else ""


def explain_failure(told: HookDescription, hook: Hook, result: HookResult) -> str:
    """Return why a command or a module failed."""
    answer = {name: value for name, value in result._asdict().items() if value not in (None, "")}
    return tell_failure({**answer, **({"cmd": hook.command} if hook.command else {})}, hook=told)


LONGEST = 2000  # characters of what a program said; its last words count
HIDDEN = "what it said is hidden, because of no_log"


def tell_failure(
    result: Mapping[str, Any], task: str = "", hook: Mapping[str, Any] | None = None, hidden: bool = False
) -> str:
    """Return why a task failed, by its result.

    ``hook`` is what ``tell_hook`` tells of the hook that ran, empty if none did. ``hidden``: the task had
    ``no_log``, so nothing of its result is told.
    """
    hook = hook or {}
    kind = f" ({hook['kind']})" if hook.get("kind") else ""
    parts = [f"hook {short_name(hook['name'])}{kind} on {hook['host']} failed"] if hook else []
    if hook.get("hidden") or hidden or "censored" in result:
        return ": ".join([*parts, HIDDEN] if hook else [f"{task or 'a task'} failed", HIDDEN])
    command = _command(result)
    if hook:
        inside = [task, command] if hook["what"].startswith(TASKS) else []
        parts += [text for text in dict.fromkeys([hook["what"], *inside]) if text and text != hook["name"]]
    said = str(result.get("msg") or "").strip() or f"{task or 'a task'} failed"
    if command and result.get("rc") is not None:
        said = f"{said.rstrip('.')} (rc {result['rc']})"
    words = str(result.get("stderr") or "").strip() or (str(result.get("stdout") or "").strip() if command else "")
    words = words or str(result.get("module_stderr") or "").strip()
    return ": ".join([*parts, said, *([words[-LONGEST:]] if words and words not in said else [])])


def _command(result: Mapping[str, Any]) -> str:
    """Return the command that a task ran. Empty if there was none; a transfer's result names those of both hosts."""
    command = result.get("cmd")
    if isinstance(command, (list, tuple)):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""
