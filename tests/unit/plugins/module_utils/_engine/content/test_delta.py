# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hashes of the blocks of an old version, and what the source makes of them."""

from __future__ import annotations

import hashlib
import os
import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import delta
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameError
from hypothesis import given
from hypothesis import strategies as st

BLOCK = 32768
STRETCH = 128  # blocks of this size
KEY = b"0123456789abcdef"
OLD = b"".join(bytes([number % 251]) * BLOCK for number in range(160))
needs_xxhash = pytest.param(
    "xxh128",
    marks=pytest.mark.skipif(not delta.has_xxh128(), reason="cannot run here: needs libxxhash.so.0"),
)
HASHES = ["blake2b", "sha256", needs_xxhash]


def blocks_of(data: bytes, algorithm: str = "sha256", old_size: int | None = None) -> delta.Blocks:
    """Return how the blocks of an old version are hashed."""
    return delta.Blocks(BLOCK, len(data) // BLOCK, algorithm, KEY, len(data) if old_size is None else old_size)


def hashed(path, blocks: delta.Blocks, ranges=((0, 1 << 40),)) -> list[tuple[range, delta.Hashes]]:
    """Hash a file."""
    hasher = delta.Hasher()
    with open(path, "rb") as file:
        try:
            return list(hasher.hashes(file.fileno(), blocks, blocks.stretches_in(ranges)))
        finally:
            hasher.close()


def known_of(path, blocks: delta.Blocks) -> delta.KnownHashes:
    """Return what the source knows when all was told."""
    known = delta.KnownHashes(blocks)
    for run, hashes in hashed(path, blocks):
        known.add(run.start, hashes.sums, is_last=False)
    known.add(-(-blocks.total // blocks.stretch) * blocks.stretch, b"", is_last=True)
    return known


def going() -> None:
    """Let whoever waits go on."""


@pytest.mark.parametrize("size", [0, 1, 10**6, 10**9, 10**12, 10**15])
def test_blocks_are_powers_of_two(size):
    block = delta.block_size(size)
    assert block & (block - 1) == 0 and 32 << 10 <= block <= 8 << 20


@pytest.mark.parametrize("algorithm", HASHES)
def test_each_whole_block_has_a_hash_of_its_own(tmp_path, algorithm):
    data = os.urandom(300 * BLOCK + 5)
    (tmp_path / "old").write_bytes(data)
    blocks = blocks_of(data, algorithm)
    found = hashed(tmp_path / "old", blocks)
    assert [run for run, _hashes in found] == [range(128), range(128, 256), range(256, 300)]
    digests = [blocks.digest(memoryview(bytearray(data[at : at + BLOCK]))) for at in range(0, 300 * BLOCK, BLOCK)]
    assert len(set(digests)) == 300 and len({len(digest) for digest in digests}) == 1
    assert b"".join(hashes.sums for _run, hashes in found) == b"".join(digest[:8] for digest in digests)
    assert [rest for _run, hashes in found for rest in hashes.rests] == [digest[8:] for digest in digests]
    other = blocks._replace(key=KEY[::-1])
    assert other.digest(memoryview(bytearray(data[:BLOCK]))) != digests[0]


def test_sha256_and_blake2b_are_those_of_the_documentation():
    data = memoryview(bytearray(b"text" * 1000))
    assert blocks_of(b"", "sha256").digest(data) == hashlib.sha256(KEY + data).digest()
    assert blocks_of(b"", "blake2b").digest(data) == hashlib.blake2b(data, key=KEY, digest_size=32).digest()


def test_a_file_that_became_shorter_has_the_hashes_of_what_is_there(tmp_path):
    (tmp_path / "old").write_bytes(OLD[: 130 * BLOCK + 7])
    found = hashed(tmp_path / "old", blocks_of(OLD))
    assert [len(hashes.sums) for _run, hashes in found] == [128 * 8, 2 * 8]


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(1, 300)), max_size=4), st.integers(1, 700))
def test_what_is_needed_is_hashed_once_and_in_order(stretches, total):
    blocks = delta.Blocks(BLOCK, total, "sha256", KEY, total * BLOCK)
    ranges, at = [], 0
    for gap, length in stretches:
        ranges.append((at + gap * 1000, at + gap * 1000 + length * 10000))
        at = ranges[-1][1]
    runs = list(blocks.stretches_in(ranges))
    assert all(run.start % STRETCH == 0 and run.stop == min(run.start + STRETCH, total) for run in runs)
    assert runs == sorted(runs, key=lambda run: run.start) and len(set(runs)) == len(runs)
    needed = {number // STRETCH for start, end in ranges for number in blocks.inside(start, end)}
    assert needed <= {run.start // STRETCH for run in runs}


def test_one_that_waits_gets_hashes_as_soon_as_they_are_told():
    known = delta.KnownHashes(blocks_of(bytes(300 * BLOCK)))
    got: list[bytes] = []
    waiter = threading.Thread(target=lambda: got.append(known.wait(range(130, 132), going)))
    waiter.start()
    known.add(0, bytes(8 * STRETCH), is_last=False)
    known.add(STRETCH, bytes(range(40)), is_last=False)
    waiter.join(10)
    assert got == [bytes(range(16, 32))]
    assert known.wait(range(133, 135), going) == b""  # it became shorter
    known.add(2 * STRETCH, b"", is_last=True)
    assert known.wait(range(256, 300), going) == b""


def test_one_that_waits_ends_with_the_transfer():
    known = delta.KnownHashes(blocks_of(bytes(300 * BLOCK)))

    def over() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        known.wait(range(1), over)


@pytest.mark.parametrize(
    ("first", "sums"),
    [(1, b""), (-128, b""), (128, bytes(8 * 129)), (256, bytes(8 * 45)), (128, b"odd"), (0, b""), (384, bytes(8))],
)
def test_hashes_that_cannot_be_are_refused(first, sums):
    known = delta.KnownHashes(blocks_of(bytes(300 * BLOCK)))
    known.add(0, bytes(8 * STRETCH), is_last=False)
    with pytest.raises(FrameError):
        known.add(first, sums, is_last=False)


@given(st.integers(0, 300), st.lists(st.booleans(), max_size=40), st.integers(0, 5), st.integers(0, 5))
def test_runs_of_blocks_are_the_same_or_not(first, same, fewer_own, fewer_known):
    numbers = range(first, first + len(same))
    own = b"".join(b"%08d" % number for number in numbers)
    known = b"".join(b"%08d" % number if is_same else b"differ.." for number, is_same in zip(numbers, same))
    own, known = own[: max(0, 8 * (len(same) - fewer_own))], known[: max(0, 8 * (len(same) - fewer_known))]
    there = max(0, len(same) - max(fewer_own, fewer_known))
    runs = list(delta.same_blocks(numbers, own, known))
    assert [number for run, _same in runs for number in run] == list(numbers)
    told = [is_same for run, is_same in runs for _number in run]
    assert told == [is_same and place < there for place, is_same in enumerate(same)]
    assert all(one[1] != two[1] for one, two in zip(runs, runs[1:]))


@pytest.mark.parametrize(
    ("new", "moved"),
    [
        (OLD, False),
        (OLD + b"appended", False),
        (OLD[: 40 * BLOCK] + os.urandom(60 * BLOCK) + OLD[100 * BLOCK :], False),
        (b"inserted" + OLD, True),
        (OLD[BLOCK:], True),
        (os.urandom(160 * BLOCK), True),  # that cannot be told from it
        ((b"inserted" + OLD) * 3, False),  # its size is not alike
        ((b"inserted" + OLD)[: 70 * BLOCK], False),
        (b"", False),
    ],
    ids=range(9),
)
def test_content_that_moved_is_told_by_some_blocks(tmp_path, new, moved):
    for name, data in (("old", OLD), ("new", new)):
        (tmp_path / name).write_bytes(data)
    if len(new) < BLOCK:
        return
    blocks = blocks_of(OLD[: len(new)], delta.quickest(), len(OLD))
    with open(tmp_path / "new", "rb") as now:
        assert delta.has_moved(now.fileno(), len(new), known_of(tmp_path / "old", blocks), going) == moved


def test_a_few_blocks_are_not_worth_another_run(tmp_path):
    (tmp_path / "new").write_bytes(os.urandom(15 * BLOCK))
    known = delta.KnownHashes(blocks_of(bytes(15 * BLOCK)))
    with open(tmp_path / "new", "rb") as now:
        assert not delta.has_moved(now.fileno(), 15 * BLOCK, known, going)


def test_the_quickest_algorithm_is_one_of_them():
    assert delta.quickest() in delta.ALGORITHMS


def test_xxh128_is_taken_where_both_hosts_have_it(monkeypatch):
    both = delta.blocks_of(1 << 20, 1 << 20, ["xxh128", "of another version"])
    assert both.algorithm == ("xxh128" if delta.has_xxh128() else delta.quickest())
    assert delta.blocks_of(1 << 20, 1 << 20, []).algorithm == delta.quickest()
    monkeypatch.setattr(delta, "has_xxh128", lambda: False)
    assert delta.blocks_of(1 << 20, 1 << 20, ["xxh128"]).algorithm == delta.quickest()
    assert delta.own_algorithms() == []


def test_each_request_has_a_key_of_its_own():
    keys = {delta.blocks_of(1 << 20, 1 << 20, []).key for _time in range(10)}
    assert len(keys) == 10 and {len(key) for key in keys} == {16}


GOOD = {"block": 32768, "count": 3, "algorithm": "sha256", "key": "00" * 16, "size": 100_000}


def test_what_describes_hashes_comes_out_as_it_went_in():
    blocks = delta.blocks_of(10**7, 10**6, [])
    assert delta.parse(blocks.pack(), 10**6) == blocks
    assert delta.parse(GOOD, 98304).total == 3


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        *({name: value for name, value in GOOD.items() if name != left_out} for left_out in GOOD),
        {**GOOD, "block": 3},
        {**GOOD, "block": 1 << 30},
        {**GOOD, "block": "x"},
        {**GOOD, "count": 0},
        {**GOOD, "count": 4},  # more than the old version has
        {**GOOD, "count": 4, "size": 10**9},  # more than the file has
        {**GOOD, "count": 1 << 19, "size": 1 << 40},
        {**GOOD, "count": "3"},
        {**GOOD, "size": "x"},
        {**GOOD, "algorithm": "crc32"},
        {**GOOD, "algorithm": []},
        {**GOOD, "key": "00"},
        {**GOOD, "key": "xx" * 16},
        {**GOOD, "key": 5},
    ],
)
def test_what_describes_no_hashes_is_refused(values):
    with pytest.raises(FrameError):
        delta.parse(values, 100_000)
