# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of RHEL's ifcfg files, up to version 9.

A link is one file, and there are no drop-ins: where the admin has a file, what was told is changed in it and the rest
stays, which ``nic_edit_existing`` has to allow.
"""

from __future__ import annotations

import re

from ..file_marks import owner_of
from ..host import Host
from .files import File, family, make, of_family
from .interfaces import MODES, Bond, Device, LinkEntry

FOLDER = "/etc/sysconfig/network-scripts"


def render(entry: LinkEntry, facts: Host, header: str) -> list[File]:
    """Return the files of an entry: new ones, or the admin's with what was told changed."""
    files = []
    for device in entry.devices:
        path = f"{FOLDER}/ifcfg-{device.name}"
        there = facts.managers["ifcfg"].get("files", {}).get(device.name)
        if there and owner_of(there) is None:
            files.append(File(path, _changed(there, device), None, entry.name))
        else:
            lines = [f"{key}={_quote(value)}" for key, value in _new(device).items()]
            files.append(make(path, entry, header, lines))
    return files


def edits(entry: LinkEntry, facts: Host) -> list[str]:
    """Return the administrator's files that would have to be changed."""
    contents = facts.managers["ifcfg"].get("files", {})
    return [
        f"{FOLDER}/ifcfg-{device.name}"
        for device in entry.devices
        if contents.get(device.name)
        and owner_of(contents[device.name]) is None
        and _changed(contents[device.name], device) != contents[device.name]
    ]


def _new(device: Device) -> dict[str, str | int | None]:
    values: dict[str, str | int | None] = {
        "DEVICE": device.name,
        "NAME": device.name,
        "ONBOOT": "yes",
        "BOOTPROTO": "none",
    }
    if device.bond:
        values["TYPE"] = "Bond"
    elif device.kind == "vlan":
        values["TYPE"] = "Vlan"
    else:
        values["TYPE"] = "Ethernet"
    return {**values, **_told(device)}


def _told(device: Device) -> dict[str, str | int | None]:
    """Return the assignments for what the user has set of a device: bond, VLAN, MTU, addresses and gateway."""
    values: dict[str, str | int | None] = {}
    if device.bond:
        values.update({"BONDING_MASTER": "yes", "BONDING_OPTS": _bond(device.bond)})
    if device.master:
        values.update({"MASTER": device.master, "SLAVE": "yes"})
    if device.kind == "vlan":
        values.update({"VLAN": "yes", "PHYSDEV": device.parent, "VLAN_ID": device.vlan_id})
    if device.mtu:
        values["MTU"] = device.mtu
    for number, address in enumerate(of_family(device.addresses, 4)):
        suffix = str(number) if number else ""
        values[f"IPADDR{suffix}"], values[f"PREFIX{suffix}"] = address.split("/")
    six = of_family(device.addresses, 6)
    if six:
        values.update({"IPV6INIT": "yes", "IPV6_AUTOCONF": "no", "IPV6ADDR": six[0]})
        if len(six) > 1:
            values["IPV6ADDR_SECONDARIES"] = " ".join(six[1:])
    if device.gateway:
        values["GATEWAY" if family(device.gateway) == 4 else "IPV6_DEFAULTGW"] = device.gateway
    return values


def _bond(bond: Bond) -> str:
    values = {
        "mode": MODES[bond.mode],
        "miimon": bond.miimon,
        "primary": bond.primary,
        "lacp_rate": bond.lacp_rate,
        "xmit_hash_policy": bond.xmit_hash_policy,
        "min_links": bond.min_links,
    }
    return " ".join(f"{key}={value}" for key, value in values.items() if value is not None)


def _changed(content: str, device: Device) -> str:
    """Set what the user has set of a device in a file of the admin's; each assignment stays where it is."""
    for key, value in _told(device).items():
        line = f"{key}={_quote(value)}"
        changed, count = re.subn(rf"^{key}=.*$", line.replace("\\", r"\\"), content, flags=re.MULTILINE)
        content = changed if count else f"{content.rstrip()}\n{line}\n"
    return content


def _quote(value: str | int | None) -> str:
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z0-9_.:/-]+", text) else f'"{text}"'
