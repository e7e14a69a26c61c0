# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers with the real rsync at both ends; only ssh is stood in for by a script that runs the handler."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.tests.support import hard_tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from hypothesis import given, settings
from hypothesis import strategies as st

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
WAYS = [("push", 1), ("push", 3), ("pull", 1), ("pull", 3)]
COUNTS = ("files_created", "files_updated", "files_deleted", "attributes_changed")
OLD = 1_000_000_000_000_000_000


@pytest.fixture(name="pair")
def a_pair(tmp_path) -> Pair:
    return Pair(tmp_path)


def fill(root: Path, files: dict[str, str], when: int = OLD) -> None:
    """Make files, with a time; a name that ends with a slash is a folder."""
    for name, text in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(when, when))


def counts(outcome) -> tuple[int, ...]:
    return tuple(getattr(outcome, name) for name in COUNTS)


def good(outcome):
    assert (outcome.failure, outcome.errors) == ("", [])
    return outcome


@needs_root
@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "connect", "streams"),
    [*(("rsync", *way) for way in WAYS), ("rsyncd", "push", 3), ("rsyncd", "pull", 1)],
)
def test_every_hard_name_and_type_arrives_and_a_rerun_changes_nothing(pair, method, connect, streams):
    made = hard_tree.make_hard_tree(pair.source, without=["longer than PATH_MAX"], many=300)
    assert len(made) > 100
    first = good(pair.over(method, connect, streams=streams))
    assert differences(pair.source, pair.dest) == []
    assert first.files_created == first.files_total - 1  # the root was there
    again = good(pair.over(method, connect, streams=streams, delete=True))
    assert (again.changed, again.bytes_sent, again.changes) == (False, 0, [])
    assert again.files_unchanged == first.files_total
    assert differences(pair.source, pair.dest) == []
    for root in (pair.source, pair.dest):
        hard_tree.remove_tree(root)


@pytest.mark.parametrize("connect", ["push", "pull"])
def test_files_at_the_root_are_shared_among_the_streams_too(pair, connect):
    fill(pair.source, {"a": "1", "b": "2", "c": "3", "z/x": "4"})
    changes = good(pair.over_shell(connect, streams=2, rules=["+ *"])).changes
    order = [line[12:] for line in changes]
    assert sorted(order) == [".", "a", "b", "c", "z/", "z/x"]
    assert order[:2] == [".", "z/"]  # the run that makes the directories sends no file
    assert differences(pair.source, pair.dest) == []


@pytest.mark.parametrize(("connect", "streams"), WAYS)
def test_counts_are_not_doubled(pair, connect, streams):
    fill(pair.source, {"a/new": "n", "a/same": "s", "a/longer": "xx", "a/mode": "m", "b/new": "", "c/": ""})
    fill(pair.dest, {"a/same": "s", "a/longer": "x", "a/mode": "m", "gone/x": "", "gone/y": ""})
    (pair.dest / "a" / "mode").chmod(0o600)
    os.utime(pair.source / "a", ns=(OLD, OLD))
    os.utime(pair.dest / "a", ns=(OLD, OLD))
    outcome = good(pair.over_shell(connect, streams=streams, delete=True))
    # Created: a/new, b, b/new, c. Attributes: a/mode and the root's time.
    assert counts(outcome) == (4, 1, 3, 2)
    assert len(outcome.changes) == outcome.changes_total == 10
    assert outcome.files_total == 9
    assert differences(pair.source, pair.dest) == []
    assert not good(pair.over_shell(connect, streams=streams, delete=True)).changed


@pytest.mark.parametrize("connect", ["push", "pull"])
def test_what_is_deleted_afterwards_has_nothing_sent_again_that_keeps_no_time(pair, connect):
    fill(pair.source, {"changed": "new", "same": "same"})
    fill(pair.dest, {"changed": "former", "too much": "x"}, OLD + 1)
    fill(pair.dest, {"same": "same"})
    asked = {"delete": True, "preserve": ["permissions"]}
    predicted = good(pair.over_shell(connect, check=True, **asked))
    done = good(pair.over_shell(connect, **asked))
    assert counts(predicted) == counts(done) == (0, 1, 1, 0) and done.bytes_sent == 3
    assert (pair.dest / "changed").read_text() == "new"


