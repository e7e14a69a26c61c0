# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owner, mode, ACLs, xattrs and times arrive, and what cannot arrive is said."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ids import IdMap, acl_ids
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import xattr
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.accounts import (
    group_id,
    group_name,
    user_id,
    user_name,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.inode import Inode
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.metadata import (
    GROUP_WITHHELD,
    SETID_WITHHELD,
    Powers,
    apply,
    chmod,
    differences,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.stat_entry import stat_entry

ALL = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
needs_acl = pytest.mark.skipif(not shutil.which("setfacl"), reason="the acl package is missing")
YEAR = 365 * 86400 * 10**9


@pytest.fixture
def folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def look(fd, name):
    return stat_entry(fd, name.encode(), name.encode(), xattrs=True)


def transplant(fd, source, dest, preserve=ALL, ids=None, new=False):
    """Copy the attributes of ``source`` to ``dest``, check that nothing is left to do, and return the problems."""
    ids = ids or IdMap()
    wanted = look(fd, source)
    problems = apply(fd, dest.encode(), wanted, None if new else look(fd, dest), preserve, ids)
    if not problems:
        assert differences(wanted, look(fd, dest), preserve, ids, Powers.of_this_process()) == frozenset()
    return problems


def pair(tmp_path, make=lambda path: open(path, "w").close()):
    make(tmp_path / "s")
    make(tmp_path / "d")


MAKERS = {
    "file": lambda path: open(path, "w").close(),
    "directory": os.mkdir,
    "fifo": os.mkfifo,
    "symlink": lambda path: os.symlink("nowhere", path),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize(
    "mtime_ns", [1, -1, -YEAR * 60 - 123456789, 123456789012345678, 70 * YEAR, 2**31 * 10**9 + 5], ids=str
)
def test_times_arrive_to_the_nanosecond(tmp_path, folder, make, new, mtime_ns):
    pair(tmp_path, make)
    os.utime(tmp_path / "s", ns=(0, mtime_ns), follow_symlinks=False)
    assert transplant(folder, "s", "d", new=new) == []
    assert os.lstat(tmp_path / "d").st_mtime_ns == mtime_ns


@pytest.mark.parametrize("make", [make for name, make in MAKERS.items() if name != "symlink"])
@pytest.mark.parametrize("mode", [0o000, 0o644, 0o777, 0o4755, 0o2755, 0o6711, 0o1777, 0o2070])
def test_modes_arrive(tmp_path, folder, make, mode):
    pair(tmp_path, make)
    os.chmod(tmp_path / "s", mode)
    assert transplant(folder, "s", "d") == []
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == mode


@as_root
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("new", [False, True])
def test_owners_arrive_and_setuid_survives_them(tmp_path, folder, make, new):
    pair(tmp_path, make)
    os.chown(tmp_path / "s", 4_000_000_001, 12345, follow_symlinks=False)
    if make is not MAKERS["symlink"]:
        os.chmod(tmp_path / "s", 0o6755)
        os.chmod(tmp_path / "d", 0o6755)  # so it is chown alone that could take it away
    assert transplant(folder, "s", "d", new=new) == []
    found = os.lstat(tmp_path / "d")
    assert (found.st_uid, found.st_gid) == (4_000_000_001, 12345)


@as_root
@pytest.mark.parametrize("new", [False, True])
def test_capabilities_survive_a_change_of_owner(tmp_path, folder, new):
    pair(tmp_path)
    os.chown(tmp_path / "s", 1000, 1000)
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    for name in ("s", "d"):
        os.setxattr(tmp_path / name, "security.capability", capability)
    assert transplant(folder, "s", "d", new=new) == []
    assert os.getxattr(tmp_path / "d", "security.capability") == capability


@as_root
def test_a_capability_that_the_source_has_not_goes(tmp_path, folder):
    pair(tmp_path)
    os.setxattr(tmp_path / "d", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    assert transplant(folder, "s", "d") == []
    assert os.listxattr(tmp_path / "d") == []


def test_xattrs_arrive_and_stale_ones_go(tmp_path, folder):
    pair(tmp_path)
    os.setxattr(tmp_path / "s", b"user.\xff\x01", b"\0" * 1000)
    os.setxattr(tmp_path / "s", "user.empty", b"")
    os.setxattr(tmp_path / "d", "user.stale", b"x")
    os.setxattr(tmp_path / "d", "user.empty", b"not")
    assert transplant(folder, "s", "d", preserve=frozenset(["acls"])) == []
    assert "user.stale" in os.listxattr(tmp_path / "d")
    assert transplant(folder, "s", "d") == []
    assert dict(look(folder, "d").xattrs) == {b"user.\xff\x01": b"\0" * 1000, b"user.empty": b""}


@as_root
def test_the_hosts_own_security_attributes_stay(tmp_path, folder):
    pair(tmp_path)
    os.setxattr(tmp_path / "d", "security.longhaul", b"label")
    os.setxattr(tmp_path / "d", "trusted.stale", b"x")
    assert transplant(folder, "s", "d") == []
    assert os.listxattr(tmp_path / "d") == ["security.longhaul"]


@as_root
def test_xattrs_of_a_symlink_are_its_own(tmp_path, folder):
    (tmp_path / "target").touch()
    pair(tmp_path, lambda path: os.symlink("target", path))
    os.setxattr(tmp_path / "s", "trusted.x", b"1", follow_symlinks=False)
    assert transplant(folder, "s", "d") == []
    assert os.getxattr(tmp_path / "d", "trusted.x", follow_symlinks=False) == b"1"
    assert os.listxattr(tmp_path / "target") == []


@needs_acl
@pytest.mark.parametrize("new", [False, True])
def test_acls_arrive_and_stale_ones_go(tmp_path, folder, new):
    pair(tmp_path, os.mkdir)
    subprocess.run(["setfacl", "-m", "u:1234:rwx,g:77:r,m::rx,d:u:4321:r", str(tmp_path / "s")], check=True)
    subprocess.run(["setfacl", "-m", "u:99:rwx,d:u:98:r", str(tmp_path / "d")], check=True)
    assert transplant(folder, "s", "d", new=new) == []
    assert look(folder, "d").xattrs == look(folder, "s").xattrs
    subprocess.run(["setfacl", "-b", str(tmp_path / "s")], check=True)
    os.chmod(tmp_path / "s", 0o705)
    assert transplant(folder, "s", "d", new=new) == []
    assert look(folder, "d").xattrs == ()
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == 0o705


@needs_acl
def test_an_acl_that_was_inherited_goes(tmp_path, folder):
    (tmp_path / "s").touch(mode=0o640)
    subprocess.run(["setfacl", "-m", "d:u:1234:rwx,d:g::rwx", str(tmp_path)], check=True)
    (tmp_path / "d").touch()
    assert b"system.posix_acl_access" in dict(look(folder, "d").xattrs)
    assert transplant(folder, "s", "d", new=True) == []
    assert look(folder, "d").xattrs == ()
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == stat.S_IMODE(os.stat(tmp_path / "s").st_mode)


def test_only_what_is_preserved_is_touched(tmp_path, folder):
    pair(tmp_path)
    os.chmod(tmp_path / "s", 0o600)
    os.chmod(tmp_path / "d", 0o644)
    os.utime(tmp_path / "s", ns=(5, 5))
    before = os.stat(tmp_path / "d")
    wanted, found = look(folder, "s"), look(folder, "d")
    assert apply(folder, b"d", wanted, found, frozenset()) == []
    after = os.stat(tmp_path / "d")
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert differences(wanted, found, frozenset()) == frozenset()
    assert apply(folder, b"d", wanted, found, ALL - {"times"}) == []
    assert os.stat(tmp_path / "d").st_mtime_ns == before.st_mtime_ns
    assert apply(folder, b"d", wanted, found, frozenset(["times"])) == []
    assert os.stat(tmp_path / "d").st_mtime_ns == 5


def test_the_root_itself(tmp_path, folder):
    wanted = stat_entry(folder, b".", b"")._replace(mode=0o751, mtime_ns=7)
    assert apply(folder, b".", wanted, None, ALL) == []
    assert (stat.S_IMODE(os.stat(tmp_path).st_mode), os.stat(tmp_path).st_mtime_ns) == (0o751, 7)


def test_a_symlink_is_not_followed(tmp_path, folder):
    (tmp_path / "target").touch(mode=0o600)
    before = os.stat(tmp_path / "target")
    os.symlink("target", tmp_path / "link")
    wanted = look(folder, "target")._replace(mode=0o701, mtime_ns=1, xattrs=((b"user.x", b"1"),))
    problems = apply(folder, b"link", wanted, None, ALL)
    assert [text.split(" not set")[0] for text in problems] == ["mode 0701", "xattr user.x"]
    after = os.stat(tmp_path / "target")
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    with pytest.raises(OSError, match="."):
        chmod(folder, b"link", 0o777)


def test_times_beyond_what_a_system_stores_are_said(tmp_path, folder):
    (tmp_path / "d").touch()
    wanted = look(folder, "d")._replace(mtime_ns=2**63 * 10**9)
    problems = apply(folder, b"d", wanted, None, frozenset(["times"]))
    assert problems == ["time not set: out of the range that the system can store"]


@as_root
def test_immutable_files_are_said(tmp_path, folder):
    (tmp_path / "d").touch()
    if subprocess.run(["chattr", "+i", str(tmp_path / "d")], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("no immutable files here")
    try:
        wanted = look(folder, "d")._replace(mode=0o123, uid=5, mtime_ns=1)
        problems = apply(folder, b"d", wanted, None, ALL)
    finally:
        subprocess.run(["chattr", "-i", str(tmp_path / "d")], check=True)
    assert [text.split(" not set: ")[1] for text in problems] == ["Operation not permitted"] * 3


@as_root
def test_a_destination_without_xattrs_says_so(tmp_path, folder):
    """ramfs has neither xattrs nor ACLs."""
    (tmp_path / "mnt").mkdir()
    (tmp_path / "s").touch()
    os.setxattr(tmp_path / "s", "user.x", b"1")
    subprocess.run(["setfacl", "-m", "u:1234:r", str(tmp_path / "s")], check=True)
    if subprocess.run(["mount", "-t", "ramfs", "none", str(tmp_path / "mnt")], check=False).returncode != 0:
        pytest.skip("no mounts here")
    try:
        (tmp_path / "mnt" / "d").touch()
        fd = os.open(tmp_path / "mnt", os.O_RDONLY)
        problems = apply(fd, b"d", look(folder, "s"), None, ALL)
        os.close(fd)
    finally:
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)
    assert problems == [
        "xattr user.x not set: the file system has none",
        "ACL system.posix_acl_access not set: the file system has none",
    ]


@as_root
def test_a_user_without_rights_sets_what_it_may_and_says_what_not(tmp_path, folder, as_nobody):
    pair(tmp_path)
    os.chown(tmp_path / "s", 1000, 1000)
    os.chmod(tmp_path / "s", 0o400)
    os.setxattr(tmp_path / "s", "trusted.x", b"1")
    os.setxattr(tmp_path / "s", "user.x", b"1")
    os.utime(tmp_path / "s", ns=(3, 3))
    wanted = look(folder, "s")
    with as_nobody(tmp_path):
        powers = Powers.of_this_process()
        assert differences(wanted, look(folder, "d"), ALL, powers=powers) == {"mode", "times", "xattrs"}
        problems = apply(folder, b"d", wanted, look(folder, "d"), ALL)
        # What it has no power over is no difference, or every run would try again.
        assert differences(wanted, look(folder, "d"), ALL, powers=powers) == frozenset()
    assert problems == [
        "owner 1000 not set: only root may give files away",
        GROUP_WITHHELD,
        "xattr trusted.x not set: only root may",
    ]
    found = os.stat(tmp_path / "d")
    assert (found.st_uid, stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (65534, 0o400, 3)
    assert os.listxattr(tmp_path / "d") == ["user.x"]


@as_root
def test_setuid_is_not_lent_to_another_owner(tmp_path, folder, as_nobody):
    pair(tmp_path)
    os.chown(tmp_path / "s", 1000, 1000)
    os.chmod(tmp_path / "s", 0o6755)
    wanted = look(folder, "s")
    # If root does not preserve the owner, it would become a file that runs as root.
    preserve = ALL - {"owner", "group"}
    problems = apply(folder, b"d", wanted, None, preserve)
    assert problems == [SETID_WITHHELD]
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == 0o755
    assert differences(wanted, look(folder, "d"), preserve) == frozenset()
    assert differences(wanted, look(folder, "d"), ALL) == {"owner", "group", "mode"}
    with as_nobody(tmp_path):
        apply(folder, b"d", wanted, None, ALL)
        assert differences(wanted, look(folder, "d"), ALL, powers=Powers.of_this_process()) == frozenset()
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == 0o755


def test_umask_has_no_say(tmp_path, folder):
    pair(tmp_path)
    os.chmod(tmp_path / "s", 0o666)
    old = os.umask(0o077)
    try:
        assert transplant(folder, "s", "d") == []
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == 0o666


def test_every_difference_is_named(tmp_path, folder):
    (tmp_path / "d").touch()
    found = look(folder, "d")
    cases = {
        "owner": {"uid": found.uid + 1},
        "group": {"gid": found.gid + 1},
        "mode": {"mode": found.mode ^ 0o001},
        "times": {"mtime_ns": found.mtime_ns + 1},
        "xattrs": {"xattrs": ((b"user.x", b""),)},
        "acls": {"xattrs": ((b"system.posix_acl_access", b""),)},
    }
    for name, change in cases.items():
        assert differences(found._replace(**change), found, ALL) == {name}
        assert differences(found, found._replace(**change), ALL) == {name}


def test_numbers_stay_numbers_without_names():
    ids = IdMap()
    assert [ids.uid(n) for n in (0, 5, 4_000_000_000)] == [0, 5, 4_000_000_000]


def test_a_table_maps_each_number_once():
    ids = IdMap({1001: 1002, 1002: 1001, 7: 1001}, {9: 10, 10: 11})
    assert [ids.uid(n) for n in (1001, 1002, 7, 9, 0)] == [1002, 1001, 1001, 9, 0]
    assert [ids.gid(n) for n in (9, 10, 11, 7)] == [10, 11, 11, 7]
    again = IdMap.of(ids.as_table())
    assert [again.uid(n) for n in (1001, 1002, 7)] == [1002, 1001, 1001] and again.gid(9) == 10
    ids.learn({5: 6}, {})
    assert (ids.uid(5), again.uid(5)) == (6, 5)


def test_names_are_those_of_the_host():
    nobody, daemon = pwd.getpwnam("nobody").pw_uid, grp.getgrnam("daemon").gr_gid
    assert (user_name(nobody), group_name(daemon)) == ("nobody", "daemon")
    assert (user_id("nobody"), group_id("daemon")) == (nobody, daemon)
    assert (user_name(3_999_999_999), group_name(3_999_999_999)) == ("", "")
    assert (user_id("no-such-user-here"), group_id("no-such-group"), user_id("a\0b"), group_id("a\0b")) == (None,) * 4


@needs_acl
def test_ids_inside_acls_are_mapped_too(tmp_path, folder):
    pair(tmp_path)
    subprocess.run(["setfacl", "-m", "u:70001:r,u:70002:rw,g:70003:r", str(tmp_path / "s")], check=True)
    value = dict(look(folder, "s").xattrs)[b"system.posix_acl_access"]
    assert acl_ids(value) == ([70001, 70002], [70003])
    ids = IdMap({70002: 5}, {70003: 6})
    assert transplant(folder, "s", "d", ids=ids, new=True) == []
    mapped = dict(look(folder, "d").xattrs)[b"system.posix_acl_access"]
    assert acl_ids(mapped) == ([5, 70001], [6])
    assert mapped == ids.acl(value)
    assert ids.acl(b"rubbish") == b"rubbish"


@needs_acl
def test_two_users_who_become_one_have_what_either_had(tmp_path, folder):
    pair(tmp_path)
    subprocess.run(["setfacl", "-m", "u:70001:r,u:70002:w,g:70001:x", str(tmp_path / "s")], check=True)
    assert transplant(folder, "s", "d", ids=IdMap({70001: 70009, 70002: 70009}), new=True) == []
    said = subprocess.run(["getfacl", "-pcn", str(tmp_path / "d")], check=True, stdout=subprocess.PIPE).stdout.decode()
    assert "user:70009:rw-\n" in said and "group:70001:--x\n" in said


def test_without_xattr_calls_there_are_none(tmp_path, folder, monkeypatch):
    (tmp_path / "f").touch()
    os.setxattr(tmp_path / "f", "user.x", b"1")
    monkeypatch.setattr(xattr, "SUPPORTED", False)  # as on FreeBSD
    assert xattr.read(folder, b"f") == ()
    with Inode(folder, b"f") as inode:
        assert inode.entry(b"f", xattrs=True).xattrs == ()
        inode.remove_xattr(b"user.x")
        with pytest.raises(OSError, match="no extended attributes"):
            inode.set_xattr(b"user.y", b"1")
