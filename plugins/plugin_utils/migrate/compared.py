# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the trees of a job are compared, whenever that is not a part of a transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.longhaul.fleet.plugins.modules.verify import DOCUMENTATION

from ..argument_spec import spec_from_documentation, validate_options
from ..tree_comparison import compare_trees
from .hosts import Hosts

# What a comparison calls the things that preserve of a transfer names, where one stands for one.
_FIELDS = {"permissions": "mode", "times": "mtime", "acls": "acls", "hardlinks": "links"}
_RULES = ("filter", "include", "exclude")


def compared_fields(state: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    """Return what can be the same at the destination, since a transfer kept it; empty if nothing is known of that.

    ``state`` is what is kept of a job. Root and other users may not read the same extended attributes.
    """
    phases = state["phases"]
    preserved = phases.get("cutover", {}).get("preserved") or job.get("preserve") or []
    if not preserved:
        return []
    fields = ["size", "target", *(_FIELDS[one] for one in preserved if one in _FIELDS)]
    fields += ["owner"] if {"owner", "group"} <= set(preserved) else []
    looked = phases.get("preflight") or {"source": {"root": True}, "dest": {"root": True}}
    is_alike = looked["source"]["root"] == looked["dest"]["root"]
    return fields + (["xattrs"] if "xattrs" in preserved and is_alike else [])


def finds_extra(job: Mapping[str, Any]) -> bool:
    """Return whether what only the destination has is a difference.

    With ``delete`` it has nothing of its own, but for what filter rules may protect there.
    """
    return boolean(job.get("delete") or False, strict=False) and not any(job.get(name) for name in _RULES)


def compare_job(
    say: Callable[[str], None], job: Mapping[str, Any], hosts: Hosts, state: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what the module verify does of the trees of a job; waits for its hosts, and ``say`` gets its lines.

    Raises Refusal, HostFailed and ComparisonFailed.
    """
    spec = spec_from_documentation(DOCUMENTATION)
    own = {
        "checksum": (job.get("verify") or "checksum") == "checksum",
        "fields": compared_fields(state, job) or None,
        "extra": finds_extra(job),
        "on_difference": "report",
    }
    given = {name: value for name, value in {**job, **own}.items() if name in spec and value is not None}
    options = validate_options(given, spec, (), f"job {job['name']}")
    return compare_trees(hosts.runners["source"], hosts.runners["dest"], options, say, reads_rounded=True)
