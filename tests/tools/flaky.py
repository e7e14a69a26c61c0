# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests that fail beside others, and pass when they run once more by themselves.

Tests wait for real programs on a machine that others share. A test that passes the second time does not fail the run;
it is printed as flaky, with what it said, and is a defect of the test or of the product that somebody has to find. Many
failures at once are no accident, and nothing runs again.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytests
import results

MOST = 2  # tests that run again
FLAKY = {"failure": "flakyFailure", "error": "flakyError"}  # the words of Maven Surefire's reports


def passes_again(part: str, environment_name: str) -> bool:
    """Run the few tests of a part that failed once more; return whether the part has passed now."""
    report = results.FOLDER / f"{part}.xml"
    names = to_repeat(report)
    if not names:
        return False
    print(f"once more, by themselves: {' '.join(names)}", flush=True)
    pytests.run(f"{part}-again", environment_name, ["-v", *names])
    return accept(report, report.with_name(f"{part}-again.xml"))


def to_repeat(report: Path) -> list[str]:
    """Return the failed tests of a report by the names that pytest takes; none if they are too many."""
    failed = [case.name for case in results.read(report.parent, report.stem) if case.failure is not None]
    if len(failed) > MOST or not all(".test_" in name and "::" in name for name in failed):
        return []
    modules = [name.partition("::") for name in failed]
    return [f"{module.replace('.', '/')}.py::{test}" for module, _colons, test in modules]


def accept(report: Path, again: Path) -> bool:
    """Note in a report which failed tests passed when they ran again; return whether all of them did.

    The second report is removed: each test counts once.
    """
    ran = results.read(again.parent, again.stem)
    again.unlink()
    passed = {case.name for case in ran if case.failure is None and case.skipped is None}
    tree = ElementTree.parse(report)
    for case in tree.iter("testcase"):
        if results.name_of(case) in passed:
            for element in case:
                element.tag = FLAKY.get(element.tag, element.tag)
    tree.write(report, encoding="utf-8")
    return not any(case.failure is not None for case in results.read(report.parent, report.stem))
