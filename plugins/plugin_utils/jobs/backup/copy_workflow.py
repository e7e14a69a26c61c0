# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps for the copies of a backup's snapshots: copy those that lag, check, and repair damage in both directions.

    look            compare the place of the copy with that of the repository, and list its snapshots
    copy            for each snapshot that lags: begin it, pull it with its manifest, prove and complete it
    prune           remove snapshots of the copy by its own policy
    check           read a part of the copy, as of the first repository
    repair          replace damaged files: by those of other snapshots there, or by those of the other repository

A copy that fails never fails the backup: its state says why, and the next run tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ...common.units import seconds_of
from ...fleet.scheduler import Call, Workflow
from ...hosts.host_runner import HostFailed, LeaseLost
from ...hosts.pair import PairHosts
from ..workflow import JobStopped, Transfer, stop_alone, transfer_to_end
from .copies import (
    CopyState,
    choose_snapshots,
    copy_job,
    find_same_place,
    may_be_more,
    plan_repair,
    repair_job,
    tell_repaired,
    tell_unproven,
    tell_wanted,
    time_text,
    token_of,
    without_repaired,
)
from .hosts import BackupHosts, CopyFilling, CopyHosts, FilesDamaged, Filling, RepositoryBusy
from .jobs import Copy, Repository, Run
from .state import BegunSnapshot, FinishedSnapshot, RepairedSnapshots, SnapshotAnswers

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import EndDescription

_TRIES = 2  # to send what is not as the manifest says
_ROUNDS = 5  # of a repair, each with files of another snapshot

MakeTransfer = Callable[[Mapping[str, Any], PairHosts, "Filling | None"], Transfer]


class RepairableDamage(JobStopped):
    """A check has found damaged files, and nothing else that is wrong."""


