# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a manager cannot do, or would do only by changing what the admin wrote."""

from __future__ import annotations

from typing import Sequence

from ..host import Host
from ..link import ManagerDetail
from . import render_freebsd, render_ifcfg
from .interfaces import Device, Entry


def manager_problems(manager: str, entry: Entry, facts: Host, edit_existing: bool) -> list[str]:
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


def _others(manager: str, entry: Entry, facts: Host) -> list[str]:
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


def _ifupdown(entry: Entry, facts: Host, _edit_existing: bool) -> list[str]:
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


def _networkmanager(entry: Entry, facts: Host, edit_existing: bool) -> list[str]:
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


def _ifcfg(entry: Entry, facts: Host, edit_existing: bool) -> list[str]:
    if edit_existing:
        return []
    return [
        f"{entry.name}: {path} is not the role's and would have to be changed, since there are no drop-ins for ifcfg "
        "files. Allow it with nic_edit_existing: true, and look at it first with --check --diff"
        for path in render_ifcfg.edits(entry, facts)
    ]


def _freebsd(entry: Entry, facts: Host, _edit_existing: bool) -> list[str]:
    problems = render_freebsd.unsupported(entry)
    for path in facts.managers["freebsd"].get("blocked", []):
        problems.append(
            f"{entry.name}: {path} is a file, and the role's settings would go into a folder of that name; move it to "
            f"{path}/local"
        )
    return problems
