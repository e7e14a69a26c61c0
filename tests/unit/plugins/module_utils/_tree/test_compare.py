# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an entry needs, said as rsync says it; the real program is asked."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.compare import compare
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.metadata import Powers
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk

needs_root_and_rsync = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("rsync"), reason="compares with the real rsync, as root"
)
OPTIONS = {
    "owner": "-o",
    "group": "-g",
    "permissions": "-p",
    "times": "-t",
    "acls": "-A",
    "xattrs": "-X",
    "devices": "-D",
    "hardlinks": "-H",
}
ALL = frozenset(OPTIONS)


def file(path, data=b"data", mode=0o644, mtime=1_000_000_000_000_000_000):
    with open(path, "wb") as stream:
        stream.write(data)
    os.chmod(path, mode)
    os.utime(path, ns=(mtime, mtime))


def link(path, target="nowhere", mtime=5):
    os.symlink(target, path)
    os.utime(path, ns=(mtime, mtime), follow_symlinks=False)


def node(path, kind=stat.S_IFIFO, number=0, mtime=5):
    os.mknod(path, kind | 0o644, number)
    os.utime(path, ns=(mtime, mtime))


def folder(path, mode=0o755, mtime=5, inside=None):
    os.mkdir(path)
    if inside:
        file(f"{path}/{inside}")
    os.chmod(path, mode)
    os.utime(path, ns=(mtime, mtime))


def nothing(path):
    pass


def owned(path, uid, gid):
    file(path)
    os.chown(path, uid, gid)


def with_xattr(path, value):
    file(path)
    os.setxattr(path, "user.x", value)


def with_acl(path, rule):
    file(path, mode=0o664)
    subprocess.run(["setfacl", "-m", rule, path], check=True)


CASES = {
    "new file": (file, nothing, "create", ">f+++++++++"),
    "new directory": (folder, nothing, "create", "cd+++++++++"),
    "new symlink": (link, nothing, "create", "cL+++++++++"),
    "new fifo": (node, nothing, "create", "cS+++++++++"),
    "new device": (lambda p: node(p, stat.S_IFCHR, os.makedev(1, 3)), nothing, "create", "cD+++++++++"),
    "same file": (file, file, "none", ".f         "),
    "same directory": (folder, folder, "none", ".d         "),
    "same symlink": (link, link, "none", ".L         "),
    "same fifo": (node, node, "none", ".S         "),
    "another size": (file, lambda p: file(p, b"longer data"), "update", ">f.s......."),
    "another size and time": (file, lambda p: file(p, b"longer data", mtime=5), "update", ">f.st......"),
    "another time": (file, lambda p: file(p, mtime=5), "update", ">f..t......"),
    "another nanosecond": (file, lambda p: file(p, mtime=1_000_000_000_000_000_001), "update", ">f..t......"),
    "another mode": (file, lambda p: file(p, mode=0o600), "attributes", ".f...p....."),
    "another mode and time": (file, lambda p: file(p, mode=0o600, mtime=1), "update", ">f..tp....."),
    "another owner": (lambda p: owned(p, 1, 0), file, "attributes", ".f....o...."),
    "another group": (lambda p: owned(p, 0, 1), file, "attributes", ".f.....g..."),
    "another xattr": (lambda p: with_xattr(p, b"1"), lambda p: with_xattr(p, b"2"), "attributes", ".f........x"),
    "a stale xattr": (file, lambda p: with_xattr(p, b"2"), "attributes", ".f........x"),
    "another acl": (lambda p: with_acl(p, "u:5:r"), lambda p: with_acl(p, "u:6:r"), "attributes", ".f.......a."),
    "directory of another time": (folder, lambda p: folder(p, mtime=9), "attributes", ".d..t......"),
    "directory of another mode": (folder, lambda p: folder(p, mode=0o700), "attributes", ".d...p....."),
    "symlink elsewhere": (link, lambda p: link(p, "somewhere"), "replace", "cLc........"),
    "symlink elsewhere at another time": (link, lambda p: link(p, "somewhere", 9), "replace", "cLc.t......"),
    "symlink of another time": (link, lambda p: link(p, mtime=9), "attributes", ".L..t......"),
    "fifo of another time": (node, lambda p: node(p, mtime=9), "attributes", ".S..t......"),
    "another device": (
        lambda p: node(p, stat.S_IFCHR, os.makedev(1, 3)),
        lambda p: node(p, stat.S_IFCHR, os.makedev(1, 5)),
        "replace",
        "cDc........",
    ),
    "file for a symlink": (file, link, "replace", ">f+++++++++"),
    "symlink for a file": (link, file, "replace", "cL+++++++++"),
    "directory for a file": (folder, file, "replace", "cd+++++++++"),
    "file for an empty directory": (file, folder, "replace", ">f+++++++++"),
    "fifo for a file": (node, file, "replace", "cS+++++++++"),
    "device for a fifo": (lambda p: node(p, stat.S_IFCHR, os.makedev(1, 3)), node, "replace", "cD+++++++++"),
}


def entries(root):
    found = walk(os.fsencode(root), xattrs=True, on_error=lambda path, error: pytest.fail(f"{path!r}: {error}"))
    return {os.fsdecode(entry.path): entry for entry in found}


