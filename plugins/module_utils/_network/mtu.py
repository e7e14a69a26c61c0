# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MTUs: their bounds, and in which order they are changed. Private to the collection.

What lies on top must fit into what is below at every moment: the kernel refuses a VLAN that is larger than its parent,
and cuts a VLAN down with its parent. So children are lowered before their parents, and parents raised before children.
"""

from __future__ import annotations

from typing import Any, Mapping

SMALLEST_IPV4, SMALLEST_IPV6 = 68, 1280  # bytes: RFC 791, RFC 8200
LARGEST = 65535


def depth(name: str, links: Mapping[str, Mapping[str, Any]], seen: tuple[str, ...] = ()) -> int:
    """Give how many links lie below this one: 0 for a card, 1 for a VLAN on it or a bond of cards."""
    link = links.get(name)
    if not link or name in seen:
        return 0
    below = [other for other in (link.get("parent"), *link.get("ports", ())) if other]
    return max((depth(other, links, (*seen, name)) + 1 for other in below), default=0)


def mtu_steps(
    wanted: Mapping[str, int], links: Mapping[str, Mapping[str, Any]], system: str = "Linux"
) -> list[list[str]]:
    """Give the commands that bring the MTUs of links that exist from what they are to what is wanted."""
    changes = {
        name: mtu for name, mtu in wanted.items() if mtu and name in links and links[name]["mtu"] not in (None, mtu)
    }
    lower = sorted((n for n in changes if changes[n] < links[n]["mtu"]), key=lambda n: (-depth(n, links), n))
    raised = sorted((n for n in changes if changes[n] > links[n]["mtu"]), key=lambda n: (depth(n, links), n))
    return [mtu_command(name, changes[name], system) for name in lower + raised]


def mtu_command(name: str, mtu: int, system: str = "Linux") -> list[str]:
    """Give the command that sets one MTU."""
    if system == "FreeBSD":
        return ["ifconfig", name, "mtu", str(mtu)]
    return ["ip", "link", "set", "dev", name, "mtu", str(mtu)]
