# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which passwords reach which host. Ansible's own plugins take part; no host is reached."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts import host_runner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import packed_engine
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.execution_retry import LONG, READING, longest_answer
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import (
    ControllerGone,
    HostFailed,
    HostRunner,
    LeaseLost,
    _with_advice,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.pacing import Pace

SUDO = {"ansible_become": True}


class Hosts(dict[str, dict[str, Any]]):
    """The variables of hosts, as ansible-core gives them to a task."""

    @property
    def _inventory(self) -> SimpleNamespace:
        return SimpleNamespace(get_host=lambda name: name)

    @property
    def _variable_manager(self) -> SimpleNamespace:
        return SimpleNamespace(get_vars=lambda host, **_more: {**self[host], "hostvars": self})

    raw_get = dict.__getitem__


def bound(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    variables: dict[str, dict[str, Any]],
    typed: dict[str, str],
    own: dict[str, str] | None = None,
) -> Any:
    """Return the connection to a host, in a run that was given passwords (``conn_pass``, ``become_pass``).

    ``own`` is what ansible-core has put into the action's play context from the variables of the task's own host.
    """
    worker = SimpleNamespace(_play_context=PlayContext(passwords=typed))
    monkeypatch.setattr(host_runner, "current_process", lambda: worker)
    context = PlayContext(passwords=typed)
    for name, value in (own or {}).items():
        setattr(context, name, value)
    monkeypatch.setattr(Task, "get_play", lambda _task: None)
    action = SimpleNamespace(
        _task=Task(), _play_context=context, _loader=DataLoader(), _templar=None, _shared_loader_obj=None
    )
    return HostRunner(action, host, {"hostvars": Hosts(variables), "inventory_hostname": "new"})._action._connection


def test_a_typed_password_is_used_by_become(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = bound(monkeypatch, "old", {"new": SUDO, "old": SUDO}, {"become_pass": "typed"})
    assert connection.become.get_option("become_pass") == "typed"


@pytest.mark.parametrize("name", ["longhaul_trust", "ansible_remote_tmp"])
def test_a_host_sets_no_variables_of_the_collection_by_its_facts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    said = {name: "full", "ansible_facts": {name.removeprefix("ansible_"): "full"}}
    with pytest.raises(HostFailed, match=f"{name}: set among the facts of old, which may come from that host"):
        bound(monkeypatch, "old", {"new": {}, "old": said}, {})
    bound(monkeypatch, "old", {"new": {}, "old": {**said, "ansible_facts": {}}}, {})


@pytest.mark.parametrize("name", ["ansible_become_password", "ansible_become_pass"])
def test_a_variable_of_the_host_wins_over_the_typed_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hosts = {"new": SUDO, "old": {**SUDO, name: "variable"}}
    connection = bound(monkeypatch, "old", hosts, {"become_pass": "typed"})
    assert connection.become.get_option("become_pass") == "variable"


def test_a_typed_password_is_used_by_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = bound(monkeypatch, "old", {"new": {}, "old": {}}, {"conn_pass": "typed"})
    assert connection.get_option("password") == "typed"
    hosts = {"new": {}, "old": {"ansible_password": "variable"}}
    assert bound(monkeypatch, "old", hosts, {"conn_pass": "typed"}).get_option("password") == "variable"


def test_the_passwords_of_one_host_never_reach_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """ansible-core writes those of the task's own host into the play context of its action."""
    hosts = {"new": {**SUDO, "ansible_become_password": "new's"}, "old": SUDO}
    own = {"password": "new's", "become_pass": "new's"}
    for typed in ({}, {"conn_pass": "typed", "become_pass": "typed"}):
        connection = bound(monkeypatch, "old", hosts, typed, own)
        given = connection.become.get_option("become_pass", playcontext=connection._play_context)
        login = connection.get_option("password") or connection._play_context.password
        assert (given or "", login or "") == (typed.get("become_pass", ""), typed.get("conn_pass", ""))


def test_without_become_nothing_is_told_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bound(monkeypatch, "old", {"new": {}, "old": {}}, {"become_pass": "typed"}).become is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Timeout (12s) waiting for privilege escalation prompt: ", ["ANSIBLE_TIMEOUT", "run the task again"]),
        ("The module interpreter '/usr/bin/python3.99' was not found.", ["ansible_python_interpreter", "3.8"]),
        ("Missing sudo password", ["--ask-become-pass", "ansible_become_password"]),
        ("Incorrect sudo password", ["--ask-become-pass", "ansible_become_password"]),
        ("something else", []),
    ],
)
def test_what_ansible_says_comes_with_what_to_do(text: str, words: list[str]) -> None:
    said = _with_advice(text)
    assert said.startswith(text.rstrip("."))
    assert all(word in said for word in words), said
    assert words or said == text


