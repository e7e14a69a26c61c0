# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Imports between the packages of plugin_utils go one way; those within functions and for type checkers count, too."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

from ansible_collections.longhaul.fleet.plugins import plugin_utils

ROOT = Path(next(iter(plugin_utils.__path__)))
ABSOLUTE = "ansible_collections.longhaul.fleet.plugins.plugin_utils."

# What each package may import.
ORDER: dict[str, set[str]] = {
    "common": set(),
    "report": {"common"},
    "hosts": {"common"},
    "transfer": {"hosts", "common"},
    "fleet": {"transfer", "hosts", "common"},
    "benchmark": {"report", "transfer", "hosts", "common"},
    "jobs": {"report", "benchmark", "fleet", "transfer", "hosts", "common"},
    "jobs.migrate": {"jobs", "report", "benchmark", "fleet", "transfer", "hosts", "common"},
    "jobs.backup": {"jobs", "report", "fleet", "transfer", "hosts", "common"},
    "jobs.restore": {"jobs", "jobs.backup", "report", "fleet", "transfer", "hosts", "common"},
    "actions": {"jobs", "report", "benchmark", "fleet", "transfer", "hosts", "common"},
}


def package_of(dotted: str) -> str:
    """Name the most specific package of the order table that holds a module."""
    parts = dotted.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in ORDER), "")


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted names below plugin_utils that a file imports."""
    here = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = ".".join((*here[: -node.level], *((node.module,) if node.module else ())))
            assert node.level <= len(here), f"{path}:{node.lineno} imports from outside of plugin_utils"
        elif f"{node.module}.".startswith(ABSOLUTE):
            base = f"{node.module}."[len(ABSOLUTE) : -1]
        else:
            continue
        for alias in node.names:
            yield f"{base}.{alias.name}" if base else alias.name


def test_imports_go_one_way():
    wrong = [
        f"{path.relative_to(ROOT)}: {own} must not import {name}"
        for path in sorted(ROOT.rglob("*.py"))
        for own in [package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))]
        for name in imports(path)
        if package_of(name) not in {own, *ORDER[own]}
    ]
    assert wrong == []


def test_every_file_is_in_a_package_of_the_table_and_every_package_has_a_map():
    assert {path.name for path in ROOT.glob("*.py")} == set()
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.rglob("*.py")}
    assert folders == set(ORDER)
    for name in ORDER:
        guide = (ROOT / name.replace(".", "/") / "__init__.py").read_text()
        missing = [path.stem for path in (ROOT / name.replace(".", "/")).glob("[a-z]*.py") if path.stem not in guide]
        assert missing == [], f"{name}/__init__.py does not say what these are for"


def test_the_table_has_no_circle():
    left = dict(ORDER)
    while left:
        lowest = [package for package, targets in left.items() if not targets & left.keys()]
        assert lowest, f"these import each other: {sorted(left)}"
        for package in lowest:
            del left[package]
