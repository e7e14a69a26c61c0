# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test a path with ping: the largest packet that passes, and what stops larger ones. Private to the collection.

The messages are those of iputils and of FreeBSD's ping. A packet is as large as an MTU says: with its IP header.
"""

from __future__ import annotations

import platform
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from .._core.subprocesses import find_program
from .discover import find_route, read_links
from .link import Link
from .programs import run

HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP before ping's payload
SMALL = 84  # bytes: what ping sends by default, in IPv4
LARGEST = 65535  # bytes of a packet in IPv4 (RFC 791); the MTU of lo can be one more
AT_ONCE = 16  # pings
COMMON = (9216, 9001, 9000, 8996, 8896, 4352, 2304, 1500, 1492, 1480, 1460, 1450, 1420, 1400, 1280, 576)
_SMALL_IPV6 = 104  # bytes: ping's default payload in IPv6


class PingReply(NamedTuple):
    """The outcome of one call of ping. ``local_mtu`` and ``router_mtu`` are 0 if they were not said."""

    received: int
    too_long: bool = False
    local_mtu: int = 0
    router: str = ""
    router_mtu: int = 0
    said: str = ""


def ping_argv(address: str, size: int, count: int, system: str = "Linux") -> list[str]:
    """Return the command that sends packets of ``size`` bytes which must not be fragmented."""
    version = 6 if ":" in address else 4
    payload = str(size - HEADERS[version])
    if system == "FreeBSD":
        wait = ["-W", "1000"]  # milliseconds
        return ["ping", f"-{version}", "-n", "-D", "-c", str(count), "-i", "0.3", *wait, "-s", payload, address]
    return ["ping", f"-{version}", "-n", "-M", "do", "-c", str(count), "-i", "0.3", "-W", "1", "-s", payload, address]


def parse_ping(text: str) -> PingReply:
    """Read both outputs of ping together."""
    received = re.search(r"(\d+)(?: packets)? received", text)
    local = re.search(r"message too long(?:,? mtu ?= ?(\d+))?", text, re.IGNORECASE)
    router = re.search(
        r"[Ff]rom (\S+?):?,? .*?(?:frag needed and DF set|packet too big)[^\n]*?mtu ?[=:]? ?(\d+)", text, re.IGNORECASE
    )
    return PingReply(
        int(received[1]) if received else 0,
        bool(local),
        int(local[1]) if local and local[1] else 0,
        router[1] if router else "",
        int(router[2]) if router else 0,
        " ".join(text.split())[-500:],
    )


def evaluate_ping(
    mtu: int, full: PingReply, small: PingReply | None, link: str | None, link_mtu: int | None
) -> tuple[str, str]:
    """Return the verdict and a sentence about it, for packets of ``mtu`` bytes that leave by ``link``.

    Verdicts: ``passed``; ``local`` (this host's link is too small); ``router`` (one on the way said so);
    ``black_hole`` (large packets vanish without a word, small ones pass); ``unreachable`` (nothing passes). ``small``
    is what a small packet came to; None if ``full`` passed.
    """
    if full.received:
        return "passed", f"packets of {mtu} bytes pass"
    if full.router:
        return "router", (
            f"the router {full.router} passes no more than {full.router_mtu} bytes (Frag needed), and {mtu} are "
            "wanted; raise the MTU of its links on this path, or lower that of these hosts"
        )
    if full.too_long:
        if link_mtu is not None and link_mtu >= mtu:
            return "router", (
                f"this host has learned that the path passes no more than {full.local_mtu or 'fewer'} bytes, though "
                f"its own link {link} has an MTU of {link_mtu}: a router on the way has a smaller one. What was "
                "learned is forgotten after ten minutes, or with: ip route flush cache"
            )
        return "local", (
            f"the MTU of {link or 'the link on this host'} is {full.local_mtu or link_mtu or 'too small'}, so packets "
            f"of {mtu} bytes do not even leave it; give it that MTU as well"
        )
    if small and small.received:
        return "black_hole", (
            f"packets of {mtu} bytes vanish without a word, and small ones pass: a layer-2 black hole. A switch port, "
            f"a bridge or the peer's own link takes no frames that large; set {mtu} on every one of them (on a switch "
            "with 18 to 26 bytes to spare for the Ethernet header)"
        )
    return "unreachable", (
        f"not even small packets are answered ({(small or full).said or 'ping said nothing'}); the peer is down, the "
        "address is wrong, or ICMP echo is blocked, without which the path cannot be proven"
    )


def next_sizes(passes: int, fails: int, tried_common: bool) -> list[int]:
    """Return the sizes to try in parallel to find the largest that passes. None: it is ``passes``.

    Common ones come first. What passes is seldom a byte or two above one of those, so the next size is always tried,
    and mostly ends the search.
    """
    if fails - passes <= 1:
        return []
    if not tried_common:
        common = [size for size in COMMON if passes < size < fails]
        if common:
            return sorted(common)
    step = -((passes - fails) // AT_ONCE)  # rounded up
    return sorted({passes + 1, *range(passes + step, fails, step)})


class PingProgram(NamedTuple):
    """Whether paths can be tested here, and the package that brings what they are tested with."""

    usable: bool
    package: str


class PathTest(NamedTuple):
    """What nic_path_info returns."""

    passed: bool
    verdict: str  # see ``evaluate_ping``
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
    verdict, message = evaluate_ping(size, full, small, route.dev, link_mtu)
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


def _ping(address: str, size: int, count: int, system: str) -> PingReply:
    ended = run(ping_argv(address, size, count, system), timeout=10 + 2 * count)
    return parse_ping(f"{ended.out}\n{ended.err}")
