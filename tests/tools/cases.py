# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cases of ``tests/cases.yml`` and promises of ``tests/promises.yml`` passed: ``cases.py [--complete]``.

It reads what the last tests left in ``.build/results``. ``--complete``: all tests have run, so a test that is named and
has no result, while others of its file have one, does not exist. What is left to longer targets says nothing about a
case that other tests prove.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path
from typing import Iterable, NamedTuple

import results
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
FILE = REPOSITORY / "tests/cases.yml"
PROMISES = REPOSITORY / "tests/promises.yml"
VERDICTS = PASSED, FAILED, SKIPPED, NOT_RUN, CANNOT = "passed", "failed", "skipped", "not run", "cannot be made"
_LEFT_OUT = "left out"  # of one test: it exists, and a longer target runs it
HEADS = ("cases", "tried", *VERDICTS)


class Case(NamedTuple):
    """One thing that a mover of files meets, or that a page promises, and what proves that it is met well, or kept."""

    section: str
    text: str
    tests: tuple[str, ...]
    made: tuple[str, ...]  # cases of the hard tree, which the tests move and compare
    cannot: str  # why it cannot be made, or nothing


Ran = dict[str, dict[str, list[results.Case]]]  # by file and function, and by parameters: what the parts say of it


def read(path: Path = FILE) -> list[Case]:
    """Read the cases."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = []
    for section, cases in content["sections"].items():
        for case in cases:
            made = tuple(case.get("made", ()))
            tests = (*(content["hard_tree"] if made else ()), *case.get("tests", ()))
            found.append(Case(section, case["case"], tests, made, case.get("cannot", "")))
    return found


def read_promises(path: Path = PROMISES) -> list[Case]:
    """Read what pages promise: the section of such a case is the page, and its text stands there."""
    pages = yaml.safe_load(path.read_text(encoding="utf-8"))["pages"]
    return [
        Case(page, promise["says"], tuple(promise["tests"]), (), "") for page, said in pages.items() for promise in said
    ]


def does_not_exist(test: str) -> str:
    """Return why such a test cannot exist, from its file; empty if it exists."""
    name, _bracket, _parameters = test.partition("[")
    file, _colons, function = name.partition("::")
    return "" if function in _tests_of(file) else f"there is no {function} in {file}"


@functools.lru_cache(maxsize=None)
def _tests_of(file: str) -> set[str]:
    path = REPOSITORY / file
    body = ast.parse(path.read_bytes()).body if path.is_file() else []
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def by_name(cases: Iterable[results.Case], left_out: Iterable[str] = ()) -> Ran:
    """Sort results by what a test is called: ``tests/unit/test_x.py::test_y``, and its parameters."""
    ran: Ran = {}
    for one in left_out:
        name, bracket, parameters = one.partition("[")
        ran.setdefault(name, {}).setdefault(bracket + parameters, [])
    for case in cases:
        module, _colons, test = case.name.partition("::")
        function, bracket, parameters = test.partition("[")
        name = f"{module.replace('.', '/')}.py::{function}"
        ran.setdefault(name, {}).setdefault(bracket + parameters, []).append(case)
    return ran


def judge(case: Case, ran: Ran, complete: bool = False) -> tuple[str, str]:
    """Return how a case ended, and why if it did not pass. The worst of its tests decides."""
    if case.cannot:
        return CANNOT, case.cannot
    found = [_judge_test(test, ran, complete) for test in case.tests]
    for verdict in (FAILED, NOT_RUN, SKIPPED):
        for one, why in found:
            if one == verdict:
                return verdict, why
    return (PASSED, "") if (PASSED, "") in found else (NOT_RUN, found[0][1])


def _judge_test(test: str, ran: Ran, complete: bool) -> tuple[str, str]:
    missing = does_not_exist(test)
    if missing:
        return FAILED, missing
    name, bracket, parameters = test.partition("[")
    wanted = re.compile(".*".join(map(re.escape, (bracket + parameters).split("*"))) if bracket else ".*", re.DOTALL)
    known = [cases for given, cases in ran.get(name, {}).items() if wanted.fullmatch(given)]
    matching = [one for cases in known for one in cases]
    if known and not matching:
        return _LEFT_OUT, test
    if not matching:
        file = name.partition("::")[0] + "::"
        others_ran = complete and any(other.startswith(file) for other in ran)
        return (FAILED, f"there is no {test}") if others_ran else (NOT_RUN, test)
    passed, failed, lines = results.count(matching)
    if failed:
        return FAILED, next(line for line in lines if line.startswith("failed"))
    return (PASSED, "") if passed else (SKIPPED, lines[0])


def table(cases: Iterable[Case], ran: Ran, complete: bool = False) -> tuple[list[str], bool]:
    """Return the table with a line for each case that did not pass, and whether none failed."""
    counts: dict[str, dict[str, int]] = {}
    notes = []
    for case in cases:
        verdict, why = judge(case, ran, complete)
        for section in (case.section, "all"):
            counted = counts.setdefault(section, {})
            counted[verdict] = counted.get(verdict, 0) + 1
        if verdict != PASSED:
            notes.append(f"{verdict}: {case.section}: {case.text}: {why}")
    total = counts.pop("all")
    lines = [_line("", *HEADS)]
    for section, counted in (*counts.items(), ("all", total)):
        numbers = [counted.get(verdict, 0) for verdict in VERDICTS]
        tried = counted.get(PASSED, 0) + counted.get(FAILED, 0)
        lines.append(_line(section, sum(numbers), tried, *numbers))
    return [*lines, *notes], FAILED not in total


def _line(section: str, *columns: object) -> str:
    return f"{section:26}" + "".join(f"{column:>{max(7, len(name) + 2)}}" for column, name in zip(columns, HEADS))


def main() -> int:
    """Print the table of the last run; the exit code is 1 where a case failed."""
    ran = by_name(results.read(), results.read_left_out())
    lines, good = table([*read(), *read_promises()], ran, "--complete" in sys.argv[1:])
    print("\n".join(lines))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
