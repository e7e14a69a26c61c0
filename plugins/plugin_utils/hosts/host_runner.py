# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the collection's host-side module on any inventory host, through that host's own connection and become."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing import current_process
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar, cast

from ansible import constants, errors
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import become_loader, connection_loader
from ansible.template import Templar
from ansible.utils.display import Display
from ansible.utils.path import unfrackpath
from ansible.utils.unsafe_proxy import wrap_var
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, member

from ..common.ansible_process import ansible_pid, is_gone
from ..common.deadline import DeadlinePassed, ReadTooMuch, run_with_deadline
from ..common.host_text import harmless
from ..common.memory import Memory
from ..common.units import format_bytes
from .endpoint import is_reached_by_ssh
from .engine import packed_engine
from .engine_digest import engine_digest, forget_digest
from .execution_retry import (
    LONG,
    PAUSE,
    RETRIES,
    is_become_timeout,
    is_unexplained,
    longest_answer,
    may_run_again,
    wants_terminal,
    was_turned_away,
)
from .host_action import HostAction
from .host_facts import find_options_set_by_facts, find_set_by_facts, refuse_facts
from .pacing import Pace

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Step

T = TypeVar("T")
_DISPLAY = Display()
_MODULE = "longhaul.fleet.endpoint"
SHORT = 600.0  # seconds for a host to answer a question that is none of long work
ANSWER_TIMEOUT = "longhaul_answer_timeout"  # of a host: other seconds
MOST_BYTES = 256 * 2**20  # that are read for an answer
_PIPELINING = ("ansible_pipelining", "ansible_ssh_pipelining")
# The variables that say which host it is, and as which user: what is known of one counts for these alone.
_TELLING = ("host", "ssh_host", "port", "user", "become", "become_user", "become_method", "python_interpreter")
_ALWAYS_READ = ("ansible_connection", *(f"ansible_{name}" for name in _TELLING))
_OMITTED: Any = getattr(errors, "AnsibleValueOmittedError", ())  # ansible-core 2.19 and newer
_LONGEST_SAID = 500  # characters of what a program said that ran instead of Python
_READ = ("ansible_", "inventory_hostname", "longhaul_")
# In a rescue these hold the task that failed, whose own variables are gone by then.
_NOT_READ = ("ansible_failed_task", "ansible_failed_result")


class _Told(TypedDict):
    steps: Sequence[Step]
    secrets: dict[str, str]


class _Arguments(_Told, total=False):
    """The arguments of the module."""

    digest: str
    engine: str


class HostFailed(AnsibleError):
    """A host could not be reached, or its part of the work failed there.

    ``reason`` is the message without the name of the host in front; ``unreachable``: no connection was made.
    """

    def __init__(self, message: str, host: str = "", unreachable: bool = False) -> None:
        message = harmless(message)
        super().__init__(f"{host}: {message}" if host else message)
        self.reason = message
        self.unreachable = unreachable

    @property
    def may_pass(self) -> bool:
        """Whether the same may succeed later."""
        return self.unreachable


class ControllerGone(HostFailed):
    """ansible-playbook was killed, and this worker of its survived."""


def require_controller() -> None:
    """Raise ControllerGone if this worker is left alone."""
    if is_gone():
        raise ControllerGone(
            "ansible-playbook was killed. What runs on the hosts goes on: run the same task again to attach"
        )


# What an answer of a wrong shape can raise where it is used. OSError is not among them: the control node's own disk.
OF_ANSWERS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)


def unusable(error: Exception) -> str:
    """Return why an answer cannot be used; a ValueError says it itself."""
    is_told = isinstance(error, ValueError)
    return str(error) if is_told else f"the answer of a host cannot be used ({type(error).__name__}: {error})"


def fails_alone(ask: Callable[[], T]) -> T:
    """Return what a question to hosts returns. Whatever an answer does raises HostFailed, and ends no other job."""
    try:
        return ask()
    except OF_ANSWERS as error:
        raise HostFailed(unusable(error)) from error


