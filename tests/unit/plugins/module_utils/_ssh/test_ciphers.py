# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cipher ssh asks for."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh import ciphers
from hypothesis import given
from hypothesis import strategies as st

MODERN = [
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
]


@pytest.mark.parametrize(
    ("source", "dest", "aes", "wanted", "first"),
    [
        (MODERN, MODERN, True, [], "aes128-gcm@openssh.com"),
        (MODERN, MODERN, False, [], "chacha20-poly1305@openssh.com"),
        (MODERN[1:], MODERN, False, [], "aes128-ctr"),  # FIPS has no chacha20
        (MODERN, None, True, [], "aes128-gcm@openssh.com"),
        (MODERN, ["aes256-ctr", "arcfour"], True, [], "aes256-ctr"),
        ([*MODERN, "aes128-cbc"], ["aes128-cbc"], True, ["aes128-cbc"], "aes128-cbc"),
        (MODERN, MODERN, True, ["arcfour", "aes192-ctr"], "aes192-ctr"),
        (["new-cipher@example.net"], None, True, [], "new-cipher@example.net"),
    ],
)
def test_the_fastest_cipher_that_both_offer_comes_first(source, dest, aes, wanted, first):
    chosen, reason = ciphers.choose_ciphers(source, dest, aes, wanted)
    assert chosen.split(",", maxsplit=1)[0] == first
    assert first in reason


@pytest.mark.parametrize(
    ("source", "dest", "wanted", "said"),
    [
        (
            MODERN,
            ["arcfour", "aes128-cbc"],
            [],
            "The connecting end offers .*the serving end offers arcfour, aes128-cbc",
        ),
        (["arcfour"], ["arcfour"], [], "They share only arcfour"),
        (MODERN, MODERN, ["arcfour"], "of arcfour none is offered by both"),
        ([*MODERN, "arcfour"], MODERN, ["arcfour"], "of arcfour none is offered by both"),
    ],
)
def test_a_legacy_cipher_needs_both_ends_and_its_name(source, dest, wanted, said):
    with pytest.raises(TransferFailed, match=said):
        ciphers.choose_ciphers(source, dest, True, wanted)


ANY_CIPHERS = st.lists(st.sampled_from([*MODERN, "aes128-cbc", "3des-cbc", "arcfour", "x@y"]), unique=True)


@given(ANY_CIPHERS, st.none() | ANY_CIPHERS, st.booleans(), ANY_CIPHERS)
def test_nothing_is_chosen_that_an_end_does_not_offer_or_a_policy_bans(source, dest, aes, wanted):
    try:
        chosen = ciphers.choose_ciphers(source, dest, aes, wanted)[0].split(",")
    except TransferFailed:
        return
    assert set(chosen) <= set(source)
    assert dest is None or set(chosen) <= set(dest)
    assert all(name in wanted for name in chosen if "cbc" in name or name == "arcfour")
    assert len(chosen) == len(set(chosen)) > 0


def test_a_compiled_in_cipher_counts_only_where_it_was_named():
    assert ciphers.source_offer(
        ["aes128-ctr"], ["3des-cbc", "aes128-cbc", "aes128-ctr"], ["aes128-cbc", "arcfour"]
    ) == [
        "aes128-ctr",
        "aes128-cbc",
    ]
