# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps that save an execution: a quick digest of a tree, and what follows a job that has ended already."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import durability
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import StagingLeft
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands, digest_job, launcher, state, steps
from ansible_collections.longhaul.fleet.plugins.module_utils._job.reporter import Reporter
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series

ID = "0123456789abcdef"
GIVEN = commands.StepContext({}, "/no/engine")
CLEAR = {"do": "clear", "id": ID, "side": "source"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return the folder of a job in the test's own state root."""
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
    made = state.JobFolder(ID, "source")
    made.create()
    return made


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "folder").mkdir(parents=True)
    (root / "folder/file").write_text("text")
    return root


def request_for(root, **more):
    request = {"root": str(root), "rules": [], "only": None, "one_file_system": False, "fields": ["size", "mode"]}
    return dict(request, owner_map=None, special_files=["devices"], algorithm="blake2b", **more)


def quick_digest(root, seconds=20.0, **more):
    step = {"do": "quick_digest", "request": request_for(root, **more), "seconds": seconds, "then": [CLEAR]}
    return commands.run_steps([step], GIVEN)[0]["digest"]


def test_a_quick_digest_gives_the_digest_and_does_what_follows(folder, tree):
    digest = quick_digest(tree)
    assert (digest["entries"], digest["bytes"], digest["errors_total"]) == (3, 4, 0)
    assert not os.path.exists(folder.path)
    (tree / "folder/file").chmod(0o600)
    assert quick_digest(tree)["sums"] != digest["sums"]


def test_the_folders_of_other_transfers_are_no_part_of_a_source(tree):
    """No source offers them, so a transfer without them is complete; at a destination they are seen."""
    digest = quick_digest(tree)
    when = os.stat(tree).st_mtime_ns
    (tree / ".longhaul-0123456789abcdef" / "partial").mkdir(parents=True)
    os.utime(tree, ns=(when, when))
    assert quick_digest(tree, side="source") == digest
    assert quick_digest(tree, side="dest")["entries"] == digest["entries"] + 2


@pytest.mark.parametrize("seconds", [-1.0, 20.0])
def test_a_quick_digest_that_fails_leaves_all_to_a_job(folder, tree, seconds):
    root = tree if seconds < 0 else tree / "missing"
    assert quick_digest(root, seconds) is None
    assert os.path.isdir(folder.path)


def test_a_quick_digest_ends_in_the_middle_of_a_large_file(tree, monkeypatch):
    os.truncate(tree / "folder/file", 64 << 20)
    looks = itertools.count()
    monkeypatch.setattr(digest_job, "time", SimpleNamespace(monotonic=lambda: next(looks)))
    assert quick_digest(tree, 3.5, fields=["size", "content"]) is None
    assert next(looks) < 10


def test_a_quick_digest_and_a_job_see_the_same(folder, tree):
    class Said:
        progress = Progress()

        def set(self, **values):
            self.__dict__.update(values)

    said = Said()
    folder.request = request_for(tree, fields=["size", "mode", "mtime", "content"])
    root = os.open(folder.request["root"], os.O_RDONLY)
    digest_job.make_digest(folder, digest_job.parse_digest_request(folder.request), root, said)
    os.close(root)
    assert said.digest == digest_job.quick_digest(folder.request, 20.0)
    assert (said.progress.files_done, said.state) == (3, "finished")


@pytest.mark.parametrize(
    ("status", "follows"),
    [
        ({"state": "finished", "alive": False}, True),
        ({"state": "failed", "alive": False}, False),
        ({"state": "died", "alive": False}, False),
        ({"state": "running", "alive": True}, False),
        ({"state": "finished", "alive": True}, False),
    ],
)
def test_what_follows_a_start_follows_a_finished_job_only(folder, monkeypatch, status, follows):
    monkeypatch.setattr(launcher, "start", lambda *_given: dict(status))
    step = {"do": "start", "kind": "job", "request": {}, "until": [], "wait": 2.0, "then": [CLEAR]}
    (given,) = commands.run_steps([{**step, "id": ID, "side": "source"}], GIVEN)
    assert (given.pop("then_seconds", -1) >= 0) == follows
    assert given == (dict(status, then=[{}]) if follows else status)
    assert os.path.exists(folder.path) != follows


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_staging_folder_that_stays_is_said_when_a_job_is_stopped(folder, succeeded):
    with Reporter(folder):
        raise StagingLeft("all of the source is in place, but")
    stop = {"do": "stop", "id": ID, "side": "source", "succeeded": succeeded}
    if not succeeded:  # there is a worse failure to tell
        assert commands.run_steps([stop], GIVEN)[0]["failure"].startswith("all of")
        return
    with pytest.raises(state.StateError, match="all of the source is in place"):
        commands.run_steps([stop, CLEAR], GIVEN)
    assert not os.path.exists(folder.path)


def test_a_job_that_says_it_has_finished_is_waited_for(folder):
    folder.status = {"state": "finished"}
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"])
    status = launcher.watch(folder, (), 60.0, process)
    assert status == {"state": "finished", "alive": False}
    assert process.poll() == 0


