# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare two trees on two hosts: each host reads its own, and the control node carries what is small."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    check_members,
    list_of,
    member,
    optional,
    texts,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import PathError, parse_path_errors
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import Difference, differing_buckets, report

from ..common.host_text import harmless
from ..hosts.host_runner import HostFailed, HostRunner
from ..hosts.pair import run_parallel
from . import steps
from .status import parse_status
from .watching import watch_all

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import DigestRequest
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import (
        DrillDown,
        JobKey,
        QuickDigest,
        Start,
        Step,
    )

    from .owners import Table

_SHORT = 5.0  # seconds in which most trees are read, so that no poll is needed
_QUICK_DIGEST = 2.0  # seconds in which a small tree is read by the module itself, which costs less than a job
_DIGEST_LETTERS = 32
SIDES = ("source", "dest")

Steps = Mapping[str, Sequence["Step"]]
_NO_STEPS: Steps = MappingProxyType({"source": (), "dest": ()})


class ComparisonFailed(Exception):
    """A tree could not be read."""

    def __init__(self, message: str) -> None:
        super().__init__(harmless(message))


class Counts(TypedDict):
    """What one side has, as results have it."""

    entries: int
    types: dict[str, int]
    bytes: int
    digest: str  # of all that was compared; two trees with the same one are the same


class Digest(NamedTuple):
    """What one side says of its tree."""

    counts: Counts
    sums: str
    errors: list[PathError]  # the first ones
    errors_total: int
    owners: object  # what owner_census reads; None if nothing was counted


class ComparisonOutcome(NamedTuple):
    """What a comparison found."""

    counts: Mapping[str, Counts]  # by side
    owners: object = None  # as the source counted them
    differences: Sequence[Difference] = ()  # the first ones
    differences_total: int = 0
    unstable: int = 0  # of the total
    after: Mapping[str, Sequence[object]] = MappingProxyType({})  # by side: results of the caller's last steps


def parse_digest(value: object) -> Digest:
    """Return what a host says of its tree; raise WrongShape if that is no digest."""
    values = as_object(value, "the digest of a tree")
    types, errors = member(values, "types", dict), parse_path_errors(values.get("errors"))
    sums = member(values, "sums", str)
    return Digest(
        {
            "entries": member(values, "entries", int),
            "types": {kind: member(types, kind, int) for kind in types},
            "bytes": member(values, "bytes", int),
            "digest": hashlib.sha256(sums.encode()).hexdigest()[:_DIGEST_LETTERS],
        },
        sums,
        errors,
        member(values, "errors_total", int),
        values.get("owners"),
    )


def parse_quick_digest(value: object) -> Digest | None:
    """Return what a step of quick_digest_step found; None if the tree was not read. Raises WrongShape."""
    digest = as_object(value, "the answer to quick_digest").get("digest")
    return None if digest is None else parse_digest(digest)


def parse_after(value: object) -> list[object]:
    """Return the results of the steps that followed a step of quick_digest_step. Raises WrongShape."""
    return optional(as_object(value, "the answer to quick_digest"), "then", list) or []


