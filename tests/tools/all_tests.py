# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run all parts of the tests, also after one has failed, and count what passed and what failed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import collection
import flaky
import results

# For what only computes, beside tests that wait for programs: in a session of its own, since Linux shares processors
# among sessions first, and heeds the niceness of a process only within its session.
STANDS_BACK = "echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "


class Part(NamedTuple):
    """A part of the tests, the names of its results, and how it runs beside the others."""

    name: str
    reports: str
    live: bool = False  # what it says is shown at once; that of others, at their end
    environment: str = ""  # of a part that pytest runs: where its tests run again


# These take what time the rounds leave. They compute alone, and have no limits of time.
BESIDE_ALL = (Part("sanity", "sanity-*"), Part("lint", "lint"))
# The parts of one round run at once, and keep two processors busy. Tests between hosts have limits of time.
ROUNDS = (
    (
        Part("unit", "unit", live=True, environment="dev"),
        Part("unit-oldest-python", "unit-py3.8", environment="py3.8"),
    ),
    (Part("integration", "integration", live=True, environment="dev"),),
    (
        Part("molecule", "molecule-*", live=True),
        Part("integration-oldest-core", "integration-oldest-core", environment="oldest"),
    ),
)
_sessions: list[int] = []  # of the parts beside all, which an interrupt from the terminal does not reach


def run(part: Part) -> str:
    """Run one part, and give a line about it."""
    begun = time.monotonic()
    if part.live:
        print(f"==== {part.name}", flush=True)
    stands_back = part in BESIDE_ALL
    make = f"make --no-print-directory {part.name}"
    running = subprocess.Popen(
        ["sh", "-c", f"{STANDS_BACK if stands_back else 'exec '}{make}"],
        cwd=collection.REPOSITORY,
        stdout=None if part.live else subprocess.PIPE,
        stderr=None if part.live else subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=stands_back,
    )
    if stands_back:
        _sessions.append(running.pid)
    said, _ = running.communicate()
    if not part.live:
        print(f"==== {part.name}\n{said}", end="", flush=True)
    returncode = running.returncode
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
    with ThreadPoolExecutor() as beside:
        try:
            lines = [beside.submit(run, part) for part in BESIDE_ALL]
            for parts in ROUNDS:
                with ThreadPoolExecutor() as pool:
                    summary += pool.map(run, parts)
        except KeyboardInterrupt:
            for session in _sessions:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(session, signal.SIGTERM)
            raise
        summary += [line.result() for line in lines]
    print("\n".join(summary))
    return results.main()


if __name__ == "__main__":
    sys.exit(main())
