# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by the two methods whose ends meet at ports of their own: what both do alike."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree

COUNTED = ("files_created", "files_updated", "files_deleted", "attributes_changed", "bytes_sent", "bytes_matched")


@pytest.fixture(name="make_pair", params=["stream", "tar_nc"])
def _make_pair(request, trees: tuple[Path, Path, Path]) -> Callable[..., Pair]:
    """Return what makes the two ends of one transfer, not started yet."""
    source, usual, work = trees

    def make(dest: Path = usual, **changes: Any) -> Pair:
        return Pair(work, source, dest, settings(request.param, encrypt=False, **changes))

    return make


@pytest.fixture(name="transfer")
def _transfer(make_pair: Callable[..., Pair]) -> Callable[..., dict[str, Any]]:
    """Return what runs one transfer."""
    return lambda **changes: make_pair(**changes).run()


def counts(outcome: dict[str, Any]) -> dict[str, int]:
    """What check mode must predict exactly."""
    return {name: outcome[name] for name in COUNTED}


@pytest.mark.parametrize("wanted", [{"checksum": True}, {"suspects": ["a/b/file", "gone"]}], ids=str)
def test_checksum_finds_what_the_quick_check_cannot(trees, transfer, wanted):
    source, dest = trees[:2]
    make_tree(source)
    transfer()
    victim = dest / "a" / "b" / "file"
    status = victim.stat()
    victim.write_bytes(b"y" * 5000)
    os.utime(victim, ns=(0, status.st_mtime_ns))
    assert not transfer()["changed"]
    assert not transfer(suspects=["none"])["changed"]
    outcome = transfer(**wanted)
    assert (outcome["files_updated"], outcome["bytes_sent"]) == (2, 5000)  # the file, and its other name
    assert differences(source, dest) == []


def test_what_a_tag_leaves_out_is_neither_sent_nor_deleted(trees, transfer):
    source, dest = trees[:2]
    make_tree(source)
    for tree, name in ((source, "new"), (dest, "old")):
        (tree / "skip/deep").mkdir(parents=True)
        (tree / "skip" / name).touch()
        (tree / "skip/deep" / name).touch()
    (source / "skip/.nobackup").write_text("why")
    (dest / "extra").touch()
    tags = {"exclude_if_present": [".nobackup"], "exclude_caches": True}
    predicted = counts(transfer(check=True, delete=True, **tags))
    outcome = transfer(delete=True, **tags)
    assert outcome["errors"] == [] and counts(outcome) == predicted
    assert (outcome["files_deleted"], outcome["left_out"]) == (1, 1)
    assert sorted(path.name for path in (dest / "skip").rglob("*")) == [".nobackup", "deep", "old", "old"]
    assert not transfer(delete=True, **tags)["changed"]
    # A rule that says so deletes there, too, as for an unfinished snapshot.
    assert transfer(delete=True, rules=["R *"], **tags)["files_deleted"] == 3
    assert sorted(path.name for path in (dest / "skip").rglob("*")) == [".nobackup"]
    assert outcome["files_total"] == transfer(delete=True, **tags)["files_total"]


def change(source: Path, dest: Path) -> None:
    """Change most kinds of things on both sides."""
    (source / "a" / "b" / "file").write_bytes(b"new")
    (source / "added").mkdir()
    (source / "added" / "f").write_bytes(b"123")
    os.chmod(source / "none", 0o640)
    (source / "link").unlink()
    (source / "link").symlink_to("elsewhere")
    (dest / "extra" / "deep").mkdir(parents=True)
    (dest / "extra" / "deep" / "f").write_bytes(b"f")
    (dest / "extra" / "keep.me").write_bytes(b"f")
    (dest / "gone").write_bytes(b"g")
    shutil.rmtree(source / "empty")
    (source / "empty").write_bytes(b"now a file")
    (dest / "empty" / "full").write_bytes(b"")


