# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Imports between the packages of module_utils go one way, and everything there runs on a host.

Imports within functions and for type checkers count, too.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import zipfile
from pathlib import Path
from typing import Iterable

import pytest
from ansible_collections.longhaul.fleet.plugins import module_utils
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts import engine

ROOT = Path(next(iter(module_utils.__path__)))

# What each package may import. A package that is named here stands for those below it, too.
ORDER = {
    "_core": set(),
    "_model": {"_core"},
    "_tree": {"_model", "_core"},
    "_engine.wire": {"_model", "_core"},
    "_engine.content": {"_engine.wire", "_model", "_core"},
    "_engine.net": {"_engine.wire", "_model", "_core"},
    "_engine.sender": {"_engine.content", "_engine.net", "_engine.wire", "_tree", "_model", "_core"},
    "_engine.receiver": {"_engine.content", "_engine.net", "_engine.wire", "_tree", "_model", "_core"},
    "_methods.ssh": {"_tree", "_core"},
    "_methods.rsync": {"_methods.ssh", "_engine.sender", "_engine.net", "_tree", "_model", "_core"},
    "_methods.rsyncd": {
        *("_methods.rsync", "_methods.ssh", "_engine.net", "_engine.wire"),
        *("_tree", "_model", "_core"),
    },
    "_methods.copy": {
        *("_methods.ssh", "_engine.sender", "_engine.receiver", "_engine.net", "_engine.wire"),
        *("_tree", "_model", "_core"),
    },
    "_methods": {
        *("_methods.copy", "_methods.rsyncd", "_methods.rsync", "_methods.ssh"),
        *("_engine.sender", "_engine.receiver", "_engine.net", "_engine.wire", "_tree", "_core"),
    },
    "_rsyncd": {"_core"},
    "_job": {
        *("_methods", "_methods.rsyncd", "_methods.ssh", "_engine.content", "_engine.net"),
        *("_snapshot", "_migrate", "_benchmark", "_consistent", "_rsyncd", "_tree", "_model", "_core"),
    },
    "_snapshot": {"_tree", "_model", "_core"},
    "_migrate": {"_tree", "_core"},
    "_benchmark": {"_engine.content", "_engine.net", "_engine.wire", "_tree", "_model", "_core"},
    "_consistent": {"_tree", "_core"},
    "_network": {"_core"},
    "_ssh": {"_core"},
}


# Files that no host imports and that must be there nevertheless, each with its reason.
OFF_HOST: dict[str, str] = {}


def package_of(parts: tuple[str, ...]) -> str:
    """Name the most specific package of the order table that holds a module."""
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in ORDER), parts[0])


