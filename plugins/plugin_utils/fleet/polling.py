# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The running transfers of a run, and what their hosts say of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from ..common.units import seconds_left
from ..hosts.host_runner import HostFailed, LeaseLost
from ..transfer.session import Place
from ..transfer.status import Status, parse_status
from ..transfer.steps import poll
from .lock_renewal import LeaseRenewer, Renewal
from .poll_schedule import PollSchedule, hosts_to_ask

_SSH = 2.0  # processor seconds of Python and ssh for each of Python alone, about, in a call to a host


@dataclass(frozen=True)
class Watch:
    """Wait for the end of a running transfer; the result is the last status of its connecting side."""

    places: tuple[Place, ...]
    patience: float  # seconds for which the hosts may be out of reach


class _Answer(NamedTuple):
    """What a host said of the transfers that it was asked about."""

    statuses: dict[str, Status]
    spent: float  # processor seconds
    renewal: Renewal


class _Heard(NamedTuple):
    """What was heard of a transfer last."""

    at: float
    status: Status | None = None


class HostPoller:
    """The running transfers, and when which host is asked about them. Called from one thread."""

    def __init__(self, keeper: LeaseRenewer | None) -> None:
        self._keeper = keeper
        self._watched: dict[str, Watch] = {}
        self._heard: dict[str, _Heard] = {}
        self._by_driver: set[str] = set()  # transfers about which only the connecting side is asked
        self._asking: set[str] = set()  # hosts
        self._assigned: dict[str, list[str]] = {}  # which host is asked about which transfers
        self._times = PollSchedule()

    @property
    def known(self) -> dict[str, Status]:
        """What is known of the running transfers, by their names."""
        return {name: heard.status for name, heard in self._heard.items() if heard.status is not None}

    def add(self, name: str, watch: Watch) -> None:
        """Ask about a transfer from now on."""
        self._watched[name] = watch
        self._heard[name] = _Heard(time.monotonic())
        self._plan()
        for host in {place.runner.name for place in watch.places}:
            self._times.hasten(host)

    def next(self) -> float | None:
        """Return when a host is to be asked next, None if none is."""
        return self._times.next(self._asking)

    def due(self) -> list[tuple[str, Callable[[], _Answer]]]:
        """Return the hosts whose time has come, with the call that asks each."""
        hosts = self._times.take_due(time.monotonic(), self._asking)
        self._asking.update(hosts)
        return [
            (host, self._question([(name, self._place(name, host)) for name in self._assigned[host]])) for host in hosts
        ]

    def take(self, host: str, future: Future[_Answer]) -> tuple[dict[str, Status], dict[str, HostFailed]]:
        """Return the transfers that have ended, with their status, and those that were out of reach for too long."""
        now = time.monotonic()
        self._asking.discard(host)
        error = future.exception()
        if error is None:
            return self._hear(host, future.result(), now), {}
        if not isinstance(error, (HostFailed, ValueError)):  # ValueError: what it said is nothing that it may say
            raise error
        self._times.failed(host, now)
        asked = self._assigned.get(host, ())
        # The connecting side may be in reach where the other is not.
        self._by_driver.update(name for name in asked if not self._place(name, host).drives)
        late = [name for name in asked if now - self._heard[name].at > self._watched[name].patience]
        for name in late:
            self._forget(name)
        self._plan()
        gone = "The transfer goes on without the control node; run the same command again to attach"
        return {}, {name: HostFailed(f"{error}. {gone}") for name in late}

    def _hear(self, host: str, answer: _Answer, now: float) -> dict[str, Status]:
        """Take what a host says of its transfers; return those that have ended."""
        if self._keeper:
            self._keeper.hear(answer.renewal)
        ended: dict[str, Status] = {}
        left: list[float] = []
        turned: list[str] = []
        for name, status in answer.statuses.items():
            if name not in self._watched:
                continue
            left += self._left(name, status, now)
            self._heard[name] = _Heard(now, status)
            if self._place(name, host).drives:
                if not status.alive:
                    ended[name] = status
            elif not status.alive or status.idle:
                turned.append(name)
        self._by_driver.update(turned)
        self._times.answered(host, now, answer.spent, bool(ended or turned), min(left, default=None))
        for name in ended:
            self._forget(name)
        self._plan()
        for name in turned:  # how it ended is all that its job waits for
            for driver in self._hosts(name):
                self._times.hasten(driver, urgent=True)
        return ended

    def give_up_lost(self) -> dict[str, LeaseLost]:
        """Stop watching the transfers of jobs that another control node has now; return why, by name."""
        lost = {name: why for name, why in self._keeper.lost.items() if name in self._watched} if self._keeper else {}
        for name in lost:
            self._forget(name)
        if lost:
            self._plan()
        return {name: LeaseLost(why) for name, why in lost.items()}

    def _left(self, name: str, status: Status, now: float) -> list[float]:
        """Return in how many seconds a transfer should end, at the rate since it was heard of before, if it has one."""
        before, progress = self._heard[name], status.progress
        if before.status is None or now <= before.at:
            return []
        rate = (progress.bytes_done - before.status.progress.bytes_done) / (now - before.at)
        left = seconds_left(progress.bytes_done, progress.bytes_total, max(0.0, rate))
        return [left] if left else []  # what has nothing left does something of unknown length

    def _forget(self, name: str) -> None:
        del self._watched[name], self._heard[name]
        self._by_driver.discard(name)

    def _plan(self) -> None:
        """Decide again which host is asked about which transfers."""
        self._assigned = hosts_to_ask({name: self._hosts(name) for name in self._watched})
        self._times.keep(self._assigned, time.monotonic())

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
