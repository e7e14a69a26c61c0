# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of random cases, and the pairwise table, through the product and the real rsync."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import options, pairwise
from .case import Case, random_case
from .expected import EXPECTED
from .hosts import ROOT, User
from .judge import Difference, Verdict, judge


@dataclass
class Tally:
    """What became of many cases."""

    states: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)  # by the name of what was expected
    unexplained: list[str] = field(default_factory=list)  # a report for each case with such differences

    def add(self, label: str, verdict: Verdict) -> list[Difference]:
        """Count a case; gives the differences that nothing explains."""
        left = []
        for difference in verdict.differences:
            entry = next((one for one in EXPECTED if one.explains(verdict, difference)), None)
            if entry:
                self.matched[entry.name] += 1
            else:
                left.append(difference)
        self.states["unexplained" if left else verdict.state] += 1
        if left:
            self.unexplained.append(report(label, verdict, left))
        return left

    def never_matched(self) -> list[str]:
        """Name the expected differences that did not occur."""
        return [one.name for one in EXPECTED if not self.matched[one.name]]

    def __str__(self) -> str:
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        matched = ", ".join(f"{name} {count}" for name, count in sorted(self.matched.items()))
        return f"{sum(self.states.values())} cases: {states}; expected differences met: {matched or 'none'}"


def report(label: str, verdict: Verdict, left: list[Difference]) -> str:
    """Return all that is needed to reproduce a failure."""
    case = verdict.case
    return "\n".join(
        [
            f"{label} ({verdict.state})",
            *(f"  {str(one)[:600]}" for one in left[:10]),
            *([f"  and {len(left) - 10} more"] if len(left) > 10 else []),
            *(f"  edit: {one}" for one in case.said if one != "nothing"),
            case.described(),
        ]
    )


def play(label: str, case: Case, tally: Tally) -> list[Difference]:
    """Run one case and count it."""
    return tally.add(label, judge(case))


def rounds(count: int, seed: int, say: Callable[[str], Any] = print, user: User = ROOT) -> Tally:
    """Run so many random cases, of which the first has this seed."""
    tally = Tally()
    for number in range(seed, seed + count):
        if play(f"differential seed {number}", random_case(number, user=user), tally):
            say(tally.unexplained[-1])
    return tally


def rows(seed: int = 1) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pairwise table, then a row for each pair that must be refused."""
    table = pairwise.Table(options.VALUES, options.possible, options.mend, random.Random(seed))
    for number, row in enumerate(table.rows()):
        yield f"pairwise row {number}", row
    for (a, i), (b, j) in sorted(table.impossible):
        row = {**options.DEFAULTS, a: options.VALUES[a][i], b: options.VALUES[b][j]}
        if options.refused(row):
            yield f"refused pair {a}={row[a]!r}, {b}={row[b]!r}", row


def table(seed: int = 1, say: Callable[[str], Any] = print, most: int | None = None) -> Tally:
    """Run the pairwise table, each row with a tree of its own; ``most``: so many rows alone, chosen by the seed."""
    tally = Tally()
    chosen = list(rows())
    if most is not None:
        chosen = random.Random(seed).sample(chosen, most)
    for number, (label, row) in enumerate(chosen):
        if play(f"{label}, seed {seed + number}", random_case(seed + number, row), tally):
            say(tally.unexplained[-1])
    return tally
