# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access by address, SELinux and firewalls: the decisions."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import (
    access,
    firewall,
    selinux,
)


@pytest.mark.parametrize(
    "address, allow, deny, verdict",
    [
        ("10.0.0.1", [], [], True),
        ("10.0.0.1", ["10.0.0.1"], [], True),
        ("10.0.0.2", ["10.0.0.1"], [], False),
        ("10.0.0.2", ["10.0.0.0/24"], ["*"], True),
        ("10.0.1.2", ["10.0.0.0/24"], ["*"], False),
        ("10.0.1.2", ["10.0.0.0/24"], ["192.168.0.0/16"], True),
        ("10.0.1.2", ["10.0.0.0/255.255.255.0"], [], False),
        ("10.0.1.2", [], ["10.0.0.0/8"], False),
        ("10.0.1.2", ["*"], [], True),
        ("10.0.1.2", ["*.example.com"], [], None),
        ("10.0.1.2", [], ["bad.example.com"], None),
        ("10.0.1.2", ["name", "10.0.1.2"], [], True),
        ("::ffff:10.0.1.2", ["10.0.1.2"], [], True),
        ("fd00::1", ["fd00::/ffff::"], [], True),
        ("fd00::1", ["10.0.0.0/8"], [], False),
    ],
)
def test_who_may_connect(address, allow, deny, verdict):
    assert access.verdict(address, allow, deny) is verdict


@pytest.mark.parametrize(
    "modules, wanted",
    [
        ([], []),
        ([{"hosts_allow": ["10.0.0.2", "10.0.0.1"]}], ["10.0.0.1/32", "10.0.0.2/32"]),
        ([{"hosts_allow": ["10.0.0.1"]}, {}], []),
        ([{"hosts_allow": ["10.0.0.1", "name"]}], []),
    ],
)
def test_for_whom_a_firewall_is_opened(modules, wanted):
    assert access.sources(modules) == wanted


READS, WRITES = {"path": "/srv/a.b", "read_only": True}, {"path": "/srv/w/", "read_only": False}


@pytest.mark.parametrize(
    "modules, how, port, wanted",
    [
        ([], "boolean", 873, ((), (), ())),
        ([READS], "boolean", 873, (("rsync_export_all_ro",), (), ())),
        ([READS, WRITES], "boolean", 8730, (("rsync_full_access",), (), (8730,))),
        ([READS], "context", 873, ((), (("/srv/a.b", "public_content_t"),), ())),
        ([WRITES], "context", 873, (("rsync_anon_write",), (("/srv/w", "public_content_rw_t"),), ())),
    ],
)
def test_what_selinux_must_allow(modules, how, port, wanted):
    assert selinux.needs(modules, how, port) == wanted


def test_what_selinux_says():
    assert selinux.boolean_is_on("rsync_full_access --> on\n")
    assert not selinux.boolean_is_on("rsync_full_access --> off\n")
    listed = "/srv/a\\.b(/.*)?    all files    system_u:object_r:public_content_t:s0\n"
    assert selinux.has_type(listed, "/srv/a.b", "public_content_t")
    assert not selinux.has_type(listed, "/srv/a.b", "public_content_rw_t")
    assert not selinux.has_type(listed, "/srv/a", "public_content_t")
    ports = "rsync_port_t      tcp      8730, 873\nrsync_port_t      udp      9000\nx_port_t tcp 1-9999\n"
    assert selinux.has_port(ports, 8730) and selinux.has_port(ports.replace("8730", "8700-8800"), 8750)
    assert not selinux.has_port(ports, 9000)


def test_firewalld():
    asks = firewall.firewalld(873, [])
    assert [" ".join(ask.add) for ask in asks] == [
        "firewall-cmd --add-port=873/tcp",
        "firewall-cmd --permanent --add-port=873/tcp",
    ]
    (ask, _kept) = firewall.firewalld(873, ["10.0.0.0/8"])
    rule = 'rule family="ipv4" source address="10.0.0.0/8" port port="873" protocol="tcp" accept'
    assert ask.query == ("firewall-cmd", f"--query-rich-rule={rule}")


