# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runs of rsync that make up one transfer, and what they did together.

- Nothing to delete: one run over the whole tree.
- ``delete``: that run first, without deleting. Only where it saw everything and failed at nothing does a second one
  delete: one unreadable directory, and nothing at all is deleted. A trial run counts deletions where a limit is set.
- ``streams``: a run for the directories, then the lists of files side by side, then the run over the whole tree, which
  has the last word on the times of directories, and on whatever the lists did not know.
- ``link_dest_exclude``: the runs before leave these files out, and the run over the whole tree links nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Callable, Iterable, Iterator, cast

from ..._core.context import Context
from ..._core.counted import counted, entries_text
from ..._core.errors import TransferFailed
from ..._core.mounts import mounts_stay
from ..._core.outcome import Outcome
from ..._core.settings import Settings
from ..._engine.sender.leftovers import staging_left_out
from ..._model.entry import WHOLE_BYTES
from ..._model.paths import unescape
from ..._tree.dirfd import Root
from ..._tree.holes import count_holes
from .argv import FAR_LIST, RsyncRun, pattern_of
from .output import IN_THE_WAY, Item, RsyncPathError
from .run import RsyncPeer, RsyncResult, RsyncRunner
from .shards import Lists, SourceEntry, divide, for_files_from, list_source
from .tally import Tally

STOPPED = "the transfer was told to stop while the source was listed: run it again to go on"
_FAR_LIST_SECONDS = 60  # for a peer that still adds up its source when rsync has ended
_NEW_ROOT = ".d..t......"  # as a run says it of a root that was made for it
DivideSource = Callable[[], Lists]


def transfer(context: Context, line: RsyncPeer, divide_far: DivideSource | None = None) -> Outcome:
    """Do the whole transfer from the driving end, and account for it.

    ``divide_far`` has a source on the peer divided there; without it a source there cannot be divided.
    Raises TransferFailed if it cannot begin; what goes wrong later is in the outcome.
    """
    if context.side == "source":
        told = {"time_units": context.peer.get("time_units", {}), "mounts": context.peer.get("mounts", [])}
        context.settings = cast(Settings, {**context.settings, **told})
    return _Transfer(context, line, divide_far).run()


