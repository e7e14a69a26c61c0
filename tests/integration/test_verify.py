# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""longhaul.fleet.verify finds one difference of each kind, names it, and leaves nothing on the hosts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import leftovers
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_hard_tree
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.refusal import small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

OPTIONS = {"src_host": "alpha", "src": "/data/tree/", "dest": "/data/tree"}


def task(name: str = "Compare", **options: Any) -> dict[str, Any]:
    return {"name": name, "longhaul.fleet.verify": {**OPTIONS, **options}}


def compare(playbooks: Playbooks, **options: Any) -> dict[str, Any]:
    """Compare both trees, and give the result; the differences are reported."""
    return compare_all(playbooks, options)[0]


def compare_all(playbooks: Playbooks, *several: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare several times in one playbook, and give the results."""
    tasks = [task(str(number), on_difference="report", **options) for number, options in enumerate(several)]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    return [run.result(str(number)) for number in range(len(tasks))]


@pytest.fixture(name="bed")
def two_equal_trees(hosts: Testbed) -> Testbed:
    """Create the same small tree on both hosts, with one entry for each kind of difference."""
    tree = hosts.root("alpha") / "data/tree"
    for name in ("content", "mtime", "mode", "owner", "xattr", "acl", "missing", "type", "one", "grown"):
        (tree / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / "folder" / name).write_text(f"this is {name}")
        os.setxattr(tree / "folder" / name, "user.of", b"alpha")
    os.link(tree / "folder/one", tree / "folder/two")
    (tree / "link").symlink_to("folder/one")
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, ns=(10**18, 10**18 + 123_456_789), follow_symlinks=False)
    _copy(hosts)
    return hosts


def _copy(bed: Testbed) -> None:
    archive = Path("/proc/self/fd/0")  # through tar, so that nothing of the product makes what it then judges
    sender = bed.popen("alpha", ["tar", "-C", "/data", "--format=posix", "--xattrs", "--acls", "-c", "tree"], stdout=-1)
    options = ["--xattrs", "--xattrs-include=*", "--acls", "--delay-directory-restore"]
    unpack = ["tar", "-C", "/data", *options, "-xpf", str(archive)]
    receiver = bed.popen("beta", unpack, stdin=sender.stdout)
    assert receiver.wait() == 0
    assert sender.wait() == 0


def _mutate(tree: Path, bed: Testbed) -> None:
    """Make one difference of each kind at the destination, and give every folder and file its time back."""
    folder = tree / "folder"
    (folder / "content").write_text("this is cOntent")
    (folder / "grown").write_text("this is grown, and longer")
    (folder / "mode").chmod(0o600)
    os.chown(folder / "owner", 5001, 5001)
    os.setxattr(folder / "xattr", "user.of", b"beta")
    bed.exec("beta", ["setfacl", "-m", "u:5001:r", "/data/tree/folder/acl"])
    (folder / "missing").unlink()
    (folder / "type").unlink()
    (folder / "type").mkdir()
    (folder / "two").unlink()
    shutil.copy2(folder / "one", folder / "two")
    (tree / "link").unlink()
    (tree / "link").symlink_to("folder/two")
    (folder / "extra").write_text("only here")
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, ns=(10**18, 10**18 + 123_456_789), follow_symlinks=False)
    os.utime(folder / "mtime", ns=(10**18, 10**18 + 123_456_790))


def test_each_kind_of_difference_is_found_and_named(bed: Testbed, playbooks: Playbooks) -> None:
    before = {host: leftovers.snapshot(bed, host) for host in bed.hosts}
    same = compare(playbooks, extra=True)
    assert same["identical"], same["differences"]
    assert (same["differences"], same["differences_total"], same["changed"]) == ([], 0, False)
    assert same["source"] == same["dest"]
    assert same["source"]["types"] == {"d": 2, "f": 11, "l": 1}

    _mutate(bed.root("beta") / "data/tree", bed)
    found = {one["path"]: (one["kind"], sorted(one["fields"])) for one in compare(playbooks)["differences"]}
    assert found == {
        "folder/content": ("differs", ["content"]),
        "folder/grown": ("differs", ["content", "size"]),
        "folder/mtime": ("differs", ["mtime"]),
        "folder/mode": ("differs", ["mode"]),
        "folder/owner": ("differs", ["owner"]),
        "folder/xattr": ("differs", ["xattrs"]),
        "folder/acl": ("differs", ["acls"]),  # the mode's group bits are the mask of the ACL
        "folder/missing": ("missing", []),
        "folder/type": ("differs", ["type"]),
        "folder/two": ("differs", ["links"]),  # no longer a link of folder/one
        "link": ("differs", ["target"]),
    }
    with_extra = compare(playbooks, extra=True)
    assert with_extra["differences_total"] == len(found) + 1
    assert [one["path"] for one in with_extra["differences"] if one["kind"] == "extra"] == ["folder/extra"]
    details = {one["path"]: (one["source"], one["dest"]) for one in with_extra["differences"]}
    assert details["folder/mode"] == ({"mode": "0644"}, {"mode": "0600"})
    assert {host: leftovers.snapshot(bed, host) for host in bed.hosts} == before


def test_only_what_was_asked_for_is_compared(bed: Testbed, playbooks: Playbooks) -> None:
    _mutate(bed.root("beta") / "data/tree", bed)
    left_out = ["/folder/missing", "/folder/type"]
    quick, limited = compare_all(playbooks, {"checksum": False, "fields": ["size"], "exclude": left_out}, {"limit": 3})
    assert [one["path"] for one in quick["differences"]] == ["folder/grown"]
    assert quick["algorithm"] == ""
    assert (len(limited["differences"]), limited["differences_total"]) == (3, 11)
    assert limited["differences_truncated"]


def test_a_difference_fails_unless_it_is_only_reported(bed: Testbed, playbooks: Playbooks) -> None:
    (bed.root("beta") / "data/tree/folder/mode").chmod(0o600)
    run = playbooks.run([task()], hosts="beta")
    (said,) = run.failures
    assert "1 entr" in said and "folder/mode" in said and "on_difference" in said
    assert run.result("Compare")["differences_total"] == 1


def test_a_single_file(bed: Testbed, playbooks: Playbooks) -> None:
    named = {"src": "/data/tree/folder/mode", "dest": "/data/tree/folder/mode"}
    for one in compare_all(playbooks, {**named, "dest": "/data/tree/folder/"}, named):
        assert one["identical"], one
    (bed.root("beta") / "data/tree/folder/mode").write_text("this is MODE")
    different = compare(playbooks, **named)
    assert [one["path"] for one in different["differences"]] == ["mode"]


def test_what_cannot_be_read_proves_nothing(bed: Testbed, playbooks: Playbooks, tmp_path: Path) -> None:
    before = {host: leftovers.snapshot(bed, host) for host in bed.hosts}
    for host in bed.hosts:
        (bed.root(host) / "data/tree/folder/mode").chmod(0o600)
    playbooks.inventory = bed.inventory(tmp_path / "plain.yml", user="plain")
    (said,) = playbooks.run([task(fields=["size"])], hosts="beta").failures
    assert "folder/mode" in said and "Permission denied" in said and "could not be read" in said
    assert {host: leftovers.snapshot(bed, host) for host in bed.hosts} == before


MISTAKES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"dest": "/data/none"}, ("nothing at /data/none", "beta")),
    ({"src": "/data/none/"}, ("nothing", "alpha")),
    ({"src": "data"}, ("relative", "src")),
    ({"filter": [": .rules"]}, ("merge",)),
    ({"limit": -1}, ("limit", "-1")),
]


def test_mistakes(bed: Testbed, playbooks: Playbooks) -> None:
    tasks = [{**task(str(options), **options), "ignore_errors": True} for options, _words in MISTAKES]
    run = playbooks.run(tasks, hosts="beta")
    assert [one.status for one in run.results] == ["ignored"] * len(MISTAKES), run.output
    for options, words in MISTAKES:
        said = run.result(str(options))["msg"]
        assert all(word in said for word in words), said


def test_a_hard_tree_is_the_same_as_itself(hosts: Testbed, playbooks: Playbooks) -> None:
    make_hard_tree(hosts.root("alpha") / "data/tree", many=200)
    run = playbooks.run([task(dest_host="alpha", extra=True)], hosts="beta").expect_success()
    assert run.result("Compare")["identical"]


@pytest.mark.parametrize("extras", [5_000])
def test_many_extras(hosts: Testbed, playbooks: Playbooks, extras: int) -> None:
    small_tree(hosts)
    for host in hosts.hosts:
        (hosts.root(host) / "data/tree").mkdir()
    for number in range(extras):
        (hosts.root("beta") / "data/tree" / f"extra-{number:05}").touch()
    fields = ["size", "mode"]
    found, without = compare_all(playbooks, {"extra": True, "limit": 50, "fields": fields}, {"fields": fields})
    assert (found["differences_total"], len(found["differences"])) == (extras, 50)
    assert found["differences_truncated"]
    assert without["identical"]
