# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that a user gives for one run."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.selection import read_names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], []),
        ("", []),
        (" , ", []),
        ("data", ["data"]),
        ("data, web1,web1/data ", ["data", "web1", "web1/data"]),
        (["data", "mail"], ["data", "mail"]),
        (["data,mail", " web1"], ["data", "mail", "web1"]),
        ([2024, "web1"], ["2024", "web1"]),
        (2024, ["2024"]),
        (True, ["True"]),
    ],
)
def test_names_come_as_a_list_or_as_one_text_with_commas(given: Any, names: list[str]) -> None:
    assert read_names(given) == names
