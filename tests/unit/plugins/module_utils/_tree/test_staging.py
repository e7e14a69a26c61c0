# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The staging folder comes and goes without a trace in its root, and is nobody else's."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import struct
import tempfile
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import leftover as rsync_leftover
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import dirfd, staging

OLD = 1_000_000_000_123_456_789
NAME = b".longhaul-0123456789abcdef"
DEEP = 600  # levels of 7 bytes: more than a path can name


@pytest.fixture(name="root")
def a_root(tmp_path):
    root = os.fsencode(tmp_path / "root")
    os.mkdir(root)
    os.utime(root, ns=(OLD, OLD))
    return root


def stage(root):
    return os.path.join(root, NAME)


@contextlib.contextmanager
def staged(root, adopt=None):
    with contextlib.closing(staging.Staging(root, NAME)) as folders:
        folders.prepare(adopt)
        yield folders


def write(path, content=b"x"):
    with open(path, "wb") as stream:
        stream.write(content)


def test_the_root_keeps_its_times(root):
    with staged(root) as folders:
        assert sorted(os.listdir(stage(root))) == [b"partial", b"tmp"]
        assert os.stat(root).st_mtime_ns == OLD
        folders.settle(keep_partial=True)
    assert os.listdir(root) == []
    assert os.stat(root).st_mtime_ns == OLD


def test_what_an_interrupted_rsync_left_becomes_its_partial(root):
    with staged(root):
        pass
    temporary, partial = os.path.join(stage(root), b"tmp"), os.path.join(stage(root), b"partial")
    for name, content in ((b"big.img.a1B2c3", b"12345"), (b"other.Zz9Yy8", b"")):
        write(os.path.join(temporary, name), content)
    write(os.path.join(partial, b"big.img"), b"123")
    with contextlib.closing(staging.Staging(root, NAME)) as folders:
        assert folders.prepare(rsync_leftover.adopt)
    assert os.listdir(temporary) == []
    assert os.path.getsize(os.path.join(partial, b"big.img")) == 5


