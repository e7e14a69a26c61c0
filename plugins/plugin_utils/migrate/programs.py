# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that a job's method needs on both hosts, and the packages that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Netcat is not among them: the collection brings its own.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "auto": ("rsync", "ssh"),
    "stream": (),
    "rsync": ("rsync", "ssh"),
    "rsyncd": ("rsync",),
    "tar_nc": ("tar",),
    "scp": ("ssh",),
    "sftp": ("ssh",),
}

# For each family of systems (os_family of Ansible's facts). Systems whose base has a program do not name it.
PACKAGES: Mapping[str, Mapping[str, str]] = {
    "Alpine": {"rsync": "rsync", "ssh": "openssh-client", "tar": "tar"},
    "Archlinux": {"rsync": "rsync", "ssh": "openssh", "tar": "tar"},
    "Debian": {"rsync": "rsync", "ssh": "openssh-client", "tar": "tar"},
    "FreeBSD": {"rsync": "rsync"},
    "Gentoo": {"rsync": "net-misc/rsync", "ssh": "net-misc/openssh", "tar": "app-arch/tar"},
    "RedHat": {"rsync": "rsync", "ssh": "openssh-clients", "tar": "tar"},
    "Suse": {"rsync": "rsync", "ssh": "openssh-clients", "tar": "tar"},
}


def needed_programs(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the programs that the method of a job may need on both hosts."""
    method = job.get("method") or "auto"
    if method == "auto" and job.get("trust") == "none":
        method = "stream"
    if method == "auto" and job.get("encryption") == "none":
        return ("rsync",)
    return NEEDED[method]


def lacking(needed: Iterable[str], tools: Mapping[str, Any]) -> list[str]:
    """Return the programs that a host lacks, by what it said of its ``tools``."""
    return [program for program in needed if not tools.get(program)]


def packages_of(programs: Iterable[str], family: str) -> list[str]:
    """Return the packages that have these programs on a family of systems, as far as they are known."""
    known = PACKAGES.get(family, {})
    return [known[program] for program in programs if program in known]
