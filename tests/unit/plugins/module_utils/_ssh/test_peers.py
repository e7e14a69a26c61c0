# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The peers of ssh_client: completed from the inventory, and refused where they cannot be right."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.peers import complete_peers

INVENTORY = {
    "one": {"address": "10.0.0.1", "port": 0, "aes": None},
    "two": {"address": "fd00::2", "port": 2222, "aes": True},
    "three": {"address": "", "port": 0, "aes": None},
}


def complete(peer: dict, **more) -> dict:
    made = {"address": "", "port": 0, "patterns": [peer["name"]], "options": {}, "legacy": False}
    return {**made, **peer, **more}


@pytest.mark.parametrize(
    "peer, expected",
    [
        ({"name": "three"}, complete({"name": "three"})),
        ({"name": "stranger.example"}, complete({"name": "stranger.example"})),
        ({"name": "one"}, complete({"name": "one"}, address="10.0.0.1", patterns=["one", "10.0.0.1"])),
        ({"name": "two"}, complete({"name": "two"}, address="fd00::2", port=2222, patterns=["two", "fd00::2"])),
        (
            {"name": "two", "address": "10.9.9.2", "port": 22, "patterns": ["t*", "t*"]},
            complete({"name": "two"}, address="10.9.9.2", port=22, patterns=["t*"]),
        ),
        ({"name": "10.20.0.4"}, complete({"name": "10.20.0.4"})),
        (
            {"name": "three", "options": {"Port": 2200, "TCPKeepAlive": True, "HashKnownHosts": False}},
            complete({"name": "three"}, options={"Port": "2200", "TCPKeepAlive": "yes", "HashKnownHosts": "no"}),
        ),
    ],
)
def test_a_peer_is_completed(peer, expected):
    assert complete_peers([peer], INVENTORY, "own") == {"peers": [expected], "problems": []}


def test_the_host_itself_is_left_out_and_still_checked():
    found = complete_peers([{"name": "one"}, {"name": "two"}], INVENTORY, "one")
    assert [peer["name"] for peer in found["peers"]] == ["two"]
    assert complete_peers([{"name": "one", "patterns": ["*"]}], INVENTORY, "one")["problems"]


def test_old_algorithms_are_for_those_that_are_named():
    found = complete_peers([{"name": "one"}, {"name": "two"}], INVENTORY, "own", legacy=["two"])
    assert [peer["legacy"] for peer in found["peers"]] == [False, True]


def test_options_for_all_count_less_than_those_of_a_peer():
    found = complete_peers(
        [{"name": "one", "options": {"Port": 1}}], INVENTORY, "own", options={"Port": 2, "User": "ops"}
    )
    assert found["peers"][0]["options"] == {"Port": "1", "User": "ops"}


@pytest.mark.parametrize(
    "peer, says",
    [
        ({"name": ""}, "peer number 1: the name '' is no host name"),
        ({}, "peer number 1: the name '' is no host name"),
        ({"name": "-oProxyCommand=x"}, "is no host name"),
        ({"name": "a b"}, "is no host name"),
        ({"name": "a\nHost *"}, "is no host name"),
        ({"name": "three", "address": "$(reboot)"}, "the address '$(reboot)'"),
        ({"name": "three", "port": 70000}, "port 70000"),
        ({"name": "three", "patterns": ["*"]}, "matches every host"),
        ({"name": "three", "patterns": ["fine", "*?*"]}, "matches every host"),
        ({"name": "three", "patterns": ["!one"]}, "no spaces, commas or '!'"),
        ({"name": "three", "patterns": ["a b"]}, "no spaces"),
        ({"name": "three", "patterns": ["a\n"]}, "no spaces"),
        ({"name": "three", "options": {"Match": "all"}}, "would end the block"),
        ({"name": "three", "options": {"host": "*"}}, "would end the block"),
        ({"name": "three", "options": {"Include": "/x"}}, "would end the block"),
        ({"name": "three", "options": {"ciphers": "aes128-ctr"}}, "Set that"),
        ({"name": "three", "options": {"RequestTTY": "yes"}}, "ssh_client_terminal"),
        ({"name": "three", "options": {"Port\nHost *": 1}}, "no keyword"),
        ({"name": "three", "options": {"User": "a\nHost *"}}, "one value on one line"),
        ({"name": "three", "options": {"User": ""}}, "one value on one line"),
        ({"name": "three", "options": {"User": ["a"]}}, "one value on one line"),
        ({"name": "three", "options": {"User": None}}, "one value on one line"),
    ],
)
def test_what_cannot_be_right_is_refused(peer, says):
    (problem,) = complete_peers([peer], INVENTORY, "own")["problems"]
    assert says in problem


def test_one_name_twice():
    (problem,) = complete_peers([{"name": "one"}, {"name": "one"}], INVENTORY, "own")["problems"]
    assert "peer one is there twice" in problem


def test_an_old_peer_that_is_no_peer():
    (problem,) = complete_peers([{"name": "one"}], INVENTORY, "own", legacy=["oen"])["problems"]
    assert "names oen" in problem


def test_an_option_for_all_is_checked_too():
    assert (
        "would end the block"
        in complete_peers([{"name": "one"}], INVENTORY, "own", options={"Match": "all"})["problems"][0]
    )
