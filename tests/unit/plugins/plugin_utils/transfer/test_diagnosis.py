# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slowest part of a chain by the rates of its parts, and the sentence on it."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.diagnosis import (
    PartRates,
    name_from_rates,
    slow_part,
    time_text,
)
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20
FAST = dict.fromkeys(asdict(PartRates()), 500.0 * MIB)


@pytest.mark.parametrize(
    ("slow", "causes", "expected", "words"),
    [
        ("source_disk", {}, "", ("The source's disk delivers 18.0 MiB/s", "a faster disk there")),
        ("source_cpu", {}, "", ("The source's processor handles 18.0 MiB/s", "compress: auto or none")),
        ("source_cpu", {"source_cpu": "cipher"}, "cipher", ("AES instructions",)),
        ("source_cpu", {"destination_cpu": "cipher"}, "", ("compress: auto or none",)),
        ("network", {}, "", ("The network carries 18.0 MiB/s", "look for loss")),
        ("network", {"network": "full_line"}, "full_line", ("only compress, or a faster line",)),
        ("network", {"network": "unheard of"}, "", ("look for loss",)),
        ("destination_cpu", {"destination_cpu": "contention"}, "contention", ("let other work there wait",)),
        ("destination_disk", {}, "", ("The destination's disk takes 18.0 MiB/s", "more streams would not")),
    ],
)
def test_the_slowest_part_is_named_with_numbers_and_advice(slow, causes, expected, words):
    found = name_from_rates(PartRates(**{**FAST, slow: 18.0 * MIB}), causes)
    assert (found.name, found.cause) == (slow, expected)
    for word in (*words, "500.0 MiB/s", "at the next slowest"):
        assert word in found.sentence, found
    assert found.sentence.endswith(f": {found.remedy}.")


def test_a_part_that_is_hardly_faster_is_named_too():
    found = name_from_rates(PartRates(source_disk=100.0 * MIB, network=105.0 * MIB))
    assert found.name == "source_disk" and "the network carries 105.0 MiB/s, hardly more" in found.sentence


RATE = st.sampled_from([0.0]) | st.floats(1, 1e12)


@given(st.builds(PartRates, RATE, RATE, RATE, RATE, RATE))
def test_what_was_not_measured_is_never_named(rates):
    found, known = name_from_rates(rates), {name: rate for name, rate in asdict(rates).items() if rate}
    if len(known) < 2:
        assert found.name == "none" and "were measured" in found.sentence
    else:
        assert known[found.name] == min(known.values())
    assert found.sentence[0].isupper() and found.sentence.endswith(".")


def test_a_cause_without_a_remedy_needs_one():
    found = slow_part("network", "loss", "2 % of the packets were lost", "look for a bad cable")
    assert found.sentence == "2 % of the packets were lost: look for a bad cable."
    with pytest.raises(KeyError):
        slow_part("network", "loss", "2 % of the packets were lost")


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (312.4, "312 s"), (3720, "1 h 2 min")])
def test_long_times_are_given_in_hours(seconds, text):
    assert time_text(seconds) == text
