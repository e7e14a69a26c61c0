# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source's end of the conversation: scan, offer, send, account."""

from __future__ import annotations

import os
import queue
import threading
import time
from functools import partial
from typing import Any, Callable, Iterable, Iterator, Mapping

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._core.files import hash_and_close
from ..._core.mounts import places_in
from ..._core.outcome import Outcome
from ..._model.entry import DIRECTORY, REGULAR, WHOLE_BYTES, Entry, contents_of
from ..._model.filters import Filters
from ..._model.paths import escape
from ..._tree.directory_tags import DirectoryTags
from ..._tree.dirfd import Root
from ..._tree.holes import count_holes
from ..._tree.owners import Names
from ..._tree.walk import walk
from ..net.carrier import FileRequest, SendResult, SourceCarrier
from ..net.session import WireSession
from ..wire.conversation import Said, has_room
from ..wire.frames import FrameError
from ..wire.messages import ATTEMPTS, SHARD_ENTRIES, Ack, Fetched, Hash, Scanned, Sent, Shard, Sums, Total, Want
from ..wire.summary import Summary, merge
from .leftovers import staging_left_out

AGAIN_AT_MOST = ATTEMPTS - 1  # times that a file which changes is sent once more
IN_VAIN_AT_MOST = 64 << 20  # bytes of such a file that are sent for nothing before it is tried only once more
VANISHED, UNSTABLE = "vanished", "unstable"
MOVED = "moved"  # within the file: rsync brings it, after this
MAX_SHARD_BYTES = 64 << 20  # of file contents. What is lost when an end is killed: so much for each stream, or one file
MAX_SHARD_RECORDS = 4 << 20  # of names, targets and attributes
MAX_SHARD_SECONDS = 0.5  # a slow disk's first entries must not wait for its last

Work = Callable[[Root, int], None]  # what a worker does, with the tree and the number of its connection


