# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Send ranges of large files, and of bundles on a long line, over all data connections."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Collection

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._core.files import segments
from ..._model.congestion import NONE
from ..._model.entry import REGULAR, Entry
from ..._model.paths import escape
from ..._tree.dirfd import Root
from ..content import bundles, delta
from ..content.compression import PIECE_BYTES, Compressor
from ..net.carrier import FileRequest, Send, SendResult, SourceCarrier
from ..net.data_connection import OUTRUN, ConnectionLost, DataConnection
from ..net.pool import ConnectionPool
from ..net.rate_limit import TokenBucket
from ..net.session import stopped
from ..wire.messages import BlockSums, Got, Want
from ..wire.ranges import Range, parse
from ..wire.records import MAX_RECORD, Record, RecordKind
from .link_share import LinkShare, is_too_slow, prepare
from .range_queue import Bundle, OutgoingFile, RangeQueue, Work
from .sender import MOVED

if TYPE_CHECKING:
    from ..net.tcp_stats import ConnectionSample, ConnectionTotals

_POLL = 0.5  # seconds
_FEW = 64  # ranges that wait: with more the end is far
_LEAST = 64 << 10  # bytes of a record, however low the limit


class StreamSource(SourceCarrier):
    """The source's half: ``send`` queues the ranges of a shard's files, ``feed`` sends them over one connection."""

    streams: ConnectionPool | None = None  # the connections that call ``feed``

    def __init__(self, context: Context, bucket: TokenBucket) -> None:
        self._context, self._bucket = context, bucket
        self._hasher = delta.Hasher()
        self._known: dict[tuple[int, int], delta.KnownHashes] = {}  # old versions at the destination, of open shards
        self._count = max(1, int(context.settings["streams_max"]))
        self._congestion = context.settings.get("congestion", NONE)
        self._local = threading.local()  # what each connection learns about packing
        self._shares: dict[DataConnection, LinkShare] = {}
        self._changed = threading.Condition()
        self._queue = RangeQueue()
        self._over = False
        self._ended: list[ConnectionSample] = []  # what connections met that are gone

    # in the leading thread

    def met(self, channel_fd: int) -> ConnectionTotals | None:
        """Return what the data connections met, and the one with this descriptor; None if the system says nothing."""
        from ..net.tcp_stats import add_up, sample_connection, sample_descriptor

        links = self.streams.links() if self.streams is not None else []
        seen = [*self._ended, *(sample_connection(link.socket) for link in links), sample_descriptor(channel_fd)]
        found, rtt = (self.streams.congestion, self.streams.rtt) if self.streams is not None else ("", 0.0)
        return add_up([one for one in seen if one is not None], found, rtt)

    def _note_end(self, link: DataConnection) -> None:
        """Keep what a connection met that goes before the others."""
        from ..net.tcp_stats import sample_connection

        seen = sample_connection(link.socket)
        if seen is not None:
            self._ended.append(seen)

    def hashes(self, entries: list[Entry]) -> list[str]:
        """Return how this host can hash, where there is a large file."""
        if bundles.are_small([entry.size for entry in entries]) or self._context.settings.get("delta") == "none":
            return []  # as most shards are, so it must be quick
        has_large = any(entry.type == REGULAR and not bundles.fits(entry) for entry in entries)
        return delta.own_algorithms() if has_large else []

    # in the thread that listens to the destination

    def expect(self, want: Want, entries: list[Entry]) -> None:
        """Hashes of the old versions that a message names will come; raises FrameError if that cannot be."""
        sums = want.sums or {}
        for index in sums.keys() & set(want.indexes):
            if not bundles.fits(entries[index]):
                self._known[want.id, index] = delta.KnownHashes(delta.parse(sums[index], entries[index].size))

    def learn(self, message: BlockSums) -> None:
        """Take hashes; raises FrameError."""
        known = self._known.get((message.id, message.index))
        if known is not None:  # else the file could not be read
            known.add(message.first, message.sums, message.is_last)

    def known(self, shard: int, index: int) -> delta.KnownHashes | None:
        """Return what is known of a file's old version at the destination, and will be."""
        return self._known.get((shard, index))

    def tune(self) -> None:
        """Begin to look after the connections."""
        if self.streams is not None:
            self.streams.tune(self._congestion, lambda: self._bucket.rate)

    # in the threads that answer the destination

    def send(
        self, _stream: int, shard: int, files: list[FileRequest], _tell: Send, bundle: Bundle | None = None
    ) -> SendResult:
        """Return when the destination has written all ranges of the files, or they cannot be read.

        ``bundle``: the shard's small files, where they are sent in the same way. Its memory is freed.
        """
        sent, progress = SendResult(), self._context.progress
        outgoing = [OutgoingFile(shard, bundle, bundle.memory.fd, self._count, progress)] if bundle is not None else []
        with Root(self._context.top) as root:
            for file in files:
                try:
                    fd = root.open_file(file.entry.path)
                except OSError as error:
                    sent.problems[file.index] = f"cannot be read: {error.strerror}"
                    continue
                if self._is_for_rsync(file, fd):
                    os.close(fd)
                    sent.problems[file.index] = MOVED
                    continue
                with contextlib.suppress(AttributeError, OSError):  # not on every system: it only makes it quicker
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
                progress.current = escape(file.entry.path)
                outgoing.append(OutgoingFile(shard, file, fd, self._count, progress))
        try:
            self._travel(outgoing)
        finally:
            with self._changed:
                for file in files:
                    self._known.pop((shard, file.index), None)
                self._queue.remove(outgoing)
                # What a broken connection had done may be on its way a second time, from these descriptors: if they
                # were closed now, the contents of another file could be sent in its place.
                while self._queue.are_read(outgoing):
                    self._changed.wait(_POLL)
            for item in outgoing:
                if not item.is_bundle:
                    os.close(item.fd)
            if bundle is not None:
                bundle.memory.close()
        for item in outgoing:
            item.meter.end()
            sent.content += min(item.content, sum(content for content, _packed in item.sent.values()))
            sent.bytes += sum(packed for _content, packed in item.sent.values())
            if item.problem and item.is_bundle:
                raise TransferFailed(f"what was read of small files {item.problem}: run it again")
            if item.problem:
                sent.problems[item.index] = item.problem
        return sent

    def _is_for_rsync(self, file: FileRequest, fd: int) -> bool:
        """Return whether rsync should send this file afterwards; the links to one with several names need it now."""
        if self._context.settings.get("delta") != "rsync" or file.known is None or file.entry.nlink > 1:
            return False
        try:
            return delta.has_moved(fd, file.entry.size, file.known, self._expect_going)
        except OSError:
            return False  # that shows again, and is listed, where it is read to be sent

    def _travel(self, opened: list[OutgoingFile]) -> None:
        with self._changed:
            for item in opened:
                self._queue.add(item)
            self._changed.notify_all()
            while any(item.waiting for item in opened):
                self._expect_going()
                self._changed.wait(_POLL)

    def _expect_going(self) -> None:
        if self._context.stop.is_set():
            raise stopped(self._context)
        if self._over:
            raise TransferFailed("the transfer ended while contents were on their way")

    def got(self, message: Got) -> None:
        """The destination has written ranges; raises FrameError for a message that cannot be read."""
        with self._changed:
            item = self._queue.find(message.id, message.index)
            if item is None:
                return  # it was sent twice, and is done with
            for piece in parse(message.ranges, item.size):
                slow = self._queue.confirm(item, piece)
                if slow is not None:
                    slow.abort(OUTRUN)
            self._changed.notify_all()

    def takes_bundle(self, size: int) -> bool:
        """Return whether the small files of a shard, ``size`` bytes in all, arrive sooner over the data connections.

        One connection alone fills a long line slowly, and one with much room never.
        """
        with self._changed:
            return size >= bundles.BESIDE_BYTES and any(share.is_long for share in self._shares.values())

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self.streams.links()) if self.streams is not None else 0

    def dismiss(self, numbers: Collection[int]) -> None:
        """Let the connections with these numbers end, without anything being sent twice."""
        if self.streams is not None:
            self.streams.dismiss(numbers)

    # in the connections' threads

    def feed(self, link: DataConnection) -> None:
        """Send what there is to send over a connection, until the end; raises ConnectionLost."""
        prepare(link, self._congestion, self._bucket.rate, self.streams.congestion if self.streams is not None else "")
        with self._changed:
            self._shares[link] = LinkShare(link)
        self._local.compressor = Compressor(self._context.settings["compress"])
        time_accounting.enter(time_accounting.LINK, time_accounting.IDLE)
        try:
            while True:
                link.at_rest = True
                work = self._take(link)
                if work is None:
                    with self._changed:
                        self._queue.rest(link)
                    link.send_head(Record(RecordKind.BYE))
                    return
                link.at_rest = False
                time_accounting.switch(time_accounting.READ)
                self._send_range(link, *work)
                time_accounting.switch(time_accounting.IDLE)
        except ConnectionLost:
            with self._changed:
                self._queue.hand_over(link)
                self._changed.notify_all()
            raise
        finally:
            with self._changed:
                self._shares.pop(link, None)
                self._queue.was_read(link)
                self._changed.notify_all()
                if not self._over:
                    self._note_end(link)

    def _take(self, link: DataConnection) -> Work | None:
        """Wait for something to send over a connection; None if it is to end. Raises ConnectionLost."""
        with self._changed:
            if self._queue.was_read(link):
                self._changed.notify_all()
            while link.spare or self._queue.is_empty or self._leaves_the_end(link):
                # A spare one stays until its ranges are confirmed: where it breaks before, others must send them.
                if self._over or (link.spare and not self._queue.has_under_way(link)):
                    return None
                late = self._take_late(link) if self._queue.is_empty and not self._bucket.is_paused else None
                if late is not None:
                    return late
                self._changed.wait(_POLL)
                if link.is_lost():
                    raise ConnectionLost("a data connection was lost while it waited")
            share = self._shares[link]
            work = self._queue.take(link, share.next())
            share.gave(work.bytes)
            return work

    def _take_late(self, link: DataConnection) -> Work | None:
        """Return what a slow connection has, for which all would wait at the end; None if another may take it sooner.

        One that is much faster may, unless it is stuck itself.
        """
        outruns = self._shares[link].outruns
        if link.spare or self._is_too_slow(link, 0, self._queue.late(outruns)):
            return None
        return self._queue.take_late(link, outruns)

    def _leaves_the_end(self, link: DataConnection) -> bool:
        """Return whether so little is left that the other connections send it before this one has sent a part."""
        return self._queue.ranges <= _FEW and self._is_too_slow(link, self._queue.bytes)

    def _is_too_slow(self, link: DataConnection, left: int, stuck: Collection[DataConnection] = ()) -> bool:
        others = [one for one in self._shares if one is not link and not one.spare and one not in stuck]
        return is_too_slow(self._shares[link].rate, [self._shares[one].rate for one in others], left)

    def _send_range(self, link: DataConnection, item: OutgoingFile, piece: Range) -> None:
        self._local.sent = (0, 0)
        try:
            if item.known is not None:
                self._send_changed(link, item, piece, item.known)
            elif not item.is_sparse:
                self._send_data(link, item, *piece)
            else:
                self._send_sparse(link, item, *piece)
        except OSError as error:
            # The range stays without contents; the destination will be asked to take the file again, or not at all.
            item.problem = f"cannot be read: {error.strerror}"
        item.sent[piece] = self._local.sent
        link.send_head(Record(RecordKind.DONE, item.shard, item.index, piece[0], piece[1] - piece[0]))

    def _send_sparse(self, link: DataConnection, item: OutgoingFile, start: int, end: int) -> None:
        for first, last, holds in segments(item.fd, start, end):
            if holds:
                self._send_data(link, item, first, last)
            else:
                link.send_head(Record(RecordKind.ZERO, item.shard, item.index, first, last - first))

    def _send_changed(self, link: DataConnection, item: OutgoingFile, piece: Range, known: delta.KnownHashes) -> None:
        """Send the blocks that the destination's old version does not have; runs of the others go as one."""
        blocks, at = known.blocks, piece[0]  # up to where all was sent
        run = range(0)  # of blocks that are the same, and are not said to be yet
        rests: list[bytes] = []

        def check() -> None:
            self._expect_going()
            if link.is_lost():
                raise ConnectionLost("a data connection was lost while it waited")

        found = self._hasher.hashes(item.fd, blocks, blocks.stretches(blocks.inside(*piece)))
        with contextlib.closing(found) as hashed:
            for numbers, own in hashed:
                time_accounting.credit(time_accounting.READ, own.processor)
                before = time_accounting.switch(time_accounting.ANSWER)
                sums = known.wait(numbers, check)
                time_accounting.switch(before)
                for part, is_same in delta.same_blocks(numbers, own.sums, sums):
                    if is_same:
                        if not run:
                            self._send_run(link, item, at, part.start * blocks.size)
                            run, rests = part, []
                        run = range(run.start, part.stop)
                        rests += own.rests[part.start - numbers.start : part.stop - numbers.start]
                        at = part.stop * blocks.size
                        continue
                    self._send_same(link, item, blocks, run, rests)
                    run = range(0)
                    self._send_run(link, item, at, part.stop * blocks.size)
                    at = part.stop * blocks.size
        self._send_same(link, item, blocks, run, rests)
        self._send_run(link, item, at, piece[1])

    def _send_same(
        self, link: DataConnection, item: OutgoingFile, blocks: delta.Blocks, run: range, rests: list[bytes]
    ) -> None:
        """Say that a run of blocks is the same, and prove it."""
        length = len(run) * blocks.size
        if run:
            start, proof = run.start * blocks.size, blocks.prove(rests)
            link.send_head(Record(RecordKind.SAME, item.shard, item.index, start, length, len(proof)))
            link.send(memoryview(proof))
            item.meter.moved(length)

    def _send_run(self, link: DataConnection, item: OutgoingFile, start: int, end: int) -> None:
        if start == end:
            return
        if item.is_sparse:
            self._send_sparse(link, item, start, end)
        else:
            self._send_data(link, item, start, end)

    def _send_data(self, link: DataConnection, item: OutgoingFile, start: int, end: int) -> None:
        compressor: Compressor = self._local.compressor
        while start < end:
            count = min(end - start, self._bucket.piece(MAX_RECORD, _LEAST))
            if compressor.active and compressor.gain.tries_without:
                count = min(count, PIECE_BYTES)
            started = time.monotonic()
            packed = compressor.pack(item.fd, start, count) if compressor.active else None
            if packed is not None:
                kind, count, data = packed
                self._bucket.take(len(data))
                link.send_head(Record(kind, item.shard, item.index, start, count, len(data)))
                link.send(memoryview(data))
                item.meter.moved(count)
                self._count_sent(count, len(data))
            else:
                self._bucket.take(count)
                link.send_head(Record(RecordKind.RAW, item.shard, item.index, start, count, count))
                link.send_file(item.fd, start, count, partial(self._moved, item))
                self._count_sent(count, count)
            compressor.gain.record(packed is not None, count, time.monotonic() - started)
            start += count

    def _count_sent(self, content: int, packed: int) -> None:
        """Count what was sent of the range at which this connection is."""
        before = self._local.sent
        self._local.sent = (before[0] + content, before[1] + packed)

    def _moved(self, item: OutgoingFile, count: int) -> None:
        """So many bytes of a record went: a slow line takes long for a record, and a pause must not wait for that."""
        item.meter.moved(count)
        self._bucket.hold()

    def close(self) -> None:
        """Let all threads end, and the connections with them."""
        self._bucket.close()
        with self._changed:
            self._over = True
            self._queue.clear()
            self._changed.notify_all()
        if self.streams is not None:
            self.streams.close()
        self._hasher.close()
