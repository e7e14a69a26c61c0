# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which passwords reach which host. Ansible's own plugins take part; no host is reached."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands
from ansible_collections.longhaul.fleet.plugins.plugin_utils import host_runner, typed_passwords
from ansible_collections.longhaul.fleet.plugins.plugin_utils.execution_retry import READING
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed, HostRunner, _with_advice

SUDO = {"ansible_become": True}


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
    monkeypatch.setattr(typed_passwords, "current_process", lambda: worker)
    context = PlayContext(passwords=typed)
    for name, value in (own or {}).items():
        setattr(context, name, value)
    loader = mock.Mock()
    action = SimpleNamespace(
        _task=Task(),
        _play_context=context,
        _loader=DataLoader(),
        _templar=None,
        _shared_loader_obj=SimpleNamespace(action_loader=loader),
    )
    HostRunner(action, host, {"hostvars": variables, "inventory_hostname": "new"})
    return loader.get.call_args.kwargs["connection"]


def test_a_typed_password_is_used_by_become(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = bound(monkeypatch, "old", {"new": SUDO, "old": SUDO}, {"become_pass": "typed"})
    assert connection.become.get_option("become_pass") == "typed"


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
def _runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Return a function that makes a runner of what its executions meet, in order: an error, or results."""

    def make(*meets: Any, pipelining: bool = False) -> HostRunner:
        def execute(**_arguments: Any) -> dict[str, Any]:
            met = next(left)
            if isinstance(met, Exception):
                raise met
            return {"results": met}

        left = iter(meets)
        made = HostRunner.__new__(HostRunner)
        made.name, made.variables, made._parent = "old", {}, host_runner.os.getppid()
        made._action = mock.Mock()
        made._action._execute_module.side_effect = execute
        made._action._is_pipelining_enabled.return_value = pipelining
        return made

    monkeypatch.setattr(host_runner, "engine_argument", lambda: "")
    monkeypatch.setattr(host_runner, "PAUSE", 0)
    monkeypatch.setattr(host_runner, "_DISPLAY", mock.Mock())
    return make


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
    assert made._action._execute_module.call_count == 3


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
    with pytest.raises(HostFailed, match="Data could not be sent"):
        runner(AnsibleConnectionFailure(text), why, pipelining=True).run({"do": "start"})
    host_runner._DISPLAY.warning.assert_not_called()


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
