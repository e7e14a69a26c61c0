# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Databases in use are backed up and loaded elsewhere, as they were at one moment; a snapshot of btrfs is read."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.backups import Backups
from ansible_collections.longhaul.fleet.tests.support.databases import (
    MOVED,
    ROWS,
    SUMS,
    TABLES,
    DatabaseServer,
    mariadb,
    postgresql,
)
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SUM = f"{2 * ROWS}\t{200 * ROWS}"


@pytest.fixture
def backups(hosts: Testbed, playbooks: Playbooks) -> Iterator[Backups]:
    """A job that backs up a small tree of alpha into a repository on beta."""
    source = hosts.root("alpha") / "data/src"
    (source / "app").mkdir(parents=True)
    (source / "file").write_text("content")
    for path in (source, source / "app"):
        path.chmod(0o755)
    return Backups(hosts, playbooks)


def left(bed: Testbed) -> list[str]:
    """Return what is left of the preparation on alpha."""
    states = [path.name for path in (bed.root("alpha") / "var/lib/longhaul").glob("[0-9a-f]" * 16)]
    return [*states, *(name for name in os.listdir(bed.root("alpha") / "data/src") if name.startswith(".longhaul"))]


def make_database(bed: Testbed) -> Path:
    """Make a database of SQLite on alpha, which cannot be done by the machine's path of it."""
    make = "import sqlite3; d = sqlite3.connect('/data/src/app/own.db'); d.execute('CREATE TABLE t AS SELECT 7 AS x')"
    bed.exec("alpha", ["/usr/bin/python3", "-c", f"{make}; d.commit()"])
    return bed.root("alpha") / "data/src/app/own.db"


def test_postgresql_and_sqlite_in_use(hosts: Testbed, backups: Backups, tmp_path: Path) -> None:
    source = hosts.root("alpha") / "data/src"
    own = make_database(hosts)  # of a user of its own
    for path in (source / "app", own):
        os.chown(path, 4321, 4321)
    with postgresql(hosts, "alpha") as server:
        server.sql("postgres", 'CREATE ROLE app; CREATE DATABASE shop; CREATE DATABASE "an=odd/name" OWNER app;')
        server.sql("shop", TABLES)
        consistent = [{"postgresql": {"socket": server.socket}}, {"sqlite": {"files": ["/data/src/*/*.db"]}}]
        backups.jobs = [backups.job("data", consistent=consistent, exclude=[".*", "*.dump"])]
        with server.written("shop"):
            before = server.sql("shop", MOVED)
            backups.run()
            assert int(server.sql("shop", MOVED)) > int(before) > 100 * ROWS
        assert left(hosts) == [] and backups.record()["failures"] == []
        (snapshot,) = backups.snapshots()
        dumps = snapshot / ".longhaul-dumps"
        assert {"an%3Dodd%2Fname.dump", "globals.sql", "postgres.dump", "shop.dump"} < set(
            os.listdir(dumps / "postgresql")
        )
        assert not (snapshot / "app/own.db").exists() and (snapshot / "file").read_text() == "content"
        copy = dumps / "sqlite/app%2Fown.db"
        (tmp_path / "copy.db").write_bytes(copy.read_bytes())
        assert sqlite3.connect(tmp_path / "copy.db").execute("SELECT x FROM t").fetchone() == (7,)
        assert copy.stat().st_uid == 4321
        load(backups, "postgresql", server)
        drill(hosts, backups, "postgresql")

        # A server that refuses: the backup fails with its words, and nothing is half done.
        backups.jobs = [backups.job("data", consistent=[{"postgresql": {"socket": "/data/nowhere"}}])]
        said = backups.run_into_failure()
        assert (
            "failed: prepare: alpha: asking PostgreSQL for its databases failed: " in said and "/data/nowhere" in said
        )
        assert left(hosts) == [] and backups.snapshots() == [snapshot]


