# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source's end: small contents in the conversation itself, large ones over the data connections.

Where the line is long, small ones go over the data connections, too, as ranges of a bundle.

Private to the collection. Python runs one thread at a time, and with small files every change of thread costs more than
the file. So the thread that scans and leads also reads the small files, and only ranges go to the other threads, which
spend their time in the kernel or in OpenSSL.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any, Callable, Iterable, Iterator, Mapping

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.memory_file import MemoryFile
from ..._core.outcome import Outcome
from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..content import bundles
from ..net.carrier import FileRequest, SendResult
from ..net.pool import ConnectionPool
from ..net.rate_limit import TokenBucket
from ..net.session import WireSession
from ..wire import ranges
from ..wire.conversation import MAX_BUNDLES, Said
from ..wire.frames import Frame, FrameKind
from ..wire.messages import Ack, Begin, BlockSums, Fewer, Got, Shard, Want
from .large_files import StreamSource
from .range_queue import Bundle
from .sender import UNSTABLE, VANISHED, Sender, gather
from .small_files import ReadAhead, SmallFiles

FIRST_ENTRIES = 125  # in the first shard: what one round trip brings, so that contents follow at once
SHARD_ENTRIES = 1000
SHARD_SECONDS = 0.1


class StreamSender(Sender):
    """Leads the conversation; ``carrier`` sends the ranges of large files."""

    def __init__(
        self,
        context: Context,
        session: WireSession,
        carrier: StreamSource,
        bucket: TokenBucket,
        earlier: Outcome | None,
    ) -> None:
        super().__init__(context, session, carrier, earlier)
        self._ranges = carrier
        self._bucket = bucket
        self._files = SmallFiles(context.top)
        self._ahead = ReadAhead(context.top)
        self._bundle = memoryview(bytearray(bundles.BUNDLE_BYTES + 1))  # one more, to see that a file became longer
        self._packer = bundles.Packer(self._settings["compress"])

    def _cut(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        return gather(
            entries, SHARD_ENTRIES, bundles.SHARD_BYTES, max_seconds=SHARD_SECONDS, first_entries=FIRST_ENTRIES
        )

    def _on_message(self, stream: int, message: Said) -> None:
        if isinstance(message, Want):
            entries = self._open[message.id].entries
            self._ranges.expect(message, entries)
            if self._ahead.wanted:
                self._look_ahead(message, entries)
            self._session.put(message)
        elif isinstance(message, Got):
            self._ranges.got(message)
        elif isinstance(message, BlockSums):
            self._ranges.learn(message)
        elif isinstance(message, Fewer):
            self._ranges.dismiss(message.streams)
        else:
            super()._on_message(stream, message)

    def _look_ahead(self, want: Want, entries: list[Entry]) -> None:
        """In the thread that listens: have the disk bring what the leading thread will come to."""
        wanted = (entries[index] for index in want.indexes)
        self._ahead.ask([entry.path for entry in wanted if bundles.fits(entry)])

    def _handle(self, ack: Ack | Want) -> None:
        if isinstance(ack, Want):
            self._answer(self._open[ack.id], ack)
        else:
            super()._handle(ack)

    def _wanted(self, shard: Shard, want: Want) -> list[FileRequest]:
        needed = want.ranges
        return [
            file._replace(
                ranges=ranges.parse(needed[file.index], file.entry.size) if file.index in needed else None,
                known=self._ranges.known(shard.id, file.index),
            )
            for file in super()._wanted(shard, want)
        ]

    def _answer(self, shard: Shard, want: Want) -> None:
        """Send the small files now; the others are the workers' business, who then say that all is sent."""
        entries = shard.entries
        wanted = want.indexes
        small = [(index, entries[index]) for index in wanted if bundles.fits(entries[index])]
        problems: dict[int, str] = {}
        sent, bundle = SendResult(), None
        if small:
            size = sum([entry.size for _index, entry in small])
            if self._ranges.takes_bundle(size):
                bundle = Bundle(small[0][0], size, MemoryFile(self._context.folder))
                self._read_small(small, problems, bundle.memory.write_all)
            else:
                self._session.send(Begin(shard.id))
                self._read_small(small, problems, partial(self._send_bundle, sent))
        if bundle is not None or len(small) < len(wanted):
            want.indexes = [index for index in wanted if not bundles.fits(entries[index])]
            large = self._wanted(shard, want)
            self._employ(MAX_BUNDLES if bundle is not None else min(self._ranges.connections, MAX_BUNDLES))
            send = partial(self._send_ranges, shard=shard, files=large, bundle=bundle, problems=problems, before=sent)
            self._work.put(send)
        else:
            self._tell_sent(shard, problems, {}, sent)

    def _send_ranges(
        self,
        root: Root,
        stream: int,
        *,
        shard: Shard,
        files: list[FileRequest],
        bundle: Bundle | None,
        problems: dict[int, str],
        before: SendResult,
    ) -> None:
        """In a worker: send what goes in ranges, then account for the shard, with what went ``before``."""
        sent = self._ranges.send(stream, shard.id, files, self._session.send, bundle)
        problems.update(self._changed(root, files, sent))
        sent.content += before.content
        sent.bytes += before.bytes
        self._tell_sent(shard, problems, {}, sent)

    def _read_small(
        self, files: list[tuple[int, Entry]], problems: dict[int, str], take: Callable[[memoryview], None]
    ) -> None:
        """Read whole contents, and hand them out one behind the other.

        Each has the length that its entry says, whatever happened.
        """
        bundle = self._bundle
        size = 0
        for index, entry in files:
            path, _type, _mode, _uid, _gid, length, *identity = entry[:10]
            if size + length > bundles.BUNDLE_BYTES:
                take(bundle[:size])
                size = 0
            try:
                problem = "" if self._read(path, bundle[size : size + length + 1], identity) else UNSTABLE
            except FileNotFoundError:
                problem = VANISHED
            except OSError as error:
                problem = f"cannot be read: {error.strerror}"
            if problem:
                problems[index] = problem
                bundle[size : size + length] = bytes(length)
            size += length
        take(bundle[:size])
        self._ahead.was_read(len(files))

    def _send_bundle(self, sent: SendResult, data: memoryview) -> None:
        if not data:
            return
        started = time.monotonic()
        kind, payload = self._packer.pack(data)
        self._bucket.take(len(payload))
        self._session.send(Frame(kind, payload))
        self._packer.gain.record(kind != FrameKind.DATA, len(data), time.monotonic() - started)
        self._context.progress.moved(len(data))
        sent.content += len(data)
        sent.bytes += len(payload)

    def _read(self, path: bytes, room: memoryview, identity: list[int]) -> bool:
        """Read a small file; False if it is no longer what its entry says. Raises OSError.

        ``room`` has one byte more than the entry's size. ``identity``: mtime_ns, ctime_ns, dev and ino of the entry.
        """
        fd = self._files.open(path)
        try:
            size = os.readv(fd, [room])
            if size < len(room) - 1:  # it became shorter, or what follows cannot be read
                size += os.readv(fd, [room[size:]])
            now = os.fstat(fd)
        finally:
            os.close(fd)
        is_whole = size == now.st_size == len(room) - 1
        return is_whole and identity == [now.st_mtime_ns, now.st_ctime_ns, now.st_dev, now.st_ino]

    def _account(self) -> Mapping[str, Any]:
        account = super()._account()
        if account["wall"] < time_accounting.SHORTEST:  # nobody asks what such a one met
            return account
        return {**account, "line": self._ranges.met(self._session.channels[0].fileno())}

    def run(self) -> Outcome:
        """Hold the conversation; raises TransferFailed."""
        try:
            self._ranges.tune()
            return super().run()
        finally:
            self._files.close()
            self._ahead.close()


def make_source(
    context: Context, session: WireSession, timeout: float, earlier: Outcome | None
) -> tuple[StreamSender, ConnectionPool]:
    """Make the source's end, and its data connections."""
    bucket = TokenBucket(int(context.settings["bwlimit"]), session.tickets, session.check)
    carrier = StreamSource(context, bucket)
    end = StreamSender(context, session, carrier, bucket, earlier)
    carrier.streams = ConnectionPool(context, timeout, carrier.feed, session.put)
    return end, carrier.streams