class Sender:
    """Leads the conversation from the source's side; ``run`` gives the whole outcome.

    ``earlier`` is what a conversation that broke off had counted: this one goes on from there.
    """

    def __init__(
        self, context: Context, session: WireSession, carrier: SourceCarrier, earlier: Outcome | None = None
    ) -> None:
        self._context, self._session, self._carrier = context, session, carrier
        self._settings = context.settings
        self._streams = max(1, int(self._settings["streams"]))
        self._outcome = Outcome()
        self._work: queue.Queue[Work | None] = queue.Queue()
        self._workers: list[threading.Thread] = []
        self._open: dict[int, Shard] = {}
        self._again: list[tuple[list[Entry], int]] = []  # files to be offered once more, and which attempt that is
        self._problems: dict[int, dict[int, str]] = {}  # of open shards, as the workers found them
        self._sent = SendResult(earlier.bytes_content, earlier.bytes_sent) if earlier is not None else SendResult()
        self._lock = threading.Lock()
        self._next_id = 0
        self._names = Names(self._settings["preserve"])
        self._unlisted: set[bytes] = set()
        self._tags = DirectoryTags.parse(self._settings["exclude_if_present"], self._settings["exclude_caches"])
        self._tagged: set[bytes] = set()  # directories with tags that are not offered yet
        self._top_device = -1
        self._places = places_in(os.fsdecode(context.root))
        only = self._settings.get("only")
        self._only = os.fsencode(only) if only else None

    @property
    def counted(self) -> Outcome:
        """What is counted so far."""
        return Outcome(bytes_content=self._sent.content, bytes_sent=self._sent.bytes)

    def run(self) -> Outcome:
        """Hold the conversation; raises TransferFailed."""
        time_accounting.begin()
        time_accounting.enter(time_accounting.LEAD, time_accounting.READ)
        try:
            with self._session.failures_told():
                self._session.start(self._on_message)
                self._employ(self._streams)
                return self._converse()
        finally:
            self._carrier.close()
            for _worker in self._workers:
                self._work.put(None)
            self._session.close()
            for worker in self._workers:
                worker.join()

    def _employ(self, count: int) -> None:
        """Have at least so many workers."""
        while len(self._workers) < count:
            thread = threading.Thread(target=self._worker, args=(len(self._workers),), daemon=True)
            thread.start()
            self._workers.append(thread)

    # the leading thread

    def _converse(self) -> Outcome:
        started = time.monotonic()
        self._context.progress.phase = "reading" if self._context.settings["check"] else "transfer"
        for entries in self._cut(self._entries()):
            self._handle_waiting()
            self._offer_again()
            self._offer(entries)
        self._outcome.phases["scan"] = round(time.monotonic() - started, 3)
        self._outcome.bytes_total += self._outcome.bytes_apparent
        self._context.progress.bytes_total = self._outcome.bytes_total
        self._context.progress.bytes_apparent = self._outcome.bytes_apparent
        totals = self._outcome.files_total, self._outcome.bytes_total
        self._session.send(Total(*totals, self._outcome.bytes_apparent))
        scan_is_clean = not self._outcome.errors_total
        while self._open or self._again:
            self._offer_again()
            self._handle(self._session.next_event())
        self._outcome.phases["transfer"] = round(time.monotonic() - started, 3)
        is_clean = scan_is_clean and self._outcome.errors_total == self._outcome.errors_unstable
        self._session.send(Scanned(*totals, is_clean))
        self._context.progress.phase = "finishing"
        account: Summary = self._session.next_event()
        self._outcome.bytes_content, self._outcome.bytes_sent = self._sent.content, self._sent.bytes
        self._outcome.spent = {"source": self._account()}
        self._outcome.stderr = self._carrier.said
        self._outcome.cmd = {"source": list(self._carrier.argv)} if self._carrier.argv else {}
        whole = merge(self._outcome, account.outcome)
        whole.owner_hints = self._names.hints(self._context.root, whole.owner_mismatches)
        self._session.send(Summary(whole))
        self._session.goodbye()
        return whole

    def _account(self) -> Mapping[str, Any]:
        """Return what this end's time went into."""
        return time_accounting.account()

    def _cut(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        """Cut entries into shards."""
        return gather(entries)

    def _entries(self) -> Iterator[Entry]:
        """Yield the source's entries; ``bytes_total`` counts their holes, below zero."""
        preserve = self._settings["preserve"]
        left_out: list[bytes] = []
        for entry in walk(
            self._context.top,
            filters=Filters.parse(self._settings["rules"]),
            on_staging=left_out.append,
            one_file_system=bool(self._settings["one_file_system"]),
            tags=self._tags,
            on_tagged=self._note_tagged,
            xattrs="xattrs" in preserve or "acls" in preserve,
            only=self._only,
            on_error=self._scan_error,
        ):
            if not entry.path:
                self._top_device = entry.dev
                if self._only is not None:
                    continue
            self._outcome.files_total += 1
            if entry.type == REGULAR:
                self._outcome.bytes_apparent += entry.size
                if entry.size > WHOLE_BYTES and entry.has_large_holes:  # the first is quick, and seldom so
                    entry = self._with_holes(entry)
                    self._outcome.bytes_total -= entry.size - entry.content
            yield entry if self._places == 1 else self._with_all_names(entry)
        if self._top_device == -1:
            raise TransferFailed(
                f"the source {os.fsdecode(self._context.root)} cannot be read: {self._outcome.errors[0]['reason']}"
            )
        self._outcome.warnings += staging_left_out(left_out, self._settings["id"])
        if self._only is not None and not self._outcome.files_total:
            raise TransferFailed(f"the source has no {self._settings['only']} (any more)")

    def _note_tagged(self, path: bytes) -> None:
        self._outcome.left_out += 1
        self._tagged.add(path)

    def _with_all_names(self, entry: Entry) -> Entry:
        """Return an entry with as many names as its file may have in the tree: bind mounts show some again."""
        return entry._replace(nlink=entry.nlink * self._places) if entry.link_id else entry

    def _with_holes(self, entry: Entry) -> Entry:
        with Root(self._context.top) as root:
            return count_holes(root, entry)

    def _scan_error(self, path: bytes, error: OSError) -> None:
        if isinstance(error, FileNotFoundError) and path:
            self._outcome.vanished += 1
        else:
            self._outcome.error(escape(path), f"cannot be read: {error.strerror}")
            self._unlisted.add(path)

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _offer(self, entries: list[Entry], attempt: int = 1) -> None:
        """Offer entries as a shard, as soon as there is room for one more under way."""
        while not has_room([shard.size for shard in self._open.values()], self._session.window):
            self._handle(self._session.next_event())
        shard = Shard(self._take_id(), entries, attempt)
        if self._settings["one_file_system"]:
            shard.opaque = [i for i, entry in enumerate(shard.entries) if entry.dev != self._top_device]
        if self._tagged:
            shard.tagged = [i for i, entry in enumerate(shard.entries) if entry.path in self._tagged]
            self._tagged.difference_update([shard.entries[i].path for i in shard.tagged])
        shard.users, shard.groups = self._names.new(shard.entries)
        shard.hashes = self._carrier.hashes(shard.entries)
        self._open[shard.id] = shard
        self._context.progress.files_total = self._outcome.files_total
        self._session.send(shard)

    def _offer_again(self) -> None:
        while self._again:
            self._offer(*self._again.pop(0))

    def _handle_waiting(self) -> None:
        message = self._session.next_event(wait=False)
        while message is not None:
            self._handle(message)
            message = self._session.next_event(wait=False)

    def _handle(self, ack: Ack) -> None:
        shard = self._open.pop(ack.id)
        count, again = len(shard.entries), ack.again
        if ack.accounted != count - len(again):
            raise TransferFailed(
                f"the destination accounted for {ack.accounted} of {count - len(again)} entries of a shard: "
                "something was lost. Run the transfer again; what is in place stays"
            )
        self._context.progress.files_done += count - len(again)
        self._context.progress.bytes_done += ack.matched
        self._retry(shard, again, self._problems.pop(shard.id, {}))

    def _retry(self, shard: Shard, again: dict[int, str], problems: dict[int, str]) -> None:
        """Offer once more what changed or was damaged on its way; give up on a file after the third time again."""
        fresh: list[Entry] = []
        for index, reason in again.items():
            entry = shard.entries[index]
            problem = problems.get(index, "")
            if problem == VANISHED:
                self._outcome.vanished += 1
            elif problem == MOVED:
                self._outcome.deferred.append(escape(entry.path))
            elif problem and problem != UNSTABLE:
                self._outcome.error(escape(entry.path), problem)
            elif shard.attempt > _again_at_most(entry, problem):
                mixed = ", or where inplace wrote into it a mixture" if self._settings.get("inplace") else ""
                kept = f"the destination keeps what it had{mixed}"
                if problem == UNSTABLE:
                    self._outcome.unstable(
                        escape(entry.path),
                        f"unstable: sent {shard.attempt} times, and it changed each time while it was read; {kept}. "
                        "Stop what writes to it, or transfer a snapshot",
                    )
                else:
                    self._outcome.error(
                        escape(entry.path),
                        f"sent {shard.attempt} times, and {reason}; {kept}. Run it again, and if that does not help, "
                        "check the network and the disks of both hosts",
                    )
            else:
                self._refresh(entry, fresh)
        self._context.progress.moved(-contents_of(fresh))
        self._again += [(entries, shard.attempt + 1) for entries in self._cut(fresh)]

    def _refresh(self, entry: Entry, fresh: list[Entry]) -> None:
        preserve = self._settings["preserve"]
        with Root(self._context.top) as root:
            try:
                now = root.lstat(entry.path, "xattrs" in preserve or "acls" in preserve)
            except OSError as error:
                self._outcome.error(escape(entry.path), f"cannot be read: {error.strerror}")
                return
        if now is None:
            self._outcome.vanished += 1
        elif now.type == DIRECTORY:
            self._outcome.unstable(escape(entry.path), "was replaced by a directory during the transfer: run it again")
        elif now.type == REGULAR and not self._readable(now):
            pass
        else:
            fresh.append(self._with_holes(self._with_all_names(now)))

    def _readable(self, entry: Entry) -> bool:
        try:
            with Root(self._context.top) as root:
                os.close(root.open_file(entry.path))
        except OSError as error:
            self._outcome.error(escape(entry.path), f"cannot be read: {error.strerror}")
            return False
        return True

    # the reading threads

    def _on_message(self, _stream: int, message: Said) -> None:
        if isinstance(message, Want):
            self._work.put(partial(self._send, shard=self._open[message.id], want=message))
        elif isinstance(message, Hash):
            self._work.put(partial(self._hash, shard=self._open[message.id], wanted=message.indexes))
        elif isinstance(message, Fetched):
            self._carrier.fetched(message.id)
        else:
            self._session.put(message)

    # the workers

    def _worker(self, number: int) -> None:
        stream = number % len(self._session.channels)  # a program beside the conversation has no connection in it
        with Root(self._context.top) as root:
            while True:
                work = self._work.get()
                if work is None:
                    return
                try:
                    work(root, stream)
                except Exception as error:
                    self._session.put(error)
                    return

    def _hash(self, root: Root, _stream: int, *, shard: Shard, wanted: list[int]) -> None:
        sums = {}
        for index in wanted:
            try:
                with time_accounting.at_work():
                    sums[index] = hash_and_close(root.open_file(shard.entries[index].path)).hex()
            except OSError:
                sums[index] = ""  # equal to nothing: it is asked for, and fails in its own right
        self._session.send(Sums(shard.id, sums))

    def _send(self, root: Root, stream: int, *, shard: Shard, want: Want) -> None:
        files = self._wanted(shard, want)
        sent = self._carrier.send(stream, shard.id, files, partial(self._session.send, stream=stream))
        problems = self._changed(root, files, sent)
        sums = {}
        for file in files:
            if (file.have or sent.doubtful) and file.index not in problems:
                try:
                    with time_accounting.at_work():
                        sums[file.index] = hash_and_close(root.open_file(file.entry.path)).hex()
                except OSError as error:
                    problems[file.index] = f"cannot be read: {error.strerror}"
        self._tell_sent(shard, problems, sums, sent, stream)

    def _tell_sent(
        self, shard: Shard, problems: dict[int, str], sums: dict[int, str], sent: SendResult, stream: int = 0
    ) -> None:
        self._problems[shard.id] = problems
        with self._lock:
            self._sent.content += sent.content
            self._sent.bytes += sent.bytes
            self._context.progress.bytes_sent = self._sent.bytes
        self._session.send(Sent(shard.id, problems, sums, sent.bytes), stream)

    def _wanted(self, shard: Shard, want: Want) -> list[FileRequest]:
        found = [FileRequest(index, shard.entries[index], want.have.get(index, 0)) for index in want.indexes]
        if not all(0 <= file.have <= file.entry.size for file in found):
            raise FrameError("the destination says that it has more of a file than there is")
        return found

    @staticmethod
    def _changed(root: Root, files: list[FileRequest], sent: SendResult) -> dict[int, str]:
        """Find the files that are no longer what their entries say: what was read of them may be a mixture."""
        problems = {}
        for file in files:
            entry = file.entry
            try:
                now = root.lstat(entry.path)
            except OSError as error:
                problems[file.index] = f"cannot be read: {error.strerror}"
                continue
            if now is None:
                problems[file.index] = VANISHED
            elif identity(now) != identity(entry):
                problems[file.index] = UNSTABLE
            elif file.index in sent.problems:
                problems[file.index] = sent.problems[file.index]
        return problems


def _again_at_most(entry: Entry, problem: str) -> int:
    """Return how often a file may be sent once more; a large one that changes all the time is not worth many."""
    if problem != UNSTABLE:
        return AGAIN_AT_MOST
    return max(1, min(AGAIN_AT_MOST, IN_VAIN_AT_MOST // max(1, entry.size)))


def identity(entry: Entry) -> tuple[Any, ...]:
    """Return values that change whenever a file changes."""
    return (entry.type, entry.dev, entry.ino, entry.size, entry.mtime_ns, entry.ctime_ns)


def gather(
    entries: Iterable[Entry],
    max_entries: int = SHARD_ENTRIES,
    max_bytes: int = MAX_SHARD_BYTES,
    clock: Callable[[], float] = time.monotonic,
    max_seconds: float = MAX_SHARD_SECONDS,
    first_entries: int | None = None,
) -> Iterator[list[Entry]]:
    """Yield the entries in batches, in their order; a file of more than ``max_bytes`` is a batch of its own.

    The first one has up to ``first_entries``, by default as many as all others, each of the next twice as many.
    """
    batch: list[Entry] = []
    most = first_entries or max_entries
    size, records, since = 0, 0, clock()
    for entry in entries:
        content = entry.size if entry.type == REGULAR else 0
        if batch and (content > max_bytes or clock() - since > max_seconds):
            yield batch
            batch, size, records = [], 0, 0
        if not batch:
            since = clock()
        batch.append(entry)
        size += content
        records += len(entry.path)
        if entry.target or entry.xattrs:
            records += len(entry.target) + sum(len(key) + len(value) for key, value in entry.xattrs)
        if size >= max_bytes or records >= MAX_SHARD_RECORDS or len(batch) >= most:
            yield batch
            most = min(2 * most, max_entries)
            batch, size, records = [], 0, 0
    if batch:
        yield batch
