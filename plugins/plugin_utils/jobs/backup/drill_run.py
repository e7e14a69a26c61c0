# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of one restore drill, without the user's validation, which is a hook.

make       make a scratch folder, and remove what earlier drills of this job left
choose     the repository host chooses a share of a snapshot, as large as there is room
transfer   restore it
compare    compare it with the manifest
load       load dumps of databases in it into servers of their own, which jobs there have
remove     end these, and remove the scratch folders
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, optional
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.drill import PREFIX
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import DATA

from ...common.host_text import one_line
from ...common.units import format_bytes
from ...fleet.scheduler import Call, Workflow
from ...hosts.host_runner import HostFailed, HostRunner
from ...hosts.pair import PairHosts
from ..workflow import JobStopped, Transfer, transfer_to_end
from .consistent import HolderEnd, end_holders, start_holder, tell_failure
from .drill import (
    SOCKETS,
    Chosen,
    DrillRecord,
    DrillSettings,
    DumpsToLoad,
    find_damage,
    parse_choice,
    parse_scratch,
)
from .jobs import Run, folder_of, line_options

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import (
        ChooseShare,
        JobKey,
        Scratch,
        Start,
        Step,
    )

T = TypeVar("T")
_HOLD = 12 * 3600.0  # seconds after which a server with loaded dumps ends on its own
_SHORT = 5.0  # seconds in which small dumps are loaded, so that no poll is needed


class DrillHosts(PairHosts):
    """The repository host, which sends, and the host with the scratch folder."""

    def __init__(self, run: Run, drill: DrillSettings, runner: Callable[[str], HostRunner]) -> None:
        """Take what makes the runner of an inventory host. Raises HostFailed."""
        super().__init__(run["repository"]["host"], drill.host, runner)

    def ask(self, side: str, step: Step, parse: Callable[[object], T]) -> T:
        """Return the parsed answer of a host. Raises HostFailed, also if the host refused."""
        runner = self.runners[side]
        (answer,) = runner.run(step)
        try:
            refused = optional(as_object(answer, "its answer"), "refused", str)
            if refused is None:
                return parse(answer)
        except WrongShape as error:
            raise HostFailed(f"its answer about a drill cannot be read: {error}", runner.name) from error
        raise HostFailed(one_line(refused), runner.name)


