# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stream keeps where the ends are not equal: other users, other names of ids, other file systems; or says so."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.hard_tree import immutable, make_hard_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    NOBODY,
    WITHOUT_ROOT,
    expect_same,
    make_pair,
    needs_root,
    noise,
    run_as_nobody,
    run_through,
    transfer,
)


@pytest.fixture(name="open_trees")
def _open_trees() -> Iterator[tuple[Path, Path, Path]]:
    """Yield trees that another user gets to. Each run of pytest closes the folder of all temporary ones again."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        source, dest = Path(folder, "source"), Path(folder, "dest")
        source.mkdir()
        dest.mkdir()
        yield source, dest, Path(folder, "work")


@pytest.mark.newest
def test_a_crowded_directory(trees):
    source, dest, _work = trees
    (source / "crowd").mkdir()
    folder = os.open(source / "crowd", os.O_RDONLY | os.O_DIRECTORY)
    for number in range(12_000):
        fd = os.open(f"{number:05}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
        if number % 100 == 0:
            os.write(fd, b"%d" % number)
        os.close(fd)
    os.close(folder)
    outcome = transfer(trees, delete=True)
    expect_same(trees, outcome)
    assert outcome["files_created"] == 12_001
    (dest / "crowd/extra").touch()
    again = transfer(trees, delete=True)
    assert (again["files_deleted"], again["files_created"], again["bytes_sent"]) == (1, 0, 0)
    assert again["bytes_matched"] == outcome["bytes_total"] and len(os.listdir(dest / "crowd")) == 12_000


@needs_root
def test_immutable_files(trees):
    source, dest, _work = trees
    make_tree(source)
    (source / "kept").write_text("kept")
    with immutable(source / "kept"):
        expect_same(trees, transfer(trees))  # the flag is not part of what is kept
    (source / "kept").write_text("newer")
    (source / "new").write_text("new")
    (dest / "extra").write_text("extra")
    with immutable(dest / "kept"), immutable(dest / "extra"):
        outcome = transfer(trees, delete=True)
        reasons = {one["path"]: one["reason"] for one in outcome["errors"]}
        assert sorted(reasons) == ["extra", "kept"] and "not permitted" in reasons["kept"] + reasons["extra"]
        assert (dest / "kept").read_text() == "kept" and (dest / "new").read_text() == "new"
    expect_same(trees, transfer(trees, delete=True))


@needs_root
def test_a_mount_point_inside(trees):
    source, dest, _work = trees
    make_tree(source)
    (source / "mounted").mkdir()
    mount(source / "mounted")
    (dest / "mounted").mkdir()
    try:
        (source / "mounted/inside").write_text("inside")
        expect_same(trees, transfer(trees, one_file_system=False))
        (dest / "mounted/only here").write_text("only here")
        (source / "mounted/inside").write_text("newer")
        outcome = transfer(trees, one_file_system=True, delete=True)
        assert outcome["errors"] == [] and outcome["files_deleted"] == 0
        assert sorted(path.name for path in (dest / "mounted").iterdir()) == ["inside", "only here"]
        assert (dest / "mounted/inside").read_text() == "inside"
    finally:
        subprocess.run(["umount", str(source / "mounted")], check=True)
    (source / "mounted").rmdir()
    subprocess.run(["rm", "-r", str(dest / "mounted")], check=True)
    (dest / "mounted").mkdir()
    mount(dest / "mounted")
    try:
        (dest / "mounted/inside").write_text("inside")
        (dest / "extra").write_text("extra")
        outcome = transfer(trees, delete=True)
        assert outcome["errors"] == [] and outcome["kept_mounts"] == ["mounted"]
        assert any("1 mount point stays at the destination" in warning for warning in outcome["warnings"])
        assert (dest / "mounted/inside").exists() and not (dest / "extra").exists()
    finally:
        subprocess.run(["umount", str(dest / "mounted")], check=True)


def mount(point: Path, kind: str = "tmpfs") -> None:
    if subprocess.run(["mount", "-t", kind, "none", str(point)], check=False).returncode:
        pytest.skip("cannot run here: nothing can be mounted")


@needs_root
def test_mode_000_at_a_source_without_root(open_trees):
    source, dest, _work = open_trees
    make_tree(source)
    (source / "closed").write_text("closed")
    (source / "closed").chmod(0)
    pair = make_pair(open_trees, preserve=WITHOUT_ROOT, delete=True)
    run_as_nobody(pair, "source")
    (dest / "extra").write_text("extra")
    outcome = pair.run()
    reasons = {one["path"]: one["reason"] for one in outcome["errors"]}
    assert reasons == {"closed": "cannot be read: Permission denied"}
    assert differences(source, dest, ignore=["owner"], skip=[b"closed", b"extra", b""]) == []
    (source / "closed").chmod(0o400)
    again = pair.run()
    assert again["errors"] == [] and differences(source, dest, ignore=["owner"]) == []


@needs_root
def test_mode_000_at_a_destination_without_root(open_trees):
    source, dest, _work = open_trees
    make_tree(source)
    (source / "closed").write_text("closed")
    (source / "closed folder").mkdir()
    (source / "closed folder/file").write_text("file")
    for name in ("closed", "closed folder"):
        (source / name).chmod(0)
    pair = make_pair(open_trees, preserve=WITHOUT_ROOT, delete=True)
    run_as_nobody(pair, "dest")
    assert pair.run()["errors"] == []
    assert differences(source, dest, ignore=["owner"]) == []
    assert (dest / "closed").stat().st_uid == NOBODY
    assert not pair.run()["changed"]
    (source / "closed").write_text("newer")
    (source / "closed folder/file").write_text("newer")
    (source / "closed folder/second").write_text("second")
    outcome = pair.run()
    assert outcome["errors"] == [] and outcome["files_updated"] == 2
    assert differences(source, dest, ignore=["owner"]) == []


@needs_root
def test_groups_without_root(open_trees):
    """Groups of the user's own are kept, and setgid with them; a warning counts the others, and a rerun is still."""
    source, dest, _work = open_trees
    for name, group, mode in (("own", 55, 0o2755), ("other", 77, 0o2755), ("other 2", 77, 0o640)):
        (source / name).write_text(name)
        os.chown(source / name, 0, group)
        (source / name).chmod(mode)
    (source / "shared").mkdir()
    os.chown(source / "shared", 0, 55)
    (source / "shared").chmod(0o2770)
    (source / "shared/file").write_text("file")
    os.chown(source / "shared/file", 0, 55)
    os.chown(source, 0, 55)
    pair = make_pair(open_trees, preserve=[*WITHOUT_ROOT, "group"])
    run_as_nobody(pair, "dest", groups=(55,))
    outcome = pair.run()
    assert outcome["errors"] == []
    found = {path.name: path.stat() for path in (*dest.iterdir(), dest / "shared/file")}
    kept = {name: (status.st_gid, stat.S_IMODE(status.st_mode)) for name, status in found.items()}
    assert kept["own"] == (55, 0o2755) and kept["shared"] == (55, 0o2770) and kept["file"][0] == 55
    assert kept["other"] == (NOBODY, 0o755) and kept["other 2"] == (NOBODY, 0o640)
    setgid, group = sorted(outcome["warnings"])
    assert setgid.startswith("setuid or setgid") and "1 entry" in setgid
    assert group.startswith("the group is not kept") and "2 entries" in group
    again = pair.run()
    assert again["errors"] == [] and again["warnings"] == [] and not again["changed"]


