# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two ends that know other users and groups: what becomes of owners and ACLs, and what is said of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Mapping

import pytest
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    needs_root,
    run_through,
)

pytestmark = needs_root

OLD = {"alice": 70001, "bob": 70002, "carol": 70003, "mysql": 70103}
NEW = {"bob": 70001, "alice": 70010, "mysql": 70101}
SWAP = {"users": [[70001, 70002], [70002, 70001], [70003, 70004]], "groups": [[70001, 70002], [70002, 70003]]}


def know(pair: Pair, side: str, names: Mapping[str, int]) -> None:
    """Let an end have users and groups of its own beside, or instead of, those of the machine.

    All of /etc is another one: a mount on a file alone goes when a program of the machine replaces that file, as
    ``useradd`` does in another test.
    """
    etc = pair.work / f"etc-{side}"
    if not etc.exists():
        etc.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=False, capture_output=True)  # without what has just gone
        for file, line in (("passwd", "{0}:x:{1}:{1}::/:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
            here = (etc / file).read_text(encoding="utf-8").splitlines(keepends=True)
            others = [one for one in here if one.split(":")[0] not in names]  # a machine with MySQL has its user, too
            (etc / file).write_text("".join([*others, *(line.format(*one) for one in names.items())]), encoding="utf-8")
    commands = [f"mount --bind {etc} /etc"]
    apart = '[ -n "$APART" ] || APART=1 exec unshare --mount --propagation private "$0" "$@"'
    run_through(pair, side, apart, *commands)


def make_pair(trees: Any, method: str = "stream", **changes: Any) -> Pair:
    source, dest, work = trees
    pair = Pair(work, source, dest, settings(method, encrypt=False, **changes))
    know(pair, "source", OLD)
    know(pair, "dest", NEW)
    return pair


def make_owned(root: Path) -> None:
    """Files of everybody, one of a nameless number, a hard link, a symlink, and ACLs of files and folders."""
    for name, owner in OLD.items():
        (root / name).mkdir()
        for number in range(3):
            (root / name / f"f{number}").write_text(f"{name}{number}")
            os.chown(root / name / f"f{number}", owner, owner)
        os.chown(root / name, owner, owner)
    os.link(root / "bob/f0", root / "bob/again")
    os.symlink("f0", root / "bob/link")
    os.chown(root / "bob/link", 70002, 70001, follow_symlinks=False)
    (root / "nameless").write_text("x")
    os.chown(root / "nameless", 70999, 70999)
    acl = "u:70001:rwx,u:70002:r,g:70002:x"
    for path in ("alice/f0", "nameless", "carol"):
        subprocess.run(["setfacl", "-m", acl, str(root / path)], check=True)
    subprocess.run(["setfacl", "-d", "-m", "u:70001:rwx", str(root / "alice")], check=True)


def owners(root: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(root))] = (status.st_uid, status.st_gid)
    return found


def acls(root: Path) -> dict[str, set[str]]:
    """The named entries of all ACLs, as getfacl spells them."""
    said = subprocess.run(["getfacl", "-Rpn", "."], cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, set[str]] = {}
    name = ""
    for line in said.splitlines():
        if line.startswith("# file: "):
            name = line[8:]
        words = line.split(":")
        if len(words) >= 3 and words[-2].isdigit():
            found.setdefault(name, set()).add(line.split("\t")[0])
    return found


def mapped(root: Path, users: Mapping[int, int], groups: Mapping[int, int]) -> tuple[Any, Any]:
    """What ``owners`` and ``acls`` must say of the copy."""
    expected = {name: (users.get(uid, uid), groups.get(gid, gid)) for name, (uid, gid) in owners(root).items()}
    lists = {}
    for name, lines in acls(root).items():
        lists[name] = set()
        for line in lines:
            *head, number, mode = line.split(":")
            table = users if head[-1] == "user" else groups
            lists[name].add(":".join([*head, str(table.get(int(number), int(number))), mode]))
    return expected, lists


def spoken_of(outcome: dict[str, Any]) -> dict[tuple[str, int], tuple[Any, ...]]:
    return {
        (one["type"], one["id"]): (one["name"], one["name_there"], one["id_there"], one["entries"])
        for one in outcome["owner_mismatches"]
    }


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
@pytest.mark.parametrize("streams", [1, 2])
def test_an_owner_map_swaps_and_chains(trees, method, streams):
    source, dest, _work = trees
    make_owned(source)
    pair = make_pair(trees, method, owner_map=SWAP, streams=streams)
    pair.worth = 1  # other processes write as well
    assert pair.run()["errors"] == []
    users, groups = (dict(SWAP[kind]) for kind in ("users", "groups"))
    assert (owners(dest), acls(dest)) == mapped(source, users, groups)
    before = {path: path.lstat().st_ctime_ns for path in dest.rglob("*")}
    again = pair.run()
    assert not again["changed"] and again["errors"] == []
    assert {path: path.lstat().st_ctime_ns for path in dest.rglob("*")} == before


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_numbers_that_belong_to_others_are_counted(trees, method):
    source, dest, _work = trees
    make_owned(source)
    outcome = make_pair(trees, method).run()
    assert outcome["errors"] == [] and owners(dest) == owners(source) and acls(dest) == acls(source)
    entries = {
        "alice": 4 + 2,  # two more by their ACLs: alice/f0 and alice are her own
        "bob": 6 + 3,
        "carol": 4,
        "mysql": 4,
    }
    expected = {
        ("user", 70001): ("alice", "bob", 70010, entries["alice"]),
        ("user", 70002): ("bob", "", 70001, entries["bob"]),
        ("user", 70003): ("carol", "", None, entries["carol"]),
        ("user", 70103): ("mysql", "", 70101, entries["mysql"]),
        ("group", 70001): ("alice", "bob", 70010, 4 + 1),
        ("group", 70002): ("bob", "", 70001, 5 + 3),
        ("group", 70003): ("carol", "", None, 4),
        ("group", 70103): ("mysql", "", 70101, 4),
    }
    assert spoken_of(outcome) == expected
    predicted = make_pair(trees, method, check=True).run()
    assert spoken_of(predicted) == expected
    first = next(one for one in outcome["owner_mismatches"] if one["name"] == "mysql")
    assert first["path"] == "mysql" and first["numeric_ids"] is True


def test_without_owners_nobody_is_counted(trees):
    make_owned(trees[0])
    outcome = make_pair(trees, preserve=["permissions", "times", "acls"]).run()
    # Owners are not kept, so only ACLs name anybody.
    assert {key: one[3] for key, one in spoken_of(outcome).items()} == {
        ("user", 70001): 4,
        ("user", 70002): 3,
        ("group", 70002): 3,
    }


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_names_decide_and_the_missing_are_counted(trees, method):
    source, dest, _work = trees
    make_owned(source)
    pair = make_pair(trees, method, numeric_ids=False, owner_map={"users": [[70103, 5]]}, streams=2)
    pair.worth = 1
    outcome = pair.run()
    table = {70001: 70010, 70002: 70001, 70103: 70101}
    assert (owners(dest), acls(dest)) == mapped(source, {**table, 70103: 5}, table)
    assert spoken_of(outcome) == {
        ("user", 70003): ("carol", "", None, 4),
        ("group", 70003): ("carol", "", None, 4),
    }
    assert dict(outcome["owners"]["users"]) == {**table, 70103: 5} and dict(outcome["owners"]["groups"]) == table
    assert not pair.run()["changed"]


def test_hosts_that_agree_are_asked_nothing(trees):
    make_owned(trees[0])
    pair = make_pair(trees)
    pair.pythons["dest"] = pair.pythons["source"]
    outcome = pair.run()
    assert (outcome["owner_mismatches"], outcome["owner_hints"]) == ([], [])


def test_a_system_inside_the_tree_and_containers_are_named(trees):
    source, _dest, _work = trees
    for path in ("jail/etc", "jail/var", "docker/overlay2/abc", "own"):
        (source / path).mkdir(parents=True)
    (source / "jail/etc/passwd").write_text("root:x:0:0:::\n")
    for path, owner in (("jail/var", 70001), ("docker/overlay2/abc", 70002), ("own", 70103)):
        os.chown(source / path, owner, 0)
    outcome = make_pair(trees).run()
    assert outcome["owner_hints"] == [
        f"{source}/jail has an etc/passwd of its own",
        f"{source}/docker/overlay2 is the storage of containers",
    ]
