# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A few rounds of ``make soak``: random trees, edits and options through the product and the real rsync."""

from __future__ import annotations

import os
import random

import pytest
from ansible_collections.longhaul.fleet.tests.soak import differential, disk, grow, machine
from ansible_collections.longhaul.fleet.tests.soak.case import random_case
from ansible_collections.longhaul.fleet.tests.soak.expected import EXPECTED
from ansible_collections.longhaul.fleet.tests.soak.hosts import ORDINARY, ROOT
from ansible_collections.longhaul.fleet.tests.soak.tree import Tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


def expect_nothing(tally: differential.Tally) -> None:
    """All that differs must be expected."""
    assert not tally.unexplained, "\n\n".join(tally.unexplained)


@pytest.mark.often(1)
@needs_root
@pytest.mark.parametrize("seed", [100, 200, 300])
def test_random_cases_end_as_with_rsync(seed):
    expect_nothing(differential.rounds(3, seed, lambda _line: None))


@needs_root
def test_some_rows_of_the_pairwise_table_end_as_with_rsync():
    expect_nothing(differential.table(5, lambda _line: None, most=6))


@pytest.mark.often(1)
@needs_root
@pytest.mark.parametrize("seed", [507, 510])
def test_random_cases_of_an_ordinary_user_end_as_with_rsync(seed):
    expect_nothing(differential.rounds(1, seed, lambda _line: None, user=ORDINARY))


@pytest.mark.often(1)
@needs_root
@pytest.mark.parametrize("user", [ROOT, ORDINARY], ids=["root", "user"])
def test_sequences_of_edits_transfers_and_kills_end_with_equal_trees(user):
    done = machine.run(5, seed=1, user=user, steps=10, shrink=False)
    assert done["sequences"] >= 5 and done["transfers"] > 5


def test_the_same_seed_gives_the_same_case():
    assert random_case(7).described() == random_case(7).described() != random_case(8).described()


@needs_root
def test_a_tree_is_the_same_each_time_it_is_made(tmp_path):
    for seed in range(15):
        chance = random.Random(seed)
        grower = grow.Grower(Tree(), chance, grow.root_palette(chance))
        grower.edit(25)
        places = [tmp_path / f"{seed}{one}" for one in "ab"]
        for place in places:
            disk.make(grower.tree, place)
        assert differences(*places) == []


def test_each_expected_difference_has_a_name_of_its_own_and_a_reason():
    assert len({one.name for one in EXPECTED}) == len(EXPECTED)
    assert all(one.reason and one.aspects for one in EXPECTED)
