# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of a migration: what the action was given becomes lives of jobs, which a conductor drives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from ..ansible_process import ansible_pid
from ..endpoint import Refusal
from ..fleet.claims import Held, process_of
from ..fleet.controller import Claims, controller_id
from ..fleet.driving import WORDS, drive, pair_of
from ..fleet.keeper import Keeper
from ..fleet.lease import Lease, Terms
from ..fleet.limits import check_pairs, parse_limits
from ..fleet.queue import Waiting, rank
from ..fleet.sessions import FAILURES, session_of
from ..fleet.snapshot import Publisher
from ..fleet.telling import Teller
from ..host_runner import HostRunner
from ..interruption import Interruption
from ..memory import Memory
from ..session import Session
from ..tags import is_wanted
from ..units import now_text
from .hosts import Hosts
from .life import STEPS, JobLife, Options, Services
from .record import record_id
from .render import render_report, render_summary
from .stages import HOOKS, firmness
from .steps import Phase, Step
from .store import Store

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase

_LIMITS = "migrate_limits"


class JobRecord(TypedDict):
    """What the role's tasks need to know of a job."""

    name: str
    dest_host: str
    changed: bool
    left: bool  # the role has more to do with it in this run
    failure: dict[str, str]  # empty if it did not fail
    switched: bool  # by this run or an earlier one
    totals: dict[str, int]  # of all transfers; empty if there is no report of this run


