# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names in the folder of a job and what they are, as a diff shows them. Private to the collection.

Pure but for :meth:`States.of`. Check mode shows what a run would leave: each method gives the names behind one action.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple

from . import names
from .begin import unfinished_facts
from .repository import Series


class States(NamedTuple):
    """What there is, or would be."""

    snapshots: frozenset[str]  # whatever their state, by name
    latest: str | None
    becomes: str = ""  # the name that the unfinished snapshot will have, where that is known
    protected: frozenset[str] = frozenset()  # those with a hold

    @classmethod
    def of(cls, series: Series) -> States:
        """Look."""
        found = {name for kind in names.PREFIXES for name in series.named(kind)}
        becomes = ""
        if series.has(names.UNFINISHED):
            found.add(names.UNFINISHED)
            facts = unfinished_facts(series)
            becomes = names.name_of(facts.time) if facts else ""
        held = {name for name in found if names.kind_of(name) and series.has(f"{name}/{names.HOLD}")}
        return cls(frozenset(found), series.latest(), becomes, frozenset(held))

    def text(self) -> str:
        """Return one line for each name."""
        lines = []
        for name in sorted(self.snapshots, key=lambda name: name[-len(names.name_of(0)) :]):
            what = names.kind_of(name) or f"unfinished{', to be ' if self.becomes else ''}{self.becomes}"
            lines.append(f"{name} {what}{', protected' if name in self.protected else ''}")
        if self.latest is not None:
            lines.append(f"{names.LATEST} -> {self.latest}")
        return "".join(line + "\n" for line in lines)

    def settled(self, now: int) -> States:
        """Let ``latest`` lead to the newest."""
        complete = [at for at in map(names.time_of, self.snapshots) if at is not None]
        newest = names.latest_of(now, complete)
        return self if newest is None else self._replace(latest=names.name_of(newest))

    def begun(self, name: str) -> States:
        """Add the unfinished snapshot that will have the name."""
        return self._with([names.UNFINISHED])._replace(becomes=name)

    def finished(self, name: str) -> States:
        """Make the unfinished snapshot one of the name; nothing if there is none."""
        return self._with([name], [names.UNFINISHED]) if name and name not in self.snapshots else self

    def accepted(self, name: str) -> States:
        """Take the snapshot that was set aside."""
        final = names.once_accepted(name)
        return self._with([final], [names.ASIDE_PREFIX + final])

    def discarded(self, name: str) -> States:
        """Take away what is not complete."""
        return self._with([], [names.UNFINISHED if name == "unfinished" else name])

    def protecting(self, name: str) -> States:
        """Protect a snapshot."""
        return self._replace(protected=self.protected | {name})

    def unprotecting(self, name: str) -> States:
        """End the protection of a snapshot."""
        return self._replace(protected=self.protected - {name})

    def adopted(self, found: Iterable[str]) -> States:
        """Add snapshots; what an interrupted adoption left is gone."""
        return self._with(found, [names.UNFINISHED])

    def pruned(self, removed: Iterable[str], lazy: bool) -> States:
        """Remove snapshots, or rename them to mark them for removal."""
        removed = list(removed)
        if lazy:
            return self._with([names.REMOVING_PREFIX + name for name in removed], removed)
        return self._with([], [*removed, *(name for name in self.snapshots if names.kind_of(name) == names.REMOVING)])

    def _with(self, more: Iterable[str], less: Iterable[str] = ()) -> States:
        return self._replace(snapshots=(self.snapshots - frozenset(less)) | frozenset(more))
