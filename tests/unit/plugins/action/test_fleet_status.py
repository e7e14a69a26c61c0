# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The width of the table that fleet_status prints."""

from __future__ import annotations

import os

import pytest
from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.action.fleet_status import terminal_width


@pytest.mark.parametrize(
    ("columns", "is_terminal", "width"),
    [("180", False, 180), ("180", True, 100), ("wide", False, 100), ("0", False, 100), ("", False, 100)],
)
def test_columns_count_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str, is_terminal: bool, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "isatty", lambda _fd: is_terminal)
    monkeypatch.setattr(Display(), "columns", 100)
    assert terminal_width() == width
