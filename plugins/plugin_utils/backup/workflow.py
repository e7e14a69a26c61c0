# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workflow of a backup: one job for one host, from its claim to its record.

    claim -> hooks before -> begin and transfer -> hooks after -> finish, list and prune -> check -> record -> release

The table in ``steps`` decides which steps are left, also after a failure: the hooks after and the record always are.
The scheduler in ``fleet/scheduler`` runs the workflows of all backups. Hooks that are files of tasks are run by the
role, between the parts of a workflow; a backup without them is made as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from ..fleet.claims import Held, Process, claim, release
from ..fleet.scheduler import Call, Workflow
from ..fleet.source_changes import tell_changes
from ..fleet.workflow import Stopped, Transfer, hook_to_end, retry, stop_alone, transfer_again, transfer_to_end
from ..hooks import Hook, read_hook, tell_hook
from ..host_runner import HostFailed, HostRunner
from ..host_text import harmless_data
from ..session import Uncompared
from ..task_failure import tell_failure
from ..units import seconds_of
from .hosts import Filling, Hosts
from .jobs import Run
from .progress import Progress
from .record import Record, make_record
from .stages import HOOKS_AFTER, Event, Stage
from .steps import Step, decide, event_of
from .store import Store
from .transfers import account, expect, job_of


class Part(Enum):
    """What a life makes of a backup."""

    WHOLE = "whole"
    BEGIN = "begin"  # before the hooks before
    FILL = "fill"  # between the hooks
    COMPLETE = "complete"  # after the hooks after


_COMPLETE = (Step.FINISH, Step.LIST, Step.PRUNE, Step.CHECK, Step.RECORD, Step.RELEASE)
STEPS: Mapping[Part, tuple[Step, ...]] = {
    Part.WHOLE: tuple(Step),
    Part.BEGIN: (Step.CLAIM, Step.BEGIN),
    Part.FILL: (Step.TRANSFER,),
    Part.COMPLETE: _COMPLETE,
}
_STAGES: Mapping[Step, Stage] = {
    Step.CLAIM: Stage.BEGIN,
    Step.BEGIN: Stage.BEGIN,
    Step.HOOKS_BEFORE: Stage.HOOKS_BEFORE,
    Step.FINISH: Stage.FINISH,
    Step.PRUNE: Stage.PRUNE,
    Step.CHECK: Stage.CHECK,
}


class Services(NamedTuple):
    """What a life uses of the outside."""

    hosts: Callable[[Run], Hosts]
    hook_runner: Callable[[str, Hook], HostRunner]
    transfer: Callable[[Mapping[str, Any], Hosts, Filling], Transfer]  # of a path, as transfers.job_of has it
    errors: tuple[type[Exception], ...]  # that a transfer may raise, with ``details`` for its result, or without
    store: Store
    process: Process  # that makes the backups
    now: Callable[[], str]  # UTC, as records have it
    tell: Callable[[str], None]  # a line for the terminal
    report: Callable[[Record], None]  # shows what became of a backup


