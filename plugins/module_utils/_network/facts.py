# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links, routes and the cloud of a host, from what its own programs print. Private to the collection."""

from __future__ import annotations

import json
import re
from typing import Mapping, NamedTuple, Sequence

from .link import Address, Link, Links


class Route(NamedTuple):
    """How an address is reached; None if that is unknown."""

    dev: str | None
    source: str | None
    gateway: str | None


def parse_ip_links(text: str) -> dict[str, Link]:
    """Read ``ip -d -j addr show`` of iproute2: links by name, in the kernel's order.

    A link whose lower half is in another network namespace (``link_netnsid``) has no parent here.
    """
    links: dict[str, Link] = {}
    for item in json.loads(text or "[]"):
        if "ifname" not in item:  # iproute2 prints {} for what a filter dropped
            continue
        info = item.get("linkinfo") or {}
        kind = info.get("info_kind") or ("loopback" if "LOOPBACK" in item.get("flags", []) else "physical")
        below = item.get("link") if "link_netnsid" not in item and kind != "veth" else None
        links[item["ifname"]] = Link(
            item["ifname"],
            kind,
            mtu=item.get("mtu"),
            # 0 means no limit: the driver did not say
            min_mtu=item.get("min_mtu") or None,
            max_mtu=item.get("max_mtu") or None,
            up="UP" in item.get("flags", []),
            mac=item.get("address"),
            master=item.get("master"),
            parent=below,
            addresses=tuple(
                Address(
                    f"{address['local']}/{address['prefixlen']}",
                    bool(address.get("dynamic")),
                    address.get("scope", "global"),
                    address.get("broadcast"),
                )
                for address in item.get("addr_info", [])
                if "local" in address
            ),
        )
    return with_relations(links)


def with_relations(links: Links) -> dict[str, Link]:
    """Return the links with their ``ports`` and ``children``, from what others say of ``master`` and ``parent``."""
    return {
        name: link._replace(
            ports=tuple(other for other, one in links.items() if one.master == name),
            children=tuple(other for other, one in links.items() if one.parent == name),
        )
        for name, link in links.items()
    }


def parse_ifconfig(text: str) -> dict[str, Link]:
    """Read FreeBSD's ``ifconfig -a`` (ifconfig(8)). The driver's limits are not in it."""
    links: dict[str, Link] = {}
    ports: dict[str, str] = {}
    link: Link | None = None
    for line in text.splitlines():
        head = re.match(r"(\S+): flags=\S*<(.*?)>.*?mtu (\d+)", line)
        if head:
            up = "UP" in head[2].split(",")
            kind = _freebsd_kind(head[1], head[2])
            link = Link(head[1], kind, int(head[3]), None, None, up, mac=None, master=None, parent=None)
            links[link.name] = link
            continue
        words = line.split()
        if not words or not link:
            continue
        if words[0] == "ether":
            link = link._replace(mac=words[1])
        elif words[0] in ("inet", "inet6"):
            link = link._replace(addresses=(*link.addresses, _freebsd_address(words)))
        elif words[0] == "laggport:":
            ports[words[1]] = link.name
        parent = re.search(r"parent interface: (\S+)", line)
        if parent:
            link = link._replace(kind="vlan", parent=parent[1])
        links[link.name] = link
    for port, master in ports.items():
        if port in links:
            links[port] = links[port]._replace(master=master)
    return with_relations(links)


def _freebsd_kind(name: str, flags: str) -> str:
    if "LOOPBACK" in flags.split(","):
        return "loopback"
    kinds = {"lagg": "bond", "vlan": "vlan", "bridge": "bridge", "epair": "veth", "tap": "tun", "tun": "tun"}
    return kinds.get(re.sub(r"\d.*", "", name), "physical")


def _freebsd_address(words: Sequence[str]) -> Address:
    """``inet 10.0.0.1 netmask 0xffffff00`` or ``inet6 fe80::1%em0 prefixlen 64``."""
    address = words[1].split("%")[0].split("/")[0]
    if "netmask" in words:
        length = bin(int(words[words.index("netmask") + 1], 16)).count("1")
    elif "prefixlen" in words:
        length = int(words[words.index("prefixlen") + 1])
    else:
        length = 32 if words[0] == "inet" else 128
    scope = "link" if address.startswith("fe80:") else "host" if address in ("127.0.0.1", "::1") else "global"
    return Address(f"{address}/{length}", "autoconf" in words, scope)


def link_of_address(links: Links, address: str) -> str | None:
    """Return the link that has this address (without prefix length), or None."""
    wanted = address.split("%")[0].lower()
    if wanted.startswith("::ffff:") and "." in wanted:  # IPv4 as a socket for both families shows it
        wanted = wanted[len("::ffff:") :]
    for name, link in links.items():
        if any(one.bare.lower() == wanted for one in link.addresses):
            return name
    return None


def parse_route_get(text: str) -> Route:
    """Read ``ip -j route get ADDRESS``."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        found = []
    first = found[0] if found else {}
    return Route(first.get("dev"), first.get("prefsrc"), first.get("gateway"))


def parse_freebsd_route(text: str) -> Route:
    """Read FreeBSD's ``route -n get ADDRESS`` (route(8)), as ``parse_route_get`` does. It says no source address."""
    found = dict(re.findall(r"^\s*(interface|gateway): (\S+)", text, re.MULTILINE))
    return Route(found.get("interface"), None, found.get("gateway"))


# What a virtual machine's firmware calls itself, in /sys/class/dmi/id, of clouds whose network one does not own.
_CLOUDS = (
    ("sys_vendor", "Amazon EC2", "Amazon EC2"),
    ("product_name", "Google Compute Engine", "Google Cloud"),
    ("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "Microsoft Azure"),
    ("sys_vendor", "DigitalOcean", "DigitalOcean"),
    ("sys_vendor", "Hetzner", "Hetzner Cloud"),
    ("sys_vendor", "Vultr", "Vultr"),
    ("sys_vendor", "Linode", "Akamai (Linode)"),
    ("sys_vendor", "Scaleway", "Scaleway"),
    ("sys_vendor", "UpCloud", "UpCloud"),
    ("sys_vendor", "Exoscale", "Exoscale"),
    ("sys_vendor", "Alibaba Cloud", "Alibaba Cloud"),
    ("sys_vendor", "Tencent Cloud", "Tencent Cloud"),
    ("chassis_asset_tag", "OracleCloud.com", "Oracle Cloud"),
    ("product_name", "OpenStack", "OpenStack"),
    ("chassis_asset_tag", "OpenStack", "OpenStack"),
)
# What cloud-init calls a machine that is in no cloud; see `cloud-id`.
_NO_CLOUDS = ("", "none", "nocloud", "lxd", "configdrive", "maas", "vmware", "ovf", "fallback", "not-run", "disabled")


def cloud_of(firmware: Mapping[str, str], cloud_id: str = "") -> str | None:
    """Return the name of the cloud that the host is in, or None.

    ``firmware`` is what /sys/class/dmi/id says by the file's name, ``cloud_id`` what cloud-init found.
    """
    for key, start, name in _CLOUDS:
        if firmware.get(key, "").strip().startswith(start):
            return name
    found = cloud_id.strip().lower()
    return None if found in _NO_CLOUDS else found
