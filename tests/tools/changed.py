# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files changed, and which unit tests are nearest to them: ``changed.py [BASE]`` prints both.

A test is near a file because it has its name (``pool.py`` and ``test_pool.py`` or ``test_net_pool.py``), imports it,
or imports what imports it; the fewest steps win. A file that is no Python counts as imported by what mentions its
name, and the tests of roles are near each file of a role.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Iterable, Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.longhaul.fleet."
UNIT = "tests/unit/"
MAIN = "main"
# To parse these alone takes a tenth of the time that whole files take.
IMPORT = re.compile(r"(?m)^[ ]*((?:from +[\w.]+ +import +(?:\([^)]*\)|[^(\n]+))|(?:import +[^\n]+))")

Imports = Mapping[str, "set[str]"]  # by file: the files that it imports, all named from the repository's root


def _git(*arguments: str) -> list[str]:
    argv = ["git", "-C", str(REPOSITORY), *arguments]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ValueError(f"{' '.join(argv)}: {ended.stderr.strip()}")
    return [name for name in ended.stdout.replace("\n", "\0").split("\0") if name]


def base_of_work() -> str:
    """Return the commit that work began from: where this branch left main or, on main itself, the last commit.

    On main the commit before the last is the base when nothing is uncommitted, so that there is something to check.
    """
    try:
        (fork,) = _git("merge-base", "HEAD", MAIN)
    except ValueError:  # a clone without a branch of that name
        fork = _git("rev-parse", "HEAD")[0]
    if fork == _git("rev-parse", "HEAD")[0] and not _git("status", "--porcelain"):
        return "HEAD~1"
    return fork


def changed_files(base: str) -> list[str]:
    """Return the files that differ from ``base`` and still exist: committed, uncommitted and untracked ones."""
    names = _git("diff", "--name-only", "-z", base)
    names += _git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted({name for name in names if (REPOSITORY / name).is_file()})


def subjects_since(base: str) -> list[str]:
    """Return the subjects of the commits since ``base``, without merges."""
    return _git("log", "--no-merges", "--format=%s", f"{base}..HEAD")


def python_files() -> list[str]:
    """Return the project's Python files, those that git does not know yet included."""
    found = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py")
    return sorted({name for name in found if (REPOSITORY / name).is_file()})


def read_imports(names: Iterable[str]) -> dict[str, set[str]]:
    """Read which of these files each of them imports."""
    files = set(names)
    return {name: set(_imported(name, files)) - {name} for name in files}


def _imported(name: str, files: set[str]) -> Iterable[str]:
    here = PurePosixPath(name).parent
    for statement in IMPORT.findall((REPOSITORY / name).read_text(encoding="utf-8")):
        try:
            (node,) = ast.parse(statement).body
        except (SyntaxError, ValueError):  # a sentence in a docstring
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(_absolute(alias.name, here), (), files)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                place = PurePosixPath(*here.parts[: len(here.parts) - node.level + 1])
                base = place.joinpath(*(node.module or "").split(".")) if node.module else place
            else:
                base = _absolute(node.module or "", here)
            yield from _files_of(base, [alias.name for alias in node.names], files)


def _absolute(module: str, here: PurePosixPath) -> PurePosixPath:
    """Return where a module would be: below the collection, or beside the file, as the tools import each other."""
    if module.startswith(PACKAGE):
        return PurePosixPath(*module[len(PACKAGE) :].split("."))
    return here.joinpath(*module.split("."))


def _files_of(base: PurePosixPath, names: Iterable[str], files: set[str]) -> Iterable[str]:
    """Yield the files of a module, and those of what is taken from it if these are modules themselves."""
    for place in (base, *(base / name for name in names)):
        for candidate in (f"{place}.py", f"{place}/__init__.py"):
            if candidate in files:
                yield candidate


def is_test(name: str) -> bool:
    """Whether a file holds unit tests."""
    path = PurePosixPath(name)
    return name.startswith(UNIT) and path.suffix == ".py" and path.name.startswith("test_")


def bears_name_of(test: str, name: str) -> bool:
    """Whether a test file is named after a file."""
    path = PurePosixPath(name)
    wanted = {path.stem, f"{path.parent.name}_{path.stem}"}
    return PurePosixPath(test).stem[len("test_") :] in {stem.strip("_").replace("-", "_") for stem in wanted}


def nearest_tests(name: str, tests: Iterable[str], importers: Imports) -> dict[str, int]:
    """Return the tests nearest to a Python file, each with its number of steps; 0 for those with its name."""
    tests = list(tests)
    found = {test: 0 for test in tests if test == name or bears_name_of(test, name)}
    seen, level, steps = {name}, {name}, 0
    while level:
        steps += 1
        level = {user for one in level for user in importers.get(one, ())} - seen
        seen |= level
        reached = {test for test in tests for one in level if test == one or bears_name_of(test, one)}
        if reached:
            return {**dict.fromkeys(reached, steps), **found}
    return found


def mentioning(name: str, files: Iterable[str]) -> set[str]:
    """Return the Python files of the tests that name a file that is no Python; all tests of roles for one of a role."""
    last = PurePosixPath(name).name
    return {
        file
        for file in files
        if file.startswith("tests/")
        and (
            (name.startswith("roles/") and is_test(file) and file.startswith(f"{UNIT}roles/"))
            or last in (REPOSITORY / file).read_text(encoding="utf-8", errors="replace")
        )
    }


def tests_for(changed: Iterable[str]) -> list[str]:
    """Return the test files to run for changed files, the nearest first; of equals, those that import the fewest."""
    files = python_files()
    imports = read_imports(files)
    importers: dict[str, set[str]] = defaultdict(set)
    for user, used in imports.items():
        for one in used:
            importers[one].add(user)
    tests = [name for name in files if is_test(name)]
    steps: dict[str, int] = {}
    for name in changed:
        if not name.endswith(".py"):
            importers[name] = mentioning(name, files)
        near = nearest_tests(name, tests, importers)
        if PurePosixPath(name).name == "conftest.py":
            near.update({test: 1 for test in tests if test.startswith(f"{PurePosixPath(name).parent}/")})
        for test, distance in near.items():
            steps[test] = min(distance, steps.get(test, distance))
    return sorted(steps, key=lambda test: (steps[test], len(imports.get(test, ())), test))


def main() -> int:
    """Print what changed and what tests it."""
    base = (sys.argv[1:] or [base_of_work()])[0]
    changed = changed_files(base)
    print(f"changed since {base}:", *changed, "tests:", *tests_for(changed), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
