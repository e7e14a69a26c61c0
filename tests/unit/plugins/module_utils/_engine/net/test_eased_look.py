# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a line loses packets by itself, by what is lost while it is not full."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.eased_look import NEW_SHARE, SHARE, EasedLook
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.path import Path

TICK = 0.5
QUEUED = Path(1000, 100, 0.2, 0.1)
LOSSY = Path(1000, 1, 0.105, 0.1)
CLEAN = Path(1000, 0, 0.105, 0.1)
NOBODY = Path(0, 0, 0.105, 0.1)


def look_at(*paths: Path) -> tuple[bool | None, float]:
    """Return what is known in the end, and the seconds that took."""
    look, found, seconds = EasedLook({1: 1000.0}), None, 0.0
    for path in paths:
        assert found is None
        found, seconds = look.take(TICK, path), seconds + TICK
        if found is not None:
            break
    return found, seconds


@pytest.mark.parametrize("queued", range(4))
def test_what_is_lost_while_the_queue_drains_and_a_moment_after_it_does_not_count(queued: int) -> None:
    late = Path(1000, 100, 0.12, 0.1)  # what was lost before is sent again, and may be lost again
    assert look_at(*[QUEUED] * queued, late, *[CLEAN] * 9) == (False, (queued + 2) * TICK)
    assert look_at(*[QUEUED] * queued, CLEAN, *[LOSSY] * 9) == (True, (queued + 2) * TICK)


def test_a_queue_that_comes_back_begins_it_again_and_one_that_stays_is_somebody_elses() -> None:
    assert look_at(LOSSY, QUEUED, *[CLEAN] * 9) == (False, 4 * TICK)
    assert look_at(*[QUEUED] * 99) == (False, 6.0)
    assert look_at(*[NOBODY] * 99) == (False, 6.0)


def test_a_longer_line_and_a_slower_one_take_longer() -> None:
    lossy = LOSSY._replace(rtt=0.61, min_rtt=0.6)
    assert look_at(*[lossy] * 99) == (True, 6 * TICK)  # a round trip, and three
    assert look_at(*[lossy._replace(rtt=0.9)] * 99) == (False, 18.0)
    assert look_at(*[LOSSY._replace(packets=100)] * 99) == (True, 3 * TICK)


def test_each_connection_sends_half_as_much_and_those_that_come_meanwhile_a_quarter_of_all_together() -> None:
    look = EasedLook({1: 1000.0, 2: 0.0, 3: 600.0})
    assert look.rates([1, 3]) == {1: int(1000 * SHARE), 3: int(600 * SHARE)}
    assert look.rates([1, 2, 4]) == {1: int(1000 * SHARE), 2: int(1600 * NEW_SHARE / 2), 4: int(1600 * NEW_SHARE / 2)}
    assert EasedLook({1: 0.0}).rates([1, 2]) == {}, "of which nothing is known: what they can"
