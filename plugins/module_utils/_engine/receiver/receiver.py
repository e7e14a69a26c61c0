# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination's end of the conversation: compare, ask, put in place, account."""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import Any, Callable, Mapping

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.disk_full import find_room, full
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome, OwnerMismatch
from ..._model.entry import REGULAR, Entry, contents_of, entry_from_stat
from ..._model.ids import IdMap
from ..._model.paths import escape
from ..._tree.dirfd import Root
from ..._tree.owners import KINDS, decide, ids_of, look_up, mismatch
from ..._tree.staging import open_staging
from ..content import bundles
from ..net.carrier import DestCarrier, FileOffer, ShardFiles
from ..net.session import WireSession
from ..wire.conversation import Said
from ..wire.frames import Frame
from ..wire.messages import Ack, Begin, End, Fetched, Hash, Raw, Ready, Scanned, Sent, Shard, Sums, Total, Want
from ..wire.summary import Summary, continue_from
from .apply import Applier
from .apply_file import ENTRY_ERRORS
from .decide import Action
from .delete import ListingScope
from .link_dest import has_content
from .offer_check import OfferCheck
from .reconcile import OpenShard, Reconciler
from .writer_pool import PIECE_BYTES, PIECE_FILES, File, WriteResult, WriterPool, processes_wanted

_CONTENTS = (Frame, Begin, Raw, End)


class OwnerBook:
    """Decides what the source's ids become here, each once, and counts the entries of those that mean somebody else.

    The source names its ids before the entries that have them. Where both hosts mean the same by all of them, nothing
    more is asked of the entries.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self._numeric_ids = bool(settings["numeric_ids"])
        self._preserve = frozenset(settings["preserve"])
        given = settings.get("owner_map") or {}
        self.ids = IdMap.of(given)  # the whole table, for the comparison
        self._settled = {kind: {pair[0] for pair in given.get(kind, ())} for kind in KINDS}
        self._differ: dict[str, dict[int, OwnerMismatch]] = {kind: {} for kind in KINDS}

    def learn(self, users: Mapping[int, str], groups: Mapping[int, str]) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Take the source's names of ids, and return the numbers among them that become others."""
        changed = self._decide("users", users), self._decide("groups", groups)
        self.ids.learn(*changed)
        return changed

    def _decide(self, kind: str, names: Mapping[int, str]) -> dict[int, int]:
        changed = {}
        for number, name in names.items():
            if number in self._settled[kind]:
                continue
            self._settled[kind].add(number)
            here = look_up(kind, number, name)
            becomes, agrees = decide(number, name, here, self._numeric_ids)
            if becomes != number:
                changed[number] = becomes
            if not agrees:
                self._differ[kind][number] = mismatch(kind, number, name, here, self._numeric_ids)
        return changed

    def count(self, entries: list[Entry]) -> None:
        """Count the entries of ids that mean somebody else here."""
        users, groups = self._differ["users"], self._differ["groups"]
        if not (users or groups):
            return
        for entry in entries:
            if entry.uid in users or entry.gid in groups or entry.xattrs:
                for kind, ids in ids_of([entry], self._preserve).items():
                    for number in ids & self._differ[kind].keys():
                        found = self._differ[kind][number]
                        found["entries"] += 1
                        found["path"] = found["path"] or escape(entry.path) or "."

    @property
    def mismatches(self) -> list[OwnerMismatch]:
        """What was found that means somebody else here."""
        return [one for kind in KINDS for _number, one in sorted(self._differ[kind].items()) if one["entries"]]


