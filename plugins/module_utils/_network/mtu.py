# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MTUs: their bounds, and in which order they are changed. Private to the collection.

What lies on top must fit into what is below at every moment: the kernel refuses a VLAN that is larger than its parent,
and cuts a VLAN down with its parent. So children are lowered before their parents, and parents raised before children.
"""

from __future__ import annotations

from typing import Mapping

from .link import Links

SMALLEST_IPV4, SMALLEST_IPV6 = 68, 1280  # bytes: RFC 791, RFC 8200
LARGEST = 65535


def depth(name: str, links: Links, seen: tuple[str, ...] = ()) -> int:
    """Return how many links lie below this one: 0 for a card, 1 for a VLAN on it or a bond of cards."""
    link = links.get(name)
    if not link or name in seen:
        return 0
    below = [other for other in (link.parent, *link.ports) if other]
    return max((depth(other, links, (*seen, name)) + 1 for other in below), default=0)


def mtu_steps(wanted: Mapping[str, int | None], links: Links, system: str = "Linux") -> list[list[str]]:
    """Return the commands that bring the MTUs of links that exist from what they are to what is wanted."""
    lower: list[tuple[str, int]] = []
    raised: list[tuple[str, int]] = []
    for name, mtu in wanted.items():
        now = links[name].mtu if name in links else None
        if mtu and now and mtu != now:
            (lower if mtu < now else raised).append((name, mtu))
    lower.sort(key=lambda change: (-depth(change[0], links), change[0]))
    raised.sort(key=lambda change: (depth(change[0], links), change[0]))
    return [mtu_command(name, mtu, system) for name, mtu in lower + raised]


def mtu_command(name: str, mtu: int, system: str = "Linux") -> list[str]:
    """Return the command that sets one MTU."""
    if system == "FreeBSD":
        return ["ifconfig", name, "mtu", str(mtu)]
    return ["ip", "link", "set", "dev", name, "mtu", str(mtu)]
