# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop that drives many jobs at once with a few threads, and holds none for a job that waits.

The steps of a job are its *workflow*: a generator, which yields what it waits for and is resumed with the result. It
runs in the main thread, so workflows need no locks. Only calls to hosts and hooks run in threads.
"""

from __future__ import annotations

import contextvars
import heapq
import queue
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, Union

from ..hosts.host_runner import ControllerGone, fails_alone, require_controller
from ..transfer.status import Status
from .asking import threads_for
from .limits import Limits, Pair, links_of
from .lock_renewal import LeaseRenewer
from .polling import HostPoller, Watch
from .queue import Queue, Waiting

WORDS = (
    "Interrupted. Transfers that run go on, on the hosts, without Ansible. Run the same command again: it attaches to "
    "them, and continues with all jobs"
)
# Before the name of a host, in events: no job has a space in its name.
_LOOK = "look at "
_RENEW = "renew at "


class Call(NamedTuple):
    """Wait for the result of a function, which may ask hosts."""

    do: Callable[[], Any]


class HookCall(NamedTuple):
    """Wait for the result of a hook. It runs on a thread of its own, so that polls and renewals never wait for it."""

    do: Callable[[], Any]


class Pause(NamedTuple):
    """Wait for a time, and free what limits count meanwhile."""

    seconds: float


class Barrier(NamedTuple):
    """Wait until all other jobs of the group are at a barrier or have ended, and free what limits count meanwhile.

    ``decide`` is called once, with the names of the jobs that wait, and returns the result for each of them. From then
    on the jobs of the group have limits of their own: none of them waits for a job that has not come as far.
    """

    group: str
    decide: Callable[[Sequence[str]], Mapping[str, Any]]


class Periodic(NamedTuple):
    """Something that the main thread does at once and then from time to time. It must be short."""

    seconds: float
    do: Callable[[], None]


class HandOver(NamedTuple):
    """End the workflow here: something must be run that only tasks can do. The next action continues by the state."""

    what: Any


Workflow = Generator[Union[Call, HookCall, Pause, Barrier, HandOver, Watch], Any, None]


class Scheduler:
    """Runs workflows under limits. ``tell`` is called after each poll with what is known of the running transfers."""

    def __init__(
        self,
        limits: Limits,
        threads: int,
        tell: Callable[[Mapping[str, Status]], None],
        keeper: LeaseRenewer | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        periodic: Periodic | None = None,
        in_cutover: Callable[[Waiting], Waiting] | None = None,
    ) -> None:
        """Take the limits, how many calls are made at once, and what renews the leases of jobs that need one.

        ``groups`` are the names of jobs that wait for each other at barriers. ``in_cutover`` returns a job as it waits
        for its turn behind its first barrier: with another rank, or on disks in place of hosts.
        """
        self._periodic, self._next_time = periodic, 0.0
        self._limits, self._threads, self._tell, self._keeper = limits, threads, tell, keeper
        self._in_cutover = in_cutover or (lambda job: job)
        self._members = {name: members for members in (groups or {}).values() for name in members}
        self._jobs = {False: Queue(limits), True: Queue(limits)}  # those that copy, and those in their cutover
        self._events: queue.SimpleQueue[tuple[str, Future[Any]]] = queue.SimpleQueue()
        self._workflows: dict[str, Workflow] = {}
        self._waiting: dict[str, Waiting] = {}  # as the queue gave them, by name
        self._timers: list[tuple[float, str]] = []
        self._barriers: dict[str, Barrier] = {}  # by the name of the job that waits there
        self._answers: dict[str, Any] = {}  # of barriers, for jobs that wait for their turn again
        self._looks = HostPoller(keeper)
        self.handed_over: dict[str, Any] = {}  # by job, what tasks have to run

    def run(self, jobs: Iterable[Waiting], workflows: Mapping[str, Callable[[], Workflow]]) -> None:
        """Drive all jobs until each has ended, or waits for one that was handed over."""
        for job in jobs:
            self._add(job)
        self._unfinished = set(workflows)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="pair") as self._pool, ThreadPoolExecutor(
            2 * self._limits.running, thread_name_prefix="hook"
        ) as self._hook_pool:
            while True:
                self._do_periodic()
                self._begin_all(workflows)
                if len(self._barriers) == len(self._waiting):  # behind a job that was handed over
                    break
                self._look()
                self._take_event()
                self._wake()
            self._release_leases()
        for name in self._barriers:
            self._workflows.pop(name).close()

    def _do_periodic(self) -> None:
        if self._periodic and self._next_time <= time.monotonic():
            require_controller()  # else another run may be at work
            self._periodic.do()
            self._next_time = time.monotonic() + self._periodic.seconds

    def _begin_all(self, workflows: Mapping[str, Callable[[], Workflow]]) -> None:
        """Start or resume all jobs that limits allow."""
        while job := self._jobs[True].next() or self._jobs[False].next():
            self._waiting[job.name] = job
            if job.name not in self._workflows:  # else it comes back from a pause or a barrier
                self._workflows[job.name] = workflows[job.name]()
            self._resume(job.name, self._answers.pop(job.name, None))

    def _resume(self, name: str, value: Any, error: BaseException | None = None) -> None:
        """Let a workflow go on until it waits again."""
        workflow = self._workflows[name]
        try:
            wanted = workflow.throw(error) if error is not None else workflow.send(value)
        except StopIteration:
            del self._workflows[name]
            self._end(name)
            return
        if isinstance(wanted, Call):
            self._submit(name, wanted.do)
        elif isinstance(wanted, HookCall):
            self._submit(name, wanted.do, self._hook_pool)
        elif isinstance(wanted, Watch):
            self._looks.add(name, wanted)
        elif isinstance(wanted, Barrier):
            self._release(self._waiting[name])
            self._barriers[name] = wanted
            self._open_barrier(name)
        elif isinstance(wanted, HandOver):
            self.handed_over[name] = wanted.what
            self._workflows.pop(name).close()
            self._release(self._waiting.pop(name))
        else:
            self._release(self._waiting[name])
            heapq.heappush(self._timers, (time.monotonic() + wanted.seconds, name))

    def _end(self, name: str) -> None:
        self._unfinished.discard(name)
        self._release(self._waiting.pop(name))
        self._open_barrier(name)

    def _release(self, job: Waiting) -> None:
        self._jobs[job.is_cutover].release(job.pair)

    def _add(self, job: Waiting) -> None:
        self._jobs[job.is_cutover].add(job)

    def _open_barrier(self, changed: str) -> None:
        """Let the group of a job go on if no other job of it is on its way. ``changed`` waits now, or has ended."""
        members = self._members.get(changed, ())
        waiting = [name for name in members if name in self._barriers]
        if not waiting or any(name in self._unfinished and name not in self._barriers for name in members):
            return
        answers = self._barriers[waiting[0]].decide(waiting)
        for name in waiting:
            del self._barriers[name]
            self._answers[name] = answers[name]
            self._add(replace(self._in_cutover(self._waiting.pop(name)), is_cutover=True))

    def _submit(self, name: str, do: Callable[[], Any], pool: ThreadPoolExecutor | None = None) -> None:
        future = (pool or self._pool).submit(contextvars.copy_context().run, fails_alone, do)
        future.add_done_callback(lambda done: self._events.put((name, done)))

    def _take_event(self) -> None:
        """Wait for the end of a call, or for a time that has come."""
        times = [one[0] for one in self._timers[:1]] + [at for at in (self._looks.next(),) if at is not None]
        times += [self._next_time] if self._periodic else []
        waits = [max(0.0, min(times) - time.monotonic())] if times else []
        kept = self._keeper.wait() if self._keeper else None
        wait = min(waits if kept is None else [*waits, kept], default=None)
        try:
            name, future = self._events.get(timeout=wait)
        except queue.Empty:
            return
        require_controller()  # else another run may work on the job already, and its state is that run's
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
            self._add(self._waiting.pop(name))

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
        """Tell the workflows that watch a transfer of a job that another control node has now."""
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


def pair_of(job: Mapping[str, Any], source: str, dest: str, variables: Mapping[str, Any]) -> Pair:
    """Return the hosts of a job and its links; ``variables`` are those of the task."""
    return Pair(source, dest, links_of(job, [variables["hostvars"][name] for name in (source, dest)]))


def threads_of(limits: Limits, variables: Mapping[str, Any]) -> int:
    """Return how many calls to hosts a run makes at once; ``variables`` are those of the task."""
    return max(1, min(limits.running, threads_for(int(variables.get("ansible_forks") or 5))))