def test_nothing_but_own_files_of_one_name_becomes_a_partial(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("short")
    with staged(root) as folders:
        temporary, partial = os.path.join(stage(root), b"tmp"), os.path.join(stage(root), b"partial")
        write(os.path.join(temporary, b"two.aaaaaa"))
        os.link(os.path.join(temporary, b"two.aaaaaa"), os.path.join(root, b"other"))
        os.symlink(outside / "key", os.path.join(temporary, b"link.aaaaaa"))
        os.mkdir(os.path.join(temporary, b"folder.aaaaaa"))
        os.mkfifo(os.path.join(temporary, b"fifo.aaaaaa"))
        write(os.path.join(temporary, b"key.aaaaaa"), b"much longer")
        os.symlink(outside / "key", os.path.join(partial, b"key"))
        if os.geteuid() == 0:
            write(os.path.join(temporary, b"foreign.aaaaaa"))
            os.chown(os.path.join(temporary, b"foreign.aaaaaa"), 4242, 4242)
        assert rsync_leftover.adopt(folders) == 0
    assert os.listdir(partial) == [b"key"]
    assert (outside / "key").read_text() == "short"


def test_folders_that_are_replaced_lead_nowhere(root, tmp_path):
    """What is held is the folder, not its name: a link in its place gets nothing, and nothing behind it goes."""
    outside = tmp_path / "outside"
    for name in ("tmp", "partial"):
        (outside / name).mkdir(parents=True)
    (outside / "tmp" / "job.aaaaaa").write_text("theirs")
    (outside / "precious").write_text("theirs")
    with staged(root) as folders:
        os.rename(stage(root), os.path.join(root, b"moved"))
        os.symlink(outside, stage(root))
        write(os.path.join(root, b"moved", b"tmp", b"evil.bbbbbb"), b"ours")
        assert rsync_leftover.adopt(folders) == 4
        folders.prepare()
        folders.settle(keep_partial=False)
    found = sorted(str(path.relative_to(outside)) for path in outside.rglob("*"))
    assert found == ["partial", "precious", "tmp", "tmp/job.aaaaaa"]


def test_what_a_method_does_not_adopt_goes(root):
    with staged(root):
        pass
    os.makedirs(os.path.join(stage(root), b"tmp", b"shard-1", b"sub"))
    with contextlib.closing(staging.Staging(root, NAME)) as folders:
        assert not folders.prepare()
    assert os.listdir(os.path.join(stage(root), b"tmp")) == []


def test_partial_files_stay_for_a_rerun_only_where_there_are_any(root):
    with staged(root) as folders:
        write(os.path.join(stage(root), b"partial", b"big"))
        folders.settle(keep_partial=True)
        assert os.path.exists(os.path.join(stage(root), b"partial", b"big"))
        folders.settle(keep_partial=False)
    assert os.listdir(root) == []


@pytest.mark.parametrize("place", [b"", b"tmp", b"partial"])
def test_a_symlink_that_somebody_left_goes_and_what_it_leads_to_stays(root, tmp_path, place):
    victim = tmp_path / "victim"
    for name in ("tmp", "partial"):
        (victim / name).mkdir(parents=True)
    (victim / "tmp" / "precious").write_text("x")
    victim.chmod(0o755)
    before = victim.stat()
    wrong = os.path.join(stage(root), place) if place else stage(root)
    os.makedirs(os.path.dirname(wrong), mode=0o700, exist_ok=True)
    os.symlink(victim, wrong)
    with contextlib.closing(staging.Staging(root, NAME)) as folders:
        assert not os.path.islink(wrong) and os.path.isdir(wrong)
        assert not folders.prepare()
    assert (victim / "tmp" / "precious").exists()
    assert (victim.stat().st_mode, victim.stat().st_ctime_ns) == (before.st_mode, before.st_ctime_ns)


@pytest.mark.parametrize("place", [b"", b"tmp", b"partial"])
@pytest.mark.parametrize("kind", ["fifo", "file"])
def test_what_is_no_directory_is_refused_and_left_alone(root, place, kind):
    wrong = os.path.join(stage(root), place) if place else stage(root)
    os.makedirs(os.path.dirname(wrong), mode=0o700, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(wrong)
    else:
        write(wrong)
    with pytest.raises(TransferFailed, match="Nothing in it was touched") as refused:
        staging.Staging(root, NAME)
    assert f"`rm -r {os.fsdecode(wrong)}`" in str(refused.value)
    assert f"of user id {os.geteuid()}" in str(refused.value)
    assert os.path.lexists(wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give folders to others")
@pytest.mark.parametrize("place", [b"", b"tmp", b"partial"])
def test_a_folder_of_another_user_is_refused_and_left_alone(root, place):
    with staged(root):
        pass
    wrong = os.path.join(stage(root), place) if place else stage(root)
    write(os.path.join(stage(root), b"tmp", b"precious"))
    os.chown(wrong, 4242, 4242)
    with pytest.raises(TransferFailed, match="user id 4242"):
        staging.Staging(root, NAME)
    assert os.path.exists(os.path.join(stage(root), b"tmp", b"precious"))
    assert os.listdir(root) == [NAME]


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give folders to others")
def test_a_file_system_that_maps_root_to_another_user_is_no_obstacle(root, monkeypatch):
    """As an NFS server does (root_squash): what root makes there belongs to somebody else at once."""
    make, opened = os.mkdir, os.open

    def mkdir(name, mode=0o777, *, dir_fd=None):
        make(name, mode, dir_fd=dir_fd)
        os.chown(name, 65534, 65534, dir_fd=dir_fd)

    def open_(path, flags, mode=0o777, *, dir_fd=None):
        fd = opened(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT:
            os.fchown(fd, 65534, 65534)
        return fd

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", open_)
    with staged(root):
        assert sorted(os.listdir(stage(root))) == [b"partial", b"tmp"]
    assert os.listdir(root) == [NAME]


def test_a_folder_that_others_may_write_to_is_refused(root):
    with staged(root):
        pass
    os.chmod(stage(root), 0o770)
    with pytest.raises(TransferFailed, match="0770"):
        staging.Staging(root, NAME)


def test_a_folder_that_others_may_read_is_closed(root):
    with staged(root):
        pass
    os.chmod(stage(root), 0o755)
    with staged(root):
        assert stat.S_IMODE(os.stat(stage(root)).st_mode) == 0o700


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Be one, whose rights count, for the time of a block."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def default_acl(owner: int) -> bytes:
    """A default ACL that gives the owner these rights, and nothing to anybody else."""
    return struct.pack("<I" + "HHI" * 3, 2, 1, owner, 2**32 - 1, 4, 0, 2**32 - 1, 32, 0, 2**32 - 1)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="cannot run here: no default ACLs as Linux has them")
@pytest.mark.parametrize("owner", [0o6, 0o4, 0o3, 0o0])
def test_a_default_acl_does_not_shut_a_user_out_of_its_own_folders(owner):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        root = os.path.join(os.fsencode(folder), b"root")
        with as_ordinary_user():
            os.mkdir(root)
            try:
                os.setxattr(root, "system.posix_acl_default", default_acl(owner))
            except OSError as error:
                pytest.skip(f"cannot run here: no ACLs: {error}")
            with staged(root) as folders:
                for name in (b"", b"tmp", b"partial"):
                    assert stat.S_IMODE(os.stat(os.path.join(stage(root), name)).st_mode) == 0o700
                below = folders.below_temporary(b"arrived")
                os.close(os.open(b"file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=below))
                os.close(below)
                assert folders.settle(keep_partial=False) == ""
            assert os.listdir(root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give folders to others")
@pytest.mark.parametrize("place", [b"", b"tmp"])
def test_a_user_opens_no_closed_folder_of_another(place):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        root = os.path.join(os.fsencode(folder), b"root")
        with as_ordinary_user():
            os.mkdir(root)
            with staged(root):
                pass
        wrong = os.path.join(stage(root), place) if place else stage(root)
        os.chown(wrong, 4242, 4242)
        os.chmod(wrong, 0o000)
        with as_ordinary_user(), pytest.raises(TransferFailed, match="this user may not open it"):
            staging.Staging(root, NAME)
        assert stat.S_IMODE(os.stat(wrong).st_mode) == 0


def make_deep(folder: bytes, levels: int) -> None:
    """Make a chain of folders, deeper than a path can name, with a file at its end."""
    os.mkdir(folder)
    fd = os.open(folder, os.O_RDONLY)
    for _level in range(levels):
        os.mkdir(b"deeper", dir_fd=fd)
        below = os.open(b"deeper", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open(b"file", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)


@contextlib.contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """Let this process open no more than so many files beside those that it has open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("descriptors", [12, 1000])
def test_deep_folders_in_it_go(root, descriptors):
    with staged(root) as folders, few_descriptors(descriptors):
        make_deep(os.path.join(stage(root), b"tmp", b"shard-1"), DEEP)
        assert not folders.prepare()
        assert os.listdir(folders.temporary_fd) == []
        make_deep(os.path.join(stage(root), b"tmp", b"shard-1"), DEEP)
        assert folders.settle(keep_partial=False) == ""
    assert os.listdir(root) == []
    assert os.stat(root).st_mtime_ns == OLD


@pytest.mark.parametrize("descriptors", [12, 1000])
def test_files_in_deep_folders_are_kept_for_a_rerun(root, descriptors):
    with staged(root) as folders, few_descriptors(descriptors):
        make_deep(os.path.join(stage(root), b"partial", b"deep"), DEEP)
        assert folders.settle(keep_partial=True) == ""
        assert os.listdir(folders.partial_fd) == ["deep"]
        assert folders.settle(keep_partial=False) == ""  # pytest itself could not remove it


def test_what_cannot_be_removed_is_said_and_the_rest_goes(root, monkeypatch):
    unlink = os.unlink

    def refuse(name, *, dir_fd):
        if name == b"stuck":
            raise OSError(16, "Device or resource busy", name)
        unlink(name, dir_fd=dir_fd)

    with staged(root) as folders:
        for name in (b"a", b"stuck", b"z"):
            write(os.path.join(stage(root), b"tmp", name))
        with monkeypatch.context() as patched:
            patched.setattr(dirfd.os, "unlink", refuse)
            with pytest.raises(
                TransferFailed, match=r"tmp cannot be cleared .*: stuck: Device or resource busy\. Remove"
            ):
                folders.prepare()
            said = folders.settle(keep_partial=False)
        assert os.listdir(folders.temporary_fd) == ["stuck"]
    assert said == f"{os.fsdecode(stage(root))} cannot be removed: stuck: Device or resource busy. Remove it by hand"
    assert os.stat(root).st_mtime_ns == OLD
