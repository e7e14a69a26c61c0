# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of options and the rows made of it."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.longhaul.fleet.tests.soak import options, pairwise
from ansible_collections.longhaul.fleet.tests.soak.case import SPEC


def test_every_option_of_transfer_is_in_the_table():
    assert set(options.VALUES) == set(SPEC)


def test_every_choice_of_an_option_is_in_the_table():
    for name, option in SPEC.items():
        if option.get("choices") and option["type"] != "list":
            assert {*options.VALUES[name]} - {option.get("default")} == {*option["choices"]} - {option.get("default")}
        if option.get("type") == "bool":
            assert set(options.VALUES[name]) == {True, False}, name


def test_the_first_value_is_the_default():
    for name, option in SPEC.items():
        if not option.get("required") and name not in ("src_host", "dest_host"):
            default = option.get("default")
            # The table begins with what is compared at all
            assert options.VALUES[name][0] == (tuple(default) if isinstance(default, list) else default), name


def test_what_is_to_be_preserved_is_named_alone_and_left_out():
    wanted = [value for value in options.VALUES["preserve"] if value is not None]
    for name in SPEC["preserve"]["choices"]:
        assert any(name in value for value in wanted) and any(name not in value for value in wanted)


def test_each_pair_of_values_occurs_in_a_row_or_is_impossible():
    table = pairwise.Table(options.VALUES, options.possible, options.mend, random.Random(1))
    rows = list(table.rows())
    met = set()
    for row in rows:
        assert options.possible(row), row
        numbers = {name: options.VALUES[name].index(value) for name, value in row.items()}
        met |= set(itertools.combinations(sorted(numbers.items()), 2))
    assert met | table.impossible == pairwise.all_pairs(options.VALUES)
    assert not met & table.impossible


def test_a_pair_that_is_impossible_is_refused_or_left_out_for_a_reason():
    table = pairwise.Table(options.VALUES, options.possible, options.mend, random.Random(2))
    assert list(table.rows())
    for (a, i), (b, j) in table.impossible:
        row = {**options.DEFAULTS, a: options.VALUES[a][i], b: options.VALUES[b][j]}
        assert not options.possible(row), (a, b)


@pytest.mark.parametrize("seed", range(20))
def test_small_tables_have_each_pair(seed):
    chance = random.Random(seed)
    values = {name: range(chance.randrange(1, 5)) for name in "abcdef"[: chance.randrange(2, 7)]}
    table = pairwise.Table(values, lambda _row: True, lambda _row, _fixed: None, chance)
    rows = list(table.rows())
    for a, b in itertools.combinations(values, 2):
        for one, other in itertools.product(values[a], values[b]):
            assert any(row[a] == one and row[b] == other for row in rows)
    sizes = sorted((len(numbers) for numbers in values.values()), reverse=True)
    assert sizes[0] * sizes[1] <= len(rows) <= 3 * sizes[0] * sizes[1]


def test_what_is_impossible_is_in_no_row():
    values = {"a": range(3), "b": range(3), "c": range(2)}
    table = pairwise.Table(values, lambda r: not (r["a"] == 1 and r["b"] == 2), lambda _r, _f: None, random.Random(1))
    assert not [row for row in table.rows() if row["a"] == 1 and row["b"] == 2]
    assert table.impossible == {(("a", 1), ("b", 2))}
