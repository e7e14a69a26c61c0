# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run knows of a job, keeps of it, and asks of its hosts, whichever part of its life it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ..fleet.scheduler import Workflow
from ..fleet.source_changes import tell_changes
from ..fleet.workflow import Stopped, Transfer, retry, transfer_to_end
from ..host_runner import HostFailed
from .hosts import Hosts
from .record import make_record
from .report import make_report
from .steps import Decision, Phase, Step, decide
from .store import Store
from .transfers import comparison_of, summary_of

COMPARED = ("verify", "verify_failed")  # what is kept of a comparison, by what it found


class Options(NamedTuple):
    """What a run wants of all jobs. The role's variables have the same names, see its argument specs."""

    phase: Phase
    steps: Collection[Step]  # those that the user's tags leave
    started_by: str = ""
    check_mode: bool = False
    installs: bool = True
    predicts: bool = True
    reset: bool = False
    may_delete: Collection[str] = ()  # names of jobs, or all
    short_enough: float = 300
    max_passes: int = 5
    takeover: bool = False  # of jobs that another control node works on
    run_id: str = ""  # what the jobs of a group know by that they are in the same run
    has_hooks: bool = True  # the role has hooks for all jobs
    compares_first: bool = True  # trees are compared before the switch


class Services(NamedTuple):
    """What a job's work uses of the outside."""

    hosts: Callable[[Mapping[str, Any]], Hosts]
    # of a job and its hosts, in check mode or not, with a limit of deletions; whether one that has ended is collected
    # and what it compares at its end
    transfer: Callable[[Mapping[str, Any], Hosts, bool, int | None, bool, str], Transfer]
    # of the trees of a job as its state knows them; waits for its hosts, and returns what the module verify does
    compare: Callable[[Mapping[str, Any], Hosts, Mapping[str, Any]], Mapping[str, Any]]
    errors: tuple[type[Exception], ...]  # that these may raise, with ``details`` for the result, or without
    store: Store
    now: Callable[[], str]  # UTC, as reports have it
    tell: Callable[[str], None]  # a line for the terminal
    report: Callable[[Mapping[str, Any]], None]  # writes the report of a job and shows it
    # claims a job by its name, or returns why another run here has it; and lets others have it, once its destination
    # has kept a record of it, unless that is None
    claim: Callable[[str], str] = lambda _job: ""
    release: Callable[[str, Mapping[str, object] | None], None] = lambda _job, _record: None


class Failure(NamedTuple):
    """Why a run did not do what it was to do with a job."""

    job: str
    phase: str
    reason: str
    next: str


@dataclass
class Record:
    """What a run did with a job."""

    name: str
    changed: bool = False
    failure: Failure | None = None
    diff: list[str] = field(default_factory=list)
    untouched: bool = False  # it is another run's, so no hook may run


