# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known vulnerabilities of an installed rsync.

A distribution fixes them without changing the version, so its package's changelog counts where there is one.
Sources: rsync's NEWS of 3.4.0, 3.4.3 and 3.5.0; the changelogs of Debian's packages, which name each CVE they fix.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .subprocesses import find_program, run_command

DAEMON, TRANSFER = "daemon", "transfer"  # who is concerned: a configured daemon, or the two ends of a transfer over ssh
_DEBIAN_CHANGELOGS = ("/usr/share/doc/rsync/changelog.Debian.gz", "/usr/share/doc/rsync/changelog.gz")


class Vulnerability(NamedTuple):
    """What was fixed with a version. ``mark`` is one CVE of it: where a changelog names it, the package is fixed."""

    since: tuple[int, int, int]  # the version that brought it
    version: tuple[int, int, int]
    mark: str
    concerns: tuple[str, ...]
    text: str
    contained: bool = False  # a root folder of its own (chroot) keeps it from doing harm


VULNERABILITIES = (
    Vulnerability(
        (3, 2, 7),
        (3, 4, 0),
        "CVE-2024-12084",
        (DAEMON, TRANSFER),
        "a client that may read can run code in the daemon (CVE-2024-12084)",
    ),
    Vulnerability(
        (0, 0, 0),
        (3, 4, 0),
        "CVE-2024-12087",
        (TRANSFER,),
        "a source can write outside the destination, and a destination read other files (CVE-2024-12086 to 12088)",
        contained=True,
    ),
    Vulnerability(
        (0, 0, 0),
        (3, 4, 3),
        "CVE-2026-29518",
        (DAEMON,),
        "a local user can lead a daemon without chroot out of a module (CVE-2026-29518)",
    ),
    Vulnerability(
        (0, 0, 0),
        (3, 5, 0),
        "CVE-2026-53784",
        (DAEMON, TRANSFER),
        "a client can leave a module without chroot (CVE-2026-53784, and 32 more)",
        contained=True,
    ),
)
NEWEST_FIX = max(one.version for one in VULNERABILITIES)


def version_of(text: str) -> tuple[int, int, int]:
    """Read what ``rsync --version`` prints first; zeros where it is no version."""
    found = re.search(r"version v?(\d+)\.(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else (0, 0, 0)


def open_vulnerabilities(version: tuple[int, ...], changelog: str, concerned: str = DAEMON) -> list[Vulnerability]:
    """Return what is not fixed and matters to ``concerned``. ``changelog`` is the package's; empty if there is none."""
    return [
        one
        for one in VULNERABILITIES
        if concerned in one.concerns and one.since <= version < one.version and one.mark not in changelog
    ]


def rsync_changelog() -> str:
    """Return the changelog of the installed package; empty if this host has none."""
    for path in _DEBIAN_CHANGELOGS:
        if os.path.exists(path):
            import gzip  # only here: most hosts that are asked have no such file, or a version that needs none

            try:
                with gzip.open(path, "rt", errors="replace") as stream:
                    return stream.read()
            except (OSError, EOFError):
                return ""
    rpm = find_program("rpm")
    return run_command([rpm, "--query", "--changelog", "rsync"]) if rpm else ""
