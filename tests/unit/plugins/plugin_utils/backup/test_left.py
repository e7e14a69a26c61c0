# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each standing of a backup in its play has one place."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.left import Standing, find_left, standing_of

RUNS = [{"id": name} for name in ("web1/data", "web2/data", "db/data")]


@pytest.mark.parametrize(
    "recorded, current, expected",
    [
        ([], "", Standing.WAITING),
        ([], "db/data", Standing.WAITING),
        (["db/data"], "db/data", Standing.WAITING),
        ([], "web1/data", Standing.INTERRUPTED),
        (["web1/data"], "web1/data", Standing.RECORDED),
        (["web1/data"], "db/data", Standing.RECORDED),
    ],
)
def test_standing(recorded, current, expected):
    assert standing_of("web1/data", recorded, current) is expected


@pytest.mark.parametrize(
    "recorded, current, end, make",
    [
        ([], "", [], [0, 1, 2]),
        ([0], "web2/data", [1], [2]),
        ([0, 1], "web2/data", [], [2]),
        ([0, 1, 2], "db/data", [], []),
    ],
)
def test_what_is_left(recorded, current, end, make):
    left = find_left(RUNS, [RUNS[number] for number in recorded], current)
    assert left.end == [RUNS[number] for number in end]
    assert left.make == [RUNS[number] for number in make], "in their order"
