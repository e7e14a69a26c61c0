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
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.apply_file import FileApplier
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.decide import Decider
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.reconcile import Reconciler
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Shard, dump_message
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import PROOF_BYTES, Record, RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.liar import ROOT, STAGED, End, tell_lies

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
    """Return a destination that has asked for the contents of the second entry of shard 1, the file ``new``."""
    end = End(folder, "dest")
    end.say(FrameKind.SHARD, Shard(1, [ROOT, Entry(b"new", "f", 0o644, 0, 0, size, 1, 2, 3, 4, 1, 0, 0)]).dump())
    time.sleep(0.3)
    return end


@pytest.mark.parametrize(
    ("record", "follows"),
    [
        (Record(RecordKind.RAW, 1, 1, 400_000, 5, 5), b"12345"),
        (Record(RecordKind.ZLIB, 1, 1, 0, 5, 5), b"12345"),
        (Record(RecordKind.SAME, 1, 1, 0, 5, PROOF_BYTES), bytes(PROOF_BYTES)),
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


@pytest.mark.parametrize(
    ("records", "is_begun", "said"),
    [
        ([(Record(RecordKind.RAW, 1, 1, 6, 5, 5), b"12345")], False, "behind the end"),
        ([(Record(RecordKind.SAME, 1, 1, 0, 5, PROOF_BYTES), bytes(PROOF_BYTES))], False, "does not exist"),
        ([(Record(RecordKind.RAW, 1, 1, 0, 10, 10), b"0123456789")], False, "less arrived"),
        (
            [(Record(RecordKind.RAW, 1, 1, 0, 5, 5), b"01234"), (Record(RecordKind.DONE, 1, 1, 0, 5), b"")],
            False,
            "less",
        ),
        ([(Record(RecordKind.ZERO, 1, 1, 0, 10), b""), (Record(RecordKind.DONE, 1, 1, 0, 10), b"")], True, "more"),
    ],
    ids=["behind", "no-old-version", "never-done", "half", "twice"],
)
def test_a_bundle_on_a_data_connection_is_what_was_announced_or_nothing(tmp_path, records, is_begun, said):
    end = asked_for(tmp_path, 10)
    for record, follows in records:
        end.bring(record, follows)
    time.sleep(0.3)
    if is_begun:
        end.say(FrameKind.BEGIN, dump_message({"id": 1}))
        end.say(FrameKind.DATA, b"0123456789")
    end.say(FrameKind.SENT, dump_message({"id": 1, "problems": {}, "sums": {}, "bytes": 10}))
    ended = end.finish_refused()
    assert isinstance(ended, TransferFailed) and said in str(ended), repr(ended)
    assert not (tmp_path / "root" / "new").exists()


def test_a_part_of_a_bundle_that_comes_again_counts_once(tmp_path):
    """A range that a lost connection had is cut in another way the second time, though it may have arrived."""
    end = asked_for(tmp_path, 10)
    for start, length in ((0, 10), (0, 4), (4, 6)):
        end.bring(Record(RecordKind.RAW, 1, 1, start, length, length), b"0123456789"[start : start + length])
        end.bring(Record(RecordKind.DONE, 1, 1, start, length), b"")
    time.sleep(0.3)
    end.say(FrameKind.SENT, dump_message({"id": 1, "problems": {}, "sums": {}, "bytes": 10}))
    wait_for(lambda: (tmp_path / "root" / "new").exists(), seconds=10)
    end.finish()
    assert (tmp_path / "root" / "new").read_bytes() == b"0123456789"


def test_a_shard_is_done_with_once(tmp_path):
    end = asked_for(tmp_path, 10)
    end.say(FrameKind.BEGIN, dump_message({"id": 1}))
    end.say(FrameKind.DATA, b"0123456789")
    sent = dump_message({"id": 1, "problems": {}, "sums": {}, "bytes": 10})
    end.say(FrameKind.SENT, sent)
    end.say(FrameKind.SENT, sent)
    ended = end.finish_refused()
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
    end.say(FrameKind.SHARD, Shard(1, [ROOT, Entry(path, kind, 0o755, *numbers, target)]).dump())
    ended = end.finish_refused()
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
    end.say(FrameKind.SHARD, Shard(1, [ROOT, *large]).dump())
    wait_for(lambda: list((tmp_path / "root" / "moved" / "partial").iterdir()), seconds=20)
    assert isinstance(end.finish(), TransferFailed)
    assert [list((outside / name).iterdir()) for name in ("tmp", "partial")] == [[], []]
    assert [(outside / name).stat().st_mode & 0o777 for name in ("tmp", "partial")] == [0o755, 0o755]


@pytest.mark.parametrize(
    ("path", "kind", "changes"),
    [
        (b"x.key", "f", {"rules": ["- *.key"]}),
        (b"protected", "d", {"rules": ["- /protected/"]}),
        (b"protected/file", "f", {"rules": ["- /protected/"]}),
        (b"authorized_keys", "f", {"only": "app.log"}),
        (b"app.log", "d", {"only": "app.log"}),
        (b"small", "d", {"only": "app.log"}),
    ],
    ids=["excluded", "folder", "below", "another", "as-folder", "root"],
)
def test_what_the_plan_does_not_name_is_refused(tmp_path, path, kind, changes):
    end = End(tmp_path, "dest", **changes)
    offered = Entry(path, kind, 0o4755, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0)
    end.say(FrameKind.SHARD, Shard(1, [offered] if "only" in changes else [ROOT, offered]).dump())
    ended = end.finish_refused()
    assert isinstance(ended, TransferFailed) and "unexpected data from the peer" in str(ended), repr(ended)
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"small", "large", STAGED[0].decode()}
    assert (tmp_path / "root/small").read_bytes() == b"s" * 100


def test_nothing_of_a_shard_is_made_where_one_entry_is_refused(tmp_path):
    end = End(tmp_path, "dest", rules=["- *.key"])
    folder = Entry(b"a", "d", 0o755, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0)
    end.say(FrameKind.SHARD, Shard(1, [ROOT, folder, folder._replace(path=b"b.key")]).dump())
    assert isinstance(end.finish_refused(), TransferFailed) and not (tmp_path / "root/a").exists()


@pytest.mark.parametrize("what", ["values", "shards", "entries", "small files"])
def test_messages_that_would_fill_the_memory_are_refused(tmp_path, what):
    end = End(tmp_path, "dest")
    file = Entry(b"", "f", 0o644, 0, 0, 200 << 10, 1, 2, 3, 4, 1, 0, 0)
    reason = {
        "values": "values arrived",
        "shards": "more shards arrived",
        "entries": "entries arrived",
        "small files": "must fit into memory",
    }[what]
    if what == "values":
        end.say(FrameKind.SHARD, b"\0\x40\0\0" + b'{"id":[' + b"[]," * (1 << 20) + b"[]]}")
    elif what == "shards":
        asked = [file._replace(path=b"%04d" % number) for number in range(100)]
        end.say(FrameKind.SHARD, Shard(1, [ROOT]).dump())
        for number, entry in enumerate(asked, 2):
            end.say(FrameKind.SHARD, Shard(number, [entry]).dump())
    else:
        count = 2100 if what == "entries" else 1500
        files = [file._replace(path=b"%04d" % number) for number in range(count)]
        end.say(FrameKind.SHARD, Shard(1, [ROOT, *files]).dump())
    ended = end.finish_refused()
    assert isinstance(ended, TransferFailed) and reason in str(ended), repr(ended)


def test_a_path_without_end_costs_little_and_is_not_repeated(tmp_path):
    end = End(tmp_path, "dest")
    deep = Entry(b"/".join([b"d"] * 500_000), "f", 0o644, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0)
    payload = Shard(1, [ROOT, deep]).dump()
    before = time.process_time()
    end.say(FrameKind.SHARD, payload)
    ended = end.finish_refused()
    assert isinstance(ended, TransferFailed) and "not behind its directory" in str(ended), repr(ended)[:500]
    assert time.process_time() - before < 20  # half an hour where each part of the path was looked at from the start
    assert len(str(ended)) < 5000


def test_a_root_that_is_exchanged_leads_nowhere(tmp_path):
    """A local user who owns a folder above the destination can do so while root writes to it."""
    end = End(tmp_path, "dest", is_held=True, delete=True)
    wait_for((tmp_path / "root").exists, seconds=20)
    (tmp_path / "root").rename(tmp_path / "moved")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "shadow").write_text("root:secret")
    small = Entry(b"new", "f", 0o644, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0)
    large = small._replace(path=b"zlarge", size=20 << 20, ino=5)
    folder = small._replace(path=b"folder", type="d", ino=6)
    end.say(FrameKind.SHARD, Shard(1, [ROOT, folder, small, large]).dump())
    wait_for((tmp_path / "moved/folder").exists, seconds=20)
    assert isinstance(end.finish(), TransferFailed)
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["shadow"]


