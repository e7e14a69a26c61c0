# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the stream engine that decide: what goes in comes out, and what is hostile raises."""

from __future__ import annotations

import os
import zlib

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import (
    bundles,
    compression,
    sparse,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver import incoming_file, partial_file
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import handshake, ranges, records
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import Frame, FrameError, FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.handshake import HandshakeError
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import Heads, Record, RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.sampled_from([None, b"k" * 32])
MIB = 1 << 20


def _record(kind: RecordKind, shard: int, index: int, offset: int, length: int) -> Record:
    packed = kind in (RecordKind.ZLIB, RecordKind.ZSTD)
    size = {RecordKind.RAW: length, RecordKind.SAME: records.PROOF_BYTES}.get(kind, length // 2 if packed else 0)
    return Record(kind, shard, index, offset, length, size)


RECORDS = st.builds(
    _record,
    st.sampled_from(RecordKind),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**62),
    st.integers(0, records.MAX_RECORD),
)


def entry(name: bytes, size: int) -> Entry:
    """Return a regular file's entry."""
    return Entry(name, "f", 0o644, 0, 0, size, 1, 2, 3, 4, 1, 0, 0)


@given(st.lists(RECORDS, max_size=6), KEYS)
def test_heads_come_out_as_they_went_in(sent, key):
    encoder, decoder = Heads(key), Heads(key)
    assert [decoder.decode(encoder.encode(record)) for record in sent] == sent


@given(RECORDS, st.data())
def test_a_changed_bit_of_a_head_is_found(record, data):
    head = bytearray(Heads(b"k" * 32).encode(record))
    head[data.draw(st.integers(0, len(head) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FrameError):
        Heads(b"k" * 32).decode(bytes(head))


@given(RECORDS)
def test_a_head_cannot_be_repeated_or_come_back(record):
    encoder, decoder = Heads(b"k" * 32), Heads(b"k" * 32)
    head = encoder.encode(record)
    decoder.decode(head)
    with pytest.raises(FrameError):
        decoder.decode(head)
    with pytest.raises(FrameError):
        Heads(b"l" * 32).decode(head)


@given(st.binary(max_size=60))
def test_no_bytes_make_a_head_that_is_not_allowed(data):
    try:
        record = Heads(None).decode(data)
    except FrameError:
        return
    assert Heads(None).encode(record) == data
    assert record.size <= records.MAX_RECORD and record.length <= records.MAX_RANGE


@pytest.mark.parametrize(
    "record",
    [
        Record(RecordKind.RAW, 0, 0, 0, records.MAX_RECORD + 1, records.MAX_RECORD + 1),
        Record(RecordKind.RAW, 0, 0, 0, 10, 9),
        Record(RecordKind.ZLIB, 0, 0, 0, 10, 11),
        Record(RecordKind.ZERO, 0, 0, 0, 10, 1),
        Record(RecordKind.SAME, 0, 0, 0, 10, 0),
        Record(RecordKind.DONE, 0, 0, records.MAX_OFFSET, 1),
    ],
)
def test_impossible_heads_are_refused(record):
    with pytest.raises(FrameError):
        Heads(None).encode(record)


def test_a_head_of_an_unknown_kind_is_refused():
    head = Heads(None).encode(Record(RecordKind.BYE))
    with pytest.raises(FrameError, match="unknown record kind 99: the peer runs an incompatible version"):
        Heads(None).decode(b"\x63" + head[1:])


@given(st.integers(0, handshake.MAX_STREAMS))
def test_hello(number):
    assert handshake.decode_hello(handshake.encode_hello(number)) == number


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1", handshake.encode_hello(0)[:-1], b"LHSTREAM\0\2\0\0", b"LHSTREAM\0\1\xff\xff"]
)
def test_no_hello(said):
    with pytest.raises(HandshakeError):
        handshake.decode_hello(said)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=20), st.integers(0, 300))
def test_what_is_missing_and_what_is_there_make_the_whole(found, size):
    there = {byte for start, end in found for byte in range(start, min(end, size))}
    gaps = ranges.missing(found, size)
    assert {byte for start, end in gaps for byte in range(start, end)} == set(range(size)) - there
    assert ranges.length(gaps) == size - len(there)
    assert ranges.parse([list(gap) for gap in gaps], size) == gaps


@given(st.integers(0, 10**13), st.integers(1, 64))
def test_ranges_are_neither_tiny_nor_huge(size, streams):
    unit = ranges.unit(size, streams)
    assert unit % MIB == 0 and 4 * MIB <= unit <= records.MAX_RANGE


@given(st.lists(st.tuples(st.integers(0, 200 * MIB), st.integers(0, 200 * MIB)), max_size=4))
def test_pieces_are_the_same_stretches(found):
    whole = ranges.merged(found)
    pieces = list(ranges.cut(whole, 8 * MIB))
    assert ranges.merged(pieces) == whole and ranges.length(pieces) == ranges.length(whole)
    assert all(0 < end - start <= 8 * MIB for start, end in pieces)