def test_a_path_that_rsync_cannot_handle_is_an_error_of_its_own(pair):
    fill(pair.source, {"ok": "x"})
    folder = os.open(pair.source, os.O_RDONLY)
    for _level in range(25):
        os.mkdir(b"y" * 200, dir_fd=folder)
        below = os.open(b"y" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    outcome = pair.over_shell()
    assert outcome.failure == ""
    assert outcome.errors_total >= 1
    assert any(words in outcome.errors[0]["reason"] for words in ("4096", "too long"))  # by where the limit falls
    hard_tree.remove_tree(pair.source)
    hard_tree.remove_tree(pair.dest)


# deletions


@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_folder_that_is_not_empty_gives_way_to_a_file_with_delete_only(pair, connect):
    fill(pair.source, {"x": "file", "y": "other"})
    fill(pair.dest, {"x/deep/er": "", "x/z": ""})
    refused = pair.over_shell(connect)
    assert [error["path"] for error in refused.errors] == ["x"]
    assert "delete: true" in refused.errors[0]["reason"]
    assert (pair.dest / "x" / "z").exists()
    outcome = good(pair.over_shell(connect, delete=True))
    assert (outcome.files_created, outcome.files_deleted) == (1, 3)  # x/deep/er, x/deep, x/z: rsync counts them
    assert differences(pair.source, pair.dest) == []


def test_the_limit_of_deletions_refuses_all_of_them(pair):
    fill(pair.source, {"new": "n"})
    fill(pair.dest, {"a": "", "b/c": ""})
    outcome = pair.over_shell(delete=True, max_delete=2)
    assert "3 entries" in outcome.failure
    assert "max_delete is 2" in outcome.failure
    assert sorted(os.listdir(pair.dest)) == [f".longhaul-{ID}", "a", "b", "new"]
    outcome = good(pair.over_shell(delete=True, max_delete=3))
    assert outcome.files_deleted == 3
    assert differences(pair.source, pair.dest) == []


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_an_empty_source_deletes_nothing_unless_it_is_said(pair, connect, check):
    fill(pair.dest, {"a": "", "b": ""})
    outcome = pair.over_shell(connect, delete=True, check=check)
    assert "the source is empty" in outcome.failure
    assert "max_delete to 2" in outcome.failure
    assert {"a", "b"} <= set(os.listdir(pair.dest))
    outcome = pair.over_shell(connect, delete=True, max_delete=2, check=check)
    assert (outcome.failure, outcome.files_deleted) == ("", 2)
    assert (pair.dest / "a").exists() is check


@needs_root
@pytest.mark.parametrize("streams", [1, 3])
def test_one_folder_that_cannot_be_read_and_nothing_is_deleted(streams):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        pair = Pair(Path(folder))
        pair.far_uid = 65534
        fill(pair.source, {"bad/x": "", "ok": ""})
        fill(pair.dest, {"gone": ""})
        (pair.source / "bad").chmod(0o700)
        outcome = pair.over_shell("pull", delete=True, streams=streams)
        assert [error["path"] for error in outcome.errors] == ["bad"]
        assert "Permission denied" in outcome.errors[0]["reason"]
        assert (pair.dest / "gone").exists()
        assert (pair.dest / "ok").exists()
        assert any("nothing was deleted" in warning for warning in outcome.warnings)


def test_excluded_names_stay_on_both_sides(pair):
    fill(pair.source, {"a": "", "x.tmp": "", "keep": ""})
    fill(pair.dest, {"y.tmp": "", "gone": "", f".longhaul-{ID[:-1]}0/foreign": ""})
    outcome = good(pair.over_shell(delete=True, rules=["- *.tmp", "P /.longhaul-*0"]))
    assert outcome.files_deleted == 1
    assert sorted(os.listdir(pair.dest)) == [f".longhaul-{ID[:-1]}0", "a", "keep", "y.tmp"]


# check mode

TREES = st.dictionaries(
    st.sampled_from(["a", "b", "d/", "d/a", "d/b", "e/f/g", "e/f/", "h"]), st.sampled_from(["", "x", "yy"]), max_size=8
)


def lay_out(root: Path, tree: dict[str, str], when: int) -> None:
    for name in sorted(tree):
        path = root / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir() or (name + "/" in tree):
            continue
        fill(root, {name: tree[name]}, when)
    for folder, _folders, _files in os.walk(root, topdown=False):
        os.utime(folder, ns=(OLD, OLD + (len(folder) % 2)))


@pytest.mark.long
@settings(max_examples=12)
@given(source=TREES, dest=TREES, delete=st.booleans(), later=st.booleans(), swap=st.booleans())
def test_check_mode_predicts_what_a_run_then_does(tmp_path_factory, source, dest, delete, later, swap):
    pair = Pair(tmp_path_factory.mktemp("check"))
    lay_out(pair.source, source, OLD)
    lay_out(pair.dest, dest, OLD + later)
    if swap and (pair.dest / "a").exists():  # another type at the same place
        (pair.dest / "a").unlink()
        fill(pair.dest, {"a/inner": "z"})
    plan = {"delete": delete, "max_delete": 100 if delete else None}
    before = sorted(os.walk(pair.dest))
    predicted = pair.over_shell(check=True, **plan)
    assert sorted(os.walk(pair.dest)) == before
    done = pair.over_shell(**plan)
    assert counts(predicted) == counts(done)
    assert sorted(predicted.changes) == sorted(done.changes)
    assert predicted.files_total == done.files_total
    assert predicted.errors_total == done.errors_total
    shutil.rmtree(pair.folder)


# one name


@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("name", ["file", "-n", "#x", "two\nlines", "a:b", " x "])
def test_one_file_and_nothing_else(pair, connect, name):
    fill(pair.source, {name: "text", "other": ""})
    fill(pair.dest, {"theirs": ""})
    os.utime(pair.dest, ns=(OLD, OLD))
    outcome = good(pair.over_shell(connect, only=name, delete=True))
    assert sorted(os.listdir(pair.dest)) == sorted([name, "theirs"])
    assert (outcome.files_created, outcome.files_deleted) == (1, 0)
    assert not [line for line in outcome.changes if line.endswith(" .")]  # the folder itself is somebody else's
    assert not good(pair.over_shell(connect, only=name)).changed


# interruptions


SIZE = 48 << 20


def big_file(pair: Pair, sparse: bool) -> None:
    (path,) = hard_tree.make_big_files(pair.source, SIZE, 1)
    if sparse:
        with open(path, "r+b") as stream:
            stream.truncate(SIZE + (16 << 20))


@pytest.mark.long
@pytest.mark.parametrize(("connect", "sparse"), [("push", False), ("pull", True)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_after_all_was_killed_a_rerun_sends_only_the_missing_part(pair, connect, sparse, share):
    big_file(pair, sparse)
    staging = pair.dest / f".longhaul-{ID}"
    job = os.fork()
    if not job:
        pair.over_shell(connect, bwlimit=40_000_000 if share < 0.9 else 12_000_000)  # the last tenth takes 0.4 s
        os._exit(0)
    wait_until(lambda: largest(staging / "tmp") >= share * SIZE)
    os.kill(job, signal.SIGKILL)
    kill_rsyncs(pair)
    os.waitpid(job, 0)
    wait_until(lambda: not rsyncs_of(pair))
    left = pair.adopt()
    assert left >= share * SIZE
    pair.leftover = True
    again = good(pair.over_shell(connect))
    assert differences(pair.source, pair.dest) == []
    assert again.resumed
    assert again.bytes_sent <= SIZE - min(left, SIZE) + (17 << 20 if sparse else 0) + (256 << 10)
    print(f"{connect}: {left} bytes were there, {again.bytes_sent} of {SIZE} were sent")


@needs_root
@pytest.mark.long
@pytest.mark.parametrize("method", ["rsync", "rsyncd"])
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_killed_rsync_is_started_again_and_goes_on(pair, connect, method):
    big_file(pair, sparse=False)
    staging = pair.dest / f".longhaul-{ID}"

    def kill() -> None:
        wait_until(lambda: largest(staging / "tmp") >= SIZE // 2)
        kill_rsyncs(pair)

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = good(pair.over(method, connect, bwlimit=40_000_000))
    killer.join()
    assert differences(pair.source, pair.dest) == []
    assert outcome.resumed
    assert outcome.files_created == 1
    assert outcome.bytes_sent < SIZE + (8 << 20)


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_full_disk_is_said_and_a_rerun_goes_on(pair, connect):
    hard_tree.make_big_files(pair.source, 24 << 20, 1)
    with small_disk(pair.dest, "size=20m") as remount:
        outcome = pair.over_shell(connect)
        assert "full" in outcome.failure
        assert outcome.errors_total == 1
        pair.adopt()
        remount("size=80m")
        pair.leftover = True
        outcome = good(pair.over_shell(connect))
        assert outcome.resumed
        assert outcome.bytes_sent < 12 << 20
        assert differences(pair.source, pair.dest) == []


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_disk_without_inodes_is_full_too(pair, connect):
    fill(pair.source, {f"folder{number % 3}/file{number}": "content" for number in range(60)})
    with small_disk(pair.dest, "nr_inodes=30"):
        outcome = pair.over_shell(connect)
        assert "full" in outcome.failure and "inodes" in outcome.failure
        assert re.fullmatch(r"(folder\d/)?file\d+", outcome.errors[0]["path"]), outcome.errors[0]


def test_files_that_vanish_are_counted_and_are_no_failure(pair):
    for number in range(300):
        (pair.source / f"f{number:03}").write_bytes(b"x" * 20_000)
    doomed = pair.source / "f299"

    def vanish() -> None:
        wait_until((pair.dest / "f000").exists)
        doomed.unlink()

    thread = threading.Thread(target=vanish)
    thread.start()
    outcome = good(pair.over_shell(bwlimit=3_000_000, delete=True))
    thread.join()
    assert outcome.vanished == 1
    assert sorted(os.listdir(pair.dest)) == sorted(os.listdir(pair.source))


def largest(folder: Path) -> int:
    try:
        return max((path.stat().st_size for path in folder.iterdir()), default=0)
    except FileNotFoundError:
        return 0


def wait_until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def kill_rsyncs(pair: Pair) -> None:
    """Kill every rsync of this pair, at both ends; they are ours alone."""
    for pid in rsyncs_of(pair):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def rsyncs_of(pair: Pair) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
            place = os.readlink(f"/proc/{name}/root") + os.readlink(f"/proc/{name}/cwd")
        except OSError:
            continue
        place = place[1:] if place.startswith("//") else place
        if b"--no-detach" in words and place == "/":
            continue  # the daemon itself; its children have gone into the module
        if words.startswith(b"rsync\0") and (os.fsencode(pair.folder) in words or place.startswith(str(pair.folder))):
            found.append(int(name))
    return found


def test_a_refused_option_ends_it_before_anything_is_written(pair):
    fill(pair.source, {"a": ""})
    with pytest.raises(TransferFailed, match="rsync_opts"):
        pair.over_shell(rsync_opts=["--remove-source-files"])
    assert os.listdir(pair.dest) == [f".longhaul-{ID}"]


def test_stop_ends_it_soon(pair):
    hard_tree.make_big_files(pair.source, 32 << 20, 1)
    begun = time.monotonic()
    pair.stop_after = 2
    outcome = pair.over_shell(bwlimit=2_000_000)
    assert "told to stop" in outcome.failure
    assert time.monotonic() - begun < 12  # and not the 16 s of the whole file
    assert rsyncs_of(pair) == []
    assert largest(pair.dest / f".longhaul-{ID}" / "partial") > 0
