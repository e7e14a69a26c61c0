# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finding Python interpreters on this machine that can make virtual environments."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

Version = tuple  # (major, minor)
QUESTION = "import ensurepip, ssl, sys, venv; print(sys.version_info[0], sys.version_info[1])"


def find_pythons() -> dict[Version, str]:
    """Return {(3, 12): path} for every CPython 3 that runs; from $PATH, pyenv, uv and the system, in that order."""
    names = [f"python3.{minor}" for minor in range(8, 20)]
    candidates = [found for name in [*names, "python3"] for found in [shutil.which(name)] if found]
    roots = [os.environ.get("PYENV_ROOT", "~/.pyenv") + "/versions", "~/.local/share/uv/python"]
    for root in roots:
        candidates += _below(Path(root).expanduser())
    candidates += [sys.executable, *(str(path) for path in sorted(Path("/usr/bin").glob("python3*")))]
    found: dict[Version, str] = {}
    for candidate in candidates:
        version = _version(candidate) if re.search(r"python[\d.]*$", candidate) else None
        if version and version >= (3, 8):
            found.setdefault(version, candidate)
    return found


def _below(root: Path) -> list[str]:
    """List the interpreters of a folder of installations; none if it is not there or may not be entered."""
    try:
        return sorted(str(path) for path in root.glob("*/bin/python3"))
    except PermissionError:
        return []


@functools.lru_cache(maxsize=None)
def _version(path: str) -> Version | None:
    """Ask an interpreter for its version; None if it does not run (a pyenv shim) or has no venv."""
    try:
        answer = subprocess.run([path, "-c", QUESTION], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def newest(least: Version, most: Version) -> tuple[Version, str] | None:
    """Return the newest interpreter from ``least`` to ``most``, both included."""
    fitting = {version: path for version, path in find_pythons().items() if least <= version <= most}
    return (max(fitting), fitting[max(fitting)]) if fitting else None
