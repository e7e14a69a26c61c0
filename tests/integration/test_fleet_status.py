# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The overview of a migration, from another machine: another folder, another copy of the inventory."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration
from ansible_collections.longhaul.fleet.tests.support import refusal
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

SIZE = 48 * MIB


class Elsewhere:
    """Another machine with a copy of the inventory, and nothing else."""

    def __init__(self, migration: Migration, folder: Path) -> None:
        folder.mkdir()
        inventory = folder / "inventory.yml"
        shutil.copy(migration.playbooks.inventory, inventory)
        self.playbooks = Playbooks(inventory, folder, migration.playbooks.collections)
        self.migration, self.folder = migration, folder

    def status(self, *flags: str, **variables: Any) -> Run:
        """Run the playbook."""
        return self.playbooks.run("longhaul.fleet.status", *flags, migrate_jobs=self.migration.jobs, **variables)

    def rows(self, *flags: str, **variables: Any) -> dict[str, dict[str, Any]]:
        """Return the rows by the name of their jobs."""
        result = self.status(*flags, **variables).expect_success().result("Ask the hosts")
        assert not result["changed"] or variables, result
        return {row["name"]: row for row in result["rows"]}


@pytest.fixture
def elsewhere(migration: Migration, tmp_path: Path) -> Elsewhere:
    return Elsewhere(migration, tmp_path / "elsewhere")


@pytest.mark.long
def test_two_pairs_are_watched_from_elsewhere_while_they_run(
    hosts: Testbed, migration: Migration, elsewhere: Elsewhere
) -> None:
    tree = hosts.root("alpha") / "data"
    make_big_files(tree / "src/more", SIZE, count=2)
    make_big_files(tree / "other", SIZE, count=2)
    migration.jobs = [
        migration.job("data", method="stream"),
        migration.job("other", src="/data/other/", dest="/data/other", method="rsync"),
    ]
    assert {row["state"] for row in elsewhere.rows().values()} == {"not begun"}
    hosts.shape("alpha", "4mbit")  # so that neither ends before both were seen, however busy this machine is
    running = migration.start(
        migrate_phase="seed", migrate_limits={"per_dest": 2, "per_source": 2}, migrate_preflight_predict=False
    )
    seen: dict[str, dict[str, Any]] = {}

    def both_run() -> bool:
        seen.update(elsewhere.rows())
        return all(row["state"] == "running" and row["rate"] for row in seen.values())

    wait_for(both_run, seconds=240)
    for name, row in seen.items():
        assert (row["phase"], row["src_host"], row["dest_host"]) == ("seed", "alpha", "beta"), row
        assert 0 < row["rate"] < 20 * MIB and row["age"] < 30, row
        assert row["method"] == {"data": "stream", "other": "rsync"}[name], row
    before = {host: (hosts.root(host) / "var/lib/longhaul").stat().st_mode for host in hosts.hosts}
    textfile = elsewhere.folder / "metrics/longhaul.prom"
    predicted = elsewhere.status("--check", status_textfile=str(textfile), status_max_rows=1).expect_success()
    assert predicted.result("Ask the hosts")["changed"] and not textfile.exists()
    assert "... and 1 more: 1 running" in "\n".join(predicted.result("Ask the hosts")["table"])
    written = elsewhere.status(status_textfile=str(textfile)).expect_success()
    assert written.result("Ask the hosts")["changed"]
    assert 'longhaul_fleet_job_info{job="data",source="alpha",dest="beta",phase="seed"' in textfile.read_text()
    table = written.result("Ask the hosts")["table"]
    assert all(line in written.output for line in table) and "running" in "\n".join(table)
    assert {host: (hosts.root(host) / "var/lib/longhaul").stat().st_mode for host in hosts.hosts} == before
    hosts.shape("alpha", None)
    running.wait().expect_success()

    quiet = refusal.everything(hosts)
    rows = elsewhere.rows()  # what it knows now, it knows from the destination alone
    assert {(row["phase"], row["state"], row["error"]) for row in rows.values()} == {("seed", "waiting", "")}
    own = migration.playbooks.run("longhaul.fleet.status", migrate_jobs=migration.jobs).expect_success()
    sums = own.result("Ask the hosts")["sums"]
    assert sums["states"] == {"waiting": 2} and sums["bytes_total"] == sums["bytes_done"] > 2 * SIZE
    assert refusal.everything(hosts) == quiet


def test_a_host_that_is_gone_is_a_row(migration: Migration, elsewhere: Elsewhere) -> None:
    migration.run(migrate_phase="seed")
    folder = elsewhere.folder / "longhaul-migrate"
    shutil.copytree(migration.folder, folder)
    inventory = json.loads(elsewhere.playbooks.inventory.read_text())
    inventory["all"]["hosts"]["beta"]["ansible_port"] = 9  # a closed port
    elsewhere.playbooks.inventory.write_text(json.dumps(inventory))
    (row,) = elsewhere.rows().values()
    assert (row["state"], row["phase"]) == ("unreachable", "seed") and row["age"] >= 0
    assert row["error"].startswith("beta: ") and "refused" in row["error"]
    refused = elsewhere.status(status_on_unreachable="fail")
    assert refused.rc != 0 and "beta" in refused.failures[-1]


@pytest.mark.long
def test_a_run_elsewhere_never_copies_over_a_tree_that_was_switched_over(
    hosts: Testbed, migration: Migration, elsewhere: Elsewhere
) -> None:
    migration.run()
    (row,) = elsewhere.rows().values()
    assert (row["phase"], row["state"], row["error"]) == ("verify", "done", ""), row
    other = Migration(hosts, elsewhere.playbooks, **migration.options)
    before = refusal.everything(hosts)
    said = other.run_into_failure()
    assert "beta holds a record that job data was switched over" in said and "migrate_reset=true" in said, said
    assert refusal.everything(hosts) == before
    other.run(migrate_reset=True, migrate_phase="sync", migrate_allow_delete="all")

    # And where the destination has forgotten, the first control node asks, too.
    hosts.exec("beta", ["rm", "-r", "/var/lib/longhaul/records"])
    assert "beta has no record of job data any more" in other.run_into_failure(migrate_phase="sync")


@pytest.mark.long
def test_a_migration_is_shown_live_in_its_terminal(hosts: Testbed, migration: Migration) -> None:
    pytest.importorskip("rich", reason="cannot run here: rich is missing")
    make_big_files(hosts.root("alpha") / "data/src/more", SIZE, count=2)
    hosts.shape("alpha", "48mbit")
    variables = {"migrate_jobs": migration.jobs, "migrate_phase": "seed"}
    with migration.playbooks.live("longhaul.fleet.migrate", **variables) as terminal:
        assert terminal.wait() == 0, terminal.output
    shown = re.findall(r"data +seed +\[#+\.*\] +\d+ % +52\.0 MiB +\d+\.\d [KM]iB/s +\d+(?:m\d\d)?s", terminal.output)
    assert shown, terminal.output
    assert "0 of 1 ended, 0 failed; 1 run: " in terminal.output or "0 of 1 job has ended" in terminal.output
    lines = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.output).splitlines() if "data: " in line]
    assert not [line for line in lines if "files" in line and "/s" in line], lines  # no plain lines besides
