# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of one backup, as the report and the next run know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import seconds_of

DOCUMENTATION = r"""
name: backup_record
short_description: "Internal: put together what became of one backup"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Part of the role P(longhaul.fleet.backup#role). What it takes and gives may change in any release.
positional: _input
options:
  _input:
    description: The run, as P(longhaul.fleet.backup_runs#filter) gives it.
    type: dict
    required: true
  at:
    description: When it began.
    type: str
    required: true
  ended:
    description: When it ended.
    type: str
    required: true
  failures:
    description: What went wrong, each with C(step) and C(reason).
    type: list
    elements: dict
    required: true
  notes:
    description: What the user should know although it succeeded.
    type: list
    elements: str
    required: true
  said:
    description:
      - What M(longhaul.fleet.snapshot) said to C(begin), C(finish), C(list), C(prune) and C(check), as far as asked.
    type: dict
    required: true
  transfers:
    description: What the report keeps of the transfers.
    type: list
    elements: dict
    required: true
  before:
    description: The record before this one.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Keep what became of it
  ansible.builtin.set_fact:
    record: "{{ run | longhaul.fleet.backup_record(at=at, ended=ended, failures=[], notes=[], said={}, transfers=[]) }}"
"""

RETURN = r"""
_value:
  description: The record.
  type: dict
"""


def backup_record(
    run: Mapping[str, Any],
    at: str,
    ended: str,
    failures: Sequence[Mapping[str, str]],
    notes: Sequence[str],
    said: Mapping[str, Mapping[str, Any]],
    transfers: Sequence[Mapping[str, Any]],
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give the record. What the repository did not tell this time is taken from the one ``before``."""
    before = before or {}
    begun, finished, pruned, checked = (said.get(action) or {} for action in ("begin", "finish", "prune", "check"))
    listed = (said.get("list") or {}).get("snapshots")
    complete = [one for one in listed or () if one["state"] == "complete"]
    waiting = [one for one in listed or () if one["state"] == "aside"]
    figures = dict(finished.get("figures") or {})
    removed = list(pruned.get("removed", []))
    return {
        **{key: run[key] for key in ("id", "host", "name", "repository")},
        "at": at,
        "ended": ended,
        "duration": (seconds_of(ended) or 0) - (seconds_of(at) or 0),
        "failures": [dict(failure) for failure in failures],
        "notes": list(dict.fromkeys(notes)),
        "snapshot": finished.get("name", ""),
        "resumed": bool(begun.get("resumed")),
        "aside": before.get("aside", "") if listed is None else _aside(waiting),
        "newest": before.get("newest") if listed is None else (complete[-1]["time"] if complete else None),
        "snapshots": before.get("snapshots") if listed is None else len(complete) - len(removed),
        "figures": figures,
        "size": figures.get("bytes", before.get("size", (before.get("figures") or {}).get("bytes"))),
        "transfers": [dict(transfer) for transfer in transfers],
        "kept": dict(pruned.get("kept", {})),
        "removed": removed,
        "check": {**checked.get("checked", {}), "sound": bool(checked["sound"])} if "sound" in checked else {},
    }


def _aside(waiting: Sequence[Mapping[str, Any]]) -> str:
    """Say what waits for a decision; empty where nothing does."""
    if not waiting:
        return ""
    last = waiting[-1]
    return (
        f"{last['name']} lost suspiciously much ({last['reason']}). Until somebody has compared it with the one "
        "before and accepted or discarded it (longhaul.fleet.snapshot, action accept or discard), nothing is pruned"
    )


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"backup_record": backup_record}
