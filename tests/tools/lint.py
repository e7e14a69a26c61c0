# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks that read the code: ``lint.py`` runs them all, each against the whole collection."""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
import time
import venv as environments
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Collection, Iterable

import collection
import results

REPOSITORY = collection.REPOSITORY
# The checks that take seconds, and the files that alone can alter their verdict.
ONLY_FOR = {
    "ansible-lint": ("*.yml", "*.j2", "plugins/modules/*", "plugins/filter/*", "plugins/action/*"),
    "changelog": ("changelogs/*", "galaxy.yml"),
    "documentation": ("plugins/*/*", "roles/*/meta/*", "meta/*", "galaxy.yml", "docs/docsite/*"),
    "galaxy": ("galaxy.yml", "meta/*", "README.md", "CHANGELOG.md"),
    "mypy": ("plugins/*", "mypy.ini"),
    "trusted files": ("roles/*", "playbooks/*"),
    "site": ("*.md", "docs/site/*", "plugins/*/*", "roles/*/meta/*", "galaxy.yml"),
}


def checks(python: str, copied: Path) -> dict[str, list[list[str]]]:
    """Return the commands of each check, all run in the copy of the collection."""
    built = REPOSITORY / ".build"
    programs = Path(python).parent
    (version,) = [
        line.split()[1] for line in (copied / "galaxy.yml").read_text().splitlines() if line.startswith("version:")
    ]
    artifact = str(built / f"longhaul-fleet-{version}.tar.gz")
    return {
        "ruff check": [[str(programs / "ruff"), "check", "--no-cache"]],
        "ruff format": [[str(programs / "ruff"), "format", "--no-cache", "--check"]],
        "yamllint": [[str(programs / "yamllint"), "--strict", "."]],
        "codespell": [[str(programs / "codespell")]],
        "prose": [[python, "tests/tools/prose.py"]],
        "trusted files": [[python, "tests/tools/trusted_files.py"]],
        # in the repository, not in its copy: what mypy remembers goes by the path
        "mypy": [[str(programs / "mypy"), "--config-file", str(REPOSITORY / "mypy.ini")]],
        "ansible-lint": [[str(programs / "ansible-lint"), "--offline", "--profile", "production"]],
        "changelog": [[str(programs / "antsibull-changelog"), "lint"]],
        "documentation": [[str(programs / "antsibull-docs"), "lint-collection-docs", "--plugin-docs", "."]],
        "galaxy": [
            [str(programs / "ansible-galaxy"), "collection", "build", "--force", "--output-path", str(built)],
            [python, "-m", "galaxy_importer.main", artifact, "--output-path", str(built)],
        ],
        "site": [[python, str(REPOSITORY / "tests/tools/docs.py")]],
    }


def run(name: str, commands: list[list[str]], copied: Path, environment: dict[str, str]) -> results.Case:
    """Run the commands of one check."""
    begun = time.monotonic()
    failure = None
    for argv in commands:
        ended = subprocess.run(
            argv, cwd=copied, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        # galaxy-importer ends with 0 whatever it found
        complaints = [line for line in ended.stdout.splitlines() if line.startswith(("ERROR", "WARNING"))]
        if ended.returncode or (name == "galaxy" and complaints):
            failure = f"{' '.join(argv)} ended with {ended.returncode}"
            print(f"--- {name}: {failure}\n{ended.stdout}", flush=True)
            break
    else:
        print(f"--- {name}: ok, {time.monotonic() - begun:.1f} s", flush=True)
    return results.Case("lint", name, time.monotonic() - begun, failure)


def concerned(changed: Iterable[str]) -> set[str]:
    """Return the checks whose verdict a change of these files can alter."""
    files = list(changed)
    skipped = {
        check
        for check, patterns in ONLY_FOR.items()
        if not any(fnmatch.fnmatchcase(file, pattern) for file in files for pattern in patterns)
    }
    return set(checks("python", REPOSITORY)) - skipped


def run_checks(wanted: Collection[str] | None = None, user: str = "lint") -> list[results.Case]:
    """Run these checks, or all, in the copy of the collection that ``user`` has."""
    programs = environments.make("dev") / "bin"
    collection.link()
    base = collection.copy(user)
    copied = base / collection.NAME
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(base),
        "NO_COLOR": "1",
    }
    commands = checks(str(programs / "python"), copied)
    names = [name for name in commands if wanted is None or name in wanted]
    if "ansible-lint" in names:  # then galaxy-importer need not run it once more
        environment["GALAXY_IMPORTER_RUN_ANSIBLE_LINT"] = "false"
    with ThreadPoolExecutor(2) as pool:  # the long ones use one processor each
        return list(pool.map(lambda name: run(name, commands[name], copied, environment), names))


def main() -> int:
    """Run all checks; the exit code is 1 where one failed."""
    cases = run_checks()
    results.write("lint", cases)
    return int(any(case.failure for case in cases))


if __name__ == "__main__":
    sys.exit(main())
