# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""State that nobody came back for goes, and no other; so does what a dead job left of a transfer that succeeded."""

from __future__ import annotations

import os
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.made import MadeList
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import StateError
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands, launcher, leases, state
from ansible_collections.longhaul.fleet.plugins.module_utils._job.launcher import remove_forgotten
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.held_root import describe
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import Staging

DAY = 86400


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path, monkeypatch):
    for module in (state, leases):  # whoever forgets one looks into the state of this machine
        monkeypatch.setattr(module, "state_root", lambda: str(tmp_path / "state"))
    return tmp_path / "state"


def made(name: str, days: float, newer: str = "") -> state.JobFolder:
    """Return the folder of a transfer that changed so many days ago last, but for one file."""
    folder = state.JobFolder(name, "dest")
    folder.create()
    folder.request, folder.status = {"part": "drive"}, {"state": "failed"}
    then = time.time() - days * DAY
    for path in (*(folder.file(one) for one in os.listdir(folder.path) if one != newer), folder.path):
        os.utime(path, (then, then))
    return folder


def test_what_nobody_collected_for_long_goes(root):
    old, young = made("a" * 16, 31), made("b" * 16, 29)
    written = made("c" * 16, 31, newer="status.json")
    remove_forgotten(time.time())
    assert [os.path.exists(folder.path) for folder in (old, young, written)] == [False, True, True]
    assert sorted(path.name for path in root.iterdir()) == ["b" * 16, "c" * 16]


def test_dumps_that_stay_are_told_and_not_forgotten(tmp_path):
    """A job that had consistent sources was killed, and what it made cannot be removed yet."""
    folder = made("a" * 16, 31)
    folder.request = {"part": "consistent"}
    (tmp_path / "dump/inside").mkdir(parents=True)
    MadeList(folder.file("made")).add("file", os.fsencode(tmp_path), b"dump")
    status = launcher.stop(folder, succeeded=True)
    assert status["state"] == "failed" and f"cannot be removed: {tmp_path}/dump: " in status["failure"]
    steps, given = [{"do": "clear", "id": folder.transfer_id, "side": "dest"}], commands.StepContext({}, "/none")
    for name in (*os.listdir(folder.path), "."):
        os.utime(folder.file(name), (0, 0))
    remove_forgotten(time.time())
    commands.run_steps(steps, given)
    assert os.path.exists(folder.file("made"))
    (tmp_path / "dump/inside").rmdir()
    (tmp_path / "dump").rmdir()
    commands.run_steps(steps, given)
    assert not os.path.exists(folder.path)


def test_what_runs_stays():
    folder = made("a" * 16, 0)
    lock = folder.lock()
    for path in (folder.file("lock"), folder.file("request.json"), folder.file("status.json"), folder.path):
        os.utime(path, (0, 0))
    remove_forgotten(time.time())
    assert os.path.exists(folder.path)
    os.close(lock)
    remove_forgotten(time.time())
    assert not os.path.exists(folder.path)


def test_without_any_state_there_is_nothing_to_do(root):
    remove_forgotten(time.time())
    assert not root.exists()


ID = "d" * 16
STAGING = f".longhaul-{ID}"


@pytest.fixture(name="dest")
def _dest(tmp_path):
    """Return a destination with the staging folder of a job that was killed, and a file in it."""
    dest = tmp_path / "dest"
    dest.mkdir()
    Staging(os.fsencode(dest), os.fsencode(STAGING)).close()
    (dest / STAGING / "partial/file").write_text("half")
    os.utime(dest, (1000, 1000))
    return dest


def stop(dest, succeeded, **changes):
    """Stop the dead job of a transfer into ``dest``; return what is left of its staging folder."""
    folder = state.JobFolder(ID, "dest")
    folder.create()
    settings = {"method": "rsyncd", "check": False}
    folder.request = {"root": str(dest), "part": "serve", "settings": settings, **changes}
    folder.status = {"state": "serving", "pid": 0}
    commands.run_steps(
        [{"do": "stop", "id": ID, "side": "dest", "succeeded": succeeded}], commands.StepContext({}, "/none")
    )
    return sorted(path.name for path in (dest / STAGING).rglob("*"))


def test_the_staging_folder_of_a_dead_job_goes_where_the_transfer_succeeded(dest):
    fd = os.open(dest, os.O_RDONLY)
    probed = describe(os.fsencode(dest), fd)
    os.close(fd)
    assert stop(dest, True, probed=probed) == []
    assert list(dest.iterdir()) == []
    assert dest.stat().st_mtime == 1000


def test_what_is_partial_stays_where_it_did_not_succeed(dest):
    assert stop(dest, False) == ["file", "partial", "tmp"]


def test_a_dry_run_had_no_staging_folder(dest):
    assert stop(dest, True, settings={"method": "rsyncd", "check": True}) == ["file", "partial", "tmp"]


def test_a_staging_folder_that_cannot_be_removed_is_said(dest, tmp_path):
    (dest / STAGING).rename(tmp_path / "elsewhere")
    (dest / STAGING).write_text("a file of somebody else's")
    with pytest.raises(StateError, match="all of the source is in place, but .* cannot be the folder of this transfer"):
        stop(dest, True)
    assert (dest / STAGING).read_text().startswith("a file")


@pytest.mark.parametrize("probed", [{"path": "/", "device": 0, "inode": 0}, {"path": 1}, "text"])
def test_nothing_is_removed_below_another_root_than_the_probe_found(dest, probed):
    with pytest.raises(StateError, match="all of the source is in place, but"):
        stop(dest, True, probed=probed)
    assert (dest / STAGING / "partial/file").exists()
