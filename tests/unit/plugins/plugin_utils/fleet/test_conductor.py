# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop, with lives that wait for calls, pauses and transfers of hosts that only keep a status."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet import conductor as loop
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.conductor import Call, Conductor, Life, Pause, Watch
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Queue, Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.session import Place


class Host:
    """An inventory host whose jobs only keep a status: each ends when its time has come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ends: dict[str, float] = {}
        self.asked = 0
        self.is_gone = False
        self._busy = threading.Lock()

    def run(self, *steps: Mapping[str, object]) -> list[object]:
        assert self._busy.acquire(blocking=False), f"{self.name} is asked twice at the same time"
        try:
            self.asked += 1
            if self.is_gone:
                raise HostFailed("No route to host", self.name, unreachable=True)
            return [self._status(str(step["id"]), str(step["side"])) for step in steps]
        finally:
            self._busy.release()

    def _status(self, name: str, side: str) -> Mapping[str, object]:
        has_ended = time.monotonic() >= self.ends[name]
        if side == "dest":  # it serves until it is told to stop
            return {"state": "serving", "alive": True, "idle": has_ended}
        return {"state": "finished" if has_ended else "running", "alive": not has_ended}


def places(name: str, source: Host, dest: Host, seconds: float) -> tuple[Place, ...]:
    """Begin a transfer between two hosts, and return where it is known."""
    source.ends[name] = dest.ends[name] = time.monotonic() + seconds
    return (
        Place(source, {"id": name, "side": "source"}, drives=True),
        Place(dest, {"id": name, "side": "dest"}, drives=False),
    )


def drive(lives: Mapping[str, Callable[[], Life]], pairs: Mapping[str, Pair], limits: Limits, threads: int = 4) -> None:
    queue = Queue(limits)
    for number, (name, pair) in enumerate(pairs.items()):
        queue.add(Waiting(rank(0, 0, number), name, pair))
    Conductor(queue, threads, lambda _known: None).run(lives)
    assert not len(queue)


def test_a_life_gets_the_result_of_each_call_and_what_it_raises():
    seen = []

    def live() -> Life:
        seen.append((yield Call(lambda: 1)))
        try:
            yield Call(lambda: 1 // 0)
        except ZeroDivisionError:
            seen.append("caught")
        seen.append((yield Call(lambda: 2)))

    drive({"a": live}, {"a": Pair("s", "d")}, Limits())
    assert seen == [1, "caught", 2]


def test_what_a_life_does_not_expect_ends_the_run():
    def live() -> Life:
        yield Call(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        drive({"a": live}, {"a": Pair("s", "d")}, Limits())


def test_who_pauses_lets_others_go_first():
    order = []

    def pausing() -> Life:
        order.append("begins")
        yield Pause(0.2)
        order.append("goes on")

    def other() -> Life:
        order.append("other")
        yield Call(lambda: None)

    pairs = {"a": Pair("s", "d"), "b": Pair("t", "d")}
    drive({"a": pausing, "b": other}, pairs, Limits(per_dest=1))
    assert order == ["begins", "other", "goes on"]


def test_a_thousand_running_transfers_need_few_threads_and_few_questions():
    sources = [Host(f"old{number}") for number in range(1000)]
    dests = [Host(f"new{number}") for number in range(20)]
    running, most, ended = set(), [0], []

    def make(number: int) -> Callable[[], Life]:
        def live() -> Life:
            name = str(number)
            running.add(name)
            most[0] = max(most[0], len(running))
            begun = yield Call(lambda: places(name, sources[number], dests[number % 20], 3.0))
            status = yield Watch(begun, patience=60)
            assert status.state == "finished"
            running.remove(name)
            ended.append(name)

        return live

    before = threading.active_count()
    pairs = {str(number): Pair(f"old{number}", f"new{number % 20}") for number in range(1000)}
    drive({str(number): make(number) for number in range(1000)}, pairs, Limits(1000, 1, 50), threads=8)
    assert sorted(ended, key=int) == [str(number) for number in range(1000)]
    assert most[0] == 1000 and threading.active_count() == before
    # The destinations are asked how far all are, and each source once: how its transfer ended.
    assert Counter(source.asked for source in sources) == {1: 1000}
    assert sum(dest.asked for dest in dests) < 400


def test_a_host_that_is_out_of_reach_for_a_while_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "_AGAIN", 0.1)
    source, dest = Host("old"), Host("new")
    source.is_gone = dest.is_gone = True
    ended = []

    def live() -> Life:
        ended.append((yield Watch(places("a", source, dest, 0.0), patience=60)))

    threading.Timer(2.0, lambda: setattr(source, "is_gone", False)).start()
    threading.Timer(2.0, lambda: setattr(dest, "is_gone", False)).start()
    drive({"a": live}, {"a": Pair("old", "new")}, Limits())
    assert [status.state for status in ended] == ["finished"] and source.asked + dest.asked > 3


def test_a_host_that_stays_away_ends_the_wait_and_says_that_the_transfer_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "_AGAIN", 0.1)
    source, dest = Host("old"), Host("new")
    source.is_gone = dest.is_gone = True
    said = []

    def live() -> Life:
        try:
            yield Watch(places("a", source, dest, 0.0), patience=1.0)
        except HostFailed as error:
            said.append(str(error))

    drive({"a": live}, {"a": Pair("old", "new")}, Limits())
    assert len(said) == 1 and "No route to host. The transfer goes on without the control node" in said[0]


def test_a_status_that_nobody_can_read_ends_no_other_job(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "_AGAIN", 0.1)
    good, bad, dest = Host("good"), Host("bad"), Host("new")
    monkeypatch.setattr(bad, "_status", lambda _name, _side: "nonsense")
    ended = []

    def make(name: str, source: Host) -> Callable[[], Life]:
        def live() -> Life:
            try:
                yield Watch(places(name, source, dest, 0.0), patience=1.0)
            except HostFailed:
                ended.append(f"{name} lost")
            else:
                ended.append(f"{name} finished")

        return live

    pairs = {"a": Pair("good", "new"), "b": Pair("bad", "new")}
    drive({"a": make("a", good), "b": make("b", bad)}, pairs, Limits(per_dest=2))
    assert sorted(ended) == ["a finished", "b lost"]


@pytest.mark.parametrize("seed", range(3))
def test_limits_hold_while_jobs_begin_pause_and_end(seed: int):
    limits = Limits(running=5, per_source=2, per_dest=1)
    running: Counter[str] = Counter()

    def make(pair: Pair, number: int) -> Callable[[], Life]:
        def begin() -> None:
            running.update([pair.source, pair.dest, "all"])
            assert running["all"] <= 5 and running[pair.source] <= 2 and running[pair.dest] <= 1

        def live() -> Life:
            begin()
            yield Call(lambda: time.sleep(0.01 * ((number + seed) % 3)))
            if number % 4 == seed:
                running.subtract([pair.source, pair.dest, "all"])
                yield Pause(0.01)
                begin()
            yield Call(lambda: None)
            running.subtract([pair.source, pair.dest, "all"])

        return live

    pairs = {str(number): Pair(f"s{number % 3}", f"d{number % 7}") for number in range(60)}
    drive({name: make(pair, int(name)) for name, pair in pairs.items()}, pairs, limits)
    assert not +running
