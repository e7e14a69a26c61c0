# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The count at the end of the tests hides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.tools import results
from ansible_collections.longhaul.fleet.tests.tools.results import Case, count

PASSED = Case("part", "good")


@pytest.mark.parametrize(
    "case, passed, failed, line",
    [
        (PASSED, 1, 0, ""),
        (Case("part", "bad", failure="1 != 2\nmore"), 0, 1, "failed: part: bad: 1 != 2"),
        (Case("part", "lazy", skipped="not today"), 0, 1, "failed: part: lazy: skipped: not today"),
        (Case("part", "lazy", skipped=""), 0, 1, "failed: part: lazy: skipped: "),
        (Case("part", "odd", flaky="late\nmore"), 1, 0, "flaky: part: odd: late"),
        (Case("part", "odd", skipped="cannot run here: no root"), 0, 0, "not run: part: odd: cannot run here: no root"),
    ],
)
def test_count(case: Case, passed: int, failed: int, line: str) -> None:
    assert count([case]) == (passed, failed, [line] if line else [])
    assert count([case, PASSED])[0] == passed + 1


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    cases = [PASSED, Case("part", "bad <&>", 1.5, "why"), Case("part", "lazy", 0, None, "because")]
    results.write("part", cases)
    assert results.read(tmp_path) == cases


def test_what_pytest_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text(
        '<testsuites><testsuite><testcase classname="a.b" name="test" time="0.1"/>'
        '<testcase classname="a.b" name="crash" time="0"><error message="boom">text</error></testcase>'
        '<testcase name="late"><skipped type="x" message="later">y</skipped></testcase></testsuite></testsuites>'
    )
    assert count(results.read(tmp_path)) == (
        1,
        2,
        ["failed: unit: a.b::crash: boom", "failed: unit: late: skipped: later"],
    )


@pytest.mark.parametrize("cases, code", [([], 1), ([PASSED], 0), ([PASSED, Case("part", "bad", failure="x")], 1)])
def test_exit_code(
    cases: list[Case], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "read", lambda: cases)
    assert results.main() == code
    assert capsys.readouterr().out.splitlines()[-1].endswith("failed")
