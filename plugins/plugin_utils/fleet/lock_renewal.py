# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renews the leases of all jobs of a run, and releases those of jobs that have ended.

Executions that are made anyhow renew leases. Where there was none for a while, one execution at a host renews all that
it has, whatever their jobs wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.boot import boot_seconds

from ..hosts.host_runner import ControllerGone, HostFailed, HostRunner
from .lock import RENEWED, Lease

_AGAIN = 15.0  # seconds after which a host that did not answer is asked again
_BATCH = 20.0  # seconds that a release may wait for others of its host
_RIDES = 0.5  # of the time to its renewal: from then on an execution that is made anyhow renews a lease


class Renewal(NamedTuple):
    """What one execution asks for leases, and when it was made."""

    leases: Sequence[Lease]
    sent: float
    answers: Sequence[object] = ()


class LeaseRenewer:
    """The leases of a run. All functions but the calls that it returns are for one thread."""

    def __init__(self, runner: Callable[[str], HostRunner], now: Callable[[], float] = boot_seconds) -> None:
        """Take what makes the runner of an inventory host."""
        self._runner, self._now = runner, now
        self._leases: dict[str, Lease] = {}  # by the names of jobs
        self._ended: dict[str, float] = {}  # since when a job needs its lease no more
        self._records: dict[str, Mapping[str, object] | None] = {}  # what is kept of a job that has ended
        self._runners: dict[str, HostRunner] = {}
        self._asking: set[str] = set()  # hosts
        self._failed: dict[str, float] = {}  # when a host did not answer

    def add(self, job: str, lease: Lease) -> None:
        """Keep the lease of a job, once this run has it."""
        self._leases[job] = lease

    def release(self, job: str, record: Mapping[str, object] | None = None) -> None:
        """Let another control node have a job, soon, once its destination has kept a record of it, if there is one."""
        if job in self._leases:
            self._ended[job], self._records[job] = self._now(), record

    @property
    def lost(self) -> dict[str, str]:
        """Why leases are lost, by the names of their jobs."""
        return {job: lease.lost for job, lease in self._leases.items() if lease.lost}

    @property
    def is_asking(self) -> bool:
        """Whether a host is being asked."""
        return bool(self._asking)

    def wait(self) -> float | None:
        """Return the seconds until the next host is to be asked; None if none is."""
        times = [self._due(host) for host in self._hosts() if host not in self._asking]
        return max(0.0, min(times) - self._now()) if times else None

    def due(self, *, last: bool = False) -> list[tuple[str, Callable[[], Renewal]]]:
        """Return the hosts that are to be asked now, each with the call that does; ``last``: no more jobs will end.

        Each call must be made, and its result be given to ``take``.
        """
        calls = []
        for host in self._hosts():
            is_due = self._due(host) <= self._now() or (last and any(self._of(host, ended=True)))
            if is_due and host not in self._asking:
                if host not in self._runners:
                    self._runners[host] = self._runner(host)
                self._asking.add(host)
                calls.append((host, self._call(host)))
        return calls

    def take(self, host: str, future: Future[Renewal], *, last: bool = False) -> None:
        """Take the answers of a host that was asked; ``last``: what it did not do is not tried again."""
        self._asking.discard(host)
        error = future.exception()
        if error is None:
            self.hear(future.result())
            return
        if isinstance(error, ControllerGone) or not isinstance(error, HostFailed):
            raise error
        self._failed[host] = self._now()
        self._runners[host].reset()
        if last:
            for job, _lease in self._of(host, ended=True):
                self._forget(job)

    def ride(self, host: str) -> Renewal:
        """Return the leases that an execution renews which is made here anyhow; the answers are for ``hear``."""
        old = [lease for _job, lease in self._of(host) if lease.age > _RIDES * RENEWED * lease.life]
        return Renewal([] if host in self._asking else old, self._now())

    def hear(self, renewal: Renewal) -> None:
        """Take answers of a host; a lease that it did not answer for is renewed another time."""
        for lease, answer in zip(renewal.leases, renewal.answers):
            lease.take(answer, renewal.sent)
            self._failed.pop(lease.host, None)
        heard = renewal.leases[: len(renewal.answers)]
        for job in [job for job in self._ended if self._leases[job] in heard]:
            self._forget(job)

    def close(self) -> None:
        """Let go of the connections."""
        for runner in self._runners.values():
            runner.close()

    def _call(self, host: str) -> Callable[[], Renewal]:
        ended, others = self._of(host, ended=True), self._of(host)
        requests = [lease.request("release", record=self._records[job]) for job, lease in ended]
        requests += [lease.request() for _job, lease in others]
        leases, runner = [lease for _job, lease in (*ended, *others)], self._runners[host]

        def ask() -> Renewal:
            sent = self._now()
            return Renewal(leases, sent, runner.run(*requests))

        return ask

    def _of(self, host: str, *, ended: bool = False) -> list[tuple[str, Lease]]:
        """Return the leases of a host that this run has, and whose jobs have ended or not."""
        return [
            (job, lease)
            for job, lease in self._leases.items()
            if lease.host == host and lease.is_kept and (job in self._ended) == ended
        ]

    def _hosts(self) -> list[str]:
        return list(dict.fromkeys(lease.host for lease in self._leases.values() if lease.is_kept))

    def _due(self, host: str) -> float:
        """Return when a host is to be asked: for the lease that was renewed longest ago, and for releases."""
        now = self._now()
        times = [now + RENEWED * lease.life - lease.age for _job, lease in self._of(host)]
        times += [self._ended[job] + min(_BATCH, RENEWED * lease.life) for job, lease in self._of(host, ended=True)]
        return max(min(times), self._failed.get(host, now - _AGAIN) + _AGAIN) if times else now + _AGAIN

    def _forget(self, job: str) -> None:
        del self._leases[job], self._ended[job], self._records[job]