def out_of_range(*_arguments: object) -> None:
    """Fail as a system does that cannot store a number of the peer."""
    raise OverflowError("out of the range of this system")


@pytest.mark.parametrize("way", ["compared", "sent", "linked"])
def test_a_number_that_cannot_be_stored_is_the_failure_of_its_entry(tmp_path, monkeypatch, way):
    reasons: list[str] = []
    monkeypatch.setattr(Outcome, "error", lambda _outcome, _path, reason: reasons.append(reason))
    end = End(tmp_path, "dest", checksum=way == "compared")
    file = Entry(b"new", "f", 0o644, 0, 0, 300_000 if way == "sent" else 0, 1, 2, 3, 4, 1, 0, 0)
    sent = {"id": 1, "problems": {}, "sums": {}, "bytes": file.size}
    if way == "compared":
        end.say(FrameKind.SHARD, Shard(1, [ROOT, file._replace(path=b"small", size=100)]).dump())
        time.sleep(0.3)
        monkeypatch.setattr(Reconciler, "compare", out_of_range)
        end.say(FrameKind.SUMS, dump_message({"id": 1, "sums": {"1": "0" * 32}}))
    elif way == "sent":
        monkeypatch.setattr(FileApplier, "finish_file", out_of_range)
        end.say(FrameKind.SHARD, Shard(1, [ROOT, file]).dump())
        time.sleep(0.3)
        end.bring(Record(RecordKind.ZERO, 1, 1, 0, file.size), b"")
        end.bring(Record(RecordKind.DONE, 1, 1, 0, file.size), b"")
        time.sleep(0.3)
        end.say(FrameKind.SENT, dump_message(sent))
    else:
        monkeypatch.setattr(Decider, "decide_link", out_of_range)
        names = [file._replace(path=path, nlink=2) for path in (b"a", b"b")]
        end.say(FrameKind.SHARD, Shard(1, [ROOT, *names]).dump())
        time.sleep(0.3)
        end.say(FrameKind.SENT, dump_message(sent))
    wait_for(lambda: end.ended is not None or reasons, seconds=10)
    assert isinstance(end.finish(), TransferFailed)
    assert reasons == ["out of the range of this system"]
