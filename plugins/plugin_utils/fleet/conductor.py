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
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Union

from ..host_runner import ControllerGone, fails_alone
from ..status import Status
from .keeper import Keeper
from .looks import Looks, Watch
from .queue import Queue, Waiting

# Before the name of a host, in events: no job has a space in its name.
_LOOK = "look at "
_RENEW = "renew at "


class Call(NamedTuple):
    """Wait for the result of a function, which may ask hosts."""

    do: Callable[[], Any]


class Pause(NamedTuple):
    """Wait so many seconds, and let go of what limits count meanwhile."""

    seconds: float


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
        self._looks = Looks(keeper)

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
        future = self._pool.submit(contextvars.copy_context().run, fails_alone, do)
        future.add_done_callback(lambda done: self._events.put((name, done)))

    def _take_event(self) -> None:
        """Wait for the end of a call, or for a time that has come."""
        times = [one[0] for one in self._timers[:1]] + [at for at in (self._looks.next(),) if at is not None]
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
