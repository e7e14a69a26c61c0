# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a restore would arrive, and what stands there, over links of root and of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/restore_dest_info.py"
WEB = 1234


def look(top: Path, dest: str, occupies: str = "") -> dict[str, Any]:
    """Run the module as Ansible does; return its result."""
    arguments = {"repository": f"{top}/backup", "dest": dest, "occupies": occupies or dest}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(top)}
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_remote_tmp": str(top)}})
    argv = [sys.executable, str(MODULE)]
    ran = subprocess.run(argv, input=given, env=environment, capture_output=True, text=True, check=False)
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


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
    found = look(top, f"{top}/{dest}")
    assert (found["dest"], found["overlaps"], found["free"]) == (f"{top}/{expected}", overlaps, free)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_is_refused_by_name(top: Path) -> None:
    (top / "home/www").symlink_to(top / "victim")
    os.chown(top / "home/www", WEB, WEB, follow_symlinks=False)
    for dest, occupies in ((f"{top}/home/www", ""), (f"{top}/home/www/new", ""), (f"{top}/home", f"{top}/home/www")):
        said = look(top, dest, occupies)
        assert said["failed"] and said["msg"].startswith(f"Nothing was restored: {dest} cannot be the destination: ")
        assert f"{top}/home/www is a symbolic link of user id {WEB} to {top}/victim" in said["msg"]
