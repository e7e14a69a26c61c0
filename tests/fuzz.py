# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Feed what reads from the wire with what a fuzzer finds by looking at which lines it reaches (atheris).

``make fuzz ARGS="bytes 60"`` reads bytes with all decoders for 60 seconds. ``turns`` lets two ends without files and
connections say what they may, or one of them what it may not. ``dest`` and ``source`` hold a conversation with a real
end as a peer that knows the secret and lies. It stops at the first input that ends otherwise than it may, and leaves
that input in ``.build/fuzz``; ``make fuzz ARGS="bytes .build/fuzz/crash-..."`` runs it again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import io
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import atheris

with atheris.instrument_imports(include=["ansible_collections.longhaul"]):
    from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
    from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import (
        bundles,
        compression,
        delta,
        zstd,
    )
    from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import (
        conversation,
        frames,
        handshake,
        hello,
        messages,
        records,
    )
    from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import (
        sftp_protocol,
        sftp_server,
        shard_list,
    )
    from ansible_collections.longhaul.fleet.plugins.module_utils._model import entry_codec
    from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
    from ansible_collections.longhaul.fleet.tests.support import liar, sftp_client, walkers

FOUND = Path(".build/fuzz")
_REFUSALS = (frames.FrameError, handshake.HandshakeError, entry_codec.ManifestError, sftp_protocol.ProtocolError)
_PLANNED = 1000  # bytes of a file that an SFTP client may write


def _frames(data: bytes) -> None:
    decoder = frames.Decoder(None, checks=False)
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
    delta.parse(messages.parse_message(data))


