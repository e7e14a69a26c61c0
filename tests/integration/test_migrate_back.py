# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Going back after a switch, as docs/go-back.md has it."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import (
    START_NEW,
    START_OLD,
    STOP,
    Migration,
    changed,
    serves,
    trees,
)
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture


@pytest.mark.long
def test_back_with_what_was_written_on_the_new_host(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[START_NEW], cutover_failed=[START_OLD], delete=True)
    migration.run()
    assert serves(hosts, "beta") and not serves(hosts, "alpha")
    before = (source / "log").read_bytes()
    wait_for(lambda: (dest / "log").stat().st_size > len(before) + 20)
    (dest / "folder0/file0").unlink()

    back = {"src": "/data/dest/", "dest": "/data/src", "delete": True}
    migration.jobs = [migration.job("data-back", "beta", "alpha", **back)]
    migration.jobs[0].update(
        before_cutover=[STOP],
        after_cutover=[{**START_OLD, "host": "dest"}],
        cutover_failed=[{**START_NEW, "host": "source"}],
    )
    said = migration.run_into_failure(migrate_phase="preflight")
    assert "would delete 1 entry at alpha:/data/src" in said and "folder0/file0" in said, said
    migration.run(migrate_phase="sync", migrate_allow_delete=["data-back"])
    assert serves(hosts, "beta") and not serves(hosts, "alpha")
    migration.run()
    assert serves(hosts, "alpha") and not serves(hosts, "beta")
    hosts.exec("alpha", ["/usr/local/bin/app", "stop"])
    written = (dest / "log").read_bytes()
    assert len(written) > len(before) and written.startswith(before)
    assert (source / "log").read_bytes().startswith(written)
    assert not (source / "folder0/file0").exists()
    assert migration.report("data-back")["phases"]["verify"]["identical"]


@pytest.mark.long
def test_what_was_written_since_comes_to_a_folder_beside_the_old_tree(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    said = migration.run_into_failure(migrate_phase=None, migrate_back="daat, data")
    assert "names daat, and there is no such job" in said, said
    assert "it was not switched over, so alpha has all" in said, said
    migration.jobs[0].update(delete=True, owner_map={"users": {"root": "daemon"}, "groups": {"root": "daemon"}})
    migration.run()
    assert {path.stat().st_uid for path in dest.rglob("*")} == {1}
    before = compare.recorded(source)
    (dest / "since").write_text("written on the new host")
    os.chown(dest / "since", 1, 1)
    (dest / "folder0/file0").unlink()

    said = migration.run_into_failure(migrate_back=["data"])
    assert "switches nothing over: leave out migrate_phase=cutover" in said, said
    run = migration.run(migrate_phase=None, migrate_back="data")
    beside = source.with_name("src.from-new")
    assert "What beta has is at alpha:/data/src.from-new" in run.output and "Not switched over" not in run.output
    assert (beside / "since").read_text() == "written on the new host" and not (beside / "folder0/file0").exists()
    assert {path.lstat().st_uid for path in beside.rglob("*")} == {0}
    assert compare.recorded(source) == before and migration.report()["switch"]["done"]
    assert changed(migration.run(migrate_phase=None, migrate_back=["data"]), "alpha") == 0

    migration.jobs[0].update(owner_map={"users": {"root": "daemon", "bin": "daemon"}})
    said = migration.run_into_failure(migrate_phase=None, migrate_back=["data"])
    assert "owner_map.users makes root and bin the same, daemon" in said, said


@pytest.mark.long
def test_back_from_a_switch_that_had_begun(hosts: Testbed, migration: Migration) -> None:
    source, dest = trees(hosts)
    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    broken = {"host": "dest", "command": ["/bin/ls", "/data/mended"]}
    tell = {"host": "dest", "command": ["/usr/bin/touch", "/data/told"]}
    migration.jobs[0].update(before_cutover=[STOP], after_cutover=[broken], switch_failed=[tell], delete=True)
    said = migration.run_into_failure()
    assert "stopped in phase switch" in said and (hosts.root("beta") / "data/told").exists()
    assert "alpha is stopped since" in migration.text()

    hosts.exec("alpha", ["/usr/local/bin/app", "start", "/data/src"])
    size = (source / "log").stat().st_size
    wait_for(lambda: (source / "log").stat().st_size > size + 20)
    migration.run(migrate_phase="sync", migrate_reset=True)
    assert serves(hosts, "alpha") and not migration.report()["switch"]
    migration.jobs[0].update(after_cutover=[START_NEW])
    migration.run()
    assert serves(hosts, "beta") and not serves(hosts, "alpha")
    hosts.exec("beta", ["/usr/local/bin/app", "stop"])
    assert (dest / "log").read_bytes().startswith((source / "log").read_bytes())
    assert compare.differences(source / "big", dest / "big") == []
