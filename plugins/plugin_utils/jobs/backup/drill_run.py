# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of one restore drill, without the user's validation, which is a hook.

make       make a scratch folder, and remove what earlier drills of this job left
choose     the repository host chooses a share of a snapshot, as large as there is room
transfer   restore it
compare    compare it with the manifest
remove     remove the scratch folder
"""

from __future__ import annotations

import hashlib
import os
import secrets
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
from .drill import (
    Chosen,
    DrillRecord,
    DrillSettings,
    find_damage,
    parse_choice,
    parse_scratch,
)
from .jobs import Run, folder_of, line_options

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import ChooseShare, Scratch, Step

T = TypeVar("T")


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

    def new_record(self, at: str, before: DrillRecord | None) -> DrillRecord:
        """Return the record of a drill that begins."""
        settings = self._settings
        scratch = os.path.join(settings.path, PREFIX + secrets.token_hex(16))
        record = DrillRecord(at, settings.host, scratch, seed=secrets.token_hex(8))
        record.begin_after(before)
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
        more = f", and for more once {left} of earlier drills would be removed" if scratch.removed else ""
        self._tell(f"{self._run['id']}: would practise a restore to {where}{more}")

    def restore(self, record: DrillRecord) -> Workflow:
        """Restore into a new scratch folder, and compare. Raises JobStopped.

        What differs from the manifest is kept for a person. After any other failure the scratch folder is removed.
        """
        hosts = self._reach()
        try:
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
                record.kept = True
                raise JobStopped(
                    f"{damage}. Check the snapshots (longhaul.fleet.snapshot, action check); the restored files are "
                    f"kept in {self.tree_of(record)} on {record.host} until the next drill"
                )
            record.restored = True
        finally:
            hosts.close()

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
        """Remove the scratch folder; return what to tell if that failed."""
        try:
            yield from self._ask(hosts, "dest", self._scratch(record, "remove"), lambda _answer: None)
        except JobStopped as stopped:
            record.kept = True
            return f". The scratch folder {record.path} is left there until the next drill: {stopped}"
        return ""

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
