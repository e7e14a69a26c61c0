# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that share a file at the destination and not at the source get files of their own, once and for all.

The same is true of names that share one in an older tree, of which files are linked.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings

OLD = 10**18
COUNTED = ("files_created", "files_updated", "files_deleted", "attributes_changed", "bytes_sent")


@pytest.fixture(name="transfer", params=["stream", "tar_nc"])
def _transfer(request, trees: tuple[Path, Path, Path]):
    """Return what predicts a transfer, runs it, and expects that another one changes nothing."""
    source, dest, work = trees

    def once(**changes: Any) -> dict[str, Any]:
        return Pair(work, source, dest, settings(request.param, encrypt=False, **changes)).run()

    def run(**changes: Any) -> dict[str, Any]:
        predicted = once(check=True, **changes)
        done = once(**changes)
        assert done["errors"] == [] and not done["failure"]
        assert {name: predicted[name] for name in COUNTED} == {name: done[name] for name in COUNTED}
        assert sorted(map(shown, predicted["changes"])) == sorted(map(shown, done["changes"]))
        again = once(**changes)
        assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == [], again["changes"]
        return done

    return run


def shown(change: str) -> str:
    """Leave out of an itemized name which attributes differ: other names of the file may have changed them before."""
    return change[:2] + change[11:]


def write(path: Path, text: bytes = b"same", mode: int = 0o644, when: int = OLD) -> None:
    path.write_bytes(text)
    path.chmod(mode)
    os.utime(path, ns=(when, when))


@pytest.fixture(name="older")
def _older(trees: tuple[Path, Path, Path]) -> str:
    """Return the path of an older tree, which is empty."""
    older = trees[1].with_name("older")
    older.mkdir()
    return str(older)


def link(folder: Path, *groups: str) -> None:
    """Make files of the same content, each with the names of one group."""
    for group in groups:
        write(folder / group[0])
        for name in group[1:]:
            os.link(folder / group[0], folder / name)


@pytest.mark.often(4)
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(
    ("source", "dest"),
    [("a b", "ab"), ("ab cd", "abcd"), ("a bc", "abc"), ("ac b", "abc"), ("a b c", "abc"), ("ad bc", "ab cd")],
)
def test_files_that_are_separate_at_the_source_become_so(trees, transfer, source, dest, checksum):
    link(trees[0], *source.split())
    link(trees[1], *dest.split())
    done = transfer(delete=True, checksum=checksum)
    assert differences(*trees[:2]) == []
    assert done["bytes_sent"] == 0 and done["changed"]


@pytest.mark.often(4)
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("place", ["dest", "older", "both"])
@pytest.mark.parametrize(
    ("source", "shared"), [("a b", "ab"), ("ab cd", "abcd"), ("a bc", "abc"), ("a b c", "abc"), ("ad bc", "ab cd")]
)
def test_the_same_with_an_older_tree(trees, transfer, older, source, shared, place, checksum):
    link(trees[0], *source.split())
    if place != "older":
        link(trees[1], *shared.split())
    if place != "dest":
        link(Path(older), *shared.split())
    before = recorded(Path(older))
    done = transfer(delete=True, checksum=checksum, link_dest=[older])
    assert differences(*trees[:2]) == [] and differences(before, Path(older)) == []
    assert done["bytes_sent"] == 0 and done["changed"]


@pytest.mark.often(3)
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("changed", ["a", "b"])
def test_a_link_that_was_broken_at_the_source_keeps_its_own_attributes(trees, transfer, changed, checksum):
    link(trees[0], "ab")
    transfer()
    (trees[0] / "b").unlink()
    write(trees[0] / "b", when=OLD + (0 if changed == "a" else 10**9))
    (trees[0] / changed).chmod(0o600)
    transfer(delete=True, checksum=checksum)
    assert differences(*trees[:2]) == []


@pytest.mark.parametrize("preserve", [[name for name in ALL if name != "hardlinks"]])
def test_where_links_are_not_kept_only_attributes_break_them(trees, transfer, preserve):
    source, dest = trees[:2]
    link(source, "a", "b", "c")
    (source / "c").chmod(0o600)
    link(dest, "abc")
    transfer(preserve=preserve)
    assert (dest / "a").stat().st_ino == (dest / "b").stat().st_ino != (dest / "c").stat().st_ino
    assert [(dest / name).stat().st_mode & 0o777 for name in "abc"] == [0o644, 0o644, 0o600]


def test_a_name_that_only_the_destination_has_keeps_its_attributes(trees, transfer):
    source, dest = trees[:2]
    link(source, "bc")
    (source / "b").chmod(0o600)
    link(dest, "abc")
    transfer()
    assert (dest / "a").stat().st_ino != (dest / "b").stat().st_ino == (dest / "c").stat().st_ino
    assert [(dest / name).stat().st_mode & 0o777 for name in "abc"] == [0o644, 0o600, 0o600]


@pytest.fixture(name="outside")
def _outside(trees):
    """Return a folder beside the destination, whose files are names of what is in that, too."""
    folder = trees[1].with_name("outside")
    folder.mkdir()
    return folder


