# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inner loop: ``check.py [BASE]`` runs the checks and the unit tests that what changed since BASE concerns.

Without BASE, what changed since this branch left main, or with the last commit. The tests begin with the nearest, and
those that have not begun after 30 seconds are left to ``make unit``; tests marked as long are left out. The subjects of
the commits since BASE are checked, too.
"""

from __future__ import annotations

import re
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


MOST_CHARACTERS = 72  # of a commit's subject
SUBJECT = re.compile(r"[a-z0-9][\w ,./-]*: (?P<verb>[a-z]+)\b.*[^.]")
NO_VERBS = frozenset(
    {
        *("a", "an", "and", "both", "each", "how", "it", "its", "no", "not", "of", "on", "one", "some", "the", "there"),
        *("these", "this", "two", "what", "when", "who", "why", "with"),
    }
)
# The ends of forms that are no imperatives, and imperatives that end so.
OTHER_FORMS = re.compile(r".*(?:[^e]ed|ing|[^s]s)")
IMPERATIVES = frozenset(["add", "bring", "embed", "shed", "focus", "ping", "string"])


def find_subject_problem(subject: str) -> str:
    """Return what is wrong with the subject of a commit, empty if nothing is: ``backup: refuse an empty source``."""
    found = SUBJECT.fullmatch(subject)
    if len(subject) > MOST_CHARACTERS:
        return f"has {len(subject)} characters, and {MOST_CHARACTERS} are the limit"
    if found is None:
        return "is not of the form 'scope: verb ...' without a full stop"
    verb = found["verb"]
    if verb in NO_VERBS or (OTHER_FORMS.fullmatch(verb) and verb not in IMPERATIVES):
        return f"does not begin with a verb in the imperative: {verb!r}"
    return ""


def check_subjects(base: str) -> bool:
    """Print what is wrong with the subjects of the commits since ``base``; return whether anything is."""
    problems = [(one, problem) for one in changed.subjects_since(base) if (problem := find_subject_problem(one))]
    for subject, problem in problems:
        print(f"the commit subject {subject!r} {problem}", flush=True)
    return bool(problems)


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
        failed = check_subjects(base) or code not in (0, TIME_UP)
        failed |= any(case.failure for case in linting.result())
    verdict = "failed" if failed else "ok, but not all tests have run," if code else "ok"
    print(f"{verdict} after {time.monotonic() - begun:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
