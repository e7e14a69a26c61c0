# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Problems of the requested links: on this host, and with the manager that would set them up. Pure."""

from __future__ import annotations

from typing import Mapping, Sequence

from ..host import Host
from ..link import Link, ManagerDetail
from . import render_freebsd, render_ifcfg
from .interfaces import Device, LinkEntry


def problems_on_host(entries: Sequence[LinkEntry], facts: Host) -> list[str]:
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


def manager_problems(manager: str, entry: LinkEntry, facts: Host, edit_existing: bool) -> list[str]:
    """Return sentences for one entry under the manager that was chosen for it."""
    has = facts.managers.get(manager)
    if not has or not has.get("present"):
        return [
            f"{entry.name}: {manager} was chosen, and it is not installed on this host; install it, or choose another "
            "with nic_manager"
        ]
    others = _others(manager, entry, facts)
    if others:
        return others
    look = {"ifupdown": _ifupdown, "networkmanager": _networkmanager, "ifcfg": _ifcfg, "freebsd": _freebsd}.get(manager)
    return look(entry, facts, edit_existing) if look else []


# The second is what does the work of the first.
_COMPATIBLE = {("netplan", "networkd"), ("netplan", "networkmanager"), ("ifcfg", "networkmanager")}


def _others(manager: str, entry: LinkEntry, facts: Host) -> list[str]:
    """Two programs that set up one link undo each other's work."""
    problems = []
    for device in entry.devices:
        current = facts.links[device.name].manager if device.name in facts.links else None
        if current and current != manager and (current, manager) not in _COMPATIBLE:
            problems.append(
                f"{device.name} is managed by {current} now, and nic_manager says {manager}; two programs that set up "
                f"one link undo each other's work. Take it out of {current} first, or leave nic_manager out"
            )
    return problems


# The programs of commands that reach nobody where these do not run, and what starts them.
_NEED = (
    ("networkctl", "networkd", "systemd-networkd"),
    ("nmcli", "networkmanager", "NetworkManager"),
)


def find_stopped(commands: Sequence[Sequence[str]], facts: Host) -> list[str]:
    """Return why the commands of a plan would fail: the manager that they talk to does not run."""
    return [
        f"{unit} does not run on this host, so it would apply nothing. Start it if it is to manage the links "
        f"(systemctl enable --now {unit}), choose what manages them with nic_manager, or write the "
        "files for the next boot alone with nic_allow_restart: false"
        for program, manager, unit in _NEED
        if any(command[0] == program for command in commands)
        and facts.managers.get(manager, {}).get("running") is False
    ]


def _detail(device: Device, facts: Host) -> ManagerDetail:
    link = facts.links.get(device.name)
    return link.detail if link else {}


def _ifupdown(entry: LinkEntry, facts: Host, _edit_existing: bool) -> list[str]:
    problems = []
    if facts.managers["ifupdown"].get("suffix") is None:
        problems.append(
            f"{entry.name}: /etc/network/interfaces reads no files from /etc/network/interfaces.d, where its settings "
            "would be put; add the line: source /etc/network/interfaces.d/*"
        )
    for device in entry.devices:
        detail = _detail(device, facts)
        file = detail.get("file")
        if device.kind in ("port", "bond", "vlan") and file and not detail.get("own"):
            problems.append(
                f"{device.name}: {file} configures it already, and two stanzas for a {device.kind} contradict each "
                "other; take it out there first"
            )
    return problems


def _networkmanager(entry: LinkEntry, facts: Host, edit_existing: bool) -> list[str]:
    problems = []
    for device in entry.devices:
        detail = _detail(device, facts)
        profile = detail.get("connection")
        if device.kind != "plain" or not profile or profile.startswith("longhaul-nic-"):
            continue
        if (device.addresses or device.gateway) and not edit_existing:
            problems.append(
                f"{device.name}: it runs by the profile {profile!r}, and NetworkManager knows no additions to a "
                "profile. Add the addresses there, or let a profile of the role take its place with "
                "nic_edit_existing: true (the old one stays on disk)"
            )
        own = str(detail.get("mtu") or "auto")
        if device.mtu and not (device.addresses or device.gateway) and own not in ("auto", "0", str(device.mtu)):
            problems.append(
                f"{device.name}: its profile {profile!r} sets an MTU of {own} itself, which counts more than a "
                f"default. Take it out: nmcli connection modify {profile!r} 802-3-ethernet.mtu 0"
            )
    return problems


def _ifcfg(entry: LinkEntry, facts: Host, edit_existing: bool) -> list[str]:
    if edit_existing:
        return []
    return [
        f"{entry.name}: {path} is not the role's and would have to be changed, since there are no drop-ins for ifcfg "
        "files. Allow it with nic_edit_existing: true, and look at it first with --check --diff"
        for path in render_ifcfg.edits(entry, facts)
    ]


def _freebsd(entry: LinkEntry, facts: Host, _edit_existing: bool) -> list[str]:
    problems = render_freebsd.unsupported(entry)
    for path in facts.managers["freebsd"].get("blocked", []):
        problems.append(
            f"{entry.name}: {path} is a file, and the role's settings would go into a folder of that name; move it to "
            f"{path}/local"
        )
    return problems
