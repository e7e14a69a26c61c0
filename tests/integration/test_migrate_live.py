# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations of trees in which programs write all the time, as databases do."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import STOP_PROGRAM, Migration, trees
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

# A database rewrites pages of its large log all the time: database run TREE, database stop.
DATABASE = f"""\
#!/usr/bin/python3
import os, signal, sys, time
PID = "/run/database.pid"
if sys.argv[1] == "run":
    with open(PID, "w") as opened:
        opened.write(str(os.getpid()))
    log = os.open(os.path.join(sys.argv[2], "log0"), os.O_RDWR)
    size = os.fstat(log).st_size
    for number in range(10_000_000):
        os.pwrite(log, b"%08d" % number, (number * 4096) % size)
        time.sleep(0.002)
{STOP_PROGRAM}"""


def test_a_live_database_reaches_the_cutover(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    program = hosts.root("alpha") / "usr/local/bin/database"
    program.write_text(DATABASE)
    program.chmod(0o755)
    with (source / "log0").open("wb") as log:
        log.truncate(48 * MIB)
        log.write(b"x" * 48 * MIB)
    stop = {"host": "source", "command": ["/usr/local/bin/database", "stop"]}
    migration.jobs[0].update(before_cutover=[stop], delete=True)
    hosts.popen("alpha", ["/usr/local/bin/database", "run", "/data/src"])
    wait_for((hosts.root("alpha") / "run/database.pid").exists)

    first = migration.run(migrate_phase="sync", migrate_sync_short_enough=0, migrate_sync_max_passes=2)
    seed = migration.report()["phases"]["seed"]
    changed = seed["changed_meanwhile"]
    assert (changed["count"], changed["example"]) == (1, "log0"), seed
    assert seed["bytes_sent"] <= 2 * 48 * MIB + 5 * MIB  # it was tried once more, not again and again
    passes = migration.report()["phases"]["sync"]["passes"]
    assert [one["changed_meanwhile"]["count"] for one in passes] == [1, 1]
    assert "fatal:" not in first.output and "log0" in migration.text()
    assert "[WARNING]" in first.output and "1 entry changed at the source" in first.output
    assert not (dest / "log0").exists() and (dest / "big").is_dir()

    last = migration.run()
    assert "changed at the source" not in last.output.replace("\n", " ")
    report = migration.report()
    assert report["switch"]["done"] and report["phases"]["verify"]["identical"] and report["hints"] == []
    assert report["phases"]["cutover"]["changed_meanwhile"]["count"] == 0
    assert compare.differences(source, dest) == []
    program.unlink()


@pytest.mark.long
def test_passes_take_as_long_as_their_transfers(hosts: Testbed, migration: Migration) -> None:
    """Nobody waits for a transfer of a migration, so its time is what it says itself."""
    source, dest = trees(hosts)
    (source / "large").write_bytes(b"x" * 24 * MIB)
    migration.jobs[0].update(bwlimit="8M", compress="none")
    migration.run(migrate_phase="seed")
    seed = migration.report()["phases"]["seed"]
    sent, limit = seed["bytes_sent"], 8_000_000
    assert sent > 24 * MIB and seed["phases"]["transfer"] >= 0.8 * sent / limit, seed
    assert seed["duration"] >= seed["phases"]["transfer"] and 0.5 * limit < seed["throughput"] < 1.3 * limit, seed
    (source / "large").write_bytes(b"y" * 24 * MIB)
    said = migration.run_into_failure(migrate_sync_short_enough=1, migrate_sync_max_passes=1)
    assert "after 1 passes the last one still took" in said and "migrate_sync_short_enough is 1 s" in said, said
    assert compare.differences(source, dest) == [] and not migration.report()["switch"]


@pytest.mark.long
def test_a_final_pass_forgives_nothing(hosts: Testbed, migration: Migration) -> None:
    source, _dest = trees(hosts)
    program = hosts.root("alpha") / "usr/local/bin/database"
    program.write_text(DATABASE)
    program.chmod(0o755)
    (source / "log0").write_bytes(b"x" * 48 * MIB)
    hosts.popen("alpha", ["/usr/local/bin/database", "run", "/data/src"])
    wait_for((hosts.root("alpha") / "run/database.pid").exists)
    said = migration.run_into_failure()
    hosts.exec("alpha", ["/usr/local/bin/database", "stop"])
    program.unlink()
    assert "stopped in phase cutover" in said and "log0: unstable" in said, said
    assert not migration.report()["switch"]
