# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two versions of the collection are compared round by round, and noise shows in the interval."""

from __future__ import annotations

import random

from ansible_collections.longhaul.fleet.tests.bench import versions
from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure


def _figure(tool: str, *processor: float, failed: str = "") -> Figure:
    return Figure("small", tool, [{"processor": one, "wire": 5e6, "seconds": 1.0} for one in processor], failed)


def test_the_ratio_is_that_of_the_pairs() -> None:
    before = [1.0, 2.0, 4.0, 8.0, 16.0]  # the machine became slower and slower, for both
    assert versions.ratio(before, [1.1 * one for one in before]) == (1.1, 1.1, 1.1)


def test_noise_widens_the_interval_around_the_ratio() -> None:
    chance = random.Random(1)
    before = [chance.gauss(1, 0.1) for _run in range(15)]
    after = [chance.gauss(1, 0.1) for _run in range(15)]
    found = versions.ratio(before, after)
    assert found.low < found.median < found.high
    assert found.low < 1 < found.high and found.high - found.low > 0.02


def test_a_row_for_each_quantity_of_each_tool_that_both_have() -> None:
    tools = [_figure("a (earlier)", 1.0, 1.0), _figure("a", 2.0, 2.0), _figure("b", 1.0)]
    heading, _blank, shown = versions.section(tools)
    assert heading.startswith("### ")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines()[2:]]
    assert rows == [
        ["small, a", "processor, s", "1.00", "2.00", "2.000", "2.000 to 2.000", "2"],
        ["small, a", "wire, MB", "5.00", "5.00", "1.000", "1.000 to 1.000", "2"],
        ["small, a", "job, s", "1.00", "1.00", "1.000", "1.000 to 1.000", "2"],
    ]


def test_what_failed_is_not_compared() -> None:
    assert versions.section([_figure("a (earlier)", 1.0), _figure("a", 1.0, failed="it broke")]) == []
    assert versions.section([_figure("a", 1.0)]) == []
