# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a restore may go to its place: a table of what was asked for and what is there already. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple


class Wish(Enum):
    """Where a restore was asked to go."""

    BESIDE = "beside"  # to a place of its own
    OVER = "over"  # over what is there


class Known(Enum):
    """How an earlier run of this same restore ended, as the role wrote it down."""

    NEVER = ""
    BEGUN = "begun"
    FAILED = "failed"
    RESTORED = "restored"


class Place(Enum):
    """What is there already."""

    FREE = "free"  # nothing, or an empty folder
    BEGUN = "begun"  # what an interrupted run of this same restore left
    OCCUPIED = "occupied"  # something; nobody has compared it
    SAME = "same"  # something in which this restore would change nothing: a finished one left it
    OTHER = "other"  # something of somebody


class Step(Enum):
    """What is left to do, in this order."""

    PREDICT = "predict"  # compares what is there with the snapshot
    TRANSFER = "transfer"


class Decision(NamedTuple):
    """The steps that are left, or why there are none."""

    steps: tuple[Step, ...]
    refused: str = ""


# None: the run refuses the place. Over what is there, nothing has to be known of it.
TABLE: Mapping[Wish, Mapping[Place, tuple[Step, ...] | None]] = {
    Wish.BESIDE: {
        Place.FREE: (Step.TRANSFER,),
        Place.BEGUN: (Step.TRANSFER,),
        Place.OCCUPIED: (Step.PREDICT, Step.TRANSFER),
        Place.SAME: (Step.TRANSFER,),
        Place.OTHER: None,
    },
    Wish.OVER: dict.fromkeys(Place, (Step.TRANSFER,)),
}


def place_of(state: Mapping[str, Any]) -> Place:
    """Return what is at the place.

    ``state`` has ``is_free``, ``known``, a value of Known, and ``would_change``, how many entries there the restore
    would change (None: nobody has compared).
    """
    if state["is_free"]:
        return Place.FREE
    if Known(state["known"]) in (Known.BEGUN, Known.FAILED):
        return Place.BEGUN
    if state["would_change"] is None:
        return Place.OCCUPIED
    return Place.OTHER if state["would_change"] else Place.SAME


def decide(state: Mapping[str, Any], over: bool, host: str, path: str, kind: str) -> Decision:
    """Return what is left to do for a restore of a ``kind`` to a ``path`` on a ``host``, or why it may not go there."""
    steps = TABLE[Wish.OVER if over else Wish.BESIDE][place_of(state)]
    if steps is None:
        return Decision(
            (),
            f"Nothing was restored: {path} is there on {host} {'and not empty' if kind == 'directory' else 'already'}, "
            "and is not what this would restore. Name another folder in restore_dest, move away what is there, or, to "
            "write over it, set restore_over=true (see with --check --diff first what that would change)",
        )
    return Decision(steps)
