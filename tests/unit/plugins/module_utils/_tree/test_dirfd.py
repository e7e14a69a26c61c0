# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changing a destination: everything arrives, and nothing outside the root is touched."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import entry_from_stat
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import components
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import InTheWay, Root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
BAD_PATHS = [
    b"/etc/passwd",
    b"../x",
    b"a/../x",
    b"a//b",
    b"a/",
    b"./a",
    b".",
    b"..",
    b"a\0b",
    b"x" * 256,
    b"a/" * 600_000 + b"b",
]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "root").mkdir()
    with Root(os.fsencode(tmp_path / "root")) as root:
        yield root


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


def listing(root):
    return [entry.path for entry in walk(root.path, on_error=lambda path, error: pytest.fail(f"{path!r} {error}"))][1:]


def entry_of(path):
    return entry_from_stat(os.path.basename(os.fsencode(path)), os.lstat(path))


def open_fds():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("path", BAD_PATHS, ids=lambda path: repr(path[:20]))
def test_paths_that_could_lead_outside_are_refused_by_every_method(place, path):
    place.make_directory(b"ok")
    fifo = entry_of("/dev/null")._replace(type="p")
    for call in (
        lambda: place.open_parent(path),
        lambda: place.open_directory(path),
        lambda: place.open_file(path),
        lambda: place.lstat(path),
        lambda: place.make_directory(path),
        lambda: place.make_symlink(path, b"x"),
        lambda: place.make_special(path, fifo),
        lambda: place.hard_link(fifo._replace(path=path), b"new"),
        lambda: place.hard_link(fifo._replace(path=b"ok"), path),
        lambda: place.rename_into(place.fd, b"ok", path),
        lambda: place.remove(path),
    ):
        with pytest.raises(ValueError, match="refused|longer than"):
            call()
    assert listing(place) == [b"ok"]


def test_the_parts_of_a_good_path():
    assert components(b"") == []
    assert components(b"a/...//".rstrip(b"/") + b"/ b\n") == [b"a", b"...", b" b\n"]


def test_everything_can_be_made(place):
    place.make_directory(b"d")
    place.make_directory(b"d/e")
    place.make_symlink(b"d/e/l", b"/etc/passwd")
    place.make_special(b"d/fifo", entry_of("/dev/null")._replace(type="p", rdev=0))
    place.make_special(b"d/sock", entry_of("/dev/null")._replace(type="s", rdev=0))
    place.hard_link(place.lstat(b"d/fifo"), b"d/e/fifo2")
    place.hard_link(place.lstat(b"d/e/l"), b"l2")  # the symlink itself, not what it leads to
    found = {e.path: e for e in walk(place.path, on_error=lambda *_: None)}
    assert {path: entry.type for path, entry in found.items()} == {
        b"": "d",
        b"d": "d",
        b"d/e": "d",
        b"d/e/l": "l",
        b"d/fifo": "p",
        b"d/sock": "s",
        b"d/e/fifo2": "p",
        b"l2": "l",
    }
    assert found[b"d/fifo"].ino == found[b"d/e/fifo2"].ino
    assert found[b"l2"].ino == found[b"d/e/l"].ino
    assert stat.S_IMODE(os.stat(place.path + b"/d").st_mode) == 0o700


@as_root
def test_devices_can_be_made(place):
    null = entry_of("/dev/null")
    place.make_special(b"null", null)
    place.make_special(b"disk", null._replace(type="b", rdev=os.makedev(7, 300)))
    assert place.lstat(b"null")[:2] == (b"null", "c")
    assert place.lstat(b"null").rdev == os.makedev(1, 3)
    assert (place.lstat(b"disk").type, place.lstat(b"disk").rdev) == ("b", os.makedev(7, 300))


def test_impossible_things_are_refused(place):
    with pytest.raises(ValueError, match="impossible target"):
        place.make_symlink(b"l", b"")
    with pytest.raises(ValueError, match="no FIFO"):
        place.make_special(b"x", entry_of("/etc/passwd"))
    with pytest.raises(ValueError, match="root itself"):
        place.remove(b"")


