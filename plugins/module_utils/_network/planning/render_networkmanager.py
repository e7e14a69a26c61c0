# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of NetworkManager.

Keyfiles: nm-settings-keyfile(5). A profile has no drop-ins, but NetworkManager.conf(5) may give the MTU of all profiles
that do not set one, for one device: that is how the MTU of a link is set whose profile is the admin's.
"""

from __future__ import annotations

import uuid

from ..host import Host
from .files import File, family, make, of_family
from .interfaces import Bond, Device, LinkEntry

PROFILES = "/etc/NetworkManager/system-connections"
SETTINGS = "/etc/NetworkManager/conf.d"
_SPACE = uuid.UUID("6f1e7b1c-6a54-4a0e-9d0f-6a1d5c1c9e55")  # of the names below; the same name gives the same UUID
PREFERRED = 100  # a profile of ours is taken before an admin's for the same link


def render(entry: LinkEntry, facts: Host, header: str) -> list[File]:
    """Return the files of an entry."""
    files = []
    for device in entry.devices:
        if device.kind == "plain" and not (device.addresses or device.gateway or our_profile(device.name, facts)):
            if not device.mtu:
                continue  # a parent of VLANs, of which nothing is told
            lines = [
                f"[connection-longhaul-nic-{device.name}]",
                f"match-device=interface-name:{device.name}",
                f"ethernet.mtu={device.mtu}",
            ]
            files.append(make(f"{SETTINGS}/90-longhaul-nic-{device.name}.conf", entry, header, lines))
        else:
            path = f"{PROFILES}/longhaul-nic-{device.name}.nmconnection"
            files.append(make(path, entry, header, _profile(device), 0o600))
    return files


def our_profile(name: str, facts: Host) -> bool:
    """Return whether the link runs by a profile of ours already."""
    detail = facts.links[name].detail if name in facts.links else {}
    return detail.get("connection") == profile_name(name)


def profile_name(device: str) -> str:
    """Return the name of our profile for a device."""
    return f"longhaul-nic-{device}"


def _profile(device: Device) -> list[str]:
    kind = {"bond": "bond", "vlan": "vlan"}.get(device.kind, "ethernet")
    name = profile_name(device.name)
    lines = ["[connection]", f"id={name}", f"uuid={uuid.uuid5(_SPACE, name)}", f"type={kind}"]
    lines += [f"interface-name={device.name}", f"autoconnect-priority={PREFERRED}"]
    if device.master:
        lines += [f"master={device.master}", "slave-type=bond"]
    elif device.bond:
        lines.append("autoconnect-slaves=1")
    if device.mtu:
        lines += ["", "[ethernet]", f"mtu={device.mtu}"]
    if device.bond:
        lines += ["", "[bond]", *_bond(device.bond)]
    if device.kind == "vlan":
        # flags=1 is reorder_hdr, the kernel's and nmcli's default
        lines += ["", "[vlan]", "flags=1", f"id={device.vlan_id}", f"parent={device.parent}"]
    return lines if device.master else [*lines, *_addresses(device, 4), *_addresses(device, 6)]


def _bond(bond: Bond) -> list[str]:
    values = {
        "mode": bond.mode,
        "miimon": bond.miimon,
        "primary": bond.primary,
        "lacp_rate": bond.lacp_rate,
        "xmit_hash_policy": bond.xmit_hash_policy,
        "min_links": bond.min_links,
    }
    return [f"{key}={value}" for key, value in values.items() if value is not None]


def _addresses(device: Device, version: int) -> list[str]:
    addresses = of_family(device.addresses, version)
    lines = ["", f"[ipv{version}]"]
    if not addresses:
        return [*lines, "method=disabled" if version == 4 else "method=link-local"]
    lines.append("method=manual")
    lines += [f"address{number}={address}" for number, address in enumerate(addresses, 1)]
    if device.gateway and family(device.gateway) == version:
        lines.append(f"gateway={device.gateway}")
    return lines
