# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run all parts of the tests, also after one has failed, and count what passed and what failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import venv as environments
from concurrent.futures import ThreadPoolExecutor

import collection
import results

# The parts, and the names of their results. Those of one line run side by side: each of them leaves a processor free
# for some of its time.
ROUNDS = (
    {"lint": "lint", "sanity": "sanity-*", "unit-oldest-python": "unit-py*"},
    {"unit": "unit"},
    {"integration": "integration"},
    {"molecule": "molecule-*", "integration-oldest-core": "integration-oldest-core"},
)


def run(part: str, reports: str, beside: bool) -> str:
    """Run one part, and give a line about it; what it says is shown at its end where others run ``beside`` it."""
    begun = time.monotonic()
    if not beside:
        print(f"==== {part}", flush=True)
    ended = subprocess.run(
        ["make", "--no-print-directory", part],
        cwd=collection.REPOSITORY,
        check=False,
        stdout=subprocess.PIPE if beside else None,
        stderr=subprocess.STDOUT if beside else None,
        text=True,
        errors="replace",
    )
    if beside:
        print(f"==== {part}\n{ended.stdout}", end="", flush=True)
    passed, failed, lines = results.count(results.read(parts=reports))
    if (ended.returncode and not failed) or not (passed or failed or lines):
        failed += 1
        said = f"make {part} ended with {ended.returncode}, and no result says why"
        said = said if ended.returncode else f"make {part} tested nothing"
        results.write(f"part-{part}", [results.Case(part, part, 0, said)])
    verdict = "failed" if failed else "ok"
    line = f"{part:24} {verdict:6} {passed:5} passed {time.monotonic() - begun:5.0f} s"
    print(f"==== {line}\n", flush=True)
    return line


def run_cases() -> int:
    """Print which cases were tried, and which passed; the exit code is 1 where one failed."""
    try:
        python = environments.make("dev") / "bin/python"
    except environments.Unavailable as error:  # then no test ran, either, and each part has said so
        print(error)
        return 0
    print("\n==== cases", flush=True)
    argv = [str(python), str(collection.REPOSITORY / "tests/tools/cases.py"), "--complete"]
    return subprocess.run(argv, check=False).returncode


def main() -> int:
    """Run them; the exit code is 1 where something failed or nothing ran."""
    shutil.rmtree(results.FOLDER, ignore_errors=True)
    summary: list[str] = []
    for parts in ROUNDS:
        with ThreadPoolExecutor(len(parts)) as pool:
            summary += pool.map(lambda item, parts=parts: run(*item, beside=len(parts) > 1), parts.items())
    print("\n".join(summary))
    return max(results.main(), run_cases())


if __name__ == "__main__":
    sys.exit(main())
