# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was tested: JUnit files in ``.build/results``, written and counted. ``results.py`` prints the count."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

FOLDER = Path(__file__).resolve().parents[2] / ".build/results"
ALLOWED_SKIP = "cannot run here:"  # every other skipped test counts as failed


class Case(NamedTuple):
    """One test; ``failure`` and ``skipped`` say why, or are None, and ``flaky`` says why it failed at first."""

    part: str
    name: str
    seconds: float = 0
    failure: str | None = None
    skipped: str | None = None
    flaky: str | None = None


def name_of(element: ElementTree.Element) -> str:
    """Return the name of a test of a report."""
    return f"{element.get('classname', '')}::{element.get('name')}".strip(":")


def write(part: str, cases: list[Case]) -> None:
    """Write the results of one part."""
    suite = ElementTree.Element("testsuite", name=part, tests=str(len(cases)))
    for case in cases:
        element = ElementTree.SubElement(suite, "testcase", name=case.name, time=f"{case.seconds:.3f}")
        if case.failure is not None:
            ElementTree.SubElement(element, "failure", message=case.failure)
        if case.skipped is not None:
            ElementTree.SubElement(element, "skipped", message=case.skipped)
    FOLDER.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(FOLDER / f"{part}.xml", encoding="utf-8")


def read(folder: Path = FOLDER, parts: str = "*") -> list[Case]:
    """Read the results of all parts (of those whose names match), also what others wrote (pytest, ansible-test)."""
    cases = []
    for path in sorted(folder.glob(f"{parts}.xml")):
        for element in ElementTree.parse(path).iter("testcase"):
            failure = _said(element, "failure", "error")
            flaky = _said(element, "flakyFailure", "flakyError")
            seconds = float(element.get("time") or 0)
            cases.append(Case(path.stem, name_of(element), seconds, failure, _said(element, "skipped"), flaky))
    return cases


def _said(case: ElementTree.Element, *tags: str) -> str | None:
    """Return what the first of such elements of a test says."""
    for one in (one for tag in tags for one in case.iter(tag)):
        return one.get("message") or one.text or ""
    return None


def count(cases: list[Case]) -> tuple[int, int, list[str]]:
    """Return how many passed, how many failed, and lines about those that failed (at first, too) or did not run."""
    passed, failed, lines = 0, 0, []
    for case in cases:
        if case.flaky is not None:
            lines.append(f"flaky: {case.part}: {case.name}: {_first_line(case.flaky)}")
        if case.failure is not None:
            failed += 1
            lines.append(f"failed: {case.part}: {case.name}: {_first_line(case.failure)}")
        elif case.skipped is None:
            passed += 1
        elif case.skipped.startswith(ALLOWED_SKIP):
            lines.append(f"not run: {case.part}: {case.name}: {_first_line(case.skipped)}")
        else:
            failed += 1
            lines.append(f"failed: {case.part}: {case.name}: skipped: {_first_line(case.skipped)}")
    return passed, failed, lines


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:200]


def main() -> int:
    """Print the count of ``.build/results``; the exit code is 1 where a test failed or none ran."""
    passed, failed, lines = count(read())
    for line in lines:
        print(line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
