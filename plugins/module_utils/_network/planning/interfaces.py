# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requested links of a host, as checked data. Private to the collection.

``parse_links`` takes the list ``nic_links`` of the role. Nothing here knows what the host is like.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from ..mtu import LARGEST, SMALLEST_IPV4, SMALLEST_IPV6

# The kernel's names of the bonding modes and their numbers: Documentation/networking/bonding.rst
MODES = {
    "balance-rr": 0,
    "active-backup": 1,
    "balance-xor": 2,
    "broadcast": 3,
    "802.3ad": 4,
    "balance-tlb": 5,
    "balance-alb": 6,
}
WITH_PRIMARY = ("active-backup", "balance-tlb", "balance-alb")
WITH_HASH = ("balance-xor", "802.3ad", "balance-tlb")
HASHES = ("layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4")
LACP_RATES = ("slow", "fast")
MIIMON = 100  # milliseconds. The kernel's own default is 0, which means that a dead port is never noticed.
NAME_LENGTH = 15  # IFNAMSIZ of Linux and FreeBSD, without the null

_LINK_KEYS = {"name", "state", "mtu", "bond", "addresses", "gateway", "vlans"}
_BOND_KEYS = {"mode", "miimon", "primary", "ports", "lacp_rate", "xmit_hash_policy", "min_links"}
_VLAN_KEYS = {"id", "name", "mtu", "addresses", "gateway"}


@dataclass(frozen=True)
class Bond:
    """A bond's parameters, with the names and values of the kernel."""

    mode: str
    ports: tuple[str, ...]
    miimon: int = MIIMON  # milliseconds
    primary: str | None = None
    lacp_rate: str | None = None
    xmit_hash_policy: str | None = None
    min_links: int | None = None


@dataclass(frozen=True)
class Device:
    """One network device as it should be. What is None or empty was not told, and is left as it is.

    ``kind`` is ``plain`` (a link that exists), ``bond``, ``port`` (of the bond ``master``) or ``vlan`` (on ``parent``).
    """

    name: str
    kind: str
    mtu: int | None = None
    addresses: tuple[str, ...] = ()
    gateway: str | None = None
    bond: Bond | None = None
    master: str | None = None
    parent: str | None = None
    vlan_id: int | None = None
    vlans: tuple[str, ...] = ()

    @property
    def mtu_only(self) -> bool:
        """Whether nothing but the MTU of a link that exists is wanted."""
        return self.kind == "plain" and not (self.addresses or self.gateway or self.vlans)


@dataclass(frozen=True)
class LinkEntry:
    """One item of ``nic_links``: the link, the ports of its bond before it, its VLANs after it."""

    name: str
    present: bool
    devices: tuple[Device, ...] = field(default=())

    @property
    def top(self) -> Device:
        """The link that the item is named after."""
        return next(device for device in self.devices if device.name == self.name)

    @property
    def ports(self) -> tuple[Device, ...]:
        """The ports of the bond."""
        return tuple(device for device in self.devices if device.kind == "port")

    @property
    def vlans(self) -> tuple[Device, ...]:
        """The VLANs on the link."""
        return tuple(device for device in self.devices if device.kind == "vlan")


def parse_links(raw: Sequence[Mapping[str, Any]]) -> tuple[tuple[LinkEntry, ...], list[str]]:
    """Return the entries, and what is wrong with them as sentences. With problems, the entries are not to be used."""
    problems: list[str] = []
    listed = {str(item.get("name")): item for item in raw}
    port_of = {str(port): str(item.get("name")) for item in raw for port in (item.get("bond") or {}).get("ports") or ()}
    entries = []
    for item in raw:
        name = str(item.get("name") or "")
        where = f"nic_links: {name or 'an item'}"
        problems += _unknown(where, item, _LINK_KEYS) + _name_problems(where, name)
        if item.get("state", "present") not in ("present", "absent"):
            problems.append(f"{where}: state is {item['state']!r}; it must be present or absent")
        if item.get("state") == "absent":
            entries.append(LinkEntry(name, False))
        elif port_of.get(name) == name:
            problems.append(f"{where}: a bond cannot be its own port; name the links that it consists of")
        elif name in port_of:
            problems += _port_problems(where, item, port_of[name], listed[port_of[name]])
        else:
            entries.append(_entry(name, item, problems))
    problems += _twice(raw, entries)
    return tuple(entries), problems


