# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of netplan.

Keys: https://netplan.readthedocs.io/en/stable/netplan-yaml/. Files are merged in the order of their names, later ones
win; a file may only name a link that it or an earlier file defines, so an item is one file.
"""

from __future__ import annotations

import json
from typing import Mapping, Union

from ..host import Host
from .files import File, make
from .interfaces import Bond, Device, LinkEntry

FOLDER = "/etc/netplan"
_Value = Union[None, str, int, "list[str]", "list[dict[str, str]]", "Mapping[str, _Value]"]
_SECTIONS = {"bond": "bonds", "vlan": "vlans", "bridge": "bridges"}


def render(entry: LinkEntry, facts: Host, header: str) -> list[File]:
    """Return the one file of an entry. It holds what was told and nothing else."""
    sections: dict[str, dict[str, _Value]] = {}
    for device in entry.devices:
        section, label = _place(device, facts)
        sections.setdefault(section, {})[label] = _definition(device, facts)
    lines = ["network:", "  version: 2"]
    for section in ("ethernets", "bonds", "bridges", "vlans"):
        if section in sections:
            lines += [f"  {section}:", *_yaml(sections[section], 4)]
    # netplan warns of files that others can read: they may hold secrets
    return [make(f"{FOLDER}/95-longhaul-nic-{entry.name}.yaml", entry, header, lines, 0o600)]


def _place(device: Device, facts: Host) -> tuple[str, str]:
    """Return the section and the name that netplan has for a device, which may not be the link's own."""
    link = facts.links.get(device.name)
    kind = device.kind if device.kind in _SECTIONS or not link else link.kind
    label = link.detail.get("id") if link else None
    return _SECTIONS.get(kind, "ethernets"), label or device.name


def _definition(device: Device, facts: Host) -> dict[str, _Value]:
    made: dict[str, _Value] = {}
    if device.kind == "port":  # an address of a port would be of no use, and a DHCP client on it does harm
        made.update({"dhcp4": False, "dhcp6": False, "accept-ra": False})
    if device.bond:
        made["interfaces"] = [_place(Device(port, "port"), facts)[1] for port in device.bond.ports]
        made["parameters"] = _parameters(device.bond, facts)
    if device.kind == "vlan":
        made["id"] = device.vlan_id
        made["link"] = _place(Device(device.parent or "", "plain"), facts)[1]
    if device.mtu:
        made["mtu"] = device.mtu
    if device.addresses:
        made["addresses"] = list(device.addresses)
    if device.gateway:
        made["routes"] = [{"to": "::/0" if ":" in device.gateway else "0.0.0.0/0", "via": device.gateway}]
    return made


def _parameters(bond: Bond, facts: Host) -> dict[str, _Value]:
    primary = _place(Device(bond.primary, "port"), facts)[1] if bond.primary else None
    values: dict[str, _Value] = {
        "mode": bond.mode,
        "mii-monitor-interval": bond.miimon,
        "primary": primary,
        "lacp-rate": bond.lacp_rate,
        "transmit-hash-policy": bond.xmit_hash_policy,
        "min-links": bond.min_links,
    }
    return {key: value for key, value in values.items() if value is not None}


def _yaml(value: Mapping[str, _Value], indent: int) -> list[str]:
    """Write a mapping as YAML; scalars and lists as JSON, which YAML contains."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            lines += [f"{' ' * indent}{_key(key)}:", *_yaml(inner, indent + 2)]
        else:
            lines.append(f"{' ' * indent}{_key(key)}: {json.dumps(inner)}")
    return lines


def _key(name: str) -> str:
    """A name that YAML would take for a number or a boolean is quoted."""
    return (
        name
        if name[:1].isalpha() and name.lower() not in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
        else json.dumps(name)
    )
