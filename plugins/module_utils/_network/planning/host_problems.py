# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in the way of the links that are wanted, on this host."""

from __future__ import annotations

from typing import Mapping, Sequence

from ..host import Host
from ..link import Link
from .interfaces import Device, Entry


def problems_on_host(entries: Sequence[Entry], facts: Host) -> list[str]:
    """Return sentences; with any of them nothing must be changed."""
    problems: list[str] = []
    wanted = {device.name: device for entry in entries for device in entry.devices}
    for device in wanted.values():
        link = facts.links.get(device.name)
        if device.kind in ("plain", "port"):
            problems += _missing(device, link, facts)
        if device.kind == "port" and link:
            problems += _port(device, link, facts)
        if device.kind in ("bond", "vlan") and link:
            problems += _other_kind(device, link)
        if device.mtu and link:
            problems += _limits(device.name, device.mtu, link)
        if device.mtu:
            problems += _family(device, wanted, facts)
    problems += _taken_addresses(wanted, facts)
    return list(dict.fromkeys(problems))


def _missing(device: Device, link: Link | None, facts: Host) -> list[str]:
    if link is None:
        what = f"the port {device.name} of {device.master}" if device.master else device.name
        there = ", ".join(sorted(name for name in facts.links if name != "lo")) or "none"
        return [
            f"{what} is not there; this host has {there}. Correct the name, or give it a bond or a VLAN id to be made"
        ]
    if link.kind == "loopback":
        return [f"{device.name} is the loopback device; leave it as it is"]
    return []


def _limits(name: str, mtu: int, link: Link) -> list[str]:
    """The driver's own limits, which the kernel enforces."""
    if link.max_mtu and mtu > link.max_mtu:
        return [f"{name}: its driver takes an MTU of at most {link.max_mtu}, and {mtu} is wanted; lower the mtu"]
    if link.min_mtu and mtu < link.min_mtu:
        return [f"{name}: its driver takes an MTU of at least {link.min_mtu}, and {mtu} is wanted; raise the mtu"]
    return []


def _family(device: Device, wanted: Mapping[str, Device], facts: Host) -> list[str]:
    """What is above must fit into what is below, as it will be after the change."""
    problems = []
    link = facts.links.get(device.name)
    mtu = device.mtu or 0
    for child in link.children if link else ():
        above = wanted[child].mtu if child in wanted and wanted[child].mtu else facts.links[child].mtu
        if above and above > mtu:
            problems.append(
                f"{device.name}: an MTU of {mtu} is below the {above} of {child}, which is on top of it and would be "
                f"cut down with it; lower {child} as well, or give {device.name} at least {above}"
            )
    below = device.parent or (link.parent if link else None)
    if below and below in facts.links:
        has = wanted[below].mtu if below in wanted and wanted[below].mtu else facts.links[below].mtu
        if has and mtu > has:
            problems.append(
                f"{device.name}: an MTU of {mtu} is above the {has} of {below}, which it is on top of, and the kernel "
                f"refuses that; give {below} an mtu of at least {mtu} as well"
            )
    master = facts.links.get(link.master) if link and link.master else None
    if master and device.kind == "plain" and master.kind == "bond":
        problems.append(
            f"{device.name} is a port of {master.name}, which sets the MTU of its ports; give the mtu to "
            f"{master.name} instead"
        )
    return problems


def _port(device: Device, link: Link, facts: Host) -> list[str]:
    """A link that becomes a port loses its addresses."""
    name, bond = device.name, device.master
    if link.master and link.master != bond:
        return [
            f"{name} is a port of {link.master} already, so it cannot become one of {bond}; take it out of "
            f"{link.master} first"
        ]
    if link.master == bond:
        return []
    if name == facts.connection.link:
        return [
            f"{name} carries the address in use ({facts.connection.address}), over which this host is reached; "
            f"as a port of {bond} it would lose it. Reach the host by another link, or build the bond from its console"
        ]
    fixed = [one.address for one in link.addresses if one.fixed]
    if fixed:
        return [
            f"{name} has the address {', '.join(fixed)}, which it would lose as a port of {bond}; take it out of its "
            f"configuration first, and give it to {bond} where it is still needed"
        ]
    if link.children:
        return [
            f"{name} has {', '.join(link.children)} on top of it, which would be cut off when it becomes a port of "
            f"{bond}; put them on {bond} first"
        ]
    return []


def _other_kind(device: Device, link: Link) -> list[str]:
    if link.kind != device.kind:
        return [
            f"{device.name} is wanted as a {device.kind}, and there is a link of that name already, of kind "
            f"{link.kind}; choose another name, or remove it first"
        ]
    if device.kind == "vlan" and link.parent and link.parent != device.parent:
        return [
            f"{device.name} is wanted on {device.parent}, and it is on {link.parent} now; choose another name, or "
            "remove it first"
        ]
    return []


def _taken_addresses(wanted: Mapping[str, Device], facts: Host) -> list[str]:
    """An address on two links makes one of them unreachable."""
    problems = []
    owners = {one.bare: name for name, link in facts.links.items() for one in link.addresses if one.scope == "global"}
    given: dict[str, str] = {}
    for device in wanted.values():
        for address in device.addresses:
            plain = address.split("/")[0]
            for other in (owners.get(plain), given.get(plain)):
                if other and other != device.name:
                    problems.append(
                        f"{device.name}: {other} has the address {plain}, too; on two links it answers on one of them "
                        "only. Take it from one of them"
                    )
            given[plain] = device.name
    return problems
