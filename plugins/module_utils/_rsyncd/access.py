# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access by address: ``hosts allow`` and ``hosts deny``. Private to the collection. Pure. Source: rsyncd.conf(5)."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Iterable, Mapping


def words(value: str) -> list[str]:
    """Split a list as rsync does."""
    return [word for word in re.split(r"[\s,]+", value.strip()) if word]


def verdict(address: str, allow: Iterable[str], deny: Iterable[str]) -> bool | None:
    """Return whether a client with this address may connect; ``None`` where only a lookup of names can say.

    ``allow`` is asked first, and a match lets in; then ``deny``; who matches neither gets in, unless there is only
    ``allow``.
    """
    allow, deny = list(allow), list(deny)
    if allow:
        found = _any(address, allow)
        if found or found is None:
            return found
        if not deny:
            return False
    found = _any(address, deny)
    return None if found is None else not found


def sources(modules: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the addresses and networks that all modules together admit, sorted; empty if there is no limit."""
    found: set[str] = set()
    for values in modules:
        allow = [str(word) for word in values.get("hosts_allow", ()) or ()]
        if not allow or any(network(word) is None for word in allow):
            return []
        found |= {str(network(word)) for word in allow}
    return sorted(found)


def network(word: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Read an address or a network; None for a name, a pattern, or an address with a scope."""
    try:
        return ipaddress.ip_network(word, strict=False)
    except ValueError:
        pass
    address, slash, mask = word.partition("/")
    try:  # ipaddress does not know IPv6 masks in the form of an address
        bits = bin(int(ipaddress.IPv6Address(mask))).count("1") if slash else 128
        return ipaddress.ip_network(f"{ipaddress.IPv6Address(address)}/{bits}", strict=False)
    except ValueError:
        return None


def _any(address: str, patterns: list[str]) -> bool | None:
    number = ipaddress.ip_address(address)
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    unknown = False
    for pattern in patterns:
        if pattern == "*":
            return True
        net = network(pattern)
        if net is None:
            unknown = True
        elif number in net:
            return True
    return None if unknown else False
