# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A peer that knows the secret and lies: what it says to a real end of a stream, by chance."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, Protocol, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import Connection, ConnectionParameters
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import (
    CONTROL_TYPES,
    VERSION,
    FrameEncoder,
    FrameError,
    FrameKind,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Hello, Shard
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import Heads, Record, RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._methods import stream
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.held_root import open_held
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import open_staging
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, settings

KEY = b"k" * 32
GREETING = Hello(VERSION, ID, False)
ROOT = Entry(b"", "d", 0o755, 0, 0, 0, 1, 2, 3, 1, 1, 0, 0)
STAGED = tuple(f".longhaul-{ID}{below}".encode() for below in ("", "/tmp", "/partial", "/tmp/new-0-1"))


class Chance(Protocol):
    """As much of random.Random as is needed here."""

    def random(self) -> float:
        """Return a random float in [0, 1)."""

    def randrange(self, stop: int, /) -> int:
        """Return a random integer in [0, bound)."""

    def choice(self, values: Sequence[Any], /) -> Any:
        """Return one of these."""

    def getrandbits(self, count: int, /) -> int:
        """Return a random integer with this number of bits."""


class Keys:
    """The same key in both directions."""

    drive = serve = KEY


class End:
    """A real end in a thread, and our side of its connections."""

    def __init__(
        self, folder: Path, side: str, is_held: bool = False, greeting: Hello | None = GREETING, **changes: Any
    ) -> None:
        root = folder / "root"
        job = folder / "job"
        for path in (root, job):
            path.mkdir()
        (root / "small").write_bytes(b"s" * 100)
        (root / "large").write_bytes(b"l" * 600_000)
        plan = settings("stream", encrypt=False, **{"timeout": 20, **changes})
        self.context = Context(side, "serve", os.fsencode(root), plan, str(job), secrets={"exchange": "s"})
        if is_held:  # as a job does; it stays open until this process ends
            self.context.root_fd = open_held(self.context.root)
        for name in ("tmp", "partial"):
            os.makedirs(os.path.join(self.context.staging, name.encode()))
        if side == "dest":
            open_staging(self.context).prepare()  # as the job does, before the peer sends anything
        control, theirs = socket.socketpair()
        self.control = control
        self.encoder, self.heads = FrameEncoder(KEY), Heads(KEY)
        self.conversation = stream._Conversation(  # pylint: disable=protected-access
            self.context, ConnectionParameters(self.context), Connection(0, theirs, Keys())
        )
        self.data, other = socket.socketpair()
        self.conversation.streams.attach(self.conversation.link(Connection(1, other, Keys())))
        self.ended: Any = None
        self.offered = 0  # shards, by the one that lies
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if greeting is not None:
            self.say(FrameKind.HELLO, greeting.dump())

    def _run(self) -> None:
        try:
            self.ended = self.conversation.hold()
        except BaseException as error:
            self.ended = error

    def say(self, kind: int, payload: bytes) -> None:
        """Send a frame, as long as anybody listens."""
        with contextlib.suppress(OSError):
            self.control.sendall(self.encoder.encode(kind, payload))

    def bring(self, record: Record, payload: bytes = b"") -> None:
        """Send a record, as long as anybody listens."""
        with contextlib.suppress(OSError, FrameError):
            self.data.sendall(self.heads.encode(record) + payload)

    def finish_refused(self) -> Any:
        """Hang up as soon as it gives up, as a peer does that hears why, and give how it ended."""
        session = self.conversation.session
        wait_for(lambda: session._gives_up or self.ended is not None, seconds=20)  # pylint: disable=protected-access
        return self.finish()

    def finish(self) -> Any:
        """Hang up, and give how it ended."""
        for mine in (self.control, self.data):
            mine.settimeout(0.2)
            with contextlib.suppress(OSError):
                mine.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + 30
        while self._thread.is_alive() and time.monotonic() < deadline:
            for mine in (self.control, self.data):
                with contextlib.suppress(OSError):
                    mine.recv(1 << 16)
        assert not self._thread.is_alive(), "it did not end"
        self.control.close()
        self.data.close()
        return self.ended


def entry(chance: Chance) -> Entry:
    """Return an entry that a walk could have made, or nearly."""
    path = chance.choice(
        [b"a", b"small", b"large", b"a/b", b"../x", b"/etc/x", b"d", b"d/e", b"", b"x\0y", b".", *STAGED]
    )
    kind = chance.choice("ffffdlps")
    size = chance.choice([0, 10, 100, 300_000, 2**40]) if kind == "f" else 0
    target = b"../../outside" if kind == "l" else b""
    return Entry(
        path, kind, 0o644, 0, 0, size or len(target), 1, 2, 3, chance.randrange(4), chance.choice([1, 2]), 0, 0, target
    )


def nonsense(chance: Chance) -> dict[str, Any]:
    """Return a message whose fields have arbitrary types."""
    values: list[Any] = [
        0,
        1,
        2,
        -1,
        2**70,
        "x",
        None,
        [],
        [0],
        [[0, 1]],
        {},
        {"0": [[0, 5]]},
        {"9": 1},
        {"0": None},
        1.5,
    ]
    names = ["id", "index", "have", "ranges", "sums", "accounted", "again", "matched", "problems", "bytes", "files"]
    message = {name: chance.choice(values) for name in names if chance.random() < 0.7}
    if chance.random() < 0.8:
        message["id"] = chance.choice([1, 1, 1, 2])
    return message


def payload(chance: Chance, kind: FrameKind, due: int) -> bytes:
    """Return something for a frame of that kind."""
    if kind == FrameKind.SHARD and chance.random() < 0.9:
        entries = [entry(chance) for _n in range(chance.randrange(4))]
        if due == 1 and chance.random() < 0.9:  # without it nothing else is taken
            entries = [ROOT, *sorted(entries)]
        shard = Shard(due if chance.random() < 0.9 else chance.randrange(3), entries)
        data = bytearray(shard.dump())
        if chance.random() < 0.3:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)
    if chance.random() < 0.9:
        return json.dumps(nonsense(chance)).encode()
    return chance.getrandbits(8 * 20).to_bytes(20, "big")


def tell_lies(end: End, chance: Chance, with_records: bool) -> None:
    """Send a dozen messages to a peer, some of them nearly valid; ``with_records``: contents, too."""
    dest = end.context.side == "dest"
    likely = [FrameKind.SHARD] * 3 + [FrameKind.SENT] if dest else [FrameKind.WANT] * 4 + [FrameKind.GOT]
    others = sorted(CONTROL_TYPES - {FrameKind.PING})
    for _message in range(12):
        kind = chance.choice(likely if chance.random() < 0.9 else others)
        try:
            end.offered += kind == FrameKind.SHARD
            end.say(kind, payload(chance, kind, end.offered))
        except (ValueError, OverflowError):  # our own encoder refuses to make it
            continue
        if with_records:
            size = chance.choice([0, 5])
            kinds = (
                [RecordKind.RAW, RecordKind.ZLIB, RecordKind.ZSTD]
                if size
                else [RecordKind.ZERO, RecordKind.SAME, RecordKind.DONE]
            )
            offset = chance.choice([0, 100, 2**62])
            record = Record(chance.choice(kinds), chance.randrange(3), chance.randrange(3), offset, 5, size)
            end.bring(record, b"12345"[:size])
