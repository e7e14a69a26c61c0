# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a run for windows of each size, and the lines where there is no window."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.columns import cells
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import FEW, Activity, Output, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import (
    PairProgress,
    ProgressLog,
    ProgressSnapshot,
    ProgressWriter,
    read_snapshots,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_view import live_lines
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_progress
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
        "1 transfer runs: 35.0 GiB of 100.0 GiB, 110.0 MiB/s, 10 min 5 s for these"
    )


def test_what_is_left_is_told_only_where_no_job_waits():
    assert live_lines(ProgressSnapshot(3, 2, 0, [pair(1)]), 200, 24, 50.0)[-1].endswith(", 10 min 5 s left")
    assert live_lines(ProgressSnapshot(4, 2, 0, [pair(1)]), 200, 24, 50.0)[-1].endswith(", 10 min 5 s for these")


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
        "data: 0 B of 4.0 MiB (0 %), 1 entry",
        "data: 3.0 MiB of 4.0 MiB (75 %), 1 entry, 512.0 KiB/s, 2 s left",
    ]


def test_a_run_that_is_shown_live_prints_nothing(tmp_path: Path):
    folder, clock, lines = tmp_path / "shown", Clock(), []
    unwatched = ProgressPrinter(lines.append, clock, 1, lambda _name: Activity("seed"), ProgressWriter(str(folder)))
    unwatched.progress({"data": status(0)})
    assert len(lines) == 1 and read_snapshots(str(folder)) is None
    folder.mkdir()
    clock.now = 100.0
    teller = ProgressPrinter(lines.append, clock, 3, lambda _name: Activity("seed"), ProgressWriter(str(folder)))
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
    assert "one: starting, 200 B, 1 entry, 10 B/s" in lines[-2:]


def test_several_runs_are_one(tmp_path: Path):
    (tmp_path / "1.json").write_text('{"total": 2, "ended": 1, "failed": 0, "pairs": []}')
    (tmp_path / "2.json").write_text('{"total": 3, "ended": 1, "failed": 1, "pairs": []}')
    (tmp_path / "3.json").write_text('{"total": ')
    assert read_snapshots(str(tmp_path)) == ProgressSnapshot(5, 2, 1, [])


def comparing(done, total=1000):
    return Status("running", alive=True, progress=parse_progress(
        {"phase": "comparing", "bytes_done": done, "bytes_total": total, "current": "db/main"}
    ))  # fmt: skip


def test_a_line_says_what_a_job_does_and_each_phase_is_told_at_once():
    clock, lines, does = Clock(), [], [Activity("pass 1/5", "pass 1 of at most 5")]
    teller = ProgressPrinter(lines.append, clock, 1, lambda _name: does[0])
    teller.progress({"data": status(100, 1000)})
    does[0] = Activity("pass 2/5", "pass 2 of at most 5")
    clock.now = 1.0
    teller.progress({"data": status(10, 1000)})
    clock.now = 2.0
    teller.progress({"data": status(20, 1000)})
    assert [line.split(",")[0] for line in lines] == ["data: pass 1 of at most 5", "data: pass 2 of at most 5"]
    assert "B/s" not in lines[1]  # what was done before is no rate of this pass


def test_a_comparison_is_shown_beside_transfers_until_it_has_ended(tmp_path: Path):
    clock, lines = Clock(), []
    teller = ProgressPrinter(lines.append, clock, 2, lambda _name: Activity("seed"))
    teller.speaker("data").show(comparing(100))
    clock.now = 10.0
    teller.speaker("data").show(comparing(600))
    assert lines == [
        "data: comparing, 100 B of 1000 B (10 %), 0 entries, at db/main",
        "data: comparing, 600 B of 1000 B (60 %), 0 entries, 50 B/s, 8 s left, at db/main",
    ]
    teller.speaker("data").show(None)
    clock.now = 20.0
    teller.progress({"other": status(1, 2)})
    assert len(lines) == 3 and lines[2].startswith("other: ")


def test_the_window_shows_entries_where_no_contents_are_read():
    found = pair(1, phase="comparing", bytes_done=0, bytes_total=0, files_done=500, files_total=2000, rate=1500.0)
    line, fleet = live_lines(ProgressSnapshot(1, 0, 0, [found]), 80, 24, 50.0)
    assert "25 %" in line and "1,500/s" in line and line.endswith("1s") and "B/s" not in fleet


@pytest.mark.parametrize(
    "output, shown",
    [(Output.QUIET, []), (Output.NORMAL, ["note", "one"]), (Output.VERBOSE, ["note", "one"])],
)
def test_how_much_is_shown_is_the_users_choice(output, shown):
    lines = []
    teller = ProgressPrinter(lines.append, Clock(), 1, output=output)
    teller.note("note")
    teller.tell_of_one("one")
    teller.progress({"data": status(1, 2)})
    assert lines == [*shown, *([] if output is Output.QUIET else ["data: 1 B of 2 B (50 %), 1 entry"])]


def test_programs_get_a_line_of_json_for_each_look_and_each_end(tmp_path: Path):
    path, clock, lines = tmp_path / "progress.jsonl", Clock(), []
    log = ProgressLog(str(path), lines.append, write=True)
    does = Activity("final", "final pass")
    teller = ProgressPrinter(lines.append, clock, 1, lambda _name: does, output=Output.QUIET, log=log)
    for clock.now in (0.0, 0.1, 2.0):
        teller.progress({"data": status(int(100 * clock.now), 1000)})
    teller.watched("data", comparing(500))
    teller.ended(True, "data")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["event"] for one in found] == ["progress", "progress", "progress", "ended"]
    assert [one.get("percent") for one in found] == [0, 20, 50, None] and not lines
    assert (found[1]["rate"], found[1]["rate_of"], found[1]["seconds_left"]) == (100.0, "bytes", 8.0)
    assert (found[1]["phase"], found[1]["activity"], found[1]["job"]) == ("final", "final pass", "data")
    assert (found[2]["phase"], found[2]["current"]) == ("comparing", "db/main")
    assert found[3]["failed"] is True and all(one["at"].endswith("Z") for one in found)


def test_a_progress_file_that_cannot_be_written_is_told_once(tmp_path: Path):
    clock, lines = Clock(), []
    log = ProgressLog(str(tmp_path / "none/x"), lines.append, write=True)
    teller = ProgressPrinter(lines.append, clock, 1, output=Output.QUIET, log=log)
    for clock.now in (0.0, 2.0, 4.0):
        teller.progress({"data": status(1, 2)})
    assert len(lines) == 1 and "cannot be written: No such file" in lines[0]


def test_check_mode_writes_no_progress_file(tmp_path: Path):
    log = ProgressLog(str(tmp_path / "x"), [].append, write=False)
    teller = ProgressPrinter([].append, Clock(), 1, output=Output.QUIET, log=log)
    teller.progress({"data": status(1, 2)})
    teller.ended(False, "data")
    assert list(tmp_path.iterdir()) == []
