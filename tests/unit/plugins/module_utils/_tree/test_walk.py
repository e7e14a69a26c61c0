# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Walking a tree: names, types, order, limits, and what changes under the walk."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import DIRECTORY
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import walk as walk_module
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import xattr
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.descent import Descent
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.directory_tags import DirectoryTags
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
HARD_NAMES = [
    b"-rf",
    b"#hash",
    b";semi",
    b"new\nline",
    b"cr\r",
    b"space ",
    b"tab\t",
    b"back\\nslash",
    b"glob*[x]?~",
    b"a:b",
    b"$HOME",
    b"`id`",
    b"\xff\xfe\x80",
    b"x" * 255,
    b"Case",
    b"case",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b".longhaul-0123456789abcdef",
]


def entries(root, **options):
    """Walk, and fail on any error."""

    def fail(path, error):
        raise AssertionError((path, error))

    return list(walk(os.fsencode(root), on_error=fail, **options))


def with_errors(root, **options):
    errors = []
    found = list(walk(os.fsencode(root), on_error=lambda path, error: errors.append((path, error)), **options))
    return [entry.path for entry in found], errors


def open_fds():
    return len(os.listdir("/proc/self/fd"))


def dig(root, depth, name=b"d"):
    """Make directories below each other, beyond what a path can name; give back the fd of the deepest."""
    fd = os.open(root, os.O_RDONLY)
    for _level in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


def test_every_hard_name_comes_out_as_it_is_and_in_byte_order(tmp_path):
    for name in HARD_NAMES:
        os.mkdir(os.path.join(os.fsencode(tmp_path), name))
        open(os.path.join(os.fsencode(tmp_path), name, name), "wb").close()
    expected = [b""]
    for name in sorted(HARD_NAMES):
        expected += [name, name + b"/" + name]
    assert [entry.path for entry in entries(tmp_path)] == expected


def test_every_type_is_told_and_nothing_is_opened(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "fifo")  # opening it would block for ever
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    os.symlink("nowhere", tmp_path / "dangling")
    os.symlink("loop", tmp_path / "loop")
    os.symlink("/etc", tmp_path / "absolute")
    os.utime(tmp_path / "dangling", ns=(1, -5_000_000_001), follow_symlinks=False)
    found = {entry.path: entry for entry in entries(tmp_path)}
    assert {path: entry.type for path, entry in found.items()} == {
        b"": "d",
        b"file": "f",
        b"dir": "d",
        b"fifo": "p",
        b"socket": "s",
        b"dangling": "l",
        b"loop": "l",
        b"absolute": "l",
    }
    assert found[b"file"].size == 5
    assert found[b"dir"].size == 0
    assert (found[b"absolute"].target, found[b"absolute"].size) == (b"/etc", 4)
    assert found[b"dangling"].mtime_ns == -5_000_000_001


