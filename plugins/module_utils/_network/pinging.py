# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Testing a path with ping. Private to the collection; ``ping`` decides what the answers mean."""

from __future__ import annotations

import platform
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from .._core.subprocesses import find_program
from .discover import find_route, read_links
from .link import Link
from .ping import LARGEST, SMALL, Answer, judge, next_sizes, parse_ping, ping_argv
from .programs import run

_SMALL_IPV6 = 104  # bytes: ping's default payload in IPv6


class PingProgram(NamedTuple):
    """Whether paths can be tested here, and the package that brings what they are tested with."""

    usable: bool
    package: str


class PathTest(NamedTuple):
    """What nic_path_info returns."""

    passed: bool
    verdict: str  # see ``judge``
    message: str
    mtu: int  # the size of the packets
    largest: int | None  # that passes
    link: str | None
    link_mtu: int | None
    source: str | None
    sent: int
    received: int


class NoPing(Exception):
    """The path cannot be tested; the message says what to install."""


def check_ping(system: str) -> None:
    """Raise NoPing if ping is missing, or cannot forbid fragmentation."""
    if not find_program("ping"):
        raise NoPing(
            "ping is missing on this host, and the path cannot be proven without it; install iputils-ping (iputils)"
        )
    if system == "Linux":
        said = run(["ping", "-h"]).said
        if "-M" not in said:
            raise NoPing(
                "the ping on this host cannot forbid fragmentation (it has no -M, as that of busybox); install "
                "iputils-ping (iputils)"
            )


def find_ping(system: str) -> PingProgram:
    """Return whether paths can be tested here, and the package that brings what they are tested with."""
    try:
        check_ping(system)
    except NoPing:
        usable = False
    else:
        usable = True
    return PingProgram(usable, "iputils-ping" if find_program("apt-get") else "iputils")


def test_path(address: str, mtu: int | None, count: int, patience: float) -> PathTest:
    """Return how packets of ``mtu`` bytes (None: of the MTU of the link they leave by) get through to an address.

    A peer that gives no answer at all is tried again for ``patience`` seconds: an IPv6 address that was just set, or a
    switch port that just came up, cannot be used at once.
    """
    system = platform.system()
    check_ping(system)
    deadline = time.monotonic() + patience
    while True:
        found = _test(address, mtu, count, system)
        if found.verdict != "unreachable" or time.monotonic() >= deadline:
            return found
        time.sleep(0.5)


def _test(address: str, mtu: int | None, count: int, system: str) -> PathTest:
    route = find_route(address, system)
    link = read_links(system).get(route.dev or "")
    link_mtu = link.mtu if link else None
    size = mtu or min(link_mtu or 1500, LARGEST)
    full = _ping(address, size, count, system)
    small = None if full.received else _ping(address, _smallest(address), count, system)
    largest: int | None = size if full.received else None
    if small and small.received:
        largest = _largest(address, size, system)
        if largest == size - 1:  # the peer may have come up only after the packets of full size had been given up
            full = _ping(address, size, count, system)
            small, largest = (None, size) if full.received else (small, largest)
    verdict, message = judge(size, full, small, route.dev, link_mtu)
    return PathTest(
        passed=verdict == "passed",
        verdict=verdict,
        message=message,
        mtu=size,
        largest=largest,
        link=route.dev,
        link_mtu=link_mtu,
        source=route.source or _source(link, address),
        sent=count,
        received=full.received,
    )


def _source(link: Link | None, address: str) -> str | None:
    """Return an address of the link, where the system does not say which one it takes."""
    own = (one.bare for one in (link.addresses if link else ()) if one.scope == "global")
    return next((one for one in own if (":" in one) == (":" in address)), None)


def _smallest(address: str) -> int:
    return _SMALL_IPV6 if ":" in address else SMALL


def _largest(address: str, fails: int, system: str) -> int:
    passes, tried = _smallest(address), False
    while True:
        sizes = next_sizes(passes, fails, tried)
        if not sizes:
            return passes
        tried = True
        with ThreadPoolExecutor(len(sizes)) as pool:
            answers = list(pool.map(lambda size: _ping(address, size, 1, system), sizes))
        good = [size for size, answer in zip(sizes, answers) if answer.received]
        passes = max([passes, *good])
        fails = min([fails, *(size for size in sizes if size > passes)])


def _ping(address: str, size: int, count: int, system: str) -> Answer:
    ended = run(ping_argv(address, size, count, system), timeout=10 + 2 * count)
    return parse_ping(f"{ended.out}\n{ended.err}")
