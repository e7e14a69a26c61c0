# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the option consistent means for a client, what is wrong with it, and the steps on the client."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import parse_consistent
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.scheduler import Call, Pause
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.consistent import (
    end_holder,
    find_consistent_problems,
    plan_preparation,
    prepare,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.transfers import job_of

PATHS = ["/srv/data/", "/etc/"]


def planned(*consistent: dict[str, Any], paths: list[str] | None = None) -> Any:
    return plan_preparation({"consistent": consistent}, paths or PATHS, "abc")


def test_without_the_option_nothing_is_prepared():
    assert planned() is None


def test_dumps_are_in_the_first_path_and_taken_whatever_is_left_out():
    found = planned({"postgresql": {}}, {"mariadb": {"into": "/etc/sql", "databases": ["all"]}})
    first, second = parse_consistent(found.start("vault")["request"]).sources
    assert first.place == ("/srv/data", "/srv/data/.longhaul-dumps/postgresql", False)
    assert (first.user, first.databases, first.globals, first.compress) == ("postgres", [], True, -1)
    assert second.place == ("/etc", "/etc/sql", False) and second.databases == []
    assert found.rules == {
        "/srv/data/": ["+ /.longhaul-dumps/", "+ /.longhaul-dumps/postgresql/***"],
        "/etc/": ["+ /sql/***"],
    }
    assert found.read == {path: path for path in PATHS}


def test_nested_values_are_read_as_their_types_say():
    wanted = {"databases": "all", "keep": "no", "globals": "false", "port": "5433", "compress": "0", "user": None}
    found = planned({"postgresql": wanted}, {"sqlite": {"files": "/etc/b.db", "keep": "yes"}, "btrfs": None})
    postgresql, sqlite = parse_consistent(found.start("vault")["request"]).sources
    assert (postgresql.databases, postgresql.place.keep, postgresql.globals) == ([], False, False)
    assert (postgresql.port, postgresql.compress, postgresql.user) == (5433, 0, "postgres")
    assert sqlite.files == ["b.db"] and sqlite.place.keep
    found = planned(
        {"postgresql": {"databases": "shop,users"}}, {"btrfs": {"subvolume": "/", "leave_out_nested": "no"}}
    )
    postgresql, btrfs = parse_consistent(found.start("vault")["request"]).sources
    assert postgresql.databases == ["shop", "users"] and btrfs.leave_out_nested is False
    wrong = {"sqlite": {"files": "/var/b.db"}}
    assert "not in one src" in find_consistent_problems({"consistent": [wrong]}, ["/etc"])[0]


def test_live_files_of_sqlite_are_left_out_where_they_are():
    found = planned({"sqlite": {"files": ["/etc/app/*.db"], "keep": True}})
    (source,) = parse_consistent(found.start("vault")["request"]).sources
    assert source.files == ["app/*.db"] and source.place == ("/etc", "/etc/.longhaul-dumps/sqlite", True)
    assert found.rules["/srv/data/"] == []
    assert found.rules["/etc/"][2:] == [
        *("+ /app/*.db/", "- /app/*.db", "+ /app/*.db-wal/", "- /app/*.db-wal"),
        *("+ /app/*.db-shm/", "- /app/*.db-shm", "+ /app/*.db-journal/", "- /app/*.db-journal"),
    ]
    found = planned({"sqlite": {"files": ["/etc/app.db"]}})
    assert found.rules["/etc/"][2:] == ["- /app.db", "- /app.db-wal", "- /app.db-shm", "- /app.db-journal"]


@pytest.mark.parametrize(
    ("subvolume", "read"),
    [
        ("/srv/data", "/srv/data/.longhaul-abc/"),
        ("/srv", "/srv/.longhaul-abc/data/"),
        ("/", "/.longhaul-abc/srv/data/"),
    ],
)
def test_a_snapshot_is_read_in_the_place_of_the_live_tree(subvolume, read):
    found = planned({"btrfs": {"subvolume": subvolume}})
    assert found.read["/srv/data/"] == read
    assert found.read["/etc/"] == ("/.longhaul-abc/etc/" if subvolume == "/" else "/etc/")
    request = parse_consistent(found.start("vault")["request"])
    assert request.sources == [(subvolume, ".longhaul-abc", False)] and request.readers[0] == read.rstrip("/")


def test_the_snapshot_of_the_deepest_subvolume_is_read():
    entries = [{"btrfs": {"subvolume": one, "leave_out_nested": True}} for one in ("/", "/srv/data", "/srv")]
    assert planned(*entries).read == {"/srv/data/": "/srv/data/.longhaul-abc/", "/etc/": "/.longhaul-abc/etc/"}


def test_a_transfer_reads_what_is_prepared_and_check_mode_the_live_tree():
    job = {
        "name": "data",
        "host": "web",
        "src": "/srv/data",
        "exclude": ["*.tmp"],
        "keep": {"last": 1},
        "repository": {"host": "vault", "path": "/b"},
        "consistent": [{"postgresql": {}}, {"btrfs": {"subvolume": "/srv"}}],
    }
    (run,) = make_runs([job], {"all": ["web", "vault"]})
    made = job_of(run, run["sources"][0])
    name = f".longhaul-{run['consistent'].identity}"
    assert (made["src"], run["sources"][0]["src"]) == (f"/srv/{name}/data/", "/srv/data/")
    assert made["filter"][1:3] == ["+ /.longhaul-dumps/", "+ /.longhaul-dumps/postgresql/***"]
    assert made["exclude"] == ["*.tmp"]
    assert job_of(run, run["sources"][0], check=True)["src"] == "/srv/data/"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "give one of postgresql, mariadb, sqlite, btrfs"),
        ({"postgresql": {}, "btrfs": {"subvolume": "/srv"}}, "has postgresql, btrfs"),
        ({"postgresql": {"into": "/var/dumps"}}, "/var/dumps is not in a src"),
        ({"postgresql": {"into": "../x"}}, "without '..'"),
        ({"postgresql": {"into": "a*"}}, "name a folder"),
        ({"postgresql": {"compress": 12}}, "compress is 12"),
        ({"mariadb": {"free_percent": -1}}, "free_percent is -1"),
        ({"sqlite": {"files": []}}, "files is missing"),
        ({"sqlite": {"files": ["app.db"]}}, "no absolute path"),
        ({"sqlite": {"files": ["/srv/data/**/x.db"]}}, "no other wildcards"),
        ({"sqlite": {"files": ["/srv/data/[a].db"]}}, "no other wildcards"),
        ({"sqlite": {"files": ["/srv/data/a.db", "/etc/b.db"]}}, "not in one src"),
        ({"sqlite": {"files": ["/var/a.db"]}}, "not in one src"),
        ({"sqlite": {"files": ["/srv/data/a.db"], "into": "/etc/x"}}, "is not in a src"),
        ({"btrfs": {"subvolume": "srv"}}, "an absolute path"),
        ({"btrfs": {"subvolume": "/home"}}, "nothing would be read"),
    ],
)
def test_what_is_wrong_is_said(entry, words):
    (problem,) = find_consistent_problems({"consistent": [entry]}, ["/srv/data", "/etc"])
    assert words in problem


