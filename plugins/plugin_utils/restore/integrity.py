# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a snapshot is restored from: a table of what its check found and whether damage is accepted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

_SHOWN = 10  # problems in a message


class Integrity(Enum):
    """What the comparison of a snapshot with its manifest found."""

    INTACT = "intact"
    DAMAGED = "damaged"
    UNKNOWN = "unknown"  # it has no manifest that can be used, so nothing could be compared
    HOLLOW = "hollow"  # no manifest either, and something else is wrong


class Verdict(Enum):
    """What the run does with the snapshot."""

    TAKE = "take"
    WARN = "warn"  # take it, and say that nobody knows whether it is intact
    REFUSE = "refuse"


class Judgement(NamedTuple):
    """Why the run refuses the snapshot, or what it says before it takes it. Either may be empty."""

    refused: str = ""
    said: str = ""


TABLE: Mapping[bool, Mapping[Integrity, Verdict]] = {
    False: {
        Integrity.INTACT: Verdict.TAKE,
        Integrity.DAMAGED: Verdict.REFUSE,
        Integrity.UNKNOWN: Verdict.WARN,
        Integrity.HOLLOW: Verdict.REFUSE,
    },
    True: {
        Integrity.INTACT: Verdict.TAKE,
        Integrity.DAMAGED: Verdict.TAKE,
        Integrity.UNKNOWN: Verdict.WARN,
        Integrity.HOLLOW: Verdict.WARN,
    },
}


def integrity_of(looked: Mapping[str, Any]) -> Integrity:
    """Return what was found, by the answer of the module restore_info."""
    if looked["checked"]:
        return Integrity.DAMAGED if looked["problems_total"] else Integrity.INTACT
    return Integrity.HOLLOW if looked["problems_total"] else Integrity.UNKNOWN


def judge(looked: Mapping[str, Any], name: str, accepts_damage: bool) -> Judgement:
    """Return whether the snapshot ``name`` is restored from. ``accepts_damage`` is the variable restore_damaged."""
    verdict = TABLE[accepts_damage][integrity_of(looked)]
    if verdict is Verdict.REFUSE:
        return Judgement(refused=_damage(looked, name))
    if verdict is Verdict.WARN:
        return Judgement(
            said=f"{name} has no manifest that can be used, so nobody knows whether it is complete or intact. It is "
            "taken as it is, since that was asked for"
        )
    return Judgement()


def _damage(looked: Mapping[str, Any], name: str) -> str:
    problems = counted(looked["problems_total"], "problem", "problems")
    lines = [
        f"Nothing was restored. In {name} not all is as it was ({problems}):",
        *(f"- {_problem(one)}" for one in looked["problems"][:_SHOWN]),
        "Restore what is damaged from a snapshot that has it intact (restore_when=NAME, restore_path=PATH). To restore "
        "from this one as it is, set restore_damaged=true; the report names what is damaged.",
    ]
    return "\n".join(lines)


def _problem(one: Mapping[str, Any]) -> str:
    if one["intact_in"]:
        elsewhere = f"; intact in {', '.join(one['intact_in'])}"
    else:
        elsewhere = "; intact in no other snapshot" if one["path"] is not None else ""
    return f"{'the snapshot itself' if one['path'] is None else one['path']}: {one['detail']}{elsewhere}"
