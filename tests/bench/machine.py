# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine that figures come from, in words."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ASKED = {  # how each program says its version
    "rsync": ["rsync", "--version"],
    "OpenSSH": ["ssh", "-V"],
    "tar": ["tar", "--version"],
    "iperf3": ["iperf3", "--version"],
    "rclone": ["rclone", "--version"],
    "fpsync": ["fpsync", "-h"],
    "host Python": ["/usr/bin/python3", "--version"],
}
_VERSION = re.compile(r"\d+(?:\.\d+)+\w*")


def version_in(text: str) -> str:
    """Return the first version number in what a program says; empty if there is none."""
    found = _VERSION.search(text)
    return found[0] if found else ""


def describe(programs: Path) -> dict[str, Any]:
    """Describe this machine: processors, memory, kernel, versions, the load before anything is measured, and the date.

    ``programs`` is a folder with programs beside those on the path.
    """
    from ansible.release import __version__ as core

    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
        "kernel": platform.release(),
        "system": _system(),
        "load": round(os.getloadavg()[0], 2),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "versions": {
            **{name: version for name, argv in _ASKED.items() if (version := _ask(argv, programs))},
            "ansible-core": core,
            "Python of ansible-core": platform.python_version(),
        },
    }


def _ask(argv: list[str], programs: Path) -> str:
    path = f"{os.environ['PATH']}:{programs}"
    try:
        ended = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    except FileNotFoundError:
        return ""
    return version_in(ended.stdout + ended.stderr)


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1].strip() if found else platform.machine()


def _system() -> str:
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return sys.platform
    return found.get("PRETTY_NAME", sys.platform)


def sentence(machine: Mapping[str, Any]) -> str:
    """Describe it in a few sentences."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    busy = "The machine was idle" if machine["load"] < 0.3 else f"Other work ran too (load {machine['load']})"
    niced = f", and the measured programs ran at nice {machine['nice']}" if machine["nice"] else ""
    return (
        f"Measured on {machine['date']}: {machine['cores']} cores ({machine['processor']}), "
        f"{machine['memory_gib']} GiB, {machine['system']}, Linux {machine['kernel']}; {versions}. {busy}{niced}."
    )
