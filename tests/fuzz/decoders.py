# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decoders: whatever bytes they get, they read them or refuse them."""

from __future__ import annotations

import contextlib
import functools
import zlib
from typing import Any, Callable, Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import bundles, compression, delta, zstd
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import (
    frames,
    handshake,
    messages,
    ranges,
    records,
    summary,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model import entry_codec
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.tests.support import walkers

_REFUSALS = (frames.FrameError, handshake.HandshakeError, entry_codec.ManifestError)


def _frames(data: bytes) -> None:
    decoder = frames.FrameDecoder(None, checks=False)
    for start in range(0, len(data), 7):
        list(decoder.feed(data[start : start + 7]))


def _records(data: bytes) -> None:
    heads = records.Heads(None)
    for start in range(0, len(data), heads.size):
        heads.decode(data[start : start + heads.size])


def _manifest(data: bytes) -> None:
    decoder = entry_codec.Decoder()
    half = len(data) // 2
    for entry in [*decoder.feed(data[:half]), *decoder.feed(data[half:])]:
        assert list(entry_codec.Decoder().feed(entry_codec.encode(entry))) == [entry]
    decoder.finish()


def _shard(data: bytes) -> None:
    payload = messages.Shard.parse(data).dump()
    assert messages.Shard.parse(payload).dump() == payload


def _bundle(data: bytes) -> None:
    kinds = (frames.FrameKind.DATA, frames.FrameKind.DEFLATED, frames.FrameKind.ZSTD)
    kind = kinds[data[0] % 3] if data else frames.FrameKind.DATA
    shard = messages.Shard.parse(data[1 + len(data) // 2 :])
    list(bundles.contents([frames.Frame(kind, data[1 : 1 + len(data) // 2])], list(enumerate(shard.entries))))


def _packed(kind: int, data: bytes) -> None:
    length = int.from_bytes(data[:2], "big")
    assert len(compression.decompress(kind, data[2:], length)) == length


_zlib, _zstd = functools.partial(_packed, records.RecordKind.ZLIB), functools.partial(_packed, records.RecordKind.ZSTD)


def _sums(data: bytes) -> None:
    delta.parse(messages.parse_message(data), 1 << 40)


SAID = (
    *(messages.Hello, messages.Total, messages.Scanned, messages.Want, messages.Hash, messages.Sums, messages.Sent),
    *(messages.Ack, messages.Got, messages.Begin, messages.Raw, messages.End, messages.Ready, messages.Fetched),
    *(messages.Fewer, messages.FailedMessage, messages.Ping, messages.Bye, summary.Summary),
)


def _said(data: bytes) -> None:
    """Read a message of one of all kinds; what is read is said again in the same words."""
    kind = SAID[data[0] % len(SAID)]
    message = kind.parse(data[2:])
    if isinstance(message, messages.OfShard):
        message.check(data[1])
    again = kind.parse(message.dump())
    assert again.dump() == message.dump(), again.dump()
    if isinstance(message, summary.Summary):
        whole = summary.merge(message.outcome, Outcome())
        summary.continue_from(Outcome(), whole)
        summary.Summary(whole).dump()


def _ranges(data: bytes) -> None:
    """Read ranges of a file; what is missing of it and what is there are all of it."""
    size = int.from_bytes(data[:4], "big")
    found = ranges.parse(messages.parse_message(data[4:]).get("ranges"), size)
    lacking = ranges.missing(found, size)
    assert ranges.length(found) + ranges.length(lacking) == size
    assert ranges.merged([*found, *lacking]) == ([(0, size)] if size else [])
    fewer = ranges.at_most(2, found)
    assert len(fewer) <= 2 and ranges.length(ranges.merged([*fewer, *found])) == ranges.length(fewer)
    most = ranges.unit(size, data[0])
    assert ranges.merged(ranges.cut(found, most)) == ranges.merged(found)


def _checked(data: bytes) -> None:
    """Read a frame of any length that is whole, and the same where a byte was changed on the way."""
    kind = list(frames.FrameKind)[data[0] % len(frames.FrameKind)]
    key, count, at, bits = (b"k" if data[1] % 2 else None), int.from_bytes(data[2:4], "big"), data[4:8], data[8]
    payload = (data[9:] or b"x") * (1 + count % 400)
    sent = bytearray(frames.FrameEncoder(key).encode(kind, payload))
    sent[int.from_bytes(at, "big") % len(sent)] ^= bits
    decoder, arrived = frames.FrameDecoder(key), []
    try:
        for start in range(0, len(sent), 50_000):
            arrived += list(decoder.feed(bytes(sent[start : start + 50_000])))
    finally:
        assert [(frame.kind, bytes(frame.payload)) for frame in arrived] in ([], [] if bits else [(kind, payload)])
    assert decoder.pending or not bits
    for frame in arrived:
        decoder.reuse(frame.payload)


def _heads(data: bytes) -> None:
    """Read the heads of records that are whole or changed, under a key."""
    sender, receiver = records.Heads(b"k"), records.Heads(b"k")
    kind = list(records.RecordKind)[data[0] % len(records.RecordKind)]
    numbers = [int.from_bytes(data[1 + 4 * place : 5 + 4 * place], "big") for place in range(5)]
    sent = bytearray(sender.encode(records.Record(kind, *numbers)))
    sent[data[-1] % len(sent)] ^= data[-2]
    assert receiver.decode(bytes(sent)) == records.Record(kind, *numbers) and not data[-2]


def _handshake(data: bytes) -> None:
    """Let two ends meet; one of them may have another secret or number, or hear what was changed on the way."""
    drive = handshake.DriveHandshake("secret", data[0])
    serve = handshake.ServeHandshake(("secret", "", "terces")[data[1] % 3], data[2])
    pieces = [bytearray(drive.offer())]
    changed = data[3:]

    def heard(piece: bytearray) -> bytes:
        if changed and len(pieces) == 1 + changed[0] % 3:
            piece[changed[1 % len(changed)] % len(piece)] ^= changed[-1]
        return bytes(piece)

    pieces.append(bytearray(serve.answer(heard(pieces[0]))))
    proof, keys = drive.answer(heard(pieces[1]))
    pieces.append(bytearray(proof))
    assert serve.confirm(heard(pieces[2])) == keys and data[0] == data[2] and data[1] % 3 == 0


DECODERS: tuple[Callable[[bytes], Any], ...] = (
    _frames,
    _records,
    _manifest,
    _shard,
    _bundle,
    _zlib,
    _zstd,
    handshake.decode_hello,
    _sums,
    handshake.DriveHandshake("secret", 1).answer,
    handshake.ServeHandshake("secret", 1).answer,
    _said,
    _ranges,
    _checked,
    _heads,
    _handshake,
)


_NUMBERS = 22  # bytes that the longest of these reads for itself
_NUMBERED = (_said, _ranges, _checked, _heads, _handshake)


def read_bytes(data: bytes) -> None:
    """Let one of the decoders read all but the first byte, which says which one."""
    if data:
        decoder = DECODERS[data[0] % len(DECODERS)]
        with contextlib.suppress(*_REFUSALS):
            decoder(data[1:] + bytes(_NUMBERS if decoder in _NUMBERED and len(data) <= _NUMBERS else 0))


def samples() -> Iterator[bytes]:
    """Yield for each decoder something that it takes, so that the fuzzer need not find out what a message is."""
    entries = [
        Entry(b"a", "d", 0o755, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0),
        Entry(b"a/b", "f", 0o644, 1, 2, 5, 1, 2, 3, 5, 2, 0, 8, b"", ((b"user.x", b"y"),)),
        Entry(b"c", "l", 0o777, 0, 0, 2, -1, 2, 3, 6, 1, 0, 0, b"to"),
    ]
    shard = messages.Shard(7, entries, 2)
    shard.opaque, shard.tagged, shard.users, shard.groups = [0], [1], {1: "one"}, {2: "two"}
    packed_shard, text = shard.dump(), b"text " * 20
    blocks = delta.Blocks(32 << 10, 5, delta.ALGORITHMS[0], bytes(16), 1 << 20)
    encoder, heads = frames.FrameEncoder(None, checks=False), records.Heads(None)
    length = len(text).to_bytes(2, "big")
    given = {
        _frames: encoder.encode(frames.FrameKind.HELLO, b"{}") + encoder.encode(frames.FrameKind.SHARD, packed_shard),
        _records: heads.encode(records.Record(records.RecordKind.RAW, 1, 2, 3, 4, 4)),
        _manifest: b"".join(entry_codec.encode(entry) for entry in entries),
        _shard: packed_shard,
        _bundle: b"\0" + text[:5] + bytes(len(packed_shard) - 5) + packed_shard,
        _zlib: length + zlib.compress(text),
        _zstd: length + zstd.compress(text, 1),
        handshake.decode_hello: handshake.encode_hello(3),
        _sums: messages.dump_message(blocks.pack()),
        _ranges: (100).to_bytes(4, "big") + messages.dump_message({"ranges": [[0, 5], [7, 100]]}),
        _checked: bytes([1, 1, 0, 1, 0, 0, 0, 0, 0]) + text,
        _heads: bytes([0]) + bytes(20) + b"\0\0",
        _handshake: b"\1\0\1",
    }
    for decoder, data in given.items():
        yield bytes([DECODERS.index(decoder)]) + data
    for message in (walkers.message(kind, 1) for kind in frames.FrameKind):
        if type(message) in SAID:
            head = bytes([DECODERS.index(_said), SAID.index(type(message)), 1])
            yield head + bytes(message.dump())  # type: ignore[union-attr]
