# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Select the part of the files that a check reads; some runs together read all. Private to the collection.

Pure. Every path belongs to one of N parts, by its hash, so it is the same part in every snapshot and in every run. Runs
take the parts in turn.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._core.json_shape import as_object, member
from .._tree.record import path_hash
from .errors import Refused

_SUBSET = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class Subset(NamedTuple):
    """Some of the parts that all paths are divided into."""

    parts: frozenset[int]
    of: int

    def has(self, path: bytes) -> bool:
        """Return whether a path is in it."""
        return self.of == len(self.parts) or part_of(path, self.of) in self.parts


class Turn(NamedTuple):
    """Whose turn it is, as ``.checks.json`` remembers it."""

    of: int  # parts
    first: int  # the first part of the next run

    def dump(self) -> dict[str, int]:
        """Return it as JSON holds it."""
        return {"of": self.of, "next": self.first}


def parse_turn(value: object) -> Turn:
    """Read what ``Turn.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "the file")
    return Turn(member(values, "of", int), member(values, "next", int))


ALL = Subset(frozenset([0]), 1)
NONE = Subset(frozenset(), 2)


class Below(NamedTuple):
    """A path and all that is below it, for a check of just these; an empty path is the whole tree."""

    path: bytes

    def has(self, path: bytes) -> bool:
        """Return whether a path is in it."""
        return not self.path or path == self.path or path.startswith(self.path + b"/")


WHOLE = Below(b"")


def part_of(path: bytes, of: int) -> int:
    """Return the part of a path, 0 to ``of`` - 1."""
    return int.from_bytes(path_hash(path)[:8], "big") % of


def parse(text: str) -> tuple[int, int]:
    """Read a subset such as ``1/7``. Raises Refused for anything that is none."""
    found = _SUBSET.fullmatch(text)
    count, of = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    if not 1 <= count <= of:
        raise Refused(
            f"the subset '{text}' cannot be read: write how many of how many parts a run checks, such as 1/7, or 1/1 "
            "for all"
        )
    return count, of


def next_subset(count: int, of: int, last: Turn | None) -> tuple[Subset, Turn]:
    """Return the subset of this run, and what to remember for the next; ``last`` is what the run before remembered.

    Within ``of / count`` runs, rounded up, every part has its turn. Another ``of`` begins from the start.
    """
    first = last.first if last and last.of == of and 0 <= last.first < of else 0
    parts = frozenset((first + number) % of for number in range(count))
    return Subset(parts, of), Turn(of, (first + count) % of)
