# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fingerprint of a probe: the facts on which a plan depends. Pure. Private to the collection.

The control node sends back the fingerprint of an earlier probe, with the steps of the plan that it made of it. So a
transfer that was made before needs no execution for the probe alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from .probe import ProbeFacts

# What changes all the time: it decides when the transfer began, and whether an empty destination is too small.
_VARYING = ("now_ns", "job", "path")
_VARYING_OF_PATH = ("free_bytes", "free_inodes", "measured", "child")


def fingerprint(facts: ProbeFacts) -> str:
    """Return a digest of what a host has. A job that runs, or whose result was not collected, gives another one."""
    job = facts["job"]
    steady = {
        **{name: value for name, value in facts.items() if name not in _VARYING},
        "path": _steady(facts["path"]),
        "job": bool(job["running"] or job["request"]),
    }
    return hashlib.sha224(json.dumps(steady, sort_keys=True).encode()).hexdigest()


def _steady(path: Mapping[str, Any]) -> Mapping[str, object]:
    found: dict[str, object] = {name: value for name, value in path.items() if name not in _VARYING_OF_PATH}
    if "child" in path:
        found["child"] = _steady(path["child"])
    return found
