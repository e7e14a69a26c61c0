# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the conversation that stand alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content.sparse import make_sparse
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.control_channel import Channel, ChannelBroken
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.rate_limit import TokenBucket
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.deferred import DeferredActions
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.delete import Deleter, ListingScope
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.disk_stack import DiskStack
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.sender import gather
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.conversation import (
    Contents,
    Conversation,
    Role,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import MAX_BYTES, FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import FailedMessage, Hello, Shard
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.summary import (
    Summary,
    merge,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, settings
from hypothesis import given
from hypothesis import strategies as st


def entry(path: bytes, size: int = 1, ino: int = 1, nlink: int = 1) -> Entry:
    """Make a file's entry."""
    return Entry(path, "f", 0o644, 0, 0, size, 1, 1, 1, ino, nlink, 0, 8)


@given(st.lists(st.integers(0, 250), max_size=60))
def test_shards_keep_the_order_and_their_bounds(sizes):
    entries = [entry(b"%d" % number, size) for number, size in enumerate(sizes)]
    batches = list(gather(entries, max_entries=7, max_bytes=100, clock=lambda: 0.0))
    assert [e for batch in batches for e in batch] == entries
    for batch in batches:
        assert 1 <= len(batch) <= 7
        assert len(batch) == 1 or all(e.size <= 100 for e in batch)
        assert sum(e.size for e in batch[:-1]) < 100


def test_the_first_shards_may_be_small():
    entries = [entry(b"%d" % number) for number in range(50)]
    batches = list(gather(entries, max_entries=16, clock=lambda: 0.0, first_entries=3))
    assert [len(batch) for batch in batches] == [3, 6, 12, 16, 13]
    assert [one for batch in batches for one in batch] == entries


def test_a_shard_of_large_attributes_stays_below_the_limit_of_a_frame():
    """2000 files with as many attributes as a file system allows would not fit into one."""
    attributes = tuple((b"user.%d" % number, b"v" * 60_000) for number in range(4))
    entries = [entry(b"%d" % number)._replace(xattrs=attributes) for number in range(200)]
    batches = list(gather(entries, clock=lambda: 0.0))
    assert [one for batch in batches for one in batch] == entries and len(batches) > 5
    for batch in batches:
        assert len(Shard(1, batch).dump()) < MAX_BYTES[FrameKind.SHARD] // 4


def test_a_slow_scan_is_sent_in_small_batches():
    ticks = iter(range(100))
    assert [len(batch) for batch in gather([entry(b"%d" % n) for n in range(4)], clock=lambda: float(next(ticks)))] == [
        1,
        1,
        1,
        1,
    ]


def test_links_wait_for_the_first_name_and_groups_are_forgotten(tmp_path: Path):
    deferred = DeferredActions(str(tmp_path))
    first, second, third = (entry(name, ino=5, nlink=3) for name in (b"1", b"2", b"3"))
    assert deferred.add_name(entry(b"x")) is None and deferred.add_name(first) is None
    early = deferred.add_name(second)
    assert early is not None and not early.is_ready
    assert list(deferred.orphans()) == list(deferred.names_waiting(first)) == [second]
    assert [(link.entry, link.leader) for link in deferred.mark_done(first, True)] == [(second, b"1")]
    late = deferred.add_name(third)
    assert late is not None and late.is_ready and late.leader == b"1" and late.is_new
    assert list(deferred.orphans()) == []
    assert deferred.add_name(third) is None  # it would be the first name of another file
    deferred.close()


@pytest.mark.parametrize("is_placed", [False, True])
def test_names_whose_file_is_never_complete_take_little_memory(tmp_path: Path, is_placed: bool):
    """One file without its first name, or many of which a name is outside of the tree."""
    deferred, count = DeferredActions(str(tmp_path)), 40_000
    tracemalloc.start()
    try:
        for number in range(count):
            name = b"%d/" % number + b"x" * 200 + b"/" + b"y" * 200
            one = entry(name, ino=number if is_placed else 5, nlink=2 if is_placed else count + 1)
            assert (deferred.add_name(one) is None) == (is_placed or not number)
            if is_placed:
                assert not list(deferred.mark_done(one, True))
        used, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 150 * count  # the names alone have 400 bytes each
    last = entry(b"last", ino=count - 1 if is_placed else 5, nlink=2 if is_placed else count + 1)
    follower = deferred.add_name(last)
    assert follower is not None and follower.leader.startswith(b"%d/" % (count - 1 if is_placed else 0))
    assert len(list(deferred.orphans())) == (0 if is_placed else count)
    deferred.close()


def test_a_spool_gives_back_the_last_first(tmp_path: Path):
    spool = DiskStack(str(tmp_path))
    records = [os.urandom(size % 70) for size in range(200)]
    for record in records:
        spool.push(record)
    assert list(spool.drain()) == records[::-1] and not list(spool.drain())
    spool.close()


def test_a_bucket_keeps_the_rate():
    bucket = TokenBucket(1_000_000)
    start = time.monotonic()
    for _piece in range(15):
        bucket.take(50_000)
    assert 0.4 < time.monotonic() - start < 2.0
    TokenBucket(0).take(1 << 60)


@given(st.integers(0, 5), st.integers(0, 5))
def test_merging_loses_no_error(left, right):
    source, dest = Outcome(bytes_total=5, vanished=2), Outcome(files_created=3, failure="why")
    for outcome, count in ((source, left), (dest, right)):
        for number in range(count):
            (outcome.unstable if number == 1 else outcome.error)(str(number), "reason")
    whole = merge(source, dest)
    assert whole.errors_total == left + right == len(whole.errors)
    assert whole.errors_unstable == (left > 1) + (right > 1)
    assert (whole.bytes_total, whole.files_created, whole.vanished, whole.failure) == (5, 3, 2, "why")
    assert vars(Summary.parse(Summary(whole).dump()).outcome) == vars(whole)


# What the sum leaves out, with the reason.
NOT_MERGED = {
    "withheld": "the destination has made warnings of it",
    "streams": "the method sets it in the end",
    "confinement": "the job adds its own: no end speaks for its peer",
}


def _something_like(value):
    """Return a value of the same type that is not nothing."""
    samples = {int: 3, str: "text", bool: True, float: 1.5, list: ["one"], dict: {"one": 1}}
    return samples[type(value)]


@pytest.mark.parametrize("name", sorted(vars(Outcome())))
def test_merging_loses_no_count(name):
    """A count that one end or the other makes is in the sum, also one that is added later."""
    default = vars(Outcome())[name]
    ends = [Outcome(**{name: _something_like(default)}), Outcome()]
    sums = [getattr(merge(*order), name) for order in (ends, ends[::-1])]
    assert (sums == [default, default]) == (name in NOT_MERGED)


def test_the_first_deletions_are_named_however_many_changes_come_before_them():
    outcome = Outcome()
    for number in range(30):
        outcome.change(f">f+++++++++ new{number}", 5)
    for number in range(30):
        outcome.change(f"*deleting     old {number}/", 5)
    assert outcome.deleted == [f"  old {number}/" for number in range(20)] and outcome.changes_total == 60
    assert len(outcome.changes) == 5
    whole = merge(Outcome(), outcome)
    assert whole.deleted == outcome.deleted


def test_what_is_no_outcome_is_refused():
    with pytest.raises(TypeError, match="an outcome has no files_lost"):
        Outcome(files_lost=1)


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"errors": "none"},
        {"errors": ["a path"]},
        {"errors": [{"path": "a"}]},
        {"bytes_sent": "1"},
        {"bytes_sent": True},
        {"resumed": 1},
        {"changes": [1]},
        {"owners": {"users": [[1, 2, 3]]}},
        {"owners": {"users": [1]}},
        {"owner_mismatches": [{"id": 5}]},
        {"withheld": {"xattrs": [5]}},
        {"cmd": {"source": "rsync"}},
        {"phases": {"transfer": "long"}},
    ],
)
def test_an_account_of_another_shape_is_refused(values):
    with pytest.raises(WrongShape):
        Outcome.from_json(values)


