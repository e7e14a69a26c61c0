# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run all parts of the tests, also after one has failed, and count what passed and what failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import collection
import results

PARTS = ("lint", "sanity", "unit", "unit-oldest-python", "integration", "integration-oldest-core")


def main() -> int:
    """Run them; the exit code is 1 where something failed or nothing ran."""
    shutil.rmtree(results.FOLDER, ignore_errors=True)
    summary = []
    for part in PARTS:
        begun = time.monotonic()
        print(f"==== {part}", flush=True)
        before = results.count(results.read())
        code = subprocess.run(["make", "--no-print-directory", part], cwd=collection.REPOSITORY, check=False).returncode
        passed, failed, lines = results.count(results.read())
        if (code and failed == before[1]) or (passed, failed, lines) == before:
            failed += 1
            said = f"make {part} ended with {code}, and no result says why" if code else f"make {part} tested nothing"
            results.write(f"part-{part}", [results.Case(part, part, 0, said)])
        verdict = "failed" if failed > before[1] else "ok"
        summary.append(f"{part:24} {verdict:6} {passed - before[0]:5} passed {time.monotonic() - begun:5.0f} s")
        print(f"==== {summary[-1]}\n", flush=True)
    print("\n".join(summary))
    return results.main()


if __name__ == "__main__":
    sys.exit(main())
