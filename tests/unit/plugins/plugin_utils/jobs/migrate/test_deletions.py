# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deletions are told with their count and the first names, and a first copy makes none that nobody agreed to."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.preflight import Deletions, tell_deletions
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import TransferSummary

JOB = {"name": "home", "src_host": "old", "src": "/home/", "dest_host": "new", "dest": "/home"}


def predicted(count: int) -> TransferSummary:
    return TransferSummary(files_deleted=count, deleted=[f"own/file{number}" for number in range(min(count, 20))])


@pytest.mark.parametrize(
    "count, words",
    [
        (1, "would delete 1 entry at new:/home that old:/home/ does not have: own/file0"),
        (
            5,
            "would delete 5 entries at new:/home that old:/home/ does not have: own/file0, own/file1, own/file2, ",
        ),
        (200, "own/file4 and 195 more"),
    ],
)
def test_the_count_and_the_first_names_are_told(count, words):
    found = tell_deletions(predicted(count), JOB, is_seeded=False, may_delete=False)
    assert words in found.told and words in found.problem
    assert "the first copy" in found.told
    assert """-e '{"migrate_allow_delete": ["home"]}'""" in found.problem and f"max_delete: {count} " in found.problem


@pytest.mark.parametrize(
    "job, is_seeded, may_delete",
    [({}, False, True), ({}, True, False), ({"max_delete": 9}, False, False), ({"max_delete": 0}, False, False)],
)
def test_what_is_agreed_or_no_first_copy_is_no_problem(job, is_seeded, may_delete):
    found = tell_deletions(predicted(2), {**JOB, **job}, is_seeded, may_delete)
    assert found.told and not found.problem


def test_where_nothing_would_go_nothing_is_told():
    assert tell_deletions(predicted(0), JOB, is_seeded=False, may_delete=False) == Deletions()


def test_an_account_without_names_is_told_by_its_count():
    told = tell_deletions(TransferSummary(files_deleted=3), JOB, is_seeded=False, may_delete=False).told
    assert told.endswith("old:/home/ does not have")
