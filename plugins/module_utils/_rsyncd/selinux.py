# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rights that SELinux must grant the rsync daemon. Private to the collection. Pure. Source: rsync_selinux(8)."""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple

from .check import may_write, varies
from .options import Values

READABLE, WRITABLE = "public_content_t", "public_content_rw_t"
PORT_TYPE, USUAL_PORT = "rsync_port_t", 873


class SelinuxRequirements(NamedTuple):
    """Booleans that must be on, types of directories (path → type), and ports that must be the daemon's."""

    booleans: tuple[str, ...]
    types: tuple[tuple[str, str], ...]
    ports: tuple[int, ...]


def needs(modules: Iterable[Values], how: str, port: int) -> SelinuxRequirements:
    """Return what the modules need. ``how`` is ``boolean`` (files stay as they are) or ``context``."""
    modules = list(modules)
    writes = any(may_write(values) for values in modules)
    ports = () if port == USUAL_PORT else (port,)
    if how == "boolean":
        name = "rsync_full_access" if writes else "rsync_export_all_ro"
        return SelinuxRequirements((name,) if modules else (), (), ports)
    types = {
        values["path"].replace("/./", "/").rstrip("/"): WRITABLE if may_write(values) else READABLE
        for values in modules
        if not varies(values["path"]) and values["path"].rstrip("/")
    }
    return SelinuxRequirements(("rsync_anon_write",) if writes else (), tuple(sorted(types.items())), ports)


def pattern(path: str) -> str:
    """Return the expression by which semanage names a directory and everything in it."""
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", path) + "(/.*)?"


def boolean_is_on(said: str) -> bool:
    """Read what ``getsebool NAME`` prints."""
    return said.strip().endswith("--> on")


def has_type(listed: str, path: str, kind: str) -> bool:
    """Return whether ``semanage fcontext --list --locallist --noheading`` names a type for a directory."""
    return any(
        line.startswith(f"{pattern(path)} ") and f":{kind}:" in line for line in map(str.strip, listed.splitlines())
    )


def has_port(listed: str, port: int) -> bool:
    """Return whether ``semanage port --list --noheading`` gives a TCP port to the daemon."""
    for line in listed.splitlines():
        words = re.split(r"[\s,]+", line.strip())
        if words[:2] != [PORT_TYPE, "tcp"]:
            continue
        for word in words[2:]:
            low, _dash, high = word.partition("-")
            if low.isdigit() and int(low) <= port <= int(high or low):
                return True
    return False
