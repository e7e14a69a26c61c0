# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the job of a transfer that drives it ran, as one who looks on from outside sees it."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.bench import counters
from ansible_collections.longhaul.fleet.tests.support.faults import jobs
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

_PAUSE = 0.01  # seconds between two looks at what runs
_PATIENCE = 200  # milliseconds between two looks at whether this is over


class JobTime(counters.Onlooker):
    """Watch a transfer while it runs; ``seconds`` are those of the connecting job, from start to end.

    A transfer has a job at each end. The one that serves is there first, and waits; the other one drives, as a raw
    program does that is run by hand. Its beginning is the kernel's; its end is seen within some milliseconds.
    """

    def __init__(self, bed: Testbed) -> None:
        super().__init__(bed)
        self._seen: list[tuple[float, float]] = []  # when each job began, and how long it ran

    @property
    def seconds(self) -> float:
        """Return the seconds. Raise RuntimeError if two jobs were not seen."""
        if len(self._seen) < 2:
            raise RuntimeError(f"{len(self._seen)} jobs of the transfer were seen, and there must be two")
        return max(self._seen)[1]

    def _look(self) -> None:
        """Find the jobs, then let the kernel say when each ends: looking on must cost the transfer no time."""
        waited_for = set(self._bed.hosts)
        running: dict[int, float] = {}  # by a descriptor of its process: when a job began
        ends = select.poll()
        try:
            while not self._over.is_set():
                for host in list(waited_for):
                    for job in jobs(self._bed, host):
                        try:
                            began = counters.began(self._bed, host, job)
                            descriptor = os.pidfd_open(_number_here(self._bed.pid(host), job.pid))
                        except OSError:
                            continue
                        ends.register(descriptor, select.POLLIN)
                        running[descriptor] = began
                        waited_for.discard(host)
                if waited_for:
                    self._over.wait(_PAUSE)
                for descriptor, _event in ends.poll(0 if waited_for else _PATIENCE):
                    began = running.pop(descriptor)
                    self._seen.append((began, time.clock_gettime(time.CLOCK_BOOTTIME) - began))
                    ends.unregister(descriptor)
                    os.close(descriptor)
        finally:
            for descriptor in running:
                os.close(descriptor)


def _number_here(init: int, pid: int) -> int:
    """Return the machine's pid of a process on a host whose first process has the machine's pid ``init``.

    Raises ProcessLookupError if it is gone.
    """
    space = os.readlink(f"/proc/{init}/ns/pid")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "status").read_text().splitlines()
            numbers = next(line for line in lines if line.startswith("NSpid:")).split()
            if numbers[-1] == str(pid) and os.readlink(folder / "ns/pid") == space:
                return int(folder.name)
        except OSError:
            continue
    raise ProcessLookupError(pid)