class Differs(Stopped):
    """The comparison at the end of a transfer found differences, which did not go away when they were sent again."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        """Take the result of the transfer."""
        super().__init__(result["msg"])
        self.result = result


class JobWork:
    """What one run does with one job."""

    def __init__(self, job: Mapping[str, Any], options: Options, services: Services) -> None:
        self.record = Record(job["name"])
        self._job, self._options, self._services = job, options, services
        self.state: dict[str, Any] = {}  # empty if it could not be read
        self._warnings: list[str] = []
        self._hosts: Any = None  # once a step needs them
        self.step = Step.PREFLIGHT  # that is made now, or was made last

    def live(self) -> Workflow:
        """Do it."""
        raise NotImplementedError

    @property
    def _lost(self) -> str:
        """Why the job is another control node's, if it is."""
        lease = self._hosts.lease if self._hosts is not None else None
        return lease.lost if lease is not None else ""

    @property
    def _verify(self) -> str:
        """How the trees are compared: by checksum or size, or none."""
        return str(self._job.get("verify") or "checksum")

    def _decide(self) -> Decision:
        """Return what is left for this run, by the state as it is now."""
        compares = self._verify != "none"
        return decide(self.state, self._options.phase, compares=compares, check_mode=self._options.check_mode)

    def _load(self, name: str) -> Mapping[str, Any]:
        """Return what is kept of a job. Raises Stopped if that cannot be read."""
        store = self._services.store
        try:
            return store.read(name)
        except (OSError, ValueError) as error:
            raise Stopped(
                f"{store.state_path(name)} cannot be read: {error}. Restore it, or remove it to begin the job again"
            ) from None

    def _reach(self) -> None:
        if self._hosts is None:
            try:
                self._hosts = self._services.hosts(self._job)
            except HostFailed as error:
                raise Stopped(str(error)) from error

    def _persist(self, step: Callable[[], Workflow], most: int | None = None) -> Workflow:
        """Make a step, and make it again after a failure that may have passed, ``most`` times."""
        return retry(self._job["name"], step, self._services.tell, most)

    # Transfers

    def _transfer(
        self, check: bool = False, limit: int | None = None, tolerates: Collection[str] = (), collect: bool = False
    ) -> Generator[Any, Any, Mapping[str, Any]]:
        """Make a transfer to its end and return what is kept of it; see _transferred."""
        result = yield from self._transferred(check, limit, tolerates, collect)
        return summary_of(result, self._services.now())

    def _transferred(
        self,
        check: bool = False,
        limit: int | None = None,
        tolerates: Collection[str] = (),
        collect: bool = False,
        verify: str = "none",
    ) -> Generator[Any, Any, Mapping[str, Any]]:
        """Make a transfer to its end and return its result. Raises Stopped if it fails.

        What changes at the source while it is read is a failure only if ``tolerates`` does not have it (see
        source_changes). With ``collect`` the result of one that has ended since an earlier run counts. ``verify`` is
        the comparison at its end.
        """
        services = self._services
        predicts = check or self._options.check_mode

        def make() -> Transfer:
            transfer = services.transfer(self._job, self._hosts, predicts, limit, collect, verify)
            if not predicts:
                self._hosts.keep(self._made_record())
            return transfer

        result, _begun, may_pass = yield from transfer_to_end(self._job, make, services.errors)
        changes = tell_changes(result)
        if not check or self._options.check_mode:  # the preflight of a real run predicts for itself only
            self.record.changed = self.record.changed or bool(result.get("changed"))
            self.record.diff += result.get("changes", [])
        if result.get("failed") and (self._lost or changes["only"] not in tolerates):
            if result.get("differences_total"):
                raise Differs(result)
            raise Stopped(result["msg"], may_pass and not self._lost)
        self._warn(changes["warnings"])
        return result

    def _final_pass(self, compares: bool) -> Workflow:
        """Bring what is left to the destination, and ``compares``: the trees, and send again what differs.

        The source is in no service any more, so what changes there meanwhile is a failure.
        """
        services = self._services
        # A comparison of an earlier, failed cutover says nothing about this one.
        self._forget(*COMPARED)
        verify = self._verify if compares or self._verify == "none" else "size"
        try:
            result = yield from self._transferred(verify=verify)
        except Differs as differs:
            self.step = Step.VERIFY
            self._keep("verify_failed", comparison_of(differs.result, verify, services.now()))
            raise
        summary = summary_of(result, services.now())
        changed = summary["changed_meanwhile"]
        if changed["only"] == "differs":
            raise Stopped(
                f"{entries_text(changed['count'])} changed at the source during the transfer, for example "
                f"{changed['example']}: something still writes there. Stop it (hooks in before_cutover do so), and run "
                "the same command again"
            )
        self._keep("cutover", summary)
        if compares and verify != "none":
            self._keep("verify", comparison_of(result, verify, summary["at"]))

    # State

    def _keep(self, phase: str, found: Mapping[str, Any]) -> None:
        self.state["phases"] = {**self.state["phases"], phase: dict(found)}

    def _warn(self, warnings: Collection[str]) -> None:
        self._warnings = list(dict.fromkeys([*self._warnings, *warnings]))

    def _warn_unkept(self) -> None:
        """Warn if the destination did not keep the last record that it was given."""
        if self._hosts is not None and self._hosts.not_kept:
            self._warn([f"{self._job['dest_host']} keeps no record of this job: {self._hosts.not_kept}"])

    def _note_switched(self, now: str) -> None:
        """Note that the destination serves, by whoever runs this."""
        begun = {"hooks": [], "steps": 0, **self.state["switch"]}
        self.state["switch"] = {**begun, "done": True, "at": now, "by": self.state["run"]["by"]}

    def _save(self) -> None:
        self._services.store.save(self._job["name"], self._saved)

    def _note_failure(self, reason: str, lost: bool) -> None:
        """Note why the step at hand failed; ``lost``: another control node has the job."""
        failure = {"phase": self.step.value, "at": self._services.now(), "reason": reason}
        self.state["failure"] = {**failure, **({"lost": True} if lost else {})}

    def _forget(self, *phases: str) -> None:
        self.state["phases"] = {name: one for name, one in self.state["phases"].items() if name not in phases}

    def _made_record(self, advised: str = "") -> Mapping[str, object]:
        """Return what the destination is to keep of the job as it is now."""
        return make_record(self.state, self.step.value, self._services.now(), advised)

    @property
    def _saved(self) -> Mapping[str, Any]:
        if self._hosts is not None and self._hosts.has_kept:
            self.state["kept"] = True  # so that a run notices where it is gone
        if self._hosts is not None and self._hosts.lease is not None and self._hosts.lease.told:
            notes = dict.fromkeys([*self.state["run"]["notes"], self._hosts.lease.told])
            self.state["run"] = {**self.state["run"], "notes": list(notes)}
        return {**self.state, "warnings": self._warnings, "hooks": self.state.get("hooks", [])}

    def _report(self, predicted: Mapping[str, Any] = MappingProxyType({}), deletions: str = "") -> None:
        self._warn_unkept()
        self._save()
        report = make_report(self._saved, self._warnings, self._options.check_mode, predicted, deletions)
        self._services.report(report)
