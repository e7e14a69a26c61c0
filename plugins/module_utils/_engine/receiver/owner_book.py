# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the source's ids become here, decided where each is met first.

The source names its ids before the entries that have them. Where both hosts mean the same by all of them, nothing more
is asked of the entries.
"""

from __future__ import annotations

from typing import Mapping

from ..._core.context import Context
from ..._core.outcome import OwnerMismatch
from ..._model.entry import Entry
from ..._model.ids import IdMap
from ..._model.paths import escape
from ..._tree.owners import KINDS, decide, ids_of, look_up, mismatch

Table = Mapping[int, int]


class OwnerBook:
    """Decides on the source's ids, each once, and counts the entries of those that mean somebody else here."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self._numeric_ids = bool(settings["numeric_ids"])
        self._preserve = frozenset(settings["preserve"])
        given = settings.get("owner_map") or {}
        self._ids = IdMap.of(given)  # the whole table, for the comparison
        self._settled = {kind: {pair[0] for pair in given.get(kind, ())} for kind in KINDS}
        self._differ: dict[str, dict[int, OwnerMismatch]] = {kind: {} for kind in KINDS}

    def learn(self, users: Mapping[int, str], groups: Mapping[int, str]) -> tuple[Table, Table]:
        """Take the source's names of ids, and return the numbers among them that become others."""
        changed = self._decide("users", users), self._decide("groups", groups)
        self._ids.learn(*changed)
        return changed

    def _decide(self, kind: str, names: Mapping[int, str]) -> dict[int, int]:
        changed = {}
        for number, name in names.items():
            if number in self._settled[kind]:
                continue
            self._settled[kind].add(number)
            here = look_up(kind, number, name)
            becomes, agrees = decide(number, name, here, self._numeric_ids)
            if becomes != number:
                changed[number] = becomes
            if not agrees:
                self._differ[kind][number] = mismatch(kind, number, name, here, self._numeric_ids)
        return changed

    def count(self, entries: list[Entry]) -> None:
        """Count the entries of ids that mean somebody else here."""
        users, groups = self._differ["users"], self._differ["groups"]
        if not (users or groups):
            return
        for entry in entries:
            if entry.uid in users or entry.gid in groups or entry.xattrs:
                for kind, ids in ids_of([entry], self._preserve).items():
                    for number in ids & self._differ[kind].keys():
                        found = self._differ[kind][number]
                        found["entries"] += 1
                        found["path"] = found["path"] or escape(entry.path) or "."

    @property
    def table(self) -> dict[str, list[list[int]]]:
        """What every id was mapped by, as ``IdMap.of`` reads it."""
        return self._ids.as_table()

    @property
    def mismatches(self) -> list[OwnerMismatch]:
        """What was found that means somebody else here."""
        return [one for kind in KINDS for _number, one in sorted(self._differ[kind].items()) if one["entries"]]
