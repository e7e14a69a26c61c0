# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is taken from the answer of a hook's host, and what becomes of a host that gives none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs import hooks
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import (
    Hook,
    HookResult,
    check_host,
    let_go,
    run_hook,
)

COMMAND = Hook(command=("/bin/true",))


def runner(answer: Any) -> mock.Mock:
    """Return a runner whose host gives this answer; an exception is raised."""
    made = mock.Mock()
    made.run_once.side_effect = [answer]
    return made


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"rc": 0, "changed": False, "stdout": "a\rb\x1b[31m", "stderr": "", "msg": "", "cmd": ["another"]},
            HookResult(changed=True, rc=0, stdout="a\rb\x1b[31m"),
        ),
        ({"rc": 3, "failed": False, "stderr": "no"}, HookResult(failed=True, changed=True, rc=3, stderr="no")),
        ({"rc": 0, "failed": True, "msg": "no"}, HookResult(failed=True, changed=True, rc=0, msg="no")),
        ({"rc": 0, "stdout": ["x"], "stderr": None, "msg": {}}, HookResult(changed=True, rc=0)),
        (
            {
                "rc": 0,
                "ansible_facts": {"backup_after": []},
                "ansible_stats": {},
                "unreachable": True,
                "warnings": ["x"],
            },
            HookResult(changed=True, rc=0),
        ),
        ({"rc": "0", "stdout": "x"}, HookResult(failed=True, msg="its host gave no return code", stdout="x")),
        ({"rc": False}, HookResult(failed=True, msg="its host gave no return code")),
        ({}, HookResult(failed=True, msg="its host gave no return code")),
    ],
)
def test_named_values_of_their_types_are_taken_unaltered(answer: dict[str, Any], expected: HookResult) -> None:
    asked = runner(answer)
    assert run_hook(asked, COMMAND) == expected
    asked.run_once.assert_called_once_with("ansible.builtin.command", {"argv": ["/bin/true"]})


@pytest.mark.parametrize("unreachable", [True, False])
def test_a_host_without_an_answer(unreachable: bool) -> None:
    failed = HostFailed("there is no Python", "old", unreachable)
    expected = HookResult(failed=True, unreachable=unreachable, msg="there is no Python")
    assert run_hook(runner(failed), COMMAND) == expected
    # The file of tasks of a hook may need no Python, but it needs a connection.
    assert check_host(runner(failed), None).failed == unreachable
    assert check_host(runner({"ping": "pong", "failed": True}), None) == HookResult()


def test_a_host_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = mock.Mock()
    silent.run_once.side_effect = silent.close.side_effect = lambda *_given: time.sleep(1)
    result = run_hook(silent, replace(COMMAND, timeout=0.05))
    assert result.failed and not result.changed and "did not end within 0.05 s, its timeout" in result.msg
    monkeypatch.setattr(hooks, "_CLEAN_UP", 0.05)
    let_go(silent)
    silent.reset.assert_called_once_with()
