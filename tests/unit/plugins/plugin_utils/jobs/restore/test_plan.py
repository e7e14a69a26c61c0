# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A restore takes an intact snapshot, goes to the right place, and overwrites nothing unless the user wants that."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.plan import (
    SnapshotCheck,
    Target,
    accept_destination,
    accept_snapshot,
    failure_of_snapshot,
    find_targets,
    must_predict,
    parse_check,
    refuse_occupied,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import complete_request
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.jobs.restore.options import make_options

NAME = "2026-11-21T173009Z"
TREE = f"/srv/backup/web1/etc/{NAME}/data"
VAULT = {"host": "vault", "path": "/srv/backup"}
ETC = [{"name": "etc", "host": "web1", "src": ["/etc"], "repository": VAULT}]
GROUPS = {"all": ["web1", "vault"]}
GONE = {"path": "etc/passwd", "detail": "it is gone", "intact_in": []}
TORN = {"path": "etc/group", "detail": "its contents differ", "intact_in": ["2026-11-20T173009Z", "2026-11-19T173009Z"]}
ITSELF = {"path": None, "detail": "its manifest is gone", "intact_in": []}


def targets(kind, jobs=ETC, snapshot=NAME, **given) -> list[Target]:
    options = make_options(**given)
    return find_targets(complete_request(options, jobs, GROUPS), options, snapshot, kind)


def target(kind, jobs=ETC, snapshot=NAME, **given) -> Target:
    return targets(kind, jobs, snapshot, **given)[-1]


def refusal(found, accepts_damage=False) -> str:
    with pytest.raises(Refusal) as refused:
        accept_snapshot(found, NAME, accepts_damage)
    return str(refused.value)


@pytest.mark.parametrize("checked, problems, accepts", list(itertools.product(["", "contents"], [0, 2], [False, True])))
def test_a_damaged_snapshot_is_refused_and_one_without_a_manifest_is_told(checked, problems, accepts):
    found = SnapshotCheck("file", checked, [GONE, TORN][:problems], problems)
    if problems and not accepts:
        assert NAME in refusal(found)
    else:
        assert bool(accept_snapshot(found, NAME, accepts)) == (not checked)
        assert checked or NAME in accept_snapshot(found, NAME, accepts)


def test_a_refusal_names_what_is_damaged_and_where_it_is_intact():
    lines = refusal(SnapshotCheck("directory", "contents", [GONE, TORN], 2)).splitlines()
    assert lines[:3] == [
        f"Nothing was restored. In {NAME} not all is as it was (2 problems):",
        "- etc/passwd: it is gone; intact in no other snapshot",
        "- etc/group: its contents differ; intact in 2026-11-20T173009Z, 2026-11-19T173009Z",
    ]
    assert "restore_when=NAME" in lines[3] and "restore_damaged=true" in lines[3] and len(lines) == 4
    assert "- the snapshot itself: its manifest is gone\n" in refusal(SnapshotCheck("directory", "", [ITSELF], 1))
    assert len(refusal(SnapshotCheck("directory", "files", [GONE] * 50, 300)).splitlines()) == 12


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"kind": "socket", "checked": "files", "problems": [], "problems_total": 0},
        {"kind": "file", "checked": "contents", "problems": [], "problems_total": 0},
        {"kind": "file", "checked": "files", "problems": [], "problems_total": "0"},
        {"kind": "file", "checked": "files", "problems": [1], "problems_total": 0},
    ],
)
def test_an_answer_of_another_shape_is_none(answer):
    with pytest.raises(WrongShape):
        parse_check(answer, "files")


@pytest.mark.parametrize(
    "given, kind, src, dest, occupies",
    [
        ({}, "directory", "/", f"/etc.restored-{NAME}", f"/etc.restored-{NAME}"),
        ({"over": True}, "directory", "/", "/etc", "/etc"),
        ({"dest": "/tmp/x/"}, "directory", "/", "/tmp/x", "/tmp/x"),
        ({"path": "ssh", "over": True}, "directory", "/ssh/", "/etc/ssh", "/etc/ssh"),
        (
            {"path": "ssh/key"},
            "file",
            "/ssh/key",
            f"/etc/ssh/key.restored-{NAME}/",
            f"/etc/ssh/key.restored-{NAME}/key",
        ),
        ({"path": "ssh/key", "over": True}, "file", "/ssh/key", "/etc/ssh/", "/etc/ssh/key"),
        ({"path": "ssh/key", "dest": "/"}, "file", "/ssh/key", "/", "/key"),
    ],
)
def test_where_it_goes(given, kind, src, dest, occupies):
    assert target(kind, **given) == Target(TREE + src, dest, occupies)


