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
from typing import TYPE_CHECKING, Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    list_of,
    texts,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import OwnerMismatch
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.owners import KINDS, evaluate_owners

from ..hosts.host_runner import HostRunner
from . import steps
from .owners import Table, merged
from .report import TransferError
from .status import parse_status
from .watching import watch

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import CensusRequest
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Start

_SHORT = 5.0  # seconds in which most trees are counted, so that no poll is needed


@dataclass(frozen=True)
class Owners:
    """What is known of a tree's owners: the whole table of numbers, and where the hosts disagree."""

    table: Table
    mismatches: list[OwnerMismatch]
    hints: list[str]


class CensusSettings(TypedDict):
    """What a count of owners goes by; the settings of a transfer have all of it."""

    rules: list[str]
    only: str | None
    one_file_system: bool
    exclude_if_present: list[str]
    exclude_caches: bool
    preserve: list[str]
    numeric_ids: bool
    owner_map: Table


def judge(
    dest: HostRunner, counted: object, numeric_ids: bool, owner_map: Mapping[str, Sequence[Sequence[int]]]
) -> Owners:
    """Have the destination look up what the source says that it counted (OwnerCount.as_dict), and decide.

    Raises WrongShape if a host says something else.
    """
    values = as_object(counted, "the count of owners")
    asked = {kind: _rows(values, kind, (int, str, int, str)) for kind in KINDS}
    if not any(asked.values()):
        return Owners(merged(owner_map, {}), [], [])
    said = as_object(dest.run({"do": "look_up_owners", "counted": asked})[0], "the answer to look_up_owners")
    answers = {kind: _rows(said, kind, (str, (int, type(None)))) for kind in KINDS}
    settled = {kind: {old for old, _new in owner_map.get(kind, ())} for kind in KINDS}
    table, mismatches = evaluate_owners(asked, answers, numeric_ids, settled)
    return Owners(merged(owner_map, table), mismatches, texts(values, "hints") if mismatches else [])


def take_census(
    runners: Mapping[str, HostRunner],
    identity: str,
    root: str,
    settings: CensusSettings,
    say: Callable[[str], None],
    label: str,
    patience: float,
) -> Owners:
    """Count the owners of the source's tree, and decide what they become.

    Raises TransferError or HostFailed.
    """
    source = runners["source"]
    folder: JobKey = {"id": hashlib.sha256(f"owners {identity}".encode()).hexdigest()[:16], "side": "source"}
    request: CensusRequest = {
        "rules": settings["rules"],
        "only": settings["only"],
        "one_file_system": settings["one_file_system"],
        "exclude_if_present": settings["exclude_if_present"],
        "exclude_caches": settings["exclude_caches"],
        "preserve": settings["preserve"],
        "side": "source",
        "part": "owners",
        "root": root,
        "peer_name": runners["dest"].name,
    }
    clean_up = steps.end(folder)
    step: Start = {
        "do": "start",
        "kind": "owners",
        "request": request,
        "until": [],
        "wait": _SHORT,
        "secrets": [],
        "replace": None,
        "then": clean_up,
        **folder,
    }
    (said,) = source.run(step)
    status = parse_status(said)
    if status.then is None:
        if status.alive:
            status = watch(source, folder, label, say, patience)
        source.run(*clean_up)
    if status.state != "finished":
        raise TransferError(
            f"the owners of the tree on {source.name} could not be counted: {status.failure or status.state}"
        )
    return judge(runners["dest"], status.owners, bool(settings["numeric_ids"]), settings["owner_map"])


def _rows(values: Mapping[str, Any], kind: str, types: Sequence[type | tuple[type, ...]]) -> list[list[Any]]:
    """Return the rows of a table of owners, which have values of these types."""
    rows = list_of(values.get(kind), kind, list)
    for row in rows:
        if len(row) != len(types) or not all(isinstance(one, due) for one, due in zip(row, types)):
            raise WrongShape(f"{kind} has the row {row!r:.60}, which tells no owner")
    return rows