class Run:
    """One task of the role with all its jobs."""

    def __init__(
        self,
        action: ActionBase,
        options: Mapping[str, Any],
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        interruption: Interruption,
        write: bool,
    ) -> None:
        """Take the action, its options, the variables of its task, where lines go, and the last words.

        Without ``write`` (check mode) all is predicted.
        Raises LimitError for limits that make no sense, Refusal if this control node cannot be told from others, and
        OSError.
        """
        self._action, self._options, self._variables = action, options, variables
        self._say, self._interruption = say, interruption
        self._check = not write
        self._jobs = {job["name"]: {**options["defaults"], **job} for job in options["jobs"]}
        self._limits = parse_limits(options["limits"], _LIMITS)
        self._memory = Memory()
        self._store = Store(options["folder"], writes=not self._check)
        self._lives: dict[str, JobLife] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._teller = Teller(say, time.monotonic, len(self._jobs), self._phase_of, Publisher())
        self._runner = partial(HostRunner, action, task_vars=variables)
        try:
            self._controller = controller_id(options["folder"], write=write)
        except ValueError as error:
            raise Refusal(str(error)) from None
        self._claims = Claims(options["folder"], process_of(ansible_pid()))
        self._keeper = Keeper(self._runner)
        self.diffs: dict[str, list[str]] = {}
        self.hints: list[str] = []  # what only holds for the last pass, which a person should know

    def conduct(self) -> list[JobRecord]:
        """Drive all jobs, and return what was done with each, in the order of the list."""
        pairs = {
            name: pair_of(job, job["src_host"], job["dest_host"], self._variables) for name, job in self._jobs.items()
        }
        check_pairs(pairs, self._limits, _LIMITS)
        jobs = [
            Waiting(rank(int(self._jobs[name].get("priority") or 0), self._size(name), number), name, pair)
            for number, (name, pair) in enumerate(pairs.items())
        ]
        lives = {name: JobLife(job, self._run_options(), self._services()) for name, job in self._jobs.items()}
        self._lives = lives
        self._interruption.words = WORDS
        by_name = {name: partial(self._live, life) for name, life in lives.items()}
        try:
            drive(by_name, jobs, self._limits, self._variables, self._teller.progress, self._keeper)
        finally:
            self._keeper.close()
            self._teller.close()
        self.diffs = {name: life.record.diff for name, life in lives.items()}
        return [self._record(life) for life in lives.values()]

    def _phase_of(self, name: str) -> str:
        return self._lives[name].step.value

    def _live(self, life: JobLife) -> Any:
        yield from life.live()
        self._teller.ended(life.record.failure is not None)

    def _record(self, life: JobLife) -> JobRecord:
        """Return what the role's tasks need to know of a job."""
        record, state = life.record, life.state
        return {
            "name": record.name,
            "dest_host": self._jobs[record.name]["dest_host"],
            "changed": record.changed,
            "left": life.goes_on,
            "failure": record.failure._asdict() if record.failure else {},
            "switched": bool(state and state["switch"].get("done")),
            "totals": self._totals.get(record.name, {}),
        }

    def _run_options(self) -> Options:
        options, run, skip = self._options, self._tags("ansible_run_tags"), self._tags("ansible_skip_tags")
        return Options(
            phase=Phase(options["phase"]),
            check_mode=self._check,
            steps={step for step in (*STEPS, Step.CUTOVER) if is_wanted([f"migrate_{step.value}"], run, skip)},
            installs=options["manage_packages"] and is_wanted(["migrate_preflight", "migrate_packages"], run, skip),
            predicts=options["preflight_predict"],
            reset=options["reset"],
            may_delete=options["allow_delete"],
            short_enough=options["sync_short_enough"],
            max_passes=options["sync_max_passes"],
            started_by=options["started_by"],
            takeover=options["takeover"],
            run_id=options["run_id"],
            # As they were written: what a hook is made of may not be known before it runs.
            has_hooks=any(self._variables.get(f"migrate_{kind}") for kind in HOOKS),
            compares_first=options["verify_when"] == "before_switch",
        )

    def _tags(self, name: str) -> list[str]:
        return list(self._variables.get(name) or (["all"] if name == "ansible_run_tags" else []))

    def _services(self) -> Services:
        return Services(
            hosts=self._hosts,
            transfer=self._transfer,
            errors=FAILURES,
            store=self._store,
            now=now_text,
            tell=self._teller.note,
            report=self._report,
            claim=self._claim,
            release=self._release,
        )

    def _hosts(self, job: Mapping[str, Any]) -> Hosts:
        """Return both hosts of a job, with its lease unless nothing may change."""
        options = self._options
        terms = Terms(
            job=job["name"],
            host=job["dest_host"],
            identity=record_id(job),
            holder=self._controller,
            who=options["started_by"],
            life=options["lease_seconds"],
            takeover=options["takeover"],
        )
        if self._check or Phase(options["phase"]) is Phase.PREFLIGHT:  # which change nothing, not even a lease
            return Hosts(job, self._runner, terms)
        lease = Lease(terms, firmness(self._lives[job["name"]].state, options["reset"]))
        self._keeper.add(job["name"], lease)
        return Hosts(job, self._runner, terms, lease)

    def _claim(self, job: str) -> str:
        """Claim a job against other runs here; return which one has it, empty if none does."""
        try:
            self._claims.take(job)
        except Held as held:
            return str(held)
        return ""

    def _release(self, job: str) -> None:
        """Let other runs have a job, here and elsewhere."""
        self._claims.release(job)
        self._keeper.release(job)

    def _transfer(
        self, job: Mapping[str, Any], hosts: Hosts, check: bool, limit: int | None, collect: bool, verify: str
    ) -> Session:
        """Return a transfer of a job as its session; ``limit`` is the role's own limit of deletions."""
        max_delete = job.get("max_delete", limit)
        own = {"verify": verify, "max_delete": max_delete, "collect": collect}
        return session_of(job, hosts, check, self._teller.tell_of_one, self._memory, **own)

    def _report(self, report: Mapping[str, Any]) -> None:
        self._store.report(report["name"], report, render_report(report))
        self._totals[report["name"]] = dict(report["totals"])
        self.hints += [f"{report['name']}: {hint}" for hint in report["hints"]]
        if not self._teller.is_many:
            for line in render_summary(report):
                self._say(line)
            return
        failure = report["failure"]
        ended = f"stopped in {failure['phase']}" if failure else ", ".join(report["phases"]) or "nothing done"
        self._say(f"{report['name']}: {ended}")

    def _size(self, name: str) -> float:
        """Return the bytes of a job's tree by its last report, 0 if there is none."""
        try:
            phases = self._store.read(name).get("phases", {})
        except (OSError, ValueError):  # which the job itself says
            return 0.0
        known = phases.get("seed") or phases.get("preflight", {}).get("predicted") or {}
        return float(known.get("bytes_total", 0))
