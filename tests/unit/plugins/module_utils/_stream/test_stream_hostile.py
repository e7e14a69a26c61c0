# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A peer that knows the secret and lies: an end fails plainly, in time, and touches nothing outside its root."""

from __future__ import annotations

import random
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._exchange import frames
from ansible_collections.longhaul.fleet.plugins.module_utils._exchange.messages import Shard, pack, pack_shard
from ansible_collections.longhaul.fleet.plugins.module_utils._job.context import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._stream import records
from ansible_collections.longhaul.fleet.plugins.module_utils._stream.records import Record
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.entry import Entry
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.liar import End, tell_lies

SEEDS = range(40)


@pytest.mark.parametrize("side", ["dest", "source"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nonsense_ends_plainly(tmp_path, side, seed):
    end = End(tmp_path, side)
    time.sleep(0.1)  # a source has offered its shard by then
    tell_lies(end, random.Random(seed), with_records=bool(seed % 2))
    ended = end.finish()
    assert isinstance(ended, TransferFailed), repr(ended)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job", "root"]


@pytest.mark.parametrize(
    ("record", "follows"),
    [
        (Record(records.RAW, 1, 0, 400_000, 5, 5), b"12345"),
        (Record(records.ZLIB, 1, 0, 0, 5, 5), b"12345"),
        (Record(records.SAME, 1, 0, 0, 5, 0), b""),
    ],
)
def test_impossible_contents_end_the_transfer(tmp_path, record, follows):
    end = End(tmp_path, "dest")
    item = Entry(b"new", "f", 0o644, 0, 0, 300_000, 1, 2, 3, 4, 1, 0, 0)
    end.say(frames.SHARD, pack_shard(Shard(1, [item])))
    time.sleep(0.3)
    end.bring(record, follows)
    time.sleep(0.3)
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "broke off" not in str(ended), repr(ended)
    assert not (tmp_path / "root" / "new").exists()


def test_more_than_was_asked_for_is_not_kept(tmp_path):
    end = End(tmp_path, "dest")
    item = Entry(b"new", "f", 0o644, 0, 0, 10, 1, 2, 3, 4, 1, 0, 0)
    end.say(frames.SHARD, pack_shard(Shard(1, [item])))
    time.sleep(0.3)
    end.say(frames.BEGIN, pack({"id": 1}))
    end.say(frames.DATA, bytes(1 << 20))
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "more arrived" in str(ended), repr(ended)


def test_a_shard_is_done_with_once(tmp_path):
    end = End(tmp_path, "dest")
    item = Entry(b"new", "f", 0o644, 0, 0, 10, 1, 2, 3, 4, 1, 0, 0)
    end.say(frames.SHARD, pack_shard(Shard(1, [item])))
    time.sleep(0.3)
    end.say(frames.BEGIN, pack({"id": 1}))
    end.say(frames.DATA, b"0123456789")
    sent = pack({"id": 1, "problems": {}, "sums": {}, "bytes": 10})
    end.say(frames.SENT, sent)
    end.say(frames.SENT, sent)
    wait_for(lambda: end.ended is not None, seconds=20)
    ended = end.finish()
    assert isinstance(ended, TransferFailed) and "not under way" in str(ended), repr(ended)
    assert (tmp_path / "root" / "new").read_bytes() == b"0123456789"