class Receiver:
    """Answers the source; ``run`` gives the whole outcome.

    ``earlier`` is what a conversation that broke off had counted: this one goes on from there.
    """

    def __init__(
        self, context: Context, session: WireSession, carrier: DestCarrier, earlier: Outcome | None = None
    ) -> None:
        self._context, self._session, self._carrier = context, session, carrier
        self._settings = context.settings
        self._outcome = Outcome(resumed=bool(context.serve.get("leftover")))
        if earlier is not None:
            continue_from(self._outcome, earlier)
        if context.staged is not None:
            self._outcome.warnings += context.staged.warnings()
        self._open: dict[int, OpenShard] = {}
        self._fetches: queue.Queue[Any] = queue.Queue()
        self._fetchers: list[threading.Thread] = []
        self._root = Root(context.top)
        self._applier = Applier(context, self._root, self._outcome)
        self._entries = Reconciler(context, self._root, self._applier)
        self._offers = OfferCheck(context.settings)
        self._writers = WriterPool(context, session.put, processes_wanted(context))
        self._owners = OwnerBook(context)
        self._pieces = 0  # of small files that other processes are making
        self._received = 0  # entries

    @property
    def counted(self) -> Outcome:
        """What is counted so far."""
        return self._outcome

    def run(self) -> Outcome:
        """Hold the conversation; raises TransferFailed."""
        time_accounting.begin()
        time_accounting.enter(time_accounting.LEAD, time_accounting.WRITE)
        try:
            with self._session.failures_told():
                self._session.start(self._on_message)
                return self._converse()
        except OSError as error:
            self._session.fail(f"the destination failed: {error}")
            raise
        finally:
            self._carrier.close()
            for _fetcher in self._fetchers:
                self._fetches.put(None)
            self._session.close()
            for fetcher in self._fetchers:
                fetcher.join()
            self._writers.close()
            self._entries.close()
            self._applier.close()
            self._root.close()

    # the reading threads

    def _on_message(self, stream: int, message: Said) -> None:
        if isinstance(message, _CONTENTS):
            self._carrier.take(stream, message)
        elif isinstance(message, Ready):
            if not self._fetchers:
                for _number in range(max(1, int(self._settings["streams"]))):
                    thread = threading.Thread(target=self._fetch, daemon=True)
                    thread.start()
                    self._fetchers.append(thread)
            self._fetches.put(message.id)
        else:
            self._session.put(message)

    def _fetch(self) -> None:
        while True:
            shard = self._fetches.get()
            if shard is None:
                return
            try:
                self._carrier.fetch(shard)
                self._session.send(Fetched(shard))
            except Exception as error:
                self._session.put(error)
                return

    # the leading thread

    def _converse(self) -> Outcome:
        self._context.progress.phase = "reading" if self._context.settings["check"] else "transfer"
        actions: dict[type, Callable[[Any], None]] = {
            WriteResult: self._written,
            Shard: self._shard,
            Sums: self._sums,
            Sent: self._sent,
            Total: self._total,
        }
        while True:
            event = self._session.next_event(waiting=time_accounting.WRITE if self._pieces else time_accounting.ANSWER)
            if isinstance(event, Scanned):
                return self._finish(event)
            actions[type(event)](event)

    def _finish(self, totals: Scanned) -> Outcome:
        if totals.files != self._received:
            raise TransferFailed(
                f"the source scanned {totals.files} entries and the destination saw {self._received}: "
                "something was lost. Run the transfer again; what is in place stays"
            )
        self._writers.close()  # what they took of the processor counts from now on
        self._context.progress.phase = "finishing"
        self._context.progress.bytes_total = totals.size
        started = time.monotonic()
        self._entries.finish(totals.clean, totals.files <= 1)
        self._outcome.phases["finish"] = round(time.monotonic() - started, 3)
        self._outcome.stderr = self._carrier.said
        self._outcome.cmd = {"dest": list(self._carrier.argv)} if self._carrier.argv else {}
        self._outcome.resumed = self._outcome.resumed or self._carrier.resumed
        self._outcome.spent = {"dest": time_accounting.account()}
        self._outcome.owners, self._outcome.owner_mismatches = self._owners.ids.as_table(), self._owners.mismatches
        self._session.send(Summary(self._outcome))
        account: Summary = self._session.next_event()
        self._session.goodbye()
        return account.outcome

    def _total(self, total: Total) -> None:
        progress = self._context.progress
        progress.files_total, progress.bytes_total, progress.bytes_apparent = total.files, total.size, total.apparent

    # comparing

    def _shard(self, shard: Shard) -> None:
        self._offers.check(shard)
        self._learn_owners(shard)
        work = self._open[shard.id] = OpenShard(shard)
        scopes = dict.fromkeys(shard.tagged, ListingScope.TAGS)
        scopes.update(dict.fromkeys(shard.opaque, ListingScope.NOTHING))
        if shard.attempt == 1:
            self._received += len(shard.entries)
        else:
            self._context.progress.moved(-contents_of(shard.entries))
        for index, entry in enumerate(shard.entries):
            try:
                self._entries.reconcile(work, index, entry, scopes.get(index, ListingScope.ALL))
            except ENTRY_ERRORS as error:
                self._applier.failed(entry.path, error)
                work.accounted += 1
        progress = self._context.progress
        progress.files_total = max(progress.files_total, self._received)
        if work.hashed:
            self._session.send(Hash(shard.id, work.hashed))
        else:
            self._ask(work)

    def _learn_owners(self, shard: Shard) -> None:
        """Decide on ids that were not met before, and count those that mean somebody else here."""
        users, groups = self._owners.learn(shard.users, shard.groups)
        if users or groups:
            self._applier.ids.learn(users, groups)
            self._writers.learn_ids(users, groups)
        if shard.attempt == 1:
            self._owners.count(shard.entries)

    def _sums(self, message: Sums) -> None:
        work = self._open[message.id]
        for index in work.hashed:
            try:
                self._entries.compare(work, index, message.sums.get(index))
            except ENTRY_ERRORS as error:
                self._applier.failed(work.shard.entries[index].path, error)
                work.accounted += 1
        self._ask(work)

    def _ask(self, work: OpenShard) -> None:
        """Ask for the contents that are needed, or acknowledge the shard where none is."""
        self._context.progress.bytes_done += work.matched
        if not work.wanted:
            self._acknowledge(work)
            return
        entries = work.shard.entries
        files = []
        for index in work.wanted:
            action = work.actions[index]
            old = action.found
            found = old if old is not None and old.type == REGULAR else None
            if found is not None or not bundles.fits(entries[index]):  # no old version helps a new small file
                files.append(FileOffer(index, entries[index], found, "owner" not in action.verdict.fields))
        self._carrier.offer(work.shard, files, self._entries.link_dest.bases)
        have = self._carrier.expect(work.shard.id, [(index, entries[index]) for index in work.wanted])
        ranges = self._carrier.ranges(work.shard.id)
        for index, needed in ranges.items():
            content = entries[index].content
            matched = content - min(content, sum(end - start for start, end in needed))
            work.matched += matched
            self._context.progress.bytes_done += matched
        message = Want(work.shard.id, work.wanted, have, ranges)
        self._carrier.ask(message, self._session.send)

    # putting in place

    def _sent(self, sent: Sent) -> None:
        work = self._open.pop(sent.id)
        self._context.progress.bytes_sent += sent.size
        arrived = self._carrier.collect(work.shard.id)
        small: list[tuple[int, memoryview]] = []
        try:
            for index in work.wanted:
                if index in sent.problems:
                    work.again[index] = sent.problems[index]
                    continue
                content = arrived.content(index)
                if content is not None:
                    small.append((index, content))
                    continue
                reason = self._put(work, index, arrived, sent.sums.get(index))
                if reason:
                    work.again[index] = reason
                else:
                    work.accounted += 1
            self._write_all(work, small)
        finally:
            small.clear()
            arrived.close()
        self._outcome.bytes_matched += arrived.matched
        self._outcome.bytes_from_basis += arrived.from_basis
        self._outcome.bytes_shared += arrived.shared
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
            action = work.actions[index]
            if action.is_blocked:
                self._write(entry, action, content)
                work.accounted += 1
                continue
            folder = entry.path.rpartition(b"/")[0]
            if folder != last:
                last = folder
                if self._applier.has_made(folder):
                    made.append(folder)
            piece.append((index, entry, action.found, content))
            size += len(content)
        if piece:
            self._write_piece(work, piece, made)

    def _write_piece(self, work: OpenShard, piece: list[File], made: list[bytes]) -> None:
        if self._writers.give(work, piece, made):
            work.pieces += 1
            self._pieces += 1
            return
        for index, entry, _found, content in piece:
            self._write(entry, work.actions[index], content)
            work.accounted += 1

    def _written(self, told: WriteResult) -> None:
        """Count what another process has made."""
        work = told.key
        time_accounting.credit(time_accounting.WRITE, told.processor / self._writers.count)
        for path, reason in told.errors:
            self._outcome.error(path, reason)
        for what, (count, path) in told.withheld.items():
            self._outcome.withhold(what, path, count)
        for index in told.indexes:
            entry = work.shard.entries[index]
            if index in told.failures:
                errno, reason = told.failures[index]
                self._applier.failed(entry.path, reason if errno is None else OSError(errno, reason))
            else:
                self._entries.mark_done(entry, work.actions[index])
        work.accounted += len(told.indexes)
        work.pieces -= 1
        self._pieces -= 1
        self._acknowledge(work)

    def _put(self, work: OpenShard, index: int, arrived: ShardFiles, expected_sum: str | None) -> str:
        """Check one file and put it in place; gives why it must come again, or nothing."""
        entry, action = work.shard.entries[index], work.actions[index]
        try:
            folder_fd, name = arrived.locate(index)
            status = arrived.status(index, folder_fd, name)
        except OSError:
            self._refuse_full(entry, entry.content)
            return f"it did not arrive{': ' + arrived.trouble if arrived.trouble else ''}"
        if (status.st_mode & 0o170000) != 0o100000 or status.st_size != entry.size:
            self._refuse_full(entry, min(entry.content, entry.size - status.st_size))
            return f"{status.st_size} of {entry.size} bytes arrived{': ' + arrived.trouble if arrived.trouble else ''}"
        if arrived.owners and (status.st_uid not in arrived.owners or status.st_nlink != 1):
            return "what arrived is not a file that this transfer made"
        try:
            if expected_sum is not None:
                with Root(folder_fd) as folder:
                    is_right = has_content(folder, name, entry_from_stat(entry.path, status), expected_sum)
                if not is_right:
                    os.unlink(name, dir_fd=folder_fd)
                    return "what arrived has another hash than the source's file"
            if action.is_blocked:
                self._entries.defer_file(entry, action, folder_fd, name)
                return ""
            self._applier.finish_file(entry, action.found, folder_fd, name, status)
        except ENTRY_ERRORS as error:
            self._applier.failed(entry.path, error)
            return ""
        self._entries.mark_done(entry, action)
        return ""

    def _write(self, entry: Entry, action: Action, content: memoryview) -> None:
        try:
            if action.is_blocked:
                self._entries.defer_content(entry, action, content)
                return
            self._applier.write_file(entry, action.found, content)
        except ENTRY_ERRORS as error:
            self._applier.failed(entry.path, error)
            return
        self._entries.mark_done(entry, action)

    def _refuse_full(self, entry: Entry, missing: int) -> None:
        """End the transfer where a file is short because there is no room for the rest: sending it again is vain."""
        room = find_room(open_staging(self._context).fd)
        if missing > room.free or room.free_inodes == 0:
            raise full(self._context.root, f"{missing} bytes of {escape(entry.path)} found no room")

    def _acknowledge(self, work: OpenShard) -> None:
        """Tell the source that a shard is done, if it is: other processes may still work on some of its files."""
        if work.pieces:
            return
        again = work.again
        if work.accounted + len(again) != len(work.shard.entries):
            raise TransferFailed(
                f"of a shard's {len(work.shard.entries)} entries {work.accounted + len(again)} are accounted for: "
                "this is a defect, please report it"
            )
        self._open.pop(work.shard.id, None)
        for index in again:
            self._offers.ask_again(work.shard.entries[index], work.shard.attempt)
        self._outcome.bytes_matched += work.matched
        self._context.progress.files_done += work.accounted
        self._session.send(Ack(work.shard.id, work.accounted, again, work.matched))
