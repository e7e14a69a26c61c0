# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps of databases that a host loads after they were restored: by a restore, or by a drill of a backup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Start

KINDS = ("postgresql", "mariadb")
_USERS = {"postgresql": "postgres", "mariadb": "root"}
_SHORT = 5.0  # seconds in which small dumps are loaded, so that no poll is needed


def server_of(kind: str, options: Mapping[str, Any]) -> dict[str, object]:
    """Return where the server of a load is, by the options of the user, as the host takes them. Pure."""
    return {
        "kind": kind,
        "user": str(options.get("user") or _USERS[kind]),
        "socket": str(options.get("socket") or ""),
        "port": options.get("port") or 0,
        "defaults_file": str(options.get("defaults_file") or ""),
    }


def start_load(load: Mapping[str, object], key: JobKey, host: str) -> Start:
    """Return the step that starts the job on ``host`` that loads dumps. Pure."""
    return {
        "do": "start",
        "kind": "load",
        "request": {"side": key["side"], "part": "consistent", "root": "", "peer_name": host, "load": load},
        "until": ["serving"],
        "wait": _SHORT,
        "secrets": [],
        "replace": None,
        "id": key["id"],
        "side": key["side"],
    }
