# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run all parts of the tests, also after one has failed, and count what passed and what failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import collection
import flaky
import results

NICE = 19  # for what only computes, beside tests that wait for programs


class Part(NamedTuple):
    """A part of the tests, the names of its results, and how it runs beside the others of its round."""

    name: str
    reports: str
    live: bool = False  # what it says is shown at once; that of others, at their end
    niceness: int = 0
    environment: str = ""  # of a part that pytest runs: where its tests run again


# The parts of one round run at once, and keep two processors busy. Tests between hosts, and those in containers, wait a
# third of their time and have limits of time: beside them runs only what takes the time that they leave.
ROUNDS = (
    (
        Part("unit", "unit", live=True, environment="dev"),
        Part("unit-oldest-python", "unit-py3.8", environment="py3.8"),
    ),
    (
        Part("integration", "integration", live=True, environment="dev"),
        Part("sanity", "sanity-*", niceness=NICE),
    ),
    (
        Part("molecule", "molecule-*", live=True),
        Part("integration-oldest-core", "integration-oldest-core", environment="oldest"),
        Part("lint", "lint", niceness=NICE),
    ),
)
# What later rounds need is made beside the first one: that mostly waits for mirrors. If it fails, their parts tell why.
PREPARATIONS = (["venv.py", "oldest"], ["molecule.py", "--prepare"])


def prepare(argv: list[str]) -> None:
    """Run a program of this folder that makes something for a later round."""
    program = str(collection.REPOSITORY / "tests/tools" / argv[0])
    command = [sys.executable, program, *argv[1:]]  # not nice: an engine that it starts stays, and would be, too
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(part: Part) -> str:
    """Run one part, and give a line about it."""
    begun = time.monotonic()
    if part.live:
        print(f"==== {part.name}", flush=True)
    ended = subprocess.run(
        ["nice", "-n", str(part.niceness), "make", "--no-print-directory", part.name],
        cwd=collection.REPOSITORY,
        check=False,
        stdout=None if part.live else subprocess.PIPE,
        stderr=None if part.live else subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if not part.live:
        print(f"==== {part.name}\n{ended.stdout}", end="", flush=True)
    returncode = ended.returncode
    if returncode and part.environment and flaky.passes_again(part.reports, part.environment):
        returncode = 0
    passed, failed, lines = results.count(results.read(parts=part.reports))
    if (returncode and not failed) or not (passed or failed or lines):
        failed += 1
        said = f"make {part.name} ended with {returncode}, and no result says why"
        said = said if returncode else f"make {part.name} tested nothing"
        results.write(f"part-{part.name}", [results.Case(part.name, part.name, 0, said)])
    verdict = "failed" if failed else "ok"
    line = f"{part.name:24} {verdict:6} {passed:5} passed {time.monotonic() - begun:5.0f} s"
    print(f"==== {line}\n", flush=True)
    return line


def main() -> int:
    """Run them; the exit code is 1 where something failed or nothing ran."""
    shutil.rmtree(results.FOLDER, ignore_errors=True)
    summary: list[str] = []
    for number, parts in enumerate(ROUNDS):
        with ThreadPoolExecutor(len(parts) + len(PREPARATIONS)) as pool:
            for argv in () if number else PREPARATIONS:
                pool.submit(prepare, argv)
            summary += pool.map(run, parts)
    print("\n".join(summary))
    return results.main()


if __name__ == "__main__":
    sys.exit(main())
