# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream whose small files go over the data connections, as on a long line."""

from __future__ import annotations

import errno
import os
import time

import pytest
from ansible_collections.longhaul.fleet.tests.support import faulty
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.faulty import fault, mounted
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import PACKAGE, Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    Trees,
    expect_running,
    expect_same,
    make_pair,
    noise,
    run_through,
    start,
)

needs_fuse = pytest.mark.skipif(bool(faulty.why_not()), reason=f"cannot run here: {faulty.why_not()}")

# The loopback address is no long line. A source that sent a bundle in the conversation would fail.
LONG_LINE = f"""\
import importlib, runpy, sys
sender = importlib.import_module("{PACKAGE}._engine.sender.stream_sender")
sender.StreamSource.takes_bundle = lambda _self, size: size > 0
sender.Begin = None
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def far_pair(trees: Trees, serving: str = "dest", **changes: object) -> Pair:
    """Return the two ends of a transfer whose source takes the line for a long one."""
    pair = make_pair(trees, serving, **changes)  # type: ignore[arg-type]
    pair.work.mkdir(exist_ok=True)
    (pair.work / "long_line.py").write_text(LONG_LINE)
    run_through(pair, "source", first=str(pair.work / "long_line.py"))
    return pair


def many(trees: Trees, count: int = 3000, size: int = 20_000) -> int:
    """Make small files of all sizes up to one; return how many bytes they have."""
    for number in range(count):
        folder = trees[0] / f"d{number % 30}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}").write_bytes(noise(number, 1 + number * 7919 % size))
    return sum(path.stat().st_size for path in trees[0].rglob("f*"))


@pytest.mark.parametrize("encrypt", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("serving", ["source", "dest"])
def test_small_files_of_all_kinds(trees, serving, encrypt):
    make_tree(trees[0])
    total = many(trees)
    (trees[0] / "large").write_bytes(noise(1, 9 * MIB))
    (trees[0] / "empty").touch()
    outcome = far_pair(trees, serving, encrypt=encrypt, streams=3).run()
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] >= total + 9 * MIB
    again = far_pair(trees, serving, encrypt=encrypt, streams=3).run()
    assert again["bytes_sent"] == 0 and not again["files_created"]


@pytest.mark.parametrize("algorithm", ["zlib", "zstd"])
def test_they_are_packed(trees, algorithm):
    for number in range(500):
        (trees[0] / f"f{number}").write_bytes(b"%d " % number * 3000)
    outcome = far_pair(trees, compress={"algorithm": algorithm, "level": 1, "auto": False}).run()
    expect_same(trees, outcome)


@needs_fuse
def test_one_that_a_bad_disk_does_not_give(trees, tmp_path):
    behind = tmp_path / "behind"
    behind.mkdir()
    make_tree(behind)
    (behind / "bad").write_bytes(noise(1, 100_000))
    (trees[1] / "bad").write_bytes(b"older version")
    with mounted(behind, trees[0], fault("read", "bad", errno.EIO, after=40_960)):
        outcome = far_pair(trees).run()
        found = [(one["path"], one["reason"]) for one in outcome["errors"]]
        assert found == [("bad", "cannot be read: Input/output error")]
        assert (trees[1] / "bad").read_bytes() == b"older version"
        assert differences(trees[0], trees[1], skip=[b"bad", b""]) == []


def test_one_that_changes_all_the_time_keeps_the_others_whole(trees):
    many(trees, 300)
    changing = trees[0] / "changing"
    changing.write_bytes(noise(1, 200_000))
    pair = start(far_pair(trees, bwlimit=2 * MIB))
    while not pair.is_over:
        os.utime(changing)
        time.sleep(0.002)
    outcome = pair.finish()
    assert {one["path"] for one in outcome["errors"]} <= {"changing"}, outcome
    assert differences(trees[0], trees[1], skip=[b"changing", b""]) == []


@pytest.mark.parametrize("encrypt", [False, True], ids=["plain", "TLS"])
def test_connections_that_break_cost_no_file(trees, encrypt):
    many(trees)
    pair = far_pair(trees, encrypt=encrypt, streams=3, bwlimit=8 * MIB)
    pair.start("dest")
    with Relay(int(pair.peer["port"])) as relay:
        pair.peer["port"] = relay.port
        pair.start("source")
        for _time in range(4):
            time.sleep(0.5)
            relay.cut_newest()
        expect_same(trees, pair.finish())


def test_a_kill_leaves_what_a_rerun_completes(trees):
    many(trees)
    pair = start(far_pair(trees, bwlimit=8 * MIB))
    wait_for(lambda: len(list(trees[1].rglob("f*"))) > 1000, lambda: expect_running(pair), seconds=60)
    pair.kill("source")
    pair.stop()
    assert 1000 < len([path for path in trees[1].rglob("f*") if path.is_file()]) < 3000
    expect_same(trees, far_pair(trees).run())