def test_check_mode_predicts_exactly_and_writes_nothing(trees, transfer):
    source, dest = trees[:2]
    make_tree(source)
    transfer()
    change(source, dest)
    options = {"delete": True, "rules": ["P keep.me"]}
    before = sorted(str(path) for path in dest.rglob("*"))
    predicted = transfer(check=True, **options)
    assert sorted(str(path) for path in dest.rglob("*")) == before
    done = transfer(**options)
    assert done["errors"] == [] and counts(predicted) == counts(done)
    assert sorted(predicted["changes"]) == sorted(done["changes"])
    assert (dest / "extra" / "keep.me").exists() and not (dest / "extra" / "deep").exists()
    shutil.rmtree(dest / "extra")
    transfer()
    assert differences(source, dest) == []


def test_max_delete_deletes_nothing_above_it(trees, transfer):
    source, dest = trees[:2]
    make_tree(source)
    transfer()
    for name in ("x", "y", "z"):
        (dest / name).write_bytes(b"")
    outcome = transfer(delete=True, max_delete=2)
    assert "3 entries" in outcome["failure"] and "max_delete" in outcome["failure"]
    assert (dest / "x").exists() and outcome["files_deleted"] == 0
    assert transfer(delete=True, max_delete=3)["files_deleted"] == 3
    assert differences(source, dest) == []


def test_an_empty_source_deletes_nothing(trees, transfer):
    dest = trees[1]
    (dest / "precious").write_bytes(b"")
    outcome = transfer(delete=True)
    assert "mounted" in outcome["failure"] and (dest / "precious").exists()
    assert transfer(delete=True, max_delete=1)["files_deleted"] == 1


def test_link_dest_costs_no_bytes(trees, make_pair, transfer):
    source, dest = trees[:2]
    make_tree(source)
    transfer()
    second = dest.parent / "second"
    second.mkdir()
    (source / "a" / "-rf").write_bytes(b"changed")
    outcome = make_pair(second, link_dest=[str(dest)]).run()
    assert outcome["bytes_sent"] == 7 and outcome["errors"] == []
    assert (second / "nl\nname").stat().st_ino == (dest / "nl\nname").stat().st_ino
    assert differences(source, second) == []


def test_only_one_file(trees, transfer):
    source, dest = trees[:2]
    make_tree(source)
    os.utime(dest, ns=(0, 5))
    outcome = transfer(only="none", delete=True)
    assert outcome["files_total"] == outcome["files_created"] == 1
    assert [path.name for path in dest.iterdir()] == ["none"]


def test_no_symlink_at_the_destination_is_followed(trees, transfer):
    source, dest = trees[:2]
    make_tree(source)
    outside = dest.parent / "outside"
    outside.mkdir()
    (dest / "a").symlink_to(outside)
    outcome = transfer()
    assert outcome["errors"] == [] and not list(outside.iterdir())
    assert differences(source, dest) == []


def test_a_file_that_keeps_changing_is_listed_and_not_placed(trees, make_pair):
    source, dest, work = trees
    make_tree(source)
    (source / "log").write_bytes(b"x" * (40 << 20))
    (dest / "only here").write_text("extra")
    pair = make_pair(bwlimit=100 << 20, delete=True)
    pair.start("dest")
    pair.start("source")
    with open(source / "log", "r+b") as log:
        while not (work / "job-source" / "result.json").exists() and pair.processes["source"].poll() is None:
            log.write(os.urandom(100))
            log.flush()
            time.sleep(0.005)
    outcome = pair.finish()
    assert outcome["errors_total"] == outcome["errors_unstable"] == 1
    assert "unstable: sent 2 times" in outcome["errors"][0]["reason"]  # a large one is not sent again and again
    assert not (dest / "only here").exists()  # the source was read completely, so what is too much is known
    assert not (dest / "log").exists() and (dest / "a" / "-rf").exists()


def test_a_full_destination_fails_plainly_and_goes_on_later(trees, transfer):
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    source, dest = trees[:2]
    with small_disk(dest, "size=20m") as remount:
        for number in range(6):
            (source / f"f{number}").write_bytes(os.urandom(5 << 20))
        outcome = transfer()
        assert "full" in outcome.get("failed", ""), outcome
        remount("size=80m")
        assert transfer()["errors"] == []
        assert differences(source, dest) == []
