# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether method rsync may run between hosts, by their trust and by what is known of their versions of rsync. Pure.

With trust none the serving end's rsync must be confined to the root, and both must have no hole that the peer could
use. What a host says of its rsync concerns that host alone: a lie opens nothing but the liar.
"""

from __future__ import annotations

import re

from ansible_collections.longhaul.fleet.plugins.module_utils._core.rsync_vulnerabilities import (
    VULNERABILITIES,
    Vulnerability,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import Settings
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import (
    CHROOT,
    decide_confinement,
    why_not_untrusted,
)

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import NONE

_WARNED = (3, 4, 1)  # what was fixed later concerns hosts that are not trusted: no warning in each task
_INSTEAD = "use method stream, or set trust: full if you trust root on both hosts"


def parse_floor(text: str | None) -> tuple[int, ...] | None:
    """Return the oldest version that ``rsync_floor`` accepts; None if it is not set. Raise Refusal for no version."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){1,2}", text):
        raise Refusal(f"rsync_floor is {text!r}: give a version of rsync such as 3.4.1")
    numbers = tuple(int(part) for part in text.split("."))
    return (*numbers, 0)[:3]


def refuse_untrusted_rsync(
    settings: Settings, floor: tuple[int, ...] | None, driving: Endpoint, serving: Endpoint
) -> None:
    """Raise Refusal if method rsync would let one of two hosts that are not trusted harm the other."""
    if settings["trust"] != NONE:
        return
    confinement = decide_confinement(settings, serving.side, serving.rsync_version, serving.is_root)
    why = why_not_untrusted(settings, serving.side, confinement)
    if why:
        raise Refusal(f"trust is none, and method rsync cannot be used on {serving.name}: {why}. Instead, {_INSTEAD}")
    for host, contained in ((driving, False), (serving, confinement.kind == CHROOT)):
        for hole in _holes(host, floor):
            if not (contained and hole.contained):
                raise Refusal(
                    f"trust is none, and the rsync of {host.name} has a known hole: {hole.text}. Update it to "
                    f"{_dotted(hole.version)}; or {_INSTEAD}; or, if the distribution has fixed it without a new "
                    f"version, set rsync_floor: {_dotted(host.rsync_version)}"
                )


def rsync_warnings(trust: str, floor: tuple[int, ...] | None, *hosts: Endpoint) -> list[str]:
    """Return a warning for each host whose rsync has known holes although it is trusted."""
    if trust == NONE:
        return []
    found = []
    for host in hosts:
        holes = [hole for hole in _holes(host, floor) if hole.version <= _WARNED]
        if holes:
            found.append(
                f"rsync {_dotted(host.rsync_version)} on {host.name} has known holes: "
                f"{'; '.join(hole.text for hole in holes)}. Update it; or, if the distribution has fixed them without "
                f"a new version, set rsync_floor: {_dotted(host.rsync_version)}"
            )
    return found


def _holes(host: Endpoint, floor: tuple[int, ...] | None) -> list[Vulnerability]:
    """Return what is not fixed in a host's rsync, by its own word, and not accepted by the user."""
    if floor is not None and host.rsync_version >= floor:
        return []
    rsync = host.programs.get("rsync")
    marks = rsync["holes"] if rsync else []
    return [hole for hole in VULNERABILITIES if hole.mark in marks]


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
