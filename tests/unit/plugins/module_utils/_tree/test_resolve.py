# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which symbolic links a path is followed through, with real folders, owners and users."""

from __future__ import annotations

import errno
import os
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import resolve as resolving
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.resolve import (
    ForeignLink,
    may_follow,
    real_path,
    resolve,
)
from ansible_collections.longhaul.fleet.tests.support.swapper import HAS_EXCHANGE, swapping

WEB, OTHER, JOB = 1234, 1235, 1236
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give files to other users")


@pytest.mark.parametrize(
    ("owner", "entered", "job_uid", "follows"),
    [
        (0, [WEB, 0], 0, True),
        (0, [WEB], JOB, True),
        (JOB, [0, WEB], JOB, True),
        (WEB, [WEB, WEB], 0, True),
        (WEB, [WEB, 0], 0, False),
        (WEB, [0, WEB], 0, False),
        (WEB, [OTHER], 0, False),
        (WEB, [JOB], JOB, False),
        (JOB, [0], 0, False),
    ],
)
def test_a_link_is_followed_by_its_owner_and_those_of_what_it_leads_to(owner, entered, job_uid, follows):
    assert may_follow(owner, entered, job_uid) is follows


@pytest.fixture(name="place")
def _place(tmp_path):
    """Return root's folder with a site of WEB, an app that WEB deploys, and root's victim."""
    for folder, owner in {
        "home": 0,
        "home/web": WEB,
        "home/web/own": WEB,
        "home/web/own/deep": WEB,
        "home/web/given": 0,
        "home/web/others": OTHER,
        "app": WEB,
        "app/releases": WEB,
        "app/releases/42": WEB,
        "app/releases/42/public": WEB,
        "victim": 0,
        "victim/below": 0,
        "victim/own": WEB,
        "sticky": 0,
        "sticky/own": WEB,
    }.items():
        (tmp_path / folder).mkdir()
        os.chown(tmp_path / folder, owner, owner)
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "victim/file").write_text("precious")
    (tmp_path / "home/web/own/file").write_text("own")
    os.chown(tmp_path / "home/web/own/file", WEB, WEB)
    return tmp_path


def link(path, target, owner=WEB):
    path.symlink_to(target)
    os.chown(path, owner, owner, follow_symlinks=False)


def real(path):
    return os.fsdecode(real_path(os.fsencode(path)))


@as_root
@pytest.mark.parametrize(
    ("target", "rest"),
    [
        ("{place}/victim", ""),
        ("{place}/victim", "/below"),
        ("{place}/victim", "/new"),
        ("{place}/victim/new", ""),
        ("{place}/victim/file", ""),
        ("../../victim", ""),
        ("own/../../../victim", ""),
        ("{place}/victim/own", ""),  # which only root can reach, for all that a path tells
        (".", "/given"),
        ("own", "/../given"),
        ("own", "/../../../victim"),
        ("own", "/../.."),
        ("..", ""),
        ("/", ""),
        ("others", ""),
        ("given", ""),
        ("/etc", ""),
        ("second", ""),
    ],
)
def test_a_link_that_leads_to_what_its_owner_does_not_own_is_refused_by_name(place, target, rest):
    link(place / "home/web/second", place / "victim")
    link(place / "home/web/www", target.format(place=place))
    with pytest.raises(ForeignLink) as refused:
        resolve(os.fsencode(f"{place}/home/web/www{rest}"))
    said = str(refused.value)
    assert f"{place}/home/web/" in said and "(ls -ld " in said and "user id 1234" in said, said


@as_root
@pytest.mark.parametrize(
    ("at", "target", "rest", "expected"),
    [
        ("app/current", "releases/42", "", "app/releases/42"),
        ("app/current", "releases/42/", "/public", "app/releases/42/public"),
        ("app/current", "{place}/app/releases/42", "", "app/releases/42"),
        ("app/current", "./releases/../releases/42", "/new/deeper", "app/releases/42/new/deeper"),
        ("app/current", "releases/43", "", "app/releases/43"),
        ("app/releases/42/up", "../..", "", "app"),
        ("app/releases/42/self", ".", "", "app/releases/42"),
        ("app/link", "../home/web/own/file", "", None),
        ("home/web/www", "own/file", "", "home/web/own/file"),
        ("home/web/www", "own", "/deep/..", "home/web/own"),
        ("sticky/link", "own", "", "sticky/own"),
        ("sticky/link", "../home/web/own", "", None),
    ],
)
def test_what_a_user_keeps_among_his_own_folders_is_followed(place, at, target, rest, expected):
    link(place / at, target.format(place=place))
    if expected is None:  # another's or root's folder is entered that is not on the way
        with pytest.raises(ForeignLink):
            real(f"{place}/{at}{rest}")
    else:
        assert real(f"{place}/{at}{rest}") == f"{place}/{expected}"


@as_root
def test_a_link_in_a_sticky_folder_leads_nowhere_else(place):
    link(place / "sticky/link", place / "victim")
    with pytest.raises(ForeignLink, match=rf"{place}/sticky/link is a symbolic link of user id 1234 to {place}/victim"):
        real(place / "sticky/link")
    link(place / "sticky/again", ".")
    with pytest.raises(ForeignLink):
        real(place / "sticky/again")


@as_root
def test_roots_links_lead_anywhere_and_hide_no_other(place):
    link(place / "home/web/www", place / "victim", 0)
    assert real(place / "home/web/www/below") == f"{place}/victim/below"
    link(place / "to-web", place / "home/web", 0)
    link(place / "home/web/bad", "www")
    for path in ("to-web/bad", "home/web/bad"):
        with pytest.raises(ForeignLink, match=f"{place}/home/web/bad is a symbolic link"):
            real(place / path)


