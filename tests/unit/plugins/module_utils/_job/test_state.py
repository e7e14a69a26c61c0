# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""State folders, their locks, and what they say of jobs that live, ended or died."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import state


@pytest.fixture(autouse=True)
def own_root(tmp_path, monkeypatch):
    root = tmp_path / "state"
    monkeypatch.setattr(state, "state_root", lambda: str(root))
    return root


def a_folder(side="source"):
    folder = state.JobFolder("0123456789abcdef", side)
    folder.create()
    return folder


def test_folders_are_private(own_root):
    folder = a_folder()
    for path in (own_root, own_root / "0123456789abcdef", folder.path):
        assert os.stat(path).st_mode & 0o777 == 0o700


def test_a_folder_of_another_user_is_refused(own_root):
    os.makedirs(own_root)
    os.chown(own_root, 12345, 12345)
    with pytest.raises(state.StateError, match="not a folder of this user"):
        a_folder()


def test_a_link_in_place_of_the_folder_is_refused(own_root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    own_root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(state.StateError):
        a_folder()


@pytest.mark.parametrize("bad", ["../../etc", "a/b", ""])
def test_an_id_can_not_lead_elsewhere(bad):
    with pytest.raises(ValueError, match="no such"):
        state.JobFolder(bad, "source")


def test_the_lock_is_held_by_one_and_dies_with_its_process():
    folder = a_folder()
    hold = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, folder.file("lock")],
        stdout=subprocess.PIPE,
    )
    try:
        holder.stdout.readline()
        assert folder.is_running()
        assert folder.lock() is None
    finally:
        holder.kill()
        holder.wait()
    assert not folder.is_running()
    assert folder.lock() is not None


def test_a_job_that_died_is_interrupted_and_one_that_ended_is_not():
    dead, ended = a_folder("source"), a_folder("dest")
    dead.request = {"part": "drive", "settings": {"method": "rsync"}, "peer_name": "b", "root": "/x"}
    dead.status = {"state": "running", "pid": os.getpid()}  # a living process id proves nothing
    ended.status = {"state": "finished"}
    assert {job["side"]: job["state"] for job in state.list_jobs()} == {"source": "interrupted", "dest": "finished"}


def test_removing_the_last_folder_leaves_nothing(own_root):
    folder = a_folder()
    folder.status = {"state": "finished"}
    folder.remove()
    assert not own_root.exists()


def test_a_torn_status_file_is_no_status():
    folder = a_folder()
    with open(folder.file("status.json"), "w", encoding="ascii") as stream:
        stream.write('{"state": "fin')
    assert folder.status == {}


@pytest.mark.parametrize("request_file", ["[1]", '{"root": 5, "settings": "stream", "peer_name": "old1"}', "null"])
@pytest.mark.parametrize("status_file", ["[]", '{"state": ["running"], "pid": "7", "progress": 1}'])
def test_a_damaged_file_hides_no_other_job_and_ends_nobody(request_file, status_file):
    damaged, sound = a_folder("source"), a_folder("dest")
    for name, text in (("request.json", request_file), ("status.json", status_file)):
        with open(damaged.file(name), "w", encoding="ascii") as stream:
            stream.write(text)
    sound.request, sound.status = {"root": "/srv", "part": "serve"}, {"state": "failed", "pid": 8}
    at_source, at_dest = state.list_jobs()
    assert (at_dest["root"], at_dest["state"], at_dest["pid"]) == ("/srv", "failed", 8)
    assert (at_source["root"], at_source["method"], at_source["pid"]) == ("", "", 0)
    assert at_source["state"] == "interrupted" and at_source["progress"] == {}
    assert state.source_reader(b"/srv") is None


@pytest.mark.parametrize(
    "side, root, reads",
    [
        ("source", "/backup/1/data", True),
        ("source", "/backup/1/data/folder", True),
        ("source", "/backup/1/data too", False),
        ("source", "/backup/1", False),
        ("dest", "/backup/1/data", False),
    ],
)
def test_a_job_that_lives_reads_below_its_root(side, root, reads):
    folder = a_folder(side)
    folder.request = {"root": root}
    folder.status = {"pid": 7}
    assert state.source_reader(b"/backup/1/data") is None
    lock = folder.lock()
    assert state.source_reader(b"/backup/1/data") == ("transfer 0123456789abcdef (process 7)" if reads else None)
    os.close(lock)
    assert state.source_reader(b"/backup/1/data") is None


def test_the_destination_lock_names_its_holder_and_leaves_no_file(own_root):
    with state.destination_lock(b"/k", "transfer 1") as first:
        assert first is None
        with state.destination_lock(b"/k", "transfer 2") as second:
            assert second == "transfer 1"
        with state.destination_lock(b"/other", "transfer 3") as third:
            assert third is None
    assert os.listdir(own_root / "locks") == []


def test_who_writes_to_a_destination_can_be_asked_and_keeps_nobody_away(own_root):
    root = b"/srv/backup"
    assert state.destination_holder(root) is None
    with state.destination_lock(root, "transfer 1"):
        assert state.destination_holder(root) == "transfer 1"
        assert state.destination_holder(b"/srv/other") is None
    assert state.destination_holder(root) is None
    (own_root / "locks" / state.destination_key(root)).write_text("one that was killed")
    assert state.destination_holder(root) is None
    with state.destination_lock(root, "transfer 2") as taken_by:
        assert taken_by is None
