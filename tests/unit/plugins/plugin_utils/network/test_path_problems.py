# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which paths do not take the packets that they must take is told by name."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.network.path_problems import find_path_problems

PEER = {"host": "beta", "address": "10.0.0.2"}
LOST = {"item": PEER, "passed": False, "message": "lost", "largest": 1500}


def test_both_directions_are_told_by_name():
    assert find_path_problems([LOST], "alpha", [LOST]) == [
        "alpha to beta (10.0.0.2): lost. The largest that passes has 1500 bytes",
        "beta to alpha: lost. The largest that passes has 1500 bytes",
    ]
    assert find_path_problems([dict(LOST, passed=True)], "alpha", [dict(LOST, passed=True)]) == []


def test_a_test_without_an_answer_has_not_passed():
    unreachable = {"item": PEER, "unreachable": True, "msg": "Failed to connect"}
    assert find_path_problems([unreachable], "alpha") == ["alpha to beta (10.0.0.2): Failed to connect"]
    assert find_path_problems([{"item": PEER}], "alpha") == ["alpha to beta (10.0.0.2): the test gave no answer"]
    assert find_path_problems([], "alpha", [{"item": PEER, "skipped": True}]) == []


def test_a_peer_that_is_not_in_the_inventory_is_named_by_its_address():
    assert find_path_problems([dict(LOST, item={"address": "10.0.0.9"}, largest=None)], "a") == ["a to 10.0.0.9: lost"]
