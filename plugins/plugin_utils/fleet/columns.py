# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts in the columns of a terminal. Pure."""

from __future__ import annotations

import unicodedata


def cells(text: str) -> int:
    """Return how many columns a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def fit(text: str, width: int, right: bool = False) -> str:
    """Return a text in just this many columns: filled with spaces (on the left with ``right``), or cut."""
    missing = width - cells(text)
    if missing < 0:
        text = cut(text, width)
        missing = width - cells(text)
    return " " * missing + text if right else text + " " * missing


def cut(text: str, width: int) -> str:
    """Return as much of a text as fits into so many columns; what is cut ends in a ``~``."""
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "~" if width > 0 else ""


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
