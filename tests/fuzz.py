# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Feed what reads from the wire with what a fuzzer finds by looking at which lines it reaches (atheris).

``make fuzz ARGS="bytes 60"`` reads bytes with all decoders for 60 seconds, ``dest`` and ``source`` hold a conversation
with a real end as a peer that knows the secret and lies. It stops at the first input that ends otherwise than it may,
and leaves that input in ``.build/fuzz``; ``make fuzz ARGS="bytes .build/fuzz/crash-..."`` runs it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Sequence

import atheris

with atheris.instrument_imports(include=["ansible_collections.longhaul"]):
    from ansible_collections.longhaul.fleet.plugins.module_utils._exchange import frames, handshake, messages
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.context import TransferFailed
    from ansible_collections.longhaul.fleet.plugins.module_utils._stream import bundles, delta, hello, packing, records
    from ansible_collections.longhaul.fleet.plugins.module_utils._tree import manifest
    from ansible_collections.longhaul.fleet.tests.support import liar

FOUND = Path(".build/fuzz")
_REFUSALS = (frames.FrameError, handshake.HandshakeError, manifest.ManifestError)
_MOST = 1 << 16  # bytes that packed contents may give


def _frames(data: bytes) -> None:
    decoder = frames.Decoder(None, checks=False)
    for start in range(0, len(data), 7):
        list(decoder.feed(data[start : start + 7]))


def _records(data: bytes) -> None:
    heads = records.Heads(None)
    for start in range(0, len(data), heads.size):
        heads.decode(data[start : start + heads.size])


def _manifest(data: bytes) -> None:
    decoder = manifest.Decoder()
    half = len(data) // 2
    for entry in [*decoder.feed(data[:half]), *decoder.feed(data[half:])]:
        assert list(manifest.Decoder().feed(manifest.encode(entry))) == [entry]
    decoder.finish()


def _shard(data: bytes) -> None:
    shard = messages.unpack_shard(data)
    assert vars(messages.unpack_shard(messages.pack_shard(shard))) == vars(shard)


def _bundle(data: bytes) -> None:
    kind = (frames.DATA, frames.DEFLATED, frames.ZSTD)[data[0] % 3] if data else frames.DATA
    shard = messages.unpack_shard(data[1 + len(data) // 2 :])
    list(bundles.contents([frames.Frame(kind, data[1 : 1 + len(data) // 2])], list(enumerate(shard.entries))))


def _packed(kind: int) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        length = int.from_bytes(data[:2], "big")
        assert len(packing.unpack(kind, data[2:], length)) == length <= _MOST

    return read


DECODERS: tuple[Callable[[bytes], Any], ...] = (
    _frames,
    _records,
    _manifest,
    _shard,
    _bundle,
    _packed(records.ZLIB),
    _packed(records.ZSTD),
    hello.decode,
    lambda data: delta.parse(messages.unpack(data)),
    handshake.DriveHandshake("secret", 1).answer,
    handshake.ServeHandshake("secret", 1).answer,
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
    """Give what lies to an end of that side."""

    def lie(data: bytes) -> None:
        chance = Chance(data)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            end = liar.End(Path(folder), side)
            liar.tell_lies(end, chance, chance.random() < 0.5)
            ended = end.finish()
            assert isinstance(ended, TransferFailed), repr(ended)
            assert sorted(path.name for path in Path(folder).iterdir()) == ["job", "root"]

    return lie


def main() -> None:
    """Do what the command line says; atheris ends the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bytes", "dest", "source"])
    parser.add_argument("how", help="seconds, or a file with an input to run again")
    parser.add_argument("--seed", type=int, default=0, help="of what the fuzzer tries (default: another one each time)")
    given = parser.parse_args()
    FOUND.mkdir(parents=True, exist_ok=True)
    how = [f"-max_total_time={given.how}"] if given.how.isdigit() else [given.how]
    argv = [
        sys.argv[0],
        f"-artifact_prefix={FOUND}/",
        f"-seed={given.seed}",
        "-timeout=60",
        "-print_final_stats=1",
        *how,
    ]
    atheris.Setup(argv, read_bytes if given.what == "bytes" else converse(given.what))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
