# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lists of databases that PostgreSQL and MariaDB print, and how their dumps are loaded."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent import mariadb, postgresql
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.load import plan_loads
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import DumpLoad
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed


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
    return DumpLoad("mariadb", "/x", {}, "_restored", False, True, "root", "", 0, "")._replace(**changed)


def test_each_dump_is_loaded_under_its_new_name():
    names = [".made-by-longhaul", "globals.sql", "shop.dump", "shop.partners.dump", "half.dump.part"]
    new = {"shop.dump": "shop_restored", "shop.partners.dump": "shop.partners_restored"}
    assert plan_loads(names, load_of(), ".dump", ["shop"]) == new
    with pytest.raises(TransferFailed, match="'shop_restored' exists already"):
        plan_loads(names, load_of(), ".dump", ["shop_restored"])


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
