# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the job of a transfer that drives it ran, as one who looks on from outside sees it."""

from __future__ import annotations

import contextlib
import time

from ansible_collections.longhaul.fleet.tests.bench import counters
from ansible_collections.longhaul.fleet.tests.support.faults import jobs
from ansible_collections.longhaul.fleet.tests.testbed import Process, Testbed

_PAUSE = 0.004  # seconds between two looks


class JobTime(counters.Onlooker):
    """Looks on while a transfer runs; ``seconds`` are those of the job that drives, from its start to its end.

    A transfer has a job at each end. The one that serves is there first, and waits; the other one drives, as a raw
    program does that is run by hand. Its beginning is the kernel's; its end is seen within some milliseconds.
    """

    def __init__(self, bed: Testbed) -> None:
        super().__init__(bed)
        self._seen: list[tuple[float, float]] = []  # when each job began, and how long it ran

    @property
    def seconds(self) -> float:
        """Give the seconds. Raises RuntimeError where two jobs were not seen."""
        if len(self._seen) < 2:
            raise RuntimeError(f"{len(self._seen)} jobs of the transfer were seen, and there must be two")
        return max(self._seen)[1]

    def _look(self) -> None:
        waited_for = set(self._bed.hosts)
        running: dict[str, tuple[Process, float]] = {}
        while not self._over.wait(_PAUSE):
            for host in waited_for - running.keys():
                for job in jobs(self._bed, host):
                    with contextlib.suppress(OSError):
                        running[host] = job, counters.began(self._bed, host, job)
            for host, (job, began) in list(running.items()):
                if not self._runs(host, job):
                    self._seen.append((began, time.clock_gettime(time.CLOCK_BOOTTIME) - began))
                    del running[host]
                    waited_for.remove(host)

    def _runs(self, host: str, job: Process) -> bool:
        try:  # one that has ended, and waits to be collected, is over
            return counters.stat_fields(self._bed, host, job)[0] not in "ZX"
        except OSError:
            return False