@as_root
def test_another_user_follows_his_own_links_and_roots(place):
    link(place / "home/web/own/jobs", place / "victim", JOB)
    link(place / "home/web/own/webs", place / "victim", WEB)
    place.chmod(0o755)
    for folder in place.parents:
        folder.chmod(folder.stat().st_mode | 0o011)
    os.seteuid(JOB)
    try:
        assert real(place / "home/web/own/jobs") == f"{place}/victim"
        with pytest.raises(ForeignLink, match=f"root or user id {JOB}"):
            real(place / "home/web/own/webs")
    finally:
        os.seteuid(0)


@as_root
def test_the_owner_of_a_mounted_file_system_counts(place):
    (place / "mnt").mkdir()
    for owner, follows in ((WEB, True), (0, False), (OTHER, False)):
        options = ["-t", "tmpfs", "-o", f"size=1m,uid={owner},mode=755", "none", str(place / "mnt")]
        if subprocess.run(["mount", *options], check=False).returncode:
            pytest.skip("no mounts here")
        try:
            (place / "app/current").unlink(missing_ok=True)
            link(place / "app/current", "../mnt")
            if follows:
                assert real(place / "app/current") == f"{place}/mnt"
            else:
                with pytest.raises(ForeignLink):
                    real(place / "app/current")
        finally:
            subprocess.run(["umount", str(place / "mnt")], check=True)


@as_root
def test_a_system_without_paths_alone_follows_the_same_links(place, monkeypatch):
    monkeypatch.setattr(resolving, "_PATH", 0)
    monkeypatch.setattr(resolving, "_FOLDER", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
    link(place / "app/current", "releases/42")
    link(place / "home/web/www", place / "victim")
    assert real(place / "app/current/public") == f"{place}/app/releases/42/public"
    with pytest.raises(ForeignLink):
        real(place / "home/web/www")


def described(path):
    found = resolve(os.fsencode(path))
    os.close(found.fd)
    return found


def test_what_is_missing_stays_as_it_is_written(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "nowhere").symlink_to("b/c")
    for path, expected, dangling in [
        ("a/x/y", "a/x/y", False),
        ("link/x//y/.", "a/x/y", False),
        ("nowhere", "b/c", True),
        ("nowhere/d", "b/c/d", False),
        ("a/x/../y", "a/y", False),
    ]:
        found = described(os.path.join(tmp_path, path))
        assert (found.status, found.error, found.dangling) == (None, None, dangling), path
        assert os.fsdecode(found.real) == f"{tmp_path}/{expected}"
        assert os.fsdecode(found.folder) == f"{tmp_path}/{'a' if expected[0] == 'a' else ''}".rstrip("/")


def test_what_a_path_leads_to_is_as_the_kernel_finds_it(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/file").touch()
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "chain").symlink_to("link/")
    for path in ("a", "link", "chain", "chain/..", "link/../file", "a/../chain/./..", "/", "/..", "a/b/../../a//file"):
        found = described(os.path.join(tmp_path, path))
        assert os.path.samestat(found.status, os.stat(os.path.join(tmp_path, path)))
        assert os.fsdecode(found.real) == os.path.realpath(os.path.join(tmp_path, path)) == os.fsdecode(found.existing)


def test_loops_files_on_the_way_and_long_names_are_errors_of_the_path(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "ping").symlink_to("pong")
    (tmp_path / "pong").symlink_to("ping")
    (tmp_path / "file").touch()
    for path, number in [
        ("loop", errno.ELOOP),
        ("ping/x", errno.ELOOP),
        ("file/x", errno.ENOTDIR),
        ("x" * 256, errno.ENAMETOOLONG),
    ]:
        found = described(tmp_path / path)
        assert found.error is not None and found.error.errno == number and found.status is None
        with pytest.raises(OSError, match=os.strerror(number)):
            real_path(os.fsencode(tmp_path / path))
    assert described(tmp_path / "file/x").existing == os.fsencode(tmp_path / "file")
    for number in range(41):
        (tmp_path / f"n{number}").symlink_to(f"n{number + 1}")
    (tmp_path / "n41").touch()
    assert described(tmp_path / "n0").status is None
    assert described(tmp_path / "n1").real == os.fsencode(tmp_path / "n41")


def test_no_descriptor_stays_open(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "link").symlink_to("/")
    before = os.listdir("/proc/self/fd")
    for path in ("loop", "deep/er/../er", "link", "deep/missing", "."):
        described(os.path.join(tmp_path, path))
    assert len(os.listdir("/proc/self/fd")) == len(before)


@as_root
@pytest.mark.skipif(not HAS_EXCHANGE, reason="cannot run here: this C library has no renameat2")
def test_a_user_who_exchanges_links_and_folders_leads_nowhere(place):
    web = place / "home/web"
    link(web / "www", place / "victim")
    (web / "data").mkdir()
    (web / "data/below").mkdir()
    os.chown(web / "data", WEB, WEB)
    link(web / "trusted", "own", 0)
    outcomes = set()
    for first, second in (("www", "data"), ("www", "trusted")):
        with swapping(web, first, second, WEB):
            for _round in range(500):
                try:
                    found = described(web / first / "below")
                except ForeignLink:
                    outcomes.add("refused")
                    continue
                assert not found.real.startswith(os.fsencode(place / "victim")), found
                outcomes.add("followed")
    assert outcomes == {"refused", "followed"}
