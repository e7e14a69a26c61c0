# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks: commands, modules and files of tasks that a user's list runs at one point of a role, on a host that it names.

Commands and modules run here, and their host is not trusted: only named values are taken from its answer, and none of
them becomes a variable. Files of tasks are run by the role, as tasks of the user's own.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from ..common.deadline import DeadlinePassed, run_with_deadline

if TYPE_CHECKING:
    from ..hosts.host_runner import HostRunner

TASKS = "tasks of "
_LONGEST_NAME = 80  # characters in a message that was preceded by the whole name
MOST_TEXT = 64 * 2**10  # characters kept of each text; the last ones count
_COMMAND, _CHECK = "ansible.builtin.command", "ansible.builtin.ping"
_CLEAN_UP = 10.0  # seconds, on a host whose hook did not end
# The modules of package managers, by their names in Ansible's facts.
PACKAGE_MANAGERS: Mapping[str, str] = {
    "apk": "community.general.apk",
    "apt": "ansible.builtin.apt",
    "dnf": "ansible.builtin.dnf",
    "dnf5": "ansible.builtin.dnf5",
    "pacman": "community.general.pacman",
    "pkgng": "community.general.pkgng",
    "portage": "community.general.portage",
    "yum": "ansible.builtin.dnf",
    "zypper": "community.general.zypper",
}
# "": of any other service manager.
_SERVICE_MANAGERS: Mapping[str, str] = {
    "systemd": "ansible.builtin.systemd",
    "sysvinit": "ansible.builtin.sysvinit",
    "": "ansible.builtin.service",
}
# Modules whose action plugin chooses another module by a fact of the host: the fact, its subset, and the modules.
_CHOSEN: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "service": ("ansible_service_mgr", "service_mgr", _SERVICE_MANAGERS),
    "package": ("ansible_pkg_mgr", "pkg_mgr", PACKAGE_MANAGERS),
}
# What Ansible itself runs, though it has the documentation of a module.
_NOT_RUN = ("meta", "include", "include_tasks", "include_role", "import_tasks", "import_role", "import_playbook")
_NOT_OF_SYSTEMD = ("pattern", "runlevel", "sleep", "arguments", "args")  # options of service that systemd does not have
_BUILTIN = ("ansible.builtin.", "ansible.legacy.")


@dataclass(frozen=True)
class Hook:
    """One hook of a list. It has a command, a module or a file of tasks."""

    host: str = ""  # source, dest, or a host of the inventory
    command: tuple[str, ...] = ()  # a program and its arguments, no shell
    module: str = ""
    args: Mapping[str, object] = field(default_factory=dict)  # of the module
    tasks: str = ""  # a file of tasks
    timeout: float | None = None  # seconds
    become: bool | None = None  # None: as the variables of the host say
    hidden: bool = False  # only its name may be shown
    folder: str = ""  # in which a command runs; empty: that of Ansible
    sockets: Mapping[str, str] = field(default_factory=dict)  # of servers that a drill has started, by kind


class HookResult(NamedTuple):
    """The result of a command or a module. Untrusted input, unaltered."""

    failed: bool = False
    changed: bool = False
    unreachable: bool = False
    rc: int | None = None  # None: there is none
    msg: str = ""
    stdout: str = ""
    stderr: str = ""


def read_hook(written: Mapping[str, Any]) -> Hook:
    """Return a hook that the user wrote, which the argument specs of the role have accepted."""
    return Hook(
        host=str(written.get("host") or ""),
        command=tuple(str(word) for word in written.get("command") or ()),
        module=str(written.get("module") or ""),
        args=dict(written.get("args") or {}),
        tasks=str(written.get("tasks") or ""),
        timeout=float(written["timeout"]) if written.get("timeout") else None,
        become=None if written.get("become") is None else bool(written["become"]),
        hidden=is_hidden(written),
        folder=str(written.get("folder") or ""),
        sockets=dict(written.get("sockets") or {}),
    )


