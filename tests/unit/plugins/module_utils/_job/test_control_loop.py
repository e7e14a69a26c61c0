# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which processes are stopped, and real ones that are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.control_loop import (
    ProcessThrottle,
    ProgramProcess,
    _ask_ps,
    choose,
    list_processes,
)
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for

JOB = 100
WRITER = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, b"mover", 0, 0, 0)  # PR_SET_NAME
out = open(sys.argv[1], "wb", buffering=0)
while True:
    out.write(bytes(16384))
    time.sleep(0.0002)
"""


def below(*rest: tuple[int, int, str]) -> list[ProgramProcess]:
    return [ProgramProcess(1, 0, "init"), ProgramProcess(JOB, 1, "python3"), *(ProgramProcess(*one) for one in rest)]


@pytest.mark.parametrize(
    ("processes", "chosen"),
    [
        (below(), []),
        (below((200, JOB, "rsync"), (201, 200, "ssh")), [200]),  # a source that connects
        (below((200, JOB, "rsync"), (201, 200, "ssh"), (202, 200, "rsync")), [202]),  # a destination: the receiver
        (below((200, JOB, "python3"), (201, 200, "rsync"), (202, 201, "rsync")), [202]),  # ours in between
        (below((200, JOB, "rsync"), (201, JOB, "rsync")), [200, 201]),  # several streams
        (below((200, 1, "rsync"), (201, 200, "rsync")), []),  # of somebody else
        (
            [*below((201, 200, "rsync"), (202, 201, "rsync")), ProgramProcess(200, JOB, "rsync", True)],
            [202],
        ),  # a daemon
        ([*below(), ProgramProcess(200, JOB, "rsync", True)], []),  # that only listens
        (
            [*below(), ProgramProcess(200, JOB, "rsync", True), ProgramProcess(201, 200, "rsync", True)],
            [201],
        ),  # its child
    ],
)
def test_what_moves_contents_is_chosen(processes, chosen):
    assert choose(processes, JOB, "rsync") == chosen


def test_both_ways_to_list_processes_agree():
    found = {one.pid: one for one in list_processes("no such")}
    asked = {one.pid: one for one in _ask_ps("no such")}
    both = found.keys() & asked.keys()
    assert os.getpid() in both
    assert all(found[pid].parent == asked[pid].parent for pid in both)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]


@pytest.fixture(name="mover")
def a_mover(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", WRITER, os.devnull]) as process:
        comm = Path(f"/proc/{process.pid}/comm")
        wait_for(lambda: comm.read_text(encoding="ascii") == "mover\n")
        yield process
        process.kill()


def test_a_program_is_paused_and_goes_on(mover) -> None:
    throttle = ProcessThrottle("mover")
    throttle.step(True, 0, time.sleep, 0.05)
    wait_for(lambda: state_of(mover.pid) == "T")
    throttle.step(False, 0, time.sleep, 0.05)
    wait_for(lambda: state_of(mover.pid) != "T")
    throttle.release()


def written(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


@pytest.mark.parametrize("rate", [4 << 20, 40 << 20])
def test_a_program_is_as_fast_as_its_limit(mover, rate: int) -> None:
    throttle = ProcessThrottle("mover")
    throttle.step(False, rate, time.sleep, 0.5)
    until = time.monotonic() + 1
    while time.monotonic() < until:
        throttle.step(False, rate, time.sleep, 0.5)
    before, began = written(mover.pid), time.monotonic()
    while time.monotonic() < began + 4:
        throttle.step(False, rate, time.sleep, 0.5)
    reached = (written(mover.pid) - before) / (time.monotonic() - began)
    throttle.release()
    assert 0.3 * rate < reached < 1.6 * rate


KILLED = """
import os, sys, time
from ansible_collections.longhaul.fleet.plugins.module_utils._job.control_loop import ProcessThrottle
import subprocess
process = subprocess.Popen([sys.executable, "-c", sys.argv[1], os.devnull])
throttle = ProcessThrottle("mover")
while not throttle._pids:
    throttle.step(True, 0, time.sleep, 0.05)
print(process.pid, flush=True)
time.sleep(99)
"""


def test_what_is_stopped_goes_on_where_the_job_is_killed() -> None:
    argv = [sys.executable, "-c", KILLED, WRITER]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as job:
        assert job.stdout is not None
        pid = int(job.stdout.readline())
        try:
            wait_for(lambda: state_of(pid) == "T")
            job.kill()
            wait_for(lambda: state_of(pid) != "T")
        finally:
            os.kill(pid, signal.SIGKILL)
