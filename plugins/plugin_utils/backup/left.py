# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which backups of a play are left. A play comes here again where a host was lost in the middle of a hook. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple


class Standing(Enum):
    """Where a backup of this play stands."""

    WAITING = "waiting"  # it has not begun
    INTERRUPTED = "interrupted"  # it has begun and has no record: its host left the play in the middle of a hook
    RECORDED = "recorded"  # it has a record, whatever became of it


class Left(NamedTuple):
    """The runs to end, since a host was lost, and then those to make, in their order."""

    end: list[Mapping[str, Any]]
    make: list[Mapping[str, Any]]


def standing_of(run_id: str, recorded: Sequence[str], current: str) -> Standing:
    """Return where a run stands, by the ids of those that have a record and of the one that began last."""
    if run_id in recorded:
        return Standing.RECORDED
    return Standing.INTERRUPTED if run_id == current else Standing.WAITING


def find_left(runs: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], current: str) -> Left:
    """Return the runs that are left. ``current`` is the id of the run that began last, empty if none did."""
    recorded = [record["id"] for record in records]
    by_standing: dict[Standing, list[Mapping[str, Any]]] = {standing: [] for standing in Standing}
    for run in runs:
        by_standing[standing_of(run["id"], recorded, current)].append(run)
    return Left(by_standing[Standing.INTERRUPTED], by_standing[Standing.WAITING])
