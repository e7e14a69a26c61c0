# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes and rates, written and read."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common import units
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import parse_progress


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1288490188, "1.2 GiB"), (5 * 2**50, "5120.0 TiB")]
)
def test_bytes_are_written(count, text):
    assert units.format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (4.23, "4.2 s"), (9.99, "10.0 s"), (59.6, "1 min"), (605, "10 min 5 s"), (7200, "2 h"),
     (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)  # fmt: skip
def test_a_duration_has_two_units_at_most(seconds, text):
    assert units.format_duration(seconds) == text


def test_progress_says_share_rate_and_time_left():
    progress = parse_progress({"bytes_done": 2**30, "bytes_total": 4 * 2**30, "files_done": 7})
    line = units.progress_line("a -> b", progress, 2**28)
    assert line == "a -> b: 1.0 GiB of 4.0 GiB (25 %), 7 entries, 256.0 MiB/s, 12 s left"


GIB = 2**30


@pytest.mark.parametrize(
    ("values", "rate", "activity", "line"),
    [
        ({"files_done": 20, "files_total": 80, "phase": "comparing"}, 10.0, "",
         "a: comparing, 20 of 80 entries (25 %), 10 entries/s, 6 s left"),
        ({"bytes_done": GIB, "bytes_total": 4 * GIB, "phase": "comparing", "current": "db/main"}, GIB, "",
         "a: comparing, 1.0 GiB of 4.0 GiB (25 %), 0 entries, 1.0 GiB/s, 3 s left, at db/main"),
        ({"bytes_done": GIB, "bytes_total": 4 * GIB, "phase": "transfer"}, None, "pass 2 of at most 5",
         "a: pass 2 of at most 5, 1.0 GiB of 4.0 GiB (25 %), 0 entries"),
        ({"phase": "predict"}, None, "", "a: reading, 0 B, 0 entries"),
        ({"phase": "count_deletions", "bytes_done": 1, "bytes_total": 2}, None, "",
         "a: counting deletions, 1 B of 2 B (50 %), 0 entries"),
        ({"phase": "x\x1b[2J", "current": "y\n" + 60 * "z"}, None, "",
         f"a: x\\x1b[2J, 0 B, 0 entries, at ...{37 * 'z'}"),
    ],
)  # fmt: skip
def test_progress_says_what_is_done_with_what(values, rate, activity, line):
    assert units.progress_line("a", parse_progress(values), rate, activity=activity) == line


def test_progress_promises_nothing_that_is_not_known():
    assert "left" not in units.progress_line("a -> b", parse_progress({"bytes_done": 5, "phase": "scanning"}), 0.0)
    known = parse_progress({"bytes_done": 5, "bytes_total": 9})
    assert units.progress_line("a -> b", known, 0.0) == "a -> b: 5 B of 9 B (55 %), 0 entries, 0 B/s"
    assert units.progress_line("a -> b", known, None) == "a -> b: 5 B of 9 B (55 %), 0 entries"


@pytest.mark.parametrize(
    "seconds, said",
    [
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (90000, "1d01h"),
        (1e7, "115d"),
        (1e12, "99999d"),
    ],
)
def test_times_are_written_in_six_characters(seconds, said):
    assert units.short_time(seconds) == said
