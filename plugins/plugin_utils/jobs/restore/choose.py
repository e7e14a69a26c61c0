# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The snapshot that a point in time means."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused

from ...common.timespec import as_text, read_moment

LATEST = "latest"  # the newest snapshot
_SHOWN = 12  # snapshots in a message


@dataclass(frozen=True)
class ChosenSnapshot:
    """The snapshot to restore from."""

    name: str
    path: str  # empty: not known
    state: str
    why: str  # it is this one


def choose_snapshot(
    snapshots: Sequence[Mapping[str, Any]], when: Any = "latest", timezone: str = "UTC", now: float | None = None
) -> Mapping[str, str]:
    """Return the result of the filter restore_choose: the chosen snapshot, or the ``problem``."""
    try:
        return {**asdict(choose(snapshots, when, timezone, now)), "problem": ""}
    except Refused as refused:
        return {"name": "", "path": "", "state": "", "why": "", "problem": str(refused)}


def choose(
    snapshots: Sequence[Mapping[str, Any]], when: Any = "latest", timezone: str = "UTC", now: float | None = None
) -> ChosenSnapshot:
    """Return the snapshot that is meant by ``when``. Raise Refused if there is none.

    ``now`` is the time of the control node, in seconds since 1970.
    """
    found, why = _find(snapshots, as_text(when), timezone, int(time.time() if now is None else now))
    return ChosenSnapshot(found["name"], found.get("path", ""), found["state"], why)


def _find(snapshots: Sequence[Mapping[str, Any]], when: str, zone: str, now: int) -> tuple[Mapping[str, Any], str]:
    by_name = {"unfinished" if one["state"] == "unfinished" else str(one["name"]): one for one in snapshots}
    known = {at: one for name, one in by_name.items() if (at := names.time_of(name)) is not None}
    if when in by_name and by_name[when]["state"] != "removing":
        return by_name[when], "as named"
    if names.time_of(when) is not None or names.kind_of(when) or when == "unfinished":
        raise Refused(_not_there(when, by_name))
    if when != LATEST:
        moment = read_moment(when, zone)
        at = moment.newest(known)
        if known and at is None:
            raise Refused(f"there is no snapshot {moment.said}. There are: {listed(snapshots)}")
        why = f"the newest {moment.said}"
    else:
        there = max((at + int(one["age"]) for at, one in known.items()), default=0)
        at, by_own_clock = (names.latest_of(clock, list(known)) for clock in (there, now))
        if at is not None and by_own_clock is not None and at != by_own_clock:
            raise Refused(
                f"latest is {names.name_of(at)} by the clock of the repository, and by that of the control node "
                f"{names.name_of(by_own_clock)}: one clock is wrong. Set it, or name the snapshot: {listed(snapshots)}"
            )
        why = "the newest"
    if at is None:
        raise Refused(f"there is no complete snapshot. {_others(by_name)}")
    return known[at], why


def _not_there(name: str, by_name: Mapping[str, Mapping[str, Any]]) -> str:
    aside = names.ASIDE_PREFIX + name
    if aside in by_name:
        return (
            f"{name} was set aside: {by_name[aside].get('reason') or 'nobody knows why'}. To restore from it "
            f"nevertheless name it as {aside}; or take another: {listed(by_name.values())}"
        )
    gone = by_name.get(name) or by_name.get(names.REMOVING_PREFIX + names.once_accepted(name))
    if gone is not None:
        return f"{name} is being removed, and not all of it may be there. There are: {listed(by_name.values())}"
    return f"there is no snapshot {name}. There are: {listed(by_name.values())}"


def _others(by_name: Mapping[str, Mapping[str, Any]]) -> str:
    others = [name for name, one in by_name.items() if one["state"] in ("aside", "unfinished")]
    if not others:
        return "Nothing was backed up as this host and job yet: see whether they are the right ones"
    return f"What is there can be restored from when it is named exactly: {', '.join(others)}"


def listed(snapshots: Iterable[Mapping[str, Any]]) -> str:
    """Return the names of the complete snapshots for a message, the newest first."""
    complete = sorted((str(one["name"]) for one in snapshots if one["state"] == "complete"), reverse=True)
    more = f" and {len(complete) - _SHOWN} older ones" if len(complete) > _SHOWN else ""
    return ", ".join(complete[:_SHOWN]) + more if complete else "none that are complete"