@needs_root
@pytest.mark.parametrize("kept", [[], ["specials"], ["devices"]])
def test_devices_without_root(open_trees, kept):
    """FIFOs and sockets are kept where the plan leaves out devices; a side that must make these, too, reports each."""
    source, dest, _work = open_trees
    make_tree(source)
    os.mknod(source / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(source / "block", stat.S_IFBLK | 0o600, os.makedev(7, 200))
    os.mknod(source / "socket", stat.S_IFSOCK | 0o640)
    os.mkfifo(source / "fifo")
    os.link(source / "fifo", source / "fifo, too")
    pair = make_pair(open_trees, preserve=[*WITHOUT_ROOT, *kept])
    run_as_nobody(pair, "dest")
    outcome = pair.run()
    reasons = {one["path"]: one["reason"] for one in outcome["errors"]}
    assert reasons == (dict.fromkeys(("block", "device"), "Operation not permitted") if "devices" in kept else {})
    assert [(dest / name).exists() for name in ("fifo", "fifo, too", "socket")] == [bool(kept)] * 3
    skip = [b"device", b"block", *([] if kept else [b"fifo", b"fifo, too", b"socket"])]
    assert differences(source, dest, ignore=["owner"], skip=skip) == []
    assert not pair.run()["changed"]


@needs_root
@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.newest
def test_a_umask_has_no_say(trees, side):
    source, _dest, _work = trees
    make_hard_tree(source, many=20)
    (source / "large").write_bytes(noise(1, 3 * MIB))
    (source / "large").chmod(0o666)
    for mode in (0o600, 0o644, 0o666, 0o755, 0o777):
        (source / f"new {mode:o}").mkdir()
        (source / f"new {mode:o}/file").write_text("contents")
        (source / f"new {mode:o}/file").chmod(mode)
        (source / f"new {mode:o}").chmod(mode | 0o700)
    pair = make_pair(trees)
    run_through(pair, side, "umask 077")
    expect_same(trees, pair.run())


@needs_root
def test_a_destination_without_xattrs_says_what_it_dropped(trees):
    source, dest, _work = trees
    make_tree(source)
    for name in ("attributed", "plain"):
        (source / name).write_text(name)
    os.setxattr(source / "attributed", "user.note", b"kept")
    subprocess.run(["setfacl", "-m", "u:54321:r", str(source / "attributed")], check=True)
    mount(dest, "ramfs")
    try:
        outcome = transfer(trees)
        assert sorted((one["path"], one["reason"]) for one in outcome["errors"]) == [
            ("attributed", "ACL system.posix_acl_access not set: the file system has none"),
            ("attributed", "xattr user.note not set: the file system has none"),
        ]
        assert differences(source, dest, ignore=["xattrs"]) == []
    finally:
        subprocess.run(["umount", str(dest)], check=True)


@needs_root
@pytest.mark.parametrize("numeric_ids", [False, True])
def test_numeric_ids_whose_names_collide(trees, numeric_ids):
    """Each end has users and groups of its own: a name with another number, a number with another name."""
    source, dest, _work = trees
    lines = {"source": {"alice": 70001, "bob": 70002, "carol": 70003}, "dest": {"alice": 70002, "bob": 70001}}
    pair = make_pair(trees, numeric_ids=numeric_ids)
    for side, names in lines.items():
        commands = []
        for file in ("passwd", "group"):
            made = pair.work / f"{file}-{side}"
            made.parent.mkdir(parents=True, exist_ok=True)
            tail = ":/:/bin/sh" if file == "passwd" else ""
            number = ":{0}:{0}:" if file == "passwd" else ":{0}:"
            text = "".join(f"{name}:x{number.format(value)}{tail}\n" for name, value in names.items())
            made.write_text(Path("/etc", file).read_text() + text)
            commands.append(f"mount --bind {made} /etc/{file}")
        apart = '[ -n "$APART" ] || APART=1 exec unshare --mount --propagation private "$0" "$@"'
        run_through(pair, side, apart, *commands)
    for name, owner in lines["source"].items():
        (source / name).write_text(name)
        os.chown(source / name, owner, owner)
    subprocess.run(["setfacl", "-m", "u:70001:r", str(source / "carol")], check=True)
    assert pair.run()["errors"] == []
    expected = lines["source"] if numeric_ids else {**lines["dest"], "carol": 70003}  # whom nobody knows there
    assert {path.name: (path.stat().st_uid, path.stat().st_gid) for path in dest.iterdir()} == {
        name: (owner, owner) for name, owner in expected.items()
    }
    said = subprocess.run(["getfacl", "-pn", str(dest / "carol")], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert f"user:{expected['alice']}:r--" in said
    assert not pair.run()["changed"]


def test_what_is_excluded_is_not_deleted(trees):
    source, dest, _work = trees
    make_tree(source)
    expect_same(trees, transfer(trees))
    for name in ("cache/deep", "old"):
        (dest / name).mkdir(parents=True)
    for name in ("one.log", "cache/deep/file", "old/one.log", "old/two", "three"):
        (dest / name).write_text("only here")
    (source / "new.log").write_text("not to be sent")
    predicted = transfer(trees, delete=True, rules=["- *.log", "- /cache"], check=True)
    done = transfer(trees, delete=True, rules=["- *.log", "- /cache"])
    assert done["errors"] == [] and predicted["files_deleted"] == done["files_deleted"] == 2
    assert all((dest / name).exists() for name in ("one.log", "cache/deep/file", "old/one.log"))
    assert not any((dest / name).exists() for name in ("old/two", "three", "new.log"))