def rsync_says(folder, preserve, *options):
    argv = ["rsync", "-rlnii", "--modify-window=-1", "--out-format=%i %n", *options]
    argv += [OPTIONS[name] for name in sorted(preserve)]
    run = subprocess.run([*argv, f"{folder}/s/", f"{folder}/d/"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [(line[:11], line[12:].split(" =>")[0].rstrip("/")) for line in run.stdout.splitlines()]
    return {name: itemized for itemized, name in lines}


class Trees:
    """A source and a destination with an entry for each case, by its name; rsync is asked once about all of them."""

    def __init__(self, folder, cases):
        for number, side in enumerate("sd"):
            (folder / side).mkdir()
            for name, case in cases.items():
                case[number](f"{folder}/{side}/{name}")
        self.source, self.dest = entries(folder / "s"), entries(folder / "d")
        self.says = functools.lru_cache(maxsize=None)(functools.partial(rsync_says, folder))


@pytest.fixture(name="trees", scope="module")
def _trees(tmp_path_factory):
    return Trees(tmp_path_factory.mktemp("trees"), CASES)


@needs_root_and_rsync
@pytest.mark.parametrize("name", CASES)
def test_the_action_and_the_itemized_form(trees, name):
    _source, _dest, action, itemized = CASES[name]
    verdict = compare(trees.source[name], trees.dest.get(name), preserve=ALL)
    assert (verdict.action, verdict.itemized) == (action, itemized)
    assert trees.says(ALL)[name] == itemized


@needs_root_and_rsync
@pytest.mark.parametrize("preserve", [[], ["times"], ["permissions"], ["owner", "group"], ["times", "xattrs"]], ids=str)
def test_the_itemized_form_with_less_preserved(trees, preserve):
    preserve = frozenset(preserve) | {"devices"}
    options = [] if "times" in preserve else ["--size-only"]
    said = {name: compare(trees.source[name], trees.dest.get(name), preserve=preserve).itemized for name in CASES}
    assert said == {name: trees.says(preserve, *options)[name] for name in CASES}


CONTENTS = {
    "same contents": (file, file, True, "none", ".f         "),
    "same contents at another time": (file, lambda p: file(p, mtime=5), True, "attributes", ".f..t......"),
    "other contents": (file, lambda p: file(p, b"atad"), False, "update", ">fc........"),
    "other contents at another time": (file, lambda p: file(p, b"atad", mtime=5), False, "update", ">fc.t......"),
    "other size": (file, lambda p: file(p, b"longer data"), False, "update", ">fcs......."),
}


@needs_root_and_rsync
def test_with_contents_compared(tmp_path):
    trees = Trees(tmp_path, CONTENTS)
    for name, (_source, _dest, equal, action, itemized) in CONTENTS.items():
        verdict = compare(trees.source[name], trees.dest[name], preserve=ALL, checksum_equal=equal)
        assert (verdict.action, verdict.itemized) == (action, itemized), name
        assert trees.says(ALL, "--checksum")[name] == itemized


LINKS = {
    "nothing there": (nothing, "create", "hf+++++++++"),
    "an equal file there": (file, "replace", "hf         "),
    "an older file there": (lambda p: file(p, mtime=5), "replace", "hf..t......"),
    "a shorter file there": (lambda p: file(p, b"d", mode=0o600), "replace", "hf.s.p....."),
}


@needs_root_and_rsync
@pytest.mark.parametrize(("before", "action", "itemized"), LINKS.values(), ids=LINKS.keys())
def test_one_more_name_of_a_file(tmp_path, before, action, itemized):
    for side in ("s", "d"):
        os.mkdir(tmp_path / side)
        file(f"{tmp_path}/{side}/a")
    os.link(f"{tmp_path}/s/a", f"{tmp_path}/s/x")
    before(f"{tmp_path}/d/x")
    wanted, found = (entries(tmp_path / side).get("x") for side in "sd")
    verdict = compare(wanted, found, preserve=ALL, link_ok=False)
    assert (verdict.action, verdict.itemized) == (action, itemized)
    assert rsync_says(tmp_path, ALL)["x"] == itemized


FILE = Entry(b"x", "f", 0o644, 0, 0, 4, 10**18, 0, 1, 2, 1, 0, 8)


def test_what_a_user_without_rights_cannot_set_is_no_difference():
    found = FILE._replace(uid=1000, gid=1000)
    assert compare(FILE, found, preserve=ALL, powers=Powers(1000, frozenset([1000]))).action == "none"
    assert compare(FILE, found, preserve=ALL).itemized == ".f....og..."


def test_a_link_takes_the_place_of_something_else():
    """rsync shows the letters of a comparison with the symlink here, which means nothing."""
    verdict = compare(FILE, FILE._replace(type="l"), preserve=ALL, link_ok=False)
    assert (verdict.action, verdict.itemized) == ("replace", "hf+++++++++")


def test_a_block_device_is_no_character_device():
    """rsync takes them as equal where their numbers are."""
    node = FILE._replace(type="b", size=0, rdev=5)
    assert compare(node, node._replace(type="c"), preserve=ALL)[:2] == ("replace", "cD+++++++++")


def test_the_senders_arrow():
    assert compare(FILE, None, preserve=ALL, arrow="<").itemized == "<f+++++++++"
    assert compare(FILE, FILE._replace(mtime_ns=1), preserve=ALL, arrow="<").itemized == "<f..t......"


def test_without_times_the_size_alone_counts():
    assert compare(FILE, FILE._replace(mtime_ns=1), preserve=frozenset()).action == "none"
    assert compare(FILE, FILE._replace(size=5), preserve=frozenset()).itemized == ">f.sT......"
