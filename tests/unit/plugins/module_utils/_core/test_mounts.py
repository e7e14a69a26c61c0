# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts as the kernel lists them."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import mounts
from ansible_collections.longhaul.fleet.plugins.module_utils._core.mounts import (
    most_places,
    parse_mounts,
    path_on_device,
)

TABLE = r"""
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 8:2 / /srv rw - ext4 /dev/sdb1 rw
24 23 8:2 /a /srv/tree/b rw - ext4 /dev/sdb1 rw
25 23 8:3 / /srv/tree/other rw - ext4 /dev/sdc1 rw
26 23 8:2 /a /srv/treetop rw - ext4 /dev/sdb1 rw
27 22 8:1 /x /srv/with\040blank rw - ext4 /dev/sda1 rw
28 25 8:3 /p /srv/tree/other/q rw - ext4 /dev/sdc1 rw
29 25 8:3 /p /srv/tree/other/r rw - ext4 /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("root", "count"),
    [
        *(("/home", 1), ("/srv/with blank", 1), ("/srv/tree/b", 1), ("/srv/treetop", 1)),
        *(("/srv/tree", 3), ("/srv", 3), ("/", 3), ("/srv/tree/other", 3), ("/srv/tree/other/q", 1)),
    ],
)
def test_how_often_a_file_can_be_in_a_tree(root, count):
    assert most_places(parse_mounts(TABLE), root) == count


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "8:1:/"),
        ("/home/x", "8:1:/home/x"),
        ("/srv", "8:2:/"),
        ("/srv/tree/a", "8:2:/tree/a"),
        ("/srv/tree/b", "8:2:/a"),  # a bind mount of /srv/a
        ("/srv/tree/b/new/one", "8:2:/a/new/one"),
        ("/srv/a/new/one", "8:2:/a/new/one"),
        ("/srv/treetop", "8:2:/a"),
        ("/srv/tree/other/q/y", "8:3:/p/y"),
        ("/srv/with blank/y", "8:1:/x/y"),
    ],
)
def test_a_folder_and_its_bind_mounts_have_one_path_on_the_device(path, expected):
    assert path_on_device(parse_mounts(TABLE), path) == expected
    assert path_on_device([], path) == ""


def test_what_the_system_does_not_say_counts_as_one_place():
    assert most_places([], "/srv") == 1


def test_the_mount_points_inside_a_tree(monkeypatch, tmp_path):
    lines = [
        r"30 21 0:28 / /srv rw - tmpfs tmpfs rw",
        r"31 30 254:1 /old /srv/data ro - ext4 /dev/vda1 rw",
        r"32 31 0:29 / /srv/data/with\040space\012and\134more rw - tmpfs tmpfs rw",
        r"33 21 0:30 / /srvdata rw - tmpfs tmpfs rw",
        r"34 30 0:31 / /srv/data rw - tmpfs tmpfs rw",
    ]
    (tmp_path / "mountinfo").write_text("\n".join([*lines, ""]))
    monkeypatch.setattr(mounts, "MOUNTINFO", str(tmp_path / "mountinfo"))
    assert mounts.points_below("/srv") == ["data", "data/with space\nand\\more"]
    assert mounts.points_below("/")[0] == "srv" and mounts.points_below("/srv/data/x") == []
