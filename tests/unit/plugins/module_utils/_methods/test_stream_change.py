# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees that change while stream moves them: nothing is mixed, nothing leads outside, and the next run is all right."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    expect_running,
    expect_same,
    make_pair,
    noise,
    partial_folder,
    start,
    transfer,
)

OLD = b"a" * MIB
RATE = 8 * MIB  # bytes a second


def under_way(trees, first: str = "big", **changes) -> Pair:
    """Start a transfer whose first file takes seconds; gives it when that file is on its way."""
    source = trees[0]
    (source / first).parent.mkdir(exist_ok=True)
    (source / first).write_bytes(noise(7, 24 * MIB))
    pair = start(make_pair(trees, bwlimit=RATE, **changes))
    wait_for(lambda: any(partial_folder(pair).iterdir()), lambda: expect_running(pair), seconds=30)
    time.sleep(0.5)  # the small files behind it were read at once
    expect_running(pair)
    return pair


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"b" * 1000)


def shrink(path: Path) -> None:
    os.truncate(path, MIB // 2)


def rewrite(path: Path) -> None:
    """Write as much as there was, and give it the time that it had: only the ctime says that it changed."""
    before = path.stat()
    path.write_bytes(b"b" * MIB)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("inside")


def become_a_symlink(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def become_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {  # and what is said of it, where it is said
    "grows": (grow, ""),
    "shrinks": (shrink, ""),
    "rewritten": (rewrite, ""),
    "vanishes": (Path.unlink, "vanished"),
    "directory": (become_a_directory, "was replaced by a directory"),
    "symlink": (become_a_symlink, ""),
    "FIFO": (become_a_fifo, ""),
}


@pytest.mark.newest
@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES.keys())
def test_a_file_changes_between_its_offer_and_its_turn(trees, change, said):
    source, dest, _work = trees
    make_tree(source)
    (source / "victim").write_bytes(OLD)
    (dest / "victim").write_bytes(b"older version")
    pair = under_way(trees)
    change(source / "victim")
    outcome = pair.finish()
    errors = [f"{one['path']}: {one['reason']}" for one in outcome["errors"]]
    if said == "vanished":
        assert outcome["vanished"] == 1 and errors == []
        assert (dest / "victim").read_bytes() == b"older version"  # it was not asked to delete
    elif said:
        assert len(errors) == 1 and errors[0].startswith("victim: ") and said in errors[0]
        assert (dest / "victim").read_bytes() == b"older version"
    else:
        assert errors == []
        assert differences(source, dest, skip=[b""]) == []  # it was offered again as it is now
    expect_same(trees, transfer(trees, delete=True))


@pytest.mark.newest
def test_a_file_is_rewritten_while_it_is_sent(trees):
    """As long as before, and given the time that it had: only the ctime says that what arrived is a mixture."""
    source, _dest, _work = trees
    pair = under_way(trees)
    before = (source / "big").stat()
    size = before.st_size
    with (source / "big").open("r+b") as file:  # at both ends: one has left already, the other has not
        file.write(b"b" * 1000)
        file.seek(size - 1000)
        file.write(b"b" * 1000)
    os.utime(source / "big", ns=(before.st_atime_ns, before.st_mtime_ns))
    outcome = pair.finish()
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] >= 2 * size
    expect_counted_once(pair, outcome)


def expect_counted_once(pair: Pair, outcome: dict[str, Any]) -> None:
    """Expect that both ends know how much there was, and that what came twice counts as done once."""
    for side in ("source", "dest"):
        progress = pair.progress(side)
        assert progress["bytes_total"] == outcome["bytes_total"], side
        assert progress["counted"] == progress["bytes_done"] == outcome["bytes_total"], (side, progress)
        assert progress["files_done"] == progress["files_total"] == outcome["files_total"], (side, progress)


@pytest.mark.parametrize("serving", ["dest", "source"])
def test_both_ends_count_what_is_small_large_and_there_already(trees, serving):
    source, dest, _work = trees
    make_tree(source)
    for number in range(3):
        (source / f"large{number}").write_bytes(noise(number, 3 * MIB))
    shutil.copy2(source / "large0", dest / "large0")
    pair = make_pair(trees, serving)
    expect_counted_once(pair, pair.run())
    again = make_pair(trees, serving)
    expect_counted_once(again, again.run())


