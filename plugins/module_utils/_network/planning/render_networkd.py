# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of systemd-networkd.

Keys: systemd.network(5) and systemd.netdev(5). The first .network file that matches a link counts, so a link that has
one already gets a drop-in beside it; a port gets a file of its own that sorts before the others.
"""

from __future__ import annotations

import posixpath

from ..host import Host
from .files import File, make
from .interfaces import Bond, Device, LinkEntry

FOLDER = "/etc/systemd/network"
DROP_IN = "50-longhaul-nic.conf"
OWN = "longhaul-nic"


def render(entry: LinkEntry, facts: Host, header: str) -> list[File]:
    """Return the files of an entry."""
    files = []
    for device in entry.devices:
        if device.kind in ("bond", "vlan"):
            files.append(make(f"{FOLDER}/10-{OWN}-{device.name}.netdev", entry, header, _netdev(device)))
        files.append(make(_network_path(device, facts), entry, header, _network(device, entry, facts)))
    return files


def _foreign(device: Device, facts: Host) -> str | None:
    """Return the .network file of the admin's that the link has now, or None. A file of ours does not count."""
    detail = facts.links[device.name].detail if device.name in facts.links else {}
    file = detail.get("file") or ""
    return file if file.endswith(".network") and f"-{OWN}-" not in file else None


def _network_path(device: Device, facts: Host) -> str:
    if device.kind == "port":
        return f"{FOLDER}/05-{OWN}-{device.name}.network"
    foreign = _foreign(device, facts)
    if foreign and device.kind == "plain":
        return f"{FOLDER}/{posixpath.basename(foreign)}.d/{DROP_IN}"
    return f"{FOLDER}/10-{OWN}-{device.name}.network"


def _netdev(device: Device) -> list[str]:
    lines = ["[NetDev]", f"Name={device.name}", f"Kind={device.kind}"]
    if device.mtu:
        lines.append(f"MTUBytes={device.mtu}")
    if device.kind == "vlan":
        return [*lines, "", "[VLAN]", f"Id={device.vlan_id}"]
    return [*lines, "", "[Bond]", *_bond(device.bond)] if device.bond else lines


def _bond(bond: Bond) -> list[str]:
    lines = [f"Mode={bond.mode}", f"MIIMonitorSec={bond.miimon}ms"]
    if bond.lacp_rate:
        lines.append(f"LACPTransmitRate={bond.lacp_rate}")
    if bond.xmit_hash_policy:
        lines.append(f"TransmitHashPolicy={bond.xmit_hash_policy}")
    if bond.min_links is not None:
        lines.append(f"MinLinks={bond.min_links}")
    return lines


def _network(device: Device, entry: LinkEntry, facts: Host) -> list[str]:
    drop_in = device.kind == "plain" and _foreign(device, facts)
    lines = [] if drop_in else ["[Match]", f"Name={device.name}", ""]
    if device.mtu:
        lines += ["[Link]", f"MTUBytes={device.mtu}", ""]
    network = []
    if device.kind == "port":
        network.append(f"Bond={device.master}")
        if entry.top.bond and entry.top.bond.primary == device.name:
            network.append("PrimarySlave=true")
        network += ["DHCP=no", "IPv6AcceptRA=no", "LinkLocalAddressing=no"]
    if device.kind == "plain" and not drop_in and not device.addresses:
        network.append("KeepConfiguration=yes")  # networkd would take away what it did not set itself
    network += [f"VLAN={name}" for name in device.vlans]
    network += [f"Address={address}" for address in device.addresses]
    if device.gateway:
        network.append(f"Gateway={device.gateway}")
    if network:
        lines += ["[Network]", *network, ""]
    return lines[:-1] if lines and not lines[-1] else lines