def find_hook_problem(written: Mapping[str, Any]) -> str:
    """Return why a hook cannot run, empty if it can. Looks at the plugins that are installed, and asks no host."""
    kinds = [kind for kind in ("command", "module", "tasks") if written.get(kind)]
    if len(kinds) != 1:
        return f"has {' and '.join(kinds) or 'nothing to run'}: give one of command, module and tasks"
    if isinstance(written.get("command"), str):
        return f"has a command that is one text. Write a list{_as_words(written)}"
    if written.get("args") and "module" not in kinds:
        return "has args, which belong to a module. Give the arguments of a command in command"
    if kinds != ["module"]:
        return ""
    from ansible.plugins.loader import action_loader, module_loader

    name = str(written["module"])
    base = _base_name(name)
    if base in ("command", *_CHOSEN):
        return ""
    if module_loader.find_plugin_with_context(name).plugin_resolved_path is None:
        return f"module {name} is not installed on the control node. Correct the name, or install its collection"
    if base in _NOT_RUN or action_loader.has_plugin(name):
        return (
            f"module {name} does a part of its work on the control node, so it cannot run as a hook of this kind. Use "
            "tasks, a file of tasks"
        )
    return ""


def _as_words(hook: Mapping[str, Any]) -> str:
    """Return the command of a hook that is one text as the list that it should be, empty if it may not be told."""
    if is_hidden(hook):
        return ""
    try:
        return f": [{', '.join(shlex.split(hook['command']))}]"
    except ValueError:  # a quotation mark too few
        return ""


def path_of_tasks(folder: str, tasks: str) -> str:
    """Return the path of a hook's file of tasks. One that is not absolute is in ``folder``."""
    return os.path.join(folder, os.path.expanduser(tasks))


def find_file_problems(
    hooks: Iterable[tuple[str, Mapping[str, Any]]], folder: str, load: Callable[[str], object]
) -> list[str]:
    """Return what is wrong with the files of tasks among hooks, each with what to call it.

    A file that is not absolute is in ``folder``, and ``load`` reads YAML. Most mistakes in the tasks themselves show
    only when Ansible runs them.
    """
    files: dict[str, tuple[str, bool]] = {}
    for called, hook in hooks:
        if hook.get("tasks"):
            files.setdefault(path_of_tasks(folder, str(hook["tasks"])), (called, is_hidden(hook)))
    problems = []
    for path, (called, hidden) in files.items():
        try:
            tasks = load(path)
        except Exception as error:  # Ansible raises what it likes for YAML that is none, and for vaults
            problems.append(f"{called}: {path} cannot be read: {'see no_log' if hidden else error}")
            continue
        if not isinstance(tasks, list) or not all(isinstance(task, Mapping) for task in tasks):
            problems.append(f"{called}: {path} is no list of tasks")
    return problems


def run_hook(runner: HostRunner, hook: Hook) -> HookResult:
    """Run the command or the module of a hook on the host of the runner, once.

    A connection that is lost is a failure, and it is not run again, since it may have begun. After the timeout
    of the hook it is a failure, too; what waits for it here is ended, and the program on the host may go on.
    """
    from ..hosts.host_runner import HostFailed  # reports read what may be told of hooks, and need nothing of that

    try:
        answer = run_with_deadline(partial(_run_once, runner, hook), hook.timeout)
    except HostFailed as error:
        return HookResult(failed=True, unreachable=error.unreachable, msg=error.reason)
    except DeadlinePassed:
        return _too_late(hook.timeout or 0)
    return read_result(answer, has_rc=_is_command(hook))


def check_host(runner: HostRunner, timeout: float | None) -> HookResult:
    """Return a failure if a host cannot be reached. One without Python may have tasks of its own."""
    from ..hosts.host_runner import HostFailed

    try:
        run_with_deadline(partial(runner.run_once, _CHECK, {}), timeout)
    except HostFailed as error:
        return HookResult(failed=error.unreachable, unreachable=error.unreachable, msg=error.reason)
    except DeadlinePassed:
        return _too_late(timeout or 0)
    return HookResult()


