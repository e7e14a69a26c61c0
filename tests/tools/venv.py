# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a virtual environment of the project: ``venv.py NAME`` prints its folder, ``.venv/NAME``.

It is recreated when its requirements change or its interpreter is gone, and left alone otherwise.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pythons

REPOSITORY = Path(__file__).resolve().parents[2]


class Kind(NamedTuple):
    """What a virtual environment needs; ``least`` and ``most`` are Python versions."""

    requirements: str
    least: tuple
    most: tuple
    purpose: str


KINDS = {
    "run": Kind("requirements-run.txt", (3, 10), (3, 14), "ansible-core, for the demo and the benchmark"),
    "dev": Kind("requirements.txt", (3, 11), (3, 13), "the newest ansible-core, and all checks"),
    "docs": Kind("requirements-docs.txt", (3, 11), (3, 13), "the HTML site"),
    "fuzz": Kind("requirements-fuzz.txt", (3, 11), (3, 13), "the fuzzer"),
    "molecule": Kind("requirements-molecule.txt", (3, 11), (3, 13), "the roles' scenarios in containers"),
    "core-2.19": Kind("requirements-core-2.19.txt", (3, 11), (3, 13), "ansible-core 2.19, for make soak ARGS=hostile"),
    "oldest": Kind("requirements-oldest.txt", (3, 10), (3, 12), "the oldest ansible-core that is supported"),
}


class Unavailable(Exception):
    """There is no interpreter for a virtual environment."""


def kind_of(name: str) -> Kind:
    """Return the requirements of the environment of that name; ``py3.8`` has pytest for that Python."""
    if name.startswith("py3."):
        version = (3, int(name[4:]))
        return Kind("requirements-units.txt", version, version, "unit tests of what runs on the hosts")
    return KINDS[name]


def requirements_text(name: str) -> str:
    """Return the text of a requirements file in tests, each ``-r`` line replaced by the text of the file it names."""
    text = (REPOSITORY / "tests" / name).read_text(encoding="utf-8")
    return re.sub(r"(?m)^-r (\S+)$", lambda found: requirements_text(found[1]), text)


def make(name: str) -> Path:
    """Make the environment where it is missing or out of date, and give its folder; of two at once, one makes it."""
    (REPOSITORY / ".venv").mkdir(exist_ok=True)
    with (REPOSITORY / f".venv/{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _make(name)


def _make(name: str) -> Path:
    kind = kind_of(name)
    wanted = hashlib.sha256(requirements_text(kind.requirements).encode()).hexdigest()
    folder = REPOSITORY / ".venv" / name
    stamp = folder / "stamp"
    if stamp.is_file() and stamp.read_text() == wanted and (folder / "bin/python").exists():
        return folder
    found = pythons.newest(kind.least, kind.most)
    if not found:
        versions = " to ".join(".".join(map(str, version)) for version in sorted({kind.least, kind.most}))
        raise Unavailable(
            f"no Python {versions} with venv and ensurepip was found, which the environment for {kind.purpose} needs; "
            "on Debian and Ubuntu: apt-get install python3-venv"
        )
    python = str(Path(found[1]).resolve())  # itself: it may have been found in the environment that goes now
    print(f"making .venv/{name} with {python}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True, stdout=sys.stderr)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", str(REPOSITORY / "tests" / kind.requirements)], check=True, stdout=sys.stderr)
    stamp.write_text(wanted)
    return folder


def main() -> int:
    """Do what the command line says."""
    try:
        print(make(sys.argv[1]))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{error}\nIs the package index within reach? See: pip config list", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
