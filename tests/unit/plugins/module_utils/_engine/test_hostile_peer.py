# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A peer that knows the secret and lies: an end fails plainly, in time, and touches nothing outside its root."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Shard, dump_message
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import Record, RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.liar import STAGED, End, tell_lies

SEEDS = range(40)


@pytest.mark.often(30)
@pytest.mark.parametrize("side", ["dest", "source"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nonsense_ends_plainly(tmp_path, side, seed):
    end = End(tmp_path, side)
    time.sleep(0.1)  # a source has offered its shard by then
    tell_lies(end, random.Random(seed), with_records=bool(seed % 2))
    ended = end.finish()
    assert isinstance(ended, TransferFailed), repr(ended)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job", "root"]


def asked_for(folder: Path, size: int) -> End:
    """Return a destination that has asked for the contents of the one file of shard 1, ``new``."""
    end = End(folder, "dest")
    end.say(FrameKind.SHARD, Shard(1, [Entry(b"new", "f", 0o644, 0, 0, size, 1, 2, 3, 4, 1, 0, 0)]).dump())
    time.sleep(0.3)
    return end


@pytest.mark.parametrize(
    ("record", "follows"),
    [
        (Record(RecordKind.RAW, 1, 0, 400_000, 5, 5), b"12345"),
        (Record(RecordKind.ZLIB, 1, 0, 0, 5, 5), b"12345"),
        (Record(RecordKind.SAME, 1, 0, 0, 5, 0), b""),
    ],
)
def test_impossible_contents_end_the_transfer(tmp_path, record, follows):
    end = asked_for(tmp_path, 300_000)
    end.bring(record, follows)
    time.sleep(0.3)
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "broke off" not in str(ended), repr(ended)
    assert not (tmp_path / "root" / "new").exists()


def test_more_than_was_asked_for_is_not_kept(tmp_path):
    end = asked_for(tmp_path, 10)
    end.say(FrameKind.BEGIN, dump_message({"id": 1}))
    end.say(FrameKind.DATA, bytes(1 << 20))
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "more arrived" in str(ended), repr(ended)


def test_a_shard_is_done_with_once(tmp_path):
    end = asked_for(tmp_path, 10)
    end.say(FrameKind.BEGIN, dump_message({"id": 1}))
    end.say(FrameKind.DATA, b"0123456789")
    sent = dump_message({"id": 1, "problems": {}, "sums": {}, "bytes": 10})
    end.say(FrameKind.SENT, sent)
    end.say(FrameKind.SENT, sent)
    wait_for(lambda: end.ended is not None, seconds=20)
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "SENT of shard 1" in str(ended), repr(ended)
    assert (tmp_path / "root" / "new").read_bytes() == b"0123456789"


@pytest.mark.often(5)
@pytest.mark.parametrize(
    "path",
    [*STAGED, b"a/.longhaul-0123456789abcdef", b"a/.longhaul-0123456789abcdef/tmp/x"],
    ids=["own", "tmp", "partial", "file", "other", "other-file"],
)
@pytest.mark.parametrize("kind", ["f", "l", "d"])
def test_a_staging_name_is_refused(tmp_path, path, kind):
    """Neither this transfer's own folder nor that of another one may be replaced, or written to, by a source."""
    outside = tmp_path / "outside"
    outside.mkdir()
    end = End(tmp_path, "dest")
    target = b"../outside" if kind == "l" else b""
    numbers = (0, 0, len(target), 1, 2, 3, 4, 1, 0, 0)
    end.say(FrameKind.SHARD, Shard(1, [Entry(path, kind, 0o755, *numbers, target)]).dump())
    wait_for(lambda: end.ended is not None, seconds=20)
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "a transfer's own folder" in str(ended), repr(ended)
    staging = tmp_path / "root" / STAGED[0].decode()
    assert [path.is_symlink() for path in (staging, staging / "tmp", staging / "partial")] == [False] * 3
    assert list(outside.iterdir()) == [] and not (tmp_path / "root" / "a").exists()


def test_a_staging_folder_that_is_replaced_leads_nowhere(tmp_path):
    """A local user who owns the destination can do so at any time; a large file is on its way by then."""
    outside = tmp_path / "outside"
    for name in ("tmp", "partial"):
        (outside / name).mkdir(parents=True, mode=0o755)
    end = End(tmp_path, "dest")
    wait_for((tmp_path / "root").exists, seconds=20)
    time.sleep(0.3)  # it is at work now
    staging = tmp_path / "root" / STAGED[0].decode()
    staging.rename(tmp_path / "root" / "moved")
    staging.symlink_to(outside)
    size = 20 << 20
    large = [Entry(name, "f", 0o644, 0, 0, size, 1, 2, 3, number, 1, 0, 0) for number, name in enumerate((b"x", b"y"))]
    end.say(FrameKind.SHARD, Shard(1, large).dump())
    wait_for(lambda: list((tmp_path / "root" / "moved" / "partial").iterdir()), seconds=20)
    assert isinstance(end.finish(), TransferFailed)
    assert [list((outside / name).iterdir()) for name in ("tmp", "partial")] == [[], []]
    assert [(outside / name).stat().st_mode & 0o777 for name in ("tmp", "partial")] == [0o755, 0o755]
