# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask both hosts about the owners of a tree, for programs and comparisons that do not meet them one by one.

The collection's own engine decides on an id where it meets it first. rsync does not say whom it meets, and a comparison
needs the numbers before it begins. For these the source counts the owners of its tree (a walk that reads no file), and
the destination looks them up, outside of any chroot that a daemon may be in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import Settings
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.owners import KINDS, judge_all

from .host_runner import HostRunner
from .owners import Table, merged
from .report import TransferError
from .status import parse_status
from .watching import watch

_SHORT = 5.0  # seconds in which most trees are counted, so that no poll is needed


@dataclass(frozen=True)
class Owners:
    """What is known of a tree's owners: the whole table of numbers, and where the hosts disagree."""

    table: Table
    mismatches: list[dict[str, Any]]
    hints: list[str]


def judge(
    dest: HostRunner, counted: Mapping[str, Any], numeric_ids: bool, owner_map: Mapping[str, Sequence[Sequence[int]]]
) -> Owners:
    """Have the destination look up what was counted at the source, and decide."""
    asked = {kind: counted[kind] for kind in KINDS}
    if not any(asked.values()):
        return Owners(merged(owner_map, {}), [], [])
    (answers,) = dest.run({"do": "look_up_owners", "counted": asked})
    settled = {kind: {old for old, _new in owner_map.get(kind, ())} for kind in KINDS}
    table, mismatches = judge_all(asked, answers, numeric_ids, settled)
    return Owners(merged(owner_map, table), mismatches, counted["hints"] if mismatches else [])


def take_census(
    runners: Mapping[str, HostRunner],
    identity: str,
    root: str,
    settings: Settings,
    say: Callable[[str], None],
    label: str,
    patience: float,
) -> Owners:
    """Count the owners of the source's tree, and decide what they become.

    ``settings`` has ``rules``, ``only``, ``one_file_system``, ``preserve``, ``numeric_ids`` and ``owner_map``, as a
    plan has them. Raises TransferError or HostFailed.
    """
    source = runners["source"]
    folder = {"id": hashlib.sha256(f"owners {identity}".encode()).hexdigest()[:16], "side": "source"}
    request = {
        "rules": settings["rules"],
        "only": settings["only"],
        "one_file_system": settings["one_file_system"],
        "preserve": settings["preserve"],
        "side": "source",
        "part": "owners",
        "root": root,
        "peer_name": runners["dest"].name,
    }
    clean_up: list[dict[str, Any]] = [{"do": "stop", "succeeded": True, **folder}, {"do": "clear", **folder}]
    step = {
        "do": "start",
        "kind": "owners",
        "request": request,
        "until": [],
        "wait": _SHORT,
        "then": clean_up,
        **folder,
    }
    (said,) = source.run(step)
    status = parse_status(said)
    if "then" not in status:
        if status["alive"]:
            status = watch(source, folder, f"{label}: counting owners", say, patience)
        source.run(*clean_up)
    if status["state"] != "finished":
        raise TransferError(
            f"the owners of the tree on {source.name} could not be counted: {status.get('failure') or status['state']}"
        )
    return judge(runners["dest"], status["owners"], bool(settings["numeric_ids"]), settings["owner_map"])