class RestoreDrill:
    """One drill of a backup."""

    def __init__(
        self,
        run: Run,
        settings: DrillSettings,
        avoid: Sequence[str],
        runner: Callable[[str], HostRunner],
        transfer: Callable[[Mapping[str, Any], PairHosts], Transfer],
        errors: tuple[type[Exception], ...],
        tell: Callable[[str], None],
    ) -> None:
        """Take the backup and its drills. ``avoid``: repositories and sources on the host with the scratch folder."""
        self._run, self._settings, self._avoid = run, settings, avoid
        self._runner, self._make_transfer, self._errors, self._tell = runner, transfer, errors, tell
        self._may_find_servers = False

    def new_record(self, at: str, before: DrillRecord | None) -> DrillRecord:
        """Return the record of a drill that begins."""
        settings = self._settings
        scratch = os.path.join(settings.path, PREFIX + secrets.token_hex(16))
        record = DrillRecord(at, settings.host, scratch, seed=secrets.token_hex(8))
        record.begin_after(before)
        record.has_servers = bool(settings.load)
        self._may_find_servers = record.has_servers or (before is not None and before.has_servers)
        return record

    def tree_of(self, record: DrillRecord) -> str:
        """Return the path of the restored tree."""
        return os.path.join(record.path, DATA)

    def predict(self, record: DrillRecord) -> Workflow:
        """Tell that a restore can be practised now. Raises JobStopped if it cannot."""
        hosts = self._reach()
        try:
            scratch = yield from self._ask(hosts, "dest", self._scratch(record, "look"), parse_scratch)
        finally:
            hosts.close()
        where = f"{self._settings.host}:{self._settings.path}, which has room for {format_bytes(scratch.room)}"
        left = counted(scratch.removed, "scratch folder", "scratch folders")
        loads = " and ".join(one.kind for one in self._settings.load)
        more = f", and for more once {left} of earlier drills would be removed" if scratch.removed else ""
        more += f", and would load the dumps of {loads} there" if loads else ""
        self._tell(f"{self._run['id']}: would practise a restore to {where}{more}")

    def restore(self, record: DrillRecord) -> Workflow:
        """Restore into a new scratch folder, and compare. Raises JobStopped.

        What differs from the manifest, or cannot be loaded, is kept for a person. After any other failure the scratch
        folder is removed.
        """
        hosts = self._reach()
        try:
            if self._may_find_servers:
                yield from self._end_servers(hosts)
            scratch = yield from self._ask(hosts, "dest", self._scratch(record, "make"), parse_scratch)
            if scratch.removed:
                left = counted(scratch.removed, "scratch folder", "scratch folders")
                self._tell(f"{self._run['id']}: removed {left} of earlier drills")
            try:
                chosen = yield from self._ask(
                    hosts, "source", self._choose(record, scratch.room, scratch.entries), parse_choice
                )
                record.snapshot, record.is_cut = chosen.snapshot, chosen.is_cut
                record.files, record.bytes = chosen.files, chosen.bytes
                record.files_total, record.bytes_total = chosen.files_total, chosen.bytes_total
                record.seconds = yield from self._transfer(hosts, record, chosen)
                compare = self._scratch(record, "compare", manifest=chosen.manifest)
                damage = yield from self._ask(hosts, "dest", compare, find_damage)
            except JobStopped as stopped:
                left = yield from self._remove(hosts, record)
                raise JobStopped(f"{stopped}{left}", stopped.may_pass) from None
            if damage:
                left = yield from self.keep(record)
                raise JobStopped(f"{damage}. Check the snapshots (longhaul.fleet.snapshot, action check). {left}")
            try:
                yield from self._load(hosts, record)
            except JobStopped as stopped:
                left = yield from self.keep(record)
                raise JobStopped(f"{stopped}. {left}", stopped.may_pass) from None
            record.restored = True
        finally:
            hosts.close()

    def keep(self, record: DrillRecord) -> Generator[Any, Any, str]:
        """Keep the restored files for a person, but no server; return where they are."""
        record.kept = True
        why = ""
        kept = f"The restored files are kept in {self.tree_of(record)} on {record.host} until the next drill"
        try:
            hosts = self._reach()
            try:
                if record.has_servers:
                    why = yield from self._end_servers(hosts)
            finally:
                hosts.close()
        except JobStopped as stopped:
            why = str(stopped)
        return f"{kept}. The server with the loaded dumps has not ended: {why}" if why else kept

    def sockets_of(self, record: DrillRecord) -> Mapping[str, str]:
        """Return the sockets of the servers with loaded dumps, by kind; of PostgreSQL the folder that it is in."""
        return {
            one.kind: os.path.join(self._settings.path, _server_folder(record, number), SOCKETS[one.kind])
            for number, one in enumerate(self._settings.load)
        }

    def _load(self, hosts: DrillHosts, record: DrillRecord) -> Workflow:
        """Load the dumps, each kind into a server of its own. Raises JobStopped."""
        runner = hosts.runners["dest"]
        began, loaded = time.monotonic(), 0
        for number, one in enumerate(self._settings.load):
            name = _server_folder(record, number)
            yield from self._ask(hosts, "dest", {**self._scratch(record, "add"), "name": name}, lambda _answer: None)
            start = self._start_server(runner.name, number, one, os.path.join(self.tree_of(record), one.folder), name)
            try:
                status = yield from start_holder(runner, self._key(number), start)
            except HostFailed as error:
                raise JobStopped(str(error), error.unreachable) from error
            if not status.alive:
                why = tell_failure(status.failure or f"the job that loads them has {status.state}")
                raise JobStopped(f"the dumps of {record.snapshot} cannot be loaded on {record.host}: {why}")
            loaded += status.progress.files_done
        record.databases, record.load_seconds = loaded, round(time.monotonic() - began, 3)

    def _start_server(self, host: str, number: int, one: DumpsToLoad, dumps: str, name: str) -> Start:
        key = self._key(number)
        load = {
            "kind": one.kind,
            "folder": os.path.normpath(dumps),
            "place": os.path.join(self._settings.path, name),
            "databases": list(one.databases),
            "user": one.user,
            "hold": _HOLD,
        }
        return {
            "do": "start",
            "kind": "drill",
            "request": {"side": "dest", "part": "consistent", "root": "", "peer_name": host, "load": load},
            "until": ["serving"],
            "wait": _SHORT,
            "secrets": [],
            "replace": None,
            "id": key["id"],
            "side": key["side"],
        }

    def _key(self, number: int) -> JobKey:
        """The folder of the job that has the server of an entry of ``load``."""
        return {"id": hashlib.sha256(f"drill {number} {self._owner}".encode()).hexdigest()[:16], "side": "dest"}

    def _end_servers(self, hosts: DrillHosts, loaded: int = 0) -> Generator[Any, Any, str]:
        """End the servers of this drill, or of one that was killed; return why one has not ended. Raises JobStopped.

        ``loaded``: how many must have been there until now.
        """
        try:  # also those of a drill that loaded other kinds
            ended: list[HolderEnd] = yield Call(
                partial(end_holders, hosts.runners["dest"], [self._key(number) for number in range(len(SOCKETS))])
            )
        except HostFailed as error:
            raise JobStopped(str(error), error.unreachable) from error
        if sum(one.was_held for one in ended) < loaded:
            return "it was gone before: its job was killed, or the validation took longer than 12 hours"
        return next((one.failure for one in ended if one.failure), "")

    def remove(self, record: DrillRecord) -> Workflow:
        """Remove the scratch folder. Raises JobStopped."""
        hosts = self._reach()
        try:
            left = yield from self._remove(hosts, record)
        finally:
            hosts.close()
        if left:
            raise JobStopped(f"all was restored as the manifest says{left}")

    def _reach(self) -> DrillHosts:
        try:
            return DrillHosts(self._run, self._settings, self._runner)
        except HostFailed as error:
            raise JobStopped(str(error)) from error

    def _remove(self, hosts: DrillHosts, record: DrillRecord) -> Generator[Any, Any, str]:
        """End the servers, and remove the scratch folders; return what to tell if that failed."""
        names = [os.path.basename(record.path), *(_server_folder(record, n) for n in range(len(self._settings.load)))]
        why = ""
        try:
            if record.has_servers:
                why = yield from self._end_servers(hosts, len(self._settings.load) if record.databases else 0)
            for name in reversed(names):
                step: Scratch = {**self._scratch(record, "remove"), "name": name}
                yield from self._ask(hosts, "dest", step, lambda _answer: None)
        except JobStopped as stopped:
            record.kept = True
            return f". The scratch folder {record.path} is left there until the next drill: {stopped}"
        return f". The server with the loaded dumps had not ended well: {why}" if why else ""

    def _ask(self, hosts: DrillHosts, side: str, step: Step, parse: Callable[[object], T]) -> Generator[Any, Any, T]:
        try:
            found: T = yield Call(partial(hosts.ask, side, step, parse))
        except HostFailed as error:
            raise JobStopped(str(error), error.unreachable) from error
        return found

    def _scratch(self, record: DrillRecord, act: str, **more: str) -> Scratch:
        step: Scratch = {
            "do": "scratch",
            "act": act,
            "place": self._settings.path,
            "name": os.path.basename(record.path),
            "owner": self._owner,
            "avoid": list(self._avoid),
        }
        if "manifest" in more:
            step["manifest"] = more["manifest"]
        return step

    @property
    def _owner(self) -> str:
        """Whose drills may remove a scratch folder: those of this backup."""
        repository = self._run["repository"]
        text = "\0".join((repository["host"], repository["path"], self._run["host"], self._run["name"]))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def _choose(self, record: DrillRecord, room: int, entries: int) -> ChooseShare:
        return {
            "do": "choose_share",
            "place": [self._run["repository"]["path"], self._run["host"], self._run["name"]],
            "which": self._settings.which,
            "seed": record.seed,
            "share": list(self._settings.share),
            "room": room,
            "entries": entries,
            "always": [one.folder for one in self._settings.load],
        }

    def _transfer(self, hosts: DrillHosts, record: DrillRecord, chosen: Chosen) -> Generator[Any, Any, float]:
        """Restore the share, as a restore does, and return the seconds that this took. Raises JobStopped."""
        run = self._run
        job = {
            **line_options(run, "bwlimit"),
            "name": run["id"],
            "src_host": run["repository"]["host"],
            "src": folder_of(run["repository"], run, chosen.snapshot, DATA) + "/",
            "dest_host": self._settings.host,
            "dest": self.tree_of(record),
            "filter": chosen.rules,
            "numeric_ids": True,
            "owner_warnings": False,
            "verify": "size",
            "sync": "data",
        }
        ended = yield from transfer_to_end(job, lambda: self._make_transfer(job, hosts), self._errors)
        result = ended.result
        if result.get("failed"):
            raise JobStopped(str(result["msg"]), ended.may_pass)
        phases = result.get("phases") or {}
        return round(float(phases.get("transfer") or result.get("duration") or 0.0), 3)


def _server_folder(record: DrillRecord, number: int) -> str:
    """Return the name of the scratch folder for the server of an entry of ``load``, short enough for a socket."""
    return f"{os.path.basename(record.path)[: len(PREFIX) + 12]}-{number}"
