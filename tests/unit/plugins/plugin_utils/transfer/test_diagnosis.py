# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slowest part of a transfer, and the sentence on it."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.diagnosis import slow_part, time_text


@pytest.mark.parametrize(
    ("name", "cause", "remedy"),
    [
        ("source_disk", "", "a faster disk there"),
        ("source_cpu", "", "compress: auto or none"),
        ("source_cpu", "cipher", "AES instructions"),
        ("network", "", "look for loss"),
        ("network", "full_line", "only compress, or a faster line"),
        ("destination_cpu", "contention", "let other work there wait"),
        ("destination_disk", "", "more streams would not"),
    ],
)
def test_the_slowest_part_is_named_with_advice(name, cause, remedy):
    found = slow_part(name, cause, "the part moves 18.0 MiB/s")
    assert (found.name, found.cause) == (name, cause) and remedy in found.remedy
    assert found.sentence == f"The part moves 18.0 MiB/s: {found.remedy}."


def test_a_cause_without_a_remedy_needs_one():
    found = slow_part("network", "loss", "2 % of the packets were lost", "look for a bad cable")
    assert found.sentence == "2 % of the packets were lost: look for a bad cable."
    with pytest.raises(KeyError):
        slow_part("network", "loss", "2 % of the packets were lost")


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (312.4, "312 s"), (3720, "1 h 2 min")])
def test_long_times_are_given_in_hours(seconds, text):
    assert time_text(seconds) == text
