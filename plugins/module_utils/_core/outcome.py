# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcome of a transfer, in counts and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

from .counted import among, entries_text
from .json_shape import WrongShape, as_object, check_members, list_of, member, number, optional, texts
from .settings import check_time_units

if TYPE_CHECKING:
    from typing import TypedDict

    class PathError(TypedDict):
        path: str  # escaped; of the root itself "."
        reason: str

    class OwnerMismatch(TypedDict):
        """An id by which the two hosts do not mean the same."""

        type: str  # user, group
        id: int
        name: str  # at the source; empty: none
        name_there: str  # what the destination calls this id
        id_there: int | None  # what the destination has for this name
        numeric_ids: bool
        entries: int
        path: str  # of the first one

else:  # making such classes takes time at each job's start
    PathError = OwnerMismatch = dict

ENTRIES_DONE = ("files_created", "files_updated", "files_deleted", "attributes_changed")  # counts of an outcome
BYTES_DONE = ("bytes_content", "bytes_sent", "bytes_from_basis", "bytes_shared")
MAX_ERRORS = 200  # listed; all are counted
MAX_DELETED = 20  # named apart, since among the changes they may come after the last one that is listed
_MISMATCH: Mapping[str, type] = {
    **dict.fromkeys(("type", "name", "name_there", "path"), str),
    **dict.fromkeys(("id", "entries"), int),
    "numeric_ids": bool,
}
_LISTS_OF_TABLES = {"errors", "owner_mismatches"}
_DELETING = "*deleting   "  # as rsync itemizes it


def parse_path_errors(value: object) -> list[PathError]:
    """Return errors of paths; raise WrongShape if that is no list of them."""
    errors = list_of(value, "errors", dict)
    for error in errors:
        check_members(error, {"path": str, "reason": str})
    return cast("list[PathError]", errors)


class Outcome:
    """What one run of a method accounts for. "Files" are entries of every type, as rsync counts them.

    Bytes are those of file contents within the filters: ``bytes_apparent`` the sizes of all files, ``bytes_total`` the
    same without holes. Of these ``bytes_matched`` were at the destination already, and ``bytes_content`` were sent,
    for which ``bytes_sent`` went over the wire: after compression, without the overhead of protocols.
    ``bytes_from_basis`` of the matched ones were taken from old versions of changed files, and ``bytes_shared`` of
    them take no space of their own on the disk.
    """

    # No dataclass: to import what makes those would be a sixth of the time in which a job starts.
    def __init__(self, **given: Any) -> None:
        """Take values by their names; all others are nothing. Raise TypeError for an unknown name."""
        self.bytes_apparent = 0
        self.bytes_total = 0
        self.bytes_content = 0
        self.bytes_sent = 0
        self.bytes_matched = 0
        self.bytes_from_basis = 0
        self.bytes_shared = 0
        self.files_total = 0
        self.files_created = 0
        self.files_updated = 0
        self.files_deleted = 0
        self.attributes_changed = 0
        self.vanished = 0
        self.left_out = 0  # directories whose contents a file in them leaves out
        self.errors: list[PathError] = []
        self.errors_total = 0
        self.errors_unstable = 0  # of those: what changed each time it was read
        self.warnings: list[str] = []
        self.withheld: dict[str, list[Any]] = {}  # left out on purpose, by what it is: how many, and the first path
        self.changes: list[str] = []  # itemized as rsync's %i, a space, the escaped path
        self.changes_total = 0
        self.deleted: list[str] = []  # the first escaped paths that were deleted
        self.deferred: list[str] = []  # escaped paths that were left to a run of rsync
        self.kept_mounts: list[str] = []  # escaped paths that stay since something is mounted there
        self.owners: dict[str, list[list[int]]] = {}  # what ids of the source became: pairs of "users" and "groups"
        self.owner_mismatches: list[OwnerMismatch] = []
        self.owner_hints: list[str] = []  # what in the tree has owners of its own
        self.time_units: dict[str, int] = {}  # of the destination, where its times are coarse: see TimeUnits
        self.resumed = False
        self.streams = 0  # that were used; 0: as many as the settings say
        self.phases: dict[str, float] = {}  # seconds
        self.spent: dict[str, object] = {}  # "source", "dest": see time_accounting.account
        self.cmd: dict[str, list[str]] = {}  # "source", "dest": the argv that ran there
        self.confinement: list[str] = []  # what was in force in the process that says this: see confinement
        self.stderr = ""  # the last lines of what the programs said
        self.failure = ""  # why it failed as a whole, and what to do; empty if it did not
        unknown = given.keys() - vars(self).keys()
        if unknown:
            raise TypeError(f"an outcome has no {', '.join(sorted(unknown))}")
        vars(self).update(given)

    def change(self, line: str, limit: int) -> None:
        """Count a change, and list it while there are no more than ``limit``."""
        self.changes_total += 1
        if len(self.changes) < limit:
            self.changes.append(line)
        if len(self.deleted) < MAX_DELETED and line.startswith(_DELETING):
            self.deleted.append(line[len(_DELETING) :])

    def error(self, path: str, reason: str) -> None:
        """Count what went wrong with one path."""
        self.errors_total += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append({"path": path or ".", "reason": reason})

    def withhold(self, what: str, path: str, count: int = 1) -> None:
        """Count what was left out on purpose of ``count`` entries, the first of which is at ``path``."""
        self.withheld.setdefault(what, [0, path])[0] += count

    def warn_of_withheld(self) -> None:
        """Add a warning for each kind of what was left out on purpose."""
        for what, (count, path) in sorted(self.withheld.items()):
            self.warnings.append(f"{what}: {entries_text(count)}, {among([path or '.'], count)}")

    def unstable(self, path: str, reason: str) -> None:
        """Count an entry that went wrong only because the source changed it while it was read."""
        self.errors_unstable += 1
        self.error(path, reason)

    @property
    def files_unchanged(self) -> int:
        """Entries that were right already."""
        return max(0, self.files_total - self.files_created - self.files_updated - self.attributes_changed)

    @property
    def changed(self) -> bool:
        """Whether anything at the destination differs from before."""
        return bool(self.files_created or self.files_updated or self.files_deleted or self.attributes_changed)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON, with the two derived values."""
        return dict(vars(self), files_unchanged=self.files_unchanged, changed=self.changed)

    @classmethod
    def from_json(cls, value: object) -> Outcome:
        """Return the outcome in plain data, as a host says it; raise WrongShape if it is none.

        What it does not name (an earlier version) is nothing, and what no outcome has (a later one) is left out.
        """
        values, known = as_object(value, "an outcome"), vars(cls())
        given = {name: member(values, name, type(default)) for name, default in known.items() if name in values}
        for name in given.keys() - _LISTS_OF_TABLES:
            if isinstance(given[name], list):
                list_of(given[name], name, str)
        parse_path_errors(given.get("errors", []))
        for one in list_of(given.get("owner_mismatches", []), "owner_mismatches", dict):
            check_members(one, _MISMATCH)
            optional(one, "id_there", int)
        for pairs in given.get("owners", {}).values():
            if not all(len(list_of(pair, "owners", int)) == 2 for pair in list_of(pairs, "owners", list)):
                raise WrongShape("owners has an item that is no pair of numbers")
        for what, counted in given.get("withheld", {}).items():
            if not (isinstance(counted, list) and [type(one) for one in counted] == [int, str]):
                raise WrongShape(f"withheld has no number and no path for {what}")
        check_time_units(given.get("time_units", {}))
        for name in given.get("cmd", {}):
            texts(given["cmd"], name)
        for name in given.get("phases", {}):
            number(given["phases"], name)
        return cls(**given)
