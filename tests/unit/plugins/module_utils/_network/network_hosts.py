# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts for the tables, as nic_info describes them."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._network.host import AnsibleConnection, Host, OwnFile
from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import Address, Link


def link(name: str, **more: Any) -> dict[str, Any]:
    """Return a network card, or what ``more`` makes of it."""
    made = {
        "name": name,
        "kind": "physical",
        "mtu": 1500,
        "min_mtu": 68,
        "max_mtu": 9216,
        "up": True,
        "mac": None,
        "master": None,
        "parent": None,
        "ports": [],
        "children": [],
        "addresses": [],
        "speed": 10000,
        "manager": None,
        "manager_detail": {},
    }
    return {**made, **more}


def address(text: str, dynamic: bool = False) -> dict[str, Any]:
    """Return an address of a link."""
    return {"address": text, "dynamic": dynamic, "scope": "global"}


def host(*links: dict[str, Any], manager: str | None = "netplan", **more: Any) -> dict[str, Any]:
    """Return a host on which every manager is installed and ``manager`` has what nobody else has."""
    has: dict[str, dict[str, Any]] = {
        name: {"present": True} for name in ("netplan", "networkd", "networkmanager", "ifupdown", "ifcfg", "freebsd")
    }
    has["networkmanager"]["running"] = has["networkd"]["configured"] = True
    has["ifupdown"].update(suffix="", ifenslave=True)
    has["ifcfg"]["files"] = {}
    made = {
        "system": "Linux",
        "links": {one["name"]: one for one in links},
        "connection": {"link": None, "address": None, "peer": None},
        "cloud": None,
        "managers": has,
        "default_manager": manager,
        "own_files": {},
    }
    return {**made, **more}


def as_host(facts: dict[str, Any]) -> Host:
    """Return the host that nic_info describes so."""
    return Host(
        **{
            **facts,
            "links": {name: _as_link(one) for name, one in facts["links"].items()},
            "connection": AnsibleConnection(**facts["connection"]),
            "own_files": {path: OwnFile(**own) for path, own in facts["own_files"].items()},
        }
    )


def _as_link(one: dict[str, Any]) -> Link:
    addresses = tuple(Address(**each) for each in one["addresses"])
    return Link(**{**one, "addresses": addresses, "ports": tuple(one["ports"]), "children": tuple(one["children"])})


BOND = {
    "name": "bond0",
    "mtu": 9000,
    "bond": {"mode": "active-backup", "miimon": 200, "primary": "eth0", "ports": ["eth0", "eth1"]},
    "addresses": ["10.20.0.11/24"],
}
LACP = {
    "name": "bond0",
    "mtu": 9000,
    "bond": {
        "mode": "802.3ad",
        "ports": ["eth0", "eth1"],
        "lacp_rate": "fast",
        "xmit_hash_policy": "layer3+4",
        "min_links": 1,
    },
    "addresses": ["10.20.0.11/24", "fd00:20::11/64"],
    "gateway": "10.20.0.1",
    "vlans": [{"id": 30, "mtu": 9000, "addresses": ["10.30.0.11/24"]}],
}


FAMILY = {
    "eth0": link("eth0", mtu=1500),
    "eth1": link("eth1", mtu=1500),
    "bond0": link("bond0", kind="bond", mtu=1500, ports=["eth0", "eth1"]),
    "bond0.30": link("bond0.30", kind="vlan", mtu=1500, parent="bond0"),
}
