# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lists of databases that PostgreSQL and MariaDB print, and how their dumps are loaded."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent import load, mariadb, postgresql
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.load import plan_loads
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.programs import find_account, run_program
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import DumpLoad, parse_load
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_full import DiskRoom
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape


@pytest.mark.parametrize(
    ("answer", "sizes"),
    [
        (b"", {}),
        (b"a\x007\x00b c\n\x0012\x00", {"a": 7, "b c\n": 12}),
        (b"a\x007\x00b\x0012\x00\n", {"a": 7, "b": 12}),
        (b"a\x007\n", {"a": 7}),
    ],
)
def test_the_databases_of_postgresql(answer, sizes):
    assert postgresql.parse_sizes(answer) == sizes


@pytest.mark.parametrize(
    ("answer", "sizes"),
    [
        (b"", {}),
        (b"mysql\t12\nsys\t1\ninformation_schema\t0\nPERFORMANCE_SCHEMA\t0\n", {"mysql": 12}),
        (b"tab\\there\t1\nback\\\\nslash\t2\nx\\\\\\ny\t3\n", {"tab\there": 1, "back\\nslash": 2, "x\\\ny": 3}),
        ("ü\u2028\t1\n".encode(), {"ü\u2028": 1}),
    ],
)
def test_the_databases_of_mariadb(answer, sizes):
    assert mariadb.parse_sizes(answer) == sizes


def test_what_is_no_list_is_refused():
    with pytest.raises(TransferFailed, match="cannot be read"):
        postgresql.parse_sizes(b"a\x00b\x00")
    with pytest.raises(TransferFailed, match="cannot be read"):
        mariadb.parse_sizes(b"one two\n")


def test_a_database_that_is_not_there_is_named():
    sizes = {"a": 1, "b": 2}
    assert postgresql.choose([], sizes) == ["a", "b"] and postgresql.choose(["b", "b"], sizes) == ["b"]
    with pytest.raises(TransferFailed, match="no database 'c'.*it has a, b"):
        postgresql.choose(["a", "c"], sizes)


def load_of(**changed: Any) -> DumpLoad:
    return DumpLoad("mariadb", "/x", {}, "_restored", "", 0.0, False, True, "root", "", 0, "")._replace(**changed)


def test_each_dump_is_loaded_under_its_new_name():
    names = [".made-by-longhaul", "globals.sql", "shop.dump", "shop.partners.dump", "half.dump.part"]
    new = {"shop.dump": "shop_restored", "shop.partners.dump": "shop.partners_restored"}
    assert plan_loads(names, load_of(), ".dump", ["shop"]) == new
    with pytest.raises(TransferFailed, match="'shop_restored' exists already"):
        plan_loads(names, load_of(), ".dump", ["shop_restored"])


SCRATCH = "longhaul_drill_0123456789abcdef"


def test_scratch_databases_have_names_that_nobody_else_gives():
    asked = load_of(scratch=SCRATCH, suffix="")
    assert plan_loads(["globals.sql", "a.dump", "b.dump"], asked, ".dump", ["a"]) == {
        "a.dump": f"{SCRATCH}_0",
        "b.dump": f"{SCRATCH}_1",
    }
    written = {**asked._asdict(), "databases": {"a": f"{SCRATCH}_0"}}
    assert parse_load(written).databases == {"a": f"{SCRATCH}_0"}
    for wrong in ({"databases": {"a": "shop"}}, {"scratch": "shop"}, {"scratch": "longhaul_drill_"}):
        with pytest.raises(WrongShape, match="scratch databases have other names"):
            parse_load({**written, **wrong})