@pytest.mark.parametrize(
    "given, kind, own",
    [
        ({"path": "ssh/key"}, "file", Target(f"{TREE}/ssh/key", "/etc/ssh/", "/etc/ssh/key")),
        ({"path": "ssh/key", "to": "vault"}, "file", Target(f"{TREE}/ssh/key", "/etc/ssh/", "/etc/ssh/key")),
        ({"path": "ssh/key", "over": True}, "file", None),
        ({"path": "ssh/key", "dest": "/tmp"}, "file", None),
        ({"path": "ssh"}, "directory", None),
        ({}, "directory", None),
    ],
)
def test_only_a_single_file_may_go_to_its_own_place(given, kind, own):
    tried = targets(kind, **given)
    assert tried[:-1] == ([own] if own else []) and len(tried) == (2 if own else 1)


def test_a_file_at_the_top_goes_to_the_root():
    jobs = [{"name": "all", "host": "web1", "src": "/", "repository": VAULT}]
    assert targets("file", jobs, path="/swapfile")[0].dest == "/"


def test_a_whole_system_goes_beside_too():
    jobs = [{"name": "all", "host": "web1", "src": "/", "repository": VAULT}]
    assert target("directory", jobs).dest == f"/restored-{NAME}"
    assert target("directory", jobs, path="/etc", over=True).dest == "/etc"
    assert target("directory", snapshot=".unfinished").dest == "/etc.restored-unfinished"


@pytest.mark.parametrize(
    "given, kind, words",
    [
        ({}, "other", "symbolic link"),
        ({"over": True, "delete": True}, "file", "restore_delete is for folders"),
        ({"to": "vault", "dest": "/srv/backup/web1"}, "directory", "in each other"),
        ({"to": "vault", "dest": "/srv/backup"}, "directory", "in each other"),
        ({"to": "vault", "dest": "/srv"}, "directory", "in each other"),
    ],
)
def test_where_it_cannot_go(given, kind, words):
    with pytest.raises(Refusal, match=f"^Nothing was restored: [^;]*{words}[^;]*$"):
        target(kind, path="ssh", **given)


def test_a_destination_that_leads_into_the_repository_is_refused():
    request = complete_request(make_options(to="vault", dest="/data"), ETC, GROUPS)
    there = Target(TREE, "/data", "/data")
    for free in (False, True):
        assert accept_destination({"overlaps": False, "dest": "/data", "free": free}, request, there) is free
    with pytest.raises(Refusal, match="/data leads to /srv/backup/x on vault.* could spoil the snapshots"):
        accept_destination({"overlaps": True, "dest": "/srv/backup/x", "free": True}, request, there)
    with pytest.raises(WrongShape):
        accept_destination({"overlaps": 0, "dest": "/data", "free": True}, request, there)


STATES = ("", "begun", "failed", "restored", "another")


@pytest.mark.parametrize("over, free, earlier", list(itertools.product([False, True], [False, True], STATES)))
def test_it_is_compared_where_something_is_that_no_interrupted_run_left(over, free, earlier):
    assert must_predict(over, free, earlier) == (not over and not free and earlier not in ("begun", "failed"))


@pytest.mark.parametrize("kind, words", [("directory", "and not empty"), ("file", "already")])
def test_other_content_is_refused(kind, words):
    said = str(refuse_occupied("web1", "/srv/x", kind))
    assert f"/srv/x is there on web1 {words}, and is not" in said
    assert "restore_dest" in said and "restore_over=true" in said


def test_a_snapshot_that_changed_meanwhile_is_a_failure():
    assert failure_of_snapshot({"vanished": 0}, "/x") == ""
    assert "3 files were gone" in failure_of_snapshot({"vanished": 3}, "/x")
    unstable = {"vanished": 3, "unstable": 1, "differences": [{"path": "a/b"}]}
    assert failure_of_snapshot(unstable, "/x").startswith("1 entry changed in the snapshot during the transfer, for ex")
    assert "a/b: something writes there" in failure_of_snapshot(unstable, "/x")