class LeaseLost(HostFailed):
    """Another control node has the job, or may have it: nothing more may be done for it here."""

    details: Mapping[str, object] = {"lease_lost": True}  # for the result of a task


class Guard(Protocol):
    """What decides whether an execution may be made."""

    def turn(self, steps: Sequence[Step]) -> AbstractContextManager[Sequence[Step]]:
        """Return what is entered for an execution of these steps, with the steps that go before them.

        Raises HostFailed if the execution must not be made.
        """

    def judge(self, answers: Sequence[object]) -> None:
        """Take the results of the steps that went before. Raises HostFailed if the others were not done."""


class HostRunner:
    """One inventory host as an end of a transfer. The connection is made once and kept for all its steps."""

    guard: Guard | None = None
    _keeps_off_disks = False

    def __init__(
        self,
        action: ActionBase,
        host: str,
        task_vars: Mapping[str, Any],
        roles: Sequence[str] = (),
        become: bool | None = None,
        no_log: bool = False,
    ) -> None:
        """Prepare to run on ``host``, for a task of these ``roles``.

        ``become`` and ``no_log`` replace those keywords of the task, if they are set.

        Its variables come from the inventory, so ``delegate_to``, the play's host and the peer change nothing.
        A task's or play's ``become`` keywords count for it as they do for any task, and so do passwords that the user
        was asked for; its variables win over them.
        Raises HostFailed for a name that is not in the inventory, and for a host whose facts set variables of the
        roles.
        """
        if host not in task_vars["hostvars"]:
            raise HostFailed(
                f"there is no host {host!r} in the inventory. Name inventory hosts in src_host and dest_host: "
                "their variables say how to reach them"
            )
        self.name = host
        self._hostvars = hostvars = task_vars["hostvars"][host]
        refused = refuse_facts(host, find_set_by_facts(hostvars, *roles))
        if refused:
            raise HostFailed(refused)
        self.variables, self._unusable = _variables(action, host, task_vars)
        self._require(name for name in self._unusable if name in _ALWAYS_READ or name.startswith("longhaul_"))
        # What belongs to the host, without what Ansible adds for the task's own.
        inventory = {name: self.variables[name] for name in hostvars if name in self.variables}
        self._action = self._bind(action, become, no_log)
        self._memory = Memory()
        self._identity = [host, self.connection, *(inventory.get(f"ansible_{name}") for name in _TELLING)]
        self._known = self._memory.recall("host", self._identity)
        self._leaves_pipelining = self._may_guess_pipelining(action, inventory)
        self._guesses_pipelining = self._leaves_pipelining and not self._needs_terminal
        if self._guesses_pipelining:
            self._action._connection.set_option("pipelining", True)
        self._riders: deque[tuple[Step, Callable[[object], None]]] = deque()
        self._pace = Pace(constants.DEFAULT_LOCAL_TMP, str(self.variables.get("ansible_host", host)))

    def _bind(self, action: ActionBase, become: bool | None, no_log: bool) -> HostAction:
        """Return an action of this host alone: its own connection, its own become, no delegation."""
        task = action._task.copy()
        task.delegate_to = None
        if become is not None:
            task.become = become
        if no_log:
            task.no_log = True
        task.async_val = 0
        play_context = action._play_context.copy()
        play_context.remote_addr = self.variables.get("ansible_host", self.name)
        typed = typed_passwords()
        play_context.password, play_context.become_pass = typed.connection, typed.become
        connection = connection_loader.get(
            self.connection,
            play_context,
            task_uuid=f"{action._task._uuid}-{self.name}",
            ansible_playbook_pid=str(ansible_pid()),
        )
        if connection is None:
            raise HostFailed(f"{self.name} has an unknown ansible_connection: {self.connection}")
        keywords = task.dump_attrs()
        keywords.pop("retries", None)  # a task's retries are not the connection's
        keywords["timeout"] = play_context.timeout
        if typed.connection:
            keywords["password"] = typed.connection
        if boolean(self.variables.get("ansible_become", task.become) or False):
            method = self.variables.get("ansible_become_method", task.become_method or constants.DEFAULT_BECOME_METHOD)
            plugin = become_loader.get(method)
            if plugin is None:
                raise HostFailed(f"{self.name} has an unknown become method: {method}")
            connection.set_become_plugin(plugin)
        self._require_options("connection", connection._load_name)
        connection.set_options(task_keys=keywords, var_options=self.variables)
        if typed.become:
            keywords["become_pass"] = typed.become
        for kind, plugin in (("become", connection.become), ("shell", getattr(connection, "_shell", None))):
            if plugin is not None:
                self._require_options(kind, plugin._load_name)
                plugin.set_options(task_keys=keywords, var_options=self.variables)
        return HostAction(
            task=task,
            connection=connection,
            play_context=play_context,
            loader=action._loader,
            templar=action._templar,
            shared_loader_obj=action._shared_loader_obj,
        )

    def _require_options(self, kind: str, plugin: str) -> None:
        """Raise HostFailed if a variable of a plugin is set and has no value, or if facts of the host set it."""
        options = constants.config.get_plugin_vars(kind, plugin)
        self._require(options)
        refused = refuse_facts(self.name, find_options_set_by_facts(self._hostvars, options))
        if refused:
            raise HostFailed(refused)

    def _require(self, names: Iterable[str]) -> None:
        """Raise HostFailed if one of the variables is set, and has no value."""
        for name in names:
            if name in self._unusable:
                raise HostFailed(f"its variable {name} has no value: {self._unusable[name]}", self.name)

    @property
    def connection(self) -> str:
        """The name of the connection plugin.

        From a loop's second round on, Ansible itself has put the name of the Python module there for the task's host.
        """
        name = str(self.variables.get("ansible_connection", "ssh"))
        package, found, plugin = name.partition(".plugins.connection.")
        return f"{package[len('ansible_collections.') :]}.{plugin}" if found else name

    def run(self, *steps: Step, secrets: dict[str, str] | None = None, guarded: bool = True) -> list[object]:
        """Run steps of the endpoint module in one execution, and return each one's result as the host gave it.

        Untrusted input. Raises HostFailed with the host's name, what it said, and what that means, and what the
        ``guard`` raises; without ``guarded`` that is not asked.
        """
        guard = self.guard if guarded else None
        with nullcontext(()) if guard is None else guard.turn(steps) as first:
            riders = [self._riders.popleft() for _one in range(len(self._riders))]
            asked: _Arguments = {
                "steps": [*first, *steps, *(step for step, _told in riders)],
                "secrets": secrets or {},
            }
            _DISPLAY.vvv(f"longhaul on {self.name}: {', '.join(step['do'] for step in asked['steps'])}")
            try:
                result = self._checked(lambda: self._execute_with_engine(asked))
                said = _member(result, "results", list, self.name)
                if guard is not None:
                    guard.judge(said[: len(first)])
            except BaseException:
                self._riders.extendleft(reversed(riders))
                raise
            said = said[len(first) :]
            for (_step, told), answer in zip(riders, said[len(steps) :]):
                told(answer)
            return said[: len(steps)]

    def ride(self, step: Step, told: Callable[[object], None]) -> None:
        """Let a step ride along with the next execution, after the steps of that; ``told`` is called with its result.

        It must be one that can be done twice, and that does not fail.
        """
        self._riders.append((step, told))

    @property
    def riders(self) -> int:
        """How many steps wait for an execution that they can ride along with."""
        return len(self._riders)

    def run_module(
        self,
        name: str,
        arguments: Mapping[str, object],
        members: Mapping[str, type],
        maybe: Mapping[str, type] = MappingProxyType({}),
        more_seconds: float = 0.0,
    ) -> Mapping[str, Any]:
        """Run another module on the host, one that changes nothing, and return these members of its answer.

        Each has the type that ``members`` names, or is None and one of ``maybe``. ``more_seconds`` are those that the
        answer may take longer than one to a short question. Untrusted input. Raises HostFailed.
        """
        answer = self._ask_module(name, arguments, (), more_seconds)
        there = {one: kind for one, kind in maybe.items() if answer.get(one) is not None}
        found: dict[str, Any] = {
            one: _member(answer, one, kind, self.name) for one, kind in {**members, **there}.items()
        }
        return {**dict.fromkeys(maybe), **found}

    def change_by_module(self, name: str, arguments: Mapping[str, object]) -> None:
        """Run another module on the host, one that changes it and may take long. Raises HostFailed."""
        self._ask_module(name, arguments, (name,), LONG)

    def _ask_module(
        self, name: str, arguments: Mapping[str, object], steps: Sequence[str], more_seconds: float
    ) -> Mapping[str, object]:
        _DISPLAY.vvv(f"longhaul on {self.name}: {name}")
        return self._checked(lambda: self._try(name, arguments, steps, self._short + more_seconds))

    def run_once(self, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Run another module on the host, one that must not run twice, and return its answer, also that of a failure.

        Untrusted input. It is run again only where nothing began: after a login that was turned away, or if become did
        not answer and the module had not been sent. Raises HostFailed if the module gave no answer.
        """
        connection = self._action._connection
        if self._guesses_pipelining:  # become may refuse it, as a failure of the module
            self._guesses_pipelining = False
            connection.set_option("pipelining", False)
        if connection.has_option("reconnection_retries") and int(connection.get_option("reconnection_retries")):
            self._answered(
                lambda: self._try("ansible.builtin.ping", {}, (), self._short)
            )  # logs in, and may try that again
            connection.set_option("reconnection_retries", 0)
        _DISPLAY.vvv(f"longhaul on {self.name}: {name}")
        answer = self._answered(lambda: self._try(name, arguments, (name,), None))
        if "module_stdout" in answer:
            raise HostFailed(_reason(answer), self.name)
        return answer

    def _checked(self, do: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
        """Return an answer, if it is no failure.

        Raises HostFailed with what the host said, and what that means.
        """
        result = self._answered(do)
        if result.get("failed"):
            raise HostFailed(_reason(result), self.name)
        return result

    def _answered(self, do: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
        """Return an answer, also that of a failure. Raises HostFailed if there was none."""
        # A worker outlives an ansible-playbook that is killed. What it did then would meet the next run's steps.
        require_controller()
        try:
            result = do()
        except HostFailed:
            raise
        except AnsibleError as error:
            said = _with_advice(harmless(str(error)))
            unreachable = isinstance(error, AnsibleConnectionFailure)
            raise HostFailed(said, self.name, unreachable) from None  # a cause would be said twice
        return result

    def _execute_with_engine(self, asked: _Arguments) -> Mapping[str, object]:
        """Run the module with the engine's digest, and with the engine itself where the host may not keep it."""
        arguments: _Arguments = {**asked, "digest": engine_digest()}
        if self._known.get("engine") == engine_digest():
            result = self._execute_by_pipelining(arguments)
            if result.get("failed") or "results" in result:
                return result
            # No step was done: what it kept is gone, or may have been written by somebody else.
        engine = packed_engine()
        if engine.digest != engine_digest():
            forget_digest()  # a wrong record would end each run
            raise HostFailed(
                "the collection was changed on the control node while this ran, and this host would get the new one. "
                "Run it again: it goes on from here",
                self.name,
            )
        result = self._execute_by_pipelining({**arguments, "engine": engine.argument})
        if "results" in result:
            self._learn("engine", engine.digest if result.get("kept") is True else "")
        return result

    def keep_off_disks(self) -> None:
        """Refuse to send secrets without pipelining unless the user turned it off: they would pass over a disk.

        A word in an error does not decide that for a host whose peer is not trusted.
        """
        self._keeps_off_disks = True
        if self._leaves_pipelining:
            self._guesses_pipelining = True
            self._action._connection.set_option("pipelining", True)

    @property
    def _needs_terminal(self) -> bool:
        """Whether become refused to run without a terminal here, when this version of the engine last asked."""
        return self._known.get("pipelining_fails") == engine_digest()

    def _execute_by_pipelining(self, arguments: _Arguments) -> Mapping[str, object]:
        """Run the module, once more without pipelining where only this tried it, and become wants a terminal."""
        if arguments["secrets"] and self._keeps_off_disks and self._leaves_pipelining and not self._guesses_pipelining:
            raise HostFailed(
                "become on this host wants a terminal, so a one-time key would lie on its disks for a moment, and "
                "trust is none. Let become do without a terminal (for sudo: Defaults:USER !requiretty), or set "
                "ansible_pipelining: false for this host if its disks may have such a key",
                self.name,
            )
        result = self._execute(arguments)
        said = f"{result.get('module_stderr')}{result.get('module_stdout')}"
        if not self._guesses_pipelining or "results" in result or not wants_terminal(said):
            return result
        # Become refused before it ran anything.
        self._guesses_pipelining = False
        self._action._connection.set_option("pipelining", False)
        if arguments["secrets"] and self._keeps_off_disks:
            return self._execute_by_pipelining(arguments)
        result = self._execute(arguments)
        if "results" in result:
            self._learn("pipelining_fails", engine_digest())
        return result

    def _learn(self, name: str, value: str) -> None:
        """Remember something of this host, and write it down where it is new."""
        if self._known.get(name, "") != value:
            self._known = {**self._known, name: value}
            self._memory.keep("host", self._identity, self._known)

    def _may_guess_pipelining(self, action: ActionBase, inventory: Mapping[str, Any]) -> bool:
        """Whether to try pipelining: where the user says nothing about it.

        It keeps secrets off the host's disks, and saves connections. Ansible's default is off, since a sudo with
        ``requiretty`` refuses it.
        """
        connection = self._action._connection
        if not connection.has_pipelining:
            return False
        task = action._task
        said = {**inventory, **task.get_vars(), **(getattr(task.play, "vars", None) or {})}
        try:
            _value, origin = constants.config.get_config_value_and_origin(
                "pipelining",
                plugin_type="connection",
                plugin_name=connection._load_name,
                variables={name: value for name, value in said.items() if name in _PIPELINING},
            )
        except AnsibleError:  # there is no such option, or not with this value
            return False
        return bool(origin == "default")

    def _has_master(self) -> bool:
        """Whether a connection is open that carries another execution."""
        connection = self._action._connection
        if getattr(connection, "transport", "") != "ssh":
            return bool(getattr(connection, "_connected", False))
        try:
            path = connection.get_option("control_path") or connection._create_control_path(
                *(connection.get_option(name) for name in ("host", "port", "remote_user"))
            )
            return os.path.exists(path % {"directory": unfrackpath(connection.get_option("control_path_dir"))})
        except (AttributeError, KeyError, TypeError, ValueError):  # another ansible-core
            return False

    def _turn(self, is_long: bool = False) -> AbstractContextManager[None]:
        """Wait for this host's turn, where its sshd must not be asked by too many at once.

        What may last for hours (``is_long``) takes no session from others meanwhile.
        """
        has_master = (lambda: False) if is_long else self._has_master
        return self._pace.turn(has_master) if is_reached_by_ssh(self.connection) else nullcontext()

    def _execute(self, arguments: _Arguments) -> Mapping[str, object]:
        """Run the module, again where that is safe and may help; return its answer. Raises AnsibleError."""
        steps = cast("Sequence[Mapping[str, object]]", arguments["steps"])
        seconds = longest_answer(steps, self._short)
        return self._try(_MODULE, cast("Mapping[str, object]", arguments), _names(steps), seconds)

    @property
    def _short(self) -> float:
        """How many seconds a host may take to answer a question that is none of long work. Raises HostFailed."""
        given = self.variables.get(ANSWER_TIMEOUT, SHORT)
        try:
            seconds = float(given)
        except (TypeError, ValueError):
            seconds = 0.0
        if not 0 < seconds <= LONG:
            raise HostFailed(f"{ANSWER_TIMEOUT} is {given!r}: give seconds, {LONG:.0f} at most", self.name)
        return seconds

    def _ask(self, module: str, arguments: Mapping[str, object], seconds: float | None) -> Mapping[str, object]:
        """Run a module once, and return its answer. Raises AnsibleError, also if the answer does not end."""
        ask = partial(self._action.ask, module_name=module, module_args=dict(arguments), task_vars=self.variables)
        try:
            return run_with_deadline(ask, seconds, MOST_BYTES)
        except DeadlinePassed:
            raise AnsibleError(
                f"it gave no answer within {seconds:.0f} s, so it is not waited for any longer. Look at its load and "
                f"its disks; if it really needs more time, raise {ANSWER_TIMEOUT} of this host"
            ) from None
        except ReadTooMuch:
            raise AnsibleError(f"its answer is longer than {format_bytes(MOST_BYTES)}, so it is not read") from None

    def _try(
        self, module: str, arguments: Mapping[str, object], steps: Sequence[str], seconds: float | None
    ) -> Mapping[str, object]:
        """Run a module, again where that is safe by its steps (none: it changes nothing) and may help.

        Without ``seconds`` it may take as long as it likes.
        """
        left = RETRIES
        while True:
            was_late = was_full = False
            try:
                with self._turn(is_long=seconds is None):
                    return self._ask(module, arguments, seconds)
            except AnsibleError as error:
                if not left or not may_run_again(str(error), steps, self._pipelining):
                    if is_unexplained(str(error)):
                        self._action._low_level_execute_command("true", sudoable=False)  # raises what ssh says
                    raise
                was_late, was_full = is_become_timeout(str(error)), was_turned_away(str(error))
            left -= 1
            if was_late:
                _DISPLAY.warning(f"{self.name} did not answer for become in time. Trying again")
            if was_late or was_full:
                time.sleep(PAUSE)

    @property
    def _pipelining(self) -> bool:
        return bool(self._action._is_pipelining_enabled("new"))

    def reset(self) -> None:
        """Forget a connection that broke; the next step makes a new one."""
        self._action._connection.close()

    def close(self) -> None:
        """Let go of the connection and of temporary files."""
        self._action.cleanup(force=True)
        self._action._connection.close()


def _member(answer: Mapping[str, object], name: str, kind: type[T], host: str) -> T:
    """Return a member of an answer. Raises HostFailed if it is missing or of another type."""
    if name not in answer:
        raise HostFailed(_reason(answer), host)
    try:
        return member(answer, name, kind)
    except WrongShape as error:
        raise HostFailed(f"its answer cannot be read: {error}", host) from error


def _names(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of steps, and of those that follow them."""
    return [name for step in steps for name in (step["do"], *_names(step.get("then", ())))]


def _variables(action: ActionBase, host: str, task_vars: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the variables of a host that connections, become and modules use, and why others of them have no value.

    They are templated as for a task that is delegated to the host, so they may name other hosts, groups, lookups, and
    variables of the play; ``inventory_hostname`` is the host. Nothing of the task's own host reaches the peer: a play's
    or task's own ``vars`` set connection variables for the task's own host alone. What Ansible marks as untrusted, such
    as a fact, is no template, and neither is the result of one.
    """
    hostvars, task = task_vars["hostvars"], action._task
    is_own = host == task_vars.get("inventory_hostname") and "ansible_delegated_vars" not in task_vars
    known = hostvars._variable_manager.get_vars(
        play=task.get_play(), host=hostvars._inventory.get_host(host), task=task, include_hostvars=True
    )
    raw = {name: value for name, value in (known if is_own else hostvars.raw_get(host)).items() if _is_read(name)}
    context = {**(task_vars if is_own else {}), **known, **raw}  # in a loop, the task's variables have its item
    context["ansible_search_path"] = task_vars.get("ansible_search_path", [])  # of lookups
    templar = Templar(loader=action._loader, variables=context)
    values: dict[str, Any] = {}
    unusable: dict[str, str] = {}
    facts = raw.pop("ansible_facts", None) or {}
    for name, value in raw.items():
        try:
            found = templar.template(value)
        except _OMITTED:
            continue
        except AnsibleError as error:  # nobody's failure, unless something needs the variable
            unusable[name] = harmless(str(error))
            continue
        if not (isinstance(found, str) and found == context.get("omit")):  # before ansible-core 2.19
            values[name] = wrap_var(found)  # which is not templated again
    return {**values, "hostvars": hostvars, "ansible_facts": dict(facts)}, unusable


def _is_read(name: str) -> bool:
    return name.startswith(_READ) and name not in _NOT_READ


def _reason(result: Mapping[str, Any]) -> str:
    """Return the helpful sentence of a failed module result."""
    text = harmless(str(result.get("msg") or "the module gave no result"))
    printed = [_without_ssh(str(result.get(name) or "")) for name in ("module_stderr", "module_stdout")]
    said = harmless(printed[0] or printed[1])
    if said and "MODULE FAILURE" in text:
        # What Python says of an error ends with it; other programs begin with it.
        lines = said.splitlines()
        text = lines[-1] if "Traceback" in said else " ".join(" ".join(lines).split())[:_LONGEST_SAID]
    return _with_advice(text, said)


def _without_ssh(printed: str) -> str:
    """Return what a host printed without what ssh adds at the end of a connection with a terminal."""
    return re.sub(r"^Shared connection to \S+ closed\.\s*$", "", printed, flags=re.MULTILINE).strip()


def _with_advice(text: str, said: str = "") -> str:
    """Add what to type to what Ansible says; ``said`` is what the host printed besides."""
    if "password is required" in text + said or re.search(r"Missing \S+ password", text):
        how = "give it with ansible_become_password or --ask-become-pass"
        return f"{text}: become on this host wants a password; {how}"
    if re.search(r"Incorrect \S+ password", text):
        how = "correct ansible_become_password, or what you give to --ask-become-pass"
        return f"{text}: become on this host did not take the one given; {how}"
    if is_become_timeout(text):
        how = "fix what delays sudo there (its name server, its load), or give it more seconds with ANSIBLE_TIMEOUT"
        return f"{text}: the host was too slow to ask for the password of become; {how}, and run the task again"
    if re.search(
        r"interpreter '[^']*' was not found|env: .*python.*No such file|python[\d.]*: (command )?not found", text + said
    ):
        how = "name the Python of this host (3.8 or newer) in ansible_python_interpreter, or install one"
        return f"{text.rstrip('.')}: {how}"
    if "HOST IDENTIFICATION HAS CHANGED" in text:
        where = re.search(r"Offending .* key in (\S+)", text)
        return (
            "the ssh host key that this host shows Ansible is not the known one. Another machine answers there, "
            "or somebody is in between: compare the key with /etc/ssh/ssh_host_*_key.pub there, then correct "
            f"{where.group(1) if where else 'known_hosts'}"
        )
    return text


class TypedPasswords(NamedTuple):
    """What --ask-become-pass, --ask-pass and their file variants gave for all hosts; empty if nothing was asked."""

    become: str
    connection: str


def typed_passwords() -> TypedPasswords:
    """Return the passwords that ansible or ansible-playbook was given for all hosts.

    An action's own play context is no source for them: ansible-core writes what the variables of the task's host say
    into it, and one host's password must never be sent to another host. The worker keeps the context as it was before.
    """
    context = getattr(current_process(), "_play_context", None)
    return TypedPasswords(getattr(context, "become_pass", None) or "", getattr(context, "password", None) or "")
