# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of a backup's transfers, and what its snapshot must hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import BegunSnapshot, PathTransfer
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.transfers import (
    expect,
    job_of,
    links_of,
    read_transfer,
    tell_notes,
)

MOVED = PathTransfer("/srv/", files_total=7, bytes_total=90, bytes_apparent=100)


def test_the_report_keeps_figures_and_no_paths_or_passwords():
    result = {"method": "stream", "files_total": 3, "errors": [{"path": "x"}]}
    assert read_transfer(result, "/srv/data/") == PathTransfer("/srv/data/", "stream", files_total=3)
    assert tell_notes(result, "/srv/data/") == []


def test_a_person_is_told_of_a_source_that_is_not_there_and_of_one_that_changed():
    changed = {"unstable": 2, "differences": [{"path": "log/a"}], "warnings": ["owners differ"]}
    found = tell_notes({"source_missing": True, **changed}, "/srv/dump/")
    assert len(found) == 3 and found[2] == "owners differ"
    assert found[0].startswith("/srv/dump/ is not there yet.")
    assert found[1].startswith("2 entries changed at the source while it was copied, for example log/a. ")


@pytest.mark.parametrize(
    "transfers, paths, verify, check_mode, expected",
    [
        ([MOVED], 1, "size", False, (7, -1)),
        ([MOVED], 1, "none", False, (7, 100)),
        ([MOVED, MOVED], 2, "none", False, (15, 200)),
        ([MOVED], 1, "none", True, (-1, -1)),
        ([replace(MOVED, files_total=1)], 1, "none", True, (1, -1)),
        ([replace(MOVED, vanished=1)], 1, "none", False, (-1, -1)),
        ([MOVED, replace(MOVED, unstable=1)], 2, "none", False, (-1, -1)),
    ],
)
def test_what_a_snapshot_must_hold(transfers, paths, verify, check_mode, expected):
    assert expect(transfers, paths, verify, check_mode) == expected


@pytest.mark.parametrize("part, place", [("", ""), ("etc", "/etc")])
def test_a_path_goes_into_its_folder_of_the_snapshot_and_links_to_that_of_the_one_before(part, place):
    run: Any = {
        "id": "web/data",
        "name": "data",
        "host": "web",
        "repository": {"host": "vault", "path": "/b"},
        "transfer": {"trust": "none", "numeric_ids": "no"},
        "consistent": None,
        "verify": "size",
    }
    begun = BegunSnapshot("/b/web/data/.unfinished/data", link_dest=["/b/web/data/2026/data"])
    job = {**job_of(run, {"src": "/etc/", "part": part}), **links_of(begun, part)}
    assert (job["src_host"], job["src"], job["dest_host"]) == ("web", "/etc/", "vault")
    assert job["dest"] == f"/b/web/data/.unfinished/data{place}"
    assert job["link_dest"] == [f"/b/web/data/2026/data{place}"] and job["delete"] and job["trust"] == "none"
    assert job["owner_warnings"] and not job_of({**run, "transfer": {}}, {"src": "/", "part": ""})["owner_warnings"]
