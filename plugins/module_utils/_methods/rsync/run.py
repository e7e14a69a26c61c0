# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of rsync to its end, over as many connections as that takes."""

from __future__ import annotations

import itertools
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import Callable, cast

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._core.outcome import MAX_ERRORS
from ..._core.settings import Settings
from ..._engine.net.ticket_file import Tickets
from ..._model.ticket import PAUSED, paused_too_long
from ..._tree.held_root import program_path
from ..._tree.staging import open_staging
from . import child as rsync_child
from .argv import Far, RsyncRun, build_argv, compares_contents
from .failure import COMPLETE, PARTIAL, PROTOCOL, VANISHED, RsyncFailure, classify
from .leftover import adopt
from .output import ErrorReader, Item, OutputReader, RsyncPathError
from .server_command import older_paths
from .tally import Tally
from .watch import StallWatch, Vitals

PATIENCE = 300  # seconds without progress, where the plan sets no limit
_GONE = (
    "the transfer's job on the other host is gone: it was killed, or that host was restarted. What has arrived is "
    "kept: run the task again to resume"
)
_LOST = (
    "the connection to the other host was lost, and nothing arrived for more than {} seconds (timeout), though it was "
    "tried again. Fix the network, and run the task again to resume. The last try said: {}"
)
_STALLED = (
    "rsync made no progress for {} seconds (timeout): its processes waited for each other and moved nothing, so they "
    "were ended. {}"
)
_TRIPPED = "rsync broke its own protocol. {}"
_HARD_LINK = (
    "Some versions of rsync do that where the destination has a directory with contents in the place of a file with "
    "hard links, as {} may be. Move that directory away, or use method stream"
)
_STALLED_SOMEWHERE = "What has arrived is kept. Run the task again, with a longer timeout or with method stream"
# The disk or the quota is full; an extended attribute may find no room in a file system that has room for files.
_NO_ROOM = re.compile(r"^(?!.*xattr).*(?:No space left on device|Disk quota exceeded)")
_STAGED = r"(?:^|/)(?:\.longhaul-[0-9a-f]{16}/tmp|proc/self/fd/\d+)/"  # as either end names it
_TEMPORARY = re.compile(_STAGED + r"(?P<name>.+)\.\w{6}$", re.DOTALL)  # see leftover
_QUOTED_TEMPORARY = re.compile(r'"[^"]*?' + _STAGED + r'(?P<name>[^"]+)\.\w{6}"')
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds before another connection is made


@dataclass(frozen=True)
class RsyncPeer:
    """Connection to the peer's rsync."""

    far: Far
    stdin: bytes = b""  # the daemon's password
    far_roots: tuple[str, ...] = ()  # the peer's root as messages name it: its path, and that in a module
    explain: Callable[[str, int], str] = lambda _stderr, _code: ""  # what the connection's own messages mean
    vitals: Callable[[], Vitals | None] = lambda: None  # what the peer's rsync has done; None: it cannot be asked
    keeps_lists: bool = True  # the peer has the names that it sends in lists of its own, as far as it can
    gone: str = ""  # pattern of messages that say that the peer's job is no more: nothing to connect to again


@dataclass
class RsyncResult:
    """Outcome of one run of rsync."""

    code: int = 0
    statistics: dict[str, int] = field(default_factory=dict)
    errors: list[RsyncPathError] = field(default_factory=list)  # the first ones
    errors_total: int = 0
    no_room: str = ""  # what was said of a path for which the destination had no room, with the path
    in_the_way: int = 0  # of errors_total: directories that only a run with --delete may replace
    unstable: int = 0  # of errors_total: files that changed each time rsync sent them
    deletes: bool = False  # whether it was run with --delete
    vanished: int = 0
    skipped_special: int = 0
    deletes_skipped: bool = False
    failure: RsyncFailure | None = None
    output: str = ""  # the last lines of messages
    connections: int = 1
    is_trapped: bool = False  # it waited for ever, or gave up, at a directory in the way of a file with hard links

    @property
    def obstacles(self) -> dict[str, RsyncPathError]:
        """The directories in the way, by path: rsync names one for each name of a file."""
        return {error.path: error for error in self.errors if error.kind == "in the way"}

    def add(self, obstacles: list[RsyncPathError]) -> None:
        """Take over what runs before this one met, which left it out."""
        self.errors = [*obstacles, *self.errors][:MAX_ERRORS]
        self.errors_total += len(obstacles)
        self.in_the_way += len(obstacles)

    @property
    def complete(self) -> bool:
        """Whether everything was seen and nothing went wrong with any path."""
        return self.failure is None and self.code in (COMPLETE, VANISHED) and not self.errors_total

    @property
    def complete_but_for_obstacles(self) -> bool:
        """Whether all that went wrong is what a run with --delete will put right."""
        return self.failure is None and self.errors_total == self.in_the_way


