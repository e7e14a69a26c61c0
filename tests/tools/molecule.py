# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Molecule scenarios of the roles: ``molecule.py [SCENARIO...]`` runs those, or all below extensions/molecule
but for the long ones. ``molecule.py --prepare`` makes what they need, and runs none.

Three run at once, the longest first. What they say goes to ``.build/molecule/SCENARIO.log``, and what a step that
failed has said is shown. Each step of a scenario is one result, and each check of testinfra is another.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv as environments
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import collection
import driver_collections
import engine
import images
import results

EXTENSIONS = collection.REPOSITORY / "extensions"
LOGS = collection.REPOSITORY / ".build/molecule"
AT_ONCE = 3
LONGEST = ("rsyncd", "nic", "ssh_client", "tune")  # begin first, so that none of them works alone in the end
LONG = ("database",)  # only run by name: each installs servers for minutes
SHOWN = 120  # lines of a step that failed
# molecule's own lines: INFO     [rsyncd > converge] Executed: Successful
STEP = re.compile(r"^[A-Z]+ +\[(?P<scenario>\S+) > (?P<step>\w+)\] (?P<word>Executing$|Executed: (?P<verdict>.+))")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NOT_THERE = "Missing playbook"  # a step that the scenario does not have


class Step(NamedTuple):
    """One step of a scenario that has ended."""

    name: str
    seconds: float
    verdict: str
    said: list[str]


class Ran(NamedTuple):
    """How a scenario went."""

    name: str
    seconds: float
    checks: int
    failed: list[str]


def scenarios(wanted: list[str]) -> list[str]:
    """Return the scenarios to run. Raise ValueError if one does not exist, or none does."""
    known = sorted(path.parent.name for path in (EXTENSIONS / "molecule").glob("*/molecule.yml"))
    unknown = sorted(set(wanted) - set(known))
    if unknown or not known:
        raise ValueError(f"no such scenario: {', '.join(unknown) or 'there is none'}; known: {', '.join(known)}")
    return wanted or [name for name in dict.fromkeys((*LONGEST, *known)) if name in known and name not in LONG]


def environment_for(name: str, programs: Path, collections: str) -> dict[str, str]:
    """Return the environment of molecule for one scenario."""
    checks = results.FOLDER / f"molecule-{name}-testinfra.xml"
    return {
        **collection.environment(programs),
        "PATH": f"{programs}:{os.environ['PATH']}:{engine.SYSTEM_PROGRAMS}",
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "MOLECULE_EPHEMERAL_DIRECTORY": str(LOGS / name),
        "LONGHAUL_SCENARIO": name,
        "LONGHAUL_CGROUP": engine.cgroup_mount(),
        "PYTEST_ADDOPTS": f"--junitxml={checks}",
        "NO_COLOR": "1",
    }


def remove_leftovers(name: str) -> None:
    """Remove what an interrupted run has left: molecule would take its containers for new ones."""
    shutil.rmtree(LOGS / name, ignore_errors=True)
    listing = ["docker", "ps", "--all", "--quiet", "--filter", "label=owner=molecule", "--filter", f"name=^/{name}-"]
    found = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    if found:
        subprocess.run(["docker", "rm", "--force", *found], capture_output=True, check=True)


