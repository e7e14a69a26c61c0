# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of what two hosts say, and what it means."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.preflight import (
    PreflightFindings,
    judge_preflight,
    judge_tree_users,
    parse_tree_users,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    ProbedHost,
    TransferSummary,
    TreeUser,
    TreeUsers,
)

JOB = {"src_host": "old", "dest_host": "new"}


def host(**changes) -> ProbedHost:
    said = {
        "base": "/srv",
        "root": True,
        "mount": "/srv",
        "fstype": "xfs",
        "bytes_free": 100 * 2**30,
        "files_free": 1000,
        "xattrs": True,
        "acls": True,
        "case_insensitive": False,
        "largest_file": None,
        "tools": {"rsync": "/usr/bin/rsync", "ssh": "/usr/bin/ssh"},
        "peer": "open",
        "problems": [],
        "warnings": [],
    }
    said.update(changes)
    return ProbedHost(**said)


def judge(source=None, dest=None, **predicted) -> PreflightFindings:
    probes = {"source": host(**(source or {})), "dest": host(**(dest or {}))}
    return judge_preflight(probes, JOB, ["rsync", "ssh"], TransferSummary(**predicted) if predicted else None)


def test_two_good_hosts_have_nothing_to_say():
    assert judge(bytes_sent=2**30, files_created=1000) == ([], [], "")


@pytest.mark.parametrize(
    "source, dest, predicted, words",
    [
        ({"problems": ["/srv does not exist"]}, {}, {}, ["old: /srv does not exist"]),
        ({}, {"problems": ["/srv is mounted read-only"]}, {}, ["new: /srv is mounted read-only"]),
        ({}, {}, {"bytes_sent": 150 * 2**30}, ["new:", "150.0 GiB", "100.0 GiB free", "50.0 GiB more"]),
        ({}, {}, {"bytes_sent": 1, "files_created": 1001}, ["1001 entries", "1000 inodes"]),
    ],
)
def test_problems(source, dest, predicted, words):
    verdict = judge(source, dest, **predicted)
    (problem,) = verdict.problems
    assert all(word in problem for word in words), problem
    assert verdict.warnings == []


def test_a_file_system_without_a_number_of_inodes_is_never_short_of_them():
    assert judge({}, {"files_free": None}, files_created=10**9).problems == []


@pytest.mark.parametrize(
    "source, dest, words",
    [
        ({"tools": {}}, {}, ["old: has no rsync and no ssh", "migrate_manage_packages"]),
        ({}, {"tools": {"rsync": None, "ssh": "/usr/bin/ssh"}}, ["new: has no rsync;"]),
        ({}, {"acls": False, "fstype": "vfat"}, ["new: vfat keeps no ACLs"]),
        ({}, {"xattrs": False, "fstype": "nfs"}, ["nfs keeps no extended attributes"]),
        ({}, {"case_insensitive": True, "fstype": "exfat"}, ["A.TXT"]),
        ({}, {"largest_file": 4 * 2**30 - 1, "fstype": "vfat"}, ["no file larger than 4.0 GiB"]),
        ({"peer": "no answer"}, {}, ["old gets no answer", "connect: pull"]),
        ({}, {"peer": "No route to host"}, ["new gets no answer", "connect: push"]),
        ({"peer": "no answer"}, {"peer": "no answer"}, ["neither old nor new", "longhaul_address"]),
        ({}, {"warnings": ["the ZFS pool is 90% full"]}, ["new: the ZFS pool is 90% full"]),
    ],
)
def test_warnings(source, dest, words):
    verdict = judge(source, dest)
    (warning,) = verdict.warnings
    assert all(word in warning for word in words), warning
    assert verdict.problems == []


@pytest.mark.parametrize(
    "source, dest",
    [
        ({"xattrs": None, "acls": None}, {"xattrs": False, "acls": False}),  # the source does not say: nothing is known
        ({"xattrs": False, "acls": False}, {"xattrs": False, "acls": False}),
        ({"case_insensitive": True, "largest_file": 1}, {"case_insensitive": True, "largest_file": 1}),
        ({"peer": "refused"}, {"peer": "refused"}),
        ({"peer": ""}, {"peer": ""}),
    ],
)
def test_what_is_no_loss_is_not_told(source, dest):
    assert judge(source, dest) == ([], [], "")


