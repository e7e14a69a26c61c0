# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A few failed tests run once more, and what then passes is told."""

from __future__ import annotations

import pytest

GOOD = '<testcase classname="tests.unit.test_a" name="test_good" time="1" />'
BAD = '<testcase classname="tests.unit.test_a" name="test_bad[1/2]"><failure message="1 != 2">x</failure></testcase>'
TORN = '<testcase classname="tests.unit.b.test_b" name="test_torn"><error message="at teardown">x</error></testcase>'
NO_TEST = '<testcase classname="" name="tests.unit.test_c"><error message="collection failure">x</error></testcase>'


@pytest.fixture(name="flaky", scope="module")
def _flaky(import_tool):
    return import_tool("flaky")


@pytest.fixture
def repeat(flaky, tmp_path, monkeypatch):
    """Return a function that judges a report after the report of the second run, and the names that ran again."""
    asked = []

    def repeat(first, second):
        def run(part, environment_name, arguments):
            asked.extend([part, environment_name, *arguments])
            write(part, second)
            return 0

        monkeypatch.setattr(flaky.results, "FOLDER", tmp_path)
        monkeypatch.setattr(flaky.pytests, "run", run)
        write("unit", first)
        return flaky.passes_again("unit", "dev"), asked, flaky.results.count(flaky.results.read(tmp_path))

    def write(part, cases):
        suite = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
        (tmp_path / f"{part}.xml").write_text(suite)

    return repeat


def passing(case):
    return case.partition(">")[0] + " />"


def test_what_passes_by_itself_is_flaky(repeat):
    passed, asked, counted = repeat([GOOD, BAD, TORN], [passing(BAD), passing(TORN)])
    names = ["tests/unit/test_a.py::test_bad[1/2]", "tests/unit/b/test_b.py::test_torn"]
    assert passed and asked == ["unit-again", "dev", "-v", *names]
    said = ["flaky: unit: tests.unit.test_a::test_bad[1/2]: 1 != 2"]
    assert counted == (3, 0, [*said, "flaky: unit: tests.unit.b.test_b::test_torn: at teardown"])


def test_what_fails_again_has_failed(repeat):
    passed, _asked, counted = repeat([GOOD, BAD, TORN], [BAD, passing(TORN)])
    assert not passed and counted[:2] == (2, 1)


@pytest.mark.parametrize("second", [[], [GOOD], [BAD.replace("failure", "skipped")]])
def test_what_did_not_run_again_has_failed(repeat, second):
    passed, _asked, counted = repeat([GOOD, BAD], second)
    assert not passed and counted[:2] == (1, 1)


@pytest.mark.parametrize("first", [[GOOD], [BAD, TORN, BAD.replace("bad", "worse")], [GOOD, NO_TEST]])
def test_many_failures_and_those_of_no_test_are_no_accident(repeat, first):
    passed, asked, _counted = repeat(first, [])
    assert not passed and not asked
