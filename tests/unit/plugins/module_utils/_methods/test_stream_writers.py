# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream of so many small files that several processes make them."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import die_with_parent
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods import stream_pairs
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    Trees,
    expect_same,
    needs_root,
    start,
)

pytestmark = pytest.mark.long
BESIDE = "processes write small files beside"


def make_pair(trees: Trees, *arguments: Any, **changes: Any) -> Pair:
    """Return the two ends of one transfer, not started yet, which may write with two processes."""
    return stream_pairs.make_pair(trees, *arguments, streams=2, **changes)


def make_many(root: Path, count: int = 3000) -> None:
    """Make many small files of all sizes and modes, some with two names, some that belong to others."""
    chance = random.Random(count)
    make_tree(root)
    for number in range(count):
        folder = root / f"d{number // 97}"
        folder.mkdir(exist_ok=True)
        path = folder / f"f{number}"
        path.write_bytes(os.urandom(chance.choice([0, 1, 700, 5000, 16_384, 200_000 if number % 50 == 0 else 9])))
        path.chmod(chance.choice([0o644, 0o600, 0o4755, 0o440, 0o666]))
        if number % 20 == 0:
            os.link(path, root / "a" / f"link{number}")
        if number % 7 == 0 and os.geteuid() == 0:
            os.chown(path, 4711, 4712)
        if number % 31 == 0:
            os.setxattr(path, "user.note", b"%d" % number)
        os.utime(path, ns=(0, 1_600_000_000_000_000_000 + chance.randrange(10**18)))
    (root / "d1").chmod(0o2775)  # a group comes from above there


@pytest.mark.parametrize(("serving", "encrypt"), [("dest", False), ("dest", True), ("source", False)])
def test_what_several_processes_make_is_what_one_makes(trees, serving, encrypt):
    source = trees[0]
    make_many(source)
    pair = make_pair(trees, serving, encrypt)
    outcome = pair.run()
    expect_same(trees, outcome)
    assert BESIDE in pair.stderr("dest")
    assert outcome["files_created"] == outcome["files_total"] - 1  # the root was there
    assert outcome["bytes_sent"] + outcome["bytes_matched"] == outcome["bytes_total"]
    for number in range(0, 3000, 2):
        path = source / f"d{number // 97}" / f"f{number}"
        path.write_bytes(b"new %d" % number)
    shutil.rmtree(source / "d5")
    (source / "d5").write_bytes(b"a file now")
    again = make_pair(trees, serving, encrypt, delete=True).run()
    expect_same(trees, again)
    assert again["files_updated"] >= 1400 and again["files_deleted"] == 97
    last = make_pair(trees, serving, encrypt).run()
    assert not last["changed"] and last["bytes_sent"] == 0


def test_files_that_fail_are_all_named(trees):
    source, dest, _work = trees
    make_many(source, 2000)
    blocked = [f"d{number // 97}/f{number}" for number in range(1, 2000, 40)]
    for name in blocked:
        (dest / name / "not empty").mkdir(parents=True)
    outcome = make_pair(trees).run()
    assert sorted(error["path"] for error in outcome["errors"]) == sorted(blocked)
    assert all((dest / name / "not empty").is_dir() for name in blocked)
    for name in blocked:
        shutil.rmtree(dest / name)
    assert make_pair(trees).run()["errors"] == []
    assert differences(source, dest) == []


@needs_root
def test_a_disk_that_small_files_fill_is_said_and_a_rerun_goes_on(trees):
    source, dest, _work = trees
    for number in range(4000):
        (source / f"f{number}").write_bytes(os.urandom(8000))
    with small_disk(dest, "size=20m") as remount:
        pair = make_pair(trees)
        outcome = pair.run()
        assert "full" in outcome.get("failed", ""), outcome
        assert BESIDE in pair.stderr("dest")
        kept = len(list(dest.glob("f*")))
        assert kept > 1000
        remount("size=80m")
        again = make_pair(trees).run()
        assert again["errors"] == [] and again["files_created"] == 4000 - kept
        assert differences(source, dest) == []


@pytest.mark.parametrize("serving", ["dest", "source"])
def test_one_that_is_killed_fails_the_transfer_and_a_rerun_goes_on(trees, serving):
    source, dest, _work = trees
    make_many(source)
    pair = start(make_pair(trees, serving, bwlimit=8 << 20))
    pid = pair.processes["dest"].pid
    wait_for(lambda: bool(die_with_parent.descendants(pid)))
    os.kill(die_with_parent.descendants(pid)[0], signal.SIGKILL)
    outcome = pair.finish()
    assert "writes small files" in outcome.get("failed", ""), outcome
    assert make_pair(trees, serving).run()["errors"] == []
    assert differences(source, dest) == []
