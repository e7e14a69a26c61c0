# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which known vulnerabilities an installed rsync has. Private to the collection. Pure.

A distribution fixes them without changing the version, so its package's changelog counts where there is one.
Sources: rsync's NEWS of 3.4.0, 3.4.3 and 3.5.0; the changelogs of Debian's packages, which name each CVE they fix.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Vulnerability(NamedTuple):
    """What was fixed with a version. ``mark`` is one CVE of it: where a changelog names it, the package is fixed."""

    since: tuple[int, int, int]  # the version that brought it
    version: tuple[int, int, int]
    mark: str
    text: str


VULNERABILITIES = (
    Vulnerability(
        (3, 2, 7), (3, 4, 0), "CVE-2024-12084", "a client that may read can run code in the daemon (CVE-2024-12084)"
    ),
    Vulnerability(
        (0, 0, 0),
        (3, 4, 3),
        "CVE-2026-29518",
        "a local user can lead a daemon without chroot out of a module (CVE-2026-29518)",
    ),
    Vulnerability(
        (0, 0, 0),
        (3, 5, 0),
        "CVE-2026-53784",
        "a client can leave a module without chroot (CVE-2026-53784, and 32 more)",
    ),
)


def version_of(text: str) -> tuple[int, int, int]:
    """Read what ``rsync --version`` prints first; zeros where it is no version."""
    found = re.search(r"version v?(\d+)\.(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else (0, 0, 0)


def open_vulnerabilities(version: tuple[int, int, int], changelog: str) -> list[str]:
    """Return what is not fixed. ``changelog`` is the package's; empty if there is none."""
    return [one.text for one in VULNERABILITIES if one.since <= version < one.version and one.mark not in changelog]
