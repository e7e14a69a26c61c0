# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that bring changed files to life. Pure.

Only what changed is touched: an MTU is set on the running link and the manager told of the new files, without taking a
link down.
"""

from __future__ import annotations

from typing import Sequence

from ..commands import RELOAD
from ..host import Host
from .files import family
from .interfaces import Device
from .render_networkmanager import profile_name


def apply_commands(manager: str, devices: Sequence[Device], facts: Host, paths: Sequence[str]) -> list[list[str]]:
    """Return the commands for the devices whose files (``paths``) were changed, parents first; MTUs are set already."""
    simple = bool(devices) and all(device.mtu_only for device in devices)
    if manager == "netplan":
        return _netplan(devices, facts, simple)
    if manager == "networkd":
        return [["networkctl", "reload"]]  # makes new devices, and configures again what has changed files
    if manager == "networkmanager":
        return _networkmanager(devices, paths)
    if manager == "freebsd":
        return _freebsd(devices, simple)
    return _classic(manager, devices, facts, paths)


def renderer_of(devices: Sequence[Device], facts: Host) -> str:
    """Return netplan's backend for links: that of existing links, else the one that runs."""
    for device in devices:
        link = facts.links.get(device.name)
        renderer = link.detail.get("renderer") if link else None
        if renderer:
            return renderer
    by_nm = facts.managers["networkmanager"].get("running") and not facts.managers["networkd"].get("configured")
    return "NetworkManager" if by_nm else "networkd"


def _netplan(devices: Sequence[Device], facts: Host, simple: bool) -> list[list[str]]:
    renderer = renderer_of(devices, facts)
    if renderer == "NetworkManager" and not simple:
        return [["netplan", "apply"]]  # profiles have to be activated
    return [["netplan", "generate"], RELOAD[renderer]]


def _networkmanager(devices: Sequence[Device], paths: Sequence[str]) -> list[list[str]]:
    commands = []
    if any(path.endswith(".conf") for path in paths):
        commands.append(["nmcli", "general", "reload", "conf"])
    profiles = [path for path in paths if path.endswith(".nmconnection")]
    if profiles:
        commands.append(["nmcli", "connection", "load", *profiles])
        # a bond before its ports: they are activated on it
        ordered = sorted(devices, key=lambda device: ("plain", "bond", "port", "vlan").index(device.kind))
        named = {path.rsplit("/", 1)[1].split(".nmconnection")[0] for path in profiles}
        commands += [
            ["nmcli", "connection", "up", "id", profile_name(device.name)]
            for device in ordered
            if profile_name(device.name) in named
        ]
    return commands


def _classic(manager: str, devices: Sequence[Device], facts: Host, paths: Sequence[str]) -> list[list[str]]:
    """ifupdown and ifcfg. What runs is added to, not taken down; what is new is brought up by the manager."""
    commands: list[list[str]] = []
    by_nm = manager == "ifcfg" and facts.managers["networkmanager"].get("running")
    if by_nm and paths:
        commands.append(["nmcli", "connection", "load", *paths])
    for device in devices:
        if device.kind == "plain" or (device.name in facts.links and device.kind == "vlan"):
            commands += _live_addresses(device)
    new = [device for device in devices if device.kind == "bond" or device.name not in facts.links]
    for device in new:
        if by_nm:
            commands.append(["nmcli", "connection", "up", "id", device.name])
            continue
        if device.name in facts.links:
            commands.append(["ifdown", *(["--force"] if manager == "ifupdown" else []), device.name])
        commands.append(["ifup", *(["--force"] if manager == "ifupdown" else []), device.name])
    return commands


def _live_addresses(device: Device) -> list[list[str]]:
    commands = [["ip", "address", "replace", address, "dev", device.name] for address in device.addresses]
    if device.addresses or device.gateway:
        commands.append(["ip", "link", "set", "dev", device.name, "up"])
    if device.gateway:
        version = f"-{family(device.gateway)}"
        commands.append(["ip", version, "route", "replace", "default", "via", device.gateway, "dev", device.name])
    return commands


def _freebsd(devices: Sequence[Device], simple: bool) -> list[list[str]]:
    if simple:
        return []
    commands = []
    for device in devices:
        if device.kind != "plain":
            continue
        for address in device.addresses:
            word = "inet" if family(address) == 4 else "inet6"
            commands.append(["ifconfig", device.name, word, address, "alias"])
    made = [device.name for device in devices if device.kind != "plain"]
    if made:
        commands.append(["service", "netif", "start", *made])
    parents = [device.name for device in devices if device.vlans and device.kind == "plain"]
    if parents:  # VLANs in vlans_IF are made when their parent is started
        commands.append(["service", "netif", "start", *parents])
    if any(device.gateway for device in devices):
        commands.append(["service", "routing", "restart"])
    return commands
