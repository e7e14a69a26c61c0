# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Receive: small files in memory, ranges of large ones into partial files."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
from typing import Any, Callable

from ..._core import time_accounting
from ..._core.context import Context, Progress
from ..._core.disk_full import FULL, full
from ..._core.errors import TransferFailed
from ..._core.files import write_all
from ..._core.outcome import Outcome
from ..._model.entry import Entry
from ..._tree.dirfd import Root
from ..._tree.inner_staging import InnerStaging
from ..._tree.staging import open_staging
from ..content import bundles, delta
from ..content.compression import decompress as inflate
from ..content.sparse import write_zeros
from ..net.carrier import DestCarrier, FileOffer, FileRequest, Meter, Send, ShardFiles
from ..net.data_connection import OUTRUN, DataConnection
from ..net.pool import ConnectionPool
from ..net.session import WireSession
from ..wire.conversation import Said
from ..wire.frames import Frame, FrameError, FrameKind, Payload
from ..wire.messages import Begin, BlockSums, Got, Shard, Want
from ..wire.ranges import MAX_RANGES, Range, at_most, missing
from ..wire.records import Record, RecordKind
from .basis import Basis, Places, find_basis
from .incoming_file import IncomingBundle, IncomingFile, InPlace
from .partial_file import Partial
from .receiver import Receiver

JOURNAL_BYTES = 16 << 20  # files from this size on are resumed inside
_AHEAD = 256 << 20  # bytes of an old version that are hashed before they are of use: they are read again from memory
_LOOK_SECONDS = 1.0  # between two looks at whether the transfer is over
_ZEROS = bytes(1 << 20)


class _Incoming:
    """A large file that is being received, or a bundle."""

    def __init__(self, partial: IncomingFile, lacks: int, progress: Progress) -> None:
        """``lacks``: bytes of contents without holes that are not there yet, at most."""
        self.partial, self.lacks = partial, lacks
        self.meter = Meter(progress, lacks)
        self.users: set[DataConnection] = set()  # whose contents are being written to it
        self.basis: Basis | None = None
        self.same: dict[int, int] = {}  # by offset: how many bytes were taken from the basis
        self.complete: set[int] = set()  # the offsets of the ranges that the source has sent, as it says
        self.written = 0  # bytes of these
        self.arrived: list[Range] = []  # those of which everything came
        self.received: dict[int, int] = {}  # by offset: bytes of contents that came

    @property
    def taken(self) -> int:
        """Bytes of contents without holes that were taken from the basis, as far as the holes in it are known."""
        return min(sum(self.same.values()), self.lacks - min(self.lacks, sum(self.received.values())))

    @property
    def missing(self) -> list[Range]:
        """What never came of it, whatever the source says."""
        return missing([*self.partial.have, *self.arrived], self.partial.size)


class _Run:
    """What came over one connection without a gap since the last range was complete."""

    __slots__ = ("end", "has_same", "item", "start")

    def __init__(self) -> None:
        self.item: _Incoming | None = None
        self.start = self.end = 0
        self.has_same = False  # whether something of it was taken from an old version

    def add(self, item: _Incoming, record: Record) -> None:
        """Take note of a record's contents."""
        if self.item is not item or record.offset != self.end:
            self.item, self.start, self.has_same = item, record.offset, False
        self.end = record.offset + record.length
        self.has_same = self.has_same or record.kind == RecordKind.SAME

    def ends(self, item: _Incoming, record: Record) -> bool:
        """Return whether all of the range that a record says is complete has come."""
        return self.item is item and self.start <= record.offset and self.end == record.offset + record.length


class _Batch:
    """What was asked for of one shard."""

    def __init__(self) -> None:
        self.small: list[tuple[int, Entry]] = []
        self.frames: list[Frame] = []
        self.announced = 0  # bytes of the small files
        self.received = 0
        self.bundle: _Incoming | None = None  # those that come over the data connections
        self.large: dict[int, _Incoming] = {}
        self.needed: dict[int, list[Range]] = {}
        self.trouble: dict[int, str] = {}
        self.bases: dict[int, Basis] = {}
        self.old: dict[int, FileOffer] = {}  # whose old version is in its place
        self.is_first = True  # or files of an earlier shard come again
        self.is_asked_for = False
        self.is_sent = False  # there is nothing more to come
        self.hasher: threading.Thread | None = None

    def incoming(self) -> list[_Incoming]:
        """Return all that ranges are written to."""
        return [*self.large.values(), *([self.bundle] if self.bundle is not None else [])]