def test_what_is_right_is_no_problem():
    right = [
        {"postgresql": {"databases": ["a"]}},
        {"postgresql": {"socket": "/run/b", "into": "/etc/b"}},
        {"mariadb": {"free_percent": 0}},
        {"sqlite": {"files": ["/srv/data/*/?.db"]}},
        {"btrfs": {"subvolume": "/srv/"}},
    ]
    assert find_consistent_problems({"consistent": right, "consistent_timeout": 60}, ["/srv/data", "/etc"]) == []
    same = find_consistent_problems({"consistent": [right[0], right[0]], "consistent_timeout": 0}, ["/srv/data"])
    assert "has its dumps in" in same[0] and "consistent_timeout is 0" in same[1]


class Client:
    """A client whose job says one thing after the other."""

    def __init__(self, *says: dict[str, Any]) -> None:
        self._says, self.asked = iter(says), []

    def run(self, *steps: dict[str, Any]) -> list[Any]:
        self.asked += [step["do"] for step in steps]
        return [next(self._says) if step["do"] in ("poll", "start", "stop") else {} for step in steps]


def drive(workflow: Any, said: list[Any]) -> Any:
    answer: Any = None
    while True:
        try:
            step = workflow.send(answer)
        except StopIteration as ended:
            return ended.value
        said.append(step) if isinstance(step, Pause) else None
        answer = step.do() if isinstance(step, Call) else None


NONE, RUNS = {"state": "starting", "alive": False}, {"state": "running", "alive": True}
READY = {"state": "serving", "alive": True, "idle": True, "progress": {"files_done": 2, "bytes_done": 2**20}}


@pytest.mark.parametrize(
    ("says", "reason", "asked", "told"),
    [
        (
            [NONE, {}, READY],
            "",
            ["poll", "stop", "clear", "start"],
            "prepared consistent sources: 2 databases or subvolumes, 1.0 MiB of dumps",
        ),
        ([NONE, {}, RUNS, RUNS, READY], "", ["poll", "stop", "clear", "start", "poll", "poll"], "prepared"),
        ([{**READY, "idle": False}], "", ["poll"], "are used on"),
        ([READY, {}, READY], "", ["poll", "stop", "clear", "start"], "prepared"),
        ([NONE, {}, {"state": "failed", "alive": False, "failure": "no room"}], "no room", None, ""),
    ],
)
def test_sources_are_prepared(says, reason, asked, told):
    client, lines, pauses = Client(*says), [], []
    found = planned({"postgresql": {}})
    assert drive(prepare(found, client, "vault", lines.append), pauses) == reason
    assert asked in (None, client.asked) and told in "".join(lines)
    assert len(pauses) == says.count(RUNS)


@pytest.mark.parametrize(
    ("says", "held", "failure"),
    [
        ([READY, {"state": "finished"}], True, ""),
        ([READY, {"state": "failed", "failure": "stays"}], True, "stays"),
        (
            [{"state": "failed", "alive": False, "failure": "no room"}, {"state": "failed", "failure": "no room"}],
            False,
            "",
        ),
        (
            [{"state": "died", "alive": False, "failure": "killed"}, {"state": "failed", "failure": "stays"}],
            False,
            "stays",
        ),
        ([{"state": "finished", "alive": False}, {}], False, ""),
        ([{"state": "died", "alive": False}, {}], False, ""),
    ],
)
def test_sources_are_undone(says, held, failure):
    client = Client(*says)
    assert end_holder(client, planned({"postgresql": {}}).folder) == (held, failure)
    assert client.asked == ["poll", "stop", "clear"]
