# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is not used has a name all the same: the sanity tests, which take twenty minutes to say so, refuse ``_``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


def nameless(text: str) -> list[int]:
    """Return the lines that call something ``_``."""
    if not re.search(r"\b_\b", text):
        return []
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id == "_"]
    return sorted(node.lineno for node in names if isinstance(node.ctx, ast.Store))


@pytest.mark.parametrize("folder", ["plugins", "tests"])
def test_nothing_is_called_by_an_underscore(folder: str) -> None:
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    assert len(files) > 100
    assert {str(path): found for path in files if (found := nameless(path.read_text(encoding="utf-8")))} == {}


def test_one_is_found() -> None:
    assert nameless("a = [b for _, b in c]\nfor _number in d: pass\n_ = 1") == [1, 3]
