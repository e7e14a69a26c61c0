# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ping says, and what that means for the largest packet on a path. Private to the collection.

The messages are those of iputils and of FreeBSD's ping. A packet is as large as an MTU says: with its IP header.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP before ping's payload
SMALL = 84  # bytes: what ping sends by default, in IPv4
LARGEST = 65535  # bytes of a packet in IPv4 (RFC 791); the MTU of lo can be one more
AT_ONCE = 16  # pings
COMMON = (9216, 9001, 9000, 8996, 8896, 4352, 2304, 1500, 1492, 1480, 1460, 1450, 1420, 1400, 1280, 576)


class Answer(NamedTuple):
    """What one call of ping came to. ``local_mtu`` and ``router_mtu`` are 0 where they were not said."""

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


def parse_ping(text: str) -> Answer:
    """Read both outputs of ping together."""
    received = re.search(r"(\d+)(?: packets)? received", text)
    local = re.search(r"message too long(?:,? mtu ?= ?(\d+))?", text, re.IGNORECASE)
    router = re.search(
        r"[Ff]rom (\S+?):?,? .*?(?:frag needed and DF set|packet too big)[^\n]*?mtu ?[=:]? ?(\d+)", text, re.IGNORECASE
    )
    return Answer(
        int(received[1]) if received else 0,
        bool(local),
        int(local[1]) if local and local[1] else 0,
        router[1] if router else "",
        int(router[2]) if router else 0,
        " ".join(text.split())[-500:],
    )


def judge(mtu: int, full: Answer, small: Answer | None, link: str | None, link_mtu: int | None) -> tuple[str, str]:
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
