# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an id of the source becomes at the destination, and whether both hosts mean the same by it."""

from __future__ import annotations

import os
import pwd

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import foreign_owners as foreign
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.owners import (
    Here,
    OwnerCount,
    answer,
    decide,
    evaluate_owners,
    look_up,
)


@pytest.mark.parametrize(
    ("name", "here", "by_number", "by_name"),
    [
        ("mysql", Here("mysql", 103), (103, True), (103, True)),
        ("mysql", Here("", 101), (103, False), (101, True)),
        ("mysql", Here("bob", 101), (103, False), (101, True)),
        ("mysql", Here("bob", None), (103, False), (103, False)),
        ("mysql", Here("", None), (103, False), (103, False)),
        ("", Here("", None), (103, True), (103, True)),
        ("", Here("bob", None), (103, False), (103, False)),
    ],
)
def test_what_an_id_becomes(name, here, by_number, by_name):
    assert decide(103, name, here, numeric_ids=True) == by_number
    assert decide(103, name, here, numeric_ids=False) == by_name


def test_root_stays_root():
    assert decide(0, "root", Here("toor", 500), numeric_ids=False) == (0, True)
    assert decide(0, "wheel", Here("root", 10), numeric_ids=True) == (0, True)


def test_the_host_is_asked_by_number_and_by_name():
    nobody = pwd.getpwnam("nobody").pw_uid
    assert look_up("users", nobody, "root") == Here("nobody", 0)
    assert look_up("groups", 3_999_999_999, "no-such-group") == Here("", None)
    assert look_up("users", 3_999_999_999, "") == Here("", None)


def entry(path: bytes, uid: int, gid: int) -> Entry:
    return Entry(path, "f", 0o644, uid, gid, 0, 0, 0, 1, 1, 1, 0, 0)


def test_a_count_and_its_verdict(tmp_path):
    counted = OwnerCount(["owner", "group"])
    list(counted.passing([entry(b"", 0, 0), entry(b"a", 70001, 0), entry(b"b", 70001, 70002), entry(b"c", 70003, 0)]))
    found = counted.as_dict(os.fsencode(tmp_path))
    assert found == {
        "users": [[70001, "", 2, "a"], [70003, "", 1, "c"]],
        "groups": [[70002, "", 1, "b"]],
        "hints": [],
    }
    assert answer(found) == {"users": [["", None], ["", None]], "groups": [["", None]]}
    said = {"users": [[70001, "alice", 2, "a"], [70003, "carol", 1, "c"]], "groups": [[70002, "web", 1, "b"]]}
    answers = {"users": [["bob", 70010], ["", None]], "groups": [["", 70020]]}
    table, disagree = evaluate_owners(said, answers, numeric_ids=False, settled={"groups": {70002}})
    assert table == {"users": [[70001, 70010]], "groups": []}
    assert [(one["name"], one["entries"], one["path"]) for one in disagree] == [("carol", 1, "c")]
    table, disagree = evaluate_owners(said, answers, numeric_ids=True, settled={})
    assert table == {"users": [], "groups": []} and [one["name"] for one in disagree] == ["alice", "carol", "web"]


def test_what_has_owners_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "jail/etc").mkdir(parents=True)
    (tmp_path / "jail/etc/passwd").touch()
    subuid = tmp_path / "subuid"
    subuid.write_text("alice:100000:65536\nrubbish\nbob:x:y\n")
    monkeypatch.setattr(foreign, "SUBORDINATE", {"users": str(subuid), "groups": str(tmp_path / "none")})
    paths = ["jail/var/lib", "jail/srv", "var/lib/docker/x", "plain", ".", "../etc", "/etc", "a//b"]
    met = {"users": [0, 1000, 100000, 165535, 165536], "groups": [100000]}
    assert foreign.foreign_owners(os.fsencode(tmp_path), paths, met) == [
        f"{tmp_path}/jail has an etc/passwd of its own",
        f"{tmp_path}/var/lib/docker is the storage of containers",
        f"2 users lie in the range 100000 to 165535 that {subuid} gives to alice",
    ]
    assert foreign.foreign_owners(os.fsencode(tmp_path / "jail"), [], {}) == [
        f"{tmp_path}/jail has an etc/passwd of its own"
    ]
    assert foreign.foreign_owners(b"/", ["etc", "home/alice"], {}) == []  # this very host
