# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of transfers that transfer nothing: each holds its lock and keeps its status, which is all that others see.

Run on a host of a testbed, with the number of jobs and what their ids begin with. They end when a file appears.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobFolder, JobStatus

END = "/data/end"  # the file
_SECONDS = 5.0  # between two reports
_TOTAL = 1 << 40  # bytes


def identity(prefix: str, number: int) -> str:
    """Return the id of a job's transfer."""
    return f"{prefix}{number:05x}".rjust(16, "0")


class StandingJob:
    """One of the jobs."""

    def __init__(self, transfer_id: str) -> None:
        self._folder = JobFolder(transfer_id, "dest")
        self._folder.create()
        self._folder.request = {"what": "transfer", "part": "drive", "side": "dest"}
        self._lock = self._folder.lock()
        self._began = time.time()
        self._done = 0

    def report(self) -> None:
        """Say that it has got farther."""
        self._done += 100 << 20
        self._write("running", {})

    def end(self) -> None:
        """Say that all is there, and be gone."""
        self._write("finished", {"outcome": Outcome().as_dict(), "ended": time.time()})
        os.close(self._lock or 0)

    def _write(self, state: str, more: JobStatus) -> None:
        self._folder.status = {
            "state": state,
            "pid": os.getpid(),
            "started": self._began,
            "updated": time.time(),
            "progress": {
                "phase": state,
                "bytes_done": self._done,
                "bytes_total": _TOTAL,
                "files_done": self._done >> 20,
                "files_total": _TOTAL >> 20,
                "current": "",
            },
            **more,
        }


def main(prefix: str, count: str) -> None:
    """Keep the jobs until they are to end."""
    jobs = [StandingJob(identity(prefix, number)) for number in range(int(count))]
    while not Path(END).exists():
        for job in jobs:
            job.report()
        time.sleep(_SECONDS)
    for job in jobs:
        job.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