def load(backups: Backups, kind: str, server: DatabaseServer) -> dict[str, Any]:
    """Restore the dump of shop into a new database, and check that; return the variables."""
    asked = {
        "restore_from": "alpha",
        "restore_job": "data",
        "restore_path": f".longhaul-dumps/{kind}",
        "restore_dest": "/data/restored",
        "restore_consistent": [{kind: {"databases": {"shop": "new shop"}, "socket": server.socket}}],
    }
    given = {"backup_jobs": backups.jobs, **asked}
    made = backups.playbooks.run("longhaul.fleet.restore", **given).expect_success()
    assert f"Loaded the dumps of {kind} on alpha: shop as new shop" in made.output
    again = backups.playbooks.run("longhaul.fleet.restore", **given)
    assert again.rc != 0 and f"the database 'new shop' exists already. No dump of {kind} was loaded" in again.output
    assert "All files are restored and compared" in again.output and "Another run refuses" not in again.output
    name = "dbname='new shop'" if kind == "postgresql" else "new shop"
    assert server.sql(name, SUMS) == SUM and int(server.sql(name, MOVED)) > 100 * ROWS
    return given


CLIENTS = {
    "postgresql": "psql -XqAt -h {postgresql} -U postgres shop",
    "mariadb": "mariadb --no-defaults --socket={mariadb} --user=root --batch --skip-column-names shop",
}


def drill(bed: Testbed, backups: Backups, kind: str) -> None:
    """Practise a restore whose validation looks at the loaded database, one of which it fails, and one with no dump."""
    scratch = bed.root("alpha") / "data/drills"
    scratch.mkdir(mode=0o755)
    options: dict[str, Any] = {"share": "1/200", "into": {"host": "client", "path": "/data/drills"}}

    def validate(rows: int, **asked: Any) -> dict[str, Any]:
        count = "SELECT count(*) FROM (SELECT * FROM debit UNION ALL SELECT * FROM credit) AS both_tables"
        check = {"command": ["sh", "-c", f'test "$(echo "{count}" | {CLIENTS[kind]})" = {rows}']}
        given = {**options, "load": [{kind: asked}], "validate": check}
        return {"backup_drill": given, "backup_drill_only": True}

    made = backups.run(**validate(2 * ROWS))
    found = backups.record()["drill"]
    assert found["validated"] and found["databases"] >= 1 and found["succeeded"], found
    assert "loaded in" in made.output and os.listdir(scratch) == [] and left(bed) == []
    said = backups.run_into_failure(**validate(7, databases=["shop"]))
    assert "the validation of what was restored" in said
    kept = Path(backups.record()["drill"]["path"]).name
    assert os.listdir(scratch / f"{kept[:27]}-0") == [".longhaul-drill.json"] and left(bed) == [], (
        "no server, no tables"
    )
    backups.run(**validate(2 * ROWS, databases=["shop"]))
    assert os.listdir(scratch) == [] and left(bed) == []


def kill_drill(bed: Testbed, backups: Backups) -> None:
    """A job with the server of a drill that is killed takes the server along, and the drill fails."""
    scratch = bed.root("alpha") / "data/drills"
    asked = {"share": "1/200", "into": {"host": "client", "path": "/data/drills"}, "load": [{"mariadb": {}}]}
    wait = {"command": ["sh", "-c", "until test -e /data/go; do sleep 0.1; done; mariadb --version"]}
    running = backups.start(backup_drill={**asked, "validate": wait}, backup_drill_only=True)
    wait_for(lambda: list(scratch.glob("*/server/pid")) and "hook drill" in running.output)
    (pid,) = scratch.glob("*/server/pid")
    server = int(pid.read_text())
    found = [
        json.loads(path.read_text()) for path in (bed.root("alpha") / "var/lib/longhaul").glob("*/dest/status.json")
    ]
    (job,) = (one for one in found if one["state"] == "serving")
    bed.kill("alpha", job["pid"], signal.SIGKILL)
    wait_for(lambda: bed.exec("alpha", ["test", "-d", f"/proc/{server}"], check=False).returncode != 0)
    (bed.root("alpha") / "data/go").touch()
    ended = running.wait()
    assert ended.rc != 0 and "it was gone before" in ended.output.replace("\n", " "), ended.output
    assert os.listdir(scratch) == [] and left(bed) == []


