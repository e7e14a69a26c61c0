# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inner loop: ``check.py [BASE]`` runs the checks and the unit tests that what changed since BASE concerns.

Without BASE, what changed since this branch left main, or with the last commit. The tests begin with the nearest, and
those that have not begun after 30 seconds are left to ``make unit``; tests marked as long are left out.
"""

from __future__ import annotations

import subprocess
import sys
import time
import venv as environments
from concurrent.futures import Future, ThreadPoolExecutor

import changed
import collection
import lint
import pytests

SECONDS = 30  # in which tests may begin
TIME_UP = 100  # the exit code if some did not, and no other has failed


def run_tests(tests: list[str]) -> int:
    """Run test files, in this order, until the time is up; return pytest's exit code, or TIME_UP."""
    programs = environments.make("dev") / "bin"
    environment = {**collection.environment(programs), "PYTHONPATH": str(collection.link())}
    limited = str(collection.REPOSITORY / "tests/tools/limited_pytest.py")
    argv = [str(programs / "python"), limited, str(SECONDS), str(TIME_UP), "-q", "-m", pytests.QUICK, *tests]
    return subprocess.run(argv, cwd=collection.REPOSITORY, env=environment, check=False).returncode


def main() -> int:
    """Check what changed; the exit code is 1 where something failed."""
    begun = time.monotonic()
    try:
        base = (sys.argv[1:] or [changed.base_of_work()])[0]
        files = changed.changed_files(base)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    tests = changed.tests_for(files)
    print(f"{len(files)} files changed since {base[:12]}; {len(tests)} files of unit tests are near them", flush=True)
    with ThreadPoolExecutor(1) as pool:
        linting: Future = pool.submit(lint.run_checks, lint.concerned(files), "check")
        code = run_tests(tests) if tests else 0
        failed = code not in (0, TIME_UP)
        failed |= any(case.failure for case in linting.result())
    verdict = "failed" if failed else "ok, but not all tests have run," if code else "ok"
    print(f"{verdict} after {time.monotonic() - begun:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
