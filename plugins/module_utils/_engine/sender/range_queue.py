# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queue of the ranges of large files and bundles, and the connections that send them.

A range is under way until it is confirmed. Whoever uses a queue holds a lock.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Callable, Collection, NamedTuple

from ..._core.context import Progress
from ..._core.memory_file import MemoryFile
from ..content import delta
from ..net.carrier import FileRequest, Meter
from ..net.data_connection import DataConnection
from ..wire.ranges import BUNDLE_RANGE, STEP, Range, cut, first_part, length, unit


class Bundle(NamedTuple):
    """The small files of a shard, one behind the other in memory."""

    index: int  # type: ignore[assignment]  # the position of the first one in its shard; tuple's index is hidden
    size: int  # bytes
    memory: MemoryFile


class OutgoingFile:
    """One large file on its way, or a bundle, and the open file that it is read from.

    ``streams`` connections may send of a large file. ``content``: bytes without holes that the destination lacks.
    """

    def __init__(self, shard: int, file: FileRequest | Bundle, fd: int, streams: int, progress: Progress) -> None:
        self.shard, self.index, self.fd = shard, file.index, fd
        self.known: delta.KnownHashes | None = None
        self.is_bundle, self.is_sparse = isinstance(file, Bundle), False
        if isinstance(file, Bundle):
            self.size = self.content = file.size
            longest = BUNDLE_RANGE
            needed = [(0, self.size)]
        else:
            self.size, self.content, longest = file.entry.size, file.missing, unit(file.entry.size, streams)
            needed = [(file.have, self.size)] if file.ranges is None else file.ranges
            self.known, self.is_sparse = file.known, file.entry.is_sparse
        block = self.known.blocks.size if self.known else 0
        self.step = block * max(1, STEP // block) if block else STEP  # a connection is given no less at once
        self.waiting = set(cut(needed, max(longest, block)))  # ranges that are not confirmed
        self.sent: dict[Range, tuple[int, int]] = {}  # of each range: bytes of contents, and on the wire
        self.meter = Meter(progress, self.content)
        self.problem = ""


class Work(NamedTuple):
    """What one connection sends."""

    file: OutgoingFile
    piece: Range

    @property
    def bytes(self) -> int:
        """How many bytes of the file these are."""
        return self.piece[1] - self.piece[0]


class _Sent(NamedTuple):
    """Work under way: over which connection, since when, and the slow one that had it before, if there was one."""

    link: DataConnection
    since: float
    slow: DataConnection | None = None


class RangeQueue:
    """Hands out the ranges of files. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[OutgoingFile, deque[Range]] = {}  # no file without ranges
        self._files: dict[tuple[int, int], OutgoingFile] = {}
        self._at: dict[DataConnection, OutgoingFile] = {}  # what each connection sent of last
        self._under_way: dict[Work, _Sent] = {}
        self._sending: dict[DataConnection, Work] = {}  # what each connection reads from its file at this moment

    def add(self, file: OutgoingFile) -> None:
        """Queue all ranges of a file."""
        self._files[file.shard, file.index] = file
        if file.waiting:
            self._waiting[file] = deque(sorted(file.waiting))

    def remove(self, files: Collection[OutgoingFile]) -> None:
        """Forget files; connections that read from them at this moment still do."""
        for file in files:
            self._waiting.pop(file, None)
            self._files.pop((file.shard, file.index), None)
        for work in [work for work in self._under_way if work.file in files]:
            del self._under_way[work]

    def clear(self) -> None:
        """Hand out nothing more of what waits."""
        self._waiting.clear()

    def find(self, shard: int, index: int) -> OutgoingFile | None:
        """Return a file that was added; None if it is done with."""
        return self._files.get((shard, index))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    @property
    def ranges(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def bytes(self) -> int:
        """How many bytes these are."""
        return sum(map(length, self._waiting.values()))

    def has_under_way(self, link: DataConnection) -> bool:
        """Return whether something that a connection sent is not confirmed."""
        return any(sent.link is link for sent in self._under_way.values())

    def are_read(self, files: Collection[OutgoingFile]) -> bool:
        """Return whether a connection reads from one of these files at this moment."""
        return any(work.file in files for work in self._sending.values())

    def take(self, link: DataConnection, count: int) -> Work:
        """Hand a connection up to about ``count`` bytes of the first range of a file; something must wait."""
        file = self._choose(link)
        queue = self._waiting[file]
        whole = queue.popleft()
        piece = first_part(whole, count, file.step)
        if piece != whole:
            rest = piece[1], whole[1]
            queue.appendleft(rest)
            file.waiting.remove(whole)
            file.waiting.update((piece, rest))
        if not queue:
            del self._waiting[file]
        return self._begin(Work(file, piece), _Sent(link, self._clock()))

    def take_late(self, link: DataConnection, outruns: Callable[[int, float], bool]) -> Work | None:
        """Hand a connection what a slow one has, for which all would wait at the end; None if there is nothing such.

        ``outruns`` decides, by the bytes of the work, and for how many seconds the other has had it. What depends on
        what the destination has is left to the first connection. Nothing is sent more than twice.
        """
        for work, sent in self._late(outruns):
            if sent.link is not link and sent.slow is None and work.file.known is None:
                return self._begin(work, _Sent(link, self._clock(), sent.link))
        return None

    def late(self, outruns: Callable[[int, float], bool]) -> set[DataConnection]:
        """Return the connections that have something for too long; ``outruns`` as above."""
        return {sent.link for _work, sent in self._late(outruns)}

    def _late(self, outruns: Callable[[int, float], bool]) -> list[tuple[Work, _Sent]]:
        now = self._clock()
        return [(work, sent) for work, sent in self._under_way.items() if outruns(work.bytes, now - sent.since)]

    def _begin(self, work: Work, sent: _Sent) -> Work:
        self._under_way[work], self._sending[sent.link] = sent, work
        self._at[sent.link] = work.file
        return work

    def _choose(self, link: DataConnection) -> OutgoingFile:
        """Return a file of which ranges wait: the same as before, else one that no other connection is at.

        Who writes to a file locks it: two that write to one wait for each other. Bundles are sent by all connections
        together, one after the other: the fewer are incomplete, the less an interruption costs.
        """
        first = next(iter(self._waiting))
        if first.is_bundle:
            return first
        own = self._at.get(link)
        if own in self._waiting:
            return own
        others = {file for other, file in self._at.items() if other is not link}
        return next((file for file in self._waiting if file not in others), first)

    def was_read(self, link: DataConnection) -> bool:
        """Take note that a connection reads from no file any more; say whether it did."""
        return self._sending.pop(link, None) is not None

    def rest(self, link: DataConnection) -> None:
        """Keep no file for a connection that goes."""
        self._at.pop(link, None)

    def confirm(self, file: OutgoingFile, piece: Range) -> DataConnection | None:
        """Take note that the destination has a range; return a slow connection that still sends it, if there is one.

        What its connection had not been confirmed to have done when it broke, and had done, does not wait any more.
        """
        file.waiting.discard(piece)
        work = Work(file, piece)
        sent = self._under_way.pop(work, None)
        if sent is not None:
            return sent.slow if sent.slow is not None and self._sending.get(sent.slow) == work else None
        queue = self._waiting.get(file)
        if queue is not None and piece in queue:
            queue.remove(piece)
            if not queue:
                del self._waiting[file]
        return None

    def hand_over(self, link: DataConnection) -> None:
        """Queue again what a connection that broke has not been confirmed to have done."""
        for work in reversed([work for work, sent in self._under_way.items() if sent.link is link]):
            del self._under_way[work]
            if work.piece in work.file.waiting and self.find(work.file.shard, work.file.index) is not None:
                self._waiting.setdefault(work.file, deque()).appendleft(work.piece)
        self.rest(link)
