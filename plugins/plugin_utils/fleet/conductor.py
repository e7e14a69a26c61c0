# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop that drives many jobs at once with a few threads, and holds none for a job that waits.

What happens to a job is its *life*: a generator, which yields what it waits for and is resumed with the result. It runs
in the main thread, so lives need no locks. Only calls to hosts run in threads.
"""

from __future__ import annotations

import contextvars
import heapq
import queue
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

from ..host_runner import ControllerGone, HostFailed, LeaseLost
from ..session import Place
from ..status import Status, parse_status
from ..steps import poll
from .keeper import Keeper, Renewal
from .looking import hosts_to_ask, next_interval
from .queue import Queue, Waiting

_SSH = 2.0  # processor seconds of Python and ssh for each of Python alone, about, in a call to a host
_AGAIN = 5.0  # seconds after which a host that did not answer is asked again


class Call(NamedTuple):
    """Wait for the result of a function, which may ask hosts."""

    do: Callable[[], Any]


class Pause(NamedTuple):
    """Wait so many seconds, and let go of what limits count meanwhile."""

    seconds: float


@dataclass(frozen=True)
class Watch:
    """Wait for the end of a running transfer; the result is the last status of its connecting side."""

    places: tuple[Place, ...]
    patience: float  # seconds for which the hosts may be out of reach


Life = Generator[Union[Call, Pause, Watch], Any, None]


class Conductor:
    """Runs lives under limits. ``tell`` is called after each look with what is known of the running transfers."""

    def __init__(
        self,
        jobs: Queue,
        threads: int,
        tell: Callable[[Mapping[str, Status]], None],
        keeper: Keeper | None = None,
    ) -> None:
        """Take the jobs, how many calls are made at once, and what keeps the leases of jobs that need one."""
        self._jobs = jobs
        self._threads = threads
        self._tell = tell
        self._keeper = keeper
        self._events: queue.SimpleQueue[tuple[str, Future[Any]]] = queue.SimpleQueue()
        self._lives: dict[str, Life] = {}
        self._waiting: dict[str, Waiting] = {}  # as the queue gave them, by name
        self._timers: list[tuple[float, str]] = []
        self._looks = _Looks(keeper)

    def run(self, lives: Mapping[str, Callable[[], Life]]) -> None:
        """Drive all jobs of the queue to their end; ``lives`` makes the life of each by its name."""
        with ThreadPoolExecutor(self._threads, thread_name_prefix="pair") as self._pool:
            while True:
                while job := self._jobs.next():
                    self._begin(job, lives)
                if not self._waiting and not self._timers:
                    break
                self._look()
                self._take_event()
                self._wake()
            self._release_leases()

    def _begin(self, job: Waiting, lives: Mapping[str, Callable[[], Life]]) -> None:
        self._waiting[job.name] = job
        if job.name not in self._lives:  # else it comes back from a pause
            self._lives[job.name] = lives[job.name]()
        self._resume(job.name, None)

    def _resume(self, name: str, value: Any, error: BaseException | None = None) -> None:
        """Let a life go on until it waits again."""
        life = self._lives[name]
        try:
            wanted = life.throw(error) if error is not None else life.send(value)
        except StopIteration:
            del self._lives[name]
            self._jobs.release(self._waiting.pop(name).pair)
            return
        if isinstance(wanted, Call):
            self._submit(name, wanted.do)
        elif isinstance(wanted, Watch):
            self._looks.add(name, wanted)
        else:
            self._jobs.release(self._waiting[name].pair)
            heapq.heappush(self._timers, (time.monotonic() + wanted.seconds, name))

    def _submit(self, name: str, do: Callable[[], Any]) -> None:
        future = self._pool.submit(contextvars.copy_context().run, do)
        future.add_done_callback(lambda done: self._events.put((name, done)))

    def _take_event(self) -> None:
        """Wait for the end of a call, or for a time that has come."""
        times = [one[0] for one in self._timers[:1]] + self._looks.times()
        waits = [max(0.0, min(times) - time.monotonic())] if times else []
        kept = self._keeper.wait() if self._keeper else None
        wait = min(waits if kept is None else [*waits, kept], default=None)
        try:
            name, future = self._events.get(timeout=wait)
        except queue.Empty:
            return
        error = future.exception()
        if isinstance(error, ControllerGone):
            raise error
        if name.startswith(_LOOK):
            self._take_look(name[len(_LOOK) :], future)
        elif name.startswith(_RENEW) and self._keeper:
            self._keeper.take(name[len(_RENEW) :], future)
            self._end_lost()
        elif error is not None:
            self._resume(name, None, error)
        else:
            self._resume(name, future.result())

    def _wake(self) -> None:
        """Let jobs whose pause is over wait for their turn."""
        while self._timers and self._timers[0][0] <= time.monotonic():
            _at, name = heapq.heappop(self._timers)
            self._jobs.add(self._waiting.pop(name))

    def _look(self) -> None:
        for host, asked in self._looks.due():
            self._submit(_LOOK + host, asked)
        for host, renewed in self._keeper.due() if self._keeper else ():
            self._submit(_RENEW + host, renewed)

    def _take_look(self, host: str, future: Future[Any]) -> None:
        ended, lost = self._looks.take(host, future)
        self._tell(self._looks.known)
        for name, error in lost.items():
            self._resume(name, None, error)
        for name, status in ended.items():
            self._resume(name, status)
        self._end_lost()

    def _end_lost(self) -> None:
        """Tell the lives that watch a transfer of a job that another control node has now."""
        for name, error in self._looks.give_up_lost().items():
            self._resume(name, None, error)

    def _release_leases(self) -> None:
        """Let other control nodes have the jobs that have ended, and wait for the answers."""
        if self._keeper is None:
            return
        while True:
            for host, asked in self._keeper.due(last=True):
                self._submit(_RENEW + host, asked)
            if not self._keeper.is_asking:
                return
            name, future = self._events.get()
            if name.startswith(_RENEW):
                self._keeper.take(name[len(_RENEW) :], future, last=True)


# Before the name of a host, in events: no job has a space in its name.
_LOOK = "look at "
_RENEW = "renew at "


class _Answer(NamedTuple):
    """What a host said of the transfers that it was asked about."""

    statuses: dict[str, Status]
    spent: float  # processor seconds
    renewal: Renewal


class _Looks:
    """The running transfers, and when which host is asked about them."""

    def __init__(self, keeper: Keeper | None) -> None:
        self._keeper = keeper
        self.known: dict[str, Status] = {}
        self._watched: dict[str, Watch] = {}
        self._by_driver: set[str] = set()  # transfers about which only the connecting side is asked
        self._reached: dict[str, float] = {}  # when a transfer was last heard of
        self._interval: dict[str, float] = {}  # by host
        self._due: dict[str, float] = {}
        self._asking: set[str] = set()  # hosts
        self._assigned: dict[str, list[str]] = {}  # which host is asked about which transfers

    def add(self, name: str, watch: Watch) -> None:
        self._watched[name] = watch
        self._reached[name] = time.monotonic()
        self._plan()

    def times(self) -> list[float]:
        return [due for host, due in self._due.items() if host not in self._asking]

    def due(self) -> list[tuple[str, Callable[[], _Answer]]]:
        """Return the hosts whose time has come, with the call that asks each."""
        now, calls = time.monotonic(), []
        for host, names in self._assigned.items():
            if host not in self._asking and self._due[host] <= now:
                self._asking.add(host)
                calls.append((host, self._question([(name, self._place(name, host)) for name in names])))
        return calls

    def take(self, host: str, future: Future[_Answer]) -> tuple[dict[str, Status], dict[str, HostFailed]]:
        """Return the transfers that have ended, with their status, and those that were out of reach for too long."""
        now = time.monotonic()
        self._asking.discard(host)
        error = future.exception()
        if error is not None:
            if not isinstance(error, (HostFailed, ValueError)):  # ValueError: what it said is nothing that it may say
                raise error
            self._due[host] = now + _AGAIN
            asked = self._assigned.get(host, ())
            # The connecting side may be in reach where the other is not.
            self._by_driver.update(name for name in asked if not self._place(name, host).drives)
            late = [name for name in asked if now - self._reached[name] > self._watched[name].patience]
            for name in late:
                self._forget(name)
            self._plan()
            gone = "The transfer goes on without the control node; run the same command again to attach"
            return {}, {name: HostFailed(f"{error}. {gone}") for name in late}
        answer, ended = future.result(), {}
        if self._keeper:
            self._keeper.hear(answer.renewal)
        for name, status in answer.statuses.items():
            if name not in self._watched:
                continue
            self._reached[name], self.known[name] = now, status
            if not self._place(name, host).drives:
                if not status.alive or status.idle:
                    self._by_driver.add(name)
            elif not status.alive:
                ended[name] = status
        cost = answer.spent * max(1, len(self._due))
        turned = bool(ended) or any(name in self._by_driver for name in answer.statuses)
        self._interval[host] = next_interval(self._interval.get(host, 0.0), cost, turned)
        self._due[host] = now + self._interval[host]
        for name in ended:
            self._forget(name)
        self._plan()
        return ended, {}

    def give_up_lost(self) -> dict[str, LeaseLost]:
        """Stop watching the transfers of jobs that another control node has now; return why, by name."""
        lost = {name: why for name, why in self._keeper.lost.items() if name in self._watched} if self._keeper else {}
        for name in lost:
            self._forget(name)
        if lost:
            self._plan()
        return {name: LeaseLost(why) for name, why in lost.items()}

    def _forget(self, name: str) -> None:
        del self._watched[name], self._reached[name]
        self._by_driver.discard(name)
        self.known.pop(name, None)

    def _plan(self) -> None:
        """Decide again which host is asked about which transfers."""
        self._assigned = hosts_to_ask({name: self._hosts(name) for name in self._watched})
        now = time.monotonic()
        self._due = {host: self._due.get(host, now + next_interval(0.0, 0.0, False)) for host in self._assigned}

    def _hosts(self, name: str) -> tuple[str, ...]:
        places = self._watched[name].places
        return tuple(one.runner.name for one in places if one.drives or name not in self._by_driver)

    def _place(self, name: str, host: str) -> Place:
        """Return the place of a transfer on a host; that of the connecting side where it is both."""
        return max((one for one in self._watched[name].places if one.runner.name == host), key=lambda one: one.drives)

    def _question(self, asked: Sequence[tuple[str, Place]]) -> Callable[[], _Answer]:
        runner = asked[0][1].runner
        leases = self._keeper.ride(runner.name) if self._keeper else Renewal((), 0.0)

        def ask() -> _Answer:
            before = time.thread_time()
            polls = [poll(place.folder, 0.0) for _name, place in asked]
            said = runner.run(*polls, *(lease.request() for lease in leases.leases), guarded=False)
            statuses = {name: parse_status(one) for (name, _place), one in zip(asked, said)}
            renewal = leases._replace(answers=said[len(polls) :])
            return _Answer(statuses, _SSH * (time.thread_time() - before), renewal)

        return ask
