# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is named for what connections met, and that no host can say it so that it harms."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.bottleneck import (
    Line,
    TransferFacts,
    find_bottleneck,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.tcp_limits import find_limit, parse_met
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20
SAID = {
    "packets": 100_000,
    "lost": 0,
    "rtt": 0.1,
    "min_rtt": 0.1,
    "busy": 10.0,
    "window_limited": 0.0,
    "buffer_limited": 0.0,
    "congestion": ["cubic"],
    "offered": ["cubic", "reno"],
}


def limit(rate=10 * MIB, interface=0, **said):
    return find_limit(parse_met({**SAID, **said}), rate, interface)


@pytest.mark.parametrize(
    ("said", "cause", "words"),
    [
        ({"window_limited": 6.2}, "receive_window", ("62 %", "100 ms", "tcp_rmem at the destination to 8 MiB")),
        ({"buffer_limited": 5.0}, "send_buffer", ("50 %", "tcp_wmem at the source to 8 MiB")),
        ({"window_limited": 3.0, "buffer_limited": 4.0}, "send_buffer", ("40 %",)),
        ({"lost": 1000}, "loss", ("1.00 %", "with cubic", "modprobe tcp_bbr")),
        ({"lost": 1000, "window_limited": 2.0}, "loss", ("1.00 %",)),
        ({"rtt": 0.2}, "full_line", ("200 ms", "100 ms at its shortest")),
        ({"rtt": 0.2, "lost": 1000}, "full_line", ("waited in a queue",)),  # which is what loses them
    ],
)
def test_what_stands_out_is_named(said, cause, words):
    found = limit(**said)
    assert found and found.cause == cause
    for word in words:
        assert word in f"{found.evidence} {found.advice}", found


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"lost": 10},
        {"rtt": 0.0002, "min_rtt": 0.0001, "lost": 1000, "window_limited": 9.0},  # a short line
        {"packets": 0, "busy": 0.0},
    ],
)
def test_nothing_is_named_that_does_not_stand_out(said):
    assert limit(**said) is None


def test_bbr_is_spoken_of_only_where_it_would_help_and_is_not_there():
    assert "bbr" in limit(lost=1000).advice
    assert "bbr" not in limit(lost=1000, offered=["bbr", "cubic"]).advice
    assert "bbr" not in limit(lost=1000, congestion=["bbr"]).advice
    assert "bbr" not in limit(window_limited=9.0).advice


def test_a_window_is_for_the_speed_of_the_interface_where_that_is_known():
    assert "to 24 MiB" in limit(window_limited=9.0, interface=120 * MIB).advice


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SAID, "x"]), inner, max_size=9),
    )
)
def test_whatever_a_host_says_is_harmless(said):
    met = parse_met(said)
    if met is not None:
        found = find_limit(met, 1.0, 0)
        json.dumps(found)
        assert found is None or (found.evidence + found.advice).isprintable()


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        (10**400, 1e15),
        (float("inf"), 1e15),
        (float("nan"), 0.0),
        (-1, 0.0),
        (True, 0.0),
        ("9", 0.0),
        (None, 0.0),
        (3, 3),
    ],
)
def test_odd_numbers_have_bounds(odd, read):
    met = parse_met({**SAID, "busy": odd, "packets": odd})
    assert met and (met.busy, met.path.packets) == (read, read)


def test_the_cause_stands_in_the_result_where_the_network_was_waited_for():
    def account(line):
        return {"wall": 20.0, "processor": 1.0, "roles": {"link": {"send": [19.0, 1.0]}}, "line": line}

    def found(line, bwlimit=0):
        dest = {"wall": 20.0, "processor": 1.0, "roles": {"link": {"receive": [19.0, 1.0]}}}
        return find_bottleneck(
            {"source": account(line), "dest": dest}, TransferFacts("stream", 2, 100 * MIB), Line(limit=bwlimit)
        )

    lossy = found({**SAID, "lost": 1000})
    assert (lossy["name"], lossy["cause"]) == ("network", "loss")
    assert (
        "waiting to send" in lossy["evidence"]
        and "were lost, and none" in lossy["evidence"]
        and "cable" in lossy["advice"]
    )
    assert found(None)["cause"] == "" and "iperf3" in found(None)["advice"]
    held = found({**SAID, "window_limited": 9.0}, bwlimit=5 * MIB)
    assert held["cause"] == "bwlimit" and "bwlimit" in held["advice"]