class Server:
    """A server with databases, which cannot load some dumps."""

    ending = ".dump"

    def __init__(self, *databases: str, broken: str = "") -> None:
        self.databases, self.broken = set(databases), broken
        self.folder = "/"

    def names(self) -> list[str]:
        return sorted(self.databases)

    def places(self) -> list[str]:
        return [self.folder]

    def create(self, name: str) -> None:
        self.databases.add(name)

    def drop(self, name: str) -> None:
        self.databases.discard(name)

    def load(self, dump: int, name: str, look: Any) -> None:
        assert name in self.databases
        if look is not None:
            look()
        if os.read(dump, 100).decode() == self.broken:
            raise TransferFailed(f"{self.broken} cannot be loaded")


@pytest.fixture(name="dumps")
def _dumps(tmp_path, monkeypatch):
    """A server, and a folder of three dumps for it."""
    server = Server("shop", "longhaul_drill_of_a_person", f"{SCRATCH}_7", f"{SCRATCH}0_1")
    monkeypatch.setattr(load, "_loader", lambda _asked: server)
    monkeypatch.setattr(load, "find_room", lambda _place: DiskRoom(1000, 500, None, None, False))
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.dump").write_text(name)
    return server, load_of(kind="postgresql", folder=str(tmp_path), scratch=SCRATCH)


def test_a_drill_removes_its_own_databases_alone(dumps):
    server, asked = dumps
    others = {"shop", "longhaul_drill_of_a_person", f"{SCRATCH}0_1"}
    load.load_dumps(asked, Progress())
    assert server.databases == others | {f"{SCRATCH}_{number}" for number in range(3)}, "also not that of a killed one"
    load.drop_scratch(asked)
    assert server.databases == others


def test_a_drill_leaves_room_on_the_disk_of_the_server(dumps, monkeypatch):
    server, asked = dumps
    monkeypatch.setattr(load, "find_room", lambda _place: DiskRoom(1000, 100, None, None, False))
    with pytest.raises(TransferFailed, match="has 100 bytes free, and a drill leaves a tenth"):
        load.load_dumps(asked, Progress())
    assert f"{SCRATCH}_0" not in server.databases
    load.load_dumps(asked._replace(scratch=""), Progress())  # a restore is asked for, and may fill it
    monkeypatch.undo()
    monkeypatch.setattr(load, "_loader", lambda _asked: server)
    server.folder = "/nowhere/at/all"
    with pytest.raises(TransferFailed, match="/nowhere/at/all, which this host cannot look at"):
        load.load_dumps(asked, Progress())


def test_a_program_ends_when_it_is_no_longer_wanted():
    began, looks = time.monotonic(), iter(["", "", "the disk is full"])

    def look() -> None:
        why = next(looks)
        if why:
            raise TransferFailed(why)

    with pytest.raises(TransferFailed, match="the disk is full"):
        run_program(["/bin/sleep", "60"], find_account(os.geteuid()), "sleeping", look=look)
    assert time.monotonic() - began < 30
    run_program(["/bin/sleep", "0"], find_account(os.geteuid()), "sleeping", look=lambda: None)


def test_commands_of_the_client_in_a_dump_of_mariadb_are_not_run(monkeypatch):
    ran: list[list[str]] = []
    monkeypatch.setattr(mariadb, "require_program", lambda *names: names[0])
    monkeypatch.setattr(mariadb, "find_account", lambda _user: None)
    monkeypatch.setattr(mariadb, "run_program", lambda argv, *_given, **_options: ran.append(argv))
    mariadb.MariadbLoader(load_of(defaults_file="/root/x.cnf")).load(0, "shop")
    ((program, first, *options),) = ran
    assert (program, first) == ("mariadb", "--defaults-file=/root/x.cnf")
    assert {"--binary-mode", "--local-infile=0", "--loose-sandbox", "--database=shop"} < set(options)


def test_no_name_of_a_database_is_an_option():
    assert postgresql.server_variables("/run", 5433, "host=x")["PGDATABASE"] == "host=x"
    assert mariadb.server_options("/etc/x.cnf", "/run/s")[0] == "--defaults-file=/etc/x.cnf"
