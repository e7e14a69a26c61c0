# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading what a host's programs say, and who manages what."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network import facts, managers
from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import Address

IP = [
    {"ifname": "lo", "flags": ["LOOPBACK", "UP"], "mtu": 65536, "min_mtu": 0, "max_mtu": 0, "addr_info": []},
    {
        "ifname": "eth0",
        "flags": ["BROADCAST", "UP"],
        "mtu": 1500,
        "master": "bond0",
        "min_mtu": 68,
        "max_mtu": 9216,
        "addr_info": [],
    },
    {
        "ifname": "bond0",
        "flags": ["UP"],
        "mtu": 1500,
        "min_mtu": 68,
        "max_mtu": 65535,
        "linkinfo": {"info_kind": "bond"},
        "addr_info": [
            {"family": "inet", "local": "10.0.0.5", "prefixlen": 24, "scope": "global", "dynamic": True},
            {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"},
        ],
    },
    {"ifname": "bond0.30", "link": "bond0", "flags": [], "mtu": 1500, "linkinfo": {"info_kind": "vlan"}},
    {"ifname": "lh0", "link": "far0", "flags": [], "mtu": 1500, "linkinfo": {"info_kind": "veth"}},
    {},
]
IFCONFIG = """\
em0: flags=8863<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 9000
\toptions=481249b<RXCSUM,TXCSUM>
\tether 52:54:00:12:34:56
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384
\tinet6 ::1 prefixlen 128
\tinet 127.0.0.1 netmask 0xff000000
lagg0: flags=8843<UP,BROADCAST,RUNNING> metric 0 mtu 9000
\tinet 10.20.0.12 netmask 0xffffff00 broadcast 10.20.0.255
\tinet6 fe80::1%lagg0 prefixlen 64 scopeid 0x4
\tlaggproto failover lagghash l2,l3,l4
\tlaggport: em0 flags=5<MASTER,ACTIVE>
lagg0.30: flags=8843<UP,BROADCAST,RUNNING> metric 0 mtu 9000
\tvlan: 30 vlanproto: 802.1q vlanpcp: 0 parent interface: lagg0
"""
NETWORKCTL = """\
● 2: eth0
                   Link File: /run/systemd/network/10-netplan-lan.link
                Network File: /run/systemd/network/10-netplan-lan.network
                       State: routable (configured)
● 3: eth1
                Network File: /etc/systemd/network/20-admin.network
                       State: routable (configured)
● 4: eth2
                Network File: n/a
                       State: off (unmanaged)
"""


def test_links_of_linux():
    links = facts.parse_ip_links(json.dumps(IP))
    assert [(name, one.kind) for name, one in links.items()] == [
        ("lo", "loopback"),
        ("eth0", "physical"),
        ("bond0", "bond"),
        ("bond0.30", "vlan"),
        ("lh0", "veth"),
    ]
    assert links["lo"].max_mtu is None and links["eth0"].max_mtu == 9216
    assert links["bond0"].ports == ("eth0",) and links["bond0"].children == ("bond0.30",)
    assert links["lh0"].parent is None
    assert links["bond0"].addresses[0] == Address("10.0.0.5/24", dynamic=True, scope="global", broadcast=None)
    assert facts.link_of_address(links, "::ffff:10.0.0.5") == "bond0"
    assert facts.link_of_address(links, "10.0.0.6") is None


def test_links_of_freebsd():
    links = facts.parse_ifconfig(IFCONFIG)
    assert {name: (one.kind, one.mtu, one.up) for name, one in links.items()} == {
        "em0": ("physical", 9000, True),
        "lo0": ("loopback", 16384, True),
        "lagg0": ("bond", 9000, True),
        "lagg0.30": ("vlan", 9000, True),
    }
    assert links["lagg0"].ports == ("em0",) and links["lagg0.30"].parent == "lagg0"
    assert links["lagg0"].addresses[0].address == "10.20.0.12/24"
    assert [one.scope for one in links["lagg0"].addresses] == ["global", "link"]


def test_routes():
    text = '[{"dst":"10.0.0.9","dev":"eth0","prefsrc":"10.0.0.5","flags":[],"uid":0,"cache":[]}]'
    assert facts.parse_route_get(text) == ("eth0", "10.0.0.5", None)
    assert facts.parse_route_get("RTNETLINK answers: Network is unreachable").dev is None
    said = "   route to: 10.0.0.9\n    gateway: 10.0.0.1\n  interface: em0\n"
    assert facts.parse_freebsd_route(said) == ("em0", None, "10.0.0.1")


@pytest.mark.parametrize(
    "firmware, cloud_id, cloud",
    [
        ({"sys_vendor": "Amazon EC2"}, "", "Amazon EC2"),
        ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "", "Google Cloud"),
        ({"chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}, "", "Microsoft Azure"),
        ({"sys_vendor": "Microsoft Corporation"}, "", None),  # Hyper-V at home
        ({"sys_vendor": "Dell Inc."}, "nocloud", None),
        ({"sys_vendor": "QEMU"}, "openstack\n", "openstack"),
        ({}, "", None),
    ],
)
def test_clouds(firmware, cloud_id, cloud):
    assert facts.cloud_of(firmware, cloud_id) == cloud


def test_who_manages_what():
    evidence = managers.Evidence(
        networkctl=managers.parse_networkctl(NETWORKCTL),
        nmcli={
            **managers.parse_nmcli_devices("eth3:connected:Wired\\: one:u-3\neth4:connected:netplan-eth4:u-4"),
            **managers.parse_nmcli_devices("eth5:unmanaged::\neth8:connected (externally):eth8:u-8\nbad"),
        },
        nm_files=managers.parse_nmcli_files(
            "u-3:/etc/NetworkManager/system-connections/Wired.nmconnection\n"
            "u-4:/run/NetworkManager/system-connections/netplan-eth4.nmconnection"
        ),
        interfaces={"eth5": managers.Stanzas("/etc/network/interfaces", ["inet dhcp"])},
        ifcfg={"eth6": "/etc/sysconfig/network-scripts/ifcfg-eth6"},
    )
    found = managers.managers_of([f"eth{n}" for n in range(9)], evidence)
    assert [found[f"eth{n}"].manager for n in range(9)] == [
        "netplan",
        "networkd",
        None,
        "networkmanager",
        "netplan",
        "ifupdown",
        "ifcfg",
        None,
        None,
    ]
    assert found["eth0"].detail["id"] == "lan" and found["eth0"].detail["renderer"] == "networkd"
    assert found["eth3"].detail["connection"] == "Wired: one"
    assert found["eth4"].detail["renderer"] == "NetworkManager" and found["eth4"].detail["id"] == "eth4"
    assert managers.managers_of(["em0"], managers.Evidence(freebsd=True))["em0"].manager == "freebsd"


@pytest.mark.parametrize(
    "managed, connection, hints, expected",
    [
        ({"eth0": "netplan", "eth1": "networkd"}, "eth1", {}, "networkd"),
        ({"eth0": "netplan", "eth1": None}, None, {}, "netplan"),
        ({"eth0": "netplan", "eth1": "networkd"}, None, {"netplan": True}, None),
        ({"eth0": None}, None, {"ifupdown": True, "networkd": True}, "networkd"),
        ({"eth0": None}, None, {}, None),
    ],
)
def test_the_manager_of_new_links(managed, connection, hints, expected):
    assert managers.default_manager(managed, connection, hints) == expected


@pytest.mark.parametrize(
    "text, suffix",
    [
        ("source /etc/network/interfaces.d/*\n", ""),
        ("source interfaces.d/*.cfg\n", ".cfg"),
        ("source-directory /etc/network/interfaces.d\n", ""),
        ("source /etc/network/other/*\n", None),
        ("auto lo\n", None),
    ],
)
def test_what_ifupdown_includes(text, suffix):
    assert managers.include_suffix(managers.parse_interfaces(text)[1]) == suffix


def test_stanzas_of_ifupdown():
    text = (
        "auto eth0\niface eth0 inet static\n  address 10.0.0.1/24\niface eth0 inet6 auto\niface eth1 inet \\\n dhcp\n"
    )
    assert managers.parse_interfaces(text)[0] == {"eth0": ["inet static", "inet6 auto"], "eth1": ["inet dhcp"]}