def _entry(name: str, item: Mapping[str, Any], problems: list[str]) -> LinkEntry:
    where = f"nic_links: {name}"
    mtu, addresses, gateway = _layer3(where, item, problems)
    bond = _bond(where, item["bond"], problems) if item.get("bond") else None
    vlans = []
    for vlan in item.get("vlans") or ():
        made = _vlan(name, vlan, problems)
        if made.mtu and mtu and made.mtu > mtu:
            problems.append(
                f"{where}: the VLAN {made.name} wants an MTU of {made.mtu}, above the {mtu} of the link below it, "
                f"which would refuse it; give {name} at least {made.mtu}"
            )
        vlans.append(made)
    if not (bond or vlans or mtu or addresses or gateway):
        problems.append(
            f"{where}: nothing is wanted of it; give it an mtu, a bond, addresses or vlans, or leave it out"
        )
    ports = bond.ports if bond else ()
    top = Device(
        name,
        "bond" if bond else "plain",
        mtu=mtu,
        addresses=addresses,
        gateway=gateway,
        bond=bond,
        vlans=tuple(vlan.name for vlan in vlans),
    )
    return LinkEntry(name, True, (*(Device(port, "port", mtu=mtu, master=name) for port in ports), top, *vlans))


def _vlan(parent: str, vlan: Mapping[str, Any], problems: list[str]) -> Device:
    number = _number(vlan.get("id"))
    name = str(vlan.get("name") or f"{parent}.{vlan.get('id')}")
    where = f"nic_links: {parent}: VLAN {name}"
    problems += _unknown(where, vlan, _VLAN_KEYS) + _name_problems(where, name)
    if number is None or not 1 <= number <= 4094:
        problems.append(f"{where}: the id is {vlan.get('id')!r}; it must be from 1 to 4094")
    mtu, addresses, gateway = _layer3(where, vlan, problems)
    return Device(name, "vlan", mtu=mtu, addresses=addresses, gateway=gateway, parent=parent, vlan_id=number)


def _bond(where: str, bond: Mapping[str, Any], problems: list[str]) -> Bond:
    problems += _unknown(f"{where}: bond", bond, _BOND_KEYS)
    mode = str(bond.get("mode"))
    ports = tuple(str(port) for port in bond.get("ports") or ())
    if mode not in MODES:
        problems.append(f"{where}: the bond's mode is {mode!r}; it must be one of {', '.join(MODES)}")
    if not ports:
        problems.append(f"{where}: the bond has no ports; name at least one")
    primary, rate = bond.get("primary"), bond.get("lacp_rate")
    policy, least = bond.get("xmit_hash_policy"), bond.get("min_links")
    miimon = bond.get("miimon")
    if primary is not None and primary not in ports:
        problems.append(f"{where}: the primary port {primary} is not among the bond's ports ({', '.join(ports)})")
    if policy is not None and policy not in HASHES:
        problems.append(f"{where}: xmit_hash_policy is {policy!r}; it must be one of {', '.join(HASHES)}")
    if rate is not None and rate not in LACP_RATES:
        problems.append(f"{where}: lacp_rate is {rate!r}; it must be slow or fast")
    for key, value, modes in (
        ("primary", primary, WITH_PRIMARY),
        ("lacp_rate", rate, ("802.3ad",)),
        ("min_links", least, ("802.3ad",)),
        ("xmit_hash_policy", policy, WITH_HASH),
    ):
        if value is not None and mode in MODES and mode not in modes:
            problems.append(f"{where}: {key} means nothing in mode {mode}, only in {', '.join(modes)}; leave it out")
    if least is not None and not 0 <= _number(least, -1) <= len(ports):
        problems.append(
            f"{where}: min_links is {least}, and the bond has {len(ports)} ports; with fewer up it would be down"
        )
    if miimon is not None and _number(miimon, 0) < 1:
        problems.append(
            f"{where}: miimon is {miimon}; without link monitoring a dead port is never noticed, so give 100"
        )
    return Bond(
        mode,
        ports,
        MIIMON if miimon is None else _number(miimon, MIIMON),
        primary,
        rate,
        policy,
        None if least is None else _number(least, 0),
    )


