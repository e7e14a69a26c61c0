# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers in sentences. Pure."""

from __future__ import annotations

from typing import Sequence


def counted(number: int, one: str, many: str) -> str:
    """Return a number with what follows it: ``1 entry differs``, ``2 entries differ``."""
    return f"{number} {one if number == 1 else many}"


def among(named: Sequence[str], number: int) -> str:
    """Return names of some of ``number`` things: ``'a', 'b' among them``, or without these words if they are all."""
    return ", ".join(named) + (" among them" if len(named) < number else "")


def entries_text(number: int) -> str:
    """Return a number of entries in words: ``1 entry``."""
    return counted(number, "entry", "entries")
