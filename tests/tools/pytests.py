# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pytest, where the collection is found under its name: ``pytests.py PART [VENV] ARGUMENTS...``.

The results go to ``.build/results/PART.xml``. ``pytests.py pythons [--all]`` runs the unit tests of what runs on the
hosts, but for the long ones, with the oldest Python that is supported (``--all``: with every one that is found).
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv as environments

import collection
import pythons
import results

OLDEST = (3, 8)
TEST_TIMEOUT = 400  # seconds, for one test with its fixtures
NOTHING_RAN = 5  # pytest's exit code
ON_THE_HOSTS = "tests/unit/plugins/module_utils"
# Unit tests share nothing; integration tests of different processes, no host. A third of their time they wait.
AT_ONCE = ["-n", "3", "--dist", "worksteal"]


def run(part: str, environment_name: str, arguments: list[str]) -> int:
    """Run pytest in one of the virtual environments; give its exit code."""
    try:
        programs = environments.make(environment_name) / "bin"
    except environments.Unavailable as error:
        print(error)
        results.write(part, [results.Case(part, environment_name, 0, None, f"{results.ALLOWED_SKIP} {error}")])
        return 0
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    report = results.FOLDER / f"{part}.xml"
    report.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(collection.link()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = [str(programs / "python"), "-m", "pytest", f"--junitxml={report}", f"--timeout={TEST_TIMEOUT}", *arguments]
    code = subprocess.run(argv, cwd=collection.REPOSITORY, env=environment, check=False).returncode
    if code and (code == NOTHING_RAN or not report.exists()):
        results.write(part, [results.Case(part, "pytest", 0, f"pytest ended with {code}")])
    return code


def main() -> int:
    """Do what the command line says."""
    part, *arguments = sys.argv[1:]
    if part != "pythons":
        return run(part, arguments[0], [*AT_ONCE, *arguments[1:]])
    found = sorted(pythons.find_pythons()) if arguments == ["--all"] else [OLDEST]
    arguments = [*AT_ONCE, "-q", "-m", "not long", ON_THE_HOSTS]
    return max(run(f"unit-py3.{minor}", f"py3.{minor}", arguments) for _major, minor in found)


if __name__ == "__main__":
    sys.exit(main())