LATE = AnsibleConnectionFailure("Timeout (12s) waiting for privilege escalation prompt: ")
Runner = Callable[..., Any]


@pytest.fixture(name="runner")
def _runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runner:
    """Return a function that makes a runner of what its executions meet: an error, the module's answer, or results."""

    def make(*meets: Any, pipelining: bool = False) -> HostRunner:
        def execute(**_arguments: Any) -> dict[str, Any]:
            met = next(left)
            if isinstance(met, Exception):
                raise met
            return met if isinstance(met, dict) else {"results": met, "kept": True}

        left = iter(meets)
        made = HostRunner.__new__(HostRunner)
        made.name, made.variables = "old", {}
        made._action = mock.Mock()
        made._action.ask.side_effect = execute
        made._action._is_pipelining_enabled.return_value = pipelining
        made._memory, made._identity = Memory(str(tmp_path / "memory")), ["old"]
        made._guesses_pipelining = made._leaves_pipelining = False
        made._known = made._memory.recall("host", made._identity)
        made._pace = Pace(str(tmp_path), "old")
        made._riders = deque()
        return made

    monkeypatch.setattr(host_runner, "PAUSE", 0)
    monkeypatch.setattr(host_runner, "_DISPLAY", mock.Mock())
    return make


@pytest.mark.parametrize(
    "ask",
    [
        lambda made: made.run({"do": "probe"}),
        lambda made: made.run_module("ansible.builtin.setup", {}, {}),
        lambda made: made.change_by_module("ansible.builtin.apt", {}),
    ],
    ids=["steps", "a module", "a module that changes something"],
)
def test_nothing_is_done_once_ansible_playbook_is_gone(
    runner: Runner, ask: Callable[[HostRunner], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runner([{}])
    monkeypatch.setattr(host_runner, "is_gone", lambda: True)
    with pytest.raises(ControllerGone):
        ask(made)
    assert not made._action.ask.called


@pytest.mark.parametrize("late", [1, 2])
def test_what_changes_nothing_is_run_again_where_become_was_late(runner: Runner, late: int) -> None:
    made = runner(*[LATE] * late, [{"a": 1}])
    assert made.run({"do": "probe"}, {"do": "describe"}) == [{"a": 1}]
    calls = host_runner._DISPLAY.warning.call_args_list
    assert len(calls) == late and all("old did not answer for become in time" in str(call) for call in calls)


def test_become_that_stays_late_fails_as_ever(runner: Runner) -> None:
    made = runner(*[LATE] * 4)
    with pytest.raises(HostFailed, match="old: Timeout .*too slow to ask for the password.* and run the task again"):
        made.run({"do": "probe"})
    assert made._action.ask.call_count == 3


@pytest.mark.parametrize(
    ("step", "pipelining", "again"),
    [("start", False, False), ("stop", False, False), ("start", True, True), ("poll", False, True)],
)
def test_what_may_have_run_is_run_again_only_where_it_cannot_have(
    runner: Runner, step: str, pipelining: bool, again: bool
) -> None:
    """Without pipelining the module is on the host before become is asked."""
    made = runner(LATE, [{}], pipelining=pipelining)
    if again:
        assert made.run({"do": "poll"}, {"do": step}) == [{}]
    else:
        with pytest.raises(HostFailed, match="privilege escalation"):
            made.run({"do": "poll"}, {"do": step})


@pytest.mark.parametrize(
    "text",
    [
        "Data could not be sent to remote host 'old'. Make sure this host can be reached over SSH.",
        'Data could not be sent to remote host "old". Make sure this host can be reached over ssh: Broken pipe',
    ],
)
def test_why_ssh_ended_is_asked_again(runner: Runner, text: str) -> None:
    """Ansible says so only where the process is gone at once."""
    why = AnsibleConnectionFailure("Failed to connect to the host via ssh: Host key verification failed.")
    with pytest.raises(HostFailed, match="Host key verification failed"):
        runner(AnsibleConnectionFailure(text), why, pipelining=True).run({"do": "probe"})
    with pytest.raises(HostFailed, match="Host key verification failed"):
        runner(AnsibleConnectionFailure(text), why).run_module("ansible.builtin.setup", {}, {})
    with pytest.raises(HostFailed, match="Data could not be sent"):
        runner(AnsibleConnectionFailure(text), why, pipelining=True).run({"do": "start"})
    host_runner._DISPLAY.warning.assert_not_called()


def test_a_module_too_long_for_ssh_to_say_why_it_ended_is_followed_by_a_command_without_input(runner: Runner) -> None:
    lost = AnsibleConnectionFailure("Data could not be sent to remote host 'old'. [Errno 32] Broken pipe")
    made = runner(*[lost] * 3)
    refused = AnsibleConnectionFailure("Failed to connect to the host via ssh: Connection refused")
    made._action._low_level_execute_command.side_effect = refused
    with pytest.raises(HostFailed, match="Connection refused") as failure:
        made.run({"do": "probe"})
    assert failure.value.unreachable and made._action.ask.call_count == 3
    made = runner(*[lost] * 3)
    with pytest.raises(HostFailed, match="Broken pipe"):
        made.run({"do": "probe"})


@pytest.mark.parametrize(
    "error", [AnsibleError("Incorrect sudo password"), AnsibleConnectionFailure("Failed to connect")]
)
def test_another_failure_is_not_tried_again(runner: Runner, error: AnsibleError) -> None:
    made = runner(error, [{}], pipelining=True)
    with pytest.raises(HostFailed):
        made.run({"do": "probe"})
    host_runner._DISPLAY.warning.assert_not_called()


def test_every_step_that_is_run_again_is_one() -> None:
    assert set(commands._STEPS) >= READING


def sent(made: HostRunner) -> list[bool]:
    """Return of each execution whether it had the engine."""
    calls = made._action.ask.call_args_list
    assert {call.kwargs["module_args"]["digest"] for call in calls} == {packed_engine().digest}
    return ["engine" in call.kwargs["module_args"] for call in calls]


NOT_KEPT = {"changed": False, "kept": False}


def test_the_engine_is_sent_once_also_by_the_next_run(runner: Runner) -> None:
    first, second = runner([1], [2]), None
    assert (first.run({"do": "probe"}), first.run({"do": "start"}), sent(first)) == ([1], [2], [True, False])
    second = runner([3])
    assert (second.run({"do": "start"}), sent(second)) == ([3], [False])


def test_the_engine_is_sent_again_to_a_host_that_lost_it(runner: Runner) -> None:
    runner([1]).run({"do": "probe"})
    made = runner(NOT_KEPT, [2], [3])
    assert (made.run({"do": "start"}), made.run({"do": "start"})) == ([2], [3])
    assert sent(made) == [False, True, False]


def test_no_host_gets_an_engine_that_was_changed_while_this_ran(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_runner, "engine_digest", lambda: "of the collection when this began")
    forgotten: list[bool] = []
    monkeypatch.setattr(host_runner, "forget_digest", lambda: forgotten.append(True))
    made = runner([2])
    with pytest.raises(HostFailed, match="the collection was changed on the control node"):
        made.run({"do": "start"})
    assert made._action.ask.call_args_list == [] and forgotten == [True]


def test_a_host_that_cannot_keep_it_gets_it_each_time_and_is_not_asked_first(runner: Runner) -> None:
    cannot = {"results": [1], "kept": False}
    runner([1]).run({"do": "probe"})
    made = runner(NOT_KEPT, cannot, cannot)
    assert [made.run({"do": "start"}) for _number in range(2)] == [[1], [1]]
    assert sent(made) == [False, True, True]


def test_a_failure_is_not_taken_for_a_lost_engine(runner: Runner) -> None:
    runner([1]).run({"do": "probe"})
    made = runner({"failed": True, "msg": "no space left"}, [1])
    with pytest.raises(HostFailed, match="no space left"):
        made.run({"do": "start"})


def test_pipelining_that_only_this_tried_is_left_where_become_wants_a_terminal(runner: Runner) -> None:
    refused = {
        "failed": True,
        "msg": "MODULE FAILURE",
        "module_stderr": "sudo: sorry, you must have a tty to run sudo",
        "module_stdout": "",
    }
    made = runner(refused, [1], pipelining=True)
    made._guesses_pipelining = made._leaves_pipelining = True
    assert made.run({"do": "start"}, secrets={"key": "k"}) == [1]
    made._action._connection.set_option.assert_called_once_with("pipelining", False)
    assert runner()._known["pipelining_fails"] == packed_engine().digest
    told = runner(refused, [1], pipelining=True)
    with pytest.raises(HostFailed, match="tty"):
        told.run({"do": "start"})


@pytest.mark.parametrize("was_asked", [True, False], ids=["at the first question", "with the secret"])
def test_no_secret_passes_over_a_disk_because_of_a_word_in_an_error(runner: Runner, was_asked: bool) -> None:
    refused = {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "a tty", "module_stdout": ""}
    made = runner(*([refused, ["probed"]] if was_asked else [["probed"], refused]), pipelining=True)
    made._leaves_pipelining = True
    made.keep_off_disks()
    assert made.run({"do": "probe"}) == ["probed"]
    with pytest.raises(HostFailed, match="^old: become on this host wants a terminal.*trust is none.*requiretty"):
        made.run({"do": "start"}, secrets={"key": "k"})
    secrets = [one.kwargs["module_args"]["secrets"] for one in made._action.ask.call_args_list]
    assert secrets == ([{}, {}] if was_asked else [{}, {"key": "k"}])


def test_a_host_whose_disks_the_user_accepts_gets_its_secret(runner: Runner) -> None:
    made = runner([1])
    made.keep_off_disks()
    assert made.run({"do": "start"}, secrets={"key": "k"}) == [1]


def test_a_word_in_an_error_is_remembered_only_where_it_told_the_truth(runner: Runner) -> None:
    refused = {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "a tty", "module_stdout": ""}
    made = runner(refused, {"failed": True, "msg": "no"}, pipelining=True)
    made._guesses_pipelining = made._leaves_pipelining = True
    with pytest.raises(HostFailed):
        made.run({"do": "probe"})
    assert "pipelining_fails" not in runner()._known


@pytest.mark.parametrize(
    ("stderr", "stdout", "told"),
    [
        (
            "pyenv: python3.13: command not found\n\nThe command exists in these versions:\n  3.12.0\n",
            "",
            "pyenv: python3.13: command not found The command exists in these versions: 3.12.0: name the Python of",
        ),
        (
            "Shared connection to host closed.\r\n",
            "/bin/sh: 1: python3: not found\r\n",
            "sh: 1: python3: not found: name",
        ),
        ("Traceback (most recent call last):\n  File\nImportError: no ssl", "", "^ImportError: no ssl$"),
    ],
    ids=["a wrapper", "with a terminal", "an error of Python"],
)
def test_what_ran_instead_of_the_module_is_told(runner: Runner, stderr: str, stdout: str, told: str) -> None:
    failed = {"failed": True, "msg": "MODULE FAILURE", "module_stderr": stderr, "module_stdout": stdout}
    with pytest.raises(HostFailed, match="python|ssl") as raised:
        runner(failed).run({"do": "start"})
    assert re.search(told, raised.value.reason)


def test_what_follows_a_step_counts_for_whether_it_may_run_again(runner: Runner) -> None:
    with pytest.raises(HostFailed, match="privilege escalation"):
        runner(LATE, [{}]).run({"do": "probe", "then": [{"do": "start"}]})


@pytest.mark.parametrize(
    "said", ["kex_exchange_identification: Connection closed by remote host", "Not allowed at this time"]
)
def test_an_sshd_with_too_many_connections_is_asked_again(runner: Runner, said: str) -> None:
    full = AnsibleConnectionFailure(f"Failed to connect to the host via ssh: {said}")
    assert runner(full, full, [1]).run({"do": "start"}) == [1]


LOST = AnsibleConnectionFailure("Failed to connect to the host via ssh: Connection to old closed by remote host.")
FULL = AnsibleConnectionFailure("Failed to connect to the host via ssh: kex_exchange_identification: read: reset")
REFUSED = {"failed": True, "rc": 1, "module_stdout": "", "module_stderr": "sudo: no", "msg": "MODULE FAILURE"}


@pytest.mark.parametrize(
    ("retries", "meets", "asked", "said"),
    [
        (0, [{"rc": 3, "failed": True}], ["command"], ""),
        (0, [FULL, {"rc": 0}], ["command", "command"], ""),  # nobody had logged in
        (0, [LOST, {"rc": 0}], ["command"], "closed by remote host"),
        (0, [LATE, {"rc": 0}], ["command"], "too slow to ask for the password"),
        (0, [REFUSED], ["command"], "sudo: no"),
        # What ssh would repeat is the login alone.
        (3, [{"ping": "pong"}, {"rc": 0}], ["ping", "command"], ""),
        (3, [{"ping": "pong"}, LOST, {"rc": 0}], ["ping", "command"], "closed by remote host"),
    ],
)
def test_what_must_not_run_twice_is_not_run_again_once_it_may_have_begun(
    runner: Runner, retries: int, meets: list[Any], asked: list[str], said: str
) -> None:
    made = runner(*meets)
    made.variables = {"ansible_connection": "local"}
    made._action._connection.get_option.return_value = retries
    if said:
        with pytest.raises(HostFailed, match=said):
            made.run_once("command", {"argv": ["x"]})
    else:
        assert made.run_once("command", {"argv": ["x"]}) == meets[-1]
    modules = [one.kwargs["module_name"].rpartition(".")[2] for one in executions(made)]
    assert modules == asked
    assert made._action._connection.set_option.called == bool(retries)


@pytest.mark.parametrize(
    ("variables", "of_task", "tried"),
    [
        ({}, {}, True),
        ({"ansible_pipelining": False}, {}, False),
        ({"ansible_ssh_pipelining": True}, {}, False),
        ({}, {"ansible_pipelining": False}, False),
        ({"ansible_connection": "paramiko_ssh"}, {}, False),
    ],
    ids=["unset", "off", "on", "off in the task", "unknown to the connection"],
)
def test_pipelining_is_tried_only_where_the_user_says_nothing(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, Any], of_task: dict[str, Any], tried: bool
) -> None:
    monkeypatch.setattr(Task, "get_vars", lambda _self: of_task)
    if "ansible_connection" in variables:
        pytest.importorskip("paramiko", reason="cannot run here: there is no paramiko")
    connection = bound(monkeypatch, "old", {"new": {}, "old": variables}, {})
    asked = variables.get("ansible_ssh_pipelining", False)
    assert connection.get_option("pipelining") is (True if tried else asked)


def test_the_name_of_a_connection_that_ansible_itself_wrote_is_understood() -> None:
    """From the second round of a loop on, it is that of the Python module."""
    made, module = HostRunner.__new__(HostRunner), "ansible_collections.ansible.builtin.plugins.connection.ssh"
    for written, name in ((module, "ansible.builtin.ssh"), ("ssh", "ssh"), ("a.b.docker", "a.b.docker")):
        made.variables = {"ansible_connection": written}
        assert made.connection == name


def test_a_step_rides_along_with_the_next_execution(runner: Runner) -> None:
    made, told = runner(["probed", "kept"], ["polled"]), []
    made.ride({"do": "keep_record"}, told.append)
    assert made.run({"do": "probe"}) == ["probed"] and told == ["kept"]
    assert made.run({"do": "poll"}) == ["polled"] and told == ["kept"]
    asked = [one.kwargs["module_args"]["steps"] for one in made._action.ask.call_args_list]
    assert asked == [[{"do": "probe"}, {"do": "keep_record"}], [{"do": "poll"}]]


def test_a_step_that_did_not_come_along_rides_with_the_one_after(runner: Runner) -> None:
    made, told = runner(AnsibleConnectionFailure("gone"), {"failed": True, "msg": "no"}, ["probed", "kept"]), []
    made.ride({"do": "keep_record", "id": "1"}, told.append)
    for _try in range(2):
        with pytest.raises(HostFailed):
            made.run({"do": "start"})
    assert not told and made.riders == 1
    assert made.run({"do": "probe"}) == ["probed"] and told == ["kept"] and made.riders == 0


def test_a_host_that_answers_too_little_keeps_nobody_waiting(runner: Runner) -> None:
    made, told = runner(["probed"]), []
    made.ride({"do": "keep_record"}, told.append)
    assert made.run({"do": "probe"}) == ["probed"] and told == []


class Allowing:
    """A guard whose step goes first, and that lets pass what its answer says."""

    def __init__(self) -> None:
        self.judged: list[object] = []

    def turn(self, _steps: object) -> Any:
        return nullcontext([{"do": "lease"}])

    def judge(self, answers: Any) -> None:
        self.judged += answers
        if answers != ["mine"]:
            raise LeaseLost("another has it")


def test_a_guard_goes_first_and_what_it_asks_is_nobody_elses(runner: Runner) -> None:
    made, told = runner(["mine", "started", "kept"], ["polled"]), []
    made.guard = Allowing()
    made.ride({"do": "keep_record"}, told.append)
    assert made.run({"do": "start"}) == ["started"] and told == ["kept"] and made.guard.judged == ["mine"]
    assert made.run({"do": "poll"}, guarded=False) == ["polled"]
    asked = [[step["do"] for step in one.kwargs["module_args"]["steps"]] for one in executions(made)]
    assert asked == [["lease", "start", "keep_record"], ["poll"]]


@pytest.mark.parametrize("said", [["another's"], []])
def test_where_a_guard_lets_nothing_pass_nothing_counts_as_done(runner: Runner, said: list[str]) -> None:
    made, told = runner(said, ["mine", "started", "kept"]), []
    made.guard = Allowing()
    made.ride({"do": "keep_record"}, told.append)
    with pytest.raises(LeaseLost):
        made.run({"do": "start"})
    assert told == [] and made.riders == 1


def executions(made: HostRunner) -> list[Any]:
    return list(made._action.ask.call_args_list)


def test_the_task_that_failed_is_no_variable_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a rescue it has templates of variables that are gone."""
    failed = {"ansible_failed_task": {"vars": "{{ gone }}"}, "ansible_failed_result": {}}
    hosts = Hosts(new={"ansible_host": "192.0.2.1", **failed})
    monkeypatch.setattr(Task, "get_play", lambda _task: None)
    action: Any = SimpleNamespace(_task=Task(), _loader=DataLoader())
    task_vars = {"hostvars": hosts, "inventory_hostname": "new", **failed}
    values, unusable = host_runner._variables(action, "new", task_vars)
    assert values == {"ansible_host": "192.0.2.1", "ansible_facts": {}, "hostvars": hosts}
    assert unusable == {}


def test_a_host_that_never_answers_is_a_failure_that_says_how_to_wait_longer(runner: Runner) -> None:
    released = threading.Event()
    made = runner([1])
    made.variables = {"longhaul_answer_timeout": "0.05"}
    made._action.ask.side_effect = lambda **_given: released.wait()
    with pytest.raises(
        HostFailed, match=r"^old: it gave no answer within 0 s.* raise longhaul_answer_timeout"
    ) as failed:
        made.run({"do": "probe"})
    assert not failed.value.unreachable and made._action.ask.call_count == 1
    released.set()


@pytest.mark.parametrize("given", ["no", None, 0, -1, "inf", "nan", 10**9])
def test_a_time_that_is_none_is_refused(runner: Runner, given: object) -> None:
    made = runner([1])
    made.variables = {"longhaul_answer_timeout": given}
    with pytest.raises(HostFailed, match="^old: longhaul_answer_timeout is .*give seconds"):
        made.run({"do": "probe"})


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([{"do": "probe"}], 600),
        ([{"do": "poll", "wait": 10.0}], 610),
        ([{"do": "start", "wait": 60.0, "then": [{"do": "stop"}]}, {"do": "poll", "wait": 5}], 665),
        ([{"do": "snapshot", "action": "begin"}], 600),
        ([{"do": "snapshot", "action": "list"}], 600),
        ([{"do": "snapshot", "action": "check"}, {"do": "snapshot", "action": "list"}], LONG),
        ([{"do": "start", "wait": 4.0, "then": [{"do": "sync"}]}], LONG),
    ],
)
def test_only_work_on_whole_trees_may_take_long(steps: list[dict[str, Any]], seconds: float) -> None:
    assert longest_answer(steps, 600.0) == seconds
