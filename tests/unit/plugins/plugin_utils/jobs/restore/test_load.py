# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What restore_consistent means for a host, and what is wrong with it."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.load import plan_loads
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import parse_load
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.load import (
    describe_loaded,
    find_load_problems,
    load_dumps,
    make_load,
)

NAMES = [".made-by-longhaul", "a%2Fb.dump", "globals.sql", "shop.dump", "shop.dump.part"]


@pytest.mark.parametrize(
    ("options", "existing", "planned"),
    [
        ({}, {"shop", "a/b"}, {"a%2Fb.dump": "a/b_restored", "shop.dump": "shop_restored"}),
        ({"databases": {"a/b": "new"}}, {"shop"}, {"a%2Fb.dump": "new"}),
        ({"suffix": "", "over": True}, {"shop"}, {"a%2Fb.dump": "a/b", "shop.dump": "shop"}),
    ],
)
def test_each_dump_has_a_database(options, existing, planned):
    asked = parse_load(make_load({"postgresql": options}, "/restored"))
    assert plan_loads(NAMES, asked, ".dump", existing) == planned


@pytest.mark.parametrize(
    ("options", "names", "words"),
    [
        ({"databases": {"shop": "old"}}, NAMES, "'old' exists already"),
        ({"databases": {"other": "new"}}, NAMES, "no dump other.dump.*it has a/b, shop"),
        ({"databases": {"shop": "new", "a/b": "new"}}, NAMES, "two dumps would get one name"),
        ({}, ["globals.sql"], "no dumps of postgresql"),
    ],
)
def test_what_cannot_be_loaded_is_refused_before_anything_is(options, names, words):
    asked = parse_load(make_load({"postgresql": options}, "/restored"))
    with pytest.raises(TransferFailed, match=words):
        plan_loads(names, asked, ".dump", {"old"})


def test_what_a_host_is_asked_for():
    load = parse_load(make_load({"mariadb": {"folder": "x/y", "socket": "/s"}}, "/restored"))
    assert (load.kind, load.folder, load.user, load.socket) == ("mariadb", "/restored/x/y", "root", "/s")
    assert not load.over and load.suffix == "_restored"
    texts = {"over": "no", "owners": "false", "port": "5433", "databases": None, "user": None}
    load = parse_load(make_load({"postgresql": texts, "mariadb": None}, "/restored"))
    assert (load.over, load.owners, load.port, load.databases, load.user) == (False, False, 5433, {}, "postgres")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "give one of postgresql, mariadb"),
        ({"postgresql": {"folder": "../x"}}, "has '..' in it"),
        ({"mariadb": {"suffix": ""}}, "go over their own databases"),
        ({"mariadb": {"suffix": "", "over": "false"}}, "go over their own databases"),
    ],
)
def test_what_is_wrong_is_said(entry, words):
    (problem,) = find_load_problems([entry])
    assert words in problem


class Host:
    name = "db2"

    def __init__(self, *says):
        self._says, self.asked = iter(says), []

    def run(self, *steps):
        self.asked += [step["do"] for step in steps]
        return [next(self._says) if step["do"] in ("start", "poll") else {} for step in steps]


def test_the_job_on_the_host_is_waited_for_and_its_failure_is_told():
    host = Host({"state": "running", "alive": True}, {"state": "finished", "alive": False})
    assert load_dumps(host, make_load({"mariadb": {}}, "/r"), "db1/data", lambda _line: None) == ("", "")
    assert host.asked == ["start", "poll", "stop", "clear"]
    host = Host({"state": "failed", "alive": False, "failure": "no room", "loaded": [["shop", "old"]]})
    outcome = load_dumps(host, make_load({"mariadb": {}}, "/r"), "db1/data", lambda _line: None)
    assert outcome == ("shop as old", "db2: no room")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, ""),
        ({"a": 1}, ""),
        ([["shop", "shop_old"], ["a"], 1, [1, 2], ["b", "c"]], "shop as shop_old, b as c"),
        ([["a\x1b[2J", "b\n" + "c" * 1000]], "a\\x1b[2J as b " + "c" * 78),
        ([["a", "b"]] * 25, ", ".join(["a as b"] * 20) + ", 5 more"),
    ],
)
def test_the_databases_of_a_host_are_harmless_and_bounded(said, words):
    assert describe_loaded(said) == words