def used(*names: str, writes: bool = True) -> list[TreeUser]:
    return [TreeUser(800 + number, name, "mysql", f"{name}.log", writes) for number, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("found", "job", "problems", "warnings"),
    [
        (TreeUsers(), {}, [], []),
        (
            TreeUsers(used("mariadbd")),
            {},
            ["new: mariadbd (process 801 of user mysql, for example mariadbd.log) has files in /srv/db open for "],
            [],
        ),
        (TreeUsers(used("mariadbd")), {"dest_in_use": "refuse"}, ["set dest_in_use: warn in the job"], []),
        (TreeUsers(used("mariadbd")), {"dest_in_use": "warn"}, [], ["mariadbd.log) has files in /srv/db open for"]),
        (TreeUsers(used("a", "b")), {}, ["a.log) and b (process 802 of user mysql, for example b.log) have"], []),
        (TreeUsers(used(*"abcde")), {}, ["c.log) and 2 more have files in /srv/db"], []),
        (TreeUsers(used("bash", writes=False)), {}, [], ["bash.log) uses /srv/db, and only reads"]),
        (TreeUsers(unseen="this system has no /proc"), {}, [], ["not known for sure: this system has no /proc. Make"]),
    ],
)
def test_processes_that_use_the_destination(
    found: TreeUsers, job: dict[str, str], problems: list[str], warnings: list[str]
) -> None:
    ends = {"src": "/srv/db", "dest": "/srv"}
    judged = judge_preflight(
        {"source": host(), "dest": host(users=found.users, unseen=found.unseen)}, {**JOB, **ends, **job}, []
    )
    assert judged[:2] == judge_tree_users({**JOB, **ends, **job}, found)[:2]
    for texts, words in ((judged.problems, problems), (judged.warnings, warnings)):
        assert len(texts) == len(words) and all(word in text for text, word in zip(texts, words)), texts


def test_what_a_host_says_of_its_processes_is_harmless_and_typed() -> None:
    one = {"pid": 1, "name": "\x1b]0;t\x07", "user": "x", "path": "a", "writes": True}
    assert parse_tree_users({"users": [one]}).users[0].name == r"\x1b]0;t\x07"
    for wrong in ({"users": 1}, {"users": [{**one, "pid": "1"}]}, {"users": [{"pid": 1}]}, []):
        with pytest.raises(WrongShape):
            parse_tree_users(wrong)


CAROL = {
    "type": "user", "id": 1003, "name": "carol", "name_there": "", "id_there": None, "numeric_ids": True, "entries": 65,
    "path": "carol",
}  # fmt: skip
MYSQL = dict(CAROL, id=103, name="mysql", id_there=101, entries=214)
OTHERS = [
    dict(CAROL, name="on", name_there="bob"),
    dict(CAROL, name="o'neil", id=1005),
    dict(CAROL, type="group", name="web", id=1004),
    dict(CAROL, name="", name_there="eve", id=1006),
]


def decide(job: dict, disagree: list, hints: list | None = None) -> list:
    probes = {"source": host(), "dest": host()}
    predicted = TransferSummary(owner_mismatches=disagree, owner_hints=hints or [])
    return judge_preflight(probes, {**JOB, **job}, [], predicted).problems


def test_owners_who_are_not_the_same_on_both_hosts_stop_a_job_that_does_not_say_which_way():
    (problem,) = decide({}, [MYSQL, CAROL, *OTHERS], ["/jail has an etc/passwd of its own"])
    assert "uid 103 is mysql on old and nobody on new, where mysql is 101: 214 entries\n" in problem
    assert "uid 1006 is nobody on old and eve on new: 65 entries\n" in problem
    assert all(way in problem for way in ("numeric_ids: true", "numeric_ids: false", "owner_map", "/jail has an"))
    users, groups = problem.partition("users that new lacks")[2].split("groups that new lacks")
    assert yaml.safe_load(users.partition(":\n")[2]) == [
        {"name": "carol", "uid": 1003},
        {"name": "on"},  # whose number is bob's there
        {"name": "o'neil", "uid": 1005},
    ]
    assert yaml.safe_load(groups.partition(":\n")[2]) == [{"name": "web", "gid": 1004}]
    (problem,) = decide({}, [MYSQL] * 60)
    assert problem.count("is mysql on old") == 50 and "and 10 more" in problem and "lacks" not in problem


@pytest.mark.parametrize(
    "job", [{"numeric_ids": True}, {"numeric_ids": False}, {"owner_map": {"users": {"carol": "deploy"}}}]
)
def test_a_job_that_says_which_way_goes_on(job):
    assert decide(job, [MYSQL, CAROL]) == []


def test_hosts_that_agree_go_on():
    assert decide({}, []) == []