class StreamDest(DestCarrier):
    """The destination's half; ``drain`` takes what comes over one data connection."""

    streams: ConnectionPool | None = None  # the connections that call ``drain``

    def __init__(
        self,
        context: Context,
        tell: Send,
        failed: Callable[[Any], None],
        reuse: Callable[[Payload], None],
    ) -> None:
        self._context, self._tell, self._failed, self._reuse = context, tell, failed, reuse
        self._batches: dict[int, _Batch] = {}
        self._changed = threading.Condition()
        self._current = _Batch()  # whose bundles arrive
        self._over, self._noted = threading.Event(), threading.Event()  # the end; a range is complete
        self._syncer: threading.Thread | None = None
        self._hasher = delta.Hasher()
        self._root: Root | None = None
        self._inner: InnerStaging | None = None

    def _folder(self, entry: Entry, journal: bool) -> int:
        """Return the folder in which a file arrives, on the file system of its place. Raises OSError."""
        staged = open_staging(self._context)
        if self._root is None:
            self._root = Root(self._context.top)
        inner = self._inner or InnerStaging(
            self._root, staged.temporary_fd, self._context.root, self._context.settings["id"], staged.owners
        )
        self._inner = inner
        folder = entry.path.rpartition(b"/")[0]
        fd = self._root.open_directory(folder)
        try:
            staged = inner.at(folder, fd) or staged
        finally:
            os.close(fd)
        return staged.partial_fd if journal else staged.temporary_fd

    # in the leading thread

    def offer(self, shard: Shard, files: list[FileOffer], older: Callable[[Entry], Places]) -> None:
        """Open the old versions of large files: what is in the place of a file comes first."""
        batch = self._batches[shard.id] = _Batch()
        batch.is_first = shard.attempt == 1
        batch.old = {file.index: file for file in files if file.found is not None}
        large = [file for file in files if not bundles.fits(file.entry)]
        if not large or self._context.settings.get("delta") == "none":
            return
        with Root(self._context.top) as root:
            for index, entry, found, _keeps_owner in large:
                in_place: list[tuple[Root, Entry | None]] = [] if found is None else [(root, found)]
                basis = find_basis(entry, itertools.chain(in_place, older(entry)), shard.hashes)
                if basis is not None:
                    batch.bases[index] = basis

    def expect(self, shard: int, files: list[tuple[int, Entry]]) -> dict[int, int]:
        """Open what an earlier run left of the large files."""
        batch = self._batches[shard]
        batch.small = [file for file in files if bundles.fits(file[1])]
        batch.announced = sum([entry.size for _index, entry in batch.small])
        if batch.announced > bundles.SHARD_BYTES + bundles.SMALL_BYTES:
            raise FrameError(f"a shard with {batch.announced} bytes of small files arrived, which must fit into memory")
        large = [file for file in files if not bundles.fits(file[1])] if len(batch.small) < len(files) else []
        for index, entry in large:
            try:
                partial = self._in_place(batch, index, entry) or self._partial(entry)
            except OSError as error:
                batch.trouble[index] = error.strerror or str(error)
                continue
            needed = None
            if partial.have:
                batch.needed[index] = needed = at_most(MAX_RANGES, missing(partial.have, entry.size))
                self.resumed = self.resumed or batch.is_first
            lacks = FileRequest(index, entry, 0, needed).missing
            batch.large[index] = item = _Incoming(partial, lacks, self._context.progress)
            item.basis = batch.bases.get(index)
        if batch.large and self._syncer is None:
            self._syncer = threading.Thread(target=self._sync, daemon=True)
            self._syncer.start()
        return {}

    def _partial(self, entry: Entry) -> Partial:
        journal = entry.size >= JOURNAL_BYTES
        return Partial(self._folder(entry, journal), entry, journal)

    def _in_place(self, batch: _Batch, index: int, entry: Entry) -> InPlace | None:
        """Return the old version to write to, if that is requested and possible; otherwise a new file replaces it.

        So it does where the old one is another user's, who could read what is not to be his.
        """
        old = batch.old.get(index)
        if not self._context.settings.get("inplace") or old is None or old.found is None or not old.keeps_owner:
            return None
        with contextlib.suppress(OSError), Root(self._context.top) as root:
            return InPlace(root, entry, old.found)
        return None

    def ranges(self, shard: int) -> dict[int, list[Range]]:
        """Return the missing parts of partial files."""
        return self._batches[shard].needed

    def ask(self, message: Want, send: Callable[[Want], None]) -> None:
        """If there are old versions, a thread begins with them and tells their hashes."""
        batch = self._batches[message.id]
        if not any(item.basis is not None for item in batch.large.values()):
            batch.is_asked_for = True
            send(message)
            return
        batch.hasher = threading.Thread(target=self._ask_and_hash, args=(batch, message, send), daemon=True)
        batch.hasher.start()

    def _ask_and_hash(self, batch: _Batch, message: Want, send: Callable[[Want], None]) -> None:
        try:
            message.sums = {}
            for index, item in batch.large.items():
                if item.basis is not None:
                    item.partial.begin_with(item.basis.fd)
                    message.sums[index] = item.basis.blocks.pack()
            batch.is_asked_for = True
            send(message)
            for index, item in batch.large.items():
                if item.basis is not None:
                    self._tell_hashes(batch, message.id, index, item, item.basis)
        except OSError as error:
            full_or_not = full(self._context.root, f"{error.strerror}") if error.errno in FULL else error
            self._failed(full_or_not)
        except Exception as error:
            self._failed(error)

    def _tell_hashes(self, batch: _Batch, shard: int, index: int, item: _Incoming, basis: Basis) -> None:
        """Hash the old version where something of the file is needed, not too far ahead of what is written."""
        blocks, told, first = basis.blocks, 0, 0
        runs = blocks.stretches_in(batch.needed.get(index, [(0, item.partial.size)]))
        # Nobody else can write to a clone.
        fd = item.partial.fd if item.partial.is_cloned else basis.fd
        with contextlib.closing(self._hasher.hashes(fd, blocks, runs)) as hashed:
            with contextlib.suppress(OSError):  # then what follows is sent
                for run, hashes in hashed:
                    basis.note(run, hashes)
                    self._tell(BlockSums(shard, index, run.start, hashes.sums, is_last=False))
                    told, first = told + len(run) * blocks.size, run.start + blocks.stretch
                    if not self._wait_until_written(batch, item, told - _AHEAD):
                        return
        self._tell(BlockSums(shard, index, first, b"", is_last=True))

    def _wait_until_written(self, batch: _Batch, item: _Incoming, count: int) -> bool:
        """Wait until so much of a file has been written; False if no more will be."""
        with self._changed:
            while item.written < count and not batch.is_sent and not self._over.is_set():
                self._changed.wait(0.5)
            return not batch.is_sent and not self._over.is_set()

    def collect(self, shard: int) -> ShardFiles:
        """Return a shard's files, all of which have left the source."""
        with self._changed:
            batch = self._batches.pop(shard)
            batch.is_sent = True
            self._changed.notify_all()
            # All ranges are there: what still comes was sent a second time, over a connection that was quicker.
            for link in [link for item in batch.incoming() for link in item.users]:
                link.abort(OUTRUN)
            while any(item.users for item in batch.incoming()):
                self._changed.wait(0.5)
        if batch.hasher is not None:
            batch.hasher.join()
        if batch.bundle is None:
            self._context.progress.moved(batch.announced)
        for item in batch.incoming():
            item.meter.end()
        try:
            return _Received(batch, self._context.top, self._reuse, self._hasher)
        except FrameError as error:
            raise TransferFailed(f"what arrived of small files cannot be used: {error}") from error

    # in the thread that listens to the conversation

    def take(self, _stream: int, message: Said) -> None:
        """Take a bundle."""
        if isinstance(message, Frame):
            self._current.received += len(message.payload)
            if self._current.received > self._current.announced:
                raise FrameError("more arrived of a shard's small files than was announced")
            self._current.frames.append(message)
        elif isinstance(message, Begin):
            self._current = self._batches[message.id]

    # in the connections' threads

    def drain(self, link: DataConnection) -> None:
        """Take what comes over a connection until the peer says goodbye.

        Raises ConnectionLost, FrameError and OSError.
        """
        time_accounting.enter(time_accounting.LINK, time_accounting.WRITE)
        run = _Run()
        while True:
            record = link.receive_head()
            if record.kind == RecordKind.BYE:
                return
            with self._changed:
                batch = self._batches.get(record.shard)
                item = self._find(batch, record.index) if batch is not None and batch.is_asked_for else None
                if item is not None and record.kind != RecordKind.DONE:
                    item.users.add(link)
            try:
                self._take_record(link, record, item, run)
            except OSError as error:
                if error.errno in FULL:
                    raise full(self._context.root, f"{error.strerror}, while a large file arrived") from error
                raise
            finally:
                if item is not None:
                    with self._changed:
                        item.users.discard(link)
                        self._changed.notify_all()

    def _find(self, batch: _Batch, index: int) -> _Incoming | None:
        """Return what a record is for: the small files of a shard come under the position of the first one."""
        if batch.small and index == batch.small[0][0]:
            if batch.bundle is None:
                bundle = IncomingBundle(batch.announced, self._context.folder)
                batch.bundle = _Incoming(bundle, batch.announced, self._context.progress)
            return batch.bundle
        return batch.large.get(index)

    def _take_record(self, link: DataConnection, record: Record, item: _Incoming | None, run: _Run) -> None:
        if item is None:  # it came over another connection meanwhile, could not be opened, or was not asked for
            left = record.size
            while left:
                left -= len(link.receive(min(left, len(_ZEROS))))
            return
        partial = item.partial
        if record.offset + record.length > partial.size:
            raise FrameError("contents arrived from behind the end of a file")
        if record.kind == RecordKind.RAW:
            link.receive_file(partial.fd, record.offset, record.length, item.meter.moved)
            item.received[record.offset] = record.length
            run.add(item, record)
            return
        if record.kind == RecordKind.ZERO:
            if not partial.fresh:
                write_zeros(partial.fd, record.offset, record.length)
        elif record.kind == RecordKind.SAME:
            proof = link.receive(record.size)
            if item.basis is None:
                raise FrameError("a file refers to an old version that does not exist")
            item.basis.check(record.offset, record.length, proof)
            partial.take_same(item.basis.fd, record.offset, record.length)
            with self._changed:
                item.same[record.offset] = record.length
        elif record.kind == RecordKind.DONE:
            self._take_done(item, (record.offset, record.offset + record.length), run.ends(item, record), run.has_same)
            run.item = None
            with self._changed:
                item.written += record.length if record.offset not in item.complete else 0
                item.complete.add(record.offset)
            done = [[record.offset, record.offset + record.length]]
            self._tell(Got(record.shard, record.index, done))
            return
        else:
            data = memoryview(inflate(record.kind, link.receive(record.size), record.length))
            write_all(partial.fd, data, record.offset)
            item.received[record.offset] = record.length
        run.add(item, record)
        if record.kind != RecordKind.ZERO:
            item.meter.moved(record.length)

    def _take_done(self, item: _Incoming, piece: Range, is_whole: bool, has_same: bool) -> None:
        """Count a range that the source calls complete, where all of it came: it may have been unable to read it.

        One with blocks of an old version that somebody may be writing to is no use to a rerun yet.
        """
        if not is_whole:
            return
        with self._changed:
            item.arrived.append(piece)
        if has_same and item.basis is not None and not item.partial.is_cloned and not item.basis.is_as_it_was():
            return
        item.partial.note(*piece)
        self._noted.set()

    # the journal's thread

    def _sync(self) -> None:
        """Sync what was written as soon as a range is complete; while that goes on, more come together."""
        time_accounting.enter(time_accounting.JOURNAL, time_accounting.IDLE)
        while not self._over.is_set():
            time_accounting.switch(time_accounting.IDLE)
            if not self._noted.wait(_LOOK_SECONDS):
                continue
            time_accounting.switch(time_accounting.SYNC)
            self._noted.clear()
            with self._changed:
                items = [item for batch in self._batches.values() for item in batch.large.values()]
            try:
                for item in items:
                    item.partial.sync()
            except OSError as error:
                self._failed(error)
                return

    def close(self) -> None:
        """Keep what is there for a rerun."""
        self._over.set()
        self._noted.set()
        if self.streams is not None:
            self.streams.close()
        for thread in [self._syncer, *(batch.hasher for batch in self._batches.values())]:
            if thread is not None:
                thread.join()
        self._hasher.close()
        for batch in self._batches.values():
            for item in batch.incoming():
                item.partial.close(complete=False)
            for basis in batch.bases.values():
                basis.close()
        if self._inner is not None and self._root is not None:
            self._inner.close()
            self._root.close()


