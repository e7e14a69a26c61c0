# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers that do not preserve everything: what is new gets what its folder and the umask give, as by rsync."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other groups"),
    pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync as the judge"),
]
NOBODY = 0xFFFFFFFF  # the id of an entry that names nobody


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Return the value of an attribute that holds an ACL."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def give_default_acl(folder: Path) -> None:
    value = acl((1, 7, NOBODY), (2, 7, 1234), (4, 5, NOBODY), (0x10, 7, NOBODY), (0x20, 0, NOBODY))
    os.setxattr(folder, "system.posix_acl_default", value)


def make_source(source: Path) -> None:
    """Make files, folders and specials of several modes, one of them setuid, and all of another user."""
    for name, mode in {"d": 0o755, "d/ro": 0o555, "d/ro/deep": 0o750, "open": 0o777, "closed": 0o700}.items():
        (source / name).mkdir()
        (source / name / "file").write_text(name)
        (source / name / "file").chmod(0o640)
        (source / name).chmod(mode)
    for name, mode in {"f": 0o666, "suid": 0o4755, "x": 0o711, "wide": 0o777}.items():
        (source / name).write_text(name)
        (source / name).chmod(mode)
    (source / "large").write_bytes(b"large" * 200_000)
    (source / "large").chmod(0o664)
    os.mkfifo(source / "fifo")
    (source / "fifo").chmod(0o666)
    for path in source.rglob("*"):
        os.chown(path, 1000, 1001, follow_symlinks=False)
    (source / "suid").chmod(0o4755)
    for path in (*source.rglob("*"), source):
        os.utime(path, (0, 10**9))  # rsync takes times of the same second for equal


OPTIONS = {"permissions": "-p", "times": "-t", "devices": "-D", "group": "-g", "owner": "-o", "sparse": "-S"}


def by_rsync(source: Path, folder: Path, preserve: list[str]) -> None:
    """Transfer as rsync does."""
    subprocess.run(["rsync", "-rl", *(OPTIONS[name] for name in preserve), f"{source}/", str(folder)], check=True)


@pytest.mark.often(8)
@pytest.mark.parametrize("parent", ["plain", "setgid", "default ACL"])
@pytest.mark.parametrize(
    "preserve",
    [
        ["times", "devices"],
        ["permissions", "times", "devices"],
        ["times", "owner", "devices"],
        ["group", "times", "devices"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_new_is_as_rsync_makes_it(trees, method, preserve, parent):
    source, dest, work = trees
    make_source(source)
    if parent == "setgid" and "permissions" in preserve:
        # Else rsync, which sets modes sooner, takes the bit of a folder away before there is anything in it.
        for folder in (source, *(path for path in source.rglob("*") if path.is_dir())):
            os.chown(folder, 0, 55)
            folder.chmod(folder.stat().st_mode | 0o2000)
    judge = dest.with_name("judge")
    judge.mkdir()
    for folder in (dest, judge):
        if parent == "setgid":
            os.chown(folder, 0, 55)
            folder.chmod(0o2775)
        elif parent == "default ACL":
            give_default_acl(folder)
    by_rsync(source, judge, preserve)
    pair = Pair(work, source, dest, settings(method, encrypt=False, preserve=preserve))
    if method in ("scp", "sftp"):
        pair.use_ssh()
    outcome = pair.run()
    skip = [b"suid"] if "permissions" in preserve and "owner" not in preserve else []  # a setuid file is not lent
    assert [one["path"] for one in outcome["errors"] if one["path"] != "suid"] == [], outcome
    assert differences(judge, dest, skip=skip, ignore=["sparse"]) == []
    if skip:
        assert not (dest / "suid").stat().st_mode & 0o6000


@pytest.mark.often(4)
@pytest.mark.parametrize("parent", ["plain", "setgid", "default ACL"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_updated_keeps_its_mode(trees, method, parent):
    source, dest, work = trees
    make_source(source)
    for path, mode in ((dest / "f", 0o4751), (dest / "large", 0o2604)):
        path.write_text("older")
        os.chown(path, 0, 55)
        path.chmod(mode)
    if parent == "setgid":
        os.chown(dest, 0, 55)
        dest.chmod(0o2775)
    elif parent == "default ACL":
        give_default_acl(dest)
    pair = Pair(work, source, dest, settings(method, encrypt=False, preserve=["times"]))
    if method in ("scp", "sftp"):
        pair.use_ssh()
    assert pair.run()["errors"] == []
    small, large = (dest / "f").stat(), (dest / "large").stat()
    assert (small.st_mode & 0o7777, small.st_uid) == (0o4751, 0)  # the owner is the same
    same_group = parent == "setgid"
    assert (large.st_mode & 0o7777, large.st_gid) == ((0o2604, 55) if same_group else (0o604, 0))
