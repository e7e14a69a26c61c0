# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is held is changed, whatever its name means by then, with and without O_PATH."""

from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import inode
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.inode import Inode
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.stat_entry import stat_entry


@pytest.fixture(name="folder", params=["with /proc", "without /proc"])
def _folder(request, tmp_path, monkeypatch):
    monkeypatch.setattr(inode, "HAS_PROC", inode.HAS_PROC and request.param == "with /proc")
    (tmp_path / "file").write_text("file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("name", ["file", "folder"])
def test_what_is_held_is_changed_after_its_name_went_to_another(folder, tmp_path, name):
    path = tmp_path / name
    with Inode(folder, os.fsencode(name), stat_entry(folder, os.fsencode(name), b"")) as held:
        path.rename(tmp_path / "moved")
        path.symlink_to("/etc/passwd")
        held.chmod(0o701)
        held.set_times(5, 7)
        if os.geteuid() == 0:
            held.chown(1234, -1)
        assert held.entry(b"x").mode == 0o701
    status = (tmp_path / "moved").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (0o701, 7)
    assert os.geteuid() != 0 or status.st_uid == 1234
    assert os.stat("/etc/passwd").st_mtime_ns != 7


def test_symlinks_and_special_files_are_changed_themselves(folder, tmp_path):
    before = (tmp_path / "file").stat()
    for name in (b"link", b"fifo"):
        with Inode(folder, name) as held:
            held.set_times(5, 7)
            held.chown(-1, os.getegid())
            assert held.status().st_mtime_ns == 7
    assert (tmp_path / "file").stat() == before


@pytest.mark.parametrize("name", ["file", "folder", "link", "fifo"])
def test_another_inode_than_the_one_expected_is_refused(folder, name):
    with pytest.raises(OSError, match="something else took its place"):
        Inode(folder, os.fsencode(name), stat_entry(folder, b".", b""))


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give files to others")
def test_an_inode_of_the_same_number_and_another_owner_is_refused(folder, tmp_path):
    found = stat_entry(folder, b"file", b"file")
    os.chown(tmp_path / "file", 4242, -1)
    with pytest.raises(OSError, match="something else took its place"):
        Inode(folder, b"file", found)


def test_nothing_stays_open(folder):
    before = os.listdir("/proc/self/fd")
    for name in (b"file", b"folder", b"link", b"fifo", b"."):
        Inode(folder, name).close()
        with pytest.raises(OSError, match="."):
            Inode(folder, b"missing")
    assert os.listdir("/proc/self/fd") == before
