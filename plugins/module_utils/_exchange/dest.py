# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination's end of the conversation: compare, ask, put in place, account. Private to the collection."""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import Any

from .._job import ledger
from .._job.context import Context, TransferFailed
from .._job.outcome import Outcome
from .._tree.compare import Verdict
from .._tree.entry import REGULAR, Entry
from .._tree.names import escape
from .._tree.place import Root
from . import frames
from .carrier import Arrived, DestCarrier
from .entries import Entries, OpenShard
from .frames import Frame, FrameError
from .full import full
from .hashing import hash_fd
from .merge import continue_from, outcome_from, outcome_values
from .messages import by_index, number, pack, unpack, unpack_shard
from .placer import Placer
from .source import check_hello, hello
from .talk import Talk, impossible
from .writers import PIECE_BYTES, PIECE_FILES, File, Writers, Written, processes_wanted

_CONTENT = frames.DATA_TYPES | {frames.BEGIN, frames.RAW, frames.END}


class DestEnd:
    """Answers the source; ``run`` gives the whole outcome.

    ``earlier`` is what a conversation that broke off had counted: this one goes on from there.
    """

    def __init__(self, context: Context, talk: Talk, carrier: DestCarrier, earlier: Outcome | None = None) -> None:
        self._context, self._talk, self._carrier = context, talk, carrier
        self._settings = context.settings
        self._outcome = Outcome(resumed=bool(context.serve.get("leftover")))
        if earlier is not None:
            continue_from(self._outcome, earlier)
        self._open: dict[int, OpenShard] = {}
        self._fetches: queue.Queue[Any] = queue.Queue()
        self._fetchers: list[threading.Thread] = []
        self._root = Root(context.root)
        self._placer = Placer(context, self._root, self._outcome)
        self._entries = Entries(context, self._root, self._placer)
        self._writers = Writers(context, talk.put, processes_wanted(context))
        self._pieces = 0  # of small files that other processes are making
        self._received = 0  # entries

    @property
    def counted(self) -> Outcome:
        """What is counted so far."""
        return self._outcome

    def run(self) -> Outcome:
        """Hold the conversation; raises TransferFailed."""
        ledger.begin()
        ledger.enter(ledger.LEAD, ledger.WRITE)
        try:
            self._talk.start(self._on_frame)
            return self._converse()
        except TransferFailed as error:
            self._talk.fail(str(error))
            raise
        except FrameError as error:
            self._talk.fail(str(error))
            raise impossible(error) from error
        except OSError as error:
            self._talk.fail(f"the destination failed: {error}")
            raise
        finally:
            self._carrier.close()
            for _fetcher in self._fetchers:
                self._fetches.put(None)
            self._talk.close()
            for fetcher in self._fetchers:
                fetcher.join()
            self._writers.close()
            self._placer.close()
            self._entries.close()
            self._root.close()

    # the reading threads

    def _on_frame(self, stream: int, frame: Frame) -> None:
        if frame.type in _CONTENT:
            self._carrier.take(stream, frame)
        elif frame.type == frames.READY:
            if not self._fetchers:
                for _number in range(max(1, int(self._settings["streams"]))):
                    thread = threading.Thread(target=self._fetch, daemon=True)
                    thread.start()
                    self._fetchers.append(thread)
            self._fetches.put(number(unpack(frame.payload), "id"))
        else:
            self._talk.put(frame)

    def _fetch(self) -> None:
        while True:
            shard = self._fetches.get()
            if shard is None:
                return
            try:
                self._carrier.fetch(shard)
                self._talk.send(frames.FETCHED, pack({"id": shard}))
            except Exception as error:
                self._talk.put(error)
                return

    # the leading thread

    def _converse(self) -> Outcome:
        self._talk.send(frames.HELLO, hello(self._context))
        frame = self._talk.next_event()
        if frame.type != frames.HELLO:
            raise TransferFailed("the source did not begin with a greeting")
        check_hello(self._context, frame.payload)
        self._context.progress.phase = "transfer"
        actions = {frames.SHARD: self._shard, frames.SUMS: self._sums, frames.SENT: self._sent}
        while True:
            frame = self._talk.next_event(waiting=ledger.WRITE if self._pieces else ledger.ANSWER)
            if isinstance(frame, Written):
                self._written(frame)
                continue
            if frame.type == frames.SCANNED:
                return self._finish(unpack(frame.payload))
            if frame.type not in actions:
                raise TransferFailed(f"the source sent a message of type {frame.type} out of turn")
            actions[frame.type](frame.payload)

    def _finish(self, totals: dict[str, Any]) -> Outcome:
        if self._open or self._pieces or totals.get("files") != self._received:
            raise TransferFailed(
                f"the source scanned {totals.get('files')} entries and the destination saw {self._received}: "
                "something was lost. Run the transfer again; what is in place stays"
            )
        self._writers.close()  # what they took of the processor counts from now on
        self._context.progress.phase = "finishing"
        self._context.progress.bytes_total = number(totals, "bytes")
        started = time.monotonic()
        self._entries.finish(bool(totals.get("clean")), number(totals, "files") <= 1)
        self._outcome.phases["finish"] = round(time.monotonic() - started, 3)
        self._outcome.stderr = self._carrier.said
        self._outcome.cmd = {"dest": list(self._carrier.argv)} if self._carrier.argv else {}
        self._outcome.resumed = self._outcome.resumed or self._carrier.resumed
        self._outcome.spent = {"dest": ledger.account()}
        self._talk.send(frames.SUMMARY, pack(outcome_values(self._outcome)))
        frame = self._talk.next_event()
        if frame.type != frames.SUMMARY:
            raise TransferFailed("the source did not say what it accounts for")
        try:
            whole = outcome_from(unpack(frame.payload))
        except TypeError as error:
            raise TransferFailed(f"the source's account cannot be read: {error}") from error
        self._talk.goodbye()
        return whole

    # comparing

    def _shard(self, payload: bytes) -> None:
        shard = unpack_shard(payload)
        self._placer.learn_names(shard.users, shard.groups)
        self._writers.learn_names(shard.users, shard.groups)
        work = self._open[shard.id] = OpenShard(shard)
        opaque = set(shard.opaque)
        if shard.attempt == 1:
            self._received += len(shard.entries)
        for index, entry in enumerate(shard.entries):
            try:
                self._entries.meet(work, index, entry, index in opaque)
            except (OSError, ValueError, OverflowError) as error:
                self._placer.failed(entry.path, error)
                work.accounted += 1
        progress = self._context.progress
        progress.files_total = max(progress.files_total, self._received)
        if work.hashed:
            self._talk.send(frames.HASH, pack({"id": shard.id, "index": work.hashed}))
        else:
            self._ask(work)

    def _sums(self, payload: bytes) -> None:
        values = unpack(payload)
        work = self._work(values)
        sums = by_index(values, "sums", len(work.shard.entries))
        for index in work.hashed:
            try:
                self._entries.compare(work, index, sums.get(index))
            except (OSError, ValueError) as error:
                self._placer.failed(work.shard.entries[index].path, error)
                work.accounted += 1
        self._ask(work)

    def _work(self, values: dict[str, Any]) -> OpenShard:
        work = self._open.get(number(values, "id"))
        if work is None:
            raise TransferFailed("the source speaks of a shard that is not under way")
        return work

    def _ask(self, work: OpenShard) -> None:
        """Ask for the contents that are needed, or acknowledge the shard where none is."""
        self._context.progress.bytes_done += work.matched
        if not work.wanted:
            self._acknowledge(work)
            return
        entries = work.shard.entries
        there = [(index, entries[index], work.found[index]) for index in work.wanted]
        self._carrier.offer(
            work.shard.id, [(i, entry, old) for i, entry, old in there if old is not None and old.type == REGULAR]
        )
        work.have = self._carrier.expect(work.shard.id, [(index, entries[index]) for index in work.wanted])
        ranges = self._carrier.ranges(work.shard.id)
        for index, needed in ranges.items():
            matched = entries[index].size - sum(end - start for start, end in needed)
            work.matched += matched
            self._context.progress.bytes_done += matched
        message = {"id": work.shard.id, "index": work.wanted, "have": work.have, "ranges": ranges}
        self._carrier.ask(work.shard.id, message, lambda whole: self._talk.send(frames.WANT, pack(whole)))

    # putting in place

    def _sent(self, payload: bytes) -> None:
        values = unpack(payload)
        work = self._work(values)
        del self._open[work.shard.id]  # nothing more is to be said of it
        count = len(work.shard.entries)
        problems, sums = by_index(values, "problems", count), by_index(values, "sums", count)
        arrived = self._carrier.collect(work.shard.id)
        small: list[tuple[int, memoryview]] = []
        try:
            for index in work.wanted:
                if index in problems:
                    work.again[index] = str(problems[index])
                    continue
                content = arrived.content(index)
                if content is not None:
                    small.append((index, content))
                    continue
                reason = self._put(work, index, arrived, sums.get(index))
                if reason:
                    work.again[index] = reason
                else:
                    work.accounted += 1
            self._write_all(work, small)
        finally:
            small.clear()
            arrived.close()
        work.matched += arrived.matched
        self._acknowledge(work)

    def _write_all(self, work: OpenShard, files: list[tuple[int, memoryview]]) -> None:
        """Make files of contents that arrived in memory: other processes do, or this one where they are busy."""
        self._writers.expect(len(files))
        piece: list[File] = []
        made: list[bytes] = []
        size, last = 0, None
        for index, content in files:
            entry = work.shard.entries[index]
            if size + len(content) > PIECE_BYTES or len(piece) == PIECE_FILES:
                self._write_piece(work, piece, made)
                piece, made, size, last = [], [], 0, None
            folder = entry.path.rpartition(b"/")[0]
            if folder != last:
                last = folder
                if self._placer.has_made(folder):
                    made.append(folder)
            piece.append((index, entry, work.found[index], content))
            size += len(content)
        if piece:
            self._write_piece(work, piece, made)

    def _write_piece(self, work: OpenShard, piece: list[File], made: list[bytes]) -> None:
        if self._writers.give(work, piece, made):
            work.pieces += 1
            self._pieces += 1
            return
        for index, entry, found, content in piece:
            self._write(entry, found, work.verdicts[index], content)
            work.accounted += 1

    def _written(self, told: Written) -> None:
        """Count what another process has made."""
        work = told.key
        ledger.credit(ledger.WRITE, told.processor / self._writers.count)
        self._outcome.files_deleted += told.deleted
        for path, reason in told.errors:
            self._outcome.error(path, reason)
        for index in told.indexes:
            entry, verdict = work.shard.entries[index], work.verdicts[index]
            if index in told.failures:
                errno, reason = told.failures[index]
                self._placer.failed(entry.path, reason if errno is None else OSError(errno, reason))
            else:
                self._placer.count(entry, verdict)
                self._entries.placed(entry, verdict)
        work.accounted += len(told.indexes)
        work.pieces -= 1
        self._pieces -= 1
        self._acknowledge(work)

    def _put(self, work: OpenShard, index: int, arrived: Arrived, expected_sum: str | None) -> str:
        """Check one file and put it in place; gives why it must come again, or nothing."""
        entry, found, verdict = work.shard.entries[index], work.found[index], work.verdicts[index]
        try:
            folder_fd, name = arrived.locate(index)
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        except OSError:
            self._refuse_full(entry, entry.size)
            return f"it did not arrive{': ' + arrived.trouble if arrived.trouble else ''}"
        if (status.st_mode & 0o170000) != 0o100000 or status.st_size != entry.size:
            self._refuse_full(entry, entry.size - status.st_size)
            return f"{status.st_size} of {entry.size} bytes arrived{': ' + arrived.trouble if arrived.trouble else ''}"
        try:
            if expected_sum is not None and self._sum_at(folder_fd, name) != expected_sum:
                os.unlink(name, dir_fd=folder_fd)
                return "what arrived has another hash than the source's file"
            self._placer.finish_file(entry, found, folder_fd, name, status)
        except (OSError, ValueError) as error:
            self._placer.failed(entry.path, error)
            return ""
        self._placer.count(entry, verdict)
        self._entries.placed(entry, verdict)
        return ""

    def _write(self, entry: Entry, found: Entry | None, verdict: Verdict, content: memoryview) -> None:
        try:
            self._placer.write_file(entry, found, content)
        except (OSError, ValueError, OverflowError) as error:  # a time that this system cannot store
            self._placer.failed(entry.path, error)
            return
        self._placer.count(entry, verdict)
        self._entries.placed(entry, verdict)

    def _refuse_full(self, entry: Entry, missing: int) -> None:
        """End the transfer where a file is short because there is no room for the rest: sending it again is vain."""
        space = os.statvfs(self._context.staging)
        if missing > space.f_bavail * space.f_frsize or (space.f_files and not space.f_favail):
            raise full(self._context.root, f"{missing} bytes of {escape(entry.path)} found no room")

    @staticmethod
    def _sum_at(folder_fd: int, name: bytes) -> str:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder_fd)
        try:
            return hash_fd(fd)
        finally:
            os.close(fd)

    def _acknowledge(self, work: OpenShard) -> None:
        """Tell the source that a shard is done with, where it is: other processes may be at some of its files."""
        if work.pieces:
            return
        again = work.again
        if work.accounted + len(again) != len(work.shard.entries):
            raise TransferFailed(
                f"of a shard's {len(work.shard.entries)} entries {work.accounted + len(again)} are accounted for: "
                "this is a defect, please report it"
            )
        self._open.pop(work.shard.id, None)
        self._outcome.bytes_matched += work.matched
        self._context.progress.files_done += work.accounted
        self._talk.send(
            frames.ACK,
            pack({"id": work.shard.id, "accounted": work.accounted, "again": again, "matched": work.matched}),
        )