def test_an_account_of_another_version_is_read_as_far_as_it_goes():
    found = Outcome.from_json({"bytes_sent": 5, "changed": True, "of a later version": [1]})
    assert vars(found) == vars(Outcome(bytes_sent=5))


@pytest.fixture(name="pipes")
def _pipes():
    ours, theirs = os.pipe(), os.pipe()
    yield ours, theirs
    for fd in (*ours, *theirs):
        with contextlib.suppress(OSError):
            os.close(fd)


def channel(role: Role, reader: int, writer: int, timeout: float = 5) -> Channel:
    """Return one end's side of a connection that has a conversation of its own."""
    made = Channel(reader, writer, timeout)
    made.join(Conversation(role, Contents.BUNDLES, 6))
    return made


def test_a_channel_carries_large_frames_both_ways(pipes):
    (a_read, b_write), (b_read, a_write) = pipes
    left, right = channel(Role.SOURCE, a_read, a_write), channel(Role.DEST, b_read, b_write)
    large = Hello(1, os.urandom(500_000).hex(), False)
    sender = threading.Thread(target=lambda: (left.send(large), left.ping(False), left.send(FailedMessage("enough"))))
    sender.start()
    said = right.receive()
    assert [next(said).dump(), next(said).dump()] == [large.dump(), FailedMessage("enough").dump()]
    sender.join()
    left.close()
    with pytest.raises(ChannelBroken):
        right.send(Hello(1, "x" * 1_000_000, False))
    right.close()