@as_root
def test_devices_have_their_numbers(tmp_path):
    os.mknod(tmp_path / "char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(tmp_path / "block", stat.S_IFBLK | 0o600, os.makedev(7, 300))
    found = {entry.path: entry for entry in entries(tmp_path)}
    assert (found[b"char"].type, found[b"char"].rdev) == ("c", os.makedev(1, 3))
    assert (found[b"block"].type, found[b"block"].rdev) == ("b", os.makedev(7, 300))


def test_names_of_one_file_share_their_link_id(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "sub").mkdir()
    os.link(tmp_path / "a", tmp_path / "sub" / "b")
    (tmp_path / "alone").write_bytes(b"x")
    found = {entry.path: entry for entry in entries(tmp_path)}
    assert found[b"a"].link_id is not None
    assert found[b"a"].link_id == found[b"sub/b"].link_id
    assert found[b"alone"].link_id is None


def test_sparse_files_are_told(tmp_path):
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(10 << 20)
    (tmp_path / "full").write_bytes(b"x" * 8192)
    os.sync()
    assert [entry.path for entry in entries(tmp_path) if entry.is_sparse] == [b"hole"]


@pytest.mark.parametrize("depth", [200, 3000])
def test_a_deep_tree_needs_few_fds(tmp_path, depth):
    deepest = dig(tmp_path, depth)
    for number in range(3):
        os.close(os.open(b"f%d" % number, os.O_CREAT | os.O_WRONLY, dir_fd=deepest))
    os.close(deepest)
    (tmp_path / "z").touch()
    before = open_fds()
    most = 0
    paths = []
    for entry in walk(os.fsencode(tmp_path), on_error=lambda path, error: pytest.fail(f"{path!r} {error}")):
        paths.append(entry.path)
        most = max(most, open_fds())
    assert len(paths) == 1 + depth + 3 + 1
    assert paths[-1] == b"z"
    assert paths[-2] == b"d/" * depth + b"f2"
    assert most - before <= 70
    assert open_fds() == before
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_every_directory_on_the_way_up_is_read_to_its_end(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    for _level in range(300):
        os.mkdir("d", dir_fd=fd)
        os.close(os.open("z", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.mkdir("e", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert len(entries(tmp_path)) == 1 + 300 * 3


def test_a_process_without_spare_fds_walks_all_the_same(tmp_path):
    os.close(dig(tmp_path, 100))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_fds() + 6, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            held = [os.dup(1)]
            while True:
                held.append(os.dup(1))
        for fd in held[:6]:
            os.close(fd)
        found, errors = with_errors(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held[6:]:
            os.close(fd)
    assert (len(found), errors) == (101, [])


@pytest.mark.newest
def test_a_directory_of_30000_names_goes_fast(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    for number in range(30_000):
        os.symlink("x", f"{number:06}", dir_fd=fd)
    os.close(fd)
    started = time.perf_counter()
    assert sum(1 for _entry in walk(os.fsencode(tmp_path), on_error=lambda *_: None)) == 30_001
    assert time.perf_counter() - started < 5  # about 0.3 s; not a measurement, but quadratic it is not


def test_names_that_vanish_are_told(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    errors = []
    walking = walk(os.fsencode(tmp_path), on_error=lambda path, error: errors.append((path, error)))
    assert next(walking).path == b""
    assert next(walking).path == b"a"
    (tmp_path / "b").unlink()
    assert next(walking).path == b"c"
    assert [(path, type(error)) for path, error in errors] == [(b"b", FileNotFoundError)]


def test_what_vanishes_behind_a_filter_is_no_error(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).touch()
    errors = []
    walking = walk(os.fsencode(tmp_path), filters=Filters.parse(["- b"]), on_error=lambda *what: errors.append(what))
    next(walking)
    next(walking)
    (tmp_path / "b").unlink()
    assert list(walking) == errors == []


def test_a_directory_swapped_for_a_symlink_does_not_lead_outside(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").touch()
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    errors = []
    walking = walk(os.fsencode(root), on_error=lambda path, error: errors.append((path, error)))
    paths = []
    for entry in walking:
        paths.append(entry.path)
        if entry.path == b"dir":
            (root / "dir").rmdir()
            os.symlink(outside, root / "dir")
    assert paths == [b"", b"dir"]
    assert [path for path, _error in errors] == [b"dir"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_parent_moved_outside_while_it_is_read_does_not_lead_there(tmp_path, replaced):
    """So far down that the parents' fds were given back, and ``..`` leads elsewhere afterwards."""
    outside = tmp_path / "outside"
    (outside / "secret").mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    os.close(dig(root, 100))
    (root / "d" / "d" / "z").touch()
    (root / "z").touch()
    errors, paths = [], []
    for entry in walk(os.fsencode(root), on_error=lambda path, error: errors.append((path, error.errno))):
        paths.append(entry.path)
        if entry.path.count(b"/") == 99:
            os.rename(root / "d" / "d" / "d", outside / "moved")
            if replaced:
                os.rename(root / "d" / "d", outside / "upper")
                os.symlink(outside, root / "d" / "d")
    assert not any(b"secret" in path or b"moved" in path for path in paths)
    assert paths[-1] == b"z"
    if replaced:
        assert errors  # what was left of d/d cannot be read, and that is said
        assert errors[0][0] == b"d/d"
        assert b"d/d/z" not in paths
    else:
        assert errors == []
        assert paths[-2] == b"d/d/z"


def test_an_unreadable_directory_is_told_and_the_rest_is_walked(tmp_path, as_nobody):
    (tmp_path / "a").mkdir(mode=0o000)
    (tmp_path / "b").mkdir()
    with as_nobody(tmp_path):
        paths, errors = with_errors(tmp_path)
    assert paths == [b"", b"a", b"b"]
    assert [(path, type(error)) for path, error in errors] == [(b"a", PermissionError)]


def test_a_root_that_is_missing_or_no_directory_gives_nothing(tmp_path):
    (tmp_path / "file").touch()
    for name, kind in (("none", FileNotFoundError), ("file", NotADirectoryError)):
        paths, errors = with_errors(tmp_path / name)
        assert paths == []
        assert [(path, type(error)) for path, error in errors] == [(b"", kind)]


def test_a_root_can_be_an_open_directory(tmp_path):
    (tmp_path / "sub" / "dir").mkdir(parents=True)
    fd = os.open(tmp_path / "sub", os.O_RDONLY)
    try:
        os.rename(tmp_path / "sub", tmp_path / "moved")
        os.symlink("/etc", tmp_path / "sub")
        for _time in range(2):  # it stays open, and is read from the start
            found = list(walk(fd, on_error=lambda *what: pytest.fail(str(what))))
            assert [entry.path for entry in found] == [b"", b"dir"]
    finally:
        os.close(fd)


def test_filters_prune(tmp_path):
    (tmp_path / "keep" / "sub").mkdir(parents=True)
    (tmp_path / "drop" / "sub").mkdir(parents=True)
    filters = Filters.parse(["- /drop", "P sub"])
    assert [entry.path for entry in entries(tmp_path, filters=filters)] == [b"", b"keep", b"keep/sub"]
    assert [entry.path for entry in entries(tmp_path, filters=filters, side="dest")] == [b"", b"keep"]


def test_only_gives_the_root_and_the_one_name(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").touch()
    assert [entry.path for entry in entries(tmp_path, only=b"a")] == [b"", b"a"]
    assert [entry.path for entry in entries(tmp_path, only=b"b")] == [b"", b"b"]
    paths, errors = with_errors(tmp_path, only=b"none")
    assert (paths, [path for path, _error in errors]) == ([b""], [b"none"])


@as_root
def test_one_file_system_gives_a_mount_point_as_an_empty_directory(tmp_path):
    (tmp_path / "mnt").mkdir()
    (tmp_path / "z").touch()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(tmp_path / "mnt")], check=False).returncode != 0:
        pytest.skip("no mounts here")
    try:
        (tmp_path / "mnt" / "inside").touch()
        assert [e.path for e in entries(tmp_path, one_file_system=True)] == [b"", b"mnt", b"z"]
        assert [e.path for e in entries(tmp_path)] == [b"", b"mnt", b"mnt/inside", b"z"]
    finally:
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)


SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


def _tagged_tree(root):
    (root / ".nobackup").touch()  # in the root: it does not count
    for folder in ("cache", "cut", "folder", "kept", "link", "pipe", "skip/deep", "wrong"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x").touch()
    (root / "skip/.nobackup").write_bytes(b"why")
    (root / "skip/CACHEDIR.TAG").touch()
    (root / "skip/a").touch()
    (root / "cache/CACHEDIR.TAG").write_bytes(SIGNATURE + b"\n# a comment")
    (root / "cut/CACHEDIR.TAG").write_bytes(SIGNATURE[:-1])
    (root / "wrong/CACHEDIR.TAG").write_bytes(SIGNATURE.replace(b"8a", b"8b"))
    (root / "folder/.nobackup").mkdir()
    (root / "link/.nobackup").symlink_to("x")
    (root / "link/CACHEDIR.TAG").symlink_to("../cache/CACHEDIR.TAG")
    os.mkfifo(root / "pipe/CACHEDIR.TAG")


@pytest.mark.parametrize(
    ("names", "caches", "left_out"),
    [
        ([], False, {}),
        ([".nobackup", "none"], False, {b"skip": [b"skip/.nobackup"]}),
        ([], True, {b"cache": [b"cache/CACHEDIR.TAG"]}),
        (
            ["CACHEDIR.TAG", ".nobackup"],
            True,
            {
                b"cache": [b"cache/CACHEDIR.TAG"],
                b"cut": [b"cut/CACHEDIR.TAG"],
                b"skip": [b"skip/.nobackup", b"skip/CACHEDIR.TAG"],
                b"wrong": [b"wrong/CACHEDIR.TAG"],
            },
        ),
    ],
)
def test_a_tag_leaves_out_all_else_in_its_directory(tmp_path, names, caches, left_out):
    _tagged_tree(tmp_path)
    whole = [entry.path for entry in entries(tmp_path)]
    told = []
    tags = DirectoryTags.parse(names, caches)
    found = [entry.path for entry in entries(tmp_path, tags=tags, on_tagged=told.append)]
    assert told == sorted(left_out)
    wanted = [path for path in whole if path.split(b"/")[0] not in left_out or path in left_out]
    assert found == sorted([*wanted, *(tag for tags in left_out.values() for tag in tags)])


def test_a_tag_that_is_hidden_counts_all_the_same(tmp_path):
    _tagged_tree(tmp_path)
    filters, tags = Filters.parse(["- .nobackup", "+ /skip/", "- *"]), DirectoryTags.parse([".nobackup"], False)
    assert [entry.path for entry in entries(tmp_path, filters=filters, tags=tags)] == [b"", b"skip"]


@pytest.mark.skipif(not xattr.SUPPORTED, reason="no xattrs here")
def test_xattrs_and_acls_are_read_without_following(tmp_path, as_nobody):
    (tmp_path / "f").touch()
    os.setxattr(tmp_path / "f", "user.b", b"2")
    os.setxattr(tmp_path / "f", "user.a", b"\x00\xff")
    os.setxattr(tmp_path, "user.root", b"r")
    os.symlink("f", tmp_path / "link")
    subprocess.run(["setfacl", "-d", "-m", "u:12345:rwx", str(tmp_path)], check=True)
    found = {entry.path: dict(entry.xattrs) for entry in entries(tmp_path, xattrs=True)}
    assert found[b"f"] == {b"user.a": b"\x00\xff", b"user.b": b"2"}
    assert found[b"link"] == {}
    assert found[b""][b"user.root"] == b"r"
    assert b"system.posix_acl_default" in found[b""]
    assert not any(entry.xattrs for entry in entries(tmp_path))


@as_root
def test_the_xattrs_of_symlinks_and_of_the_system(tmp_path):
    os.symlink("nowhere", tmp_path / "link")
    os.setxattr(tmp_path / "link", "trusted.x", b"1", follow_symlinks=False)
    found = {entry.path: dict(entry.xattrs) for entry in entries(tmp_path, xattrs=True)}
    assert found[b"link"] == {b"trusted.x": b"1"}


@as_root
def test_a_file_system_without_xattrs_has_none(tmp_path):
    paths, errors = with_errors("/proc/self/net", xattrs=True, only=b"dev")
    assert (paths, errors) == ([b"", b"dev"], [])


def test_types_of_directories_in_a_walk_are_the_constants(tmp_path):
    assert entries(tmp_path)[0].type == DIRECTORY


@pytest.mark.parametrize("hidden", [False, True])
def test_names_that_no_other_system_can_take_are_told(tmp_path, monkeypatch, hidden):
    """NTFS, SMB and ZFS have names of 255 characters, which may be more bytes."""
    (tmp_path / "folder").mkdir()
    for name in ("a", "folder/b", "z"):
        (tmp_path / name).touch()
    names = Descent.names
    long = ("\N{SNOWMAN}" * 100).encode()
    monkeypatch.setattr(Descent, "names", lambda self: sorted([*names(self), long]))
    told = []
    filters = Filters.parse(["- *\N{SNOWMAN}"]) if hidden else None
    found = walk(
        os.fsencode(tmp_path), filters=filters, on_error=lambda path, error: told.append((path, error.strerror))
    )
    assert [entry.path for entry in found] == [b"", b"a", b"folder", b"folder/b", b"z"]
    assert [path for path, _reason in told] == ([] if hidden else [long, b"folder/" + long])
    assert all("its name has 300 bytes, and 255 are the most" in reason for _path, reason in told)


def test_a_path_that_is_too_long_is_told(tmp_path, monkeypatch):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.setattr(walk_module, "PATH_LIMIT", 4)
    told = []
    found = walk(os.fsencode(tmp_path), on_error=lambda path, error: told.append((path, error.strerror)))
    assert [entry.path for entry in found] == [b"", b"a", b"a/b"]
    assert told == [(b"a/b/c", "its path has 5 bytes, and 4 are the most. Give it a shorter one")]