def test_many_ranges_become_fewer_that_hold_them():
    found = [(number * 10, number * 10 + 5) for number in range(100)]
    assert ranges.at_most(100, found) == found
    fewer = ranges.at_most(7, found)
    assert len(fewer) == 7 and fewer == ranges.merged(fewer) and fewer[-1] == (60, 995)
    assert ranges.merged([*fewer, *found]) == fewer


@pytest.mark.parametrize(
    "values", [None, {}, [[1]], [[1, 2, 3]], [["1", "2"]], [[2, 1]], [[0, 11]], [[0, 5], [4, 6]], [[-1, 4]]]
)
def test_ranges_that_no_file_has_are_refused(values):
    with pytest.raises(FrameError):
        ranges.parse(values, 10)


@given(st.lists(st.binary(max_size=200), max_size=12), st.sampled_from([None, "zlib", "zstd"]))
def test_bundles_give_every_file_its_content(files, algorithm):
    entries = [(2 * number, entry(b"f%d" % number, len(data))) for number, data in enumerate(files)]
    cut = len(files) // 2
    packer = bundles.Packer({"algorithm": algorithm, "level": 1})
    arrived = [Frame(*packer.pack(b"".join(part))) for part in (files[:cut], files[cut:]) if b"".join(part)]
    assert [bytes(data) for _index, data in bundles.contents(arrived, entries)] == files


@pytest.mark.parametrize("bundle", [[], [b"abc"], [b"abcdef"], [b"abcd", b"e"], [b"ab", b"cde"]])
def test_bundles_that_do_not_fit_are_refused(bundle):
    arrived = [Frame(FrameKind.DATA, data) for data in bundle]
    with pytest.raises(FrameError):
        list(bundles.contents(arrived, [(0, entry(b"a", 3)), (1, entry(b"b", 2))]))


def test_packing_leaves_alone_what_does_not_pay(tmp_path):
    (tmp_path / "noise").write_bytes(os.urandom(2 * MIB))
    (tmp_path / "text").write_bytes(b"the same text " * 200_000)
    for name, pays in (("noise", False), ("text", True)):
        pieces = compression.Compressor({"algorithm": "zlib", "level": 1})
        fd = os.open(tmp_path / name, os.O_RDONLY)
        packed = pieces.pack(fd, 0, 8 * MIB)
        os.close(fd)
        assert (packed is not None) == pays
        if packed is not None:
            kind, length, data = packed
            assert len(data) < length == compression.PIECE_BYTES
            assert compression.decompress(kind, data, length) == (tmp_path / name).read_bytes()[:length]
            for wrong in (length - 1, length + 1):
                with pytest.raises(FrameError):
                    compression.decompress(kind, data, wrong)
    with pytest.raises(FrameError):
        compression.decompress(RecordKind.ZLIB, b"no", 10)
    with pytest.raises(FrameError):  # a bomb
        compression.decompress(RecordKind.ZLIB, zlib.compress(bytes(10 * MIB)), 1000)


@pytest.mark.parametrize(
    ("raw", "packed", "expected"), [(100e6, 300e6, True), (2e9, 100e6, False), (110e6, 100e6, False)]
)
def test_the_way_that_is_faster_goes_on(raw, packed, expected):
    learns = compression.Gain()
    tried = {False: 0, True: 0}
    for _piece in range(200):
        choice = learns.pack
        tried[choice] += 1
        learns.record(choice, MIB, MIB / (packed if choice else raw))
    assert learns.pack == expected
    assert 1 <= tried[not expected] <= 16
    for _piece in range(compression.AGAIN_BYTES // MIB):  # then the line becomes another one
        choice = learns.pack
        learns.record(choice, MIB, MIB / (raw if choice else packed))
    for _piece in range(100):
        learns.record(learns.pack, MIB, MIB / (raw if learns.pack else packed))
    assert learns.pack != expected or raw / packed < 1.2


def test_a_slow_line_is_not_filled_with_what_is_not_packed():
    """Buffers take the first bytes of the trial at once, whatever the line is."""
    learns = compression.Gain()
    free, unpacked = 3 * MIB, 0
    while True:
        if not learns.pack:
            assert learns.tries_without
            unpacked += MIB
            learns.record(False, MIB, 1e-4 if unpacked <= free else MIB / 12e6)
            continue
        if unpacked:
            break
        learns.record(True, MIB, MIB / 60e6)
    assert not learns.tries_without and unpacked <= 2 * free


def test_a_small_piece_that_went_quickly_says_little():
    learns = compression.Gain()
    for _piece in range(64):
        choice = learns.pack
        learns.record(choice, MIB, MIB / (150e6 if choice else 100e6))
    assert learns.pack
    for _piece in range(64):  # as at the end of a range, into an empty buffer
        learns.record(False, 1000, 1e-7)
    assert learns.pack


def test_who_asks_for_packing_gets_it():
    learns = compression.Gain(always=True)
    for _piece in range(100):
        learns.record(True, MIB, 100.0)
    assert learns.pack


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 10)), max_size=10), st.binary(max_size=40))
def test_a_journal_is_read_back_and_garbage_is_not(found, garbage):
    name, inode = b"ab" * 16, 77
    done = [(start, start + length) for start, length in found]
    lines = b"".join(partial_file.encode_line(name, inode, start, end) for start, end in done)
    assert partial_file.decode(lines, name, inode, 100) == ranges.merged(done)
    assert partial_file.decode(lines + garbage, name, inode, 100) == ranges.merged(done)
    assert partial_file.decode(lines, name, inode + 1, 100) == partial_file.decode(lines, b"other", inode, 100) == []
    assert all(end <= 50 for _start, end in partial_file.decode(lines, name, inode, 50))


