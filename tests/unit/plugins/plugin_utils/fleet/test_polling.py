# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When which host is asked about running transfers, by a clock that the test turns."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet import polling as module
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.polling import HostPoller, Watch
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Place
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely

RATE, END = 1000, 2000.0  # bytes a second, and when all transfers have everything


class Ground:
    """A source that drives transfers to some destinations, all of which say how far they are at a time of the test."""

    def __init__(self, dests: int, stalls_at: float = 1e9) -> None:
        self.now, self.stalls_at = 0.0, stalls_at
        self.looks = HostPoller(None)
        self.asked: list[tuple[float, str]] = []
        self.ended: dict[str, float] = {}
        for number in range(dests):
            name = f"job{number}"
            places = tuple(
                Place(Said(self, host), {"id": name, "side": side}, drives=side == "source")
                for side, host in (("source", f"old{number}"), ("dest", f"new{number % 20}"))
            )
            self.looks.add(name, Watch(places, patience=60))

    def run(self, until: float) -> None:
        while (due := self.looks.next()) is not None and due < until:
            self.now = max(self.now, due)
            for host, ask in self.looks.due():
                self.asked.append((self.now, host))
                answer: Future[Any] = Future()
                answer.set_result(ask())
                ended, lost = self.looks.take(host, answer)
                assert not lost
                self.ended.update(dict.fromkeys(ended, self.now))


class Said:
    def __init__(self, ground: Ground, name: str) -> None:
        self.ground, self.name = ground, name

    def run(self, *steps: Mapping[str, object], **_more: object) -> list[object]:
        return [self._status(str(step["side"])) for step in steps]

    def _status(self, side: str) -> Mapping[str, object]:
        over = self.ground.now >= END
        done = int(RATE * min(self.ground.now, END, self.ground.stalls_at))
        progress = {"phase": "transferring", "bytes_done": done, "bytes_total": int(RATE * END)}
        if side == "dest":
            return {"state": "serving", "alive": True, "idle": over, "progress": progress}
        return {"state": "finished" if over else "running", "alive": not over, "progress": progress}


@pytest.fixture(autouse=True)
def _a_look_costs_as_much_as_by_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter(range(10**9))
    monkeypatch.setattr(module.time, "thread_time", lambda: 0.045 * next(spent))


def ground(monkeypatch: pytest.MonkeyPatch, *given: Any) -> Ground:
    times: list[Ground] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: times[0].now if times else 0.0)
    made = Ground(*given)
    times.append(made)
    return made


@pytest.mark.parametrize("count", [1, 20, *rarely(1000)])
def test_an_end_that_can_be_foreseen_is_seen_soon(monkeypatch, count):
    made = ground(monkeypatch, count)
    made.run(END + 400)
    assert len(made.ended) == count
    # Each of the twenty destinations takes 1.8 s of the share, and then each source is asked at once.
    assert min(made.ended.values()) <= END + 5 and max(made.ended.values()) <= END + 60
    assert len(made.asked) <= 400 + count


def test_a_transfer_that_stalls_is_not_asked_all_the_time(monkeypatch):
    made = ground(monkeypatch, 1, END - 10)
    made.run(END - 0.1)
    assert len([at for at, _host in made.asked if at > END - 1000]) < 40


def test_what_is_known_is_of_running_transfers(monkeypatch):
    made = ground(monkeypatch, 3)
    made.run(100)
    assert set(made.looks.known) == {"job0", "job1", "job2"}
    assert all(status.progress.bytes_total == RATE * END for status in made.looks.known.values())
    made.run(END + 100)
    assert made.looks.known == {} and made.looks.next() is None
