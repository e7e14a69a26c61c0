# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers to file systems that are not like the one below /tmp. Mounting needs root, and loop devices."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    NOBODY,
    WITHOUT_ROOT,
    journaled,
    needs_root,
    noise,
    run_as_nobody,
)

pytestmark = pytest.mark.newest

SECOND = 10**9
TIME = 1_700_000_001 * SECOND + 123_456_789


@pytest.fixture(name="seconds", scope="module")
def _seconds(tmp_path_factory):
    """Return a folder of a file system that keeps times in whole seconds."""
    try:
        with disk_image(tmp_path_factory.mktemp("disk"), "ext4-128", 64 << 20) as mounted:
            yield mounted
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


def fill(source: Path) -> None:
    """Make a tree whose times all have a fraction."""
    make_tree(source)
    for path in (source, *source.rglob("*")):
        os.utime(path, ns=(TIME, TIME), follow_symlinks=False)


def run(trees, method, **changes):
    """Run a transfer that must go well, and return its outcome."""
    outcome = make_pair(trees, method, **changes).run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    return outcome


@needs_root
@pytest.mark.parametrize("serving", ["dest", *rarely("source")])
@pytest.mark.parametrize("method", ["stream", "tar_nc", "rsync", *rarely("rsyncd", "scp", "sftp")])
def test_a_rerun_to_a_destination_with_coarse_times_has_nothing_to_do(tmp_path, seconds, method, serving):
    source, dest = tmp_path / "source", seconds / f"{method}-{serving}"
    source.mkdir(), dest.mkdir()
    fill(source)
    trees = (source, dest, tmp_path / "work")
    first = run(trees, method, serving=serving)
    assert first["time_units"] == {"": SECOND}
    assert run(trees, method, serving=serving, check=True)["changes"] == []
    again = run(trees, method, serving=serving)
    assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == [], again
    file = next(path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink())
    os.utime(file, ns=(TIME, TIME + SECOND))
    changed = run(trees, method, serving=serving)
    assert changed["files_updated"] + changed["attributes_changed"] == 1, changed


@needs_root
@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "tar_nc")])
def test_a_backup_with_coarse_times_misses_no_change_and_links_the_rest(tmp_path, seconds, method):
    source, folder = tmp_path / "source", seconds / f"backup-{method}"
    for path in (source, folder, folder / "old", folder / "new"):
        path.mkdir()
    for name in ("same", "changed"):
        (source / name).write_text("before")
        os.utime(source / name, ns=(TIME, TIME))
    work = tmp_path / "work"
    run((source, folder / "old", work), method)
    (source / "changed").write_text("after!")
    os.utime(source / "changed", ns=(TIME, TIME + 1))
    links = {"link_dest": [str(folder / "old")]}
    run((source, folder / "new", work), method, **links)
    assert (folder / "new/changed").read_text() == "after!" and (folder / "old/changed").read_text() == "before"
    assert (folder / "new/same").samefile(folder / "old/same")
    again = run((source, folder / "new", work), method, **links)
    assert not again["changed"] and again["bytes_sent"] == 0, again


# file systems that are mounted inside a destination


