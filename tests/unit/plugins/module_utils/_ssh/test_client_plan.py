# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ssh_client decides: the order of ciphers, and when an old algorithm may come in."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.client_plan import USUAL, plan_client

CHACHA, CTR, GCM, GCM256 = (
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
)
MACS, KEX, KEYS = ["umac-64-etm@openssh.com", "hmac-sha2-256"], ["curve25519-sha256"], ["ssh-ed25519", "rsa-sha2-512"]
BUILT_IN = {"ciphers": USUAL, "macs": MACS, "kex": KEX, "host_keys": KEYS}
SUPPORTED = {
    "ciphers": ["3des-cbc", "aes128-cbc", "aes256-cbc", *USUAL],
    "macs": ["hmac-sha1", "hmac-md5", *MACS],
    "kex": ["diffie-hellman-group1-sha1", *KEX],
    "host_keys": ["ssh-rsa", *KEYS],
}
MODERN = {"ciphers": [CHACHA, CTR, GCM], "macs": MACS, "kex": KEX, "host_keys": KEYS}
OLD_CIPHERS = {**MODERN, "ciphers": ["arcfour", "3des-cbc", "aes128-cbc"], "macs": ["hmac-sha1"]}
ANCIENT = {
    "ciphers": ["3des-cbc", "aes128-cbc"],
    "macs": ["hmac-md5", "hmac-sha1"],
    "kex": ["diffie-hellman-group1-sha1"],
    "host_keys": ["ssh-rsa", "ssh-dss"],
}


def local(aes: bool = True, fips: bool = False, **lists) -> dict:
    own = {"hostname": "peer", "port": 22, "proxied": False, **BUILT_IN, **lists}
    return {
        "installed": True,
        "peers": {"peer": own, "other": own},
        "built_in": BUILT_IN,
        "supported": SUPPORTED,
        "fips": fips,
        "aes": aes,
        "aes_reason": "the processor has AES instructions" if aes else "the processor has no AES instructions",
    }


def peer(name: str = "peer", legacy: bool = False, **options) -> dict:
    return {"name": name, "address": "", "port": 0, "patterns": [name], "options": options, "legacy": legacy}


def plan(offer: object = ..., legacy=False, here=None, **more) -> dict:
    offer = MODERN if offer is ... else offer
    return plan_client([peer(legacy=legacy)], here or local(), {"peer": offer} if offer else {}, **more)


def ciphers(made: dict) -> list:
    (block,) = made["blocks"]
    return block["algorithms"]["Ciphers"]


@pytest.mark.parametrize(
    "aes, peer_aes, first",
    [(True, True, GCM), (True, None, GCM), (True, False, CHACHA), (False, True, CHACHA), (False, None, CHACHA)],
)
def test_the_slower_end_decides_which_cipher_is_the_fastest(aes, peer_aes, first):
    inventory = {"peer": {"address": "", "port": 0, "aes": peer_aes}}
    made = plan(here=local(aes), inventory=inventory)
    assert made["peers"]["peer"]["cipher"] == ciphers(made)[0] == first
    assert made["problems"] == []


@pytest.mark.parametrize(
    "allowed",
    [
        USUAL,
        [GCM256, "aes256-ctr"],  # FIPS-like
        ["aes256-gcm@openssh.com", CHACHA, "aes256-ctr", "aes256-cbc", GCM, CTR, "aes128-cbc"],  # a policy with CBC
        ["aes256-cbc"],
        [CTR],
    ],
)
@pytest.mark.parametrize("aes", [True, False])
@pytest.mark.parametrize("offer", [MODERN, None])
def test_the_order_is_all_that_changes(allowed, aes, offer):
    made = plan_client([peer()], local(aes, ciphers=allowed), {"peer": offer} if offer else {})
    assert sorted(ciphers(made)) == sorted(allowed)


def test_old_ciphers_of_a_policy_stay_at_the_end():
    assert ciphers(plan(here=local(ciphers=["aes128-cbc", CTR, GCM]))) == [GCM, CTR, "aes128-cbc"]


def test_what_will_be_used_is_the_first_that_the_server_takes():
    made = plan({**MODERN, "ciphers": [CTR, CHACHA]})
    assert ciphers(made)[0] == GCM
    assert made["peers"]["peer"]["cipher"] == CHACHA
    assert "fastest that both ends offer" in made["peers"]["peer"]["reason"]


def test_a_peer_that_does_not_answer_is_a_warning():
    made = plan_client([peer()], local(), {"peer": {"msg": "peer port 22 did not answer."}})
    assert made["problems"] == []
    assert made["warnings"] == [
        "peer: what it offers is not known: peer port 22 did not answer. The ciphers are ordered for this host alone, "
        "and all that the client had stay in the list."
    ]
    assert "this end offers" in made["peers"]["peer"]["reason"]


def test_an_old_peer_that_does_not_answer_is_a_problem():
    assert "did not tell" in plan(None, legacy=True)["problems"][0]


