# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration must decide where two hosts do not mean the same owners. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .owners import foreign, owner_text

_LISTED = 50  # in a problem
_PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]*$")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])  # which YAML takes for something else


def owner_problems(job: Mapping[str, Any], predicted: Mapping[str, Any]) -> list[str]:
    """Return the problem of a job that does not say whose its files become; nothing if it does, or all agree.

    ``predicted`` is the result of the transfer in check mode.
    """
    disagree = predicted.get("owner_mismatches") or []
    if not disagree or job.get("numeric_ids") is not None or job.get("owner_map"):
        return []
    source, dest = str(job["src_host"]), str(job["dest_host"])
    lines = [
        f"{source} and {dest} do not mean the same owners, and the job does not say which way to go:",
        *(f"    {owner_text(one, source, dest)}" for one in disagree[:_LISTED]),
    ]
    if len(disagree) > _LISTED:
        lines.append(f"    and {len(disagree) - _LISTED} more")
    hints = foreign(predicted.get("owner_hints") or [])
    lines.append(
        "  Say in the job numeric_ids: true (the numbers stay), numeric_ids: false (names decide: make the missing "
        f"ones first) or owner_map (who becomes whom); see docs/users-and-groups.md{hints}"
    )
    for kind in ("user", "group"):
        missing = missing_list(disagree, kind)
        if missing:
            lines.append(f"  {kind}s that {dest} lacks, for a loop with ansible.builtin.{kind}:")
            lines += [f"    {line}" for line in missing]
    return ["\n".join(lines)]


def missing_list(disagree: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Return YAML, a list item for each user or group that the destination lacks.

    With the source's number if it is free at the destination.
    """
    number = {"user": "uid", "group": "gid"}[kind]
    found = []
    for one in disagree:
        if one["type"] == kind and one["name"] and one["id_there"] is None:
            free = "" if one["name_there"] else f", {number}: {one['id']}"
            found.append(f"- {{name: {_quoted(one['name'])}{free}}}")
    return found


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) and name.lower() not in _WORDS else json.dumps(name)
