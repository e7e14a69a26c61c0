# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forecast of a group beside what it took, and how far its comparisons are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

GIB = 2**30
NAMES = ("site", "homes", "database", "mail")


@pytest.mark.long
def test_a_group_of_four_has_one_forecast_and_tells_how_far_its_comparisons_are(
    hosts: Testbed, migration: Migration, tmp_path: Path
) -> None:
    migration.jobs = []
    for name in NAMES:
        tree = hosts.root("alpha") / f"data/{name}"
        tree.mkdir(parents=True)
        for number in range(20):
            (tree / f"file{number}").write_text(f"{name} {number}")
        job = Migration.job(name, src=f"/data/{name}/", dest=f"/data/new-{name}")
        migration.jobs.append({**job, "cutover_group": "server"})
    stop = {"name": "stop", "host": "source", "command": ["/bin/true"]}
    migration.jobs[2].update(before_cutover=[stop], cutover_failed=[stop])
    with (hosts.root("alpha") / "data/database/main").open("wb") as stream:
        stream.write(b"x" * 4096)
        stream.truncate(6 * GIB)  # a hole is sent in no time, and read as any other content

    log = tmp_path / "progress.jsonl"
    migration.run(migrate_phase="sync")
    reports = {name: migration.report(name) for name in NAMES}
    forecasts = [report["forecast"] for report in reports.values()]
    assert forecasts[0]["seconds"] > 0 and "4 jobs" in forecasts[0]["why"]
    assert all(one == forecasts[0] for one in forecasts), forecasts
    assert all(report["rates"]["entries"] > 0 for report in reports.values())

    said = migration.run(longhaul_progress_file=str(log)).output
    reports = {name: migration.report(name) for name in NAMES}
    for name, report in reports.items():
        found = report["foreseen"]
        assert report["switch"]["done"] and found["forecast"] > 0 and found["real"] > 0, (name, found)
        assert len(report["downtimes"]) == 1, name
    assert len({report["downtimes"][0]["from"] for report in reports.values()}) == 1
    assert reports["database"]["rates"]["compared"] > 0

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    compared = [one for one in lines if one.get("phase") == "comparing" and one["job"] == "database"]
    assert any(0 < one["percent"] < 100 and one["rate"] and one["rate"] > 0 for one in compared), lines
    assert {one["job"] for one in lines if one["event"] == "ended"} == set(NAMES)
    (shown,) = {line.split(":")[0] for line in said.splitlines() if ": comparing, " in line}
    assert shown == "database" and " of 6.0 GiB (" in said, said
