# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server of a restore drill: what it loads, who may run it, and that it goes with what it was for."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent import mariadb, postgresql, scratch_server
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.programs import find_account, run_program
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import ScratchLoad, parse_scratch_load
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.scratch_server import (
    ScratchServer,
    plan_databases,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_full import DiskRoom
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for

ME = find_account(os.geteuid())


@pytest.mark.parametrize(
    ("names", "wanted", "ending", "planned"),
    [
        (
            ["a%2Fb.dump", "globals.sql", "shop.dump", ".x.dump"],
            [],
            ".dump",
            {"a%2Fb.dump": "a/b", "shop.dump": "shop"},
        ),
        (["a.dump", "shop.dump"], ["shop"], ".dump", {"shop.dump": "shop"}),
        (["mysql.sql", "shop.sql"], [], ".sql", {"mysql.sql": "mysql_loaded", "shop.sql": "shop"}),
        (["mysql.sql", "shop.sql"], ["mysql"], ".sql", {"mysql.sql": "mysql_loaded"}),
    ],
)
def test_databases_have_their_names(names, wanted, ending, planned):
    assert plan_databases(names, wanted, ending) == planned


@pytest.mark.parametrize(
    ("names", "wanted", "words"),
    [(["globals.sql"], [], "there is no dump in what was restored"), (["a.dump"], ["b"], "no dump of 'b'.*It has a")],
)
def test_missing_dumps_are_named(names, wanted, words):
    with pytest.raises(TransferFailed, match=words):
        plan_databases(names, wanted, ".dump")


ASKED = {"kind": "postgresql", "folder": "/a", "place": "/b", "databases": [], "user": "", "hold": 5.0}


@pytest.mark.parametrize(
    "wrong", [{"kind": "oracle"}, {"place": "b"}, {"folder": "/a/.."}, {"hold": -1}, {"hold": 1e9}]
)
def test_a_request_is_checked(wrong):
    assert parse_scratch_load(ASKED) == ("postgresql", "/a", "/b", [], "", 5.0)
    with pytest.raises(WrongShape):
        parse_scratch_load({**ASKED, **wrong})


class Sleeper(ScratchServer):
    """A server that only sleeps, and cannot load the dump ``bad``."""

    ending = ".dump"

    @property
    def socket(self):
        return f"{self.folder}/socket"

    def _make(self):
        self._run(["/bin/true"], "making nothing")

    def _start(self):
        self._start_program(["/bin/sleep", "100"])

    def _ask(self):
        pass

    def _load(self, dump, name):
        if os.read(dump, 100) == b"bad":
            raise TransferFailed(f"{name} cannot be loaded")


@pytest.fixture(name="asked")
def _asked(tmp_path, monkeypatch):
    """Dumps and a scratch folder, with room on the disk, for a server as this user."""
    monkeypatch.setattr(scratch_server, "find_room", lambda _place: DiskRoom(1000, 500, None, None, False))
    for name in ("dumps", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "dumps/a.dump").write_text("good")
    if os.geteuid() != 0 or not shutil.which("nsenter"):
        pytest.skip("cannot run here: only root makes namespaces")
    return ScratchLoad("postgresql", str(tmp_path / "dumps"), str(tmp_path / "scratch"), (), "root", 0.3)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_is_gone_with_all_it_had(asked):
    progress = Progress()
    with Sleeper(asked) as server:
        server.load(progress)
        pid = server._process.pid
        assert is_alive(pid) and os.listdir(asked.place) == ["server"] and progress.files_done == 1
        server.hold()  # it ends by itself after a while
    assert os.listdir(asked.place) == [] and not is_alive(pid)


def test_a_server_that_fails_leaves_nothing(asked, tmp_path, monkeypatch):
    (tmp_path / "dumps/a.dump").write_text("bad")
    with pytest.raises(TransferFailed, match="a cannot be loaded"), Sleeper(asked) as server:
        server.load(Progress())
    assert os.listdir(asked.place) == []
    with Sleeper(asked) as server:
        server._process.kill()
        server._process.wait()
        with pytest.raises(TransferFailed, match="the server for the dumps has ended: it said nothing"):
            server.hold()
    monkeypatch.setattr(scratch_server, "find_room", lambda _place: DiskRoom(1000, 100, None, None, False))
    with pytest.raises(TransferFailed, match="has 100 bytes free, and a drill leaves a tenth"), Sleeper(asked):
        pass
    assert os.listdir(asked.place) == []


def running(word: str) -> list[str]:
    """Return the processes with a word in their command."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found += [pid] if word.encode() in Path("/proc", pid, "cmdline").read_bytes().split(b"\0") else []
    return found


def test_what_a_dump_starts_ends_with_the_server_and_reaches_no_network(asked, tmp_path):
    """Also in a session of its own, and in the background."""
    said = tmp_path / "said"
    escape = f"setsid sh -c 'wc -l </proc/net/dev >{said}.new; mv {said}.new {said}; exec sleep 77.7' >/dev/null 2>&1 &"
    with Sleeper(asked) as server:
        server._run(["/bin/sh", "-c", escape], "escaping")
        wait_for(lambda: said.exists() and running("77.7"))
        assert said.read_text().strip() == "3", "two lines of headings, and the interface that leads to itself"
    assert not running("77.7")


def test_rows_of_a_dump_are_not_told():
    said = r"-----\nINSERT INTO t VALUES (secret)\n-----\n\nERROR 1136 (21S01) at line 3: Column count"
    with pytest.raises(TransferFailed) as failed:
        run_program(["/bin/sh", "-c", f"printf %b '{said}' >&2; exit 1"], ME, "loading", told=mariadb.TOLD)
    assert str(failed.value) == "loading failed: ERROR 1136 (21S01) at line 3: Column count"
    said = r"pg_restore: error: COPY failed\nCONTEXT:  COPY t, line 1: secret\nCommand was: COPY secret"
    with pytest.raises(TransferFailed) as failed:
        run_program(["/bin/sh", "-c", f"printf %b '{said}' >&2; exit 1"], ME, "loading", told=postgresql.TOLD)
    assert str(failed.value) == "loading failed: pg_restore: error: COPY failed"


def test_what_a_server_cannot_use_is_named(asked, tmp_path):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    with pytest.raises(TransferFailed, match="is longer than 103 bytes. Name a folder"), Sleeper(
        asked._replace(place=str(long))
    ):
        pass
    (tmp_path / "scratch").chmod(0o700)
    with pytest.raises(TransferFailed, match="nobody, as which .* cannot enter .*Let it"), Sleeper(
        asked._replace(user="")
    ):
        pass
    assert os.listdir(asked.place) == []


def test_a_program_ends_when_it_is_no_longer_wanted():
    began, looks = time.monotonic(), iter(["", "the disk is full"])

    def look() -> None:
        why = next(looks)
        if why:
            raise TransferFailed(why)

    with pytest.raises(TransferFailed, match="the disk is full"):
        run_program(["/bin/sleep", "60"], find_account(os.geteuid()), "sleeping", look=look)
    assert time.monotonic() - began < 30
    run_program(["/bin/sleep", "0"], find_account(os.geteuid()), "sleeping", look=lambda: None)


def test_what_lets_a_program_run_as_another_user_is_named(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(
        TransferFailed, match="only root can run programs as root: set ansible_become: true for this host"
    ):
        find_account("root")


def test_the_newest_version_is_taken():
    paths = ["/usr/lib/postgresql/9.6/bin/initdb", "/usr/lib/postgresql/15/bin/initdb"]
    assert max(paths, key=scratch_server._version) == paths[1]
