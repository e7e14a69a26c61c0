# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""After its time, no test begins, and what did not run is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/limited_pytest.py"
TESTS = "def test_one():\n    pass\n\ndef test_two():\n    assert {good}\n"


def run(folder, seconds, good, *arguments):
    (folder / "test_it.py").write_text(TESTS.format(good=good))
    argv = [sys.executable, str(TOOL), str(seconds), "77", "-q", "-p", "no:cacheprovider", *arguments, "test_it.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "seconds, good, code, said",
    [
        (600, True, 0, "2 passed"),
        (600, False, 1, "1 failed, 1 passed"),
        (0, False, 77, "2 tests did not begin in time: test_it.py"),
    ],
)
def test_time(tmp_path, seconds, good, code, said):
    ended = run(tmp_path, seconds, good)
    assert said in ended.stdout
    assert ended.returncode == code


def test_it_is_no_failure_where_every_test_is_left_out(tmp_path):
    assert run(tmp_path, 600, False, "-k", "none").returncode == 0
