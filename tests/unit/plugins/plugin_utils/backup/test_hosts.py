# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a backup asks of the repository host, and what is made of its answer."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.hosts import Hosts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed

RUN: Any = {"host": "web1", "name": "data", "repository": {"host": "vault", "path": "/srv/backup"}}


class Runner:
    """Answers every step with the same, or each with its own of a tuple."""

    def __init__(self, name: str, answer: object) -> None:
        self.name, self.answer = name, answer
        self.steps: list[Any] = []

    def run(self, *steps: Any) -> list[object]:
        self.steps += steps
        return list(self.answer) if isinstance(self.answer, tuple) else [self.answer] * len(steps)


def ask(answer: object) -> tuple[Any, Any]:
    runner = Runner("vault", answer)
    made: Any = lambda name: runner if name == "vault" else Runner(name, None)  # noqa: E731
    return Hosts(RUN, made).snapshots({"finish": {"run": "first"}, "list": {}}, True), runner.steps


def test_the_repository_host_is_asked_for_the_snapshots_of_the_run():
    said, steps = ask({"changed": True, "name": "2026-01-01T000000Z", "warnings": ["so small"], "diff": {}, "more": 1})
    kept = {"changed": True, "name": "2026-01-01T000000Z", "warnings": ["so small"], "diff": {}}
    assert said == {"finish": kept, "list": kept}
    assert [(step["action"], step["options"]) for step in steps] == [("finish", {"run": "first"}), ("list", {})]
    for step in steps:
        assert step["do"] == "snapshot" and step["place"] == ["/srv/backup", "web1", "data"] and step["check"]


def test_what_was_done_before_something_is_refused_is_not_lost():
    done = {"changed": True, "warnings": [], "diff": None}
    assert ask((done, {"refused": "no space"}))[0] == {"finish": done}
    with pytest.raises(HostFailed, match="^vault: no space"):
        ask(({"refused": "no space"}, done))


@pytest.mark.parametrize("answer", [None, [], {"warnings": "text"}, {"warnings": [1]}, {"changed": True}])
def test_an_answer_that_is_none_fails_this_host_alone(answer):
    with pytest.raises(HostFailed, match="^vault: what it says of the snapshots cannot be read"):
        ask(answer)