def watch(name: str, environment: dict[str, str]) -> list[Step]:
    """Run one scenario, writing its log and printing a line when a step ends; give its steps."""
    argv = ["molecule", "--base-config", "molecule/config.yml", "test", "--scenario-name", name]
    running = subprocess.Popen(
        argv,
        cwd=EXTENSIONS,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert running.stdout
    steps: list[Step] = []
    said: list[str] = []
    begun = time.monotonic()
    with (LOGS / f"{name}.log").open("w", encoding="utf-8") as log:
        for coloured in running.stdout:
            line = COLOUR.sub("", coloured)
            log.write(line)
            log.flush()
            said.append(line.rstrip("\n"))
            found = STEP.match(line.rstrip())
            if not found or found["scenario"] != name:
                continue
            if found["word"] == "Executing":
                said, begun = [], time.monotonic()
            elif NOT_THERE not in found["verdict"]:
                steps.append(Step(found["step"], time.monotonic() - begun, found["verdict"], said))
                print(f"    {name}: {found['step']}: {found['verdict']}, {steps[-1].seconds:.1f} s", flush=True)
    code = running.wait()
    if code and all(step.verdict == "Successful" for step in steps):
        steps.append(Step("molecule", 0, f"ended with {code}", said))
    return steps


def cases_of(name: str, steps: list[Step]) -> list[results.Case]:
    """Turn steps into results. A step that comes twice (destroy) has a number."""
    cases = []
    names: list[str] = []
    for step in steps:
        names.append(step.name)
        times = names.count(step.name)
        label = step.name if times == 1 else f"{step.name}-{times}"
        failure = None if step.verdict == "Successful" else f"{step.verdict}: {reason(step.said)}"
        cases.append(results.Case("molecule", f"{name}::{label}", step.seconds, failure))
    if not any(step.name == "verify" for step in steps) and all(step.verdict == "Successful" for step in steps):
        cases.append(results.Case("molecule", f"{name}::verify", 0, "the scenario verifies nothing"))
    return cases


def reason(said: list[str]) -> str:
    """Return the line that best explains why a step failed."""
    for pattern in (r"^\[ERROR\]", r"^(fatal|failed): ", r"^(FAILED|ERROR) ", r"^(ERROR|CRITICAL) "):
        for line in said:
            if re.match(pattern, line):
                return line
    return (said or ["it said nothing"])[-1]


def run(name: str, programs: Path, collections: str) -> Ran:
    """Run one scenario and write its results."""
    checks = results.FOLDER / f"molecule-{name}-testinfra.xml"
    checks.unlink(missing_ok=True)
    # Containers are named after their scenario, so a run from another clone has to wait.
    with (Path(tempfile.gettempdir()) / f"longhaul-molecule-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        remove_leftovers(name)
        steps = watch(name, environment_for(name, programs, collections))
    seconds = time.monotonic() - begun
    cases = cases_of(name, steps)
    checked = [case for case in results.read() if case.part == checks.stem]
    if not checked and all(case.failure is None for case in cases):
        cases.append(results.Case("molecule", f"{name}::testinfra", 0, "testinfra checked nothing"))
    results.write(f"molecule-{name}", cases)
    for step in steps:
        if step.verdict != "Successful":
            print(f"--- {name}: {step.name}: {step.verdict}", *step.said[-SHOWN:], sep="\n", flush=True)
    failed = [case.name for case in [*cases, *checked] if case.failure is not None]
    return Ran(name, seconds, len(checked), failed)


def prepare() -> tuple[Path, str]:
    """Make what the scenarios need; return the folder of molecule's programs, and where Ansible finds collections.

    Raises environments.Unavailable, engine.Unavailable and images.CannotBuild.
    """
    programs = environments.make("molecule") / "bin"
    engine.make_ready()
    with ThreadPoolExecutor() as pool:
        list(pool.map(images.make, images.SCENARIOS))
    paths = [collection.link(), driver_collections.make(str(programs / "python"))]
    return programs, os.pathsep.join(str(path) for path in paths)


def main() -> int:
    """Run what the command line names; the exit code is 1 where something failed."""
    if sys.argv[1:] == ["--prepare"]:
        prepare()
        return 0
    try:
        names = scenarios(sys.argv[1:])
    except ValueError as error:
        print(error)
        return 1
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    try:
        programs, collections = prepare()
    except (environments.Unavailable, engine.Unavailable) as error:
        print(error)
        why = f"{results.ALLOWED_SKIP} {error}"
        for name in names:
            results.write(f"molecule-{name}", [results.Case("molecule", name, 0, None, why)])
        return 0
    except images.CannotBuild as error:
        print(error)
        for name in names:
            results.write(f"molecule-{name}", [results.Case("molecule", name, 0, str(error))])
        return 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ran = list(pool.map(lambda name: run(name, programs, collections), names))
    for one in ran:
        verdict = f"failed: {', '.join(one.failed)}" if one.failed else "ok"
        print(f"{one.name:20} {one.seconds:5.0f} s {one.checks:4} checks of testinfra  {verdict}")
    print(f"{sum(one.checks for one in ran)} checks of testinfra in {len(ran)} scenarios")
    return int(any(one.failed for one in ran))


if __name__ == "__main__":
    sys.exit(main())
