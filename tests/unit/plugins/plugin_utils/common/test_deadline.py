# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What does not end in time is given up, and its processes are ended: these alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.deadline import (
    DeadlinePassed,
    ReadTooMuch,
    run_with_deadline,
)

TASK: ContextVar[str] = ContextVar("task")


def exists(process: int) -> bool:
    """Return whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_what_ends_in_time_gives_what_it_returns_or_raises() -> None:
    TASK.set("this one")
    assert run_with_deadline(TASK.get, 60) == run_with_deadline(TASK.get, None) == "this one"
    for failing, error in ((lambda: int("x"), ValueError), (sys.exit, SystemExit)):
        with pytest.raises(error):
            run_with_deadline(failing, 60)


def test_a_process_that_does_not_end_is_ended_with_those_that_it_started(tmp_path: Path) -> None:
    """A shell and its child, which holds the pipe open, as with a local connection; another thread's child lives on."""
    other = subprocess.Popen(["sleep", "60"])
    told = tmp_path / "told"

    def wait() -> bytes:
        argv = ["sh", "-c", f"sh -c 'trap \"\" TERM; echo $$ > {told}; sleep 60'; true"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        return process.communicate()[0]

    began = time.monotonic()
    before = threading.active_count()
    try:
        with pytest.raises(DeadlinePassed):
            run_with_deadline(wait, 1)
        assert time.monotonic() - began < 8
        assert not exists(int(told.read_text())) and exists(other.pid)
        assert threading.active_count() == before
    finally:
        other.kill()
        other.wait()


def test_a_process_that_prints_too_much_is_ended() -> None:
    """It is read in pieces, and all of them are kept, as connection plugins do."""

    def read() -> bytes:
        process = subprocess.Popen(["sh", "-c", "head -c 8000000 /dev/zero; exec sleep 60"], stdout=subprocess.PIPE)
        return process.communicate()[0]

    began = time.monotonic()
    with pytest.raises(ReadTooMuch):
        run_with_deadline(read, None, most_bytes=4_000_000)
    with pytest.raises(ReadTooMuch):
        run_with_deadline(read, 50, most_bytes=4_000_000)
    assert time.monotonic() - began < 20
    assert run_with_deadline(lambda: subprocess.check_output(["echo", "x"]), 50, most_bytes=4_000_000) == b"x\n"


def test_a_process_is_ended_by_the_outer_of_two_deadlines() -> None:
    began, ended = time.monotonic(), []

    def wait() -> None:
        process = subprocess.Popen(["sleep", "60"])
        process.wait()
        ended.append(process.returncode)

    with pytest.raises(DeadlinePassed):
        run_with_deadline(lambda: run_with_deadline(wait, None, most_bytes=10**9), 0.5)
    assert ended == [-signal.SIGKILL] and time.monotonic() - began < 20


def test_what_waits_for_no_process_is_given_up() -> None:
    release = threading.Event()
    with pytest.raises(DeadlinePassed):
        run_with_deadline(release.wait, 0.05)
    release.set()
