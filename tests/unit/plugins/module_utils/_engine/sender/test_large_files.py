# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that break while ranges of a large file are on their way; each range is confirmed by hand."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import time_accounting
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.carrier import FileRequest, SendResult
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import (
    ConnectionLost,
    DataConnection,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pool import ConnectionPool
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.rate_limit import TokenBucket
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.large_files import StreamSource
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.link_share import LinkShare
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Got
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import REGULAR, Entry
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

MIB = 1 << 20
RANGE = 4 * MIB
RANGES = 2
SHARD, INDEX = 7, 3


class Source:
    """The source of one large file, which is sent as ranges over connections that a test reads from."""

    def __init__(self, folder: Path) -> None:
        (folder / "tree").mkdir()
        (folder / "tree" / "large").write_bytes(b"x" * (RANGES * RANGE))
        plan: Any = settings("stream")
        self.context = Context("source", "drive", bytes(folder / "tree"), plan, str(folder))
        self.carrier = StreamSource(self.context, TokenBucket(0))
        self.failures: list[BaseException] = []
        self.pool = ConnectionPool(self.context, 60, self.carrier.feed, self.failures.append)
        self.carrier.streams = self.pool
        self.sent: list[SendResult] = []
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        entry = Entry(b"large", REGULAR, 0o644, 0, 0, RANGES * RANGE, 1, 2, 3, 1, 1, 0, 0)
        with contextlib.suppress(TransferFailed):  # closed before all was sent
            self.sent.append(self.carrier.send(0, SHARD, [FileRequest(INDEX, entry, 0)], lambda _message: None))

    def connect(self, number: int = 0) -> DataConnection:
        """Hand the source one more connection; returns the peer's end."""
        here, there = socket.socketpair()
        link = DataConnection(here, 60, None, drives=True)
        link.number = number
        self.pool.attach(link)
        return DataConnection(there, 60, None, drives=False)

    def confirm(self, start: int) -> None:
        self.carrier.got(Got(SHARD, INDEX, [[start, start + RANGE]]))

    def returns(self, seconds: float = 10) -> bool:
        """Whether all of the file counts as sent within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        self.carrier.close()
        self._thread.join(10)


@pytest.fixture(name="source")
def makes_source(tmp_path: Path) -> Iterator[Source]:
    source = Source(tmp_path)
    yield source
    source.close()
    assert not source.failures, source.failures


def take_range(link: DataConnection) -> int:
    """Take all records of a range; returns where it starts."""
    while True:
        record = link.receive_head()
        if record.kind == RecordKind.DONE:
            return record.offset
        assert record.kind == RecordKind.RAW, record
        take_contents(link, record.size)


def take_contents(link: DataConnection, count: int) -> None:
    while count:
        count -= len(link.receive(min(count, MIB)))


def test_a_range_that_is_confirmed_while_it_travels_again_holds_nothing_up(source):
    first = source.connect()
    assert [take_range(first) for _number in range(RANGES)] == [0, RANGE]
    first.abort()
    second = source.connect()
    again = second.receive_head()
    assert (again.kind, again.offset) == (RecordKind.RAW, 0)
    for start in (0, RANGE):
        source.confirm(start)
    assert not source.returns(0.5), "the file was closed while a connection reads from it"
    take_contents(second, again.size)
    assert take_range(second) == 0
    source.confirm(0)
    assert source.returns()
    assert [one.problems for one in source.sent] == [{}]


def test_a_range_that_is_confirmed_while_it_waits_does_not_travel_again(source):
    first = source.connect()
    assert [take_range(first) for _number in range(RANGES)] == [0, RANGE]
    first.abort()
    wait_for(lambda: not source.pool.links(), seconds=10)
    source.confirm(RANGE)
    second = source.connect()
    assert take_range(second) == 0
    source.confirm(0)
    assert source.returns()
    second.abort()


def test_what_a_slow_connection_has_at_the_end_goes_over_another_and_the_slow_one_ends(source, monkeypatch):
    monkeypatch.setattr(LinkShare, "outruns", lambda _self, _count, seconds: seconds > 0.2)
    slow = source.connect()
    head = slow.receive_head()  # and no more: this end hardly reads
    fast = source.connect()
    assert [take_range(fast) for _number in range(RANGES)] == [RANGE, head.offset]
    for start in (RANGE, head.offset):
        source.confirm(start)
    assert source.returns(), "the file waits for the slow connection"
    assert [(one.problems, one.bytes) for one in source.sent] == [({}, RANGES * RANGE)]
    with pytest.raises(ConnectionLost):
        take_contents(slow, head.size)
    wait_for(lambda: [link.number for link in source.pool.links()] == [0], seconds=10)


@pytest.mark.parametrize("stuck", [False, True])
def test_what_is_late_is_left_to_a_connection_that_is_much_faster_unless_that_is_stuck(source, monkeypatch, stuck):
    """One that is slow, too, would have it for as long again, and nothing is sent a third time."""
    rates, now = {1: 10.0, 2: 1000.0, 3: 10.0}, [0.0]
    monkeypatch.setattr(LinkShare, "rate", property(lambda share: rates[share._link.number]))
    monkeypatch.setattr(LinkShare, "outruns", lambda _share, _count, seconds: seconds > 1)
    monkeypatch.setattr(source.carrier._queue, "_clock", lambda: now[0])
    slow = source.connect(1)
    late = slow.receive_head()
    now[0] = 2.0
    fast = source.connect(2)
    busy = fast.receive_head()
    third = source.connect(3)
    assert select.select([third], [], [], 1.2)[0] == [], "the slow one sent it"
    if stuck:
        now[0] = 4.0
        assert take_range(third) == late.offset
    else:
        take_contents(fast, busy.size)
        assert [take_range(fast) for _number in range(RANGES)] == [busy.offset, late.offset]


def test_one_that_the_destination_lets_go_ends_when_what_it_had_has_arrived(source):
    first = source.connect(1)
    head = first.receive_head()
    source.carrier.dismiss([1, 7])
    second = source.connect(2)
    assert take_range(second) == RANGE
    take_contents(first, head.size)
    assert take_range(first) == head.offset == 0
    source.confirm(RANGE)
    time.sleep(0.7)  # longer than the source looks away
    assert len(source.pool.links()) == 2
    source.confirm(0)
    assert first.receive_head().kind == RecordKind.BYE
    wait_for(lambda: [link.number for link in source.pool.links()] == [2], seconds=10)
    assert source.returns()


def test_a_pause_makes_no_connection_a_slow_one(source, monkeypatch):
    monkeypatch.setattr(LinkShare, "outruns", lambda _self, _count, _seconds: True)
    monkeypatch.setattr(TokenBucket, "is_paused", property(lambda _self: True))
    monkeypatch.setattr(TokenBucket, "take", lambda _self, _count: None)
    monkeypatch.setattr(TokenBucket, "hold", lambda _self: None)
    links = source.connect(), source.connect()
    assert select.select(links[1:], [], [], 10)[0]  # it has a range, before the first one could take both
    assert sorted(take_range(link) for link in links) == [0, RANGE]
    wait_for(lambda: all(link.at_rest for link in source.pool.links()), seconds=10)
    assert select.select(links, [], [], 1.5)[0] == [], "something came once more"


def test_a_connection_that_broke_leaves_no_thread_at_work(source):
    first = source.connect()
    assert first.receive_head().kind == RecordKind.RAW
    first.abort()
    wait_for(lambda: not source.pool.links(), seconds=10)
    wait_for(lambda: not time_accounting.is_at_work(), seconds=5)
