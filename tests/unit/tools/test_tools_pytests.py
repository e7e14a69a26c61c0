# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tests ``make unit ARGS=...`` runs."""

from __future__ import annotations

import pytest

HERE = "tests/unit/tools/test_tools_pytests.py"


@pytest.fixture(name="pytests", scope="module")
def _pytests(import_tool):
    return import_tool("pytests")


@pytest.mark.parametrize(
    "arguments",
    [[HERE], [f"{HERE}::test_x"], [f"{HERE}::test_x[a/b]"], ["tests/unit/test_misspelt.py::test_x"], ["-x", HERE]],
)
def test_one_file_runs_alone_and_in_one_process(pytests, arguments):
    assert pytests.choose("tests/unit", arguments) == arguments


@pytest.mark.parametrize("arguments", [["tests/unit/tools"], [HERE, "tests/unit/tools/test_tools_cases.py"]])
def test_several_files_run_alone_and_side_by_side(pytests, arguments):
    assert pytests.choose("tests/unit", arguments) == [*pytests.UNITS_AT_ONCE, *arguments]


@pytest.mark.parametrize(
    "arguments",
    [[], ["-x"], ["-k", "tests/unit"], ["--deselect", f"{HERE}::test_x"], [f"--ignore={HERE}"], ["-q", "-x"]],
)
def test_what_is_not_long_runs_where_no_test_is_named(pytests, arguments):
    of_folder = ["-m", "not long", "tests/unit"]
    assert pytests.choose("tests/unit", arguments) == [*pytests.UNITS_AT_ONCE, *of_folder, *arguments]


def test_the_long_ones_have_a_part_of_their_own(pytests):
    assert pytests.choose("tests/unit", ["-x"], long=True) == [*pytests.UNITS_AT_ONCE, "-m", "long", "tests/unit", "-x"]
    assert pytests.choose("tests/unit", [HERE], long=True) == [HERE]
