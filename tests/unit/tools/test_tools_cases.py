# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every case names tests that there are, and the table of cases hides nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support import hard_tree

HERE = "tests/unit/tools/test_tools_cases.py"
ONE, OTHER = f"{HERE}::test_every_case_is_told_once", f"{HERE}::test_of_one_case[a*z]"


@pytest.fixture(name="cases", scope="module")
def _cases(import_tool):
    return import_tool("cases")


def test_every_case_is_told_once(cases):
    texts = Counter(case.text for case in cases.read())
    assert [text for text, count in texts.items() if count > 1] == []


def test_every_case_names_a_test_or_says_why_there_is_none(cases):
    assert [case.text for case in cases.read() if bool(case.tests) == bool(case.cannot)] == []


def test_every_test_that_is_named_exists(cases):
    named = [*cases.read(), *cases.read_promises()]
    found = {test: cases.does_not_exist(test) for case in named for test in case.tests}
    assert {test: why for test, why in found.items() if why} == {}


def test_every_promise_stands_on_its_page_and_has_a_test(cases):
    pages = {page: " ".join(text(cases, page).split()) for page in {case.section for case in cases.read_promises()}}
    assert [case.text for case in cases.read_promises() if case.text not in pages[case.section]] == []
    assert [case.text for case in cases.read_promises() if not case.tests] == []


def test_every_row_of_a_table_that_promises_something_has_a_test(cases):
    said = {page: [] for page in {case.section for case in cases.read_promises()}}
    for case in cases.read_promises():
        said[case.section].append(case.text)
    without = [
        row
        for page, promises in said.items()
        for row in rows(text(cases, page))
        if not any(promise in row for promise in promises)
    ]
    assert without == ["| has no access to either host or the network between | nothing | |"]


def text(cases, page):
    return (Path(cases.REPOSITORY) / page).read_text(encoding="utf-8")


def rows(page):
    """Return the rows of the tables of a page, without their heads."""
    for table in re.findall(r"(?m)(?:^\|.*\n)+", page):
        yield from table.splitlines()[2:]


def test_the_hard_tree_has_what_the_cases_say(cases):
    assert {name for case in cases.read() for name in case.made} - set(hard_tree.case_names()) == set()


@pytest.mark.parametrize(
    ("test", "missing"),
    [
        (ONE, False),
        (OTHER, False),
        (f"{HERE}::test_that_is_not_there", True),
        (f"{HERE}::_cases", True),  # no test
        ("tests/unit/test_none.py::test_none", True),
        (HERE, True),
    ],
)
def test_a_test_is_looked_for_in_its_file(cases, test, missing):
    assert bool(cases.does_not_exist(test)) == missing


def results_of(cases, *given):
    """Return results by name; of each is given: part, function with parameters, why it failed, why it did not run."""
    module = HERE[:-3].replace("/", ".")
    return cases.by_name(
        cases.results.Case(part, f"{module}::{name}", 1, failure, skipped) for part, name, failure, skipped in given
    )


GOOD = ("unit", "test_every_case_is_told_once", None, None)
CANNOT_RUN = "cannot run here: no root"


@pytest.mark.parametrize(
    ("test", "given", "verdict"),
    [
        (ONE, [GOOD], "passed"),
        (ONE, [], "not run"),
        (ONE, [("unit", "test_every_case_is_told_once", "1 != 2", None)], "failed"),
        (ONE, [GOOD, ("unit-py3.8", "test_every_case_is_told_once", "1 != 2", None)], "failed"),
        (ONE, [("unit", "test_every_case_is_told_once", None, CANNOT_RUN)], "skipped"),
        (ONE, [("unit", "test_every_case_is_told_once", None, "not today")], "failed"),
        (ONE, [GOOD, ("unit-py3.8", "test_every_case_is_told_once", None, CANNOT_RUN)], "passed"),
        (ONE, [("unit", "test_every_case_is_told_once_more", None, None)], "not run"),
        (OTHER, [("unit", "test_of_one_case[abc-z]", None, None)], "passed"),
        (OTHER, [("unit", "test_of_one_case[abc-y]", None, None)], "not run"),
        (OTHER.partition("[")[0], [("unit", "test_of_one_case[abc-y]", None, None)], "passed"),
        (f"{HERE}::test_gone", [("unit", "test_gone", None, None)], "failed"),
    ],
)
def test_of_one_case(cases, test, given, verdict):
    case = cases.Case("section", "text", (test,), (), "")
    assert cases.judge(case, results_of(cases, *given))[0] == verdict
    # The worst decides.
    both = case._replace(tests=(f"{HERE}::test_a_test_is_looked_for_in_its_file", test))
    good = ("unit", "test_a_test_is_looked_for_in_its_file[x]", None, None)
    assert cases.judge(both, results_of(cases, good, *given))[0] == verdict


def test_after_all_tests_have_run_one_without_a_result_does_not_exist(cases):
    case = cases.Case("section", "text", (OTHER,), (), "")
    others = results_of(cases, GOOD)
    assert cases.judge(case, others)[0] == "not run"
    assert cases.judge(case, others, complete=True) == ("failed", f"there is no {OTHER}")
    assert cases.judge(case, {}, complete=True)[0] == "not run"  # as where its part cannot run at all


def test_what_a_longer_target_runs_says_nothing_of_a_case_that_others_prove(cases):
    left_out = cases.by_name([cases.results.Case("unit", f"{HERE[:-3].replace('/', '.')}::{GOOD[1]}", 1)], [OTHER])
    both = cases.Case("section", "text", (OTHER, ONE), (), "")
    assert cases.judge(both, left_out, complete=True) == ("passed", "")
    assert cases.judge(both._replace(tests=(OTHER,)), left_out, complete=True) == ("not run", OTHER)


def test_the_table_counts_and_names_what_did_not_pass(cases):
    def case(section, test, cannot=""):
        return cases.Case(section, f"{section} {test[-4:]}", (test,), (), cannot)

    given = [case("A", ONE), case("A", OTHER), case("B", ONE, "no such thing")]
    lines, good = cases.table(given, results_of(cases, GOOD))
    assert [line.split() for line in lines[1:4]] == [
        ["A", "2", "1", "1", "0", "0", "1", "0"],
        ["B", "1", "0", "0", "0", "0", "0", "1"],
        ["all", "3", "1", "1", "0", "0", "1", "1"],
    ]
    assert lines[4:] == [f"not run: A: A a*z]: {OTHER}", "cannot be made: B: B once: no such thing"]
    assert good
    assert not cases.table(given, results_of(cases, GOOD), complete=True)[1]
