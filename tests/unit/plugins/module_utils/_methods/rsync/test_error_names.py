# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the real rsync name entries as the user knows them: no temporary names, and ``.`` for the root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("method", ["shell", "daemon"])
def test_an_error_names_no_temporary_file(tmp_path: Path, method: str, connect: str) -> None:
    pair = Pair(tmp_path)
    for folder in (pair.source, pair.dest):
        (folder / "sub").mkdir()
        (folder / "sub/file").write_text(f"of {folder.name}")
        (folder / "log").write_text(f"of {folder.name}")
    fixed = [pair.dest / "log", pair.dest / "sub/file"]
    subprocess.run(["chattr", "+i", *fixed], check=True)
    try:
        outcome = pair.over_shell(connect) if method == "shell" else pair.over_daemon(connect)
    finally:
        subprocess.run(["chattr", "-i", *fixed], check=True)
    reason = "rename failed: Operation not permitted (1)"
    assert outcome.errors == [{"path": "log", "reason": reason}, {"path": "sub/file", "reason": reason}]


@needs_root
def test_an_error_at_the_root_names_it() -> None:
    with tempfile.TemporaryDirectory() as folder:  # which another user may enter
        os.chmod(folder, 0o755)
        pair = Pair(Path(folder))
        pair.far_uid = 65534
        os.chmod(pair.dest, 0o777)
        os.utime(pair.source, (1, 1))
        (error,) = pair.over_shell(partial=False).errors
    assert error == {"path": ".", "reason": 'failed to set times on ".": Operation not permitted (1)'}


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("method", ["shell", "daemon"])
def test_an_error_names_the_path_below_the_root(tmp_path: Path, method: str, connect: str) -> None:
    pair = Pair(tmp_path)
    for folder in (pair.source, pair.dest):
        (folder / "sub").mkdir()
    os.utime(pair.source / "sub", (1, 1))
    subprocess.run(["chattr", "+i", pair.dest / "sub"], check=True)
    try:
        outcome = pair.over_shell(connect) if method == "shell" else pair.over_daemon(connect)
    finally:
        subprocess.run(["chattr", "-i", pair.dest / "sub"], check=True)
    assert {error["path"] for error in outcome.errors} == {"sub"}