@pytest.mark.parametrize("when", ["before", "after it was opened"])
def test_a_parent_that_is_a_symlink_never_leads_outside(place, outside, when):
    root = os.fsdecode(place.path)
    os.mkdir(f"{root}/d")
    if when != "before":
        place.make_directory(b"d/first")
        place.forget()
    os.rename(f"{root}/d", f"{root}/moved")
    os.symlink(outside, f"{root}/d")
    fifo = entry_of("/dev/null")._replace(type="p", rdev=0)
    open(f"{root}/staged", "w").close()
    for call in (
        lambda: place.open_parent(b"d/x"),
        lambda: place.open_directory(b"d"),
        lambda: place.open_file(b"d/precious"),
        lambda: place.make_directory(b"d/x"),
        lambda: place.make_symlink(b"d/x", b"y"),
        lambda: place.make_special(b"d/x", fifo),
        lambda: place.hard_link(place.lstat(b"staged"), b"d/x"),
        lambda: place.hard_link(fifo._replace(path=b"d/precious"), b"x"),
        lambda: place.rename_into(place.fd, b"staged", b"d/x"),
        lambda: place.remove(b"d/precious"),
    ):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            call()
    assert place.lstat(b"d/precious") is None
    assert place.lstat(b"d").type == "l"
    assert sorted(os.listdir(outside)) == ["precious"]


def test_a_parent_swapped_while_its_fd_is_held_does_not_lead_outside(place, outside):
    root = os.fsdecode(place.path)
    place.make_directory(b"d")
    place.make_directory(b"d/first")  # now the fd of d is cached
    os.rename(f"{root}/d", f"{root}/moved")
    os.symlink(outside, f"{root}/d")
    place.make_directory(b"d/second")
    assert sorted(os.listdir(outside)) == ["precious"]
    assert sorted(os.listdir(f"{root}/moved")) == ["first", "second"]


def test_removal_never_follows_a_symlink(place, outside):
    root = os.fsdecode(place.path)
    os.makedirs(f"{root}/d/e")
    os.symlink(outside, f"{root}/d/link")
    os.symlink(outside / "precious", f"{root}/d/e/link")
    assert place.remove(b"d") == 4
    assert listing(place) == []
    assert (outside / "precious").read_text() == "precious"


def test_a_path_longer_than_path_max(place):
    path = b""
    for _level in range(30):
        path = path + b"/" + b"n" * 200 if path else b"n" * 200
        place.make_directory(path)
    assert len(path) > 4096
    place.make_symlink(path + b"/link", b"x")
    place.forget()
    assert place.lstat(path + b"/link").target == b"x"
    assert place.remove(b"n" * 200) == 31
    assert listing(place) == []


def test_a_deep_tree_is_removed_with_few_fds(place):
    fd = os.dup(place.fd)
    for _level in range(1500):
        os.mkdir("d", dir_fd=fd)
        os.close(os.open("f", os.O_CREAT, dir_fd=fd))
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    before, most = open_fds(), [0]
    gone = place.remove(b"d", on_removed=lambda *_: most.__setitem__(0, max(most[0], open_fds())))
    assert gone == 1500 + 1499
    assert most[0] - before <= 70
    assert open_fds() == before
    assert listing(place) == [b"f"]


def test_removal_tells_what_went_and_leaves_what_is_kept(place):
    root = os.fsdecode(place.path)
    os.makedirs(f"{root}/d/gone/deep")
    os.makedirs(f"{root}/d/stay/deep")
    for name in ("d/gone/f", "d/stay/keep", "d/stay/f", "d/stay/deep/f"):
        open(f"{root}/{name}", "w").close()
    told = []

    def keep(path, is_dir):
        return path.endswith(b"keep") and not is_dir

    count = place.remove(b"d", keep=keep, on_removed=lambda *what: told.append(what))
    assert sorted(told) == [
        (b"d/gone", "d"),
        (b"d/gone/deep", "d"),
        (b"d/gone/f", "f"),
        (b"d/stay/deep", "d"),
        (b"d/stay/deep/f", "f"),
        (b"d/stay/f", "f"),
    ]
    assert count == 6
    assert listing(place) == [b"d", b"d/stay", b"d/stay/keep"]


@as_root
def test_removal_does_not_enter_a_mount_point(place):
    root = os.fsdecode(place.path)
    os.makedirs(f"{root}/d/mnt")
    if subprocess.run(["mount", "-t", "tmpfs", "none", f"{root}/d/mnt"], check=False).returncode != 0:
        pytest.skip("no mounts here")
    try:
        open(f"{root}/d/mnt/precious", "w").close()
        with pytest.raises(OSError, match="another file system is mounted"):
            place.remove(b"d")
        assert os.listdir(f"{root}/d/mnt") == ["precious"]
    finally:
        subprocess.run(["umount", f"{root}/d/mnt"], check=True)


