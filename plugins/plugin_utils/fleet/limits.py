# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many pairs may run at once: in all, for each source, for each destination, and for each link between sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

LINK_VARIABLE = "longhaul_link"  # of a host, in the inventory: the link that its transfers use
_KEYS = ("running", "per_source", "per_dest", "links")
_MOST_DISKS = 64  # of one tree


class LimitError(ValueError):
    """A limit that makes no sense, or that could never be met."""


@dataclass(frozen=True)
class Limits:
    """The most pairs that run at once; ``links`` has those of each link by its name."""

    running: int = 50
    per_source: int = 2
    per_dest: int = 1
    links: Mapping[str, int] = field(default_factory=dict)
    given: frozenset[str] = field(default=frozenset(), compare=False)  # names of those that the user gave

    def of(self, resource: Resource) -> int:
        """Return how many pairs may use a resource at once."""
        if resource.kind == "link":
            return self.links[resource.name]
        if resource.kind == "all":
            return self.running
        return self.per_source if resource.kind in ("source", "source disk") else self.per_dest


@dataclass(frozen=True)
class Resource:
    """What pairs share: all, a source, a dest, a link, or a disk of a host (``source disk``, ``dest disk``).

    ``name`` is that of the host, the link, or the host and its disk.
    """

    kind: str
    name: str = ""


@dataclass(frozen=True)
class Pair:
    """The hosts of a job, and the links that its data uses.

    In a cutover the disks of a host count in place of the host, see ``on_disks``.
    """

    source: str
    dest: str
    links: tuple[str, ...] = ()
    disks: tuple[Resource, ...] = ()
    by_disk: frozenset[str] = frozenset()  # the sides on which disks count: source, dest

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All that a running job of this pair uses."""
        links = tuple(Resource("link", name) for name in self.links)
        hosts = (("source", self.source), ("dest", self.dest))
        counted = (Resource(side, name) for side, name in hosts if side not in self.by_disk)
        return (Resource("all"), *counted, *links, *self.disks)


def on_disks(pair: Pair, disks: Mapping[str, Sequence[str]], limits: Limits) -> Pair:
    """Return a pair in its cutover, where nothing serves: it waits for those that use the same disks, and no others.

    ``disks`` are those of each side; those of a side that said nothing count as one. A limit that the user gave
    counts for the host as it does elsewhere.
    """
    by_disk = frozenset(side for side in ("source", "dest") if f"per_{side}" not in limits.given)
    hosts = {"source": pair.source, "dest": pair.dest}
    used = tuple(
        Resource(f"{side} disk", f"{hosts[side]} {disk}")
        for side in sorted(by_disk)
        for disk in dict.fromkeys(disks.get(side, ())[:_MOST_DISKS] or ("",))
    )
    return replace(pair, disks=used, by_disk=by_disk)


def parse_limits(value: Mapping[str, Any], option: str) -> Limits:
    """Return the limits that a user wrote; ``option`` is the variable's name, for messages. Raises LimitError."""
    if not isinstance(value, Mapping):
        raise LimitError(f"{option} is not a dictionary: write it as {{running: 50, per_source: 2, per_dest: 1}}")
    unknown = sorted(set(map(str, value)) - set(_KEYS))
    if unknown:
        raise LimitError(f"{option} has no key {', '.join(unknown)}: it has {', '.join(_KEYS)}")
    links = value.get("links") or {}
    if not isinstance(links, Mapping):
        raise LimitError(f"{option}: links is not a dictionary: write it as {{site-b: {{running: 10}}}}")
    counts = {key: _count(value[key], f"{option}: {key}") for key in _KEYS[:3] if value.get(key) is not None}
    limits = {str(name): _link(one, f"{option}: link {name}") for name, one in links.items()}
    return Limits(**counts, links=limits, given=frozenset(counts))


def links_of(job: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the links of a job: the one that it names, else those that the variables of its hosts name."""
    named = [job["link"]] if job.get("link") else [variables.get(LINK_VARIABLE) for variables in hosts]
    return tuple(sorted({str(name) for name in named if name}))


def check_pairs(pairs: Mapping[str, Pair], limits: Limits, option: str) -> None:
    """Refuse jobs with a link that has no limit. ``pairs`` has them by the name of their job. Raises LimitError."""
    for job, pair in pairs.items():
        for name in pair.links:
            if name not in limits.links:
                known = f"there {_are(limits.links)}" if limits.links else "there are no links"
                raise LimitError(
                    f"job {job} uses the link {name} (link of the job, or {LINK_VARIABLE} of a host), which {option} "
                    f"does not have: {known}. Add links: {{{name}: {{running: 10}}}}, or correct the name"
                )


def _are(links: Mapping[str, int]) -> str:
    return f"{'are' if len(links) > 1 else 'is only'} {', '.join(sorted(links))}"


def _link(value: object, where: str) -> int:
    if not isinstance(value, Mapping) or set(value) != {"running"}:
        raise LimitError(f"{where} must have the key running and no other: {{running: 10}}")
    return _count(value["running"], where)


def _count(value: object, where: str) -> int:
    """Return a number of pairs; jobs under a limit of 0 would wait for ever."""
    try:
        count = int(str(value))
    except ValueError:
        raise LimitError(f"{where} is {value}: give the number of pairs that may run at once") from None
    if count < 1:
        raise LimitError(f"{where} is {count}, so that no job could ever start: give 1 or more")
    return count
