# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop, with lives that wait for calls, pauses and transfers of hosts that only keep a status."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet import poll_schedule
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair, on_disks
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock import Lease, Terms
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock_renewal import LeaseRenewer
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.polling import Watch
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.scheduler import (
    Barrier,
    Call,
    HandOver,
    HookCall,
    Pause,
    Periodic,
    Scheduler,
    Workflow,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed, LeaseLost
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.workflow import JobStopped, stop_alone
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Place


class Host:
    """An inventory host whose jobs only keep a status: each ends when its time has come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ends: dict[str, float] = {}
        self.asked = 0
        self.guarded = 0  # executions that depend on a lease: that of one job is nothing to the others
        self.is_gone = False
        self.leases: list[tuple[str, str]] = []  # what was asked for which
        self.records: list[object] = []
        self.taken: dict[str, object] = {}  # by another control node
        self._busy = threading.Lock()

    def run(self, *steps: Mapping[str, object], guarded: bool = True) -> list[object]:
        self.guarded += guarded
        assert self._busy.acquire(blocking=False), f"{self.name} is asked twice at the same time"
        try:
            self.asked += 1
            if self.is_gone:
                raise HostFailed("No route to host", self.name, unreachable=True)
            return [self._answer(step) for step in steps]
        finally:
            self._busy.release()

    def reset(self) -> None:
        """Forget a connection."""

    def _answer(self, step: Mapping[str, object]) -> Mapping[str, object]:
        if step["do"] == "poll":
            return self._status(str(step["id"]), str(step["side"]))
        self.leases.append((str(step["act"]), str(step["id"])))
        if step["record"] is not None:
            self.records.append(step["record"])
        return {"held": step["id"] not in self.taken, "found": self.taken.get(str(step["id"])), "problem": ""}

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


def drive(
    lives: Mapping[str, Callable[[], Workflow]],
    pairs: Mapping[str, Pair],
    limits: Limits,
    threads: int = 4,
    keeper: LeaseRenewer | None = None,
    groups: Mapping[str, list[str]] | None = None,
) -> dict[str, object]:
    scheduler = Scheduler(limits, threads, lambda _known: None, keeper, groups)
    scheduler.run([Waiting(rank(0, 0, number), name, pair) for number, (name, pair) in enumerate(pairs.items())], lives)
    return scheduler.handed_over


def test_a_life_gets_the_result_of_each_call_and_what_it_raises():
    seen = []

    def live() -> Workflow:
        seen.append((yield Call(lambda: 1)))
        try:
            yield Call(lambda: int("x"))
        except HostFailed:
            seen.append("caught")
        seen.append((yield Call(lambda: 2)))

    drive({"a": live}, {"a": Pair("s", "d")}, Limits())
    assert seen == [1, "caught", 2]


def test_what_a_life_does_not_expect_ends_the_run():
    def live() -> Workflow:
        yield Call(Path("/none/at/all").read_bytes)

    with pytest.raises(FileNotFoundError):
        drive({"a": live}, {"a": Pair("s", "d")}, Limits())


def deep() -> object:
    return json.loads("[" * 200_000)


@pytest.mark.parametrize(
    "answer", [deep, lambda: len(1), lambda: {}["x"], lambda: None.x, lambda: 2.0**10_000, lambda: [][1]]
)
@pytest.mark.parametrize("is_asked", [True, False], ids=["where it is asked", "where it is used"])
def test_whatever_an_answer_does_ends_its_job_alone(answer, is_asked):
    ended = []

    def steps() -> Workflow:
        yield Call(answer if is_asked else lambda: None)
        answer()

    def hostile() -> Workflow:
        try:
            yield from stop_alone(steps())
        except (HostFailed, JobStopped) as error:
            ended.append(str(error))

    def other() -> Workflow:
        yield Pause(0.05)
        ended.append((yield Call(lambda: "other")))

    drive({"a": hostile, "b": other}, {"a": Pair("s", "d"), "b": Pair("t", "u")}, Limits())
    assert len(ended) == 2 and ended[1] == "other" and "the answer of a host cannot be used" in ended[0]


def test_who_pauses_lets_others_go_first():
    order = []

    def pausing() -> Workflow:
        order.append("begins")
        yield Pause(0.2)
        order.append("goes on")

    def other() -> Workflow:
        order.append("other")
        yield Call(lambda: None)

    pairs = {"a": Pair("s", "d"), "b": Pair("t", "d")}
    drive({"a": pausing, "b": other}, pairs, Limits(per_dest=1))
    assert order == ["begins", "other", "goes on"]


def test_a_thousand_running_transfers_need_few_threads_and_few_questions():
    sources = [Host(f"old{number}") for number in range(1000)]
    dests = [Host(f"new{number}") for number in range(20)]
    running, most, ended = set(), [0], []

    def make(number: int) -> Callable[[], Workflow]:
        def live() -> Workflow:
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
    monkeypatch.setattr(poll_schedule, "AGAIN", 0.1)
    source, dest = Host("old"), Host("new")
    source.is_gone = dest.is_gone = True
    ended = []

    def live() -> Workflow:
        ended.append((yield Watch(places("a", source, dest, 0.0), patience=60)))

    threading.Timer(2.0, lambda: setattr(source, "is_gone", False)).start()
    threading.Timer(2.0, lambda: setattr(dest, "is_gone", False)).start()
    drive({"a": live}, {"a": Pair("old", "new")}, Limits())
    assert [status.state for status in ended] == ["finished"] and source.asked + dest.asked > 3


def test_a_host_that_stays_away_ends_the_wait_and_says_that_the_transfer_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(poll_schedule, "AGAIN", 0.1)
    source, dest = Host("old"), Host("new")
    source.is_gone = dest.is_gone = True
    said = []

    def live() -> Workflow:
        try:
            yield Watch(places("a", source, dest, 0.0), patience=1.0)
        except HostFailed as error:
            said.append(str(error))

    drive({"a": live}, {"a": Pair("old", "new")}, Limits())
    assert len(said) == 1 and "No route to host. The transfer goes on without the control node" in said[0]


def test_a_status_that_nobody_can_read_ends_no_other_job(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(poll_schedule, "AGAIN", 0.1)
    good, bad, dest = Host("good"), Host("bad"), Host("new")
    monkeypatch.setattr(bad, "_status", lambda _name, _side: "nonsense")
    ended = []

    def make(name: str, source: Host) -> Callable[[], Workflow]:
        def live() -> Workflow:
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


def test_in_their_cutover_jobs_on_other_disks_run_side_by_side_the_longest_first():
    """Three of four jobs of one pair of hosts have a disk of their own; the fourth waits for the longer one of two."""
    disks = {"short": "sda", "long": "sda", "other": "sdb", "third": "sdc"}
    seconds = {"short": 5.0, "long": 90.0, "other": 3.0, "third": 2.0}
    limits, pair = Limits(per_source=9), Pair("s", "d")
    met = threading.Barrier(3)
    order: list[str] = []

    def in_cutover(job: Waiting) -> Waiting:
        placed = on_disks(pair, {"dest": [disks[job.name]], "source": [job.name]}, limits)
        return replace(job, rank=rank(0, seconds[job.name], job.rank[2]), pair=placed)

    def copy(name: str) -> None:
        order.append(f"{name} begins")
        if name != "short":
            met.wait(20)
        order.append(f"{name} ends")

    def make(name: str) -> Callable[[], Workflow]:
        def live() -> Workflow:
            yield Barrier("server", lambda waiting: dict.fromkeys(waiting, ""))
            yield Call(lambda: copy(name))

        return live

    scheduler = Scheduler(limits, 4, lambda _known: None, None, {"server": list(disks)}, in_cutover=in_cutover)
    jobs = [Waiting(rank(0, 0, number), name, pair) for number, name in enumerate(disks)]
    scheduler.run(jobs, {name: make(name) for name in disks})
    assert order.index("long ends") < order.index("short begins")
    assert set(order[:3]) == {"long begins", "other begins", "third begins"}


@pytest.mark.parametrize("seed", range(3))
def test_limits_hold_while_jobs_begin_pause_and_end(seed: int):
    limits = Limits(running=5, per_source=2, per_dest=1)
    running: Counter[str] = Counter()

    def make(pair: Pair, number: int) -> Callable[[], Workflow]:
        def begin() -> None:
            running.update([pair.source, pair.dest, "all"])
            assert running["all"] <= 5 and running[pair.source] <= 2 and running[pair.dest] <= 1

        def live() -> Workflow:
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


def lease_of(name: str, host: str, life: float) -> Lease:
    """Return the lease of a job, which this run has."""
    lease = Lease(Terms(name, host, name, "a" * 32, "me@here", life), held=True)
    assert lease.take({"held": True, "found": None, "problem": ""}, lease.now()) == ""
    return lease


OTHER = {"holder": "b" * 32, "who": "other@there", "age": 5.0, "left": 800.0, "firm": False, "released": False}


def renewals(host: Host) -> Counter[str]:
    return Counter(name for act, name in host.leases if act == "renew")


def test_one_execution_a_host_renews_the_leases_of_all_jobs_whatever_they_wait_for():
    old, new = Host("old"), Host("new")
    keeper = LeaseRenewer(lambda _name: new, time.monotonic)
    seconds = 3.0  # more than twice as long as a lease lives

    def watching() -> Workflow:
        yield Watch((Place(old, {"id": "watching", "side": "source"}, drives=True),), patience=60)

    def calling() -> Workflow:
        yield Call(lambda: time.sleep(seconds))

    def pausing() -> Workflow:
        yield Pause(seconds)

    lives = {"watching": watching, "calling": calling, "pausing": pausing, "waiting": calling}
    old.ends["watching"] = time.monotonic() + seconds
    for name in lives:
        keeper.add(name, lease_of(name, "new", 1.2))
    keeper.add("not begun", Lease(Terms("not begun", "new", "x", "a" * 32, "me", 1.2)))
    pairs = {name: Pair("old", "new") for name in lives}
    drive(lives, pairs, Limits(running=3, per_source=3, per_dest=3), keeper=keeper)
    counts = renewals(new)
    assert set(counts) == set(lives) and min(counts.values()) >= 5 and max(counts.values()) <= 20, counts
    assert new.asked == max(counts.values())  # all of them in each execution


def test_a_look_at_the_destination_renews_its_leases_by_the_way():
    olds, new = [Host("old0"), Host("old1")], Host("new")
    keeper = LeaseRenewer(lambda _name: pytest.fail("an execution was made for the leases alone"), time.monotonic)
    names = [str(number) for number in range(10)]

    def make(name: str) -> Callable[[], Workflow]:
        def live() -> Workflow:
            yield Watch(places(name, olds[int(name) % 2], new, 6.0), patience=60)

        return live

    for name in names:
        keeper.add(name, lease_of(name, "new", 12.0))  # renewed after 4 s, or by the way after 2 s
    drive(
        {name: make(name) for name in names},
        {name: Pair("old", "new") for name in names},
        Limits(10, 10, 10),
        keeper=keeper,
    )
    assert set(renewals(new)) == set(names) and not new.guarded


def test_a_thousand_leases_cost_an_execution_for_each_destination():
    hosts = {f"new{number}": Host(f"new{number}") for number in range(20)}
    keeper = LeaseRenewer(hosts.__getitem__, time.monotonic)
    for number in range(1000):
        keeper.add(str(number), lease_of(str(number), f"new{number % 20}", 6.0))

    def live() -> Workflow:
        yield Call(lambda: time.sleep(2.5))

    drive({"x": live}, {"x": Pair("old", "new0")}, Limits(), keeper=keeper)
    assert [host.asked for host in hosts.values()] == [1] * 20
    assert all(len(host.leases) == 50 for host in hosts.values())


def test_a_job_that_another_control_node_has_taken_over_ends_and_the_others_go_on():
    old, new = Host("old"), Host("new")
    keeper = LeaseRenewer(lambda _name: new, time.monotonic)
    ended = {}

    def make(name: str) -> Callable[[], Workflow]:
        def live() -> Workflow:
            try:
                ended[name] = (yield Watch((Place(old, {"id": name, "side": "source"}, drives=True),), 60)).state
            except LeaseLost as lost:
                ended[name] = str(lost)
                keeper.release(name)

        return live

    for name in ("taken", "kept", "gone"):
        old.ends[name] = time.monotonic() + 3.0
        keeper.add(name, lease_of(name, "new", 1.5))
    new.taken = {"taken": OTHER, "gone": None}
    lives = {name: make(name) for name in ("taken", "kept", "gone")}
    drive(lives, dict.fromkeys(lives, Pair("old", "new")), Limits(5, 5, 5), keeper=keeper)
    assert ended["kept"] == "finished"
    assert "other@there has taken over job taken, as new says" in ended["taken"], ended
    assert "the lease of job gone is gone from new" in ended["gone"]
    assert not any(act == "release" for act, _name in new.leases)  # it is not ours


def test_leases_are_released_together_at_the_end_and_soon_after_their_jobs():
    new, other = Host("new"), Host("other")
    keeper = LeaseRenewer({"new": new, "other": other}.__getitem__, time.monotonic)

    def make(name: str, seconds: float) -> Callable[[], Workflow]:
        def live() -> Workflow:
            yield Call(lambda: time.sleep(seconds))
            keeper.release(name, {"job": name} if name != "b" else None)

        return live

    for name in ("a", "b", "c"):
        keeper.add(name, lease_of(name, "other" if name == "c" else "new", 900.0))
    keeper.add("left", lease_of("left", "new", 900.0))  # for the role
    lives = {"a": make("a", 0.0), "b": make("b", 0.2), "c": make("c", 0.1)}
    drive(lives, dict.fromkeys(lives, Pair("old", "new")), Limits(5, 5, 5), keeper=keeper)
    assert [name for act, name in new.leases if act == "release"] == ["a", "b"] and new.asked == 1
    assert other.leases == [("release", "c")] and (new.records, other.records) == ([{"job": "a"}], [{"job": "c"}])
    # Of a run that takes long they do not wait for the end.
    new.leases.clear()
    keeper.add("d", lease_of("d", "new", 3.0))
    lives = {"d": make("d", 0.0), "long": make("long", 2.5)}
    drive(lives, dict.fromkeys(lives, Pair("old", "new")), Limits(5, 5, 5), keeper=keeper)
    assert [one for one in new.leases if one[0] == "release"] == [("release", "d")]


def test_a_host_that_does_not_answer_for_its_leases_does_not_hold_up_the_end():
    new = Host("new")
    new.is_gone = True
    keeper = LeaseRenewer(lambda _name: new, time.monotonic)
    keeper.add("a", lease_of("a", "new", 0.3))

    def live() -> Workflow:
        yield Call(lambda: time.sleep(0.5))
        keeper.release("a")

    drive({"a": live}, {"a": Pair("old", "new")}, Limits(), keeper=keeper)
    assert new.asked == 2  # as it was due, and in the end


def test_a_hook_runs_beside_calls_of_a_run_with_one_thread():
    """A hook that lasts holds up neither the calls of other jobs nor what its own limit does not count."""
    order, may_end = [], threading.Event()

    def hooked() -> Workflow:
        yield HookCall(lambda: may_end.wait(10))
        order.append("hook")

    def other() -> Workflow:
        yield Call(lambda: order.append("call"))
        may_end.set()

    drive({"a": hooked, "b": other}, {"a": Pair("s", "d"), "b": Pair("t", "e")}, Limits(), threads=1)
    assert order == ["call", "hook"]


def test_jobs_of_a_group_go_on_together_and_one_that_has_ended_is_not_waited_for():
    order: list[str] = []

    def decide(names: Sequence[str]) -> dict[str, str]:
        order.append(f"decided for {' '.join(names)}")
        return {name: f"{name} goes on" for name in names}

    def member(name: str, fails: bool = False) -> Callable[[], Workflow]:
        def live() -> Workflow:
            order.append(f"{name} copies")
            if fails:
                return
            order.append((yield Barrier("group", decide)))

        return live

    pairs = {name: Pair("s", "d") for name in "abc"}  # one after the other, since they share their hosts
    workflows = {"a": member("a"), "b": member("b", fails=True), "c": member("c")}
    drive(workflows, pairs, Limits(), groups={"group": ["a", "b", "c"]})
    assert order == ["a copies", "b copies", "c copies", "decided for a c", "a goes on", "c goes on"]


def test_a_group_in_its_cutover_waits_for_no_copy_of_another_job():
    order, may_end = [], threading.Event()

    def member() -> Workflow:
        yield Barrier("group", lambda names: dict.fromkeys(names))
        order.append("cutover")
        may_end.set()

    def copies() -> Workflow:
        yield Call(lambda: may_end.wait(10))
        order.append("copied")

    pairs = {"a": Pair("s", "d"), "b": Pair("s", "d")}
    drive({"a": member, "b": copies}, pairs, Limits(), groups={"group": ["a"]})
    assert order == ["cutover", "copied"]


def test_what_is_handed_over_ends_here_and_holds_up_its_group_alone():
    ended: list[str] = []

    def handed() -> Workflow:
        try:
            yield HandOver("a file of tasks")
            raise AssertionError("it went on")
        finally:
            ended.append("closed")

    def sibling() -> Workflow:
        try:
            yield Barrier("group", lambda names: dict.fromkeys(names))
            raise AssertionError("it went on")
        finally:
            ended.append("sibling closed")

    def other() -> Workflow:
        yield Call(lambda: None)
        ended.append("other")

    pairs = {"a": Pair("s", "d"), "b": Pair("s", "d"), "c": Pair("s", "d")}
    handed_over = drive({"a": handed, "b": sibling, "c": other}, pairs, Limits(), groups={"group": ["a", "b"]})
    assert handed_over == {"a": "a file of tasks"} and sorted(ended) == ["closed", "other", "sibling closed"]


def test_what_is_periodic_is_done_at_once_and_again_while_a_job_waits():
    done = []

    def live() -> Workflow:
        yield Pause(0.5)

    waiting = [Waiting(rank(0, 0, 0), "a", Pair("s", "d"))]
    periodic = Periodic(0.1, lambda: done.append(time.monotonic()))
    Scheduler(Limits(), 1, lambda _known: None, periodic=periodic).run(waiting, {"a": live})
    assert len(done) >= 3 and all(later - before >= 0.1 for before, later in zip(done, done[1:]))
