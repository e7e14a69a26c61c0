# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""State that nobody came back for goes, and no other."""

from __future__ import annotations

import os
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import state
from ansible_collections.longhaul.fleet.plugins.module_utils._job.cleanup import remove_forgotten

DAY = 86400


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
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