def test_a_wait_ends_with_a_state_or_its_time(folder):
    folder.status = {"state": "serving"}
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert launcher.watch(folder, ("serving",), 60.0, process)["alive"]
        begun = time.monotonic()
        assert launcher.watch(folder, (), 0.2, process) == {"state": "serving", "alive": True}
        assert time.monotonic() - begun >= 0.2
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "step",
    [
        {"do": "dance"},
        {},
        ["clear"],
        {"do": "clear", "id": ID},
        {"do": "stop", "id": ID, "side": "source"},
        {"do": "probe", "id": ID, "side": "source", "path": "/", "methods": "stream", "ssh_ports": []},
        {"do": "start", "id": ID, "side": "source", "kind": "job", "request": [], "until": []},
    ],
)
def test_nothing_is_done_where_one_step_cannot_be_read(folder, step):
    with pytest.raises(WrongShape):
        commands.run_steps([CLEAR, step], GIVEN)
    assert os.path.isdir(folder.path)


def snapshots(action, place, check=False, **options):
    step = {"do": "snapshot", "action": action, "place": place, "options": options, "check": check}
    return commands.run_steps([step], GIVEN)[0]


def test_a_step_does_with_snapshots_what_the_module_does(tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()
    place = [str(repository), "web1", "data"]
    promised = snapshots("begin", place, check=True, run="first")
    assert promised["changed"] and not any(repository.iterdir())
    begun = snapshots("begin", place, run="first")
    assert begun["changed"] and os.path.isdir(begun["path"]) and begun["warnings"] == []
    (tmp_path / begun["path"] / "file").write_text("text")
    finished = snapshots("finish", place, run="first")
    assert finished["figures"]["entries"] == 2 and finished["name"] in finished["diff"]["after"]
    listed = snapshots("list", place)["snapshots"]
    assert [one["name"] for one in listed] == [finished["name"]]
    assert snapshots("check", place)["sound"]
    (tmp_path / listed[0]["path"] / "file").write_text("harm")
    assert "1 problem: 'file' in" in snapshots("check", place)["refused"]


def test_what_is_refused_of_snapshots_is_said_with_its_reason(tmp_path):
    (tmp_path / "web1/data").mkdir(parents=True)
    said = snapshots("prune", [str(tmp_path), "web1", "data"], keep={})
    assert list(said) == ["refused", "busy"] and "the policy is empty" in said["refused"] and not said["busy"]
    with Series(str(tmp_path), "web1", "data") as series, series.lock("begin"):
        said = snapshots("begin", [str(tmp_path), "web1", "data"], run="first")
    assert said["busy"] and "is in use: begin" in said["refused"]


def test_a_tree_is_waited_for_and_a_disk_that_fails_is_named(tree, monkeypatch):
    sync = {"do": "sync", "path": str(tree)}
    (done,) = commands.run_steps([sync], GIVEN)
    assert isinstance(done["seconds"], float)

    def fail(_path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(durability, "sync_tree", fail)
    with pytest.raises(commands.StateError, match=r"did not reach the disk.*Input/output error.*verify: checksum"):
        commands.run_steps([sync], GIVEN)


def test_a_snapshot_is_compared_in_the_walk_that_completes_it(tmp_path, tree):
    repository = tmp_path / "repository"
    repository.mkdir(mode=0o700)
    place = [str(repository), "web", "data"]
    data = snapshots("begin", place, run="first")["path"]
    subprocess.run(["cp", "-a", f"{tree}/.", data], check=True)
    os.symlink("nowhere", os.path.join(data, "link"))
    follows = {"do": "snapshot", "action": "list", "place": place, "options": {}}

    def finish(expected):
        compare = {"request": request_for(data, side="dest"), "sums": expected}
        step = {"do": "snapshot", "action": "finish", "place": place, "options": {"run": "first"}, "compare": compare}
        (said,) = commands.run_steps([{**step, "then": [follows]}], GIVEN)
        return said

    assert finish(quick_digest(tree)["sums"]) == {"differs": True, "warnings": []}
    assert [one["state"] for one in snapshots("list", place)["snapshots"]] == ["unfinished"]
    os.unlink(os.path.join(data, "link"))
    done = finish(quick_digest(tree)["sums"])
    assert [one["name"] for one in done["then"][0]["snapshots"]] == [done["name"]]


def test_each_step_that_can_be_asked_for_is_done():
    assert commands._STEPS.keys() == steps._MEMBERS.keys()


def test_the_users_of_a_tree_are_found_unless_its_own_transfer_runs(tree, folder, monkeypatch):
    asked = {"do": "find_tree_users", "tree": str(tree), "transfer_id": ID}
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=tree, stdin=subprocess.PIPE) as process:
        (found,) = commands.run_steps([asked], GIVEN)
        monkeypatch.setattr(state.JobFolder, "is_running", lambda _folder: True)
        (running,) = commands.run_steps([asked], GIVEN)
        process.kill()
    users = [one["pid"] for one in found["users"]]
    assert users == ([process.pid] if os.path.isdir("/proc/self") else []) and running == {"users": [], "unseen": ""}