class _Received(ShardFiles):
    def __init__(
        self, batch: _Batch, root: bytes | int, reuse: Callable[[Payload], None], hasher: delta.Hasher
    ) -> None:
        self._root, self._frames, self._reuse, self._hasher = root, batch.frames, reuse, hasher
        self._large = batch.large
        self._small = dict(bundles.contents(batch.frames + _beside(batch), batch.small))
        self._bases = batch.bases
        self._trouble = batch.trouble
        self.matched = sum(item.taken for item in batch.large.values())

    def content(self, index: int) -> memoryview | None:
        return self._small.get(index)

    def locate(self, index: int) -> tuple[int, bytes]:
        item = self._large.get(index)
        if item is None:
            self.trouble = self._trouble.get(index, "")
            raise OSError(errno.ENOENT, self.trouble)
        if item.missing:
            self.trouble = "the source did not send all of it"
            raise OSError(errno.ENODATA, self.trouble)
        if isinstance(item.partial, InPlace):
            try:
                with Root(self._root) as root:
                    item.partial.complete(root)
            except OSError as error:
                self.trouble = error.strerror or str(error)
                raise
            self._count(item)
            return item.partial.folder_fd, item.partial.name  # it stays open until this is closed
        if item.basis is not None and item.same and not item.partial.is_cloned and not item.basis.is_as_it_was():
            self._expect_same(index, item, item.basis)
        self._count(item)
        item.partial.close(complete=True)
        return item.partial.folder_fd, item.partial.name

    def _expect_same(self, index: int, item: _Incoming, basis: Basis) -> None:
        """Hash again what was taken from an old version that somebody may have written to. Raise OSError if it differs.

        Then a rerun gets only what differs.
        """
        taken = [(offset, offset + count) for offset, count in item.same.items()]
        bad = basis.differing(item.partial.fd, taken, self._hasher)
        if bad:
            self.trouble = "its old version at the destination changed meanwhile"
            if item.partial.note_all_but(bad):
                del self._large[index]
            raise OSError(errno.ESTALE, self.trouble)

    def status(self, index: int, folder_fd: int, name: bytes) -> os.stat_result:
        partial = self._large[index].partial
        return partial.status() if isinstance(partial, InPlace) else super().status(index, folder_fd, name)

    def _count(self, item: _Incoming) -> None:
        self.from_basis += item.taken
        self.shared += item.taken if item.partial.is_cloned else 0

    def close(self) -> None:
        self._small.clear()
        while self._frames:  # each once only: two frames must not share memory
            self._reuse(self._frames.pop().payload)
        for item in self._large.values():
            with contextlib.suppress(OSError):
                item.partial.remove()
        for basis in self._bases.values():
            basis.close()


def _beside(batch: _Batch) -> list[Frame]:
    """Return what came of small files over the data connections, as the conversation would have brought it."""
    if batch.bundle is None or not isinstance(batch.bundle.partial, IncomingBundle):
        return []
    if not batch.bundle.partial.is_whole:
        raise FrameError("less arrived of a shard's small files than was announced")
    data = batch.bundle.partial.read()
    batch.bundle.partial.close()
    return [Frame(FrameKind.DATA, data)]


def make_dest(
    context: Context, session: WireSession, timeout: float, earlier: Outcome | None
) -> tuple[Receiver, ConnectionPool]:
    """Make the destination's end, and its data connections."""
    carrier = StreamDest(context, session.send, session.put, session.channels[0].reuse)
    end = Receiver(context, session, carrier, earlier)
    carrier.streams = ConnectionPool(context, timeout, carrier.drain, session.put)
    return end, carrier.streams
