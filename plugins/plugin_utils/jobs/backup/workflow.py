# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workflow of a backup: one job for one host, from its claim to its record.

    claim           keep other runs from making the same backup
    owed            run the hooks after that a killed run did not come to
    begin           begin a snapshot, or resume that of an interrupted run
    hooks_before    stop or freeze what is backed up
    prepare         have the client make consistent sources: dumps of databases, a snapshot of its file system
    transfer        fill the snapshot; without hooks before and such sources, its first execution begins the snapshot
    undo            have the client remove those sources, also after a failure; it does so alone if nobody comes back
    hooks_after     start or thaw that again, also after a failure
    finish          complete the snapshot; the same execution lists the snapshots and prunes them
    list            ask what snapshots there are, where finish did not come to it; the same execution prunes them
    prune           remove snapshots by the policy, where neither came to it
    copy            copy snapshots to other repositories, see copy_workflow
    check           read a part of the snapshots, and compare it with their manifests; repair damage from the copies
    drill           practise a restore: see drill_run
    record          write down what became of the backup, and show it
    release         let another run make it

Two tables in ``state`` decide which steps are left, also after a failure. A step that waits for something yields it to
the scheduler. A hook that is a file of tasks ends the workflow here; the role runs the file, and the next call of the
action goes on by the state on disk.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ...common.units import seconds_of
from ...fleet.claims import AlreadyClaimed, Process, claim, release
from ...fleet.scheduler import Call, HandOver, Workflow
from ...hosts.host_runner import HostFailed, HostRunner, LeaseLost
from ...transfer.completion import Uncompared
from ..hook_steps import HookRun, TasksResult, explain_failure, explain_tasks_failure, find_tasks, tell_failure
from ..hooks import Hook, HookResult, read_hook, short_name, tell_hook
from ..source_changes import tell_changes
from ..workflow import JobStopped, Transfer, hook_to_end, retry, stop_alone, transfer_again, transfer_to_end
from .consistent import end_holder, prepare
from .copies import RepairedFile, tell_wanted, without_repaired
from .copy_workflow import CopyWorkflow, MakeTransfer, RepairableDamage, stopped_by
from .drill import fill_in, is_due
from .drill_run import RestoreDrill
from .hosts import BackupHosts, Filling
from .jobs import Run, Source
from .state import (
    HOOKS_AFTER,
    OWED,
    OWED_HOOKS,
    UNDO,
    BackupRecord,
    BackupStage,
    BackupState,
    BackupStep,
    BegunSnapshot,
    CheckedSnapshots,
    RepairedSnapshots,
    StepFailure,
    copy_before,
    expected_snapshots,
    make_record,
    record_drill,
)
from .store import BackupStore
from .transfers import Expected, expect, job_of, read_transfer, tell_notes

_STAGES: Mapping[BackupStep, BackupStage] = {
    BackupStep.CLAIM: BackupStage.BEGIN,
    BackupStep.OWED: BackupStage.BEGIN,
    BackupStep.BEGIN: BackupStage.BEGIN,
    BackupStep.HOOKS_BEFORE: BackupStage.HOOKS_BEFORE,
    BackupStep.PREPARE: BackupStage.PREPARE,
    BackupStep.FINISH: BackupStage.FINISH,
    BackupStep.PRUNE: BackupStage.PRUNE,
    BackupStep.CHECK: BackupStage.CHECK,
    BackupStep.DRILL: BackupStage.DRILL,
}

_OF_HOOKS: Mapping[BackupStep, str] = {BackupStep.OWED: OWED_HOOKS, BackupStep.HOOKS_AFTER: HOOKS_AFTER}


