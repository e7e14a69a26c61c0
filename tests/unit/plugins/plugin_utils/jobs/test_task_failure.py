# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A failed hook is named with its command and its output, and a hidden one with its name alone."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import tell_failure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import tell_hook

COMMAND = {"host": "source", "command": ["/bin/flush", "--all", "a b"]}
RESULT = {
    "failed": True,
    "cmd": ["/bin/flush", "--all", "a b"],
    "msg": "non-zero return code",
    "rc": 3,
    "stderr": "no way",
}


def told(hook, result, task="a task", **more):
    return tell_failure(result, task, tell_hook(hook, "before_cutover", "old"), **more)


@pytest.mark.parametrize(
    "hook, result, text",
    [
        (
            {**COMMAND, "name": "flush the cache"},
            RESULT,
            "hook flush the cache (before_cutover) on old failed: /bin/flush --all 'a b': non-zero return code (rc 3)",
        ),
        (
            COMMAND,
            RESULT,
            "hook /bin/flush --all 'a b' (before_cutover) on old failed: non-zero return code (rc 3): no way",
        ),
        (COMMAND, {**RESULT, "stderr": "", "stdout": "said"}, "non-zero return code (rc 3): said"),
        (
            {**COMMAND, "name": "x"},
            {"msg": "Error executing command.", "cmd": "/bin/flush", "rc": 2},
            "--all 'a b': Error",
        ),
        (
            {"name": "stop it", "tasks": "stop.yml"},
            {"msg": "no such service"},
            "tasks of stop.yml: a task: no such service",
        ),
        ({"tasks": "stop.yml"}, RESULT, "hook tasks of stop.yml (before_cutover) on old failed: a task: /bin/flush"),
        ({"tasks": "stop.yml"}, {}, "a task failed"),
        ({"command": ["sh", "-c", "x" * 500]}, RESULT, f"hook sh -c {'x' * 73}… (before_cutover) on old failed: non-"),
    ],
)
def test_a_hook_is_named_with_what_it_ran_and_said(hook, result, text):
    assert text in told(hook, result), told(hook, result)


SECRET = {**RESULT, "cmd": ["/bin/login", "hunter2"], "msg": "hunter2", "stderr": "hunter2", "stdout": "hunter2"}


@pytest.mark.parametrize("no_log", [True, "yes", "true", "True", 1, "{{ unresolved }}"])
@pytest.mark.parametrize("hook", [{"command": ["/bin/login", "hunter2"]}, {"tasks": "hunter2.yml"}])
@pytest.mark.parametrize("name", ["log in", ""])
def test_of_a_hidden_hook_only_the_name_is_told(hook, no_log, name):
    hook = {**hook, "no_log": no_log, "name": name}
    text = told(hook, SECRET, task="hunter2")
    assert "hunter2" not in text and "no_log" in text and (name or "a hook without a name") in text
    assert "hunter2" not in json.dumps(tell_hook(hook, "before_cutover", "old"))


@pytest.mark.parametrize("no_log", [False, "no", "False", "", None, 0])
def test_a_hook_that_hides_nothing_is_told(no_log):
    assert "no way" in told({**COMMAND, "no_log": no_log}, RESULT)


def test_a_task_of_a_hook_that_hides_its_own_result_is_named_only():
    text = told({"name": "stop it", "tasks": "stop.yml"}, SECRET, task="log in", hidden=True)
    assert "hunter2" not in text and "stop it" in text
    assert "hunter2" not in told({"tasks": "stop.yml"}, {**SECRET, "censored": "hidden"})


def test_without_a_hook_it_is_what_the_task_said():
    assert tell_failure({"msg": " the disk is full\n"}) == "the disk is full"
    assert tell_failure({"msg": "MODULE FAILURE", "module_stderr": "no python"}) == "MODULE FAILURE: no python"
    assert tell_failure({"cmd": {"source": ["rsync"]}, "msg": "lost", "stderr": "rsync: lost"}) == "lost: rsync: lost"
    assert tell_failure({}, "Transfer data") == "Transfer data failed"
