# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many data connections are kept, with connections that are none."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import ConnectionLost
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pool import ConnectionPool
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for


class _Link:
    def __init__(self, number: int, over: threading.Event) -> None:
        self.number, self.spare, self.is_lost = number, False, False
        self.abort = over.set

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


class Links:
    """Makes connections up to a number, and refuses those above; all last until they are spare or the end."""

    def __init__(self, most: int) -> None:
        self.most, self._over = most, threading.Event()
        self.logged: list[str] = []
        context: Any = SimpleNamespace(log=self.logged.append, side="source")
        self.failures: list[BaseException] = []
        self.streams = ConnectionPool(context, 60, self._work, self.failures.append)

    def make(self, number: int) -> Any:
        """Make one, or refuse to."""
        if number > self.most:
            raise OSError("the firewall has seen enough")
        return _Link(number, self._over)

    def _work(self, link: Any) -> None:
        while not link.spare and not self._over.wait(0.01):
            if link.is_lost:
                raise ConnectionLost("a rat ate the cable")

    def lose(self, number: int) -> None:
        """Lose a connection."""
        links: list[Any] = self.streams.links()
        next(link for link in links if link.number == number).is_lost = True

    def numbers(self) -> list[int]:
        """Return the numbers of the connections."""
        return sorted(link.number for link in self.streams.links())


@pytest.fixture(name="links")
def _links() -> Iterator[Links]:
    """Let up to eight be made; at the end nothing may have failed."""
    links = Links(8)
    yield links
    links.streams.close()
    assert not links.failures


def test_there_are_as_many_as_there_should_be(links: Links) -> None:
    links.streams.connect(2, links.make, 2)
    for count in (4, 2, 8, 4):
        links.streams.resize(count)
        wait_for(lambda count=count: links.numbers() == list(range(1, count + 1)), seconds=10)


def test_the_slowest_go_and_their_numbers_are_free_again(links: Links) -> None:
    links.streams.connect(4, links.make, 2)
    wait_for(lambda: links.numbers() == [1, 2, 3, 4], seconds=10)
    links.streams.resize(2, {1: 5.0, 2: 30.0, 3: 20.0, 4: 10.0})
    wait_for(lambda: links.numbers() == [2, 3], seconds=10)
    links.streams.resize(1, {2: 5.0, 3: 6.0})
    wait_for(lambda: links.numbers() == [3], seconds=10)
    links.streams.resize(3)
    wait_for(lambda: links.numbers() == [1, 2, 3], seconds=10)


def test_one_that_goes_is_not_missed_and_a_further_one_has_another_number_meanwhile(
    links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links.streams, "_grow", lambda _most, _limit: None)  # nothing goes through these
    links.streams.connect(3, links.make, 2)
    wait_for(lambda: links.numbers() == [1, 2, 3], seconds=10)
    asked: list[int] = []
    links.streams.grow(3, 0, asked.extend)  # the peer takes its time
    links.streams.resize(2, {1: 1.0, 2: 2.0, 3: 3.0})
    links.streams.resize(3)
    wait_for(lambda: links.numbers() == [1, 2, 3, 4], seconds=10)
    links.lose(1)
    links.lose(3)
    wait_for(lambda: links.numbers() == [2, 3, 4], seconds=10)
    time.sleep(0.7)  # longer than until a lost one is made again
    assert links.numbers() == [2, 3, 4] and asked == [1]


def test_the_last_one_is_made_again_whatever_its_number(links: Links) -> None:
    links.streams.connect(4, links.make, 2)
    wait_for(lambda: links.numbers() == [1, 2, 3, 4], seconds=10)
    links.streams.resize(1, {4: 1.0})
    wait_for(lambda: links.numbers() == [4], seconds=10)
    links.most = 0
    links.lose(4)
    time.sleep(2.5)  # longer than three attempts
    links.most = 8
    wait_for(lambda: links.numbers() == [4], seconds=10)
    assert links.streams.count == 1 and not links.streams.refused


def test_further_ones_that_cannot_be_made_are_done_without(links: Links) -> None:
    links.most = 3
    links.streams.connect(2, links.make, 2)
    links.streams.resize(4)
    wait_for(lambda: links.streams.refused, seconds=30)
    assert links.streams.count == 3 and links.numbers() == [1, 2, 3]
    assert "firewall" in links.logged[-1]


def test_those_begun_with_that_are_not_needed_are_done_without(links: Links) -> None:
    links.most = 3
    links.streams.connect(4, links.make, 2)
    wait_for(lambda: links.streams.refused, seconds=30)
    assert links.streams.count == links.streams.proven == 3 and links.numbers() == [1, 2, 3]