def read_result(answer: Mapping[str, Any], has_rc: bool = True) -> HookResult:
    """Return the named values of an answer; what else it holds is dropped. ``has_rc``: it must have a return code."""
    rc = answer.get("rc")
    texts = {
        name: answer[name][-MOST_TEXT:] for name in ("msg", "stdout", "stderr") if isinstance(answer.get(name), str)
    }
    if not isinstance(rc, int) or isinstance(rc, bool):  # a truth value is a number, too
        rc = None
        if has_rc:
            return HookResult(failed=True, **{"msg": "its host gave no return code", **texts})
    failed = answer.get("failed") is True or (has_rc and rc != 0)
    return HookResult(failed=failed, changed=has_rc or answer.get("changed") is True, rc=rc, **texts)


def _run_once(runner: HostRunner, hook: Hook) -> Mapping[str, object]:
    if hook.command:
        return runner.run_once(
            _COMMAND, {"argv": list(hook.command), **({"chdir": hook.folder} if hook.folder else {})}
        )
    module, args = hook.module, dict(hook.args)
    if _base_name(module) in _CHOSEN:
        module, args = _choose_module(runner, _base_name(module), args)
    return runner.run_once(module, args)


def _choose_module(runner: HostRunner, base: str, args: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Return the module and its arguments for ``service`` or ``package``, by the facts of the hook's own host."""
    from ..hosts.host_runner import HostFailed

    fact, subset, modules = _CHOSEN[base]
    asked = {"gather_subset": ["!all", "!min", subset], "filter": [fact]}
    found = runner.run_module("ansible.builtin.setup", asked, {"ansible_facts": dict})["ansible_facts"].get(fact)
    module = modules.get(found if isinstance(found, str) else "") or modules.get("")
    if module is None:
        raise HostFailed(f"its package manager is {found!r}, and {', '.join(sorted(modules))} are known", runner.name)
    left_out = ("use", *(_NOT_OF_SYSTEMD if module.endswith(".systemd") else ()))
    return module, {name: value for name, value in args.items() if name not in left_out}


def _base_name(module: str) -> str:
    """Return the name of a module of ansible-core without its collection; others as they are."""
    prefix = next((one for one in _BUILTIN if module.startswith(one)), "")
    return module[len(prefix) :]


def _is_command(hook: Hook) -> bool:
    return bool(hook.command) or _base_name(hook.module) == "command"


def _too_late(timeout: float) -> HookResult:
    return HookResult(
        failed=True,
        msg=f"it did not end within {timeout:g} s, its timeout, and may still run. End it there, or set a longer "
        "timeout",
    )


def let_go(runner: HostRunner) -> None:
    """Close the runner of a hook; a host that does not answer is not waited for."""
    try:
        run_with_deadline(runner.close, _CLEAN_UP)
    except DeadlinePassed:
        runner.reset()


class HookDescription(TypedDict):
    """What messages and reports may tell of a hook."""

    kind: str  # the list that it is in
    host: str  # where it runs
    name: str
    what: str  # it runs; empty if it is hidden
    hidden: bool


def tell_hook(hook: Mapping[str, Any], kind: str = "", host: str = "") -> HookDescription:
    """Return what messages and reports may tell: kind, host, name, what it runs, and whether it is hidden.

    ``hook`` is what the user wrote, ``kind`` the list that it is in, ``host`` where it runs. A hook that has no name is
    called by what it runs. With ``no_log`` nothing but its name is told, and ``what`` is empty.
    """
    hidden = is_hidden(hook)
    what = "" if hidden else _describe(hook)
    name = str(hook.get("name") or "") or what or "a hook without a name"
    return {"kind": kind, "host": host, "name": name, "what": what, "hidden": hidden}


def short_name(name: str) -> str:
    """Return the beginning of a hook's name: one without a name of its own is called by its whole command."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def is_hidden(hook: Mapping[str, Any]) -> bool:
    """Return whether nothing but the name may be told. What is not clearly a no is a yes."""
    return str(hook.get("no_log") or "no").strip().lower() not in ("no", "false", "off", "n", "f", "0", "0.0")


def _describe(hook: Mapping[str, Any]) -> str:
    """Return what a hook runs, for people."""
    if hook.get("command"):
        return shlex.join(str(word) for word in hook["command"])
    if hook.get("module"):
        args = ", ".join(f"{name}: {value}" for name, value in (hook.get("args") or {}).items())
        return f"{hook['module']} ({args})" if args else str(hook["module"])
    return f"{TASKS}{hook.get('tasks')}"