class BackupServices(NamedTuple):
    """What backups use of the control node and of hosts, and the options of the run."""

    hosts: Callable[[Run], BackupHosts]
    hook_runner: Callable[[str, Hook], HostRunner]
    transfer: MakeTransfer  # of a path, as transfers.job_of has it, or of a copy
    errors: tuple[type[Exception], ...]  # that a transfer may raise, with ``details`` for its result, or without
    store: BackupStore
    process: Process  # that makes the backups
    now: Callable[[], str]  # UTC, as records have it
    tell: Callable[[str], None]  # a line for the terminal
    report: Callable[[BackupRecord], None]  # shows what became of a backup
    run_id: str = ""  # one run may call the action several times
    continues: bool = False  # this call makes backups with files of tasks, whose state has to be kept
    takeover: bool = False  # of backups that another control node makes
    let_go: Callable[[str], None] = lambda _name: None  # other control nodes may have the backup soon
    hook_folder: str = ""  # of files of tasks
    tasks_results: Mapping[str, TasksResult] = MappingProxyType({})  # how files of tasks ended, by backup
    drills_only: bool = False  # make no backup, only the drill of each job, whether it is due or not
    drill: Callable[[Run], RestoreDrill | None] = lambda _run: None  # of a backup that has drills


class BackupWorkflow:
    """The steps of one backup in one call of the action."""

    def __init__(self, run: Run, services: BackupServices, before: BackupRecord | None = None) -> None:
        """Take the run, what it uses, and the record ``before`` this one."""
        self._run, self._services, self._before = run, services, before
        self._check = not services.store.writes
        self.state = self._read_state()
        self.record: BackupRecord | None = None  # once it has ended
        self.changed = False  # by this call
        self.diff: list[str] = []
        self.step = BackupStep.CLAIM  # that is made now, or was made last
        self.busy = ""  # why nothing was done: another run is at work
        self._hosts: BackupHosts | None = None  # once a step needs them
        self._has_met = False  # both hosts were reached
        self._uncompared: Uncompared | None = None
        self._copies: list[CopyWorkflow] = []
        self._damage: str | None = None  # that the check has found; None: nothing was checked

    def _read_state(self) -> BackupState:
        """Return the state that an earlier call of this run has left, or that of a backup that has not begun.

        A run that was killed between its hooks has left a state, too, which says that it owes those after.
        """
        services, run = self._services, self._run
        found = services.store.read_state(run["id"]) if services.continues or self._has_both_hooks else None
        if found and services.continues and found.run_id == services.run_id:
            return found
        state = BackupState(services.now(), services.run_id)
        if services.drills_only:
            state.stage = BackupStage.DRILL
        if found:  # a drill alone leaves these hooks to the next backup
            state.owed = found.find_owed(len(run["after"]))
            state.hooks_run[OWED] = found.hooks_run.get(OWED if found.owed else "after", 0)
        return state

    @property
    def id(self) -> str:
        """The name of the backup."""
        return self._run["id"]

    @property
    def goes_on(self) -> bool:
        """Whether an earlier call of this run has begun the backup, so that this control node has its lease."""
        has_begun = bool(self.state.claim) and self.state.stage is not BackupStage.BEGIN
        return self._services.continues and has_begun

    @property
    def _has_both_hooks(self) -> bool:
        """Whether a hook may stop something that another one starts again."""
        return bool(self._run["before"] and self._run["after"])

    def _save(self) -> None:
        """Keep the state for later calls, and for the next run, if this one is killed while its source is stopped."""
        if not self.state.claim:
            return
        if self._services.continues:
            self._services.store.save_state(self._run["id"], self.state)
        elif self._has_both_hooks:
            with contextlib.suppress(OSError):  # a full disk here must not keep a source stopped
                self._services.store.save_state(self._run["id"], self.state)

    def run(self) -> Workflow:
        """Make the steps that are left, one after the other."""
        steps: Mapping[BackupStep, Callable[[], Workflow]] = {
            BackupStep.CLAIM: self._claim,
            BackupStep.OWED: self._run_owed,
            BackupStep.BEGIN: lambda: self._snapshots(begin=self._begin_options),
            BackupStep.HOOKS_BEFORE: partial(self._run_hooks, "before", self._run["before"]),
            BackupStep.PREPARE: partial(self._retry, self._prepare),
            BackupStep.TRANSFER: partial(self._retry, self._transfer),
            BackupStep.UNDO: self._undo,
            BackupStep.HOOKS_AFTER: partial(self._run_hooks, "after", self._run["after"]),
            BackupStep.FINISH: partial(self._retry, self._finish),
            BackupStep.LIST: partial(self._retry, self._list),
            BackupStep.PRUNE: partial(self._retry, self._prune),
            BackupStep.COPY: self._copy,
            BackupStep.CHECK: partial(self._retry, self._check_contents),
            BackupStep.DRILL: self._drill,
            BackupStep.RECORD: self._record,
            BackupStep.RELEASE: self._release,
        }
        try:
            for step in BackupStep:
                # The state after the step before decides.
                if step not in self._find_steps():
                    continue
                if step in self._needless:
                    continue
                self.step = step
                if not self._services.drills_only:
                    self.state.stage = _STAGES.get(step, self.state.stage)
                try:
                    yield from stop_alone(steps[step]())
                except JobStopped as stopped:
                    self._note_failure(step, stopped)
                except OSError as error:  # of the control node
                    if self._services.continues:  # the backup goes on in the next call, by its state on disk
                        raise
                    self._note_failure(step, JobStopped(f"{error.filename} on the control node: {error.strerror}"))
                    if step is BackupStep.RECORD:
                        self._show(self._make_record())
        finally:
            for copy in self._copies:
                copy.close()
            if self._hosts is not None:
                self._hosts.close()

    @property
    def _needless(self) -> tuple[BackupStep, ...]:
        """The steps that this backup does not have. Where nothing comes before it, the transfer begins the snapshot."""
        run = self._run
        return (
            *(() if run["before"] or run["consistent"] else (BackupStep.BEGIN,)),
            *(() if run["before"] else (BackupStep.HOOKS_BEFORE,)),
            *(() if run["consistent"] and not self._check else (BackupStep.PREPARE, BackupStep.UNDO)),
        )

    def _retry(self, step: Callable[[], Workflow]) -> Workflow:
        """Make a step, again after a failure that may pass, unless a hook has stopped something meanwhile."""
        has_hooks = self._run["before"] or self._run["after"]
        most = 0 if has_hooks or self.state.has_failed else None
        yield from retry(self._run["id"], step, self._services.tell, most)

    def _find_steps(self) -> tuple[BackupStep, ...]:
        """Return the steps that are left. What another control node has is left alone, with its hooks."""
        steps = self.state.find_steps(self._run["check_subset"], self._is_drill_due, bool(self._run["copies"]))
        if self.busy:
            return (BackupStep.RELEASE,) if self.state.claim else ()
        if self._hosts is not None and self._hosts.lost:
            return tuple(step for step in steps if step in (BackupStep.RECORD, BackupStep.RELEASE))
        return steps

    def _note_failure(self, step: BackupStep, stopped: JobStopped) -> None:
        """Note why a step failed. A list that is only asked for after another failure is none of its own.

        That another run is at work already is no failure: it has its own record.
        """
        state, reason = self.state, str(stopped)
        is_first = step in (BackupStep.CLAIM, BackupStep.LIST) and self._services.drills_only
        if stopped.is_held and (state.stage is BackupStage.BEGIN or is_first):
            self.busy = reason
            self._services.tell(f"{self._run['id']}: busy: {reason}")
        elif step is BackupStep.LIST and state.has_failed:
            if not any(reason in failure.reason for failure in state.failures):
                self._services.tell(f"{self._run['id']}: the snapshots cannot be listed: {reason}")
        else:
            name = _OF_HOOKS.get(step, state.stage.value)
            state.failures.append(StepFailure(name, reason))
            self._save()

    # The claim, and the record

    def _claim(self) -> Workflow:
        path = self._services.store.claim_path(self._run["id"])
        try:
            taken = claim(path, self._services.process, "making this backup", write=not self._check)
        except AlreadyClaimed as held:
            raise JobStopped(str(held), is_held=True) from None
        # If a file of tasks came between, the first call knows the run that was killed.
        self.state.claim, self.state.ended_claim = taken.run, self.state.ended_claim or taken.ended_run
        yield from ()

    def _release(self) -> Workflow:
        services, name = self._services, self._run["id"]
        if self._hosts is not None:
            self._hosts.let_expire()
        services.let_go(name)
        if services.drills_only and self.state.owed:
            state = self.state
            self._tell(f"the run of {state.owed} was killed, and the next backup runs the hooks after that it owes")
            left = BackupState(state.at, owed=state.owed, hooks_run={OWED: state.hooks_run[OWED]})
            services.store.save_state(name, left)
        else:
            services.store.remove_state(name)
        if not self._check:
            release(services.store.claim_path(name), services.process)
        yield from ()

    def _record(self) -> Workflow:
        record = self._make_record()
        self._services.store.save(record)
        self._show(record)
        yield from ()

    def _make_record(self) -> BackupRecord:
        if self._hosts is not None and self._hosts.taken_over:
            self.state.notes.append(self._hosts.taken_over)
        make = record_drill if self._services.drills_only else make_record
        return make(self._run, self.state, self._services.now(), self._before)

    def _show(self, record: BackupRecord) -> None:
        self.record = record
        self._services.report(record)

    # Hooks

    def _run_owed(self) -> Workflow:
        """Run the hooks after of a killed run, before anything that could keep this run from its own hooks after."""
        run, state = self._run, self.state
        ran = "would be run" if self._check else "were run"
        said = f"the run of {state.owed} was killed before all its hooks after had ended; they {ran} first"
        if said not in state.notes:
            state.notes.append(said)
            self._services.tell(f"{run['id']}: {said}")
        try:
            yield from self._require_lease()
            yield from self._run_hooks("after", run["after"], OWED)
        except JobStopped:
            state.owed = ""
            raise
        state.owed = ""

    def _require_lease(self) -> Workflow:
        """Raise JobStopped if another control node has the backup: its own hooks start again what was stopped."""
        if self._check:
            return
        try:
            yield Call(self._reach().hold)
        except HostFailed as error:
            if isinstance(error, LeaseLost):
                raise JobStopped(error.reason, is_held=True) from error
            self._services.tell(f"{self._run['id']}: {error}")  # the source is started again all the same

    def _run_hooks(self, kind: str, hooks: Sequence[Mapping[str, Any]], counter: str = "") -> Workflow:
        """Run the hooks of a list that have not ended. Check mode runs none.

        The first hook before that fails raises JobStopped. All hooks after run, and then those that failed raise it.
        """
        ended, failed, counter = self.state.hooks_run, self.state.hooks_failed, counter or kind
        for number in range(ended.get(counter, 0), 0 if self._check else len(hooks)):
            try:
                yield from stop_alone(self._run_hook(kind, hooks[number]))
            except JobStopped as stopped:
                self._end_hook("failed")
                if kind == "before":
                    ended[counter] = len(hooks)
                    raise
                failed.append(str(stopped))
            else:
                self._end_hook("done")
            ended[counter] = number + 1
            self._save()
        drill = self._run["drill"]
        is_last = counter == "after" and not (drill and drill.validate.get("tasks") and self._is_drill_due)
        if is_last and self._hosts is not None:
            self._hosts.let_expire()
        if failed:
            self.state.hooks_failed = []
            raise JobStopped(". ".join(failed))

    def _run_hook(self, kind: str, written: Mapping[str, Any]) -> Workflow:
        """Run one hook, or end one of which the role has run the file of tasks. Raises JobStopped if it failed.

        The caller ends it.
        """
        job, services, state = self._run["id"], self._services, self.state
        sides = {"client": self._run["host"], "repository": self._run["repository"]["host"]}
        named = str(written.get("host") or "client")
        hook = read_hook({**written, "host": sides.get(named, named)})
        told = tell_hook(written, host=hook.host)
        if state.hook is None:
            state.hook = HookRun(**told, at=services.now(), began=time.time())
            state.hook.kind = kind
            self._save()
            services.tell(f"{job}: hook {kind} on {hook.host}: {told['name']}")
            result = yield from hook_to_end(hook, hook.host, services.hook_runner)
            reason = explain_failure(told, hook, result) if result.failed else ""
            if hook.tasks and not reason:
                try:
                    yield HandOver(find_tasks(job, state.hook, hook, services.hook_folder))
                except FileNotFoundError as error:
                    reason = tell_failure({"msg": str(error)}, hook=told)
        else:  # a file of tasks, which the role has run since; its tasks count what they change
            result = HookResult()
            reason = explain_tasks_failure(told, state.hook, services.tasks_results.get(job))
        state.hook.rc, state.hook.changed = result.rc, result.changed
        if reason:
            raise JobStopped(reason)

    def _end_hook(self, outcome: str) -> None:
        """Note how the hook ended that ran."""
        ran, self.state.hook = self.state.hook, None
        if ran is not None:
            ran.result, ran.ended = outcome, time.time()
            self.state.hooks.append(ran)
            self.changed = self.changed or ran.changed
            code = "" if ran.rc is None else f" (rc {ran.rc})"
            self._services.tell(f"{self._run['id']}: hook {ran.kind} {outcome}{code}: {short_name(ran.name)}")

    # The snapshot

    @property
    def _begin_options(self) -> Mapping[str, object]:
        ended = {"ended_run": self.state.ended_claim} if self.state.ended_claim else {}
        takeover = {"takeover": True} if self._services.takeover else {}
        known = expected_snapshots(self._run, self._before)
        least = {"min_free": self._run["min_free"]} if self._run["min_free"] else {}
        return {"run": self.state.claim, **ended, **takeover, **({"expects": known} if known else {}), **least}

    def _finish(self) -> Workflow:
        """Complete the snapshot, and do what follows in the same execution.

        Where it differs from the source, both are compared as after any transfer, which may send again what differs.
        """
        state = self.state
        if self._uncompared is not None:
            yield from self._complete(self._uncompared)
            uncompared, self._uncompared = self._uncompared, None  # until then this may be tried again
            if state.said.finish is None or not state.said.finish.differs:
                return
            state.stage = BackupStage.TRANSFER
            result = yield from transfer_again(uncompared, self._services.errors)
            self._account(result, state.transfers.pop().src)
            state.stage = BackupStage.FINISH
        yield from self._complete()

    def _complete(self, uncompared: Uncompared | None = None) -> Workflow:
        run, state = self._run, self.state
        expected = expect(state.transfers, len(run["sources"]), run["verify"], self._check)
        if self._check and (run["before"] or run["consistent"]):  # nothing has made the source
            expected = Expected(-1, -1)
        counted = {"expected_entries": expected.entries, "expected_bytes": expected.bytes}
        known = {name: count for name, count in counted.items() if count >= 0}
        limits = {"shrink_limit": run["shrink_limit"], "change_limit": run["change_limit"]}
        read_only = {"read_only": True} if run["read_only"] else {}
        options = {"run": state.claim, **limits, **read_only, **known}
        counts_new = {"counts_new": True} if self._check else {}
        yield from self._snapshots(uncompared, finish=options, list={}, prune={**self._prune_options, **counts_new})

    def _list(self) -> Workflow:
        """Ask what snapshots there are, and prune in the same execution, unless hooks before have failed.

        A full disk may be why the backup failed, and what the policy does not keep makes room for the next run.
        """
        if self.state.stage in (BackupStage.BEGIN, BackupStage.TRANSFER, BackupStage.FINISH):
            yield from self._snapshots(list={}, prune=self._prune_options)
        else:
            yield from self._snapshots(list={})

    def _prune(self) -> Workflow:
        yield from self._snapshots(prune=self._prune_options)

    @property
    def _prune_options(self) -> Mapping[str, object]:
        now = seconds_of(self._services.now())
        return {"keep": self._run["keep"], "timezone": self._run["timezone"], "control_time": now}

    # The copies

    @property
    def _made(self) -> list[str]:
        """The complete snapshots that the repository has now."""
        said = self.state.said
        removed = said.prune.removed if said.prune else []
        listed = said.list.snapshots if said.list else []
        return [one.name for one in listed if one.state == "complete" and one.name not in removed]

    def _copy(self) -> Workflow:
        """Copy the snapshots that lag. A copy that fails is no failure of the backup: its state says why."""
        services, run, state = self._services, self._run, self.state
        for copy in run["copies"]:
            known = copy_before(copy, self._before)
            try:
                hosts = self._reach().with_copy(copy)
            except HostFailed as error:
                state.copies.append(replace(known, error=str(error), failing_since=known.failing_since or state.at))
                continue
            one = CopyWorkflow(
                run, copy, hosts, services.transfer, services.errors, known, services.now, services.tell, self._check
            )
            self._copies.append(one)
            state.copies.append(known)
            makes_one = self._check and not state.has_failed
            yield from one.bring_up_to_date(
                self._made, makes_one, [each.described for each in self._copies if each.described]
            )
            self._keep_notes(one)

    def _keep_notes(self, copy: CopyWorkflow) -> None:
        self.state.notes += copy.notes
        self.changed = self.changed or copy.changed
        copy.notes = []

    def _check_contents(self) -> Workflow:
        """Check the repository and its copies, and repair damage of each by the others.

        Where this is tried again, nothing is checked again: that would find the damage to be known already.
        """
        run = self._run
        options = {"check_level": run["check_level"], "check_subset": run["check_subset"]}
        if self._damage is None:
            try:
                yield from self._snapshots(check=options)
                self._damage = ""
            except RepairableDamage as stopped:
                if not self._copies:
                    raise
                self._damage = str(stopped)
        if self._copies and not self._check:
            yield from self._repair(self._damage)
        elif self._damage:
            raise JobStopped(self._damage)
        for copy in self._copies:
            yield from copy.check_and_repair(self._made)
            self._keep_notes(copy)

    def _repair(self, damage: str) -> Workflow:
        """Repair the repository by its copies. Raises JobStopped with the new ``damage`` if any is left."""
        repaired: list[RepairedFile] = []
        for copy in self._copies:
            try:
                found: RepairedSnapshots = yield from stop_alone(copy.repair_first(self._reach()))
            except JobStopped as stopped:
                raise JobStopped(f"{damage}. {stopped}" if damage else str(stopped), stopped.may_pass) from stopped
            finally:
                self._keep_notes(copy)
            repaired += found.repaired
            if not found.left:
                break
        if not found.left:
            self.state.notes = without_repaired(self.state.notes)
        elif damage:
            repository = self._run["repository"]
            place = f"{repository['host']}:{repository['path']}"
            raise JobStopped(f"{damage}. {tell_wanted(place, found.wanted, found.left)}")
        checked = self.state.said.check or CheckedSnapshots(sound=True)
        self.state.said.check = replace(checked, checked={**checked.checked, "repaired": len(repaired)})

    # The drill

    @property
    def _is_drill_due(self) -> bool:
        last = self._before.drill if self._before else None
        return is_due(self._run["drill"], last, seconds_of(self.state.at) or 0, self._services.drills_only)

    def _drill(self) -> Workflow:
        """Practise a restore. A drill that a file of tasks has interrupted goes on behind it."""
        state, settings = self.state, self._run["drill"]
        drill = self._services.drill(self._run)
        if drill is None or settings is None:
            return
        if self._check:
            yield from stop_alone(drill.predict(drill.new_record(state.at, None)))
            return
        try:
            if state.drill is None or not state.drill.restored:
                state.drill = drill.new_record(state.at, self._before.drill if self._before else None)
                self._save()
                yield from stop_alone(drill.restore(state.drill))
            if settings.validate:
                yield from stop_alone(self._validate(drill, settings.validate))
            yield from stop_alone(drill.remove(state.drill))
        except JobStopped as stopped:
            if state.drill is not None:
                state.drill.failure = str(stopped)
            raise
        state.drill.succeed()

    def _validate(self, drill: RestoreDrill, written: Mapping[str, Any]) -> Workflow:
        """Run the user's check of what was restored, in which ``{folder}`` stands for its path. Raises JobStopped."""
        record = self.state.drill
        if record is None:
            return
        folder = drill.tree_of(record)
        sockets = drill.sockets_of(record)
        hook = fill_in(written, folder, sockets)
        own = {"host": hook.get("host") or record.host, "folder": folder, "sockets": sockets}
        try:
            yield from self._run_hook("drill", {**hook, **own})
        except JobStopped as stopped:
            self._end_hook("failed")
            left = yield from drill.keep(record)
            raise JobStopped(
                f"the validation of what was restored from {record.snapshot} failed: {stopped}. The snapshot stays. "
                f"{left}"
            ) from None
        self._end_hook("done")
        record.validated = True

    def _snapshots(self, uncompared: Uncompared | None = None, **wishes: Mapping[str, object]) -> Workflow:
        """Do something with the snapshots, by action with its options, and keep the answers."""
        try:
            hosts = self._reach()
            checks = bool(self._run["check_subset"])
            is_last = next(iter(wishes), "") in ("finish", "check") and ("check" in wishes) == checks
            is_last = is_last and not self._is_drill_due and not self._run["copies"]
            answers = yield Call(partial(hosts.snapshots, wishes, self._check, uncompared, is_last))
        except HostFailed as error:
            host = self._run["repository"]["host"]
            reason = f"{host} cannot be reached: {error.reason}" if error.unreachable else error.reason
            raise stopped_by(error, reason) from error
        self._keep(answers)

    def _keep(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what was said of the snapshots."""
        for answer in answers.values():
            self.changed = self.changed or answer["changed"]
            self.state.notes += answer["warnings"]
            self.diff += answer["diff"]
        self.state.said.update(answers)

    def _reach(self) -> BackupHosts:
        """Return the hosts. Raises HostFailed if one is described wrongly."""
        if self._hosts is None:
            self._hosts = self._services.hosts(self._run)
        return self._hosts

    # Consistent sources

    def _prepare(self) -> Workflow:
        """Have the client make the consistent sources."""
        run, preparation = self._run, self._run["consistent"]
        if preparation is None:
            return
        self.state.prepared = True
        self._save()
        try:
            client = self._reach().runners["source"]
            reason = yield from prepare(preparation, client, run["repository"]["host"], self._tell)
        except HostFailed as error:
            raise JobStopped(str(error), error.unreachable, isinstance(error, LeaseLost)) from error
        if reason:
            raise JobStopped(f"{run['host']}: {reason}")
        self.changed = True

    def _tell(self, line: str) -> None:
        self._services.tell(f"{self._run['id']}: {line}")

    def _undo(self) -> Workflow:
        """Have the client remove the consistent sources. Where that is not certain, the snapshot is not completed."""
        try:
            yield from self._retry(self._end_preparation)
        except JobStopped:
            if self.state.stage is BackupStage.FILLED:
                self.state.stage = BackupStage.TRANSFER
            raise

    def _end_preparation(self) -> Workflow:
        """Have the client remove the sources. Raises JobStopped if it had none of them until all had arrived."""
        host, state, preparation = self._run["host"], self.state, self._run["consistent"]
        if preparation is None or not state.prepared:
            return
        try:
            ended = yield Call(partial(end_holder, self._reach().runners["source"], preparation.folder))
        except HostFailed as error:
            why = (
                f"{error}. It is not known whether {host} had the consistent sources until all had arrived, so the "
                "snapshot is not completed. It removes them on its own, "
                f"{preparation.undo_after:.0f} s after they were read last"
            )
            raise JobStopped(why, error.unreachable, isinstance(error, LeaseLost)) from error
        state.prepared = False
        if ended.failure:
            state.failures.append(StepFailure(UNDO, f"{host}: {ended.failure}"))
        self._save()
        if state.stage is BackupStage.FILLED and not ended.was_held:
            raise JobStopped(
                f"{host} did not have the consistent sources until all had arrived, so they may be missing in the "
                "snapshot, which is not completed. Its job was killed, or it waited for longer than "
                "consistent_timeout: run the backup again"
            )

    # The transfers

    def _transfer(self) -> Workflow:
        """Transfer all paths. Where it is made again, those that have arrived stay as they are."""
        for source in self._run["sources"][len(self.state.transfers) :]:
            yield from self._transfer_path(job_of(self._run, source, self._check), source)
        self.state.stage = BackupStage.FILLED

    def _transfer_path(self, job: Mapping[str, Any], source: Source) -> Generator[Any, Any, None]:
        """Transfer one path.

        Changes at the source after the transfer began are not a failure: the next backup has them. A snapshot of a tree
        in use has each file as it was at some moment.
        """
        try:
            hosts = self._reach()
        except HostFailed as error:
            raise JobStopped(str(error)) from error
        is_begun = self.state.said.begin is not None
        begin = None if is_begun else self._begin_options
        # What comes after the transfer may take away what a comparison with the source needs.
        part = source["part"]
        compares = not part and not self._run["after"] and not self._run["consistent"]
        filling = Filling(hosts, self._run, part, begin, self._check, compares, self._keep_begun)
        if is_begun:
            self.state.stage = BackupStage.TRANSFER
        transfers: list[Transfer] = []

        def make() -> Transfer:
            transfers.append(self._services.transfer(job, hosts, filling))
            return transfers[0]

        result, begun, may_pass = yield from transfer_to_end(job, make, self._services.errors)
        if self.state.stage is BackupStage.BEGIN:
            host = self._run["repository"]["host"]
            reason = result["msg"].removeprefix(f"{host}: ")
            is_held = bool(result.get("busy") or result.get("lease_lost"))
            raise JobStopped(f"{host} cannot be reached: {reason}" if may_pass else reason, is_held=is_held)
        self._has_met = self._has_met or begun
        self._account(result, source["src"], may_pass and self._has_met)
        self._uncompared = transfers[0].uncompared

    def _keep_begun(self, answers: Mapping[str, Mapping[str, Any]]) -> BegunSnapshot:
        self.state.stage = BackupStage.TRANSFER
        self._keep(answers)
        return self.state.said.begin or BegunSnapshot("")

    def _account(self, result: Mapping[str, Any], src: str, may_pass: bool = False) -> None:
        """Keep what became of a transfer. Raises JobStopped if it failed."""
        self.changed = self.changed or bool(result.get("changed"))
        self.diff += result.get("changes") or []
        # No hook has made the source in check mode.
        tolerates = ("differs", "missing") if self._check and self._run["before"] else ("differs",)
        if result.get("failed") and tell_changes(result)["only"] not in tolerates:
            raise JobStopped(result["msg"], may_pass)
        self.state.transfers.append(read_transfer(result, src))
        self.state.notes += tell_notes(result, src)
