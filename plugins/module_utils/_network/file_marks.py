# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Marks in the files that the role writes: the entry that they belong to. Private to the collection."""

from __future__ import annotations

import re

MARK = "longhaul.fleet nic: "
MAKES = "longhaul.fleet nic makes: "


def owner_of(content: str) -> str | None:
    """Return the entry that one of our files belongs to, or None for other files."""
    found = re.search(rf"^# {re.escape(MARK)}(\S+)$", content, re.MULTILINE)
    return found[1] if found else None


def made_by(content: str) -> list[str]:
    """Return the names of the devices that the entry of one of our files creates."""
    found = re.search(rf"^# {re.escape(MAKES)}(.+)$", content, re.MULTILINE)
    return found[1].split() if found else []