class CopyWorkflow:
    """One copy of a backup's snapshots, in one run."""

    def __init__(
        self,
        run: Run,
        copy: Copy,
        hosts: CopyHosts,
        transfer: MakeTransfer,
        errors: tuple[type[Exception], ...],
        state: CopyState,
        now: Callable[[], str],
        tell: Callable[[str], None],
        check: bool,
    ) -> None:
        """Take the copy, its hosts, and what is known of it: its ``state``, which the steps bring up to date."""
        self._run, self._copy, self.hosts, self._check = run, copy, hosts, check
        self._transfer, self._errors, self._now, self._tell = transfer, errors, now, tell
        self._place: Repository = {"host": copy["host"], "path": copy["path"]}
        self.state = state
        self.notes: list[str] = []
        self.changed = False
        self._there: list[str] = []  # complete snapshots of the copy
        self._since = state.failing_since or now()
        self.described: EndDescription | None = None  # the place, once its host has been asked

    # The steps of the backup

    def bring_up_to_date(
        self, made: Sequence[str], makes_one: bool = False, others: Sequence[EndDescription] = ()
    ) -> Workflow:
        """Copy the snapshots that lag; ``made`` are the complete ones of the first repository, by name.

        ``makes_one``: this run would have made another one by now. ``others`` are the places of the copies
        before this one.
        """
        self._end_well()
        known = bool(self.state.snapshots)
        try:
            yield from stop_alone(self._look(known, others))
            now = seconds_of(self._now()) or 0
            new = names.name_of(now)
            every = [*made, new] if makes_one and new not in made else made
            lagging = choose_snapshots(every, self._there, self._copy["keep"], self._run["timezone"], now)
            if self._check:
                self._predict([name if name in made else "the new one" for name in lagging])
                return
            for name in lagging:
                try:
                    yield from stop_alone(self._copy_snapshot(name))
                except JobStopped as stopped:
                    self._fail(str(stopped))
                    if stopped.is_held or stopped.may_pass:
                        return
            if made:  # else the first repository is lost, and these are all there is
                yield from stop_alone(self._prune())
        except JobStopped as stopped:
            self._fail(str(stopped))

    def repair_first(self, first: BackupHosts) -> Generator[Any, Any, RepairedSnapshots]:
        """Repair the ``first`` repository; return what was done, and what is left. Raises JobStopped."""
        found = yield from self._repair(first, self._run["repository"], self._there, is_to_copy=False)
        return found

    def check_and_repair(self, made: Sequence[str]) -> Workflow:
        """Check the copy as the job is checked, and repair it; ``made`` are the snapshots of the first repository."""
        if not self._there:
            return
        run, reason = self._run, ""
        try:
            try:
                options = {"check_level": run["check_level"], "check_subset": run["check_subset"]}
                yield from stop_alone(self._ask(self.hosts, check=options))
            except RepairableDamage as stopped:
                reason = str(stopped)
            if self._check:
                return
            found = yield from stop_alone(self._repair(self.hosts, self._place, made, is_to_copy=True))
            self.state.repaired = len(found.repaired)
            if found.left:  # also damage that an earlier check has found
                wanted = tell_wanted(self.state.place, found.wanted, found.left)
                raise JobStopped(f"{reason}. {wanted}" if reason else wanted)
            self.notes = without_repaired(self.notes, self._told(""))
            self._keep_list((yield from stop_alone(self._ask(self.hosts, list={}))))
        except JobStopped as stopped:
            self._fail(str(stopped))

    def close(self) -> None:
        """Let go of the connection."""
        self.hosts.close()

    # Look, copy, prune

    def _look(self, known: bool, others: Sequence[EndDescription]) -> Workflow:
        """Ask for what there is. Raises JobStopped if the copy is in a place where none must be."""
        try:
            copy, first, client = yield Call(partial(self.hosts.identify, not known))
        except HostFailed as error:
            raise stopped_by(error) from error
        problem = find_same_place(copy, first, client, others)
        if problem:
            raise JobStopped(f"{self.state.place}: {problem}")
        self.described = copy
        before = self.state.snapshots
        answers = yield from self._ask(self.hosts, list={})
        if answers.list and (answers.list.snapshots or not known):
            self._keep_list(answers)
        if known and not self._there:
            raise JobStopped(
                f"there is no snapshot of {self._run['id']} in {self.state.place}, and the last run left "
                f"{before}. Its disk may not be mounted: mount it. If they were removed on purpose, name "
                "another path for the copy, or remove the record of the job on the control node"
            )

    def _keep_list(self, answers: SnapshotAnswers) -> None:
        """Keep what is there. A list that the host refused says nothing of it."""
        if answers.list is None:
            return
        complete = [one for one in answers.list.snapshots if one.state == "complete"]
        self._there = [one.name for one in complete]
        self.state.snapshots = len(complete)
        self.state.newest = complete[-1].time if complete else None
        self.state.verified = max((one.verified for one in complete if one.verified), default=None)

    def _predict(self, lagging: Sequence[str]) -> None:
        if lagging:
            self.notes.append(f"would copy {', '.join(lagging)} to {self.state.place}")

    def _copy_snapshot(self, name: str) -> Workflow:
        """Copy one snapshot. Raises JobStopped if it is not what its manifest says, even when sent twice."""
        self._tell(f"{self._run['id']}: copying {name} to {self.state.place}")
        job = copy_job(self._run, self._copy, name)
        begin = {"run": token_of(name), "copy_of": name}
        if self._run["min_free"]:
            begin["min_free"] = self._run["min_free"]
        finish = {
            "run": token_of(name),
            "copied_from": _told(self._run["repository"]),
            "shrink_limit": 100.0,
            "change_limit": 100.0,
            **({"read_only": True} if self._run["read_only"] else {}),
        }
        unproven: list[str] = []
        for _try in range(_TRIES):
            filling = CopyFilling(self.hosts, self._run, job["dest"], begin, unproven, self._keep_begun)
            yield from self._send(job, self.hosts, filling)
            answers = yield from self._ask(self.hosts, finish=finish)
            finished = answers.finish or FinishedSnapshot()
            if finished.name:
                self.state.copied.append(name)
                self._there.append(name)
                # The line may break before anybody lists them again.
                self.state.snapshots, self.state.newest = len(self._there), time_text(max(self._there))
                return
            unproven = finished.unproven
            if may_be_more(unproven):  # no list of them is whole, so contents are compared instead of size and time
                job = {**job, "checksum": True}
        raise JobStopped(tell_unproven(name, unproven))

    def _keep_begun(self, answers: Mapping[str, Mapping[str, Any]]) -> BegunSnapshot:
        said = SnapshotAnswers()
        said.update(answers)
        return said.begin or BegunSnapshot("")

    def _send(self, job: Mapping[str, Any], hosts: PairHosts, filling: Filling | None) -> Workflow:
        """Make a transfer to its end. Raises JobStopped."""
        result, _begun, may_pass = yield from transfer_to_end(
            job, lambda: self._transfer(job, hosts, filling), self._errors
        )
        if result.get("failed"):
            is_held = bool(result.get("busy") or result.get("lease_lost"))
            raise JobStopped(str(result["msg"]), may_pass, is_held)
        self.state.bytes_sent += int(result.get("bytes_sent") or 0)
        self.changed = self.changed or bool(result.get("changed"))

    def _prune(self) -> Workflow:
        if not self._there:
            return
        now = seconds_of(self._now())
        options = {"keep": self._copy["keep"], "timezone": self._run["timezone"], "control_time": now}
        answers = yield from self._ask(self.hosts, prune=options, list={})
        self.state.removed = answers.prune.removed if answers.prune else []
        self._keep_list(answers)

    # Repair

    def _repair(
        self, end: BackupHosts, place: Repository, there: Sequence[str], *, is_to_copy: bool
    ) -> Generator[Any, Any, RepairedSnapshots]:
        """Repair damaged files of the repository ``place``, by those of the peer where none of its snapshots has them.

        ``there`` are the snapshots of the peer, from which files go ``to the copy`` or come from it. Where the peer
        cannot be asked, what was done without it counts. Raises JobStopped if the repository cannot be asked.
        """
        answers = yield from self._ask(end, repair={})
        found = answers.repair or RepairedSnapshots()
        done = RepairedSnapshots(list(found.repaired), found.wanted, found.left)
        source = self._run["repository"] if is_to_copy else self._place
        hosts = self.hosts if is_to_copy else self.hosts.reverse
        for _round in range(_ROUNDS):
            wanted = done.wanted
            for name, paths in plan_repair(wanted, there).items():
                job = repair_job(
                    self._run, source, place, name, paths, is_to_copy=is_to_copy, bwlimit=self._copy["bwlimit"]
                )
                self._tell(f"{self._run['id']}: bringing {counted(len(paths), 'file', 'files')} to {_told(place)}")
                try:
                    yield from self._send(job, hosts, None)
                except JobStopped as stopped:
                    self.notes.append(f"no intact files could be brought from {_told(source)}: {stopped}")
                    return done
                answers = yield from self._ask(end, repair={"copied_from": _told(source)})
                found = answers.repair or RepairedSnapshots()
                done = RepairedSnapshots([*done.repaired, *found.repaired], found.wanted, found.left)
            if done.wanted == wanted:
                break
        if done.repaired:
            self.notes.append(tell_repaired(_told(place), done.repaired))
        return done

    # Ask

    def _ask(self, end: BackupHosts, **wishes: Mapping[str, object]) -> Generator[Any, Any, SnapshotAnswers]:
        """Do something with the snapshots at one end, and return the answers. Raises JobStopped."""
        try:
            answers = yield Call(partial(end.snapshots, wishes, self._check))
        except HostFailed as error:
            raise stopped_by(error) from error
        for answer in answers.values():
            self.changed = self.changed or bool(answer["changed"])
            self.notes += [text if end is not self.hosts else self._told(text) for text in answer["warnings"]]
        said = SnapshotAnswers()
        said.update(answers)
        return said

    def _end_well(self) -> None:
        self.state.error = self.state.failing_since = ""

    def _fail(self, reason: str) -> None:
        """Note the first reason why the copy is not as it should be."""
        if not self.state.error:
            self.state.error, self.state.failing_since = reason, self._since
        self._tell(f"{self._run['id']}: {self._told(reason)}")

    def _told(self, text: str) -> str:
        return f"copy in {self.state.place}: {text}"


def _told(place: Repository) -> str:
    return f"{place['host']}:{place['path']}"


def stopped_by(error: HostFailed, reason: str = "") -> JobStopped:
    """Return what the failure of a host means for a job; ``reason`` is said in place of its own words."""
    if isinstance(error, FilesDamaged):
        return RepairableDamage(error.reason)
    return JobStopped(reason or str(error), error.unreachable, isinstance(error, (LeaseLost, RepositoryBusy)))