class _Transfer:
    def __init__(self, context: Context, line: RsyncPeer, divide_far: DivideSource | None) -> None:
        self.context, self.settings = context, context.settings
        self.outcome = Outcome(
            owners=dict(self.settings.get("owner_map") or {}), time_units=dict(self.settings["time_units"])
        )
        self._here = context.side == "source"
        holes = self._holes_of if self._here else lambda _item: 0
        self.tally = Tally(self.outcome, context.progress, self.settings["changes_max"], holes)
        self.runner = RsyncRunner(context, line, self.tally)
        self._divide_far = None if self._here else divide_far
        self._folder = ""  # for lists of names
        self._excluded = ""  # the list of those that are not linked; empty if there are none
        self._deletions: set[int] = set()  # that a trial has named, as hashes of their paths

    def _tell_mounts(self) -> None:
        """Note the mount points from which nothing is deleted, and name those that the source is known not to have."""
        points = self.settings["mounts"]
        if not points or not self.settings["delete"]:
            return
        self.outcome.kept_mounts = list(points)
        if self._here:
            stay = [point for point in points if not os.path.lexists(os.path.join(self.context.root, unescape(point)))]
            self.outcome.warnings += [mounts_stay(stay)] if stay else []

    def run(self) -> Outcome:
        self._tell_mounts()
        self._folder = tempfile.mkdtemp(prefix="lists-", dir=self.context.folder)
        try:
            self._passes()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        return self.outcome

    def _passes(self) -> None:
        whole = self._whole()
        self._excluded = self._exclude()
        self.outcome.streams = 1
        self.outcome.cmd["drive"] = self.runner.argv(whole)
        if self.settings["check"]:
            self._predict(whole)
            return
        divided = False
        if self.settings["streams"] > 1 and self.settings["only"] is None:
            with self._phase("divide"):
                lists = self._divide()
            if lists is not None and lists.shards:
                divided = True
                if not self._shards(lists):
                    return
        with self._phase("transfer"), self._total_in_background(not divided):
            if self._excluded:
                if not divided:
                    result = self.runner.run(replace(whole, exclude_from=self._excluded))
                    divided = result.failure is None
                    self._resumed(result)
                whole = replace(whole, links=False)
            on_item = self._last_word if divided else self.tally.item
            result = self.runner.run(replace(whole, again=divided), on_item)
        self.tally.totals(result.statistics)
        if self.settings["delete"] and self.settings["only"] is None:
            self._delete_after(result)
        else:
            self._conclude(result)
        self._finish_progress()

    def _whole(self) -> RsyncRun:
        if self.settings["only"] is None:
            return RsyncRun()
        if (
            self._divide_far is not None and self.runner.line.keeps_lists
        ):  # it sends what it has in a list of its own, whatever we would say
            return RsyncRun(files_from=f":{FAR_LIST}/only")
        path = os.path.join(self._folder, "only")
        with open(path, "wb") as stream:
            stream.write(for_files_from(os.fsencode(self.settings["only"])))
        return RsyncRun(files_from=path)

    def _exclude(self) -> str:
        """List what must not be linked; return the path of the list, and an empty one if nothing is."""
        paths = [os.fsdecode(unescape(path)) for path in self.settings["link_dest_exclude"]]
        if not paths or not self.settings["link_dest"] or self.settings["check"]:
            return ""
        path = os.path.join(self._folder, "excluded")
        with open(path, "wb") as stream:
            stream.writelines(os.fsencode(f"/{pattern_of(path)}\0") for path in paths)
        return path

    def _predict(self, whole: RsyncRun) -> None:
        """Check mode: one trial run that says what all the passes would do."""
        delete = bool(self.settings["delete"]) and self.settings["only"] is None
        with self._phase("predict"), self._total_in_background(True):
            result = self.runner.run(replace(whole, dry=True, delete=delete), self._predicted)
        self.tally.totals(result.statistics)
        if "sparse" in self.settings["preserve"]:
            self.outcome.bytes_sent = self.outcome.bytes_content
        self._conclude(result)
        if delete and result.failure is None:
            self.outcome.failure = self._too_many(self.outcome.files_deleted, result)
            if result.deletes_skipped:
                self._nothing_deleted()

    def _predicted(self, item: Item) -> None:
        """Count what would be done. A root that is missing is made before rsync begins: it only gets its attributes."""
        if item.kind == "deleted" and self._is_counted(item):
            return
        if item.path or item.kind != "created":
            self.tally.item(item)
        elif "times" in self.settings["preserve"]:
            self.tally.item(item._replace(flags=_NEW_ROOT))

    # deletions

    def _is_counted(self, item: Item) -> bool:
        """Return whether a trial named a deletion before: it does so for each name of a file in whose place it is."""
        path = hash(item.path)
        is_counted = path in self._deletions
        self._deletions.add(path)
        return is_counted

    def _delete_after(self, first: RsyncResult) -> None:
        if not first.complete_but_for_obstacles or first.deletes_skipped:
            self._conclude(first)
            if first.failure is None:
                self._nothing_deleted()
            return
        links = not self._excluded
        run = RsyncRun(delete=True, max_delete=self.settings["max_delete"], again=True, settled=True, links=links)
        if self.settings["max_delete"] is not None or _is_empty(first):
            with self._phase("count_deletions"):
                refused = self._refused_deletions(replace(run, dry=True, max_delete=None), first)
            if refused:
                self._conclude(first)
                self.outcome.failure = self.outcome.failure or refused
                return
        with self._phase("delete"):
            second = self.runner.run(run, self._last_word)
        self.tally.totals(second.statistics)
        self._conclude(second, vanished=first.vanished)
        if second.deletes_skipped:
            self._nothing_deleted()

    def _refused_deletions(self, trial: RsyncRun, first: RsyncResult) -> str:
        self._deletions.clear()

        def count(item: Item) -> None:
            if item.kind == "deleted":
                self._is_counted(item)

        silent = Tally(Outcome(), type(self.context.progress)(), 0)
        result = RsyncRunner(self.context, self.runner.line, silent).run(trial, count)
        if result.failure is not None:
            return result.failure.text
        if not result.complete_but_for_obstacles:
            return "the deletions could not be counted, so nothing was deleted:\n" + result.output
        return self._too_many(len(self._deletions), first)

    def _too_many(self, deletions: int, result: RsyncResult) -> str:
        """Return why so many deletions are not made; empty if they may be."""
        limit = self.settings["max_delete"]
        if limit is None and _is_empty(result) and deletions:
            return (
                f"the source is empty, and delete would remove {entries_text(deletions)} at the destination: a source "
                "that is not mounted looks the same. Nothing was deleted. Where it is meant, set max_delete to "
                f"{deletions} or more"
            )
        if limit is not None and deletions > limit:
            return (
                f"{entries_text(deletions)} would be deleted at the destination, and max_delete is {limit}: none was. "
                f"Look at them in check mode with diff; if they may go, set max_delete to {deletions} or more"
            )
        return ""

    def _nothing_deleted(self) -> None:
        self.outcome.warnings.append(
            "nothing was deleted at the destination, because not all of the source could be read or transferred: what "
            "could not be read would have been deleted too. Fix the errors and run it again"
        )

    # shards

    def _divide(self) -> Lists | None:
        if not self._here and self._divide_far is None:
            self.outcome.warnings.append(
                "streams: one was used. A source at a daemon's end cannot be divided: connect: push can, and so can "
                "method rsync"
            )
            return None
        left_out: list[bytes] = []
        try:
            if self._divide_far is not None:
                lists = self._divide_far()
            else:
                found = self._until_stopped(
                    list_source(self.context.root, self.settings, left_out.append, self.context.top)
                )
                lists = divide(found, self.settings["streams"], self._folder)
        except ValueError as error:
            self.outcome.warnings.append(f"streams: one was used, because the tree could not be divided: {error}")
            return None
        self.outcome.warnings += staging_left_out(left_out, self.settings["id"])
        self.tally.listed(lists.files, lists.bytes, lists.holes)
        return lists

    def _until_stopped(self, entries: Iterable[SourceEntry]) -> Iterator[SourceEntry]:
        for entry in entries:
            if self.context.stop.is_set():
                raise TransferFailed(STOPPED)
            yield entry

    def _shards(self, lists: Lists) -> bool:
        """Make the directories, then run the lists side by side; False if that failed as a whole."""
        with self._phase("directories"):
            first = self.runner.run(RsyncRun(files_from=lists.directories, directories_only=True))
        if first.failure is not None:
            self._conclude(first)
            return False
        self.outcome.streams = shares = len(lists.shards)
        files = counted(lists.files, "file", "files")
        self.context.log(f"{counted(shares, 'run', 'runs')} of rsync for {files}, {lists.bytes} bytes")
        with self._phase("shards"), ThreadPoolExecutor(shares) as pool:
            runs = [RsyncRun(files_from=path, shares=shares, exclude_from=self._excluded) for path in lists.shards]
            results = list(pool.map(self.runner.run, runs))
        failed = next((result for result in results if result.failure is not None), None)
        if failed is not None:
            self._conclude(failed)
            return False
        self._resumed(*results)
        return True  # what went wrong with single paths, the run over the whole tree tries again and reports

    def _last_word(self, item: Item) -> None:
        """A run after others only repairs the times of directories that those have written into."""
        self.tally.item(item, ignore_directory_times=True)

    def _holes_of(self, item: Item) -> int:
        """Return how many bytes of a file of the source are holes."""
        if item.size <= WHOLE_BYTES:
            return 0
        with Root(self.context.top) as root:
            try:
                entry = root.lstat(item.path)
            except OSError:
                return 0
            return 0 if entry is None else entry.size - count_holes(root, entry).content

    # the outcome

    def _conclude(self, result: RsyncResult, vanished: int = 0) -> None:
        for error in result.errors:
            self.outcome.error(error.path, self._reason(error, result))
        self.outcome.errors_total += result.errors_total - len(result.errors)
        self.outcome.errors_unstable += result.unstable
        self.outcome.vanished = max(vanished, result.vanished)
        self.outcome.stderr = result.output
        if result.failure is not None:
            self.outcome.failure = result.failure.text
        if result.skipped_special and "devices" in self.settings["preserve"]:
            self.outcome.warnings.append(
                f"{result.skipped_special} devices, FIFOs or sockets were left out: the peer may not make them"
            )
        self._resumed(result)

    def _reason(self, error: RsyncPathError, result: RsyncResult) -> str:
        """Return what went wrong with a path, and for a directory in the way what to do about it."""
        if error.kind != "in the way":
            return error.reason
        if self.settings["only"] is not None:
            return f"{IN_THE_WAY}. Move the directory away"
        if not self.settings["delete"]:
            return f"{IN_THE_WAY}. Set delete: true, or move the directory away"
        if not result.deletes or result.deletes_skipped:
            return f"{IN_THE_WAY}, and nothing is deleted"
        return f"{IN_THE_WAY}, and the filter rules protect what is in it. Move that away, or change the rules"

    def _resumed(self, *results: RsyncResult) -> None:
        leftover = self.context.serve.get("leftover") or self.context.peer.get("leftover")
        again = any(result.connections > 1 for result in results)
        self.outcome.resumed = self.outcome.resumed or again or bool(leftover and self.outcome.bytes_matched)

    def _finish_progress(self) -> None:
        if not self.outcome.failure:
            progress = self.context.progress
            progress.bytes_total = progress.bytes_done = max(progress.bytes_done, self.outcome.bytes_total)
            progress.files_total = progress.files_done = self.outcome.files_total

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.context.progress.phase = name
        begun = time.monotonic()
        try:
            yield
        finally:
            self.outcome.phases[name] = round(time.monotonic() - begun, 3)

    @contextmanager
    def _total_in_background(self, wanted: bool) -> Iterator[None]:
        """Add up the source while rsync is at work: rsync knows its total only at the end, and nothing of holes.

        A source at the peer is added up there, if it can be asked.
        """
        over = threading.Event()

        left_out: list[bytes] = []

        def add_up() -> None:
            files = size = holes = 0
            try:
                if self._divide_far is not None:
                    lists = self._divide_far()
                    self.tally.listed(lists.files, lists.bytes, lists.holes)
                    return
                for entry in list_source(self.context.root, self.settings, left_out.append, self.context.top):
                    if over.is_set() or self.context.stop.is_set():
                        return
                    files, size, holes = files + 1, size + entry.size, holes + entry.holes
            except (ValueError, TransferFailed):  # a rule that only rsync can follow: no forecast then
                return
            self.tally.listed(files, size, holes)

        thread = threading.Thread(target=add_up, daemon=True, name="total")
        if wanted and (self._here or (self._divide_far is not None and self.settings["only"] is None)):
            thread.start()
        try:
            yield
            if thread.ident is not None:
                thread.join(None if self._here else _FAR_LIST_SECONDS)
        finally:
            over.set()
            if thread.ident is not None and self._here:
                thread.join()
            self.outcome.warnings += staging_left_out(left_out, self.settings["id"])


def _is_empty(result: RsyncResult) -> bool:
    return result.statistics.get("Number of files", 0) <= 1  # the root alone
