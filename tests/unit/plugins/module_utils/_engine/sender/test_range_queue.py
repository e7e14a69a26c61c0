# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which connection sends which range; the connections break, are late and are confirmed in any order."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.carrier import FileRequest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import DataConnection
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.range_queue import (
    Bundle,
    OutgoingFile,
    RangeQueue,
    Work,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import REGULAR, Entry
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

MIB = 1 << 20
ALL = 1 << 62


def outgoing(index: int, size: int) -> OutgoingFile:
    entry = Entry(b"large", REGULAR, 0o644, 0, 0, size, 1, 2, 3, 1, 1, 0, 0)
    return OutgoingFile(1, FileRequest(index, entry, 0), -1, 4, Progress())


def bundle(index: int, size: int) -> OutgoingFile:
    return OutgoingFile(1, Bundle(index, size, cast(Any, "the memory")), -1, 4, Progress())


def link(name: str) -> DataConnection:
    """Return something that stands for a connection, of which the queue asks nothing."""
    return cast(DataConnection, name)


FAST, SLOW, THIRD = link("fast"), link("slow"), link("third")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def makes_clock() -> Clock:
    return Clock()


@pytest.fixture(name="queue")
def makes_queue(clock: Clock) -> RangeQueue:
    queue = RangeQueue(clock)
    queue.add(outgoing(0, 8 * MIB))
    return queue


def late(bytes_: int, seconds: float) -> bool:
    return seconds >= 3 and bytes_ > 0


def test_what_a_slow_connection_has_for_too_long_is_handed_out_once_more(queue, clock):
    slow = queue.take(SLOW, ALL)
    fast = queue.take(FAST, ALL)
    assert queue.is_empty and queue.take_late(FAST, late) is None
    queue.confirm(*fast)
    clock.now = 3
    assert queue.take_late(SLOW, late) is None, "its own"
    assert queue.take_late(FAST, late) == slow
    clock.now = 9
    assert queue.take_late(THIRD, late) is None, "it would be sent three times"
    assert queue.confirm(*slow) is SLOW, "it sends for nothing now"
    assert not slow.file.waiting


def test_a_slow_connection_that_is_through_need_not_end(queue, clock):
    slow, fast = queue.take(SLOW, ALL), queue.take(FAST, ALL)
    queue.confirm(*fast)
    clock.now = 3
    queue.take_late(FAST, late)
    assert queue.was_read(SLOW)
    assert queue.confirm(*slow) is None


@pytest.mark.parametrize(("broken", "waits"), [(SLOW, False), (FAST, True)])
def test_of_two_that_send_a_range_the_second_answers_for_it(queue, clock, broken, waits):
    slow, fast = queue.take(SLOW, ALL), queue.take(FAST, ALL)
    queue.confirm(*fast)
    clock.now = 3
    queue.take_late(FAST, late)
    queue.hand_over(broken)
    assert queue.is_empty is not waits
    assert queue.confirm(*slow) is (None if waits else SLOW)
    assert queue.is_empty


def test_what_depends_on_the_old_version_is_left_to_its_connection(queue, clock):
    work = queue.take(SLOW, ALL)
    work.file.known = cast(Any, "the hashes of the old version")
    clock.now = 3
    assert queue.take_late(FAST, late) is None


def test_connections_send_one_bundle_together_and_then_the_next(queue):
    first, second = bundle(1, 2 * MIB + 1), bundle(2, MIB)
    queue.clear()
    queue.add(first)
    queue.add(second)
    taken = [queue.take(taker, ALL) for taker in (SLOW, FAST, THIRD, SLOW)]
    assert [work.file for work in taken] == [first, first, first, second]
    assert [work.piece for work in taken] == [(0, MIB), (MIB, 2 * MIB), (2 * MIB, 2 * MIB + 1), (0, MIB)]


class Connections(RuleBasedStateMachine):
    """Random turns of three connections over two files and a bundle."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue = RangeQueue(self.clock)
        self.files = [outgoing(0, 9 * MIB), bundle(2, 3 * MIB + 1), outgoing(1, 5 * MIB + 1)]
        for file in self.files:
            self.queue.add(file)
        self.held: dict[DataConnection, list[Work]] = {FAST: [], SLOW: [], THIRD: []}
        self.given: Counter[Work] = Counter()
        self.broken: set[Work] = set()

    links = st.sampled_from([FAST, SLOW, THIRD])

    def _note(self, taker: DataConnection, work: Work) -> None:
        self.held[taker].append(work)
        self.given[work] += 1

    @rule(taker=links, count=st.integers(1, 6 * MIB))
    def take(self, taker: DataConnection, count: int) -> None:
        self.queue.was_read(taker)
        if not self.queue.is_empty:
            self._note(taker, self.queue.take(taker, count))

    @rule(taker=links, seconds=st.integers(1, 5))
    def take_late(self, taker: DataConnection, seconds: int) -> None:
        self.queue.was_read(taker)
        self.clock.now += seconds
        work = self.queue.take_late(taker, late)
        if work is not None:
            self._note(taker, work)

    @rule(broken=links)
    def lose(self, broken: DataConnection) -> None:
        self.queue.was_read(broken)
        self.queue.hand_over(broken)
        self.broken.update(self.held[broken])
        self.held[broken].clear()

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        sender = data.draw(st.sampled_from([one for one, works in self.held.items() if works]))
        work = self.held[sender].pop(0)
        if not self.held[sender]:
            self.queue.was_read(sender)  # what was not read to its end is not confirmed
        slow = self.queue.confirm(*work)
        assert slow is None or work in self.held[slow]

    @invariant()
    def all_that_is_not_confirmed_waits_or_is_under_way(self) -> None:
        held = {work for works in self.held.values() for work in works}
        for file in self.files:
            under_way = {work.piece for work in held if work.file is file}
            waiting = set(self.queue._waiting.get(file, ()))  # pylint: disable=protected-access
            assert file.waiting <= under_way | waiting
            assert waiting <= file.waiting

    @invariant()
    def nothing_is_handed_out_three_times_that_did_not_break(self) -> None:
        assert all(count <= 2 for work, count in self.given.items() if work not in self.broken)

    def teardown(self) -> None:
        """Whatever happened, one connection that goes on sends the rest."""
        for one in (SLOW, THIRD):
            self.lose(one)
        for work in self.held[FAST]:
            self.queue.confirm(*work)
        while not self.queue.is_empty:
            self.queue.confirm(*self.queue.take(FAST, ALL))
        assert not any(file.waiting for file in self.files)


TestConnections = Connections.TestCase
