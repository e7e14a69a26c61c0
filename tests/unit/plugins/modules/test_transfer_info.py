# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rate and the time that is left, of plain data."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.modules.transfer_info import with_rate


@pytest.mark.parametrize(
    "state, started, done, total, rate, eta",
    [
        ("running", 100.0, 1000, 3000, 100, 20),
        ("serving", 100.0, 1000, 1000, 100, 0),
        ("running", 100.0, 0, 3000, 0, None),
        ("running", 100.0, 1000, 0, 100, None),  # the total is not known yet
        ("running", 110.0, 1000, 3000, 0, None),  # it has just begun
        ("running", 200.0, 1000, 3000, 0, None),  # a clock that stepped
        ("finished", 100.0, 3000, 3000, 0, None),
        ("interrupted", 100.0, 1000, 3000, 0, None),
        ("starting", 0, 0, 0, 0, None),
    ],
)
def test_rate_and_time_left(state, started, done, total, rate, eta):
    job = {"state": state, "started": started, "progress": {"bytes_done": done, "bytes_total": total}}
    assert with_rate(job, 110.0)["progress"] == {"bytes_done": done, "bytes_total": total, "rate": rate, "eta": eta}


def test_a_job_that_has_said_nothing_yet():
    job = {"state": "starting", "started": 0, "progress": {}}
    assert with_rate(job, 110.0)["progress"] == {"rate": 0, "eta": None}
    assert job["progress"] == {}


@pytest.mark.parametrize(("state", "told"), [("running", False), ("serving", False), ("finished", True)])
def test_the_bytes_that_were_sent_are_told_when_they_are_counted(state, told):
    job = {"state": state, "started": 100.0, "progress": {"bytes_done": 9, "bytes_sent": 0}}
    assert ("bytes_sent" in with_rate(job, 110.0)["progress"]) is told