class RsyncRunner:
    """Makes runs of rsync for one context over one line, and counts them in one tally."""

    def __init__(self, context: Context, line: RsyncPeer, tally: Tally) -> None:
        self.context, self.line, self.tally = context, line, tally
        self._numbers = itertools.count()
        self._prefix = f"@{context.settings['id'][:8]} "
        self._root = os.fsdecode(context.root)
        self._held = program_path(context.root, context.root_fd)
        roots = {root.rstrip("/") + "/" for root in (self._root, os.fsdecode(self._held), *line.far_roots) if root}
        self._roots = sorted(roots, key=len, reverse=True)

    def argv(self, run: RsyncRun) -> list[str]:
        """Return the argv of a run as a person reads it: it is started with open folders in place of their paths."""
        return build_argv(self.context.settings, self.context.side, self.context.root, self.line.far, run)

    def _held_argv(self, run: RsyncRun) -> list[str]:
        settings = self.context.settings
        if self.context.side == "dest":
            older = [os.fsdecode(path) for path in older_paths(self.context)]
            settings = cast(Settings, {**settings, "link_dest": older})
        return build_argv(settings, self.context.side, self._held, self.line.far, run)

    def _shown(self, text: str) -> str:
        """Return what rsync said with the root as the user knows it."""
        return text.replace(os.fsdecode(self._held), self._root)

    def run(self, run: RsyncRun, on_item: Callable[[Item], None] | None = None) -> RsyncResult:
        """Run until rsync has come to its own end, connecting again while there is progress.

        A broken connection is made again as long as something happened within the ``timeout`` of the plan (seconds).
        Where nothing ever happened, the first failure counts: it is a mistake, not an accident.
        """
        on_item = on_item or self.tally.item
        obstacles: list[RsyncPathError] = []
        limit = self.context.settings["timeout"] or PATIENCE
        pause, known_activity = FIRST_PAUSE, self.tally.activity
        for connections in itertools.count(1):
            result = self._once(run, on_item)
            result.connections = connections
            found = result.obstacles if result.is_trapped and len(obstacles) < MAX_ERRORS else {}
            stuck = {path: error for path, error in found.items() if path not in run.left_out}
            if stuck and not self.context.stop.is_set():
                obstacles += stuck.values()
                run = replace(run, left_out=(*run.left_out, *stuck))
                self.context.log(f"rsync waits for {len(stuck)} files that have a directory in the way: again without")
                self._adopt(run)
                continue
            result.add(obstacles)
            failure = result.failure
            if failure is None or not failure.transient or self.context.stop.is_set():
                return result
            if self.tally.activity == 0:
                return result
            if time.monotonic() - self.tally.active_at > limit:
                result.failure = RsyncFailure(_LOST.format(limit, failure.text), True)
                return result
            if self.tally.activity != known_activity:
                pause, known_activity = FIRST_PAUSE, self.tally.activity
            self.context.log(f"the connection was lost and is made again: {failure.text}")
            if self.context.stop.wait(pause):
                return result
            self._adopt(run)
            pause = min(LONGEST_PAUSE, pause * 2)
        raise AssertionError("unreachable")

    def _adopt(self, run: RsyncRun) -> None:
        """Let the next run use the partial files of one that was interrupted, where they are here."""
        if self.context.side == "dest" and run.shares == 1 and not run.dry:
            adopt(open_staging(self.context))

    def _once(self, run: RsyncRun, on_item: Callable[[Item], None]) -> RsyncResult:
        number, result = next(self._numbers), RsyncResult(deletes=run.delete)
        output = OutputReader(
            self._prefix,
            on_item,
            lambda transferred, done, total: self.tally.moved(number, transferred, done, total),
        )
        messages = ErrorReader(lambda error: self._path_error(result, error))
        stop = self.context.stop
        argv = self._held_argv(RsyncRun(**dict(vars(run), item_prefix=self._prefix)))
        keeps = [fd for fd in (self.context.root_fd, *(self.context.older_fds or ())) if fd >= 0]
        limit = self.context.settings["timeout"] or PATIENCE
        may_hash = compares_contents(self.context.settings)
        tickets = Tickets(self.context.folder, self.context.log)
        watch = StallWatch(
            limit, self.line.vitals, lambda: bool(self._trap(result)), may_hash, lambda: tickets.read().paused
        )
        try:
            result.code = rsync_child.run(
                argv, output.feed, messages.feed, stdin=self.line.stdin, stop=stop, watch=watch, keeps=keeps
            )
        except OSError as error:
            raise TransferFailed(
                f"rsync cannot be started on this host: {error.strerror}. Install it, or choose another method"
            ) from error
        result.statistics, result.deletes_skipped = output.statistics, output.deletes_skipped
        result.skipped_special = output.skipped_special
        result.output = self._shown("\n".join([*output.remarks, *messages.tail]))
        result.is_trapped = bool(self._trap(result)) and (watch.has_stalled or result.code == PROTOCOL)
        if watch.has_stalled:
            result.failure = RsyncFailure(_STALLED.format(limit, self._trap(result) or _STALLED_SOMEWHERE), False)
        elif result.is_trapped:
            result.failure = RsyncFailure(_TRIPPED.format(self._trap(result)), False)
        else:
            result.failure = self._failure(result, self._shown("\n".join([*output.remarks, *messages.general])))
        if result.failure is None:
            self._completed(number, result.statistics, run.dry)
        else:
            self.tally.broken(number)
        return result

    def _completed(self, number: int, statistics: dict[str, int], dry: bool) -> None:
        settings = self.context.settings
        if dry:
            self.tally.predicted(statistics)
            return
        packed = None
        if settings["compress"].get("algorithm"):
            moved = "Total bytes sent" if self.context.side == "source" else "Total bytes received"
            packed = max(0, statistics.get(moved, 0) - statistics.get("File list size", 0))
        self.tally.completed(number, statistics, packed)

    def _failure(self, result: RsyncResult, messages: str) -> RsyncFailure | None:
        if self.context.stop.is_set():
            return RsyncFailure("the transfer was told to stop. What has arrived is kept: run it again to go on", False)
        # Disk full and the like are said of a path, but end the run: then the messages about paths count too.
        fatal = result.code not in (COMPLETE, PARTIAL, VANISHED)
        failure = classify(result.code, result.output if fatal else f"{messages}\n{result.no_room}")
        if failure is None:
            if result.code == PARTIAL and not result.errors_total and not result.deletes_skipped:
                said = messages.strip() or "it did not say which"
                return RsyncFailure(f"rsync reports that some entries could not be transferred: {said}", False)
            return None
        if PAUSED in result.output:  # as the peer's job said
            return RsyncFailure(paused_too_long(self.context.settings["timeout"]), False)
        if self.tally.activity and self.line.gone and re.search(self.line.gone, result.output):
            return RsyncFailure(_GONE, False)
        explained = self.line.explain(result.output, result.code)
        return RsyncFailure(explained, failure.transient) if explained else failure

    def _trap(self, result: RsyncResult) -> str:
        """Return what a run has met that rsync is known to go wrong with; empty if it has not."""
        keeps_links = "hardlinks" in self.context.settings["preserve"]
        place = next((error.path for error in result.errors if keeps_links and error.kind == "in the way"), "")
        return _HARD_LINK.format(f'"{place}"') if place else ""

    def _path_error(self, result: RsyncResult, error: RsyncPathError) -> None:
        if error.kind == "vanished":
            result.vanished += 1
            return
        if error.kind == "in the way" and self._named(error.path) in result.obstacles:
            return
        result.errors_total += 1
        result.unstable += error.kind == "unstable"
        result.in_the_way += error.kind == "in the way"
        if _NO_ROOM.match(error.reason):  # rsync tries all other files to no purpose, and calls that a partial success
            result.no_room = f'"{error.path}": {error.reason}'
        if len(result.errors) < MAX_ERRORS:
            result.errors.append(RsyncPathError(error.kind, self._named(error.path), self._named_in(error.reason)))

    def _named(self, path: str) -> str:
        """Return a path as the user knows it: below the root; for a temporary file, the name of its final file."""
        below = next((path[len(root) :] for root in self._roots if f"{path}/".startswith(root)), path)
        if below in ("", "./"):
            return "."
        temporary = _TEMPORARY.search(below)
        return temporary.group("name") if temporary else below

    def _named_in(self, reason: str) -> str:
        """Return a reason with the names that it quotes as ``_named`` has them."""
        reason = _QUOTED_TEMPORARY.sub(r'"\g<name>"', reason)
        for root in self._roots:
            reason = reason.replace(f'"{root}', '"').replace('""', '"."')
        return reason