@pytest.mark.long
def test_mariadb_in_use(hosts: Testbed, backups: Backups) -> None:
    with mariadb(hosts, "alpha") as server:
        server.sql("mysql", "CREATE DATABASE shop")
        server.sql("shop", TABLES)
        consistent = [{"mariadb": {"socket": server.socket, "databases": ["shop"]}}]
        backups.jobs = [backups.job("data", consistent=consistent)]
        with server.written("shop"):
            before = server.sql("shop", MOVED)
            backups.run()
            assert int(server.sql("shop", MOVED)) > int(before) >= 100 * ROWS
        assert left(hosts) == []
        given = load(backups, "mariadb", server)
        drill(hosts, backups, "mariadb")
        kill_drill(hosts, backups)
        again = backups.playbooks.run("longhaul.fleet.restore", **given)
        assert again.rc and "the database 'new shop' exists already" in again.output.replace("\n", " ")


def test_a_snapshot_of_btrfs_is_read(hosts: Testbed, backups: Backups, tmp_path: Path) -> None:
    try:
        with loop_disk(hosts, "btrfs", tmp_path, 300 << 20, ("alpha", "/data/disk")):
            back_up_btrfs(hosts, backups)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"cannot run here: btrfs cannot be mounted from a loop device: {error.stderr}")


def back_up_btrfs(hosts: Testbed, backups: Backups) -> None:
    """Back up a folder in which two files are written in turn, each time with the same number."""
    disk = hosts.root("alpha") / "data/disk"
    tree = disk / "tree"
    tree.mkdir()
    for number in range(200):
        (tree / f"file{number}").write_bytes(os.urandom(1000))
    write = "n=$((n+1)); for file in first zlast; do echo $n >new; mv new $file; done"
    writer = hosts.popen("alpha", ["sh", "-c", f"cd /data/disk/tree; n=0; while [ ! -e stop ]; do {write}; done"])
    try:
        wait_for(lambda: (tree / "zlast").exists())
        backups.jobs = [backups.job("data", src="/data/disk/tree", consistent=[{"btrfs": {"subvolume": "/data/disk"}}])]
        backups.run()
        (snapshot,) = backups.snapshots()
        first, last = (int((snapshot / name).read_text()) for name in ("first", "zlast"))
        assert first - last in (0, 1) and len(list(snapshot.glob("file*"))) == 200
        assert backups.record()["transfers"][0]["src"] == "/data/disk/tree/"
        assert not [note for note in backups.record()["notes"] if "changed at the source" in note]
        assert os.listdir(disk) == ["tree"] and left(hosts) == []

        hosts.exec("alpha", ["btrfs", "subvolume", "create", "/data/disk/nested"])
        assert "/data/disk has 1 subvolume inside" in backups.run_into_failure().replace("\n", " ")
        assert sorted(os.listdir(disk)) == ["nested", "tree"] and backups.snapshots() == [snapshot]
    finally:
        (tree / "stop").touch()
        writer.wait(30)


@pytest.mark.long
def test_a_killed_run_leaves_nothing_on_the_client(hosts: Testbed, backups: Backups) -> None:
    """Its transfer goes on and keeps the dumps; the next run attaches to both, or the client undoes them."""
    source = hosts.root("alpha") / "data/src"
    make_database(hosts)
    consistent = [{"sqlite": {"files": ["/data/src/app/own.db"]}}]
    backups.jobs = [backups.job("data", consistent=consistent, consistent_timeout=10)]
    arriving = backups.repository / "alpha/data/.unfinished/data"
    dumped = source / ".longhaul-dumps/sqlite/app%2Fown.db"

    def kill_one() -> None:
        (source / "big").write_bytes(os.urandom(40 << 20))
        hosts.shape("alpha", "8mbit")
        running = backups.start()
        wait_for(lambda: arriving.is_dir() and any(arriving.iterdir()))
        assert dumped.exists() and running.process.poll() is None, running.output
        running.kill()
        running.process.wait()
        time.sleep(13)
        assert dumped.exists()  # the transfer reads on

    kill_one()
    again = backups.start()
    wait_for(lambda: "they are used on" in again.output)
    hosts.shape("alpha", None)
    again.wait().expect_success()
    (snapshot,) = backups.snapshots()
    assert left(hosts) == [] and (snapshot / ".longhaul-dumps/sqlite/app%2Fown.db").exists()

    kill_one()
    hosts.shape("alpha", None)
    wait_for(lambda: not dumped.exists())
    assert not (source / ".longhaul-dumps").exists()
    backups.run()
    assert len(backups.snapshots()) == 2
