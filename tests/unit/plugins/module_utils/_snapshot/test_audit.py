# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The audit of a repository on its host, of which nothing but small files is read."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.history import REPAIRED, Event
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    FIRST,
    SECOND,
    THIRD,
    rot,
)

NOBODY = Holders(lambda _path: None, lambda _path: None)


def audit(bench):
    """Return what the host says."""
    return json.loads(json.dumps(do_action("audit", (str(bench.repository), "", ""), {}, NOBODY).result))


def do(bench, action, **options):
    return do_action(action, (str(bench.repository), "web1", "data"), {"by": "ada@control1", **options}, NOBODY)


@pytest.fixture(name="three")
def _three(bench):
    for name in ("one", "two"):
        bench.write(name, name.encode() * 9)
    for _night in range(3):
        bench.backup()
    return bench


def test_a_folder_is_told_with_what_checks_have_read(three):
    do(three, "check", check_subset="1/2")
    found = audit(three)
    (folder,) = found["folders"]
    assert (folder["host"], folder["job"], folder["complete"]) == ("web1", "data", [FIRST, SECOND, THIRD])
    assert (folder["verified"], folder["parts_read"], folder["parts_of"]) == (0, 1, 2)
    do(three, "check", check_subset="1/2")
    (folder,) = audit(three)["folders"]
    assert (folder["verified"], folder["parts_read"], folder["parts_of"]) == (3, 2, 2) and folder["verified_oldest"]
    assert folder["damaged"] == folder["missing"] == folder["aside"] == [] and found["unread"] == []
    room = os.statvfs(three.repository)
    assert found["space"]["bytes_total"] == room.f_blocks * room.f_frsize and found["now"] > 0


def test_damage_and_snapshots_that_are_gone_are_named(three):
    rot(three.path(SECOND, "data/one"))
    assert do(three, "check").failed
    shutil.rmtree(three.path(FIRST))
    (folder,) = audit(three)["folders"]
    assert folder["damaged"] == [SECOND, THIRD] and folder["missing"] == [FIRST]


def test_decisions_are_told_the_newest_first_and_prunes_are_counted(three):
    do(three, "prune", keep={"last": 2})
    os.rename(three.path(THIRD), three.path(f"aside-{THIRD}"))
    do(three, "accept", name=f"aside-{THIRD}")
    do(three, "restored", name=THIRD, why="all to web1:/srv")
    with open(three.path(names.HISTORY), "ab") as history:  # as a run repairs, which decides nothing
        history.write(Event(REPAIRED, THIRD, 1_700_000_000, "web1/data", "ada@control1", "from vault2").line())
    (folder,) = audit(three)["folders"]
    assert [one["act"] for one in folder["decisions"]] == ["restored", "accepted", "aside"]
    assert folder["decisions"][1]["by"] == "ada@control1" and folder["decisions"][0]["why"] == "all to web1:/srv"
    assert (folder["decisions_total"], folder["pruned"], folder["pruned_by"]) == (3, 1, "ada@control1")


def test_protected_snapshots_are_named(three):
    do(three, "protect", name=SECOND, until="forever", reason="case 4711")
    (folder,) = audit(three)["folders"]
    assert folder["protected"] == [SECOND] and folder["decisions"][0]["act"] == "protected"


def test_other_folders_are_told_and_what_cannot_be_read_is_named(three):
    (three.repository / "web2/data").mkdir(parents=True)
    (three.repository / "web3").mkdir()
    (three.repository / "web4").symlink_to(three.repository / "web1")
    three.path(THIRD, names.CHECKED).write_bytes(b"{")
    found = audit(three)
    assert [(one["host"], one["complete_total"]) for one in found["folders"]] == [("web1", 3), ("web2", 0)]
    with pytest.raises(Refused, match="cannot be searched"):
        do_action("audit", (f"{three.repository}/nothing", "", ""), {}, NOBODY)


def test_an_audit_writes_nothing(three):
    before = {path: os.lstat(path).st_ctime_ns for path in three.repository.rglob("*")}
    audit(three)
    assert {path: os.lstat(path).st_ctime_ns for path in three.repository.rglob("*")} == before