def comparison_id(identity: str) -> str:
    """Return the id of the comparison of the trees of a transfer with this id: it names its state folders."""
    return hashlib.sha256(f"compare {identity}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how."""

    runners: Mapping[str, HostRunner]  # by side
    roots: Mapping[str, str]  # by side
    identity: str  # of the pair: names the state folders
    fields: list[str]
    rules: list[str] = field(default_factory=list)
    rules_at_dest: Sequence[str] = ()  # before these, at the destination alone
    only: str | None = None
    one_file_system: bool = False  # at the source; what the destination has in its place may be mounted otherwise
    exclude_if_present: Sequence[str] = ()  # at the source; the destination may have more in its place
    exclude_caches: bool = False  # the same
    owner_map: Table | None = None  # numbers: what the source's owners are at the destination
    count_owners: list[str] | None = None  # what a transfer preserves, where the source's owners are to be counted
    special_files: Sequence[str] = ("devices",)  # devices: all special files; specials: FIFOs and sockets alone
    algorithm: str = "blake2b"
    content_of: list[str] | None = None  # the only files that are read where fields has content; None: all
    content_of_rounded: bool = False  # only those are read where times are coarse
    time_units: Mapping[str, int] = field(default_factory=dict)  # what the destination keeps of times, see TimeUnits
    extra: bool = False  # whether what only the destination has is a difference
    limit: int = 100  # of listed differences
    changed_after_ns: int | None = None  # by the source's clock; what changed later is "unstable"
    label: str = ""
    patience: float = 300.0  # seconds that a host may be out of reach
    expects_entries: int = 0  # how much there is to read, for the progress; 0: not known
    expects_bytes: int = 0
    short: bool = False  # whether the trees are small as far as is known, and likely to be equal: a quick digest may do

    def run(
        self,
        say: Callable[[str], None],
        before: Steps = _NO_STEPS,
        after: Steps = _NO_STEPS,
        quick_digests: Mapping[str, Digest | None] = MappingProxyType({}),
    ) -> ComparisonOutcome:
        """Compare, and return what was found, with the results of ``after`` where those steps were done here.

        ``unstable`` is a count, ``counts`` are those of both sides, and ``owners`` those of the source where they were
        to be counted. ``before`` and ``after`` are steps of the caller's that are sent in the same executions of the
        module. ``quick_digests`` has what ``quick_digest_step`` gave for a side, whose own such steps are done.
        Raises ComparisonFailed if a tree could not be read completely, HostFailed where a host failed.
        """
        try:
            equal = self._quick_digest(before, after, quick_digests) if self.short else None
            if equal:
                return equal
            digests = self._digests(say, before)
            compared = self._differences(digests)
        except BaseException:
            with contextlib.suppress(HostFailed):
                self._end(after)
            raise
        return compared._replace(after=self._end(after))

    def quick_digest_step(self, side: str, then: Sequence[Step], seconds: float = _QUICK_DIGEST) -> QuickDigest:
        """Return the step that reads a tree in ``seconds``; ``then`` are the steps that follow if it was read."""
        return {"do": "quick_digest", "request": self.request(side), "seconds": seconds, "then": list(then)}

    @property
    def is_of_one_walk(self) -> bool:
        """Whether another walk of the destination can make its digest: no contents, and no entry is left out."""
        return "content" not in self.fields and not self.rules_at_dest and not self.only and not self.count_owners

    def _quick_digest(
        self, before: Steps, after: Steps, quick_digests: Mapping[str, Digest | None]
    ) -> ComparisonOutcome | None:
        """Return what is found if both trees can be read at once and are equal, the usual case; else None.

        Nothing is kept of trees that are equal, so that no execution is needed to clear it.
        """
        if None in quick_digests.values():
            return None
        asked = {
            side: [*before[side], self.quick_digest_step(side, after[side])]
            for side in SIDES
            if side not in quick_digests
        }
        given = run_parallel({side: partial(self.runners[side].run, *ones) for side, ones in asked.items()})
        found = {**quick_digests, **{side: parse_quick_digest(results[-1]) for side, results in given.items()}}
        digests = {side: digest for side, digest in found.items() if digest is not None and not digest.errors_total}
        if len(digests) < len(SIDES) or _differing(digests):
            return None
        return _equal(digests)._replace(after={side: parse_after(results[-1]) for side, results in given.items()})

    def _end(self, after: Steps) -> Mapping[str, Sequence[object]]:
        """Leave nothing on either host, whatever happens to the other; return the results of ``after``."""
        return run_parallel({side: partial(self._end_side, side, after[side]) for side in SIDES})

    def _end_side(self, side: str, after: Sequence[Step]) -> Sequence[object]:
        own = steps.end(self._folder(side))
        return self.runners[side].run(*own, *after)[len(own) :]

    def _folder(self, side: str) -> JobKey:
        return {"id": comparison_id(self.identity), "side": side}

    def _digests(self, say: Callable[[str], None], before: Steps) -> dict[str, Digest]:
        started = run_parallel(
            {side: partial(self.runners[side].run, *before[side], self._start_step(side)) for side in SIDES}
        )
        begun = {side: parse_status(started[side][-1]) for side in SIDES}
        running = {side: (self.runners[side], self._folder(side)) for side in SIDES if begun[side].alive}
        ended = {**begun, **watch_all(running, begun, self.label, say, self.patience)}
        digests = {}
        for side in SIDES:
            status = ended[side]
            if status.state != "finished":
                raise ComparisonFailed(f"{self.runners[side].name}: {status.failure or status.state}")
            digests[side] = parse_digest(status.digest)
        return digests

    def request(self, side: str) -> DigestRequest:
        """Return the request for the digest of one side."""
        return {
            "side": side,
            "part": "compare",
            "root": self.roots[side],
            "rules": [*(self.rules_at_dest if side == "dest" else ()), *self.rules],
            "only": self.only,
            "one_file_system": self.one_file_system and side == "source",
            "exclude_if_present": list(self.exclude_if_present) if side == "source" else [],
            "exclude_caches": self.exclude_caches and side == "source",
            "fields": self.fields,
            "owner_map": self.owner_map if side == "source" else None,
            "count_owners": self.count_owners if side == "source" else None,
            "special_files": list(self.special_files),
            "algorithm": self.algorithm,
            "content_of": self.content_of,
            "content_of_rounded": self.content_of_rounded,
            "time_units": dict(self.time_units),
            "expects": {"entries": self.expects_entries, "bytes": self.expects_bytes if self._reads_all else 0},
            "peer_name": self.runners["dest" if side == "source" else "source"].name,
        }

    @property
    def _reads_all(self) -> bool:
        """Whether the contents of all files are read."""
        return "content" in self.fields and self.content_of is None and not self.content_of_rounded

    def _start_step(self, side: str) -> Start:
        return {
            "do": "start",
            "kind": "digest",
            "request": self.request(side),
            "until": [],
            "wait": _SHORT,
            "secrets": [],
            "replace": None,
            "then": [],
            **self._folder(side),
        }

    def _differences(self, digests: Mapping[str, Digest]) -> ComparisonOutcome:
        for side in SIDES:
            if digests[side].errors_total:
                first = digests[side].errors[0]
                raise ComparisonFailed(
                    f"{entries_text(digests[side].errors_total)} on {self.runners[side].name} could not be read, "
                    f"{first['path']} ({first['reason']}) for example: nothing is proven without that"
                )
        left = set(_differing(digests))
        found: list[Difference] = []
        total = unstable = 0
        absent: list[str] | None = None
        while left:
            listing = self._listing(left)
            left -= listing.buckets
            if absent is None:
                absent = self._absent(listing, left)
            room = max(0, self.limit - len(found))
            explained = self._explain(listing, room, absent)
            total += explained.differences
            unstable += explained.unstable
            found += self._report(explained)[:room]
        return _equal(digests)._replace(differences=found, differences_total=total, unstable=unstable)

    def _absent(self, listing: _Listing, left: AbstractSet[int]) -> list[str]:
        """Return the names that the destination alone has, of files with several, where one portion does not say it."""
        if not left or "links" not in self.fields:
            return []
        found = self._ask_absent(listing)
        while left:
            listing = self._listing(left)
            left = left - listing.buckets
            found += self._ask_absent(listing)
        return found

    def _ask_absent(self, listing: _Listing) -> list[str]:
        return texts(self._ask("dest", ask="absent", listing=listing.values), "absent")

    def _listing(self, buckets: AbstractSet[int]) -> _Listing:
        """Have the source list as many of the buckets as fit into one portion: one at least, or it would never end."""
        values = self._ask("source", ask="listing", buckets=sorted(buckets))
        listed = set(list_of(values.get("buckets"), "buckets", int))
        if not listed & buckets:
            raise WrongShape(f"{self.runners['source'].name} was asked to list {len(buckets)} buckets, and listed none")
        return _Listing(listed, values)

    def _explain(self, listing: _Listing, room: int, absent: list[str]) -> _Explained:
        values = self._ask("dest", ask="explain", listing=listing.values, limit=room, extras=self.extra, absent=absent)
        differences = sum(member(values, name, int) for name in ("differs", "missing", "extra"))
        for name in ("found", "extras"):
            _details(values, name)
        return _Explained(differences, member(values, "unstable", int), texts(values, "ask"), values)

    def _report(self, explained: _Explained) -> list[Difference]:
        details: list[Mapping[str, Any]] = []
        if explained.ask:
            details = _details(self._ask("source", ask="details", keys=explained.ask), "details")
        return report(explained.values, details)

    def _ask(self, side: str, **question: Any) -> Mapping[str, Any]:
        asked = {"do": "drill_down", "changed_after_ns": self.changed_after_ns, **question, **self._folder(side)}
        step = cast("DrillDown", asked)
        return as_object(self.runners[side].run(step)[0], "the answer to drill_down")


class _Listing(NamedTuple):
    """A portion of what the source has; the destination reads the rest of it."""

    buckets: AbstractSet[int]
    values: Mapping[str, Any]


class _Explained(NamedTuple):
    """What the destination says of a portion."""

    differences: int
    unstable: int
    ask: list[str]  # keys of entries to ask the source about
    values: Mapping[str, Any]


def _details(values: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return details of entries, each with what report reads of it; raise WrongShape if one has not."""
    found = list_of(values.get(name), name, dict)
    for one in found:
        check_members(one, {"key": str, "path": str, "values": dict})
    return list(found)


def _equal(digests: Mapping[str, Digest]) -> ComparisonOutcome:
    return ComparisonOutcome({side: digests[side].counts for side in SIDES}, digests["source"].owners)


def _differing(digests: Mapping[str, Digest]) -> list[int]:
    return differing_buckets(*({"sums": digests[side].sums} for side in SIDES))
