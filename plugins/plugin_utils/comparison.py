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
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import differing_buckets, report

from .host_runner import HostFailed, HostRunner
from .parallel import run_parallel
from .status import parse_status
from .watching import watch

_SHORT = 5.0  # seconds in which most trees are read, so that no poll is needed
_QUICK_DIGEST = 2.0  # seconds in which a small tree is read by the module itself, which costs less than a job
SIDES = ("source", "dest")

Steps = Mapping[str, list[dict[str, Any]]]
_NO_STEPS: Steps = MappingProxyType({"source": [], "dest": []})


class ComparisonFailed(Exception):
    """A tree could not be read."""


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how."""

    runners: Mapping[str, HostRunner]  # by side
    roots: Mapping[str, str]  # by side
    identity: str  # of the pair: names the state folders
    fields: list[str]
    rules: list[str] = field(default_factory=list)
    only: str | None = None
    one_file_system: bool = False  # at the source; what the destination has in its place may be mounted otherwise
    owner_map: Mapping[str, Any] | None = None  # numbers: what the source's owners are at the destination
    count_owners: list[str] | None = None  # what a transfer preserves, where the source's owners are to be counted
    special_files: Sequence[str] = ("devices",)  # devices: all special files; specials: FIFOs and sockets alone
    algorithm: str = "blake2b"
    content_of: list[str] | None = None  # the only files that are read where fields has content; None: all
    extra: bool = False  # whether what only the destination has is a difference
    limit: int = 100  # of listed differences
    changed_after_ns: int | None = None  # by the source's clock; what changed later is "unstable"
    label: str = ""
    patience: float = 300.0  # seconds that a host may be out of reach
    short: bool = False  # whether the trees are small as far as is known, and likely to be equal: a quick digest may do

    def run(
        self,
        say: Callable[[str], None],
        before: Steps = _NO_STEPS,
        after: Steps = _NO_STEPS,
        quick_digests: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Compare, and return ``differences`` (listed), ``differences_total``, ``unstable``, ``counts`` and ``owners``.

        ``unstable`` is a count, ``counts`` are those of both sides, and ``owners`` those of the source where they were
        to be counted. ``before`` and ``after`` are steps of the caller's that travel in the same executions of the
        module. ``quick_digests`` has what ``quick_digest_step`` gave for a side, whose own such steps are done.
        Raises ComparisonFailed where a tree could not be read completely, HostFailed where a host failed.
        """
        try:
            digests = self._quick_digest(before, after, quick_digests) if self.short else {}
            if digests:
                result: dict[str, Any] = {"differences": [], "differences_total": 0, "unstable": 0}
                return dict(result, **self._counted(digests))
            digests = self._digests(say, before)
            result = self._differences(digests)
        except BaseException:
            with contextlib.suppress(HostFailed):
                self._end(after)
            raise
        self._end(after)
        return dict(result, **self._counted(digests))

    @staticmethod
    def _counted(digests: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        return {
            "counts": {side: _counts(digests[side]) for side in SIDES},
            "owners": digests["source"].get("owners"),
        }

    def quick_digest_step(self, side: str, then: list[dict[str, Any]]) -> dict[str, Any]:
        """Give the step that reads a small tree at once; ``then`` are the steps that follow where it is one."""
        return {"do": "quick_digest", "request": self._request(side), "seconds": _QUICK_DIGEST, "then": then}

    def _quick_digest(
        self, before: Steps, after: Steps, quick_digests: Mapping[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Give both digests where both trees can be read at once and are equal, which most often is so; else nothing.

        Nothing is kept of trees that are equal, so that no execution is needed to clear it.
        """
        if any(found["digest"] is None for found in quick_digests.values()):
            return {}
        steps = {
            side: [*before[side], self.quick_digest_step(side, after[side])]
            for side in SIDES
            if side not in quick_digests
        }
        given = run_parallel({side: partial(self.runners[side].run, *asked) for side, asked in steps.items()})
        found = {**quick_digests, **{side: results[-1] for side, results in given.items()}}
        digests = {side: found[side]["digest"] for side in SIDES}
        if any(digest is None or digest["errors_total"] for digest in digests.values()):
            return {}
        return {} if differing_buckets(digests["source"], digests["dest"]) else digests

    def _end(self, after: Steps) -> None:
        """Leave nothing on either host, whatever happens to the other."""
        run_parallel({side: partial(self._end_side, side, after[side]) for side in SIDES})

    def _end_side(self, side: str, after: list[dict[str, Any]]) -> None:
        folder = self._folder(side)
        self.runners[side].run({"do": "stop", "succeeded": True, **folder}, {"do": "clear", **folder}, *after)

    def _folder(self, side: str) -> dict[str, str]:
        return {"id": hashlib.sha256(f"compare {self.identity}".encode()).hexdigest()[:16], "side": side}

    def _digests(self, say: Callable[[str], None], before: Steps) -> dict[str, dict[str, Any]]:
        started = run_parallel(
            {side: partial(self.runners[side].run, *before[side], self._start_step(side)) for side in SIDES}
        )
        digests = {}
        for side in SIDES:
            status = parse_status(started[side][-1])
            if status["alive"]:
                status = watch(self.runners[side], self._folder(side), f"{self.label} ({side})", say, self.patience)
            if status["state"] != "finished":
                raise ComparisonFailed(f"{self.runners[side].name}: {status.get('failure') or status['state']}")
            digests[side] = status["digest"]
        return digests

    def _request(self, side: str) -> dict[str, Any]:
        return {
            "side": side,
            "part": "compare",
            "root": self.roots[side],
            "rules": self.rules,
            "only": self.only,
            "one_file_system": self.one_file_system and side == "source",
            "fields": self.fields,
            "owner_map": self.owner_map if side == "source" else None,
            "count_owners": self.count_owners if side == "source" else None,
            "special_files": list(self.special_files),
            "algorithm": self.algorithm,
            "content_of": self.content_of,
            "peer_name": self.runners["dest" if side == "source" else "source"].name,
        }

    def _start_step(self, side: str) -> dict[str, Any]:
        return {
            "do": "start",
            "kind": "digest",
            "request": self._request(side),
            "until": [],
            "wait": _SHORT,
            **self._folder(side),
        }

    def _differences(self, digests: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        for side in SIDES:
            if digests[side]["errors_total"]:
                first = digests[side]["errors"][0]
                raise ComparisonFailed(
                    f"{digests[side]['errors_total']} entries on {self.runners[side].name} could not be read, "
                    f"{first['path']} ({first['reason']}) among them: nothing is proven without them"
                )
        left = set(differing_buckets(digests["source"], digests["dest"]))
        found: list[dict[str, Any]] = []
        total = unstable = 0
        absent: list[str] | None = None
        while left:
            listing = self._ask("source", ask="listing", buckets=sorted(left))
            left -= set(listing["buckets"])
            if absent is None:
                absent = self._absent(listing, left)
            room = max(0, self.limit - len(found))
            explained = self._ask("dest", ask="explain", listing=listing, limit=room, extras=self.extra, absent=absent)
            total += explained["differs"] + explained["missing"] + explained["extra"]
            unstable += explained["unstable"]
            details = self._ask("source", ask="details", keys=explained["ask"])["details"] if explained["ask"] else []
            found += report(explained, details)[:room]
        return {"differences": found, "differences_total": total, "unstable": unstable}

    def _absent(self, listing: Mapping[str, Any], left: AbstractSet[int]) -> list[str]:
        """Return the names that the destination alone has, of files with several, where one portion does not say it."""
        if not left or "links" not in self.fields:
            return []
        found: list[str] = self._ask("dest", ask="absent", listing=listing)["absent"]
        while left:
            listing = self._ask("source", ask="listing", buckets=sorted(left))
            left = left - set(listing["buckets"])
            found += self._ask("dest", ask="absent", listing=listing)["absent"]
        return found

    def _ask(self, side: str, **question: Any) -> dict[str, Any]:
        step = {"do": "drill_down", "changed_after_ns": self.changed_after_ns, **question, **self._folder(side)}
        return self.runners[side].run(step)[0]


def _counts(digest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: digest[name] for name in ("entries", "types", "bytes")}
