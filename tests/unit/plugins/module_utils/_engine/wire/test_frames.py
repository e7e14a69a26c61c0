# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frames, handshake and messages: what goes in comes out, and what is hostile raises."""

from __future__ import annotations

import contextlib
import zlib

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import handshake, messages
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import (
    CONTROL_TYPES,
    DATA_TYPES,
    MAX_BYTES,
    MAX_DATA,
    Frame,
    FrameDecoder,
    FrameEncoder,
    FrameError,
    FrameKind,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.sampled_from([None, b"k" * 32])
KINDS = st.sampled_from(sorted(CONTROL_TYPES | DATA_TYPES))
FRAMES = st.lists(st.builds(Frame, KINDS, st.binary(max_size=300)), max_size=8)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut data into pieces."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(FRAMES, KEYS, st.lists(st.integers(0, 50), max_size=20))
def test_frames_survive_any_cutting(sent, key, sizes):
    encoder, decoder = FrameEncoder(key), FrameDecoder(key)
    stream = b"".join(encoder.encode(frame.kind, frame.payload) for frame in sent)
    received = [frame for piece in cut(stream, sizes) for frame in decoder.feed(piece)]
    assert received == sent and not decoder.pending


@pytest.mark.parametrize("key", [None, b"k" * 32])
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("piece", [1000, 70_000, 262_144, 5 << 20])
def test_frames_of_all_sizes_survive_beside_each_other(key, checks, piece):
    sizes = [0, 65_500, 65_536, 3, 262_144 - 9, 262_144, 300_000, 1 << 20, 1, 1 << 20]
    sent = [Frame(FrameKind.DATA, bytes([number]) * size) for number, size in enumerate(sizes)]
    sent[4:4] = [
        Frame(FrameKind.SHARD, b"s" * (3 << 20)),
        Frame(FrameKind.ACK, b"a"),
        Frame(FrameKind.SHARD, b"t" * 200_000),
    ]
    encoder, decoder = FrameEncoder(key, checks), FrameDecoder(key, checks)
    stream = b"".join(encoder.encode(frame.kind, frame.payload) for frame in sent)
    received = [frame for part in cut(stream, [piece] * (len(stream) // piece)) for frame in decoder.feed(part)]
    assert received == sent and not decoder.pending


def test_memory_that_is_used_again_holds_what_arrived_last():
    sizes = [1 << 20, 600_000, 300_000, 100, 1 << 20, 700_000]
    sent = [Frame(FrameKind.DATA, bytes([number]) * size) for number, size in enumerate(sizes)]
    encoder, decoder = FrameEncoder(b"k" * 32), FrameDecoder(b"k" * 32)
    memory = set()
    for frame in sent:
        (received,) = decoder.feed(encoder.encode(frame.kind, frame.payload))
        assert received == frame
        if len(frame.payload) > 500_000:
            memory.add(id(received.payload.obj))
        decoder.reuse(received.payload)
    assert len(memory) == 1


def test_a_long_frame_that_is_only_claimed_takes_little_memory():
    decoder = FrameDecoder()
    assert (
        list(decoder.feed(bytes([FrameKind.SHARD]) + MAX_BYTES[FrameKind.SHARD].to_bytes(4, "big") + b"x" * 1000)) == []
    )
    assert decoder.pending and len(decoder.get_buffer()) < 2 << 20


@pytest.mark.parametrize("size", [1000, 300_000])
def test_a_damaged_frame_of_any_size_is_refused(size):
    stream = bytearray(FrameEncoder().encode(FrameKind.DATA, b"d" * size))
    stream[size // 2] ^= 1
    with pytest.raises(FrameError, match="damaged"):
        list(FrameDecoder().feed(bytes(stream)))


@given(FRAMES.filter(len), KEYS, st.data())
def test_a_changed_bit_is_never_taken_for_what_was_sent(sent, key, data):
    encoder, decoder = FrameEncoder(key), FrameDecoder(key)
    stream = bytearray(b"".join(encoder.encode(frame.kind, frame.payload) for frame in sent))
    position = data.draw(st.integers(0, len(stream) - 1))
    stream[position] ^= 1 << data.draw(st.integers(0, 7))
    received = []
    with contextlib.suppress(FrameError):
        received.extend(decoder.feed(bytes(stream)))
    assert received == sent[: len(received)] and len(received) < len(sent)


@given(st.binary(max_size=400))
def test_noise_raises_or_waits(noise):
    decoder = FrameDecoder(b"k" * 32)
    with contextlib.suppress(FrameError):
        assert list(decoder.feed(noise)) == []


@pytest.mark.parametrize(
    ("kind", "length"),
    [
        (FrameKind.DATA, MAX_DATA + 1),
        (FrameKind.SHARD, MAX_BYTES[FrameKind.SHARD] + 1),
        (FrameKind.PING, (1 << 20) + 1),
        (99, 0),
        (0, 5),
        (255, 2**32 - 1),
    ],
)
def test_impossible_heads_are_refused_before_anything_is_stored(kind, length):
    with pytest.raises(FrameError):
        list(FrameDecoder().feed(bytes([kind]) + length.to_bytes(4, "big")))


def test_what_is_wrong_is_said_by_the_name_of_the_frame():
    with pytest.raises(FrameError, match="unknown frame type 40: the peer runs an incompatible version"):
        list(FrameDecoder().feed(bytes([40, 0, 0, 0, 0])))
    with pytest.raises(FrameError, match="a SENT frame .* arrived damaged"):
        list(FrameDecoder().feed(FrameEncoder().encode(FrameKind.SENT, b"{}")[:-1] + b"?"))


def test_a_control_frame_cannot_be_repeated_or_moved():
    encoder = FrameEncoder(b"k" * 32)
    first, second = encoder.encode(FrameKind.ACK, b"1"), encoder.encode(FrameKind.ACK, b"2")
    for stream in (first + first, second + first):
        with pytest.raises(FrameError):
            list(FrameDecoder(b"k" * 32).feed(stream))


def shake(drive_secret: str = "s", serve_secret: str = "s", drive_number: int = 0, serve_number: int = 0):
    """Run a handshake."""
    drive = handshake.DriveHandshake(drive_secret, drive_number)
    serve = handshake.ServeHandshake(serve_secret, serve_number)
    confirmation, drive_keys = drive.answer(serve.answer(drive.offer()))
    return drive_keys, serve.confirm(confirmation)


def test_both_ends_agree_on_keys():
    drive_keys, serve_keys = shake()
    assert drive_keys == serve_keys and drive_keys.drive != drive_keys.serve
    assert shake()[0] != drive_keys


@pytest.mark.parametrize("changes", [{"drive_secret": "x"}, {"serve_secret": "x"}, {"drive_number": 1}])
def test_another_secret_or_connection_is_refused(changes):
    with pytest.raises(handshake.HandshakeError):
        shake(**changes)


def test_the_serving_end_believes_no_reflection_and_no_replay():
    serve = handshake.ServeHandshake("s", 0)
    drive = handshake.DriveHandshake("s", 0)
    answer = serve.answer(drive.offer())
    for wrong in (answer[-handshake.PROOF_BYTES :], b"", bytes(32)):
        with pytest.raises(handshake.HandshakeError):
            serve.confirm(wrong)
    confirmation, _keys = drive.answer(answer)
    again = handshake.ServeHandshake("s", 0)
    again.answer(drive.offer())
    with pytest.raises(handshake.HandshakeError):
        again.confirm(confirmation)


def test_without_a_secret_there_is_no_handshake():
    with pytest.raises(handshake.HandshakeError):
        handshake.DriveHandshake("", 0)


def entry(path: bytes, **changes) -> Entry:
    """Make an entry."""
    values = {
        "path": path,
        "type": "f",
        "mode": 0o644,
        "uid": 0,
        "gid": 0,
        "size": 1,
        "mtime_ns": 1,
        "ctime_ns": 1,
        "dev": 1,
        "ino": 1,
        "nlink": 1,
        "rdev": 0,
        "blocks": 8,
    }
    return Entry(**{**values, **changes})


def test_a_shard_survives():
    shard = messages.Shard(3, [entry(b"a\xff"), entry(b"b/c", type="d", size=0)], 2)
    shard.opaque, shard.tagged, shard.users, shard.groups = [1], [0], {7: "x"}, {8: ""}
    again = messages.Shard.parse(shard.dump())
    assert (again.id, again.entries, again.attempt) == (3, shard.entries, 2)
    assert (again.opaque, again.tagged) == ([1], [0])
    assert (again.users, again.groups) == ({7: "x"}, {8: ""})


@given(st.binary(max_size=200))
def test_noise_is_no_shard(noise):
    with pytest.raises(FrameError):
        messages.Shard.parse(noise)


def test_a_shard_with_a_path_that_leads_outside_is_refused():
    payload = messages.Shard(1, [entry(b"ab/cde")]).dump()
    for evil in (b"../cde", b"/b/cde", b"ab//de", b"ab/../"):
        with pytest.raises(FrameError):
            messages.Shard.parse(payload.replace(b"ab/cde", evil))


def test_a_compressed_frame_that_grows_too_large_is_refused():
    assert messages.inflate(zlib.compress(b"x" * MAX_DATA)) == b"x" * MAX_DATA
    for bad in (zlib.compress(bytes(MAX_DATA + 1)), b"no zlib", zlib.compress(b"abc")[:-3]):
        with pytest.raises(FrameError):
            messages.inflate(bad)