def test_an_old_peer_by_name_gets_what_it_needs_and_nothing_else():
    made = plan({**OLD_CIPHERS, "macs": MACS}, legacy=True)
    assert made["problems"] == []
    (block,) = made["blocks"]
    assert set(block["algorithms"]) == {"Ciphers"}
    assert block["algorithms"]["Ciphers"][-2:] == ["aes128-cbc", "3des-cbc"]
    assert made["peers"]["peer"]["cipher"] == "aes128-cbc"
    assert made["warnings"] == ["peer: the old cipher aes128-cbc is allowed for this peer, as you said."]


def test_an_ancient_peer_by_name_gets_every_kind_that_it_needs():
    made = plan(ANCIENT, legacy=True)
    assert made["problems"] == []
    assert made["blocks"][0]["algorithms"] == {
        "Ciphers": [GCM, GCM256, CHACHA, CTR, "aes192-ctr", "aes256-ctr", "aes128-cbc", "3des-cbc"],
        "MACs": [*MACS, "hmac-md5", "hmac-sha1"],
        "KexAlgorithms": [*KEX, "diffie-hellman-group1-sha1"],
        "HostKeyAlgorithms": [*KEYS, "ssh-rsa"],
    }


def test_a_peer_by_name_that_needs_nothing_old_gets_nothing_old():
    made = plan(MODERN, legacy=True)
    assert sorted(ciphers(made)) == sorted(USUAL)
    assert made["warnings"] == []


def test_macs_do_not_matter_to_a_cipher_that_has_its_own():
    assert plan({**MODERN, "macs": ["hmac-md5"]})["problems"] == []
    assert "share no MAC" in plan({**MODERN, "ciphers": [CTR], "macs": ["hmac-md5"]})["problems"][0]


@pytest.mark.parametrize(
    "offer, legacy, here, says",
    [
        (OLD_CIPHERS, False, None, "name the peer in ssh_client_legacy_peers"),
        ({**MODERN, "ciphers": ["arcfour"]}, True, None, "This host's ssh has none of them at all"),
        ({**MODERN, "ciphers": []}, False, None, "offers none"),
        (OLD_CIPHERS, True, local(fips=True), "crypto policy limits"),
        (OLD_CIPHERS, True, local(ciphers=[GCM, CTR]), "crypto policy limits"),
        ({**MODERN, "kex": ["diffie-hellman-group1-sha1"]}, False, None, "share no key exchange"),
        ({**MODERN, "host_keys": ["ssh-rsa"]}, False, None, "share no type of host key"),
        ({**MODERN, "host_keys": ["ssh-rsa"]}, True, local(host_keys=["ssh-ed25519"]), "crypto policy limits"),
    ],
)
def test_a_peer_that_cannot_be_served_is_a_problem(offer, legacy, here, says):
    made = plan(offer, legacy=legacy, here=here)
    assert says in made["problems"][0]
    assert made["problems"][0].startswith("peer: ")


def test_ciphers_of_the_user_are_taken_as_they_are():
    made = plan(ciphers=[CTR, CHACHA, CTR])
    assert ciphers(made) == [CTR, CHACHA]
    assert made["peers"]["peer"]["reason"] == "the first that you named and that both ends have"


@pytest.mark.parametrize(
    "wanted, legacy, here, says",
    [
        ([GCM, "arcfour"], False, None, "does not know the cipher arcfour"),
        (["aes256-cbc"], False, None, "not among those that this host may use"),
        ([CHACHA], False, local(ciphers=[GCM, CTR]), "not among those"),
        ([CHACHA], True, local(fips=True, ciphers=[GCM, CTR]), "not among those"),
        ([GCM256], False, None, "the peer takes none"),
    ],
)
def test_ciphers_of_the_user_that_cannot_be(wanted, legacy, here, says):
    (problem,) = plan(ciphers=wanted, legacy=legacy, here=here)["problems"]
    assert says in problem


def test_an_old_cipher_that_the_user_named_for_an_old_peer():
    made = plan({**OLD_CIPHERS, "macs": MACS}, legacy=True, ciphers=["aes128-cbc"])
    assert (made["problems"], ciphers(made)) == ([], ["aes128-cbc"])


def test_a_host_without_ssh_has_a_prediction():
    empty = {"installed": False, "peers": {}, "aes": True, "aes_reason": "", "fips": False}
    made = plan_client([peer()], {**empty, "built_in": {}, "supported": {}}, {"peer": MODERN})
    assert made["problems"] == []
    assert sorted(ciphers(made)) == sorted(USUAL)


def test_peers_for_which_the_same_counts_share_a_block():
    made = plan_client([peer(), peer("other")], local(), {"peer": MODERN, "other": {**MODERN, "ciphers": [CTR]}})
    assert [block["patterns"] for block in made["blocks"]] == [["peer", "other"]]
    made = plan_client([peer(), peer("other", Port="2222")], local(), {"peer": MODERN, "other": MODERN})
    assert [(block["patterns"], block["options"]) for block in made["blocks"]] == [
        (["peer"], {}),
        (["other"], {"Port": "2222"}),
    ]
