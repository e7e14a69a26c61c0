# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What counts as the status of a job."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import parse_status


def test_a_status_is_read_as_it_is():
    said = {"state": "running", "alive": True, "progress": {"bytes_done": 5}, "of a later version": 1}
    status = parse_status(said)
    assert (status.state, status.alive, status.progress.bytes_done, status.outcome) == ("running", True, 5, None)
    status = parse_status({"state": "finished", "alive": False, "outcome": {"bytes_sent": 7, "errors_total": 1}})
    assert (status.outcome.bytes_sent, status.outcome.errors_total) == (7, 1)


def test_a_job_of_an_earlier_version_knew_of_no_holes():
    old = {"bytes_total": 9, "bytes_sent": 7}
    found = parse_status({"state": "finished", "alive": False, "outcome": old, "progress": {"bytes_done": 7}})
    assert (found.outcome.bytes_apparent, found.outcome.bytes_content, found.progress.bytes_sent) == (9, 7, 0)
    found = parse_status({"state": "finished", "alive": False, "outcome": {**old, "bytes_content": 0}})
    assert (found.outcome.bytes_apparent, found.outcome.bytes_content) == (0, 0)


def test_how_long_a_job_ran_is_what_its_host_says_within_bounds():
    said = {"state": "finished", "alive": False, "started": 100.5}
    assert parse_status(said).ran == 0.0
    ran = [parse_status({**said, "ended": ended}).ran for ended in (107, 99.0, float("nan"), float("inf"))]
    assert ran == [6.5, 0.0, 0.0, 1e9]


@pytest.mark.parametrize(
    "more",
    [
        {"started": 1, "ended": "2"},
        {"outcome": [1]},
        {"outcome": {"bytes_sent": "7"}},
        {"outcome": {"errors": ["a path"]}},
        {"progress": {"bytes_done": None}},
        {"then": {}},
        {"failure": 1},
        {"ready": []},
    ],
)
def test_what_no_job_says_is_refused_whatever_else_it_says(more):
    with pytest.raises(ValueError, match="no status of a job"):
        parse_status({"state": "running", "alive": True, **more})


@pytest.mark.parametrize("said", [[], None, {}, {"state": "running"}, {"alive": True}, {"state": 1, "alive": True}])
def test_what_is_no_status_is_refused(said):
    with pytest.raises(ValueError, match="no status of a job"):
        parse_status(said)


def test_a_limit_is_a_rate():
    for said, limit in ((5 << 20, 5 << 20), (-1, 0), (1 << 80, 1 << 50)):
        assert parse_status({"state": "running", "alive": True, "bwlimit": said}).bwlimit == limit
