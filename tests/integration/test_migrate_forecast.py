# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forecast of a group beside what it took, and how far its comparisons are."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

GIB = 2**30
POSTGRESQL = max(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), default=None)  # as Debian installs it
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


class Database:
    """PostgreSQL on the hosts of a testbed, as the user mover."""

    def __init__(self, bed: Testbed) -> None:
        assert POSTGRESQL is not None
        self.bed, self._programs = bed, POSTGRESQL.parent

    def run(self, host: str, program: str, *options: str) -> str:
        """Run one of its programs on a host to the end; return what it says."""
        return self.bed.exec(host, self.argv(program, *options), user="mover").stdout.strip()

    def argv(self, program: str, *options: str) -> list[str]:
        return [str(self._programs / program), *options]

    def control(self, host: str, folder: str, action: str) -> dict[str, Any]:
        """Return a hook that starts or stops it on a host."""
        options = ("-o", "-k /tmp -c listen_addresses=", "-l", "/tmp/log") if action == "start" else ("-m", "fast")
        command = ["runuser", "-u", "mover", "--", *self.argv("pg_ctl", "-D", folder, "-w", *options, action)]
        return {"name": f"{action} the database", "host": host, "command": command}


@pytest.mark.long
@pytest.mark.skipif(POSTGRESQL is None, reason="cannot run here: there is no PostgreSQL")
def test_a_group_with_a_database_under_load(
    hosts: Testbed, migration: Migration, record_property: pytest.RecordProperty
) -> None:
    database, chance = Database(hosts), random.Random(1)
    migration.jobs = []
    for name, files, size in (("site", 3000, 4000), ("homes", 100, 400_000), ("mail", 5000, 2000), ("database", 0, 0)):
        tree = hosts.root("alpha") / f"data/{name}"
        tree.mkdir(mode=0o700, parents=True)
        for number in range(files):
            (tree / f"file{number}").write_bytes(chance.randbytes(size))
        job = Migration.job(name, src=f"/data/{name}/", dest=f"/data/new-{name}", verify="checksum")
        migration.jobs.append({**job, "cutover_group": "server"})
    migration.jobs[3].update(
        before_cutover=[database.control("source", "/data/database", "stop")],
        after_cutover=[database.control("dest", "/data/new-database", "start")],
        cutover_failed=[database.control("source", "/data/database", "start")],
    )
    hosts.exec("alpha", ["chown", "mover", "/data/database"])
    database.run("alpha", "initdb", "-N", "-D", "/data/database")
    hosts.exec("alpha", database.control("source", "/data/database", "start")["command"])
    database.run("alpha", "pgbench", "-h", "/tmp", "-i", "-q", "-s", "3", "postgres")
    load = database.argv("pgbench", "-h", "/tmp", "-c", "2", "-R", "200", "-T", "300", "postgres")
    client = hosts.popen("alpha", load, user="mover")
    try:
        migration.run(migrate_phase="sync")
        forecast = migration.report("database")["forecast"]
        migration.run()
    finally:
        client.kill()
        client.wait()
    reports = {job["name"]: migration.report(job["name"]) for job in migration.jobs}
    said = database.run("beta", "psql", "-h", "/tmp", "-At", "-c", "select count(*) from pgbench_history", "postgres")
    assert int(said) > 0
    down = reports["database"]["downtimes"][0]
    record_property("forecast", forecast["lasted"])
    for name, report in reports.items():
        found = report["foreseen"]
        record_property(name, f"forecast {found['forecast']} s, real {found['real']} s, {report['downtimes']}")
        assert report["switch"]["done"] and report["phases"]["verify"]["identical"], name
        assert report["downtimes"][0]["from"] == down["from"], name
    assert "Downtime" in migration.text("report")
