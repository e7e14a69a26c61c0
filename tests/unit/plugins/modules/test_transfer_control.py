# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, beside a process that runs as a job does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import state

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/transfer_control.py"
IDENTITY = "0123456789abcdef"
# Holds the lock of a job, and ends when it is asked to.
JOB = """
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(99)
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "longhaul"))
    folder = state.JobFolder(IDENTITY, "dest")
    folder.create()
    argv = [sys.executable, "-c", JOB, folder.file("lock")]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    folder.request = {"part": "serve", "settings": {"method": "stream"}, "peer_name": "old", "root": "/srv/x"}
    folder.status = {"state": "serving", "pid": process.pid}
    yield process
    process.kill()
    process.wait()


def run(tmp_path: Path, identity: str = IDENTITY, check: bool = False) -> dict[str, Any]:
    """Run the module with a state root of the test's."""
    arguments = {
        "id": identity,
        "state": "cancelled",
        "_ansible_check_mode": check,
        "_ansible_remote_tmp": str(tmp_path),
    }
    program = (
        "import runpy, sys; from ansible_collections.longhaul.fleet.plugins.module_utils._job import state; "
        f"state.state_root = lambda: {str(tmp_path / 'longhaul')!r}; "
        f"runpy.run_path({str(MODULE)!r}, run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(ran.stdout)


def test_a_running_job_is_stopped_once(tmp_path: Path, job: subprocess.Popen[str]) -> None:
    assert run(tmp_path, check=True)["changed"]
    assert job.poll() is None
    done = run(tmp_path)
    assert done["changed"] and job.wait(10) != 0
    assert done["transfers"] == [
        {
            "id": IDENTITY,
            "side": "dest",
            "part": "serve",
            "peer": "old",
            "root": "/srv/x",
            "state": "interrupted",
            "paused": False,
            "bwlimit": 0,
        }
    ]
    again = run(tmp_path)
    assert not again["changed"] and again["transfers"] == done["transfers"]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(tmp_path: Path, job: subprocess.Popen[str]) -> None:
    for check in (True, False):
        failed = run(tmp_path, "fedcba9876543210", check)
        assert failed["failed"]
        assert all(word in failed["msg"] for word in ("fedcba9876543210", IDENTITY, "/srv/x", "old", "serving"))
    assert job.poll() is None


def test_an_unknown_name_where_there_is_no_transfer(tmp_path: Path) -> None:
    assert "none at all" in run(tmp_path)["msg"]
