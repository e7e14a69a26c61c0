# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the owners of a tree on two hosts, and the numbers that they become. Private to the collection.

One side counts (``OwnerCount``) and names (``named``) the ids that it meets, the other looks them up (``look_up``), and
``decide`` says for each what it becomes and whether both hosts mean the same by it. Names are looked up through the
host's own name service, once for each id.
"""

from __future__ import annotations

from typing import Any, Container, Iterable, Iterator, Mapping, NamedTuple

from .._core.outcome import OwnerMismatch
from .._model.entry import Entry
from .._model.ids import acl_ids
from .._model.paths import escape
from .accounts import group_id, group_name, user_id, user_name
from .xattr import ACL_PREFIX

KINDS = ("users", "groups")
_NAME_OF = {"users": user_name, "groups": group_name}
_ID_OF = {"users": user_id, "groups": group_id}


class Here(NamedTuple):
    """What the destination knows about an id of the source."""

    name: str  # of this number; empty if it has none
    id: int | None  # of the source's name; None if it does not exist


def named(kind: str, number: int) -> str:
    """Return what this host calls a number; empty if it has no name. ``kind`` is one of KINDS."""
    return _NAME_OF[kind](number)


def look_up(kind: str, number: int, name: str) -> Here:
    """Ask this host, the destination, about an id of the source and the name that the source has for it."""
    return Here(named(kind, number), _ID_OF[kind](name) if name else None)


def decide(number: int, name: str, here: Here, numeric_ids: bool) -> tuple[int, bool]:
    """Return what an id of the source becomes at the destination, and whether both hosts mean the same by it.

    Root stays root everywhere.
    """
    if number == 0 or here.name == name:
        return number, True
    if not numeric_ids and name and here.id is not None:
        return here.id, True
    return number, False


def mismatch(kind: str, number: int, name: str, here: Here, numeric_ids: bool) -> OwnerMismatch:
    """Return a result's account of an id by which the hosts do not mean the same; ``entries`` are to be counted."""
    return {
        "type": kind[:-1],
        "id": number,
        "name": name,
        "name_there": here.name,
        "id_there": here.id,
        "numeric_ids": numeric_ids,
        "entries": 0,
        "path": "",
    }


def kept(preserve: Container[str]) -> dict[str, bool]:
    """Return for each kind whether a transfer keeps ids of it at all: as owners or in ACLs."""
    return {"users": "owner" in preserve or "acls" in preserve, "groups": "group" in preserve or "acls" in preserve}


def ids_of(entries: Iterable[Entry], preserve: Container[str]) -> dict[str, set[int]]:
    """Return the ids of some entries that a transfer keeps."""
    listed = list(entries)
    users = {entry.uid for entry in listed} if "owner" in preserve else set()
    groups = {entry.gid for entry in listed} if "group" in preserve else set()
    if "acls" in preserve:
        for entry in listed:
            if entry.xattrs:
                more_users, more_groups = _in_acls(entry)
                users |= more_users
                groups |= more_groups
    return {"users": users, "groups": groups}


def _in_acls(entry: Entry) -> tuple[set[int], set[int]]:
    users: set[int] = set()
    groups: set[int] = set()
    for key, value in entry.xattrs:
        if key.startswith(ACL_PREFIX):
            more_users, more_groups = acl_ids(value)
            users.update(more_users)
            groups.update(more_groups)
    return users, groups


class Names:
    """Names the source's ids where they are met first."""

    def __init__(self, preserve: Container[str]) -> None:
        self._preserve = preserve
        self._met: dict[str, set[int]] = {kind: {0} for kind in KINDS}  # root needs no name

    def new(self, entries: Iterable[Entry]) -> tuple[dict[int, str], dict[int, str]]:
        """Return the names of the users and groups in some entries that were not met before."""
        users, groups = ids_of(entries, self._preserve).values()
        return self._new("users", users), self._new("groups", groups)

    def _new(self, kind: str, ids: set[int]) -> dict[int, str]:
        new = ids - self._met[kind]
        self._met[kind] |= new
        return {number: named(kind, number) for number in new}

    def hints(self, root: bytes, disagree: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the parts of the tree that have their own owners, if hosts disagree about some."""
        paths = [str(one["path"]) for one in disagree]
        return _hints(root, paths, self._met) if paths else []


class OwnerCount:
    """Counts the entries of a tree by the ids that they name, each entry once for an id."""

    def __init__(self, preserve: Container[str]) -> None:
        self._owner, self._group, self._acls = (word in preserve for word in ("owner", "group", "acls"))
        self._found: dict[str, dict[int, list[Any]]] = {"users": {}, "groups": {}}  # by id: entries, the first path

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        users = {entry.uid} if self._owner else set()
        groups = {entry.gid} if self._group else set()
        if self._acls and entry.xattrs:
            more_users, more_groups = _in_acls(entry)
            users |= more_users
            groups |= more_groups
        for table, ids in ((self._found["users"], users), (self._found["groups"], groups)):
            for number in ids:
                counted = table.get(number)
                if counted is None:
                    table[number] = [1, entry.path]
                else:
                    counted[0] += 1

    def passing(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Count entries on their way to somebody else."""
        for entry in entries:
            self.add(entry)
            yield entry

    def as_dict(self, root: bytes) -> dict[str, list[Any]]:
        """Return plain data for JSON: for each kind lists of id, what this host calls it, entries, the first path.

        Root is not among them: it is the same everywhere. ``hints`` say what in the tree has owners of its own.
        """
        found: dict[str, list[Any]] = {
            kind: [
                [number, named(kind, number), entries, escape(path) or "."]
                for number, (entries, path) in sorted(table.items())
                if number
            ]
            for kind, table in self._found.items()
        }
        paths = [one[3] for kind in KINDS for one in found[kind]]
        found["hints"] = _hints(root, paths, {kind: [one[0] for one in found[kind]] for kind in KINDS})
        return found


def _hints(root: bytes, paths: list[str], met: Mapping[str, Iterable[int]]) -> list[str]:
    from .foreign_owners import foreign_owners  # which most transfers do without

    return foreign_owners(root, paths, met)


def answer(counted: Mapping[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """Resolve the ids of ``OwnerCount.as_dict`` of the source at the destination: for each its name and id here."""
    return {kind: [list(look_up(kind, int(one[0]), str(one[1]))) for one in counted.get(kind, ())] for kind in KINDS}


def evaluate_owners(
    counted: Mapping[str, list[list[Any]]],
    answers: Mapping[str, list[list[Any]]],
    numeric_ids: bool,
    settled: Mapping[str, Container[int]],
) -> tuple[dict[str, list[list[int]]], list[OwnerMismatch]]:
    """Return the pairs of numbers that are to be mapped, and where the hosts disagree.

    ``settled`` has the ids that an owner map speaks of.
    """
    table: dict[str, list[list[int]]] = {"users": [], "groups": []}
    disagree: list[OwnerMismatch] = []
    for kind in KINDS:
        for (number, name, entries, path), (name_there, id_there) in zip(counted[kind], answers[kind]):
            if number in settled.get(kind, ()):
                continue
            here = Here(name_there, id_there)
            becomes, agrees = decide(number, name, here, numeric_ids)
            if becomes != number:
                table[kind].append([number, becomes])
            if not agrees:
                disagree.append({**mismatch(kind, number, name, here, numeric_ids), "entries": entries, "path": path})
    return table, disagree
