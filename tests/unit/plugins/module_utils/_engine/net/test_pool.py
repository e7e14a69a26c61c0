# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many data connections are kept, with connections that are none."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pool import ConnectionPool
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for


class _Link:
    def __init__(self, number: int, over: threading.Event) -> None:
        self.number, self.spare = number, False
        self.abort = over.set

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


class Links:
    """Makes connections up to a number, and refuses those above; all last until they are spare or the end."""

    def __init__(self, most: int) -> None:
        self._most, self._over = most, threading.Event()
        self.logged: list[str] = []
        context: Any = SimpleNamespace(log=self.logged.append, side="source")
        self.failures: list[BaseException] = []
        self.streams = ConnectionPool(context, 60, self._work, self.failures.append)

    def make(self, number: int) -> Any:
        """Make one, or refuse to."""
        if number > self._most:
            raise OSError("the firewall has seen enough")
        return _Link(number, self._over)

    def _work(self, link: Any) -> None:
        while not link.spare and not self._over.wait(0.01):
            pass

    def numbers(self) -> list[int]:
        """Return the numbers of the connections."""
        return sorted(link.number for link in self.streams.links())


def test_those_above_a_number_end_and_can_be_made_again():
    links = Links(8)
    links.streams.connect(2, links.make, 2)
    for count in (4, 2, 8, 4):
        links.streams.resize(count)
        wait_for(lambda count=count: links.numbers() == list(range(1, count + 1)), seconds=10)
    links.streams.close()
    assert not links.failures


def test_further_ones_that_cannot_be_made_are_done_without():
    links = Links(3)
    links.streams.connect(2, links.make, 2)
    links.streams.resize(4)
    wait_for(lambda: links.streams.refused, seconds=30)
    assert links.streams.count == 3 and links.numbers() == [1, 2, 3]
    assert "firewall" in links.logged[-1]
    links.streams.close()
    assert not links.failures


def test_those_begun_with_that_are_not_needed_are_done_without():
    links = Links(3)
    links.streams.connect(4, links.make, 2)
    wait_for(lambda: links.streams.refused, seconds=30)
    assert links.streams.count == links.streams.proven == 3 and links.numbers() == [1, 2, 3]
    links.streams.close()
    assert not links.failures