def _layer3(where: str, item: Mapping[str, Any], problems: list[str]) -> tuple[Any, tuple[str, ...], Any]:
    """Return the MTU, the addresses and the gateway of a link."""
    networks, addresses = [], []
    for text in item.get("addresses") or ():
        try:
            if "/" not in str(text):
                raise ValueError("it has no prefix length, such as /24")
            interface = ipaddress.ip_interface(str(text))
        except ValueError as error:
            problems.append(f"{where}: the address {text!r} is not usable: {error}")
            continue
        networks.append(interface.network)
        addresses.append(interface.with_prefixlen)
    gateway = item.get("gateway") or None
    if gateway is not None:
        problems += _gateway_problems(where, str(gateway), networks)
    mtu = item.get("mtu")
    if mtu is not None:
        number = _number(mtu, -1)
        least = SMALLEST_IPV6 if any(network.version == 6 for network in networks) else SMALLEST_IPV4
        if not least <= number <= LARGEST:
            problems.append(f"{where}: the MTU is {mtu}; it must be from {least} to {LARGEST}")
        mtu = number
    return mtu, tuple(addresses), gateway


def _gateway_problems(where: str, gateway: str, networks: Sequence[Any]) -> list[str]:
    try:
        address = ipaddress.ip_address(gateway)
    except ValueError as error:
        return [f"{where}: the gateway is not usable: {error}"]
    if address.is_link_local or any(address in network for network in networks):
        return []
    return [
        f"{where}: the gateway {gateway} is in the network of none of its addresses "
        f"({', '.join(map(str, networks)) or 'it has none'}), so it could not be reached; correct one of them"
    ]


def _port_problems(where: str, item: Mapping[str, Any], bond: str, bond_item: Mapping[str, Any]) -> list[str]:
    """A port may be listed as well, for its MTU alone, which must be the bond's."""
    problems = []
    for key in ("bond", "addresses", "gateway", "vlans"):
        if item.get(key):
            problems.append(f"{where}: it is a port of {bond}, so it cannot have {key}; give them to {bond}")
    if item.get("mtu") is not None and item.get("mtu") != bond_item.get("mtu"):
        problems.append(
            f"{where}: the MTU is {item['mtu']}, and that of its bond {bond} is {bond_item.get('mtu') or 'not given'}; "
            "a bond sets the MTU of its ports, so give it to the bond"
        )
    return problems


def _twice(raw: Sequence[Mapping[str, Any]], entries: Sequence[LinkEntry]) -> list[str]:
    """Find names that stand for two things."""
    problems = []
    names = [str(item.get("name")) for item in raw]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"nic_links: {name} is listed {names.count(name)} times; put what belongs to it into one item")
    owners: dict[str, list[str]] = {}
    for entry in entries:
        for device in entry.devices:
            owners.setdefault(device.name, []).append(entry.name)
    for name, of in sorted(owners.items()):
        if len(of) > 1 and names.count(name) < 2:
            problems.append(f"nic_links: {name} is used by {' and by '.join(of)}; it can belong to one of them only")
    return problems


def _unknown(where: str, item: Mapping[str, Any], known: set[str]) -> list[str]:
    return [
        f"{where}: there is no option {key}; known are {', '.join(sorted(known))}" for key in sorted(set(item) - known)
    ]


def _name_problems(where: str, name: str) -> list[str]:
    if not re.fullmatch(r"[A-Za-z0-9_.:-]+", name) or name in (".", "..") or name.startswith("-"):
        return [f"{where}: {name!r} is no name of a network device"]
    if len(name) > NAME_LENGTH:
        return [f"{where}: the name {name} has {len(name)} characters; a network device's may have {NAME_LENGTH}"]
    return []


def _number(value: Any, otherwise: Any = None) -> Any:
    """Return an integer; a boolean or anything else that is none gives ``otherwise``."""
    if isinstance(value, bool):
        return otherwise
    try:
        return int(value)
    except (TypeError, ValueError):
        return otherwise
