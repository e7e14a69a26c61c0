# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running the host's programs, in plain English and without waiting for ever. Private to the collection."""

from __future__ import annotations

import subprocess
from typing import NamedTuple, Sequence

from .._core import subprocesses


class ProgramResult(NamedTuple):
    """Result of a program; ``code`` is 127 where it is missing and 124 where it took too long, as shells say it."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What it said, of both outputs, in one piece."""
        return " ".join(f"{self.err}\n{self.out}".split())


def user_variables() -> dict[str, str]:
    """Return what programs see beyond the environment of all: scripts that ifupdown and others call may want it."""
    return subprocesses.own_variables("HOME", "USER", "LOGNAME")


def run(argv: Sequence[str], timeout: float = 30.0) -> ProgramResult:
    """Run a program to its end, at most ``timeout`` seconds, with nothing on its standard input."""
    try:
        ended = subprocesses.run(argv, extra_environment=user_variables(), timeout=timeout)
    except FileNotFoundError:
        return ProgramResult(127, "", f"{argv[0]} is not installed")
    except PermissionError as error:
        return ProgramResult(126, "", str(error))
    except subprocess.TimeoutExpired:
        return ProgramResult(124, "", f"{' '.join(argv)} did not end within {timeout:.0f} s")
    return ProgramResult(ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace"))
