# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of running links, and the way back to it. Private to the collection.

``way_back`` decides by pure comparison; ``bring_back`` does it, and looks again until nothing differs, since managers
work on after their commands have ended.
"""

from __future__ import annotations

import platform
import re
import time
from typing import Any, NamedTuple, Sequence

from .._core.json_shape import as_object, member, texts
from .discover import read_links
from .link import Link, Links, parse_link_table
from .mtu import depth, mtu_steps
from .programs import run

SETTLED = 2  # comparisons in a row without a difference
PAUSE = 0.5  # seconds between two of them
_TRANSIENT = re.compile(r" (linkdown|dead|offload|rt_offload|rt_trap|trap|expires \d+sec|error -?\d+)(?= |$)")


class LinkState(NamedTuple):
    """Links as they ran at one time, and the routes over them as ``ip route show`` prints them."""

    system: str
    links: dict[str, Link]
    routes: list[str]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON holds it."""
        return {**self._asdict(), "links": {name: link.dump() for name, link in self.links.items()}}


def parse_state(value: object) -> LinkState:
    """Read what ``LinkState.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "state")
    return LinkState(member(values, "system", str), parse_link_table(values.get("links")), texts(values, "routes"))


def capture(names: Sequence[str] | None = None) -> LinkState:
    """Return the present state of some links, or of all."""
    system = platform.system()
    links = read_links(system)
    chosen = {name: link for name, link in links.items() if names is None or name in names}
    routes = []
    if system != "FreeBSD":
        for version in ("-4", "-6"):
            for line in run(["ip", version, "route", "show", "table", "main"]).out.splitlines():
                if not line.startswith(("nexthop", "\t", " ")) and _device(line) in chosen:
                    routes.append(f"{version} {_TRANSIENT.sub('', line.strip()).strip()}")
    return LinkState(system, chosen, routes)


def _device(route: str) -> str | None:
    found = re.search(r"\bdev (\S+)", route)
    return found[1] if found else None


def way_back(saved: LinkState, now: LinkState, made: Sequence[str]) -> list[list[str]]:
    """Return the commands from the current state to the saved one. ``made``: links to remove if they are new."""
    before, after = saved.links, now.links
    if saved.system == "FreeBSD":
        gone = [
            ["ifconfig", name, "destroy"] for name in _top_first(made, after) if name in after and name not in before
        ]
        return gone + _freebsd(before, after)
    commands = [
        ["ip", "link", "delete", "dev", name]
        for name in _top_first(made, after)
        if name in after and name not in before
    ]
    if commands:
        return commands  # what lay below them is looked at when they are gone
    both = [name for name in before if name in after]
    for name in both:
        commands += _master(name, before[name], after[name], after)
    commands += mtu_steps({name: before[name].mtu for name in both}, after)
    for name in both:
        if before[name].up != after[name].up:
            commands.append(["ip", "link", "set", "dev", name, "up" if before[name].up else "down"])
        commands += _addresses(name, before[name], after[name])
    there = set(now.routes)
    for route in saved.routes:
        # the kernel's own come with the addresses
        if route not in there and _device(route) in after and " proto kernel" not in route:
            commands.append(["ip", *_route_words(route, "replace")])
    return commands


def _top_first(names: Sequence[str], links: Links) -> list[str]:
    return sorted(names, key=lambda name: -depth(name, links))


def _route_words(route: str, verb: str) -> list[str]:
    version, *words = route.split()
    return [version, "route", verb, *words]


def _master(name: str, before: Link, after: Link, links: Links) -> list[list[str]]:
    if before.master == after.master:
        return []
    if before.master is None:
        return [["ip", "link", "set", "dev", name, "nomaster"]]
    if before.master not in links:
        return []  # its manager has to make it first
    # a bond takes a port only while that is down
    return [
        ["ip", "link", "set", "dev", name, "down"],
        ["ip", "link", "set", "dev", name, "master", before.master],
    ]


def _addresses(name: str, before: Link, after: Link) -> list[list[str]]:
    """Global addresses that are lost are given back, those that came are taken away. The kernel makes the others."""
    had = {one.address: one for one in before.addresses if one.scope == "global"}
    has = {one.address: one for one in after.addresses if one.scope == "global"}
    commands = [
        ["ip", "address", "delete", address, "dev", name]
        for address, one in has.items()
        if address not in had and not one.dynamic
    ]
    for address, one in had.items():
        if address not in has and not (one.dynamic and ":" in address):  # the router announces that again
            brd = ["broadcast", one.broadcast] if one.broadcast else []
            commands.append(["ip", "address", "add", address, *brd, "dev", name])
    return commands


def _freebsd(before: Links, after: Links) -> list[list[str]]:
    both = [name for name in before if name in after]
    commands = mtu_steps({name: before[name].mtu for name in both}, after, "FreeBSD")
    for name in both:
        if before[name].up != after[name].up:
            commands.append(["ifconfig", name, "up" if before[name].up else "down"])
        had = {one.address for one in before[name].addresses if one.scope == "global"}
        has = {one.address for one in after[name].addresses if one.scope == "global"}
        commands += [["ifconfig", name, _inet(one), one, "-alias"] for one in sorted(has - had)]
        commands += [["ifconfig", name, _inet(one), one, "alias"] for one in sorted(had - has)]
    return commands


def _inet(address: str) -> str:
    return "inet6" if ":" in address else "inet"


def bring_back(saved: LinkState, made: Sequence[str], patience: float = 15.0) -> list[str]:
    """Bring the links back, and give what still differs after ``patience`` seconds, as commands that did not help."""
    names = [*saved.links, *made]
    deadline, quiet = time.monotonic() + patience, 0
    while True:
        commands = way_back(saved, capture(names), made)
        if not commands:
            quiet += 1
            if quiet >= SETTLED:
                return []
        else:
            quiet = 0
            failed = [f"{' '.join(argv)}: {ended.said}" for argv in commands for ended in [run(argv)] if ended.code]
            if time.monotonic() >= deadline:
                return failed or [" ".join(argv) for argv in commands]
        time.sleep(PAUSE)
