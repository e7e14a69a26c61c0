# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No dataclass has a default that Python 3.11 refuses, where mappingproxy has no hash: other versions accept it."""

from __future__ import annotations

import ast
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def unhashable_defaults(text: str) -> list[str]:
    """Return the members of dataclasses with a mappingproxy as their default."""
    return [
        ast.unparse(member)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list)
        for member in node.body
        if isinstance(member, ast.AnnAssign) and "MappingProxyType(" in ast.unparse(member.value or member.target)
    ]


def test_each_python_accepts_the_defaults():
    files = sorted((REPOSITORY / "plugins").rglob("*.py"))
    assert len(files) > 400
    assert {str(path): found for path in files if (found := unhashable_defaults(path.read_text("utf-8")))} == {}


def test_such_a_default_is_found():
    body = "    a: Mapping[str, int] = MappingProxyType({})\n    b: int = 1\n"
    assert unhashable_defaults(f"@dataclass(frozen=True)\nclass A:\n{body}") == [
        "a: Mapping[str, int] = MappingProxyType({})"
    ]
    assert unhashable_defaults(f"class A(NamedTuple):\n{body}") == []
