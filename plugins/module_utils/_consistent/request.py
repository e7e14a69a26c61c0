# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The consistent sources of a backup as the control node asks for them. Private to the collection."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence, Union

from .._core.json_shape import WrongShape, as_object, list_of, member, number, texts


class DumpPlace(NamedTuple):
    """The folder of dumps."""

    root: str  # of the source tree, absolute
    into: str  # the folder, the root or below it
    keep: bool  # the dumps stay after the backup


class PostgresqlSource(NamedTuple):
    """Databases of a PostgreSQL server on this host."""

    place: DumpPlace
    databases: Sequence[str]  # empty: all
    user: str  # of the system, and of the server
    socket: str  # its folder; empty: the default of the programs
    port: int  # 0: the default
    compress: int  # level; -1: the default
    globals: bool  # roles and tablespaces, too
    free_percent: int  # of the size of the databases that must be free


class MariadbSource(NamedTuple):
    """Databases of a MariaDB or MySQL server on this host."""

    place: DumpPlace
    databases: Sequence[str]  # empty: all
    user: str  # of the system, as which the programs run
    defaults_file: str  # with the account; empty: the default of the programs
    socket: str  # empty: the default
    free_percent: int


class SqliteSource(NamedTuple):
    """SQLite databases in the source tree."""

    place: DumpPlace
    files: Sequence[str]  # relative to the root; * and ? match within a name


class BtrfsSource(NamedTuple):
    """A subvolume of which a snapshot is transferred."""

    subvolume: str  # absolute
    name: str  # of the snapshot in it
    leave_out_nested: bool  # subvolumes and file systems inside are left out; else they are refused


Source = Union[PostgresqlSource, MariadbSource, SqliteSource, BtrfsSource]


class ConsistentRequest(NamedTuple):
    """Request of the job that prepares the sources, holds them, and undoes them."""

    sources: Sequence[Source]
    readers: Sequence[str]  # the trees that the transfers read
    undo_after: float  # seconds without a reader, after which the sources are undone without being asked


class DumpLoad(NamedTuple):
    """Dumps that are loaded into databases of a server on this host."""

    kind: str  # postgresql or mariadb
    folder: str  # that was restored, absolute: that of the dumps, or one in which it is under its usual name
    databases: Mapping[str, str]  # new names by those of the dumps; empty: all dumps
    suffix: str  # of the new names, where databases is empty
    over: bool  # databases that exist are loaded over
    owners: bool  # owners and privileges, too, whose roles must exist
    user: str
    socket: str
    port: int
    defaults_file: str


class ScratchLoad(NamedTuple):
    """Dumps that a drill loads into a server of its own."""

    kind: str  # postgresql or mariadb
    folder: str  # of the dumps, absolute
    place: str  # the scratch folder for the server, absolute
    databases: Sequence[str]  # empty: all
    user: str  # of the system, as which the server runs; empty: nobody, or that of this job if it is not root
    hold: float  # seconds after which the server ends without being asked


def parse_scratch_load(value: object) -> ScratchLoad:
    """Return the dumps that a drill wants to be loaded; raise WrongShape."""
    values = as_object(value, "the request")
    hold = number(values, "hold")
    if not 0 <= hold < 1e6:
        raise WrongShape("hold is out of bounds")
    return ScratchLoad(
        _dump_kind(values),
        _absolute(values, "folder"),
        _absolute(values, "place"),
        texts(values, "databases"),
        member(values, "user", str),
        hold,
    )


def _dump_kind(values: Mapping[str, Any]) -> str:
    kind = member(values, "kind", str)
    if kind not in ("postgresql", "mariadb"):
        raise WrongShape(f"there are no dumps of kind {kind!r:.40} in this version of the engine")
    return kind


def parse_load(value: object) -> DumpLoad:
    """Return the dumps that the control node wants to be loaded; raise WrongShape."""
    values = as_object(value, "the request")
    kind, databases = _dump_kind(values), as_object(values.get("databases"), "databases")
    if not all(isinstance(name, str) and isinstance(new, str) and name and new for name, new in databases.items()):
        raise WrongShape("databases has a name that is no text")
    return DumpLoad(
        kind,
        _absolute(values, "folder"),
        databases,
        member(values, "suffix", str),
        member(values, "over", bool),
        member(values, "owners", bool),
        member(values, "user", str),
        member(values, "socket", str),
        member(values, "port", int),
        member(values, "defaults_file", str),
    )


def parse_consistent(value: object) -> ConsistentRequest:
    """Return what the control node asks for; raise WrongShape."""
    values = as_object(value, "the request")
    undo_after = number(values, "undo_after")
    if not 0 < undo_after < 1e7:
        raise WrongShape("undo_after is out of bounds")
    return ConsistentRequest(
        [_source(one) for one in list_of(values.get("sources"), "sources", dict)], texts(values, "readers"), undo_after
    )


def _source(value: object) -> Source:
    values = as_object(value, "a source")
    kind = member(values, "kind", str)
    if kind == "btrfs":
        return BtrfsSource(
            _absolute(values, "subvolume"), _name(values, "name"), member(values, "leave_out_nested", bool)
        )
    place = DumpPlace(_absolute(values, "root"), _absolute(values, "into"), member(values, "keep", bool))
    if kind == "sqlite":
        return SqliteSource(place, texts(values, "files"))
    databases, user = texts(values, "databases"), member(values, "user", str)
    socket, free = member(values, "socket", str), member(values, "free_percent", int)
    if kind == "postgresql":
        port, level = member(values, "port", int), member(values, "compress", int)
        return PostgresqlSource(place, databases, user, socket, port, level, member(values, "globals", bool), free)
    if kind == "mariadb":
        return MariadbSource(place, databases, user, member(values, "defaults_file", str), socket, free)
    raise WrongShape(f"there are no consistent sources of kind {kind!r:.40} in this version of the engine")


def _absolute(values: Mapping[str, Any], name: str) -> str:
    path = member(values, name, str)
    if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise WrongShape(f"{name} is {path!r:.60}, and an absolute path is expected")
    return path


def _name(values: Mapping[str, Any], name: str) -> str:
    found = member(values, name, str)
    if not found or "/" in found or "\0" in found or found in (".", "..") or len(found) > 255:
        raise WrongShape(f"{name} is {found!r:.60}, and a name is expected")
    return found
