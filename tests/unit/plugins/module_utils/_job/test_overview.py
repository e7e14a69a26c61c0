# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says of its transfers, with real state folders."""

from __future__ import annotations

import os
import threading
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import overview, state

IDENTITY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def own_root(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))


def a_job(side="source", **status):
    folder = state.JobFolder(IDENTITY, side)
    folder.create()
    folder.request = {"part": "drive", "root": "/srv/data", "peer_name": "new", "settings": {"method": "rsync"}}
    folder.status = {"state": "running", "started": 100.0, "updated": 200.0, **status}
    return folder


def progress(done):
    return {
        "phase": "transfer", "bytes_done": done, "bytes_total": 9000, "files_done": 1, "files_total": 2, "current": ""
    }  # fmt: skip


def test_no_transfers_cost_no_second_look():
    began = time.monotonic()
    assert overview.look(5.0)["transfers"] == []
    assert time.monotonic() - began < 4


def test_a_transfer_that_runs_has_a_rate_by_its_own_clock():
    folder = a_job(progress=progress(1000))
    lock = folder.lock()
    later = threading.Timer(0.1, lambda: a_job(progress=progress(7000), updated=203.0))
    later.start()
    try:
        (one,) = overview.look(0.6)["transfers"]
    finally:
        later.join()
        os.close(lock)
    assert (one["state"], one["rate"], one["updated"], one["root"]) == ("running", 2000.0, 203.0, "/srv/data")


def test_one_look_tells_no_rate_and_a_failure_is_told():
    a_job(state="failed", failure="no space left", progress=progress(5))
    (one,) = overview.look(0)["transfers"]
    assert (one["state"], one["rate"], one["failure"]) == ("failed", None, "no space left")


@pytest.mark.parametrize(
    "before, after, rate",
    [
        ((100, 0.0), (600, 2.0), 250.0),
        ((600, 0.0), (100, 2.0), 0.0),  # files that must come again
        ((100, 2.0), (600, 2.0), None),  # it has not reported since
        (None, (600, 2.0), None),
    ],
)
def test_rates(before, after, rate):
    def job(values):
        done, updated = values
        return {
            "id": IDENTITY, "side": "dest", "state": "running", "started": 1.0, "updated": updated,
            "progress": progress(done),
        }  # fmt: skip

    (one,) = overview.with_rates([job(before)] if before else [], [job(after)])
    assert one["rate"] == rate


def test_a_job_that_began_anew_has_no_rate_yet():
    first = {"id": IDENTITY, "side": "dest", "state": "running", "started": 1.0, "updated": 1.0, "progress": {}}
    (one,) = overview.with_rates([first], [{**first, "started": 2.0, "updated": 3.0}])
    assert one["rate"] is None
