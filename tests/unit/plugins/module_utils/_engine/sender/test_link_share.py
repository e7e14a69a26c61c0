# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which connection is given what is left at the end."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.link_share import is_too_slow
from hypothesis import given
from hypothesis import strategies as st

KB = 1000


@pytest.mark.parametrize(
    ("own", "others", "left", "expected"),
    [
        (25 * KB, [2000 * KB], 1000 * KB, True),  # it would take seconds, and the other half of one
        (25 * KB, [2000 * KB], 10_000 * KB, False),  # there is enough for both
        (25 * KB, [50 * KB, 60 * KB], 100 * KB, False),  # they are slow, too
        (25 * KB, [], 100 * KB, False),
        (0, [0, 0], 100 * KB, False),  # nothing is known
        (0, [2000 * KB], 100_000 * KB, False),
        (0, [2000 * KB], 100 * KB, True),
    ],
)
def test_the_end_is_left_to_those_that_are_much_faster(own, others, left, expected):
    assert is_too_slow(own, others, left) is expected


RATES = st.lists(st.floats(0, 1e9), min_size=1, max_size=8)


@given(RATES, st.integers(1, 1 << 40))
def test_one_of_them_always_goes_on(rates, left):
    def leaves(number: int) -> bool:
        return is_too_slow(rates[number], [*rates[:number], *rates[number + 1 :]], left)

    assert not all(leaves(number) for number in range(len(rates)))
