# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream that find out how many connections pay, with a line between the ends that decides it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.ranges import unit
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods import stream_pairs
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    Trees,
    expect_same,
    noise,
)

CONVERSATION = 1  # connection that carries no ranges
ENDS = [("dest", False), ("dest", True), ("source", False), ("source", True)]  # who serves, and whether it is TLS


def make_pair(trees: Trees, serving: str, encrypt: bool, size: int, **changes: Any) -> Pair:
    """Return the two ends of one transfer of a large file and a small one; the serving end has been started."""
    source = trees[0]
    if not (source / "image").exists():
        (source / "image").write_bytes(noise(1, size // 4) * 4)
        (source / "small").write_bytes(b"small")
    pair = stream_pairs.make_pair(trees, serving, encrypt, **changes)
    pair.start(serving)
    return pair


def ended(pair: Pair) -> dict[str, Any]:
    """Wait for the end of a transfer, and see that the trees are the same then."""
    outcome = pair.finish()
    expect_same((Path(pair.roots["source"]), Path(pair.roots["dest"])), outcome)
    return outcome


def through(relay: Relay, pair: Pair) -> dict[str, Any]:
    """Run the transfer over the relay."""
    pair.peer["port"] = relay.port
    pair.start(pair.driving)
    outcome = ended(pair)
    assert outcome["bytes_sent"] == outcome["bytes_total"]
    return outcome


@pytest.mark.long
@pytest.mark.parametrize(("serving", "encrypt"), ENDS)
def test_where_each_connection_carries_little_more_are_made_and_stay(trees, serving, encrypt):
    pair = make_pair(trees, serving, encrypt, 192 * MIB, streams=2, streams_max=8)
    with Relay(int(pair.peer["port"]), rate=2 * MIB) as relay:
        outcome = through(relay, pair)
    assert outcome["streams"] == 8, pair.stderr(pair.driving)
    assert relay.most == CONVERSATION + 8


@pytest.mark.long
@pytest.mark.parametrize(("serving", "encrypt"), [("dest", True), ("source", False)])
def test_where_all_connections_share_the_line_those_that_bring_nothing_end(trees, serving, encrypt):
    pair = make_pair(trees, serving, encrypt, 96 * MIB, streams=2, streams_max=16)
    with Relay(int(pair.peer["port"]), rate=8 * MIB, shared=True) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        wait_for(lambda: relay.open == CONVERSATION + 4, seconds=60)
        wait_for(lambda: relay.open == CONVERSATION + 2, seconds=60)
        assert not pair.is_over, pair.stderr(pair.driving)
        ended(pair)
    assert relay.most == CONVERSATION + 4


@pytest.mark.long
@pytest.mark.parametrize(("serving", "encrypt"), [("dest", False), ("source", True)])
def test_what_is_cut_while_more_are_tried_costs_nothing_but_time(trees, serving, encrypt):
    pair = make_pair(trees, serving, encrypt, 64 * MIB, streams=2, streams_max=8, timeout=20)
    with Relay(int(pair.peer["port"]), rate=2 * MIB) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        for cut in (relay.cut_newest, relay.cut_newest, relay.cut_all, relay.cut_newest):
            passed = relay.passed
            wait_for(lambda passed=passed: relay.passed > passed + 10 * MIB, seconds=60)
            cut()
        outcome = ended(pair)
    assert 2 <= outcome["streams"] <= 8 and relay.cuts >= 4


@pytest.mark.parametrize(("serving", "encrypt"), [ENDS[0], ENDS[3], *rarely(ENDS[1], ENDS[2])])
def test_on_a_line_that_is_quick_the_limit_holds(trees, serving, encrypt):
    pair = make_pair(trees, serving, encrypt, 128 * MIB, streams=1, streams_max=4)
    with Relay(int(pair.peer["port"])) as relay:
        outcome = through(relay, pair)
    assert 1 <= outcome["streams"] <= 4 and relay.most <= CONVERSATION + 4


@pytest.mark.parametrize("serving", ["dest", *rarely("source")])
def test_a_number_that_was_given_stays(trees, serving):
    pair = make_pair(trees, serving, False, 24 * MIB, streams=2)
    with Relay(int(pair.peer["port"]), rate=2 * MIB) as relay:
        outcome = through(relay, pair)
    assert outcome["streams"] == 2 and relay.most == CONVERSATION + 2


@pytest.mark.long
@pytest.mark.parametrize(("serving", "victim"), [("dest", "source"), ("source", "dest")])
def test_a_kill_while_more_are_tried_costs_one_range_of_each(trees, serving, victim):
    size = 96 * MIB
    pair = make_pair(trees, serving, False, size, streams=2, streams_max=8)
    with Relay(int(pair.peer["port"]), rate=2 * MIB) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        wait_for(lambda: relay.passed > 56 * MIB, seconds=120)
        pair.kill(victim)
        passed, connections = relay.passed, relay.most - CONVERSATION
        pair.stop()
    assert connections > 2
    pair = make_pair(trees, serving, False, size, streams=2, streams_max=8)
    pair.start(pair.driving)
    outcome = ended(pair)
    assert outcome["resumed"]
    assert outcome["bytes_sent"] <= size - passed + connections * unit(size, 8) + MIB
