# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import (
    Ability,
    PairRules,
    find_abilities,
    is_encrypted,
)

from tests.support.measured_pairs import end


def abilities(rules: PairRules, source=None, dest=None) -> dict[tuple[str, str], Ability]:
    found = find_abilities(source or end("source"), dest or end("dest"), rules)
    return {(one.method, one.variant): one for one in found}


FASTEST, DEFAULT = "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"
ALL = [
    ("stream", "TLS"),
    ("stream", "plain"),
    ("rsyncd", ""),
    ("tar_nc", ""),
    ("rsync", DEFAULT),
    ("rsync", FASTEST),
    ("sftp", FASTEST),
    ("scp", FASTEST),
]


def test_every_method_is_listed_in_each_variant():
    assert sorted(abilities(PairRules())) == sorted(ALL)


def test_without_encryption_none_what_is_not_encrypted_is_listed_and_not_allowed():
    found = abilities(PairRules())
    refused = {key for key, one in found.items() if one.refusal}
    assert refused == {("stream", "plain"), ("rsyncd", ""), ("tar_nc", "")}
    assert all(not is_encrypted(found[key]) and not found[key].obstacle for key in refused)


def test_with_encryption_none_all_run():
    assert all(one.runs for one in abilities(PairRules(encryption="none")).values())


def test_hosts_that_are_not_trusted_run_what_a_transfer_would_run():
    found = abilities(PairRules(encryption="none", trust="none"))
    assert {key[0] for key, one in found.items() if one.runs} == {"stream", "rsync", "sftp"}
    filtered = abilities(PairRules(encryption="none", trust="none", has_rules=True))
    assert "filter rules" in filtered["rsync", FASTEST].refusal


def test_an_old_rsync_does_not_run_between_hosts_that_are_not_trusted():
    rsync = {**end("dest").programs["rsync"], "version": [3, 1, 3], "holes": ["CVE-2024-12084"]}
    programs = {**end("dest").programs, "rsync": rsync}
    found = abilities(PairRules(trust="none"), dest=end("dest", uid=1000, programs=programs))
    assert "trust is none" in found["rsync", FASTEST].refusal


@pytest.mark.parametrize(
    ("lacking", "methods"),
    [
        (("rsync",), {"rsync", "rsyncd"}),
        (("tar",), {"tar_nc"}),
        (("ssh",), {"rsync", "scp", "sftp"}),
        (("scp",), {"scp"}),
        (("rsync", "ssh", "tar"), {"rsync", "rsyncd", "tar_nc", "scp", "sftp"}),
    ],
)
def test_what_a_host_lacks_is_the_reason(lacking: tuple[str, ...], methods: set[str]):
    found = abilities(PairRules(encryption="none"), source=end("source", lacking))
    assert {key[0] for key, one in found.items() if one.obstacle} == methods
    assert all("source has no" in one.obstacle for one in found.values() if one.obstacle)


def test_the_destination_needs_no_ssh_client_unless_it_connects():
    assert abilities(PairRules(), dest=end("dest", ("ssh",)))["rsync", FASTEST].runs
    pulled = abilities(PairRules(connect="pull"), dest=end("dest", ("ssh",)))
    assert "dest has no ssh" in pulled["rsync", ""].obstacle


def test_without_a_port_only_ssh_is_left():
    found = abilities(PairRules(encryption="none", connect=""))
    assert {key[0] for key, one in found.items() if one.runs} == {"rsync", "scp", "sftp"}
    assert "port" in found["stream", "TLS"].obstacle


def test_without_tls_stream_is_left_without_encryption():
    found = abilities(PairRules(encryption="none"), dest=end("dest", tls13=False))
    assert "TLS 1.3" in found["stream", "TLS"].obstacle and found["stream", "plain"].runs


def test_the_fastest_cipher_is_that_of_the_processors_and_of_the_server():
    slow = abilities(PairRules(), dest=end("dest", aes=False))
    assert [key[1] for key in slow if key[0] == "rsync"] == [DEFAULT], "the default is the fastest one there"
    sshd = {"listening": [22], "config": {"ciphers": ["aes128-ctr"]}, "home": "/root"}
    assert [key[1] for key in abilities(PairRules(), dest=end("dest", sshd=sshd)) if key[0] == "rsync"] == [
        "aes128-ctr"
    ]


def test_the_default_cipher_is_what_ssh_would_offer_to_this_peer():
    found = abilities(PairRules(default_ciphers=("aes128-ctr", FASTEST)))
    assert [key[1] for key in found if key[0] == "rsync"] == ["aes128-ctr", FASTEST]


def test_a_server_without_a_common_cipher_is_an_obstacle():
    sshd = {"listening": [22], "config": {"ciphers": ["aes256-cbc"]}, "home": "/root"}
    found = abilities(PairRules(), dest=end("dest", sshd=sshd))
    assert all(not one.runs and one.obstacle for key, one in found.items() if key[0] in ("rsync", "scp", "sftp"))


def test_compression_is_what_both_have():
    found = abilities(PairRules(), source=end("source", zstd=False))
    assert found["stream", "TLS"].algorithms == ("zlib",)
    assert found["rsync", FASTEST].algorithms == ("zstd", "zlib")
    assert found["scp", FASTEST].algorithms == ()