class BackupWorkflow:
    """What one run does for one backup, or a part of it."""

    def __init__(
        self,
        run: Run,
        progress: Progress,
        services: Services,
        part: Part = Part.WHOLE,
        before: Record | None = None,
        makes_source: bool = False,
    ) -> None:
        """Take the run, how far it is, and the record ``before`` this one.

        ``makes_source``: tasks of the role may make what is backed up. Hooks do not in check mode.
        """
        self._hooks: Mapping[Step, list[Any]] = {Step.HOOKS_BEFORE: run["before"], Step.HOOKS_AFTER: run["after"]}
        makes_source = makes_source or bool(run["before"])
        self.progress = progress
        self.record: Record | None = None
        self.changed = False
        self.diff: list[str] = []
        self.step = Step.CLAIM  # the one that it is at
        self._run, self._services, self._part, self._before = run, services, part, before
        self._check = not services.store.writes
        self._tolerates = ("differs", "missing") if self._check and makes_source else ("differs",)
        self._hosts: Any = None  # once a step needs them
        self._has_met = False  # both hosts were reached in this life
        self._uncompared: Uncompared | None = None

    def run(self) -> Workflow:
        """Make the steps of this part that are left, one after the other."""
        try:
            for step in STEPS[self._part]:
                if step in self.left and not self._is_idle(step):
                    self.step = step
                    self.progress.stage = _STAGES.get(step, self.progress.stage)
                    try:
                        yield from stop_alone(self._make(step))
                    except Stopped as stopped:
                        self._note_failure(step, str(stopped))
        finally:
            if self._hosts is not None:
                self._hosts.close()

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that are left of the backup, as it is now; of all parts, and of the hooks."""
        return decide(self.progress, self._run["check_subset"])

    def _is_idle(self, step: Step) -> bool:
        """Whether a step has nothing to do. Without hooks before it, the transfer begins the snapshot."""
        if step in (Step.HOOKS_BEFORE, Step.HOOKS_AFTER):
            return not self._hooks[step]
        return step is Step.BEGIN and self._part is Part.WHOLE and not self._hooks[Step.HOOKS_BEFORE]

    def _make(self, step: Step) -> Workflow:
        made: dict[Step, Callable[[], Workflow]] = {
            Step.BEGIN: self._begin,
            Step.HOOKS_BEFORE: partial(self._run_hooks, Step.HOOKS_BEFORE),
            Step.HOOKS_AFTER: partial(self._run_hooks, Step.HOOKS_AFTER),
            Step.TRANSFER: self._transfer,
            Step.FINISH: self._finish,
            Step.LIST: partial(self._snapshots, list={}),
            Step.PRUNE: lambda: self._snapshots(prune=self._prune_options),
            Step.CHECK: self._check_contents,
        }
        if step is Step.CLAIM:
            self._claim()
        elif step is Step.RECORD:
            self._record()
        elif step is Step.RELEASE:
            self._release()
        elif self._may_repeat(step):
            yield from retry(self._run["id"], made[step], self._services.tell)
        else:
            yield from made[step]()

    def _may_repeat(self, step: Step) -> bool:
        """Whether a step is tried again after a failure that may pass.

        A host that this run has not reached yet may be named wrongly, and what a hook stopped must not wait.
        """
        if self._part is not Part.WHOLE or any(self._hooks.values()) or step is Step.BEGIN:
            return False
        return event_of(self.progress) is Event.ENTERED

    def _note_failure(self, step: Step, reason: str) -> None:
        """Note why a step stopped. What is only asked after another failure is none of its own."""
        if step is Step.LIST and event_of(self.progress) is not Event.ENTERED:
            self._services.tell(f"{self._run['id']}: the snapshots cannot be listed: {reason}")
        else:
            self.progress.fail(HOOKS_AFTER if step is Step.HOOKS_AFTER else self.progress.stage.value, reason)

    # The claim, and the record

    def _claim(self) -> None:
        try:
            taken = claim(self._claim_path, self._services.process, "making this backup", write=not self._check)
        except Held as held:
            raise Stopped(str(held)) from None
        self.progress.run, self.progress.ended_run = taken.run, taken.ended_run

    def _release(self) -> None:
        if not self._check:
            release(self._claim_path, self._services.process)

    @property
    def _claim_path(self) -> str:
        return self._services.store.claim_path(self._run["id"])

    def _record(self) -> None:
        progress = self.progress
        self.record = make_record(
            self._run,
            at=progress.at,
            ended=self._services.now(),
            failures=progress.failures,
            notes=progress.notes,
            said=progress.said,
            transfers=progress.transfers,
            before=self._before,
        )
        self._services.store.save(self.record)
        self._services.report(self.record)

    # Hooks

    def _run_hooks(self, step: Step) -> Workflow:
        """Run the hooks of a list, up to one that fails: raises Stopped. None runs in check mode."""
        for written in self._hooks[step] if not self._check else ():
            host = {"client": self._run["host"], "repository": self._run["repository"]["host"]}
            hook = read_hook({**written, "host": host.get(written.get("host", "client"), written.get("host"))})
            told = tell_hook(written, host=hook.host)
            self._services.tell(
                f"{self._run['id']}: {step.value.replace('hooks_', 'hook ')} on {hook.host}: {told['name']}"
            )
            result = yield from hook_to_end(hook, hook.host, self._services.hook_runner)
            self.changed = self.changed or result.changed
            if result.failed:
                said = harmless_data({**result._asdict(), "cmd": list(hook.command)})
                raise Stopped(tell_failure(said, hook=told))
            rc = "" if result.rc is None else f" (rc {result.rc})"
            self._services.tell(f"{self._run['id']}: ended{rc}: {told['name']}")

    # The snapshot

    def _begin(self) -> Workflow:
        yield from self._snapshots(begin=self._begin_options)

    @property
    def _begin_options(self) -> Mapping[str, object]:
        ended = {"ended_run": self.progress.ended_run} if self.progress.ended_run else {}
        return {"run": self.progress.run, **ended}

    def _finish(self) -> Workflow:
        """Complete the snapshot, and do what follows in the same execution.

        Where it differs from the source, both are compared as after any transfer, which may send again what differs.
        """
        if self._uncompared is not None:
            uncompared, self._uncompared = self._uncompared, None
            yield from self._complete(uncompared)
            if not self.progress.said["finish"].get("differs"):
                return
            self.progress.stage = Stage.TRANSFER
            result = yield from transfer_again(uncompared, self._services.errors)
            self._account(result, self.progress.transfers.pop()["src"])
            self.progress.stage = Stage.FINISH
        yield from self._complete()

    def _complete(self, uncompared: Uncompared | None = None) -> Workflow:
        run = self._run
        expected = expect(self.progress.transfers, len(run["sources"]), run["verify"], self._check)
        counted = {"expected_entries": expected.entries, "expected_bytes": expected.bytes}
        known = {name: count for name, count in counted.items() if count >= 0}
        options = {"run": self.progress.run, "shrink_limit": run["shrink_limit"], **known}
        yield from self._snapshots(uncompared, finish=options, list={}, prune=self._prune_options)

    @property
    def _prune_options(self) -> Mapping[str, object]:
        now = seconds_of(self._services.now())
        return {"keep": self._run["keep"], "timezone": self._run["timezone"], "control_time": now}

    def _check_contents(self) -> Workflow:
        run = self._run
        yield from self._snapshots(check={"check_level": run["check_level"], "check_subset": run["check_subset"]})

    def _snapshots(self, uncompared: Uncompared | None = None, **wishes: Mapping[str, object]) -> Workflow:
        """Do something with the snapshots, by action with its options, and keep the answers."""
        try:
            hosts = self._reach()
            answers = yield Call(partial(hosts.snapshots, wishes, self._check, uncompared))
        except HostFailed as error:
            host = self._run["repository"]["host"]
            reason = f"{host} cannot be reached: {error.reason}" if error.unreachable else error.reason
            raise Stopped(reason, error.unreachable) from error
        self._keep(answers)

    def _keep(self, answers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        """Keep what was said of the snapshots; return what is known of the one that was begun."""
        for action, answer in answers.items():
            said = dict(answer)
            self.changed = self.changed or said.pop("changed")
            self.progress.notes += said.pop("warnings")
            self.diff += _changed_lines(said.pop("diff"))
            self.progress.said[action] = said
        return self.progress.said.get("begin", {})

    def _reach(self) -> Hosts:
        """Return the hosts. Raises HostFailed if one is described wrongly."""
        if self._hosts is None:
            self._hosts = self._services.hosts(self._run)
        hosts: Hosts = self._hosts
        return hosts

    # The transfers

    def _transfer(self) -> Workflow:
        """Transfer all paths. Where it is made again, those that have arrived stay as they are."""
        for source in self._run["sources"][len(self.progress.transfers) :]:
            yield from self._transfer_path(job_of(self._run, source), source["part"])
        self.progress.stage = Stage.FILLED

    def _transfer_path(self, job: Mapping[str, Any], part: str) -> Generator[Any, Any, None]:
        """Transfer one path.

        Changes at the source after the transfer began are not a failure: the next backup has them. A snapshot of a tree
        in use has each file as it was at some moment.
        """
        try:
            hosts = self._reach()
        except HostFailed as error:
            raise Stopped(str(error)) from error
        is_begun = "begin" in self.progress.said
        begin = None if is_begun else self._begin_options
        # Hooks after the transfer may take away what a comparison with the source needs.
        compares = self._part is Part.WHOLE and not part and not self._hooks[Step.HOOKS_AFTER]
        filling = Filling(hosts, self._run, part, begin, self._check, compares, self._keep_begun)
        if is_begun:
            self.progress.stage = Stage.TRANSFER
        transfers: list[Transfer] = []

        def make() -> Transfer:
            transfers.append(self._services.transfer(job, hosts, filling))
            return transfers[0]

        result, begun, may_pass = yield from transfer_to_end(job, make, self._services.errors)
        if self.progress.stage is Stage.BEGIN:
            host = self._run["repository"]["host"]
            reason = result["msg"].removeprefix(f"{host}: ")
            raise Stopped(f"{host} cannot be reached: {reason}" if may_pass else reason)
        self._has_met = self._has_met or begun
        self._account(result, job["src"], may_pass and self._has_met)
        self._uncompared = transfers[0].uncompared

    def _keep_begun(self, answers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        self.progress.stage = Stage.TRANSFER
        return self._keep(answers)

    def _account(self, result: Mapping[str, Any], src: str, may_pass: bool = False) -> None:
        """Keep what became of a transfer. Raises Stopped if it failed."""
        self.changed = self.changed or bool(result.get("changed"))
        self.diff += result.get("changes") or []
        if result.get("failed") and tell_changes(result)["only"] not in self._tolerates:
            raise Stopped(result["msg"], may_pass)
        figures, notes = account(result, src)
        self.progress.transfers.append(figures)
        self.progress.notes += notes


def _changed_lines(diff: Any) -> list[str]:
    """Return the difference that the module snapshot shows: the names in the folder of a job and their states."""
    if not isinstance(diff, Mapping) or diff.get("before") == diff.get("after"):
        return []
    before, after = (str(diff.get(when) or "").splitlines() for when in ("before", "after"))
    gone = [f"-{line}" for line in before if line not in after]
    return gone + [f"+{line}" for line in after if line not in before]
