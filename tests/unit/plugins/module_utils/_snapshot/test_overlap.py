# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination of a restore: whether it is in the repository, and what is there, over links of root and others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import StateError
from ansible_collections.longhaul.fleet.plugins.module_utils._job.commands import StepContext, run_steps
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.overlap import overlap

WEB = 1234  # a user


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
    program = f'from {overlap.__module__} import overlap; print(overlap("backup", "mounted/new"))'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount --bind backup mounted && exec "$0" -c "$1"', sys.executable, program],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"cannot run here: no mount namespace ({done.stderr.strip()})")
    assert done.stdout == "True\n"


def inspect(top: Path, dest: str, occupies: str = "") -> Any:
    """Return the answer of the step."""
    step = {"do": "inspect_destination", "repository": f"{top}/backup", "dest": dest, "occupies": occupies or dest}
    return run_steps([step], StepContext({}, ""))[0]


@pytest.fixture(name="top")
def _top(tmp_path: Path) -> Path:
    for name in ("backup", "victim", "home/data", "home/empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/data/file").touch()
    (tmp_path / "home/roots").symlink_to(tmp_path / "home/data")
    (tmp_path / "home/into").symlink_to(tmp_path / "backup")
    return tmp_path


@pytest.mark.parametrize(
    ("dest", "expected", "overlaps", "free"),
    [
        ("home/data", "home/data", False, False),
        ("home/empty", "home/empty", False, True),
        ("home/new/one", "home/new/one", False, True),
        ("home/roots", "home/data", False, False),
        ("home/roots/new", "home/data/new", False, True),
        ("home/data/file", "home/data/file", False, False),
        ("home/into/new", "backup/new", True, True),
    ],
)
def test_what_stands_at_a_destination(top: Path, dest: str, expected: str, overlaps: bool, free: bool) -> None:
    assert inspect(top, f"{top}/{dest}") == {"dest": f"{top}/{expected}", "overlaps": overlaps, "free": free}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_is_refused_by_name(top: Path) -> None:
    (top / "home/www").symlink_to(top / "victim")
    os.chown(top / "home/www", WEB, WEB, follow_symlinks=False)
    for dest, occupies in ((f"{top}/home/www", ""), (f"{top}/home/www/new", ""), (f"{top}/home", f"{top}/home/www")):
        with pytest.raises(StateError) as refused:
            inspect(top, dest, occupies)
        assert str(refused.value).startswith(f"Nothing was restored: {dest} cannot be the destination: ")
        assert f"{top}/home/www is a symbolic link of user id {WEB} to {top}/victim" in str(refused.value)
