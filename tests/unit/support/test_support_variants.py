# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of many variants some are taken, spread over all of them."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.tests.support.variants import spread


@pytest.mark.parametrize(
    ("count", "most", "taken"),
    [
        (0, 4, []),
        (3, 4, [0, 1, 2]),
        (4, 4, [0, 1, 2, 3]),
        (10, 4, [0, 3, 6, 9]),
        (1000, 2, [0, 999]),
        (5, 1, [0]),
    ],
)
def test_first_last_and_some_between(count: int, most: int, taken: list[int]) -> None:
    assert spread(range(count), most) == taken
