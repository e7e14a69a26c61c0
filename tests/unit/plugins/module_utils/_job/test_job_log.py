# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""However much is logged, a job's log stays small, and has the newest lines."""

from __future__ import annotations

import os

from ansible_collections.longhaul.fleet.plugins.module_utils._job import job_log
from ansible_collections.longhaul.fleet.plugins.module_utils._job.job_log import JobLog


def test_the_log_of_a_job_does_not_grow_without_end(tmp_path):
    path = tmp_path / "log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        log = JobLog(str(path), fd)
        os.write(fd, b"what Python itself printed\n")
        largest = 0
        for number in range(60_000):
            log(f"port 1: stranger {number} connected, which is not the other host: dropped")
            if number % 1000 == 0:
                largest = max(largest, path.stat().st_size)
        log("x" * 1_000_000)
        log("the transfer failed: \udcff")
    finally:
        os.close(fd)
    assert job_log.KEPT_BYTES < largest <= job_log.MOST_BYTES + 100 and path.stat().st_size <= job_log.MOST_BYTES
    lines = path.read_bytes().splitlines()
    assert lines[0] == b"(earlier lines are gone)" and lines[-1] == b"the transfer failed: \xff"
    numbers = [int(line.split()[3]) for line in lines[1:-2]]
    assert numbers == list(range(numbers[0], 60_000)) and len(numbers) > 1000
