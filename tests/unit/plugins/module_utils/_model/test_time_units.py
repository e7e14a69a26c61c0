# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When two times are the same on a file system that keeps them coarsely."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.time_units import TimeUnits

SECOND = 10**9
FILE = Entry(b"data/x", "f", 0o644, 0, 0, 4, 1_000_000_001 * SECOND + 5, 0, 1, 2, 1, 0, 8)


@pytest.mark.parametrize(
    ("unit", "one", "other", "same"),
    [
        (1, 5, 5, True),
        (1, 5, 6, False),
        (100, 123, 100, True),
        (100, 199, 200, False),
        (SECOND, SECOND + 999_999_999, SECOND, True),
        (SECOND, 2 * SECOND, 2 * SECOND - 1, False),
        (2 * SECOND, 3 * SECOND + 7, 2 * SECOND, True),
        (2 * SECOND, 4 * SECOND, 3 * SECOND, False),
        (SECOND, -1, -SECOND, True),  # the kernel's nanoseconds are never below 0
    ],
)
def test_times_in_one_unit_are_the_same(unit, one, other, same):
    units = TimeUnits({"": unit})
    assert units.is_same(b"x", one, other) is same
    assert units.is_same(b"x", other, one) is same
    assert (units.stored(b"x", one) == units.stored(b"x", other)) is same


def test_the_deepest_mount_counts():
    units = TimeUnits({"": SECOND, "data": 1, "data/a\\#012b": 100})
    assert [units.at(path) for path in (b"", b"x", b"data", b"data/x", b"datax", b"data/a\nb/c/d")] == [
        SECOND,
        SECOND,
        1,
        1,
        SECOND,
        100,
    ]
    assert TimeUnits({"": 1, "data": SECOND}) and not TimeUnits({}) and not TimeUnits({"": 1})


def test_a_time_that_is_the_same_is_taken_from_what_is_found():
    units = TimeUnits({"data": SECOND})
    found = FILE._replace(mtime_ns=FILE.mtime_ns - 5, mode=0o600)
    assert units.as_found(FILE, found) == FILE._replace(mtime_ns=found.mtime_ns)
    assert units.as_found(FILE, found._replace(mtime_ns=found.mtime_ns - 1)) is FILE
    assert TimeUnits({}).as_found(FILE, found) is FILE
