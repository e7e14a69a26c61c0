# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host prints, and what of it reaches the control node: by its text, and by ansible-core's own code."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts import host_action
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_action import (
    MOST_LEVELS,
    HostAction,
    read_answer,
)

ESCAPE = "\x1b]0;title\x07"


@pytest.mark.parametrize(
    "printed",
    [
        '{"results": [1]}',
        '\r\nwelcome\r\n  {"results": [1]}\r\nShared connection to old closed.\r\n',
        '{"results":\n [1]\n}\nbye',
    ],
)
def test_an_answer_is_found_in_what_a_host_prints(printed: str) -> None:
    assert read_answer(printed) == {"results": [1]}


@pytest.mark.parametrize("path", ["/a\rb", "/a\x1b[31m", "/\u202ea", "/\udc80"])
def test_a_path_stays_the_path_that_it_is(path: str) -> None:
    assert read_answer(json.dumps({"results": [{"path": path}]})) == {"results": [{"path": path}]}


@pytest.mark.parametrize("printed", ["", "no answer", "[1]", "{", '{"a": NaN}', '"{}"', '{"a": 1}{"b": 2}'])
def test_what_is_no_answer_is_a_failure_with_what_was_printed(printed: str) -> None:
    found = read_answer(printed, "sh: 1: python3: not found")
    assert found["failed"] and (found["module_stdout"], found["msg"]) == (printed, "MODULE FAILURE")


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 500, 2_000, 200_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_an_answer_that_is_too_deep_is_a_failure(levels: int, opened: str, closed: str) -> None:
    found = read_answer(f'{{"results": {opened * levels}1{closed * levels}}}')
    assert found["failed"] and f"more than {MOST_LEVELS} levels" in str(found["msg"])


def test_an_answer_with_as_many_levels_as_are_allowed_is_one() -> None:
    inside = MOST_LEVELS - 1
    assert "results" in read_answer(f'{{"results": {"[" * inside}1{"]" * inside}}}')


def test_an_answer_that_is_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_action, "MOST_CHARACTERS", 100)
    assert "are the limit" in str(read_answer(json.dumps({"results": "x" * 100}))["msg"])


def test_nothing_of_an_answer_reaches_ansible_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """ansible-core parses, displays and keeps what it is given; so it gets an empty answer."""
    hostile = {
        "results": [ESCAPE],
        "ansible_facts": {"backup_after": "x"},
        "ansible_stats": {"data": {"x": 1}},
        "warnings": [ESCAPE],
        "deprecations": [{"msg": ESCAPE, "version": "9"}],
        f"_ansible_{ESCAPE}": ESCAPE,
    }
    given: list[Any] = []

    def execute(self: HostAction, **_arguments: Any) -> dict[str, Any]:
        printed = f"{ESCAPE}\n{json.dumps(hostile)}\n{ESCAPE}"
        res = {"rc": 0, "stdout": printed, "stdout_lines": [], "stderr": ESCAPE, "stderr_lines": []}
        parsed = self._parse_returned_data(res, *profile)
        given.append(parsed)
        return {}

    code = ActionBase._parse_returned_data.__code__
    profile = ["legacy"] if "profile" in code.co_varnames[: code.co_argcount] else []
    monkeypatch.setattr(HostAction, "_execute_module", execute)
    made = HostAction(
        task=mock.Mock(), connection=None, play_context=None, loader=None, templar=None, shared_loader_obj=None
    )
    with mock.patch("ansible.utils.display.Display.display") as display:
        assert made.ask("m", {}, {}) == hostile
    assert "backup_after" not in repr(given) and "\\x1b" not in repr(given) and not display.called
