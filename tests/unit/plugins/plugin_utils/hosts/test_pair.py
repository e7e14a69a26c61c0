# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on both hosts at once."""

from __future__ import annotations

import contextvars
import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.pair import run_parallel


def test_both_run_at_once_and_each_gives_its_own():
    meeting = threading.Barrier(2, timeout=10)  # one alone would wait until the timeout

    def work(side):
        meeting.wait()
        return side.upper()

    assert run_parallel({side: lambda side=side: work(side) for side in ("source", "dest")}) == {
        "source": "SOURCE",
        "dest": "DEST",
    }


def test_the_first_failure_counts_after_both_have_ended():
    ended = []

    def work(side):
        ended.append(side)
        raise ValueError(side)

    with pytest.raises(ValueError, match="source"):
        run_parallel({side: lambda side=side: work(side) for side in ("source", "dest")})
    assert sorted(ended) == ["dest", "source"]


def test_each_sees_the_callers_context_and_changes_only_its_own():
    task = contextvars.ContextVar("task")
    task.set("mine")

    def work():
        seen = task.get()
        task.set("changed")
        return seen

    assert run_parallel({"source": work, "dest": work}) == {"source": "mine", "dest": "mine"}
    assert task.get() == "mine"
