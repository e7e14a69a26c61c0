# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers of files whose times no 64 bits of nanoseconds hold, or no file system at the destination."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
METHODS = [
    "stream",
    "tar_nc",
    *(pytest.param(name, marks=pytest.mark.skipif(SSHD is None, reason="needs sshd")) for name in ("scp", "sftp")),
]
YEAR_2300, YEAR_1500 = 10_413_792_000, -14_831_769_600
BEYOND_EXT4 = 16_725_225_600  # 2500

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, and runs sshd")


def pair_of(trees, method, **changes):
    """Make both ends of a transfer."""
    pair = Pair(trees[2], trees[0], trees[1], settings(method, encrypt=False, **changes))
    if method in ("scp", "sftp"):
        pair.use_ssh()
    return pair


@pytest.mark.often(3)
@needs_root
@pytest.mark.parametrize("serial", ["one", "several"])
@pytest.mark.parametrize("method", METHODS)
def test_times_far_in_the_future_and_in_the_past(trees, method, serial):
    source, dest = trees[:2]
    with small_disk(source, "size=10m"), small_disk(dest, "size=10m"):  # tmpfs stores any time
        (source / "folder").mkdir()
        (source / "link").symlink_to("folder")
        for name, seconds in (("future", YEAR_2300), ("folder/past", YEAR_1500), ("folder/edge", 2**63 // 10**9)):
            (source / name).write_bytes(name.encode() * (1 if serial == "one" else 100_000))
            os.utime(source / name, ns=(0, seconds * 10**9 + 987_654_321))
        os.utime(source / "link", ns=(0, YEAR_2300 * 10**9), follow_symlinks=False)
        os.utime(source / "folder", ns=(0, YEAR_2300 * 10**9 + 1))
        outcome = pair_of(trees, method).run()
        assert outcome.get("errors") == [], outcome
        assert differences(source, dest, ignore=["mtime"]) == []
        assert differences(source, dest) == []
        again = pair_of(trees, method, checksum=True).run()
        assert again["errors"] == [] and not again["changed"]


@needs_root
def test_files_of_earlier_snapshots_with_far_times_are_linked(trees, tmp_path):
    source, dest = trees[:2]
    (source / "far").write_bytes(b"far")
    os.utime(source / "far", (0, YEAR_2300))
    old = tmp_path / "old"
    subprocess.run(["cp", "-a", str(source), str(old)], check=True)
    outcome = pair_of(trees, "stream", link_dest=[str(old)]).run()
    assert outcome["errors"] == [] and outcome["bytes_sent"] == 0
    assert (dest / "far").stat().st_ino == (old / "far").stat().st_ino


@needs_root
@pytest.mark.parametrize("kind", ["small", "large", "folder", "symlink"])
def test_a_time_that_the_file_system_cannot_store_is_told(trees, kind):
    source, dest = trees[:2]
    probe = dest / "probe"
    probe.write_bytes(b"")
    os.utime(probe, (0, BEYOND_EXT4))
    if probe.stat().st_mtime == BEYOND_EXT4:
        pytest.skip("this file system stores the year 2500")
    probe.unlink()
    with small_disk(source, "size=10m"):
        if kind == "folder":
            (source / "far").mkdir()
        elif kind == "symlink":
            (source / "far").symlink_to("x")
        else:
            (source / "far").write_bytes(b"x" * (1 if kind == "small" else 1_000_000))
        os.utime(source / "far", (0, BEYOND_EXT4), follow_symlinks=False)
        outcome = pair_of(trees, "stream").run()
        assert [error["path"] for error in outcome["errors"]] == ["far"]
        assert "the file system cannot store it" in outcome["errors"][0]["reason"]
        assert differences(source, dest, ignore=["mtime"]) == []  # the contents are there all the same
