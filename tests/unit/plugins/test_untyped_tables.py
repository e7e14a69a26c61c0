# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of anything are passed around only where Ansible, or what is not read yet, leaves no other way."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
MOST = 18  # as many as there are left: write a lower number here where there are fewer
ALIAS = re.compile(r"^\w+(: TypeAlias)? = [^#\n]*ict\[str, (Any|object)\]", re.MULTILINE)


def signatures(source: str) -> Iterator[str]:
    """Return the annotations of all functions in a source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            annotations = [one.annotation for one in arguments if one is not None]
            yield from (ast.unparse(one) for one in [*annotations, node.returns] if one is not None)


def untyped(source: str) -> int:
    """Count the annotations that let a table of anything through."""
    return sum("ict[str, Any]" in annotation for annotation in signatures(source))


def test_no_more_tables_of_anything_are_passed_around():
    sources = {str(path.relative_to(PLUGINS)): path.read_text(encoding="utf-8") for path in PLUGINS.rglob("*.py")}
    found = {path: untyped(source) for path, source in sources.items() if "Any" in source}
    total, where = sum(found.values()), {path: count for path, count in sorted(found.items()) if count}
    assert total <= MOST, f"{total - MOST} more than there were: give what is passed a type. There are {where}"


def test_no_other_name_hides_them():
    found = {str(path): ALIAS.findall(path.read_text(encoding="utf-8")) for path in PLUGINS.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_they_are_found_wherever_they_stand():
    source = "async def f(a: list[dict[str, Any]], /, *b: Dict[str, Any], c: int = 1) -> dict[str, Any] | None: ..."
    assert untyped(source) == 3
    assert untyped("def f(a: Mapping[str, int], b) -> None:\n    c: dict[str, Any] = {}") == 0
    assert ALIAS.search("import os\nJson = Dict[str, Any]\n") and ALIAS.search("Json: TypeAlias = dict[str, object]")
