# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark lets its tools take turns, takes medians, and goes on when one fails."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.tests.bench.measuring import (
    Figure,
    Tool,
    figure_from_json,
    interleaved,
    turn,
)


def _recording(name, seconds, log):
    left = list(seconds)

    def run():
        log.append(name)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return {"seconds": found}

    return Tool(name, run)


def test_tools_take_turns_and_each_round_begins_with_another_one() -> None:
    log: list[str] = []
    tools = [_recording(name, [1.0, 2.0, 3.0], log) for name in "abc"]
    interleaved("part", tools, 3, lambda: log.append("-"), lambda line: None)
    assert "".join(log) == "-a-b-c" + "-b-c-a" + "-c-a-b"


def test_the_median_counts_and_not_the_mean() -> None:
    (figure,) = interleaved("part", [_recording("a", [9.0, 1.0, 2.0], [])], 3, lambda: None, lambda line: None)
    assert figure.median == {"seconds": 2.0}
    assert figure.spread == 9.0


def test_a_tool_that_fails_has_no_further_turn_and_the_others_go_on() -> None:
    log: list[str] = []
    said: list[str] = []
    tools = [_recording("bad", [1.0, ValueError("no port")], log), _recording("good", [1.0, 1.0, 4.0], log)]
    bad, good = interleaved("part", tools, 3, lambda: None, said.append)
    assert log.count("bad") == 2 and len(good.runs) == 3 and not good.failed
    assert bad.failed == "ValueError: no port"
    assert any("bad failed" in line and "no port" in line for line in said)


def test_only_what_every_run_gave_has_a_median() -> None:
    figure = Figure("part", "tool", [{"seconds": 1, "first byte": 3}, {"seconds": 3}])
    assert figure.median == {"seconds": 2}
    assert Figure("part", "tool").median == {} and Figure("part", "tool").spread == 1.0


def test_what_is_written_is_read() -> None:
    figure = Figure("part", "tool", [{"seconds": 1.5}], "why")
    assert figure_from_json(figure.as_json()) == figure


@pytest.mark.parametrize("number, expected", [(0, "abc"), (1, "bca"), (3, "abc"), (4, "bca")])
def test_turn(number: int, expected: str) -> None:
    tools = [_recording(name, [], []) for name in "abc"]
    assert "".join(tool.name for tool in turn(tools, number)) == expected
    assert turn([], number) == []
