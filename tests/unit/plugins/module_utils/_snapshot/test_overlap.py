# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which folders are in each other, with symbolic links and bind mounts on the way."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.overlap import overlap


@pytest.mark.parametrize(
    ("dest", "overlaps"),
    [
        ("srv/backup", True),
        ("srv/backup/new", True),
        ("srv/backup/web1/data/2026", True),
        ("srv/none/../backup/x", True),
        ("srv", True),
        ("link", True),
        ("link/new/one", True),
        ("into/new", True),
        ("above", True),
        ("dangling/x", True),
        ("srv/backup2", False),
        ("home", False),
        ("home/new/one", False),
    ],
)
def test_a_destination_in_the_repository_is_seen_whatever_its_path(tmp_path, dest, overlaps):
    (tmp_path / "srv" / "backup" / "web1" / "data").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "srv" / "backup")
    (tmp_path / "into").symlink_to("srv/backup/web1")
    (tmp_path / "above").symlink_to("srv")
    (tmp_path / "dangling").symlink_to("srv/backup/not-yet")
    assert overlap(str(tmp_path / "srv" / "backup"), str(tmp_path / dest)) is overlaps
    assert overlap(str(tmp_path / dest), str(tmp_path / "srv" / "backup")) is overlaps


def test_a_repository_that_is_on_another_host_overlaps_with_nothing(tmp_path):
    assert not overlap(str(tmp_path / "backup"), str(tmp_path / "home"))


def test_a_bind_mount_of_the_repository_is_the_repository(tmp_path):
    (tmp_path / "backup").mkdir()
    (tmp_path / "mounted").mkdir()
    script = "mount --bind backup mounted && exec python3 -c 'import sys; sys.path.insert(0, sys.argv[1])\n"
    script += 'from overlap import overlap\nprint(overlap("backup", "mounted/new"))\' "$1"'
    folder = overlap.__code__.co_filename.rpartition("/")[0]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", folder],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"cannot run here: no mount namespace ({done.stderr.strip()})")
    assert done.stdout == "True\n"
