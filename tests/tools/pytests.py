# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pytest, where the collection is found under its name: ``pytests.py PART VENV FOLDER ARGUMENTS...``.

It runs the tests of FOLDER, or those that the arguments name instead: files, folders, ``file::test``. A PART that ends
with ``-long`` has the long tests of a folder, and the others have the rest. The results go to
``.build/results/PART.xml``.

``pytests.py pythons [--all] ARGUMENTS...`` runs the unit tests of what runs on the hosts, but for whole transfers, with
the oldest Python that is supported: those that the arguments name, or one variant of each. ``--all`` takes all
variants that are not long, and every Python that is found, and those that only an image has, in a container.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv as environments

import collection
import engine
import images
import pythons
import results

OLDEST = (3, 8)
TEST_TIMEOUT = 400  # seconds, for one test with its fixtures
NOTHING_RAN = 5  # pytest's exit code
QUICK = "not long and not newest"  # the marks of tests that are no whole transfers
VARIANTS = "1"  # of each test, with the oldest Python
ON_THE_HOSTS = "tests/unit/plugins/module_utils"
# Unit tests share nothing; integration tests of different processes, no host. A third of their time they wait. Some
# integration tests have limits of time, and would miss them with a fourth process beside them.
AT_ONCE = ["-n", "3", "--dist", "worksteal"]
UNITS_AT_ONCE = ["-n", "6", "--dist", "worksteal"]
TAKE_A_PATH = ("--deselect", "--ignore", "--ignore-glob", "--confcutdir", "-c", "-k", "-m")  # options before a value
# What root may do on a host and in these tests: mount, make files immutable, look at the sockets of others. The filters
# of an engine may be older than the system calls of the image's programs.
AS_ON_A_HOST = [
    *(f"--cap-add={name}" for name in ("LINUX_IMMUTABLE", "NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE")),
    *(f"--security-opt={name}=unconfined" for name in ("apparmor", "seccomp")),
    "--sysctl=net.ipv6.conf.all.disable_ipv6=0",
    "--init",
]


def run(part: str, environment_name: str, arguments: list[str]) -> int:
    """Run pytest in one of the virtual environments; give its exit code."""
    try:
        programs = environments.make(environment_name) / "bin"
    except environments.Unavailable as error:
        print(error)
        results.write(part, [results.Case(part, environment_name, 0, None, f"{results.ALLOWED_SKIP} {error}")])
        return 0
    environment = {**collection.environment(programs), "PYTHONPATH": str(collection.link())}
    return _watch(part, [str(programs / "python")], arguments, environment)


def run_in_image(part: str, version: tuple, arguments: list[str]) -> int:
    """Run pytest with a Python that the machine lacks, in a container that has it; give its exit code."""
    name = images.PYTHONS[version]
    try:
        engine.make_ready()
        images.make(name)
    except (engine.Unavailable, images.CannotBuild) as error:
        print(error)
        cannot = isinstance(error, engine.Unavailable)
        why = f"{results.ALLOWED_SKIP} {error}" if cannot else None
        results.write(part, [results.Case(part, name, 0, None if cannot else str(error), why)])
        return 0 if cannot else 1
    place = collection.link().parent
    argv = [
        *[engine.find("docker") or "docker", "run", "--rm", "--network=none", *AS_ON_A_HOST],
        # The tests' files lie on a file system of the machine: not all of what a host's can is known to an overlay.
        *[f"--volume={place}:{place}:ro", f"--volume={results.FOLDER}:{results.FOLDER}", "--volume=/tmp"],
        *[f"--env=PYTHONPATH={place / '.build'}", "--env=PYTHONPYCACHEPREFIX=/tmp/bytecode"],
        *["--env=HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis", f"--workdir={place}"],
        *[f"{images.REPOSITORY}:{name}", "python3"],
    ]
    return _watch(part, argv, arguments, dict(os.environ))


def _watch(part: str, python: list[str], arguments: list[str], environment: dict[str, str]) -> int:
    """Run pytest so that it leaves a report whatever happens."""
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    report = results.FOLDER / f"{part}.xml"
    report.unlink(missing_ok=True)
    argv = [*python, "-m", "pytest", f"--junitxml={report}", f"--timeout={TEST_TIMEOUT}", *arguments]
    code = subprocess.run(argv, cwd=collection.REPOSITORY, env=environment, check=False).returncode
    if code and (code == NOTHING_RAN or not report.exists()):
        results.write(part, [results.Case(part, "pytest", 0, f"pytest ended with {code}")])
    return code


def names_tests(argument: str) -> bool:
    """Whether an argument of pytest names a file, a folder or a test below tests, one that does not exist included."""
    path = (collection.REPOSITORY / argument.partition("::")[0]).resolve()
    return not argument.startswith("-") and collection.REPOSITORY / "tests" in path.parents


def choose(folder: str, arguments: list[str], long: bool = False) -> list[str]:
    """Return what pytest gets: the arguments, and the folder where they name no tests of their own.

    Of a folder it is the long tests or the others; tests that are named run, whichever they are.

    One test or one file runs in this process: to start others takes longer than most files do.
    """
    named = [
        argument
        for before, argument in zip(["", *arguments], arguments)
        if before not in TAKE_A_PATH and names_tests(argument)
    ]
    few = len(named) == 1 and ".py" in named[0]
    at_once = UNITS_AT_ONCE if folder == "tests/unit" else AT_ONCE
    of_folder = ["-m", "long" if long else "not long", folder]
    return [*([] if few else at_once), *([] if named else of_folder), *arguments]


def main() -> int:
    """Do what the command line says."""
    part, *arguments = sys.argv[1:]
    if part != "pythons":
        environment_name, folder, *rest = arguments
        return run(part, environment_name, choose(folder, rest, part.endswith("-long")))
    every = arguments[:1] == ["--all"]
    found = set(pythons.find_pythons()) if every else {OLDEST}
    wanted = arguments[1:] if every else arguments
    arguments = [*([] if every or wanted else [f"--variants={VARIANTS}"]), *choose(ON_THE_HOSTS, wanted)]
    arguments = ["-q", *arguments, "-m", QUICK]
    codes = [run(f"unit-py3.{minor}", f"py3.{minor}", arguments) for _major, minor in sorted(found)]
    for version in sorted(set(images.PYTHONS) - found) if every else []:
        codes.append(run_in_image(f"unit-py3.{version[1]}", version, arguments))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