def test_ufw():
    assert firewall.ufw(873, []) == [("allow", "873/tcp", "comment", firewall.COMMENT)]
    assert firewall.ufw(873, ["10.0.0.1/32"])[0][:5] == ("allow", "proto", "tcp", "from", "10.0.0.1/32")
    assert firewall.ufw_has("Skipping adding existing rule\nSkipping adding existing rule (v6)\n")
    assert not firewall.ufw_has("*filter\n:ufw-user-input - [0:0]\n### RULES ###\n")


def chain(**changes) -> dict:
    made = {"family": "inet", "table": "filter", "name": "input", "type": "filter", "hook": "input", "policy": "accept"}
    return {"chain": {**made, **changes}}


def rule(*expressions: str, **changes) -> dict:
    made = {"family": "inet", "table": "filter", "chain": "input", "handle": 7}
    return {"rule": {**made, "expr": [{word: None} for word in expressions], **changes}}


@pytest.mark.parametrize(
    "items, closed",
    [
        ([chain()], [False]),
        ([chain(policy="drop")], [True]),
        ([chain(), rule("match", "accept")], [False]),
        ([chain(), rule("match", "drop")], [True]),
        ([chain(), rule("jump")], [True]),
        ([chain(hook="output", policy="drop")], []),
        ([chain(table="firewalld", policy="drop")], []),
        ([chain(family="bridge", policy="drop")], []),
        ([chain(type="nat")], []),
        ([], []),
    ],
)
def test_chains_of_nftables(items, closed):
    assert [found.closed for found in firewall.input_chains({"nftables": items})] == closed


def test_rules_of_nftables():
    ours = rule("accept", comment=f"{firewall.COMMENT} 873 any")
    (found,) = firewall.input_chains({"nftables": [chain(policy="drop"), ours]})
    (text,) = firewall.nft_rules(found, 873, [])
    assert text == 'inet filter input tcp dport 873 accept comment "longhaul.fleet.rsyncd 873 any"'
    assert found.ours == ((7, firewall.comment_of(text)),)
    texts = firewall.nft_rules(found, 873, ["10.0.0.0/8", "10.0.0.0/9", "fd00::/8"])
    assert "ip saddr { 10.0.0.0/8, 10.0.0.0/9 } tcp" in texts[0]
    assert "ip6 saddr { fd00::/8 } tcp" in texts[1]
    assert len(set(map(firewall.comment_of, texts))) == 2
    assert firewall.nft_rules(found._replace(family="ip6"), 873, ["10.0.0.0/8"]) == []


def test_files_of_nftables():
    once = firewall.nft_main("table inet filter {}", "/etc/l.nft")
    assert once == 'table inet filter {}\ninclude "/etc/l.nft"\n'
    assert firewall.nft_main(once, "/etc/l.nft") == once


def test_pf():
    assert firewall.pf_rules(873, []) == "pass in quick proto tcp from any to any port 873\n"
    assert firewall.pf_rules(8730, ["10.0.0.0/8", "fd00::/8"]) == (
        "pass in quick proto tcp from { 10.0.0.0/8, fd00::/8 } to any port 8730\n"
    )
    once = firewall.pf_main("set skip on lo\nblock in all\npass out\n", "a", "/etc/pf.a")
    assert once == 'set skip on lo\nanchor "a"\nload anchor "a" from "/etc/pf.a"\nblock in all\npass out\n'
    assert firewall.pf_main(once, "a", "/etc/pf.a") == once


def test_addresses_for_a_firewall():
    assert firewall.addresses(["10.0.0.1", "10.0.0.9/8", "10.0.0.1"]) == ["10.0.0.0/8", "10.0.0.1/32"]
    with pytest.raises(ValueError, match="knows no names"):
        firewall.addresses(["example.com"])