@given(st.integers(1, 10**5), st.integers(0, 10**5), st.data())
def test_a_torn_or_flipped_line_says_nothing(start, length, data):
    line = bytearray(partial_file.encode_line(b"name", 5, start, start + length + 1))
    line[data.draw(st.integers(0, len(line) - 2))] ^= 1 << data.draw(st.integers(0, 7))
    assert partial_file.decode(bytes(line), b"name", 5, 10**9) == []


@pytest.fixture(name="image")
def file_to_write_into(tmp_path):
    """Yield a file below a folder, and what opens it to be written to: it becomes 3 bytes long."""
    path = tmp_path / "folder/image"
    path.parent.mkdir()
    path.write_bytes(b"old version")

    def write_to():
        found = root.lstat(b"folder/image")
        return incoming_file.InPlace(root, found._replace(size=3), found)

    with Root(os.fsencode(tmp_path)) as root:
        yield path, root, write_to


def test_a_file_in_place_is_cut_to_its_length_in_the_end_alone(image):
    path, root, write_to = image
    file = write_to()
    os.pwrite(file.fd, b"new", 0)
    assert path.read_bytes() == b"new version"
    file.complete(root)
    assert path.read_bytes() == b"new"
    assert os.stat(file.name, dir_fd=file.folder_fd).st_ino == path.stat().st_ino
    file.remove()
    assert path.read_bytes() == b"new"


def test_the_time_of_a_file_in_place_is_not_given_to_another(image):
    path, root, write_to = image
    file = write_to()
    (path.parent / "saved").write_bytes(b"of a program")
    (path.parent / "saved").rename(path)
    with pytest.raises(OSError, match="another file took its place"):
        file.complete(root)
    file.remove()
    assert path.read_bytes() == b"of a program"


@pytest.mark.parametrize("how", ["link", "symlink", "fifo"])
def test_what_is_not_one_file_with_one_name_is_never_written_into(image, how):
    path, _root, write_to = image
    if how == "link":
        os.link(path, path.parent / "backup")
    else:
        path.rename(path.parent / "backup")
        path.symlink_to("backup") if how == "symlink" else os.mkfifo(path)
    with pytest.raises(OSError, match="one name|Too many levels"):
        write_to()


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4)), max_size=5), st.booleans())
def test_copying_keeps_contents_and_holes(tmp_path_factory, filled, fresh):
    folder, unit = tmp_path_factory.mktemp("holes"), 4096
    (folder / "old").write_bytes(b"")
    with open(folder / "old", "r+b") as old, open(folder / "new", "w+b") as new:
        old.truncate(64 * unit)
        for start, count in filled:
            old.seek(start * unit)
            old.write(b"x" * min(count * unit, (64 - start) * unit))
        old.flush()
        if fresh:
            new.truncate(64 * unit)
        else:
            new.write(b"y" * 64 * unit)
            new.flush()
        sparse.copy(old.fileno(), new.fileno(), 0, 64 * unit, keep_holes=fresh)
        new.flush()
    assert (folder / "old").read_bytes() == (folder / "new").read_bytes()
    found = list(_segments(folder / "old"))
    assert found[0][0] == 0 and found[-1][1] == 64 * unit
    assert all(before[1] == after[0] and before[2] != after[2] for before, after in zip(found, found[1:]))


def _segments(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        yield from sparse.segments(fd, 0, os.fstat(fd).st_size)
    finally:
        os.close(fd)


@given(st.integers(0, 2**40), st.integers(1, 2**40), st.integers(0, 2**36), st.sampled_from([1, 3]))
def test_the_first_part_of_a_range_ends_at_a_step_or_with_it(start, length, most, factor):
    whole, step = (start, start + length), factor * ranges.STEP
    first, end = ranges.first_part(whole, most, step)
    assert first == start < end <= whole[1]
    assert end == whole[1] or (end % step == 0 and end - start <= max(most, step))


def test_a_connection_is_given_what_it_carries_in_a_second_but_not_at_once():
    assert ranges.share(0, 0) == ranges.STEP
    assert ranges.share(1e9, 0) == ranges.SHARE_GROWTH * ranges.STEP
    assert ranges.share(1e9, 64 * MIB) == int(512 * MIB)
    assert ranges.share(3 * MIB, 2 * MIB) == 3 * MIB
    assert ranges.share(1000, 64 * MIB) == ranges.STEP
