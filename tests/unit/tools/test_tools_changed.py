# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed, and which tests are near it."""

from __future__ import annotations

import subprocess

import pytest

POOL, TEST_POOL, TEST_USER = "plugins/module_utils/_net/pool.py", "tests/unit/test_pool.py", "tests/unit/test_user.py"
USER = "plugins/module_utils/_job/user.py"
FULL = "from ansible_collections.longhaul.fleet"


@pytest.fixture(name="changed")
def _changed(import_tool, tmp_path, monkeypatch):
    tool = import_tool("changed")
    monkeypatch.setattr(tool, "REPOSITORY", tmp_path)
    return tool


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


@pytest.fixture(name="git")
def _git(tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    return git


@pytest.mark.parametrize(
    "statement",
    [
        f"{FULL}.plugins.module_utils._net.pool import Pool",
        f"{FULL}.plugins.module_utils._net import pool",
        f"{FULL}.plugins.module_utils._net import (\n    other,  # not this one\n    pool,\n)",
        "import ansible_collections.longhaul.fleet.plugins.module_utils._net.pool",
        "from .._net import pool as a_pool",
        "from .._net.pool import (\n    Pool,\n)",
        "def late():\n    from .._net import pool\n",
    ],
)
def test_imports_are_found_however_they_are_written(changed, write, statement):
    write({POOL: "", USER: statement})
    assert changed.read_imports([POOL, USER]) == {POOL: set(), USER: {POOL}}


@pytest.mark.parametrize("statement", ['"""\nfrom here to there\nimport duty\n"""', "import os", "pool = 1"])
def test_what_is_no_import_of_the_project_is_passed_over(changed, write, statement):
    write({POOL: "", USER: statement})
    assert changed.read_imports([POOL, USER])[USER] == set()


@pytest.mark.parametrize(
    "test, name, expected",
    [
        (TEST_POOL, POOL, True),
        ("tests/unit/test_net_pool.py", POOL, True),
        ("tests/unit/test_whirlpool.py", POOL, False),
        ("tests/unit/tools/test_tools_cases.py", "tests/tools/cases.py", True),
        ("tests/unit/tools/test_tools_system_packages.py", "tests/tools/system-packages", True),
    ],
)
def test_a_test_bears_the_name_of_what_it_tests(changed, test, name, expected):
    assert changed.bears_name_of(test, name) == expected


def test_the_nearest_tests_are_those_with_the_fewest_steps(changed):
    importers = {POOL: {USER, TEST_USER}, USER: {"tests/unit/test_far.py"}}
    tests = [TEST_POOL, TEST_USER, "tests/unit/test_far.py"]
    assert changed.nearest_tests(POOL, tests, importers) == {TEST_POOL: 0, TEST_USER: 1}
    assert changed.nearest_tests(USER, tests, importers) == {TEST_USER: 0, "tests/unit/test_far.py": 1}
    # Where no test imports a file, those of its users are the nearest.
    assert changed.nearest_tests(POOL, tests[2:], {**importers, POOL: {USER}}) == {"tests/unit/test_far.py": 2}
    assert changed.nearest_tests("plugins/lonely.py", tests, importers) == {}


def test_from_change_to_tests(changed, write, git):
    write(
        {
            POOL: "",
            USER: "from .._net import pool",
            TEST_POOL: "",
            TEST_USER: f"{FULL}.plugins.module_utils._job import user",
            "tests/unit/conftest.py": "",
            "tests/unit/roles/test_roles.py": "",
            "tests/unit/test_list.py": "FILE = 'list.yml'",
            "tests/list.yml": "",
            "roles/r/tasks/main.yml": "",
        }
    )
    git("add", ".")
    assert changed.tests_for([POOL]) == [TEST_POOL, TEST_USER]
    assert changed.tests_for([USER]) == [TEST_USER]
    assert changed.tests_for(["tests/list.yml"]) == ["tests/unit/test_list.py"]
    assert changed.tests_for(["roles/r/tasks/main.yml"]) == ["tests/unit/roles/test_roles.py"]
    assert len(changed.tests_for(["tests/unit/conftest.py"])) == 4
    assert changed.tests_for([TEST_POOL, "docs/page.md"]) == [TEST_POOL]


def test_what_changed_since_the_branch_left_main_or_with_the_last_commit(changed, write, git):
    def now():
        return changed.changed_files(changed.base_of_work())

    for name in ("one", "two"):
        write({name: name})
        git("add", ".")
        git("commit", "-m", name)
    assert now() == ["two"]  # on main, with nothing uncommitted
    write({"one": "other", "three": ""})
    assert now() == ["one", "three"]
    git("checkout", "-b", "topic")
    git("add", ".")
    git("commit", "-m", "topic")
    git("rm", "-q", "two")
    write({"a new one": ""})
    assert now() == ["a new one", "one", "three"]


def test_a_base_that_does_not_exist_is_an_error(changed, git):
    with pytest.raises(ValueError, match="no-such-commit"):
        changed.changed_files("no-such-commit")
