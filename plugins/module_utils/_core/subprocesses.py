# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a program on this host, and run it."""

from __future__ import annotations

import os
import shutil
import subprocess

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PATIENCE = 20  # seconds


def find_program(name: str) -> str | None:
    """Give the path of a program, also where it stands in a folder that only root's path names."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + _SYSTEM_FOLDERS)


def run_command(argv: list[str]) -> str:
    """Give what a program prints to both of its outputs, whatever its exit code; empty where there is no such program.

    It is looked for in the system's own folders too, and speaks English.
    """
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            env={"PATH": os.environ.get("PATH", "") + ":" + _SYSTEM_FOLDERS, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")
