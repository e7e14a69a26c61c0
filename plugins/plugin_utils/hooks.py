# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hook: a command or a file of tasks that a user's list runs at one point of a role, on a host that it names.

A command is run here, and its host is not trusted: only named values are taken from its answer, and none of them
becomes a variable. Files of tasks are run by the role, as tasks of the user's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from .deadline import DeadlinePassed, run_with_deadline

if TYPE_CHECKING:
    from .host_runner import HostRunner

TASKS = "tasks of "
_COMMAND, _CHECK = "ansible.builtin.command", "ansible.builtin.ping"
_CLEAN_UP = 10.0  # seconds, on a host whose hook did not end


class Hook(NamedTuple):
    """A command as a hook."""

    command: Sequence[str]  # a program and its arguments, no shell; empty: only the connection to the host is checked
    timeout: float | None = None  # seconds


class HookResult(NamedTuple):
    """What a command did, by the answer of its host: untrusted input, unaltered."""

    failed: bool = False
    changed: bool = False
    unreachable: bool = False
    rc: int | None = None  # None: there is none
    msg: str = ""
    stdout: str = ""
    stderr: str = ""


def run_hook(runner: HostRunner, hook: Hook) -> HookResult:
    """Run a command on the host of the runner, once, as a task with the keywords of the runner's task would.

    A connection that is lost is a failure, and the command is not run again, since it may have begun. After the timeout
    of the hook it is a failure, too; what waits for the command here is ended, and the command itself may go on.
    """
    from .host_runner import HostFailed  # filters read what may be told of hooks, and need nothing of that

    module, arguments = (_COMMAND, {"argv": list(hook.command)}) if hook.command else (_CHECK, {})
    try:
        answer = run_with_deadline(partial(runner.run_once, module, arguments), hook.timeout)
    except HostFailed as error:
        # A host without Python may have tasks of its own.
        return HookResult(bool(hook.command) or error.unreachable, unreachable=error.unreachable, msg=error.reason)
    except DeadlinePassed:
        return HookResult(
            failed=True,
            msg=f"it did not end within {hook.timeout:g} s, its timeout, and may still run. End it there, or set a "
            "longer timeout",
        )
    return read_result(answer) if hook.command else HookResult()


def read_result(answer: Mapping[str, Any]) -> HookResult:
    """Return what the answer of a command says, by name and type. What else it holds is dropped."""
    rc = answer.get("rc")
    texts = {name: answer[name] for name in ("msg", "stdout", "stderr") if isinstance(answer.get(name), str)}
    if not isinstance(rc, int) or isinstance(rc, bool):  # a truth value is a number, too
        return HookResult(failed=True, **{"msg": "its host gave no return code", **texts})
    return HookResult(failed=rc != 0 or answer.get("failed") is True, changed=True, rc=rc, **texts)


def let_go(runner: HostRunner) -> None:
    """Close the runner of a hook; a host that does not answer is not waited for."""
    try:
        run_with_deadline(runner.close, _CLEAN_UP)
    except DeadlinePassed:
        runner.reset()


class Told(TypedDict):
    """What messages and reports may tell of a hook."""

    kind: str  # the list that it is in
    host: str  # where it runs
    name: str
    what: str  # it runs; empty if it is hidden
    hidden: bool


def tell_hook(hook: Mapping[str, Any], kind: str = "", host: str = "") -> Told:
    """Return what messages and reports may tell: kind, host, name, what it runs, and whether it is hidden.

    ``hook`` is what the user wrote, ``kind`` the list that it is in, ``host`` where it runs. A hook that has no name is
    called by what it runs. With ``no_log`` nothing but its name is told, and ``what`` is empty.
    """
    hidden = is_hidden(hook)
    command = [str(word) for word in hook.get("command") or []]
    what = "" if hidden else shlex.join(command) if command else f"{TASKS}{hook.get('tasks')}"
    name = str(hook.get("name") or "") or what or "a hook without a name"
    return {"kind": kind, "host": host, "name": name, "what": what, "hidden": hidden}


def is_hidden(hook: Mapping[str, Any]) -> bool:
    """Return whether nothing but the name may be told. What is not clearly a no is a yes."""
    return str(hook.get("no_log") or "no").strip().lower() not in ("no", "false", "off", "n", "f", "0", "0.0")