def test_a_channel_that_ends_without_goodbye_is_broken(pipes):
    (a_read, b_write), (_b_read, a_write) = pipes
    os.close(b_write)
    with pytest.raises(ChannelBroken, match="goodbye"):
        list(channel(Role.SOURCE, a_read, a_write).receive())


def test_silence_breaks_a_channel(pipes):
    (a_read, _b_write), (_b_read, a_write) = pipes
    with pytest.raises(ChannelBroken, match="nothing arrived"):
        list(channel(Role.SOURCE, a_read, a_write, 0.6).receive())


def test_zeros_become_holes(tmp_path: Path):
    content = b"a" + bytes(3 << 20) + b"b" * 5000 + bytes(100_000) + b"c" + bytes(70_000)
    (tmp_path / "f").write_bytes(content)
    fd = os.open(tmp_path, os.O_RDONLY)
    make_sparse(fd, b"f")
    os.close(fd)
    assert (tmp_path / "f").read_bytes() == content
    assert (tmp_path / "f").stat().st_blocks * 512 <= 5 * 4096
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def _deleter(tmp_path: Path, rules: list[str], **changes) -> tuple[Root, Deleter]:
    source, dest = tmp_path / "source", tmp_path / "dest"
    folder = tmp_path / "job"
    for path in (source / "a", dest / "a" / "x", dest / "b", folder, dest / f".longhaul-{ID}" / "tmp"):
        path.mkdir(parents=True)
    for path in (source / "a" / "1", dest / "a" / "1", dest / "a" / "2", dest / "a" / "x" / "3.keep", dest / "b" / "4"):
        path.write_bytes(b"")
    plan = settings("tar_nc", delete=True, rules=rules, **changes)
    context = Context("dest", "serve", os.fsencode(dest), plan, str(folder))
    root = Root(context.root)
    deleter = Deleter(context, root)
    for item in walk(os.fsencode(source), on_error=lambda _path, _error: None):
        deleter.see(item)
        if item.type == "d":
            deleter.enter(item.path, False, ListingScope.ALL)
    deleter.end()
    return root, deleter


@pytest.mark.parametrize(("rules", "count"), [([], 5), (["P *.keep"], 3), (["- /b"], 3), (["P a/x"], 3)])
def test_what_is_too_much_is_counted_as_it_is_removed(tmp_path, rules, count):
    root, deleter = _deleter(tmp_path, rules)
    assert deleter.count() == count
    outcome = Outcome()
    deleter.remove(outcome)
    assert outcome.files_deleted == count and outcome.errors == []
    assert (tmp_path / "dest" / "a" / "1").exists() and (tmp_path / "dest" / f".longhaul-{ID}").exists()
    root.close()


def test_after_a_scan_with_errors_nothing_is_deleted(tmp_path):
    root, deleter = _deleter(tmp_path, [])
    outcome = Outcome()
    deleter.finish(outcome, clean=False, source_is_empty=False)
    assert outcome.files_deleted == 0 and "nothing was deleted" in outcome.warnings[0]
    assert (tmp_path / "dest" / "b" / "4").exists()
    root.close()
