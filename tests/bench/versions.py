# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Today's version of the collection compared with an earlier one: ratios, and how sure they are. Pure.

The two take turns, so each round has a pair of runs that the same noise hit. The ratio of a quantity is the median of
the pairs' ratios. Its interval comes from drawing as many pairs again and again, with replacement (bootstrap).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import table
from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure

EARLIER = " (earlier)"
QUANTITIES = {"processor": ("processor, s", 1.0), "wire": ("wire, MB", 1e6), "seconds": ("job, s", 1.0)}
DRAWS = 2000
SURE = 0.95


class Ratio(NamedTuple):
    """Today's quantity by that of the earlier version; below 1 is less."""

    median: float
    low: float
    high: float


def earlier_name(tool: str) -> str:
    """Return what a tool is called where the earlier version does its work."""
    return tool + EARLIER


def ratio(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """Compare the runs of two versions, round by round; both have as many, and none is 0."""
    pairs = [new / old for old, new in zip(before, after)]
    chance = random.Random(0)
    drawn = sorted(statistics.median(chance.choices(pairs, k=len(pairs))) for _draw in range(DRAWS))
    edge = int(DRAWS * (1 - SURE) / 2)
    return Ratio(statistics.median(pairs), drawn[edge], drawn[-1 - edge])


def section(figures: Sequence[Figure]) -> list[str]:
    """Return the lines of a report that compare the versions; none if only one was measured."""
    found = {(figure.part, figure.tool): figure for figure in figures}
    rows = []
    for (part, tool), today in found.items():
        earlier = found.get((part, earlier_name(tool)))
        if earlier and not earlier.failed and not today.failed:
            rows += _rows(part, earlier, today)
    if not rows:
        return []
    head = ("part, tool", "quantity", "earlier", "today", "ratio", f"{SURE:.0%} interval", "runs")
    return ["### Today's version by the earlier one", "", table.table(head, rows)]


def _rows(part: str, earlier: Figure, today: Figure) -> list[tuple[str, ...]]:
    rows = []
    for name, (heading, unit) in QUANTITIES.items():
        before = [run[name] / unit for run in earlier.runs if run.get(name)]
        after = [run[name] / unit for run in today.runs if run.get(name)]
        if before and len(before) == len(after):
            seen = ratio(before, after)
            medians = (table.number(statistics.median(before)), table.number(statistics.median(after)))
            interval = f"{seen.low:.3f} to {seen.high:.3f}"
            rows.append((f"{part}, {today.tool}", heading, *medians, f"{seen.median:.3f}", interval, str(len(after))))
    return rows
