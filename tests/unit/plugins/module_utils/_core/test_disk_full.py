# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file system it is that has no room, and the room of one."""

from __future__ import annotations

import os
from types import SimpleNamespace

from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_full import find_room, full, mount_point


def test_the_file_system_is_named_by_where_it_is_mounted(tmp_path):
    assert mount_point(b"/proc/self/net") == b"/proc"
    assert mount_point(b"/") == b"/"
    found = mount_point(os.fsencode(tmp_path / "not there"))  # most likely because there was no room for it
    assert os.path.ismount(found) and os.fsencode(tmp_path).startswith(found)


def test_the_message_says_where_and_what_to_do():
    said = str(full(b"/proc/self", "No space left on device, at x"))
    for word in ("mounted at /proc ", "df /proc ", "/proc/self is not complete", "Make room", "at x"):
        assert word in said or word.strip() + ")" in said, said


def test_the_room_of_a_file_system_without_a_number_of_inodes_has_none(tmp_path, monkeypatch):
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert find_room(fd).total == find_room(os.fsencode(tmp_path)).total > find_room(fd).free
    finally:
        os.close(fd)
    found = {"f_blocks": 10, "f_bavail": 4, "f_frsize": 512, "f_files": 0, "f_favail": 0, "f_flag": os.ST_RDONLY}
    monkeypatch.setattr(os, "statvfs", lambda _place: SimpleNamespace(**found))
    assert find_room("/x") == (5120, 2048, None, None, True)
    found.update(f_files=7, f_favail=0, f_flag=0)
    assert find_room("/x") == (5120, 2048, 7, 0, False)