def seen(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return what a change below the other folder must leave as it is."""
    found = {}
    for path in folder.iterdir():
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        keys = os.listxattr(path, follow_symlinks=False)
        xattrs = {key: os.getxattr(path, key, follow_symlinks=False) for key in keys}
        owner = (status.st_uid, status.st_gid)
        found[path.name] = (status.st_ino, status.st_mode, owner, status.st_mtime_ns, content, xattrs)
    return found


@pytest.mark.often(4)
@pytest.mark.parametrize("kept", ["ab", "a"], ids=["the group is there", "one name of it is there"])
@pytest.mark.parametrize("checksum", [False, True])
def test_names_outside_of_the_tree_keep_their_attributes(trees, transfer, outside, checksum, kept):
    """Someone keeps older copies of the destination by hand (cp -al)."""
    source, dest = trees[:2]
    link(source, "ab", "c")
    link(dest, kept, "c")
    for name in "ac":
        os.link(dest / name, outside / name)
    for folder, make in ((source, True), (dest, True), (outside, False)):
        for name in ("link", "fifo"):
            if not make:
                os.link(dest / name, folder / name, follow_symlinks=False)
            elif name == "link":
                (folder / name).symlink_to("x")
            else:
                os.mkfifo(folder / name, 0o644)
            os.utime(folder / name, ns=(OLD, OLD), follow_symlinks=False)
    for name in ("a", "c", "fifo"):
        (source / name).chmod(0o640)
        if os.geteuid() == 0:
            os.chown(source / name, 1234, 4321)
            os.setxattr(source / name, "trusted.x" if name == "fifo" else "user.x", b"1")
    os.utime(source / "link", ns=(OLD + 1, OLD + 1), follow_symlinks=False)
    before = seen(outside)
    done = transfer(checksum=checksum)
    assert seen(outside) == before
    assert differences(source, dest) == [] and done["bytes_sent"] == 0
    for name in ("a", "c", "fifo", "link"):
        assert (dest / name).lstat().st_ino != (outside / name).lstat().st_ino, name
    assert (dest / "a").stat().st_ino == (dest / "b").stat().st_ino


def test_files_with_names_below_the_root_alone_are_not_copied(trees, transfer):
    source, dest = trees[:2]
    link(source, "abc", "d")
    link(dest, "abc", "d")
    for name in "ad":
        (source / name).chmod(0o600)
    held = {name: (dest / name).stat().st_ino for name in "abcd"}
    done = transfer()
    assert {name: (dest / name).stat().st_ino for name in "abcd"} == held
    assert differences(source, dest) == []
    assert sorted(text.split()[-1] for text in done["changes"] if text[1] == "f") == ["a", "d"]


@pytest.mark.parametrize("has_older", [False, True])
def test_symlinks_and_fifos_that_share_an_inode_become_separate(trees, transfer, older, has_older):
    source, dest = trees[:2]
    for folder, linked in ((source, False), (dest, True)):
        for first, second, make in (("a", "b", lambda path: path.symlink_to("x")), ("c", "d", os.mkfifo)):
            make(folder / first)
            if linked:
                os.link(folder / first, folder / second, follow_symlinks=False)
            else:
                make(folder / second)
        for name in "abcd":
            os.utime(folder / name, ns=(OLD, OLD), follow_symlinks=False)
    (source / "c").chmod(0o600)
    transfer(delete=True, link_dest=[older] if has_older else [])
    assert differences(source, dest) == []


@pytest.mark.often(1)
def test_any_change_of_who_shares_what_is_followed(trees, transfer):
    source, dest = trees[:2]
    chance = random.Random(7)
    names = "abcdefgh"
    for _round in range(6):
        for folder in (source, dest):
            for name in names:
                (folder / name).unlink(missing_ok=True)
            for name in names:
                known = [other for other in names if (folder / other).exists()]
                if known and chance.random() < 0.6:
                    os.link(folder / chance.choice(known), folder / name)
                else:
                    write(folder / name, chance.choice([b"same", b"other"]), chance.choice([0o644, 0o600]))
        transfer(delete=True, checksum=chance.random() < 0.5)
        assert differences(source, dest) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
@pytest.mark.parametrize("names", [("x/f", "x/g"), ("x/f", "z/g"), ("a/f", "x/g"), ("f", "x/g")], ids=" ".join)
def test_names_that_a_bind_mount_shows_once_more_stay_those_of_one_file(trees, transfer, names):
    """The file has more names in the tree than its count of links says."""
    source, dest, _work = trees
    for folder in ("a", "x", "y", "z"):
        (source / folder).mkdir()
    link(source, names)
    subprocess.run(["mount", "--bind", str(source / "x"), str(source / "y")], check=True)
    try:
        for _run in range(2):
            transfer()
            assert differences(source, dest) == []
        (source / names[0]).chmod(0o600)
        transfer()
        assert differences(source, dest) == []
    finally:
        subprocess.run(["umount", str(source / "y")], check=True)
