# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file system it is that has no room."""

from __future__ import annotations

import os

from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_full import full, mount_point


def test_the_file_system_is_named_by_where_it_is_mounted(tmp_path):
    assert mount_point(b"/proc/self/net") == b"/proc"
    assert mount_point(b"/") == b"/"
    found = mount_point(os.fsencode(tmp_path / "not there"))  # most likely because there was no room for it
    assert os.path.ismount(found) and os.fsencode(tmp_path).startswith(found)


def test_the_message_says_where_and_what_to_do():
    said = str(full(b"/proc/self", "No space left on device, at x"))
    for word in ("mounted at /proc ", "df /proc ", "/proc/self is not complete", "Make room", "at x"):
        assert word in said or word.strip() + ")" in said, said
