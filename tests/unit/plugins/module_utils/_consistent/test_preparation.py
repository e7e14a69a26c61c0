# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot of a subvolume has all that is read in it, or none is made."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.btrfs import require_in_subvolume
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.preparation import find_read
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import (
    BtrfsSource,
    ConsistentRequest,
    DumpPlace,
    SqliteSource,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed


@pytest.mark.parametrize(
    ("subvolume", "readers", "read"),
    [
        ("/srv", ["/srv/.s/data", "/etc", "/srv/.s2"], ["/srv/data", "/srv/data/sub/dumps"]),
        ("/srv", ["/srv/data/.s", "/srv/.s"], ["/srv"]),
        ("/srv/data", ["/srv/data/.s", "/srv/.s"], ["/srv/data", "/srv/data/sub/dumps"]),
        ("/", ["/.s", "/.s/srv/data"], ["/", "/srv/data", "/srv/data/sub/dumps"]),
    ],
)
def test_what_is_read_in_a_snapshot(subvolume, readers, read):
    source = BtrfsSource(subvolume, ".s", True)
    dumps = SqliteSource(DumpPlace("/srv/data", "/srv/data/sub/dumps", False), ["a.db"])
    assert find_read(source, ConsistentRequest([dumps, source], readers, 1.0)) == read


def test_a_source_on_another_file_system_than_the_subvolume_is_refused(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        (tmp_path / "sub").mkdir()
        source = BtrfsSource(str(tmp_path), ".s", True)
        for inside in ("", "sub", "missing"):
            require_in_subvolume(source, fd, str(tmp_path / inside))
        with pytest.raises(
            TransferFailed, match="/proc/self is on another subvolume or file system than .*an entry btrfs"
        ):
            require_in_subvolume(source, fd, "/proc/self")
    finally:
        os.close(fd)
