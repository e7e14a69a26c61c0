# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell what snapshots a job has. Private to the collection."""

from __future__ import annotations

from typing import Any

from . import names
from .errors import Refused
from .repository import Series

UNFINISHED = "unfinished"


def listing(series: Series, now: int) -> list[dict[str, Any]]:
    """Describe every snapshot, the oldest first, then the unfinished one; ready for JSON. Nothing is read but facts.

    Each has ``name``, ``path``, ``state`` (complete, aside, removing, unfinished), ``complete``, ``latest``, ``time``
    (seconds since 1970), ``age`` (seconds), ``entries``, ``size``, ``new_data`` (bytes; null where it is not known),
    ``origin``, ``reason`` (why it was set aside), ``verified`` and ``checked`` (seconds since 1970 or null),
    ``damaged`` (paths that the last checks found damaged) and ``problem``.
    """
    latest = series.latest()
    found = []
    for kind in names.PREFIXES:
        for at in series.times(kind):
            found.append(_describe(series, names.name_of(at, kind), kind, at, now, latest))
    found.sort(key=lambda item: item["time"])
    if series.has(names.UNFINISHED):
        found.append(_describe(series, names.UNFINISHED, UNFINISHED, None, now, latest))
    return found


def _describe(series: Series, name: str, state: str, at: int | None, now: int, latest: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    checked: dict[str, Any] = {}
    problem = ""
    try:
        with series.snapshot(name) as snapshot:
            checked = snapshot.checked()
            facts = snapshot.facts()
    except Refused as refused:
        problem = str(refused)
    except OSError as error:
        problem = f"it cannot be opened: {error.strerror}"
    if at is None:
        at = facts.get("time", now)
    done = facts.get("finished") is not None
    return {
        "name": name,
        "path": f"{series.path}/{name}/{names.DATA}",
        "state": state,
        "complete": state == names.COMPLETE,
        "latest": name == latest,
        "time": at,
        "age": now - at,
        "entries": facts.get("entries") if done else None,
        "size": facts.get("bytes") if done else None,
        "new_data": facts.get("new_bytes") if done else None,
        "origin": facts.get("origin", ""),
        "reason": facts.get("aside", ""),
        "verified": checked.get("verified"),
        "checked": checked.get("checked"),
        "damaged": checked.get("damaged", []),
        # What a kill left of one that is being removed has no facts, and needs none.
        "problem": problem if state in (names.COMPLETE, names.ASIDE) else "",
    }
