# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks that are modules: which are refused, which module runs for service and package, and what is read of answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import (
    MOST_TEXT,
    Hook,
    HookResult,
    find_hook_problem,
    read_hook,
    run_hook,
    tell_hook,
)


@pytest.fixture(autouse=True, scope="module")
def _plugins() -> Iterator[None]:
    init_plugin_loader([])
    yield
    _AnsibleCollectionFinder._remove()  # other tests import the collection without it


def ran(hook: Hook, fact: object, answer: dict[str, Any] | None = None) -> tuple[HookResult, Any]:
    """Return the result of a hook on a host with this fact, and how the module was run."""
    runner = mock.Mock()
    runner.run_module.side_effect = lambda _name, asked, _members: {"ansible_facts": {asked["filter"][0]: fact}}
    runner.run_once.side_effect = [answer or {"changed": True}]
    return run_hook(runner, hook), runner.run_once.mock_calls


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ({"module": "ansible.builtin.systemd_service"}, ""),
        ({"module": "ansible.builtin.service"}, ""),
        ({"module": "service"}, ""),
        ({"module": "ansible.builtin.package"}, ""),
        ({"module": "ansible.builtin.command", "args": {"cmd": "true"}}, ""),
        ({"command": ["/bin/true"]}, ""),
        ({"tasks": "stop.yml"}, ""),
        *(
            ({"module": f"ansible.builtin.{name}"}, "Use tasks")
            for name in (
                "template",
                "copy",
                "fetch",
                "script",
                "reboot",
                "set_fact",
                "add_host",
                "meta",
                "include_tasks",
            )
        ),
        ({"module": "ansible.builtin.nothing_of_the_kind"}, "is not installed"),
        ({"command": ["/bin/true"], "tasks": "stop.yml"}, "command and tasks"),
        ({}, "nothing to run"),
        ({"command": ["/bin/true"], "args": {"a": 1}}, "has args"),
    ],
)
def test_a_module_that_works_on_the_control_node_is_refused(written: dict[str, Any], word: str) -> None:
    problem = find_hook_problem({"host": "source", **written})
    assert (word in problem) if word else not problem, problem


@pytest.mark.parametrize(
    ("module", "fact", "expected"),
    [
        ("service", "systemd", "ansible.builtin.systemd"),
        ("ansible.builtin.service", "openrc", "ansible.builtin.service"),
        ("ansible.builtin.service", ["a", "list"], "ansible.builtin.service"),
        ("ansible.builtin.package", "apt", "ansible.builtin.apt"),
    ],
)
def test_the_facts_of_its_own_host_choose_the_module(module: str, fact: object, expected: str) -> None:
    hook = Hook(module=module, args={"name": "app", "use": "auto", "pattern": "x"})
    result, (call,) = ran(hook, fact)
    assert result == HookResult(changed=True) and call.args[0] == expected
    assert call.args[1] == {"name": "app", **({} if "systemd" in expected else {"pattern": "x"})}


@pytest.mark.parametrize("fact", ["homebrew", None, 7, "/bin/sh"])
def test_a_host_names_no_module_of_its_own(fact: object) -> None:
    result, calls = ran(Hook(module="ansible.builtin.package", args={"name": "app"}), fact)
    assert result.failed and not calls and "its package manager is" in result.msg


def test_only_named_values_of_an_answer_are_read() -> None:
    long = "x" * MOST_TEXT
    answer = {"changed": True, "failed": True, "msg": "no", "stdout": f"begin{long}", "ansible_facts": {"a": "b"}}
    result, _calls = ran(Hook(module="ansible.builtin.systemd_service"), None, answer)
    assert result == HookResult(failed=True, changed=True, msg="no", stdout=long)
    assert ran(Hook(module="ansible.builtin.file"), None, {"changed": "yes", "rc": True})[0] == HookResult()


def test_a_module_runs_once_also_where_the_connection_is_lost() -> None:
    runner = mock.Mock()
    runner.run_once.side_effect = HostFailed("Broken pipe", "alpha", unreachable=True)
    result = run_hook(runner, Hook(module="ansible.builtin.systemd_service"))
    assert result.failed and result.unreachable and runner.run_once.call_count == 1


def test_what_is_told_of_a_module_is_its_name_and_arguments_unless_it_is_hidden() -> None:
    written = {"host": "source", "module": "ansible.builtin.file", "args": {"path": "/a", "state": "touch"}}
    assert tell_hook(written)["what"] == "ansible.builtin.file (path: /a, state: touch)"
    assert tell_hook({**written, "no_log": True}) == {
        **dict.fromkeys(("kind", "host", "what"), ""),
        "name": "a hook without a name",
        "hidden": True,
    }
    assert read_hook({**written, "no_log": True, "timeout": 5, "become": False}).hidden