def _sftp(data: bytes) -> None:
    """Let an SFTP client say this to a source (the first byte is even) or a destination, which has one file."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        root, job = Path(folder, "root"), Path(folder, "job")
        job.mkdir()
        root.mkdir()
        (root / "kept").write_bytes(b"kept")
        lists = shard_list.ShardLists(str(job))
        held.callback(os.close, lists.fd)
        is_dest = bool(data and data[0] % 2)
        lists.write(3, [(0, shard_list.Listed(b"file" if is_dest else b"kept", _PLANNED))])
        top = os.fsencode(root)
        files = (
            sftp_server.DestinationFiles(lists, top, {os.geteuid()}) if is_dest else sftp_server.SourceFiles(lists, top)
        )
        held.callback(files.close)
        session = sftp_server.Session(files, lambda _answers: None, lambda _text: None)
        held.callback(session.close)
        buffer = sftp_protocol.PacketBuffer()
        try:
            for start in range(1, len(data), 50):
                piece = data[start : start + 50]
                buffer.get_buffer()[: len(piece)] = piece
                buffer.buffer_updated(len(piece))
                session.take(buffer.packets())
        finally:
            assert (root / "kept").read_bytes() == b"kept"
            assert set(os.listdir(root)) <= {"kept", "file"} and set(os.listdir(folder)) == {"root", "job"}
            assert not is_dest or not (root / "file").exists() or (root / "file").stat().st_size <= _PLANNED


DECODERS: tuple[Callable[[bytes], Any], ...] = (
    _frames,
    _records,
    _manifest,
    _shard,
    _bundle,
    _zlib,
    _zstd,
    hello.decode,
    _sums,
    handshake.DriveHandshake("secret", 1).answer,
    handshake.ServeHandshake("secret", 1).answer,
    _sftp,
)


def read_bytes(data: bytes) -> None:
    """Let one of the decoders read all but the first byte, which says which one."""
    if data:
        with contextlib.suppress(*_REFUSALS):
            DECODERS[data[0] % len(DECODERS)](data[1:])


class Chance:
    """What random.Random has, decided by the fuzzer's bytes."""

    def __init__(self, data: bytes) -> None:
        self._given = atheris.FuzzedDataProvider(data)

    def random(self) -> float:
        return float(self._given.ConsumeProbability()) % 1

    def randrange(self, stop: int, /) -> int:
        return int(self._given.ConsumeIntInRange(0, stop - 1))

    def choice(self, values: Sequence[Any], /) -> Any:
        return values[self.randrange(len(values))]

    def getrandbits(self, count: int, /) -> int:
        return int.from_bytes(self._given.ConsumeBytes(count // 8), "big")


def converse(side: str) -> Callable[[bytes], None]:
    """Return the liar for that side."""

    def lie(data: bytes) -> None:
        chance = Chance(data)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            end = liar.End(Path(folder), side)
            liar.tell_lies(end, chance, chance.random() < 0.5)
            ended = end.finish()
            assert isinstance(ended, TransferFailed), repr(ended)
            assert sorted(path.name for path in Path(folder).iterdir()) == ["job", "root"]
        del end, ended
        gc.unfreeze()  # a job rests from this
        gc.collect()

    return lie


def take_turns(data: bytes) -> None:
    """Let two ends talk, which must agree on everything, or let a peer lie to one."""
    chance = Chance(data)
    contents = chance.choice(list(conversation.Contents))
    role = chance.choice([None, *conversation.Role])
    if role is not None:
        walkers.lie(contents, role, chance, turns=100)
        return
    ends = walkers.walk(contents, chance, turns=200)
    assert (ends.source.sent, ends.dest.sent) == (ends.dest.received, ends.source.received)


def _samples() -> Iterator[bytes]:
    """Yield for each decoder something that it takes, so that the fuzzer need not find out what a message is."""
    entries = [
        Entry(b"a", "d", 0o755, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0),
        Entry(b"a/b", "f", 0o644, 1, 2, 5, 1, 2, 3, 5, 2, 0, 8, b"", ((b"user.x", b"y"),)),
        Entry(b"c", "l", 0o777, 0, 0, 2, -1, 2, 3, 6, 1, 0, 0, b"to"),
    ]
    shard = messages.Shard(7, entries, 2)
    shard.opaque, shard.users, shard.groups = [0], {1: "one"}, {2: "two"}
    packed_shard, text = shard.dump(), b"text " * 20
    sums = delta.Sums(32 << 10, bytes(32), delta.ALGORITHMS[0])
    encoder, heads = frames.Encoder(None, checks=False), records.Heads(None)
    length = len(text).to_bytes(2, "big")
    given = {
        _frames: encoder.encode(frames.FrameKind.HELLO, b"{}") + encoder.encode(frames.FrameKind.SHARD, packed_shard),
        _records: heads.encode(records.Record(records.RecordKind.RAW, 1, 2, 3, 4, 4)),
        _manifest: b"".join(entry_codec.encode(entry) for entry in entries),
        _shard: packed_shard,
        _bundle: b"\0" + text[:5] + bytes(len(packed_shard) - 5) + packed_shard,
        _zlib: length + zlib.compress(text),
        _zstd: length + zstd.compress(text, 1),
        hello.decode: hello.encode(3),
        _sums: messages.dump_message(delta.pack(sums)),
        _sftp: b"\1"
        + sftp_client.packet(sftp_client.INIT, b"\0\0\0\3")
        + sftp_client.request(sftp_client.OPEN, 1, sftp_client.opening(b"view-3/0", sftp_client.FOR_WRITING))
        + sftp_client.request(sftp_client.WRITE, 2, sftp_client.writing(b"\0\0\0\1", 0, b"text"))
        + sftp_client.request(sftp_client.CLOSE, 3, sftp_client.string(b"\0\0\0\1")),
    }
    for decoder, data in given.items():
        yield bytes([DECODERS.index(decoder)]) + data


def main() -> None:
    """Do what the command line says; atheris ends the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bytes", "turns", "dest", "source"])
    parser.add_argument("how", help="seconds, or a file with an input to run again")
    parser.add_argument("--seed", type=int, default=0, help="of what the fuzzer tries (default: another one each time)")
    given = parser.parse_args()
    corpus = FOUND / given.what
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(_samples() if given.what == "bytes" else ()):
        (corpus / f"sample-{number}").write_bytes(sample)
    how = [f"-max_total_time={given.how}", str(corpus)] if given.how.isdigit() else [given.how]
    argv = [
        sys.argv[0],
        f"-artifact_prefix={FOUND}/",
        f"-seed={given.seed}",
        "-timeout=60",
        "-print_final_stats=1",
        *how,
    ]
    known = {"bytes": read_bytes, "turns": take_turns}
    atheris.Setup(argv, known[given.what] if given.what in known else converse(given.what))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
