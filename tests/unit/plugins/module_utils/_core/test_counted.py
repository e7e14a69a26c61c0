# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers in sentences."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import among, counted, entries_text


@pytest.mark.parametrize(("number", "said"), [(0, "0 files are"), (1, "1 file is"), (2, "2 files are")])
def test_one_is_said_otherwise_than_none_and_many(number: int, said: str) -> None:
    assert counted(number, "file is", "files are") == said
    assert entries_text(number) == ("1 entry" if number == 1 else f"{number} entries")


def test_names_that_are_all_are_not_among_others() -> None:
    assert among(["'a'"], 1) == "'a'"
    assert among(["'a'", "'b'"], 3) == "'a', 'b' among them"
