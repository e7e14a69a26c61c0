# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of ifupdown.

interfaces(5): several stanzas for one interface are all applied, so what is told of a link that the admin's file has
stands in a stanza of our own. Bonds need the package ifenslave, VLANs none.
"""

from __future__ import annotations

from ..host import Host
from .files import File, family, make, of_family
from .interfaces import Bond, Device, LinkEntry

FOLDER = "/etc/network/interfaces.d"


def render(entry: LinkEntry, facts: Host, header: str) -> list[File]:
    """Return the one file of an entry, with an ending that the main file includes."""
    lines: list[str] = []
    for device in entry.devices:
        if device.kind == "port":
            continue  # bond-slaves names it, and the bond sets its MTU
        stanzas = _stanzas(device, facts)
        lines += ["", *stanzas] if stanzas else []
    suffix = facts.managers["ifupdown"].get("suffix") or ""
    return [make(f"{FOLDER}/longhaul-nic-{entry.name}{suffix}", entry, header, lines[1:])]


def _stanzas(device: Device, facts: Host) -> list[str]:
    detail = facts.links[device.name].detail if device.name in facts.links else {}
    is_known = bool(detail.get("file")) and not detail.get("own", False)
    lines = [] if is_known else [f"auto {device.name}"]
    options = _options(device)
    if is_known and not (options or device.addresses):
        return []  # a parent of VLANs, of which nothing is told
    families = [version for version in (4, 6) if of_family(device.addresses, version)]
    if not families:
        return [*lines, f"iface {device.name} inet manual", *options]
    for version in families:
        word = "inet" if version == 4 else "inet6"
        first, *more = of_family(device.addresses, version)
        lines += [f"iface {device.name} {word} static", f"    address {first}"]
        if device.gateway and family(device.gateway) == version:
            lines.append(f"    gateway {device.gateway}")
        # only once: a bond or an MTU belongs to the link, not to an address family
        lines += options if version == families[0] else []
        for address in more:
            lines += ["", f"iface {device.name} {word} static", f"    address {address}"]
        lines.append("")
    return lines[:-1]


def _options(device: Device) -> list[str]:
    lines = [f"    mtu {device.mtu}"] if device.mtu else []
    if device.bond:
        lines += _bond(device.bond)
    if device.kind == "vlan":
        lines += [f"    vlan-raw-device {device.parent}", f"    vlan-id {device.vlan_id}"]
    return lines


def _bond(bond: Bond) -> list[str]:
    values = {
        "bond-slaves": " ".join(bond.ports),
        "bond-mode": bond.mode,
        "bond-miimon": bond.miimon,
        "bond-primary": bond.primary,
        "bond-lacp-rate": bond.lacp_rate,
        "bond-xmit-hash-policy": bond.xmit_hash_policy,
        "bond-min-links": bond.min_links,
    }
    return [f"    {key} {value}" for key, value in values.items() if value is not None]
