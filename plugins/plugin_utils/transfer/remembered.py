# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What both hosts of a transfer had the last time, so that its plan is there before they are asked again.

Each host is probed again in any case, in the execution that starts its job: the job starts only where the probe finds
the same. So a memory that is out of date costs executions, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import check_time_units

from ..common.memory import Memory
from ..hosts.endpoint import Endpoint
from .plan import Plan
from .probe import parse_probe
from .roots import nothing_there
from .tcp_limits import number_said

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import PathFacts, ProbeFacts

SIDES = ("source", "dest")
_KIND = "pair"
_TIMES = "times"
_SIZE = "size"


def recall(memory: Memory, about: object) -> dict[str, ProbeFacts]:
    """Return what both sides had; empty if that is not known."""
    record = memory.recall(_KIND, about)
    try:
        found = {side: parse_probe(record[side]) for side in SIDES}
    except (KeyError, WrongShape):
        return {}
    return found if all(facts.get("fingerprint") for facts in found.values()) else {}


def remember(memory: Memory, about: object, facts: Mapping[str, ProbeFacts]) -> None:
    """Write down what both sides have, or forget it where a job was found on one of them."""
    idle = not any(one["job"]["running"] or one["job"]["request"] for one in facts.values())
    memory.keep(_KIND, about, facts if idle else {})


def recall_time_units(memory: Memory | None, transfer_id: str) -> dict[str, int]:
    """Return how coarsely the last run of a transfer found times kept at its destination; empty if not known so."""
    try:
        return check_time_units(memory.recall(_TIMES, transfer_id)) if memory is not None else {}
    except WrongShape:
        return {}


def remember_time_units(memory: Memory, transfer_id: str, units: Mapping[str, int]) -> None:
    """Write that down, for what reads the destination only."""
    if units != recall_time_units(memory, transfer_id):
        memory.keep(_TIMES, transfer_id, units)


def recall_size(memory: Memory | None, transfer_id: str) -> tuple[int, int]:
    """Return the entries and bytes that the last transfer or comparison of a pair found; 0 for what is not known."""
    record = memory.recall(_SIZE, transfer_id) if memory is not None else {}
    entries, size = (int(number_said(record.get(name))) for name in ("entries", "bytes"))
    return entries, size


def remember_size(memory: Memory | None, transfer_id: str, entries: int, size: int) -> None:
    """Write that down, for the progress of the next comparison."""
    if memory is not None and entries > 0 and recall_size(memory, transfer_id) != (entries, size):
        memory.keep(_SIZE, transfer_id, {"entries": entries, "bytes": size})


def may_begin(plan: Plan, dest: Endpoint) -> bool:
    """Whether a plan of what is remembered may be begun: not where it depends on what changes all the time.

    Whether all of the source has room must be known before anything is written, unless files are linked to others.
    """
    return bool(plan.settings["link_dest"]) or not nothing_there(plan.roots, dest.probe["path"])


def is_same_plan(one: Plan, other: Plan) -> bool:
    """Whether two plans mean the same transfer. When it began, and how long a comparison takes, may differ."""
    return _essence(one) == _essence(other)


def _essence(plan: Plan) -> Plan:
    target = {name: plan.roots.target.get(name) for name in ("real", "type", "existing", "folder")}
    return replace(plan, started_ns=0, short=False, roots=replace(plan.roots, target=cast("PathFacts", target)))
