# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contents of ``snapshot.json`` and ``checked.json``; docs/snapshot-format.md describes both files.

Old snapshots stay readable for ever: a member that an earlier version did not write is None or empty, and one that a
later version adds is left alone.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .._core.json_shape import as_object, list_of, member, optional, texts

FORMAT = 1  # of a snapshot's folder
DAMAGED = "damaged"  # the kind of a finding: the contents of a file
KNOWN_DAMAGE = "known damage in older snapshots"  # begins what a check warns of; a repair takes the warning back
_LISTED_PATHS = 20
TRANSFER, RSNAPSHOT, COPY = "transfer", "rsnapshot", "copy"  # where the tree of a snapshot comes from


class Figures(NamedTuple):
    """What a snapshot holds; see ``build_manifest.Totals``. None if its version did not count that."""

    entries: int | None = None
    files: int | None = None
    bytes: int | None = None
    new_files: int | None = None
    new_bytes: int | None = None
    gone: int | None = None
    before: int | None = None
    unreadable: int | None = None
    healed: int | None = None
    changed: int | None = None
    files_before: int | None = None
    moved: int | None = None

    def dump(self) -> dict[str, int]:
        """Return what is known, for JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Past(NamedTuple):
    """A complete snapshot that may have been pruned since, as later ones are judged by it."""

    name: str
    files: int  # regular ones
    changed: int | None = None  # as Figures has it; None if there was nothing to compare with
    files_before: int | None = None


class Facts(NamedTuple):
    """A snapshot, complete or not."""

    host: str
    job: str
    origin: str  # TRANSFER, RSNAPSHOT, or COPY for one of another repository
    run: str  # the token of the run that writes it
    time: int  # seconds since 1970
    base: str = ""  # the name of the snapshot before; empty for the first
    adopted: str | None = None  # rsnapshot's folder
    finished: int | None = None  # seconds since 1970; None while it is unfinished, as are the following
    aside: str | None = None  # why it was set aside; empty if it is complete
    algorithm: str | None = None  # of the content hashes
    figures: Figures = Figures()
    aside_base: str = ""  # the name of a newer snapshot than base, set aside, that files are linked to as well
    past: tuple[Past, ...] = ()  # this one and those before, the newest first, back to the last that was accepted
    read_only: bool = False  # the folders of the tree are made immutable

    def dump(self) -> dict[str, Any]:
        """Return the facts as ``snapshot.json`` holds them."""
        values = {"format": FORMAT, **self._asdict(), **self.figures.dump()}
        del values["figures"]
        values["past"] = [one._asdict() for one in self.past] or None
        values["aside_base"] = self.aside_base or None
        values["read_only"] = self.read_only or None
        return {name: value for name, value in values.items() if value is not None}


class ContentCheckTimes(NamedTuple):
    """When each part of the contents was last read without a problem, in seconds since 1970."""

    of: int  # parts
    times: dict[int, int]


class Finding(NamedTuple):
    """A problem of a snapshot that a check found."""

    kind: str  # as check.Problem has it
    path: str  # escaped; empty: the snapshot itself, or the root of its tree
    detail: str = ""  # of a problem of the snapshot itself
    in_doubt: bool = True  # the contents of the file may be wrong


class CheckRecord(NamedTuple):
    """What the checks of a snapshot found. Times are in seconds since 1970."""

    checked: int | None = None
    level: str | None = None
    verified: int | None = None  # since when all contents are known to be as they were
    shares: ContentCheckTimes | None = None
    findings: tuple[Finding, ...] = ()
    too_many: bool = False  # there are more findings than these, so no file of the snapshot is trusted

    @property
    def damaged(self) -> list[str]:
        """The paths of the first findings."""
        return list(dict.fromkeys(finding.path for finding in self.findings))[:_LISTED_PATHS]

    def dump(self) -> dict[str, Any]:
        """Return it as ``checked.json`` holds it."""
        shares = self.shares
        times = {str(part): at for part, at in shares.times.items()} if shares else {}
        values = {
            **self._asdict(),
            "shares": {"of": shares.of, "times": times} if shares else {},
            "findings": [finding._asdict() for finding in self.findings],
            "damaged": self.damaged,  # all that versions before 0.2.0 know
        }
        return {name: value for name, value in values.items() if value or name not in ("findings", "too_many")}


def parse_facts(value: object) -> Facts:
    """Read what ``snapshot.json`` holds; raise WrongShape if that is nothing that any version wrote."""
    values = as_object(value, "the file")
    host, job, origin, run, base = (
        optional(values, name, str) or "" for name in ("host", "job", "origin", "run", "base")
    )
    return Facts(
        host,
        job,
        origin,
        run,
        member(values, "time", int),
        base,
        optional(values, "adopted", str),
        optional(values, "finished", int),
        optional(values, "aside", str),
        optional(values, "algorithm", str),
        Figures(*(optional(values, name, int) for name in Figures._fields)),
        optional(values, "aside_base", str) or "",
        tuple(map(_parse_past, list_of(values.get("past", []), "past", dict))),
        optional(values, "read_only", bool) or False,
    )


def _parse_past(values: Mapping[str, Any]) -> Past:
    name, files = member(values, "name", str), member(values, "files", int)
    return Past(name, files, optional(values, "changed", int), optional(values, "files_before", int))


def parse_checked(value: object) -> CheckRecord:
    """Read what ``checked.json`` holds; raise WrongShape if that is nothing that any version wrote."""
    values = as_object(value, "the file")
    shares = as_object(values.get("shares", {}), "shares")
    return CheckRecord(
        optional(values, "checked", int),
        optional(values, "level", str),
        optional(values, "verified", int),
        _parse_shares(member(shares, "of", int), member(shares, "times", dict)) if shares else None,
        _parse_findings(values),
        optional(values, "too_many", bool) or False,
    )


def _parse_findings(values: Mapping[str, Any]) -> tuple[Finding, ...]:
    if "findings" not in values:  # versions before 0.2.0 kept up to 20 paths, and no kinds
        paths = texts(values, "damaged") if "damaged" in values else []
        return tuple(Finding(DAMAGED, path) for path in paths if path)
    found = list_of(values["findings"], "findings", dict)
    return tuple(
        Finding(
            member(one, "kind", str),
            member(one, "path", str),
            member(one, "detail", str),
            member(one, "in_doubt", bool),
        )
        for one in found
    )


def _parse_shares(of: int, times: dict[str, object]) -> ContentCheckTimes:
    return ContentCheckTimes(of, {int(part): member(times, part, int) for part in times})
