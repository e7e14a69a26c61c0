# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files for each manager, compared with their documented formats."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.file_marks import made_by, owner_of
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.interfaces import parse_links
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.plan import RENDERERS
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    BOND,
    LACP,
    as_host,
    host,
    link,
)

TWO = (link("eth0"), link("eth1"))


def render(manager: str, raw: dict[str, Any], facts: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the files without their header lines."""
    (entry,), problems = parse_links([raw])
    assert problems == []
    files = RENDERERS[manager](entry, as_host(facts or host(*TWO)), "# by hand: no")
    for file in files:
        if file.content.startswith("# by hand: no"):
            assert owner_of(file.content) == entry.name
    return {
        file.path: "\n".join(line for line in file.content.splitlines() if not line.startswith("# ")) for file in files
    }


def test_netplan():
    files = render("netplan", BOND)
    assert files == {
        "/etc/netplan/95-longhaul-nic-bond0.yaml": """\
network:
  version: 2
  ethernets:
    eth0:
      dhcp4: false
      dhcp6: false
      accept-ra: false
      mtu: 9000
    eth1:
      dhcp4: false
      dhcp6: false
      accept-ra: false
      mtu: 9000
  bonds:
    bond0:
      interfaces: ["eth0", "eth1"]
      parameters:
        mode: "active-backup"
        mii-monitor-interval: 200
        primary: "eth0"
      mtu: 9000
      addresses: ["10.20.0.11/24"]"""
    }


def test_netplan_names_a_link_as_the_administrator_did():
    facts = host(link("eth0", manager="netplan", manager_detail={"id": "lan"}))
    (text,) = render("netplan", {"name": "eth0", "mtu": 9000}, facts).values()
    assert text.endswith("  ethernets:\n    lan:\n      mtu: 9000")
    bonded = host(link("bond7", kind="bond", manager="netplan"))
    (text,) = render("netplan", {"name": "bond7", "mtu": 9000}, bonded).values()
    assert text.endswith("  bonds:\n    bond7:\n      mtu: 9000")


def test_netplan_quotes_what_yaml_would_take_for_something_else():
    (text,) = render("netplan", {"name": "1e3", "mtu": 9000}, host(link("1e3"))).values()
    assert '    "1e3":' in text


def test_networkd():
    files = render("networkd", LACP)
    assert list(files) == [
        "/etc/systemd/network/05-longhaul-nic-eth0.network",
        "/etc/systemd/network/05-longhaul-nic-eth1.network",
        "/etc/systemd/network/10-longhaul-nic-bond0.netdev",
        "/etc/systemd/network/10-longhaul-nic-bond0.network",
        "/etc/systemd/network/10-longhaul-nic-bond0.30.netdev",
        "/etc/systemd/network/10-longhaul-nic-bond0.30.network",
    ]
    assert files["/etc/systemd/network/10-longhaul-nic-bond0.netdev"] == (
        "[NetDev]\nName=bond0\nKind=bond\nMTUBytes=9000\n\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\n"
        "LACPTransmitRate=fast\nTransmitHashPolicy=layer3+4\nMinLinks=1"
    )
    assert files["/etc/systemd/network/05-longhaul-nic-eth1.network"] == (
        "[Match]\nName=eth1\n\n[Link]\nMTUBytes=9000\n\n[Network]\nBond=bond0\nDHCP=no\nIPv6AcceptRA=no\n"
        "LinkLocalAddressing=no"
    )
    assert files["/etc/systemd/network/10-longhaul-nic-bond0.network"].endswith(
        "[Network]\nVLAN=bond0.30\nAddress=10.20.0.11/24\nAddress=fd00:20::11/64\nGateway=10.20.0.1"
    )
    assert "PrimarySlave=true" in render("networkd", BOND)["/etc/systemd/network/05-longhaul-nic-eth0.network"]


def test_networkd_adds_to_the_administrators_file():
    detail = {"file": "/etc/systemd/network/20-lan.network"}
    facts = host(link("eth0", manager="networkd", manager_detail=detail))
    assert render("networkd", {"name": "eth0", "mtu": 9000}, facts) == {
        "/etc/systemd/network/20-lan.network.d/50-longhaul-nic.conf": "[Link]\nMTUBytes=9000"
    }
    # a link that nobody has: networkd must not take away what it did not set
    (text,) = render("networkd", {"name": "eth0", "mtu": 9000}).values()
    assert "KeepConfiguration=yes" in text


def test_networkmanager():
    files = render("networkmanager", LACP)
    folder = "/etc/NetworkManager/system-connections/longhaul-nic-"
    assert list(files) == [f"{folder}{name}.nmconnection" for name in ("eth0", "eth1", "bond0", "bond0.30")]
    assert files[f"{folder}eth0.nmconnection"].endswith(
        "type=ethernet\ninterface-name=eth0\nautoconnect-priority=100\nmaster=bond0\nslave-type=bond\n\n"
        "[ethernet]\nmtu=9000"
    )
    bond = files[f"{folder}bond0.nmconnection"]
    assert "[bond]\nmode=802.3ad\nmiimon=100\nlacp_rate=fast\nxmit_hash_policy=layer3+4\nmin_links=1\n" in bond
    assert "[ipv4]\nmethod=manual\naddress1=10.20.0.11/24\ngateway=10.20.0.1\n" in bond
    assert bond.endswith("[ipv6]\nmethod=manual\naddress1=fd00:20::11/64")
    assert "[vlan]\nflags=1\nid=30\nparent=bond0\n" in files[f"{folder}bond0.30.nmconnection"]


def test_networkmanager_gives_a_default_for_one_link():
    assert render("networkmanager", {"name": "eth0", "mtu": 9000}) == {
        "/etc/NetworkManager/conf.d/90-longhaul-nic-eth0.conf": (
            "[connection-longhaul-nic-eth0]\nmatch-device=interface-name:eth0\nethernet.mtu=9000"
        )
    }


def test_ifupdown():
    (text,) = render("ifupdown", {**LACP, "bond": {**BOND["bond"]}}).values()
    assert text == (
        "auto bond0\niface bond0 inet static\n    address 10.20.0.11/24\n    gateway 10.20.0.1\n    mtu 9000\n"
        "    bond-slaves eth0 eth1\n    bond-mode active-backup\n    bond-miimon 200\n    bond-primary eth0\n\n"
        "iface bond0 inet6 static\n    address fd00:20::11/64\n\n"
        "auto bond0.30\niface bond0.30 inet static\n    address 10.30.0.11/24\n    mtu 9000\n"
        "    vlan-raw-device bond0\n    vlan-id 30"
    )


def test_ifupdown_adds_a_stanza_to_the_administrators():
    detail = {"file": "/etc/network/interfaces", "methods": ["inet dhcp"], "own": False}
    facts = host(link("eth0", manager="ifupdown", manager_detail=detail))
    facts["managers"]["ifupdown"]["suffix"] = ".cfg"
    assert render("ifupdown", {"name": "eth0", "mtu": 9000}, facts) == {
        "/etc/network/interfaces.d/longhaul-nic-eth0.cfg": "iface eth0 inet manual\n    mtu 9000"
    }


def test_ifcfg():
    files = render("ifcfg", LACP)
    folder = "/etc/sysconfig/network-scripts/ifcfg-"
    assert files[f"{folder}eth0"].splitlines()[-3:] == ["MASTER=bond0", "SLAVE=yes", "MTU=9000"]
    bond = files[f"{folder}bond0"].splitlines()
    assert 'BONDING_OPTS="mode=4 miimon=100 lacp_rate=fast xmit_hash_policy=layer3+4 min_links=1"' in bond
    assert {"TYPE=Bond", "BONDING_MASTER=yes", "IPADDR=10.20.0.11", "PREFIX=24", "GATEWAY=10.20.0.1"} <= set(bond)
    assert {"VLAN=yes", "PHYSDEV=bond0", "MTU=9000"} <= set(files[f"{folder}bond0.30"].splitlines())


def test_ifcfg_changes_what_was_told_in_the_administrators_file():
    facts = host(link("eth0"))
    facts["managers"]["ifcfg"]["files"] = {"eth0": '# mine\nDEVICE=eth0\nMTU="1500"\nBOOTPROTO=dhcp\n'}
    (text,) = render("ifcfg", {"name": "eth0", "mtu": 9000}, facts).values()
    assert text == "DEVICE=eth0\nMTU=9000\nBOOTPROTO=dhcp"


def test_freebsd():
    raw = {**LACP, "name": "lagg0", "bond": {"mode": "active-backup", "ports": ["em1", "em0"], "primary": "em0"}}
    files = render("freebsd", raw, host(link("em0"), link("em1"), system="FreeBSD"))
    text = files["/etc/rc.conf.d/netif/longhaul_nic_lagg0"]
    for line in (
        'ifconfig_em0="up mtu 9000"',
        'ifconfig_em1="up mtu 9000"',
        'ifconfig_lagg0="laggproto failover laggport em0 laggport em1 inet 10.20.0.11/24"',
        'ifconfig_lagg0_ipv6="inet6 fd00:20::11/64"',
        'ifconfig_lagg0_30="inet 10.30.0.11/24 mtu 9000"',
    ):
        assert line in text.splitlines()
    assert files["/etc/rc.conf.d/routing/longhaul_nic_lagg0"] == 'defaultrouter="10.20.0.1"'
    assert "laggproto lacp laggport eth0 laggport eth1 lagghash l3,l4 lacp_fast_timeout" in "".join(
        render("freebsd", LACP).values()
    )


@pytest.mark.parametrize(
    "before, after",
    [
        ("", "mtu 9000"),
        ("DHCP", "DHCP mtu 9000"),
        ("DHCP mtu 9000", "DHCP mtu 9000"),
        ("mtu 90001", "mtu 90001 mtu 9000"),
    ],
)
def test_freebsd_adds_to_the_administrators_values_and_only_once(before, after, tmp_path):
    (text,) = render("freebsd", {"name": "em0", "mtu": 9000}, host(link("em0"))).values()
    file = tmp_path / "file"
    file.write_text(text)
    script = f'ifconfig_em0="{before}"; . {file}; . {file}; echo "$ifconfig_em0"'
    assert (
        subprocess.run(["sh", "-eu", "-c", script], check=True, capture_output=True, text=True).stdout == f"{after}\n"
    )


@pytest.mark.parametrize("manager", sorted(RENDERERS))
def test_every_file_says_whose_it_is_and_what_it_makes(manager):
    (entry,), _problems = parse_links([LACP])
    for header in ("# by hand: no", ""):
        for file in RENDERERS[manager](entry, as_host(host(*TWO)), header):
            assert owner_of(file.content) == "bond0" and made_by(file.content) == ["bond0", "bond0.30"]
            assert file.entry == "bond0" and "\n\n\n" not in file.content and file.content.endswith("\n")
    assert owner_of("# somebody else's\n") is None and made_by("") == []