@contextlib.contextmanager
def mounted(place: Path, *options: str) -> Iterator[Path]:
    """Mount something at a folder for the time of a block."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *options, str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


TMPFS = ("-t", "tmpfs", "longhaul-test")


@pytest.fixture(name="data", params=["tmpfs", "bind"])
def _data(request, trees, tmp_path):
    """Mount a file system of its own, or the same one once more, inside the destination."""
    (tmp_path / "elsewhere").mkdir()
    options = TMPFS if request.param == "tmpfs" else ("--bind", str(tmp_path / "elsewhere"))
    with mounted(trees[1] / "data", *options) as place:
        yield place


def staged_in(folder: Path) -> list[Path]:
    """Return what transfers have left of their own folders."""
    return list(folder.rglob(".longhaul-*"))


def fill_across(source: Path) -> None:
    """Make a tree with something of each kind inside and outside the folder that is a mount point elsewhere."""
    for name in ("a", "data/b", "data/old/c", "data/new/d"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    os.link(source / "data/b", source / "data/new/second name")
    (source / "data/link").symlink_to("b")
    os.mkfifo(source / "data/fifo")
    (source / "data/large").write_bytes(noise(1, 3 * MIB))
    os.setxattr(source / "data/old/c", "user.x", b"1")


@needs_root
@pytest.mark.parametrize("serving", ["dest", *rarely("source")])
@pytest.mark.parametrize("method", ["stream", "tar_nc", *rarely("rsync", "rsyncd", "scp", "sftp")])
def test_a_destination_with_a_mount_inside_is_like_any_other(trees, data, method, serving):
    source, dest, _work = trees
    fill_across(source)
    (data / "old").mkdir()
    (data / "old/c").write_text("something else")
    (data / "link").write_text("no link")
    run(trees, method, serving=serving)
    assert differences(source, dest) == [] and staged_in(dest) == []
    again = run(trees, method, serving=serving)
    assert not again["changed"] and again["bytes_sent"] == 0
    (source / "data/b").write_text("changed")
    with (source / "data/large").open("r+b") as file:
        file.write(b"changed")
    (source / "data/old/c").chmod(0o600)
    (source / "data/new/d").unlink()
    assert run(trees, method, serving=serving, delete=True)["files_deleted"] == 1
    assert differences(source, dest) == [] and staged_in(dest) == []


@needs_root
def test_a_bind_mount_at_both_ends(trees, tmp_path):
    source, dest, _work = trees
    for place in (source, dest):
        (tmp_path / f"other-{place.name}").mkdir()
    with contextlib.ExitStack() as held:
        for place in (source, dest):
            held.enter_context(mounted(place / "data", "--bind", str(tmp_path / f"other-{place.name}")))
        fill_across(source)
        (dest / "data/b").write_text("old")
        run(trees, "stream")
        assert differences(source, dest) == [] and staged_in(dest) == []
        assert not run(trees, "stream")["changed"]


@needs_root
def test_a_whole_destination_on_tmpfs(trees):
    source, dest, _work = trees
    fill_across(source)
    with mounted(dest, *TMPFS):
        run(trees, "stream")
        assert differences(source, dest) == [] and staged_in(dest) == []
        assert not run(trees, "stream")["changed"]


@needs_root
def test_a_large_file_is_staged_where_it_goes_and_resumed_there(trees, data):
    source, dest, _work = trees
    (source / "data").mkdir()
    size = 80 * MIB
    (source / "data/large").write_bytes(noise(2, size))
    pair = make_pair(trees, "stream", bwlimit=20 * MIB)
    pair.start("dest")
    pair.start("source")
    partial = data / f".longhaul-{pair.plan['id']}" / "partial"
    wait_for(lambda: journaled(partial) > 0, lambda: None, seconds=60)
    assert not list((dest / f".longhaul-{pair.plan['id']}" / "partial").iterdir())
    pair.kill("dest")
    pair.finish()
    assert list(partial.iterdir())
    outcome = run(trees, "stream")
    assert outcome["resumed"] and outcome["bytes_sent"] < size
    assert differences(source, dest) == [] and staged_in(dest) == []


@needs_root
def test_a_mount_that_is_gone_before_a_rerun_is_named(trees):
    source, dest, _work = trees
    (source / "data").mkdir()
    (source / "data/large").write_bytes(noise(3, 60 * MIB))
    pair = make_pair(trees, "stream", bwlimit=20 * MIB)
    with mounted(dest / "data", *TMPFS) as data:
        pair.start("dest")
        pair.start("source")
        noted = dest / f".longhaul-{pair.plan['id']}" / "mounts"  # once the folders are there
        wait_for(lambda: noted.exists() and staged_in(data), lambda: None, seconds=60)
        pair.kill("dest")
        pair.finish()
    outcome = run(trees, "stream")
    assert any("'data'" in text and "mounted" in text for text in outcome["warnings"])
    assert differences(source, dest) == [] and staged_in(dest) == []


@needs_root
@pytest.mark.parametrize("method", ["stream", *rarely("tar_nc")])
def test_a_mount_that_is_read_only_fails_by_its_entries(trees, method):
    source, dest, _work = trees
    fill_across(source)
    with mounted(dest / "data", *TMPFS) as data:
        (data / "b").write_text("old")
        subprocess.run(["mount", "-o", "remount,ro", str(data)], check=True)
        outcome = make_pair(trees, method).run()
    assert {"data/b", "data/large", "data/new"} <= {error["path"] for error in outcome["errors"]}
    assert {error["reason"] for error in outcome["errors"] if error["path"] in ("data/b", "data/large")} == {
        "Read-only file system"
    }
    assert (dest / "a").read_text() == "a" and staged_in(dest) == []


@needs_root
@pytest.mark.parametrize("serving", ["dest", "source"])
def test_a_user_stages_below_the_root_of_a_mount_that_is_another_users(trees, serving):
    source, dest, _work = trees
    for name in ("data/own/a", "data/b"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("new")
    for path in (source, *source.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    pair = make_pair(trees, "stream", serving, preserve=WITHOUT_ROOT)
    run_as_nobody(pair, "dest")
    with mounted(dest / "data", "-o", "mode=755", *TMPFS) as data:
        (data / "own").mkdir()
        for name in ("own/a", "b"):
            (data / name).write_text("old, and longer")
        for name in ("own", "own/a"):
            os.chown(data / name, NOBODY, NOBODY)
        outcome = pair.run()
        errors = {error["path"]: error["reason"] for error in outcome["errors"]}
        assert errors.pop("data/b") == "Permission denied" and set(errors) <= {"data"}
        assert (data / "own/a").read_text() == "new" and (data / "b").read_text() == "old, and longer"
        for path in (data, data / "b"):
            os.chown(path, NOBODY, NOBODY)
        outcome = pair.run()
        assert outcome["errors"] == [] and (data / "b").read_text() == "new" and staged_in(dest) == []


@needs_root
@pytest.mark.parametrize("serving", ["dest", "source"])
@pytest.mark.parametrize("method", ["stream", "rsync"])
def test_a_mount_point_that_the_source_lacks_is_kept(trees, tmp_path, method, serving):
    source, dest, _work = trees
    (source / "a").write_text("a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/precious").write_text("x")
    with contextlib.ExitStack() as held:
        for name in ("kept", "extra/deep/kept"):
            held.enter_context(mounted(dest / name, "--bind", str(tmp_path / "elsewhere")))
        (dest / "extra/goes").touch()
        outcome = run(trees, method, serving=serving, delete=True)
        assert outcome["files_deleted"] == 1 and not (dest / "extra/goes").exists()
        assert (tmp_path / "elsewhere/precious").exists()
        if (method, serving) != ("rsync", "source"):  # there rsync at the destination does not know the source's names
            assert any("2 mount points stay" in text for text in outcome["warnings"])
        assert not run(trees, method, serving=serving, delete=True)["changed"]


@needs_root
def test_what_is_linked_from_an_older_tree_is_copied_to_another_mount(trees, tmp_path, data):
    source, dest, work = trees
    fill_across(source)
    older = tmp_path / "older"
    older.mkdir()
    run((source, older, work), "stream")
    outcome = run(trees, "stream", link_dest=[str(older)])
    assert outcome["bytes_sent"] == 0 and differences(source, dest) == [] and staged_in(dest) == []
    assert (dest / "a").samefile(older / "a") and not (dest / "data/b").samefile(older / "data/b")
    assert not run(trees, "stream", link_dest=[str(older)])["changed"]


@needs_root
@pytest.mark.parametrize("trust", ["full", "none"])
@pytest.mark.parametrize("method", ["rsync", "rsyncd", "stream"])
def test_what_btrfs_says_of_itself_is_no_attribute_to_copy(tmp_path, method, trust):
    """``btrfs.compression`` exists on no other file system."""
    dest, work = tmp_path / "dest", tmp_path / "work"
    dest.mkdir()
    work.mkdir()
    try:
        with disk_image(tmp_path, "btrfs", 128 << 20) as source:
            trees = source, dest, work
            (source / "sub").mkdir()
            (source / "sub/file").write_text("text")
            os.setxattr(source / "sub/file", "user.kept", b"value")
            for path in (source / "sub", source / "sub/file"):
                os.setxattr(path, "btrfs.compression", b"zstd")
            plan = {"preserve": ["permissions", "times", "xattrs"], "trust": trust}
            run(trees, method, **plan)
            assert os.listxattr(dest / "sub/file") == ["user.kept"]
            assert not run(trees, method, **plan)["changed"]
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")