@functools.lru_cache(maxsize=None)
def imports(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Return the line and the parts of each name below module_utils that a file imports, wherever in it."""
    here = path.relative_to(ROOT).with_suffix("").parts
    imported: list[tuple[int, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= len(here), f"{path}:{node.lineno} imports from outside of module_utils"
            base = (*here[: -node.level], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                found = ROOT.joinpath(*base, alias.name)
                is_module = found.is_dir() or found.with_suffix(".py").exists()
                imported.append((node.lineno, (*base, alias.name) if is_module else base))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            for name in names:
                assert not name.startswith(("ansible", "plugins")), f"{path}:{node.lineno} imports {name}"
    return imported


@functools.lru_cache(maxsize=None)
def arrows() -> dict[str, dict[str, str]]:
    """Return which package imports which others, each with an example."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        package = package_of(path.relative_to(ROOT).parent.parts)
        for line, target in imports(path):
            if package_of(target) != package:
                found.setdefault(package, {}).setdefault(package_of(target), f"{path.relative_to(ROOT)}:{line}")
    return found


def test_each_package_imports_only_what_it_may():
    wrong = [
        f"{example}: {package} must not import {target}"
        for package, targets in arrows().items()
        for target, example in targets.items()
        if target not in ORDER[package]
    ]
    assert wrong == []


def test_no_arrow_of_the_table_is_without_use():
    found = {package: set(targets) for package, targets in arrows().items()}
    assert {package: targets for package, targets in ORDER.items() if targets - found.get(package, set())} == {}


def test_the_table_has_no_circle_and_knows_every_package():
    folders = {path.parent.relative_to(ROOT).parts for path in ROOT.rglob("*.py") if path.name != "__init__.py"}
    assert {package_of(parts) for parts in folders if parts} == set(ORDER)
    left = dict(ORDER)
    while left:
        lowest = [package for package, targets in left.items() if not targets & left.keys()]
        assert lowest, f"these import each other: {sorted(left)}"
        for package in lowest:
            del left[package]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_what_marks_a_package_holds_no_code(path):
    """It is not sent to the hosts; there an empty one takes its place."""
    assert all(isinstance(node, ast.Expr) for node in ast.parse(path.read_text()).body)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_map_names_each_file_of_its_package(path):
    guide = path.read_text()
    missing = [file.stem for file in sorted(path.parent.glob("[a-z]*.py")) if f"``{file.stem}``" not in guide]
    assert missing == [], f"{path.relative_to(ROOT)} does not say what these are for"


def test_every_package_has_a_map():
    folders = {path.parent for path in ROOT.rglob("*.py")}
    assert {str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()} == set()


def file_of(parts: tuple[str, ...]) -> Path | None:
    """Return the file of a module below module_utils, or None if the parts name none."""
    found = ROOT.joinpath(*parts).with_suffix(".py") if parts else ROOT
    return found if found.is_file() else None


MODULES = sorted((ROOT.parent / "modules").glob("*.py"))


@functools.lru_cache(maxsize=None)
def engine_entries() -> set[Path]:
    """Return the files from which everything starts in the engine."""
    names = set()
    for path in MODULES:
        names.update(re.findall(rf'import_module\("{engine.PACKAGE}\.([\w.]+)"\)', path.read_text()))
    for node in ast.walk(ast.parse(engine._MAIN)):
        if isinstance(node, ast.ImportFrom):
            names.update(f"{node.module[len(engine.PACKAGE) + 1 :]}.{alias.name}" for alias in node.names)
    return files_of(names)


def module_entries() -> set[Path]:
    """Return the files that modules import."""
    names = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and ".module_utils." in f".{node.module}":
                below = node.module.partition("module_utils.")[2]
                names.update([below, *(f"{below}.{alias.name}" for alias in node.names)])
    return files_of(names)


def files_of(names: Iterable[str]) -> set[Path]:
    """Return the files among dotted names below module_utils."""
    return {found for found in (file_of(tuple(name.split("."))) for name in names) if found}


def reached_from(entries: Iterable[Path]) -> set[Path]:
    """Return the files that these import, directly or through others, and these themselves."""
    reached: set[Path] = set()
    waiting = list(entries)
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [found for _line, parts in imports(path) if (found := file_of(parts))]
    return reached


def test_every_file_runs_on_a_host():
    """What only the control node imports belongs into plugin_utils."""
    entries = engine_entries() | module_entries()
    assert {
        ROOT / "_job/main.py",
        ROOT / "_methods/ssh/forced_command.py",
    } <= entries
    reached = reached_from(entries)
    there = {path for path in ROOT.rglob("*.py") if path.name != "__init__.py"}
    assert {str(path.relative_to(ROOT)) for path in there - reached} == set(OFF_HOST)


def test_the_engine_holds_what_its_jobs_reach_and_nothing_else():
    with zipfile.ZipFile(io.BytesIO(engine.pack_engine())) as packed:
        names = {name for name in packed.namelist() if not name.endswith("__init__.py")}
    reached = {f"{engine.PACKAGE}/{path.relative_to(ROOT)}" for path in reached_from(engine_entries())}
    assert names == {"__main__.py", *reached}
