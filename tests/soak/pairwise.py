# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables in which each possible pair of values of two options occurs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

Pair = tuple[tuple[str, int], tuple[str, int]]  # option and number of its value, twice
_ATTEMPTS = 40


def all_pairs(values: Mapping[str, Sequence[Any]]) -> set[Pair]:
    """Return each pair of values of two options."""
    return {
        ((a, i), (b, j))
        for a, b in itertools.combinations(sorted(values), 2)
        for i in range(len(values[a]))
        for j in range(len(values[b]))
    }


class Table:
    """Makes rows until each pair has occurred that can.

    ``mend`` changes options of a row that is not possible, but for those that are named to it, so that it is then.
    """

    def __init__(
        self,
        values: Mapping[str, Sequence[Any]],
        possible: Callable[[Mapping[str, Any]], bool],
        mend: Callable[[dict[str, Any], Collection[str]], None],
        chance: random.Random,
    ) -> None:
        self._values, self._possible, self._mend, self._chance = values, possible, mend, chance
        self.left = all_pairs(values)
        self.impossible: set[Pair] = set()  # pairs for which no possible row was found

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; every one has a pair that none before it had."""
        while self.left:
            pair = min(self.left)
            row = self._row_with(pair)
            if row is None:
                self.left.discard(pair)
                self.impossible.add(pair)
                continue
            self.left -= self._pairs_of(row)
            self.impossible -= self._pairs_of(row)
            yield {name: self._values[name][number] for name, number in row.items()}

    def _row_with(self, pair: Pair) -> dict[str, int] | None:
        """Return a row with this pair and as many of the remaining pairs as are easily found."""
        best: dict[str, int] | None = None
        for attempt in range(_ATTEMPTS):
            row = self._grown(dict(pair), greedy=attempt < 2)
            if row is not None and (best is None or len(self._pairs_of(row) & self.left) > len(self._pairs_of(best))):
                best = row
            if best is not None and attempt >= 1:
                break
        return best

    def _grown(self, fixed: dict[str, int], greedy: bool) -> dict[str, int] | None:
        """Complete a row, beginning with the first value of every option, which are possible together."""
        row = {name: fixed.get(name, 0) for name in self._values}
        if not self._good(row, fixed):
            return None
        names = [name for name in self._values if name not in fixed]
        self._chance.shuffle(names)
        for name in names:
            numbers = list(range(len(self._values[name])))
            self._chance.shuffle(numbers)
            if greedy:
                numbers.sort(key=lambda number, name=name: -self._gain(row, name, number))
            for number in numbers:
                tried = {**row, name: number}
                if self._good(tried, {**fixed, name: number}):
                    row = tried
                    break
            fixed[name] = row[name]
        return row

    def _good(self, row: dict[str, int], fixed: Mapping[str, int]) -> bool:
        """Whether a row is possible, or can be made so; then it is changed."""
        said = {name: self._values[name][number] for name, number in row.items()}
        if not self._possible(said):
            self._mend(said, fixed)
            if not self._possible(said):
                return False
        row.update({name: self._values[name].index(value) for name, value in said.items()})
        return all(row[name] == number for name, number in fixed.items())

    def _gain(self, row: Mapping[str, int], name: str, number: int) -> int:
        others = ((other, value) for other, value in row.items() if other != name)
        return sum(tuple(sorted([(name, number), other])) in self.left for other in others)

    @staticmethod
    def _pairs_of(row: Mapping[str, int]) -> set[Pair]:
        return set(itertools.combinations(sorted(row.items()), 2))
