# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the language of FreeBSD's rc.conf. Not run on FreeBSD.

rc.conf(5): files in /etc/rc.conf.d/netif are read after /etc/rc.conf, so they can add to the admin's values. lagg(4)
takes its MTU from its first port and the others must match; a VLAN in ``vlans_IF`` is made with its parent.
"""

from __future__ import annotations

import re

from ..host import Host
from .files import File, family, make
from .interfaces import Bond, Device, LinkEntry

FOLDER = "/etc/rc.conf.d/netif"
ROUTING = "/etc/rc.conf.d/routing"
_PROTOCOLS = {
    "active-backup": "failover",
    "802.3ad": "lacp",
    "balance-xor": "loadbalance",
    "balance-rr": "roundrobin",
    "broadcast": "broadcast",
}
_HASHES = {"layer2": "l2", "layer2+3": "l2,l3", "layer3+4": "l3,l4"}


def render(entry: LinkEntry, _facts: Host, header: str) -> list[File]:
    """Return the files of an entry: what netif reads, and what routing reads where a gateway is told."""
    lines: list[str] = []
    for device in entry.devices:
        lines += _assignments(device)
    name = re.sub(r"\W", "_", entry.name)
    files = [make(f"{FOLDER}/longhaul_nic_{name}", entry, header, lines)]
    gateways = [device.gateway for device in entry.devices if device.gateway]
    if gateways:
        words = [
            f'{"defaultrouter" if family(gateway) == 4 else "ipv6_defaultrouter"}="{gateway}"' for gateway in gateways
        ]
        files.append(make(f"{ROUTING}/longhaul_nic_{name}", entry, header, words))
    return files


def unsupported(entry: LinkEntry) -> list[str]:
    """Return what FreeBSD's lagg cannot do."""
    problems = []
    for device in entry.devices:
        bond = device.bond
        if bond and bond.mode not in _PROTOCOLS:
            problems.append(
                f"{device.name}: FreeBSD's lagg has no mode like {bond.mode}; it has {', '.join(sorted(_PROTOCOLS))}"
            )
        if bond and bond.xmit_hash_policy not in (None, *_HASHES):
            problems.append(
                f"{device.name}: FreeBSD's lagg has no xmit_hash_policy like {bond.xmit_hash_policy}; it has "
                f"{', '.join(_HASHES)}"
            )
        if bond and bond.min_links:
            problems.append(f"{device.name}: FreeBSD's lagg has nothing like min_links; leave it out")
        if bond and not re.fullmatch(r"lagg\d+", device.name):
            problems.append(f"{device.name}: FreeBSD makes a bond only under a name like lagg0")
        if device.kind == "vlan" and device.name != f"{device.parent}.{device.vlan_id}":
            problems.append(
                f"{device.name}: on FreeBSD the role names a VLAN {device.parent}.{device.vlan_id}; leave its name out"
            )
    return problems


def _assignments(device: Device) -> list[str]:
    variable = _variable(device.name)
    mtu = f"mtu {device.mtu}" if device.mtu else ""
    four = [address for address in device.addresses if family(address) == 4]
    six = [address for address in device.addresses if family(address) == 6]
    lines = []
    if device.kind == "port":
        return [f'ifconfig_{variable}="{_words("up", mtu)}"']
    plain = device.kind == "plain"
    if device.bond:
        # ports have the MTU already, and lagg takes it from them
        lines += _append("cloned_interfaces", device.name)
        lines.append(f'ifconfig_{variable}="{_words(_lagg(device.bond), *_inet(four[:1]), "" if four else "up")}"')
    elif device.kind == "vlan":
        lines.append(f'ifconfig_{variable}="{_words(*_inet(four[:1]), mtu, "" if four else "up")}"')
    elif mtu:
        lines += _append(f"ifconfig_{variable}", mtu)  # what the admin gave stays, and what comes later wins
    if six and not plain:
        lines.append(f'ifconfig_{variable}_ipv6="inet6 {six[0]}"')
    others = [f"inet {address}" for address in (four if plain else four[1:])]
    others += [f"inet6 {address}" for address in (six if plain else six[1:])]
    for other in others:
        lines += _append(f"ifconfig_{variable}_aliases", other)
    for name in device.vlans:
        lines += _append(f"vlans_{variable}", name.rsplit(".", 1)[1])
    return lines


def _append(variable: str, words: str) -> list[str]:
    """Add words to what a variable has; the file may be read twice, so only where they are not there yet."""
    return [
        f'case " ${{{variable}}} " in',
        f'*" {words} "*) ;;',
        f'*) {variable}="${{{variable}:+${{{variable}}} }}{words}" ;;',
        "esac",
    ]


def _lagg(bond: Bond) -> str:
    # the first port is the master of a failover lagg
    ports = sorted(bond.ports, key=lambda port: port != bond.primary)
    words = [f"laggproto {_PROTOCOLS.get(bond.mode, bond.mode)}", *(f"laggport {port}" for port in ports)]
    if bond.xmit_hash_policy:
        words.append(f"lagghash {_HASHES.get(bond.xmit_hash_policy, '')}")
    if bond.lacp_rate:
        words.append("lacp_fast_timeout" if bond.lacp_rate == "fast" else "-lacp_fast_timeout")
    return _words(*words)


def _inet(addresses: list[str]) -> list[str]:
    return [f"inet {address}" for address in addresses]


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def _variable(name: str) -> str:
    """rc.subr writes characters that a variable cannot have as underscores."""
    return re.sub(r"\W", "_", name)
