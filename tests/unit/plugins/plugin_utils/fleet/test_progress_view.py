# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a run for windows of each size, and the lines where there is no window."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.columns import cells
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import FEW, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import (
    PairProgress,
    ProgressSnapshot,
    ProgressWriter,
    read_snapshots,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_view import live_lines
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely

GIB = 2**30


def pair(number, **changes):
    values = {
        "name": f"n{number:04}", "phase": "seed", "bytes_done": 35 * GIB, "bytes_total": 100 * GIB, "files_done": 7,
        "rate": 110 * 2.0**20, "paused": False, "at": 50.0, **changes,
    }  # fmt: skip
    return PairProgress(**values)


def run_of(count):
    return ProgressSnapshot(2000, 12, 1, [pair(number) for number in range(count)])


@pytest.mark.parametrize("width, height", [*itertools.product((20, 60, 80, 200), (2, 24, 50))])
@pytest.mark.parametrize("count", [0, 1, 12, 1000])
def test_the_lines_fit_into_the_window(width, height, count):
    lines = live_lines(run_of(count), width, height, 51.0)
    assert len(lines) <= max(2, height - 1) and max(cells(line) for line in lines) <= width
    assert lines[-1].startswith("12 of 2000 jobs have" if width > (80 if count else 40) else "12 of 2000 ended")


def test_a_narrow_and_a_wide_line():
    narrow, _fleet = live_lines(run_of(1), 80, 24, 50.0)
    assert narrow.startswith("n0000") and narrow.endswith("110.0 MiB/s 10m05s") and cells(narrow) <= 80
    wide, fleet = live_lines(run_of(1), 200, 24, 50.0)
    assert f"[{'#' * 13}{'.' * 25}]" in wide
    assert fleet == (
        "12 of 2000 jobs have ended, 1 of them failed; "
        "1 transfer runs: 35.0 GiB of 100.0 GiB, 110.0 MiB/s, 0:10:05 for these"
    )


def test_what_is_left_is_told_only_where_no_job_waits():
    assert live_lines(ProgressSnapshot(3, 2, 0, [pair(1)]), 200, 24, 50.0)[-1].endswith(", 0:10:05 left")
    assert live_lines(ProgressSnapshot(4, 2, 0, [pair(1)]), 200, 24, 50.0)[-1].endswith(", 0:10:05 for these")


def test_what_needs_longest_comes_first_and_the_rest_is_counted():
    run = ProgressSnapshot(20, 0, 0, [pair(1), pair(2, bytes_done=0), pair(3, bytes_done=99 * GIB), pair(4, rate=None)])
    lines = live_lines(run, 80, 5, 50.0)
    assert [line.split()[0] for line in lines[:2]] == ["n0004", "n0002"] and lines[2] == "... and 2 more run"


def test_a_rate_that_nobody_knows_is_not_told():
    assert live_lines(ProgressSnapshot(1, 0, 0, [pair(1, rate=None)]), 200, 24, 50.0)[-1].endswith(
        ": 35.0 GiB of 100.0 GiB"
    )


def test_a_wide_window_shows_long_names():
    name = "database-server-017-of-the-second-site-main"
    assert live_lines(ProgressSnapshot(1, 0, 0, [pair(1, name=name)]), 200, 24, 50.0)[0].startswith(f"{name} seed")
    assert live_lines(ProgressSnapshot(1, 0, 0, [pair(1, name=name)]), 80, 24, 50.0)[0].startswith(f"{name[:31]}~ seed")


def test_a_pause_and_an_old_figure_are_told():
    lines = live_lines(ProgressSnapshot(2, 0, 0, [pair(1, paused=True), pair(2, at=0.0)]), 80, 24, 60.0)
    assert "paused" in lines[0] and "1m00s ago" in lines[1]


def test_names_are_harmless():
    (line, _fleet) = live_lines(ProgressSnapshot(1, 0, 0, [pair(1, name="\x1b[2J\nx")]), 200, 24, 50.0)
    assert "\x1b" not in line and "\n" not in line


# What is told without a window


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def status(done, total=0):
    return Status("running", alive=True, progress=progress_of(done, total))


def progress_of(done, total):
    progress = Progress()
    progress.bytes_done, progress.bytes_total, progress.files_done = done, total, 1
    return progress


@pytest.mark.parametrize(
    ("hours", "running"),
    [(10, 1), (60, 1), (10, FEW), (10, FEW + 1), *rarely((60, FEW), (60, FEW + 1), (10, 50), (60, 50))],
)
def test_the_lines_of_a_run_are_bounded_whatever_its_length(running, hours):
    clock, lines = Clock(), []
    teller = ProgressPrinter(lines.append, clock, 1000)
    for look in range(hours * 720):
        clock.now += 5.0
        teller.progress({f"n{number + look // 36}": status(look) for number in range(running)})
    assert 20 < len(lines) < 250, len(lines)


@pytest.mark.parametrize("jobs, shown", [(20, 3000), (1000, 101)])
def test_notes_on_many_jobs_are_bounded(jobs, shown):
    lines: list[str] = []
    teller = ProgressPrinter(lines.append, Clock(), jobs)
    for number in range(3000):
        teller.note(f"n{number}: trying again")
    assert len(lines) == shown and ("not shown" in lines[-1]) == (jobs > 20)


def test_a_short_run_tells_each_transfer_at_once_and_then_its_rate():
    clock, lines = Clock(), []
    teller = ProgressPrinter(lines.append, clock, 1)
    teller.progress({"data": status(0, 4 * 2**20)})
    clock.now = 6.0
    teller.progress({"data": status(3 * 2**20, 4 * 2**20)})
    assert lines == [
        "data: 0 B of 4.0 MiB (0 %), 1 file",
        "data: 3.0 MiB of 4.0 MiB (75 %), 1 file, 512.0 KiB/s, 0:00:02 left",
    ]


def test_a_run_that_is_shown_live_prints_nothing(tmp_path: Path):
    folder, clock, lines = tmp_path / "shown", Clock(), []
    unwatched = ProgressPrinter(lines.append, clock, 1, lambda _name: "seed", ProgressWriter(str(folder)))
    unwatched.progress({"data": status(0)})
    assert len(lines) == 1 and read_snapshots(str(folder)) is None
    folder.mkdir()
    clock.now = 100.0
    teller = ProgressPrinter(lines.append, clock, 3, lambda _name: "seed", ProgressWriter(str(folder)))
    teller.progress({"data": status(100, 1000)})
    clock.now = 110.0
    teller.progress({"data": status(500, 1000)})
    (shown,) = read_snapshots(str(folder)).pairs
    assert (shown.phase, shown.bytes_done, shown.rate, shown.left) == ("seed", 500, 40.0, 12.5)
    clock.now = 120.0
    teller.ended(True)
    found = read_snapshots(str(folder))
    assert (found.total, found.ended, found.failed) == (3, 1, 1) and len(lines) == 1
    teller.close()
    assert read_snapshots(str(folder)) is None


def test_a_transfer_that_nobody_looked_at_again_keeps_its_figures():
    clock, lines = Clock(), []
    teller = ProgressPrinter(lines.append, clock, 10)
    one, other = status(100), status(0)
    for clock.now in (0.0, 10.0, 20.0):
        one = status(100 + int(clock.now) * 10) if clock.now < 15 else one
        teller.progress({"one": one, "other": other})
    assert "one: starting, 200 B, 1 file, 10 B/s" in lines[-2:]


def test_several_runs_are_one(tmp_path: Path):
    (tmp_path / "1.json").write_text('{"total": 2, "ended": 1, "failed": 0, "pairs": []}')
    (tmp_path / "2.json").write_text('{"total": 3, "ended": 1, "failed": 1, "pairs": []}')
    (tmp_path / "3.json").write_text('{"total": ')
    assert read_snapshots(str(tmp_path)) == ProgressSnapshot(5, 2, 1, [])