@pytest.mark.newest
def test_a_directory_is_renamed_during_the_scan(trees):
    """Large files fill what may be under way, so the scan stands still in the middle of the tree."""
    source, dest, _work = trees
    for folder in ("m", "n"):
        for number in range(20):
            (source / folder / str(number)).mkdir(parents=True)
            (source / folder / str(number) / "file").write_bytes(noise(number, 9 * MIB if folder == "m" else 500))
    pair = start(make_pair(trees, bwlimit=4 * RATE))
    wait_for(lambda: any(dest.glob("m/*/file")), lambda: expect_running(pair), seconds=60)
    assert not (dest / "m/9").exists() and not (dest / "n").exists()  # nobody has looked there yet
    (source / "m").rename(source / "moved")
    (source / "n").rename(source / "also moved")
    outcome = pair.finish()
    assert outcome["vanished"] >= 1 and not outcome.get("failed"), outcome
    for path in dest.glob("*/*/file"):
        number = path.parent.name
        assert path.read_bytes() == (source / "moved" / number / "file").read_bytes()
    again = transfer(trees, delete=True)
    expect_same(trees, again)


@pytest.mark.newest
@pytest.mark.parametrize("is_scanned", [False, True])
def test_a_parent_is_swapped_for_a_symlink_at_the_source(trees, tmp_path, is_scanned):
    source, dest, _work = trees
    outside = tmp_path / "outside"
    for number, folder in enumerate((source / "z", outside)):
        folder.mkdir()
        for name in ("one", "two"):
            (folder / name).write_bytes(noise(number, 2 * MIB))
    secret = (outside / "one").read_bytes()
    for number in range(0 if is_scanned else 12):  # they fill what may be under way: nobody has looked at z yet
        with (source / f"file{number:02}").open("wb") as file:
            file.truncate(9 * MIB)
    pair = under_way(trees)
    (source / "z").rename(tmp_path / "aside")
    (source / "z").symlink_to(outside)
    outcome = pair.finish()
    files = [path for path in dest.rglob("*") if path.is_file() and not path.is_symlink()]
    assert secret not in [path.read_bytes() for path in files]
    assert outcome["vanished"] == 2 if is_scanned else (dest / "z").is_symlink(), outcome
    expect_same(trees, transfer(trees, delete=True))
    assert (dest / "z").is_symlink()


@pytest.mark.newest
@pytest.mark.parametrize("size", [100, 2 * MIB], ids=["small", "large"])
def test_a_parent_is_swapped_for_a_symlink_at_the_destination(trees, tmp_path, size):
    source, dest, _work = trees
    outside = tmp_path / "outside"
    outside.mkdir()
    (source / "a").mkdir()
    (source / "a/first").write_bytes(b"first")
    for name in ("z-one", "z-two"):
        (source / "a" / name).write_bytes(noise(1, size))
    pair = under_way(trees, "a/m-big")
    wait_for((dest / "a").is_dir, lambda: expect_running(pair))
    (dest / "a").rename(tmp_path / "aside")
    (dest / "a").symlink_to(outside)
    outcome = pair.finish()
    assert list(outside.iterdir()) == []
    assert outcome.get("failed") or outcome["errors"], outcome
    expect_same(trees, transfer(trees))
    assert list(outside.iterdir()) == []


def test_the_destination_is_edited_between_two_runs(trees):
    source, dest, _work = trees
    make_tree(source)
    for name in ("cut", "gone", "mode", "touched", "longer"):
        (source / name).write_bytes(noise(3, 50_000))
    (source / "large").write_bytes(noise(4, 3 * MIB))
    expect_same(trees, transfer(trees))
    os.truncate(dest / "cut", 10)
    (dest / "gone").unlink()
    (dest / "mode").chmod(0o600)
    os.utime(dest / "touched")
    grow(dest / "longer")
    with (dest / "large").open("r+b") as file:
        file.write(b"edited")
    (dest / "a/-rf").unlink()
    (dest / "a/-rf").symlink_to("/etc/hostname")
    shutil.rmtree(dest / "empty")
    (dest / "empty").write_text("a file now")
    (dest / "extra").write_text("extra")
    predicted = transfer(trees, delete=True, check=True)
    done = transfer(trees, delete=True)
    expect_same(trees, done)
    names = ("files_created", "files_updated", "files_deleted", "attributes_changed")
    assert {name: predicted[name] for name in names} == {name: done[name] for name in names}
    assert not transfer(trees, delete=True)["changed"]