def test_a_tree_of_ones_own_that_forbids_its_removal(tmp_path, as_nobody):
    root = tmp_path / "r"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").touch()
    with as_nobody(root):
        os.chmod(root / "d" / "e", 0o000)
        os.chmod(root / "d", 0o500)
        with Root(os.fsencode(root)) as place:
            assert place.remove(b"d") == 3


def test_what_is_missing_is_told_apart(place):
    assert place.lstat(b"none") is None
    assert place.lstat(b"none/below") is None
    with pytest.raises(FileNotFoundError):
        place.remove(b"none")
    with pytest.raises(FileNotFoundError):
        place.make_directory(b"none/below")


def test_only_regular_files_are_opened(place):
    root = os.fsdecode(place.path)
    os.mkfifo(f"{root}/fifo")  # opening it would block for ever
    os.symlink("/etc/passwd", f"{root}/link")
    os.mkdir(f"{root}/dir")
    for path in (b"fifo", b"link", b"dir"):
        with pytest.raises(OSError, match="not a regular file"):
            place.open_file(path)
    with open(f"{root}/f", "wb") as file:
        file.write(b"data")
    fd = place.open_file(b"f")
    assert os.read(fd, 10) == b"data"
    os.close(fd)


def staged(place, make):
    """Make something in a staging folder, and give the folder's fd."""
    os.makedirs(place.path + b"/.stage", exist_ok=True)
    make(place.path + b"/.stage/new")
    return place.open_directory(b".stage")


def write(path):
    with open(path, "wb") as file:
        file.write(b"new")


@pytest.mark.parametrize(
    "before",
    [
        lambda path: None,
        lambda path: open(path, "wb").close(),
        lambda path: os.symlink(b"/etc/passwd", path),
        os.mkfifo,
        os.mkdir,
    ],
    ids=["nothing", "file", "symlink", "fifo", "empty directory"],
)
@pytest.mark.parametrize(
    ("make", "kind"),
    [(write, "f"), (lambda path: os.symlink(b"target", path), "l"), (os.mkfifo, "p")],
    ids=["file", "symlink", "fifo"],
)
def test_anything_takes_the_place_of_anything(place, before, make, kind):
    before(place.path + b"/x")
    fd = staged(place, make)
    new = place.lstat(b".stage/new")._replace(path=b"x")
    place.clear_for(new, place.lstat(b"x"), check=True)
    place.clear_for(new, place.lstat(b"x"))
    place.rename_into(fd, b"new", b"x")
    os.close(fd)
    assert place.lstat(b"x").type == kind
    assert listing(place) == [b".stage", b"x"]


def test_a_file_in_the_place_of_a_directory_goes_first(place):
    open(place.path + b"/x", "wb").close()
    directory = place.lstat(b"")._replace(path=b"x")
    place.clear_for(directory, place.lstat(b"x"), check=True)
    assert listing(place) == [b"x"]
    place.clear_for(directory, place.lstat(b"x"))
    place.make_directory(b"x")
    place.clear_for(directory, place.lstat(b"x"))
    assert listing(place) == [b"x"]


@pytest.mark.parametrize("check", [False, True])
def test_a_directory_with_contents_is_not_lost(place, check):
    place.make_directory(b"x")
    place.make_directory(b"x/y")
    place.make_symlink(b"x/y/z", b"q")
    file = place.lstat(b"x/y/z")._replace(path=b"x")
    with pytest.raises(InTheWay, match="non-empty directory"):
        place.clear_for(file, place.lstat(b"x"), check=check)
    assert listing(place) == [b"x", b"x/y", b"x/y/z"]


def test_a_name_staged_as_a_link_to_what_is_there_already_leaves_nothing_behind(place):
    write(place.path + b"/x")
    fd = staged(place, lambda path: os.link(place.path + b"/x", path))
    place.rename_into(fd, b"new", b"x")
    os.close(fd)
    assert listing(place) == [b".stage", b"x"]


def test_a_directory_that_was_removed_and_made_again_is_found_again(place):
    place.make_directory(b"d")
    place.make_directory(b"d/e")
    place.remove(b"d")
    place.make_directory(b"d")
    place.make_directory(b"d/f")
    assert listing(place) == [b"d", b"d/f"]


def test_the_number_of_open_directories_is_limited(place):
    before = open_fds()
    for number in range(100):
        place.make_directory(b"%d" % number)
        place.make_directory(b"%d/x" % number)
    assert open_fds() - before <= 33
    place.close()
    assert open_fds() == before - 1
