# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of the action migrate_run: hosts, state files, locks and the terminal for the workflows of its jobs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...benchmark.kept import find_recent
from ...benchmark.measurement import BenchmarkResult
from ...common.ansible_process import ansible_pid
from ...common.memory import Memory
from ...common.refusal import Refusal
from ...common.units import now_text
from ...fleet.claims import AlreadyClaimed, process_of
from ...fleet.console import Activity, Output, ProgressPrinter
from ...fleet.controller import Claims, controller_id
from ...fleet.limits import Pair, check_pairs, on_disks, parse_limits
from ...fleet.lock import Lease, Terms
from ...fleet.lock_renewal import LeaseRenewer
from ...fleet.progress_file import ProgressLog, ProgressWriter
from ...fleet.queue import Waiting, rank, time_of
from ...fleet.scheduler import WORDS, Call, Periodic, Scheduler, Workflow, pair_of, threads_of
from ...hosts.host_runner import HostRunner
from ...hosts.interruption import Interruption
from ...transfer.session import Session
from ...transfer.status import Status
from ..hook_steps import TasksHook, read_tasks_results
from ..hooks import Hook
from ..selection import is_wanted
from ..sessions import FAILURES, session_of
from .forecast import BenchmarkRates, Forecast, forecast_downtime, forecast_job, rates_of
from .groups import Gate, Group, settle
from .hosts import MigrationHosts
from .job_run import Options, Services
from .metrics_file import METRICS_PERIOD, MetricsFile
from .phases import Phase, Step
from .prediction_check import check_predictions
from .record import record_id
from .report import JobRecord
from .report_facts import RunFacts, parse_report
from .report_page import make_job_page
from .report_text import render_summary
from .samples import ProgressSample, add_sample, is_due
from .state import BEFORE, HOOKS, MigrationState, Readiness, firmness
from .store import MigrationStore
from .verify import compare_job
from .workflow import MigrationWorkflow

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase

_LIMITS = "migrate_limits"
_FAILURES: tuple[type[Exception], ...] = (*FAILURES, OSError)
_TAGS = {  # of the steps, by which users choose
    **{step: f"migrate_{step.value}" for step in Step},
    Step.REHEARSE: "migrate_cutover",
    Step.SWITCH: "migrate_cutover",
}


class MigrationRun:
    """The jobs of one call. ``close`` it."""

    def __init__(
        self,
        action: ActionBase,
        options: Mapping[str, Any],
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        write: bool,
        jobs: Iterable[Mapping[str, Any]],
        groups: Mapping[str, Group],
        records: Mapping[str, JobRecord],
        benchmark_folder: str,
    ) -> None:
        """Take the action, its options, the variables of its task, where lines go, and the jobs of this call.

        Without ``write`` (check mode) all is predicted. ``records`` are of an earlier call of the same run, empty if
        there was none. ``benchmark_folder`` has the results of benchmarks. Raises LimitError for limits that make no
        sense, Refusal if this control node cannot be told from others, and OSError.
        """
        self._given, self._variables, self._say, self._check = options, variables, say, not write
        self._jobs = {str(job["name"]): job for job in jobs}
        self._groups, self._records = groups, records
        self._limits = parse_limits(options["limits"], _LIMITS)
        self._pairs = {
            name: pair_of(job, job["src_host"], job["dest_host"], variables) for name, job in self._jobs.items()
        }
        check_pairs(self._pairs, self._limits, _LIMITS)
        self._options = self._read_options()
        self._workflows: dict[str, MigrationWorkflow] = {}
        self._benchmark_folder = benchmark_folder
        self._benchmarks: dict[tuple[str, str], BenchmarkResult | None] = {}
        self._ranks: dict[str, tuple[int, float, int]] = {}
        self._memory = Memory()
        self.store = MigrationStore(options["folder"], writes=write)
        self.hints: list[str] = []  # what only holds for the last pass, which a person should know
        self._totals: dict[str, dict[str, int]] = {}
        self._output = Output(options["output"])
        self._teller = ProgressPrinter(
            say,
            time.monotonic,
            len(self._jobs),
            self._activity_of,
            ProgressWriter(),
            self._output,
            ProgressLog(options["progress_file"], say, write=write),
        )
        known = {str(job["name"]): job for job in (*options["jobs"], *self._jobs.values())}
        self.metrics = MetricsFile(
            options["textfile"] if write else "", known.values(), self._state_of, self._expected_downtimes
        )
        self._runner = partial(HostRunner, action, task_vars=variables, roles=("migrate",))
        try:
            self._controller = controller_id(options["folder"], write=write)
        except ValueError as error:
            raise Refusal(str(error)) from None
        self._claims = Claims(options["folder"], process_of(ansible_pid()))
        self._keeper = LeaseRenewer(self._runner)

    def _activity_of(self, name: str) -> Activity:
        return self._workflows[name].activity if name in self._workflows else Activity("")

    def close(self) -> None:
        """Let go of connections and of the terminal."""
        self._keeper.close()
        self._teller.close()

    def run(self, interruption: Interruption) -> tuple[list[JobRecord], list[TasksHook]]:
        """Drive all jobs as far as this call can; return what was done, and the files of tasks that are due.

        The first call brings all jobs up at once. Jobs whose hooks are files of tasks follow in later calls, one or one
        group after the other, since nothing may hold up those whose source is stopped.
        """
        interruption.words = WORDS
        units = [[*self._jobs]]
        if self._options.continues:
            grouped = {name: group.jobs for group in self._groups.values() for name in group.jobs}
            units = [list(unit) for unit in dict.fromkeys(tuple(grouped.get(one, [one])) for one in self._jobs)]
        records, due = dict(self._records), []
        for unit in units:
            handed_over = self._drive([name for name in unit if name in self._jobs])
            records.update({name: self._record(self._workflows[name]) for name in unit if name in self._workflows})
            if handed_over:
                due = [handed_over[name] for name in unit if name in handed_over]
                break
        self._renew_forecasts()
        return list(records.values()), due

    def compare(self, interruption: Interruption) -> list[tuple[str, Mapping[str, Any]]]:
        """Compare the trees of all jobs, whether they were migrated here or not; remembers nothing."""
        interruption.words = "Interrupted. Run the same command again: it compares all trees again"
        results: dict[str, Mapping[str, Any]] = {}

        def workflow(job: Mapping[str, Any]) -> Workflow:
            name = job["name"]
            try:
                hosts = MigrationHosts(job, self._runner, self._terms(job))
                state = self.store.read(name)
                results[name] = yield Call(partial(compare_job, self._teller.speaker(name), job, hosts, state))
            except _FAILURES as error:
                results[name] = {"failed": True, "msg": str(error)}
            self._teller.ended(bool(results[name].get("failed")), name)

        self._schedule({name: partial(workflow, job) for name, job in self._jobs.items()})
        return [(name, results[name]) for name in self._jobs]

    def _drive(self, names: Sequence[str]) -> Mapping[str, TasksHook]:
        """Run the workflows of jobs; return the files of tasks that are due."""
        services = self._services()
        self._workflows.update({name: MigrationWorkflow(self._jobs[name], self._options, services) for name in names})

        def workflow(name: str) -> Workflow:
            yield from self._workflows[name].run()
            if not self._workflows[name].result.left:
                self._teller.ended(self._workflows[name].result.failure is not None, name)

        return self._schedule({name: partial(workflow, name) for name in names}, self.metrics)

    def _progress(self, running: Mapping[str, Status]) -> None:
        """Show how far the transfers are, and keep that for the metrics and for the charts of reports."""
        self.metrics.running = dict(running)
        self._keep_samples(running)
        self._teller.progress(running)

    def _schedule(
        self, workflows: Mapping[str, Callable[[], Workflow]], metrics: MetricsFile | None = None
    ) -> Mapping[str, TasksHook]:
        waiting = [
            Waiting(
                rank(int(self._jobs[name].get("priority") or 0), self._size(name), number),
                name,
                self._pairs[name],
            )
            for number, name in enumerate(workflows)
        ]
        self._ranks.update({one.name: one.rank for one in waiting})
        if self._options.continues:
            waiting = [replace(self._in_cutover(one), is_cutover=True) for one in waiting]
        groups = {name: group.jobs for name, group in self._groups.items()}
        threads = threads_of(self._limits, self._variables)
        written = metrics and metrics.is_wanted and Periodic(METRICS_PERIOD, partial(metrics.write, active=True))
        scheduler = Scheduler(
            self._limits, threads, self._progress, self._keeper, groups, written or None, self._in_cutover
        )
        scheduler.run(waiting, workflows)
        return scheduler.handed_over

    def _in_cutover(self, waiting: Waiting) -> Waiting:
        """Return a job as it waits for its turn in a cutover: side by side with jobs on other disks.

        Of final passes the longest is the first; hooks run in the order that all have.
        """
        state = self._state_of(waiting.name)
        order = self._ranks[waiting.name]
        if state is not None and state.group is not None and state.group.stands is Readiness.STOPPED:
            order = rank(-order[0], self._seconds(state), order[2])
        return replace(waiting, rank=order, pair=self._place(waiting.name, state))

    def _seconds(self, state: MigrationState) -> float:
        """Return how long the final pass and the comparison of a job of a group take.

        If that is not known of all its jobs, they are ordered by their bytes.
        """
        group = next((one.jobs for one in self._groups.values() if state.name in one.jobs), [state.name])
        states = [self._state_of(name) for name in group]
        known = [forecast_job(one, self._benchmark_of(one)).seconds if one is not None else None for one in states]
        mine = forecast_job(state, self._benchmark_of(state)).seconds
        return self._size(state.name) if mine is None or None in known else mine

    def _keep_samples(self, running: Mapping[str, Status]) -> None:
        now = time.time()
        for name, status in running.items():
            workflow = self._workflows.get(name)
            phase = workflow.step.value if workflow else ""
            if workflow is None or self._check or not is_due(workflow.state.samples, phase, now):
                continue
            progress = status.progress
            counts = (progress.bytes_done, progress.bytes_total, progress.files_done, progress.files_total)
            sample = ProgressSample(int(now), phase, *counts, bwlimit=status.bwlimit)
            workflow.state.samples = add_sample(workflow.state.samples, sample)

    def _record(self, workflow: MigrationWorkflow) -> JobRecord:
        result, switch = workflow.result, workflow.state.switch
        before = self._records.get(result.name)
        return {
            "name": result.name,
            "dest_host": self._jobs[result.name]["dest_host"],
            "changed": result.changed or bool(before and before["changed"]),
            "left": result.left,
            "failure": result.failure._asdict() if result.failure else {},
            "switched": bool(switch and switch.done),
            "totals": self._totals.get(result.name, {}),
        }

    @property
    def diffs(self) -> dict[str, list[str]]:
        """The changes of each job, for ``--diff``."""
        return {name: workflow.result.diff for name, workflow in self._workflows.items()}

    def _read_options(self) -> Options:
        given = self._given
        hooks = {kind: given[kind] for kind in HOOKS}
        continues = given["part"] == "continue"
        return Options(
            phase=Phase(given["phase"]),
            steps={step for step, tag in _TAGS.items() if self._is_wanted(tag)},
            started_by=given["started_by"],
            check_mode=self._check,
            manage_packages=given["manage_packages"] and self._is_wanted("migrate_preflight", "migrate_packages"),
            preflight_predict=given["preflight_predict"],
            reset=given["reset"],
            allow_delete=given["allow_delete"],
            sync_short_enough=given["sync_short_enough"],
            sync_max_passes=given["sync_max_passes"],
            takeover=given["takeover"] and not continues,
            run_id=given["run_id"],
            compares_first=given["verify_when"] == "before_switch",
            hooks=hooks,
            hook_folder=given["hook_folder"],
            groups={name: group.jobs for name, group in self._groups.items()},
            hands_over=() if continues else self._with_tasks(hooks),
            tasks_results=read_tasks_results(given["tasks_results"]),
            continues=continues,
            stopped_by_hooks=self._find_stopped(hooks),
        )

    def _find_stopped(self, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> set[str]:
        """Return the jobs that hooks stop, their own or those of another job of their group."""
        found = {name for name, job in self._jobs.items() if hooks[BEFORE] or job.get(BEFORE)}
        return found.union(*(group.jobs for group in self._groups.values() if found & set(group.jobs)))

    def _with_tasks(self, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> set[str]:
        """Return the jobs that have hooks which are files of tasks, and the jobs of their groups."""
        found = {
            name
            for name, job in self._jobs.items()
            if any(hook.get("tasks") for kind in HOOKS for hook in (*hooks[kind], *(job.get(kind) or ())))
        }
        return found.union(*(group.jobs for group in self._groups.values() if found & set(group.jobs)))

    def _is_wanted(self, *tags: str) -> bool:
        """Return whether the user's tags leave what has these."""
        run, skip = (self._variables.get(name) or [] for name in ("ansible_run_tags", "ansible_skip_tags"))
        return is_wanted(tags, list(run) or ["all"], list(skip))

    def _size(self, name: str) -> float:
        """Return the bytes of a job's tree by its state, 0 if there is none."""
        try:
            state = self.store.read(name)
        except (OSError, ValueError):  # which the job itself says
            return 0.0
        preflight = state.phases.preflight if state else None
        known = (state.phases.seed if state else None) or (preflight.predicted if preflight else None)
        return float(known.bytes_total) if known else 0.0

    # What the workflows use

    def _services(self) -> Services:
        return Services(
            hosts=self._hosts,
            transfer=self._transfer,
            compare=lambda job, hosts, state: compare_job(self._teller.speaker(job["name"]), job, hosts, state),
            errors=FAILURES,
            store=self.store,
            now=now_text,
            tell=self._teller.note,
            report=self._report,
            hook_runner=self._hook_runner,
            decide_group=self._decide_group,
            claim=self._claim,
            release=self._release,
            forecast=self._forecast,
            check_predictions=lambda state: check_predictions(self._find_benchmark(state), state),
        )

    def _forecast(self, state: MigrationState) -> Forecast:
        """Return the downtime to expect of a job, or of its group as the scheduler will run it."""
        group = next((one.jobs for one in self._groups.values() if state.name in one.jobs), [state.name])
        members = {name: state if name == state.name else self._state_of(name) for name in group}
        known = {name: self._benchmark_of(one) for name, one in members.items() if one is not None}
        return forecast_downtime(state, members, partial(self._time_of, members), known)

    def _expected_downtimes(self, states: Sequence[MigrationState]) -> Mapping[str, float]:
        """Return the downtime to expect of jobs in seconds, as far as it is known; jobs of a group share one."""
        units = {name: group.jobs[0] for group in self._groups.values() for name in group.jobs}
        forecasts: dict[str, Forecast] = {}
        found: dict[str, float] = {}
        for state in states:
            if state.is_switched or state.is_back:
                continue
            unit = units.get(state.name, state.name)
            if unit not in forecasts:
                forecasts[unit] = {}
                with contextlib.suppress(ValueError):  # of a state that holds no times
                    forecasts[unit] = self._forecast(state)
            if "seconds" in forecasts[unit]:
                found[state.name] = forecasts[unit]["seconds"]
        return found

    def _benchmark_of(self, state: MigrationState) -> BenchmarkRates | None:
        """Return what a recent benchmark has measured of the hosts of a job; None if there is none."""
        return rates_of(self._find_benchmark(state))

    def _find_benchmark(self, state: MigrationState) -> BenchmarkResult | None:
        pair = (state.identity.src_host, state.identity.dest_host)
        if pair not in self._benchmarks:
            self._benchmarks[pair] = find_recent(self._benchmark_folder, *pair)
        return self._benchmarks[pair]

    def _renew_forecasts(self) -> None:
        """Write the forecasts of groups into the reports of their jobs, now that each job has ended its passes."""
        grouped = [name for group in self._groups.values() for name in group.jobs if name in self._totals]
        for name in grouped:
            with contextlib.suppress(OSError, ValueError):
                report, state = dict(self.store.read_report(name)), self._workflows[name].state
                forecast = self._forecast(state)
                if report and report.get("forecast") != forecast:
                    report["forecast"] = forecast
                    self._write_report(report)

    def _time_of(self, members: Mapping[str, MigrationState | None], seconds: Mapping[str, float]) -> float:
        """Return how long jobs of a group take together, of which each takes its ``seconds``."""
        waiting = []
        for number, name in enumerate(seconds):
            job = self._jobs.get(name, {})
            place = self._place(name, members[name])
            waiting.append(Waiting(rank(int(job.get("priority") or 0), seconds[name], number), name, place))
        return time_of(self._limits, waiting, seconds)

    def _place(self, name: str, state: MigrationState | None) -> Pair:
        """Return the hosts and disks of a job in its cutover."""
        looked = state.phases.preflight if state is not None else None
        ends = {"source": looked.source, "dest": looked.dest} if looked is not None else {}
        disks = {side: end.disks for side, end in ends.items() if end is not None}
        pair = self._pairs.get(name)
        if pair is None and state is not None:  # a job of the group that this call does not run
            pair = Pair(state.identity.src_host, state.identity.dest_host)
        return on_disks(pair or Pair(name, name), disks, self._limits)

    def _hook_runner(self, host: str, hook: Hook) -> HostRunner:
        return self._runner(host, become=hook.become, no_log=hook.hidden)

    def _terms(self, job: Mapping[str, Any]) -> Terms:
        return Terms(
            job=job["name"],
            host=job["dest_host"],
            identity=record_id(MigrationState.fresh(job).identity),
            holder=self._controller,
            who=self._options.started_by,
            life=self._given["lease_seconds"],
            takeover=self._options.takeover,
        )

    def _hosts(self, job: Mapping[str, Any]) -> MigrationHosts:
        """Return both hosts of a job, with its lease unless nothing may change."""
        options, terms = self._options, self._terms(job)
        if self._check or options.phase is Phase.PREFLIGHT:  # which change nothing, not even a lease
            return MigrationHosts(job, self._runner, terms)
        firm = firmness(self._workflows[job["name"]].state, options.reset and not options.continues)
        lease = Lease(terms, firm, held=options.continues)
        self._keeper.add(job["name"], lease)
        return MigrationHosts(job, self._runner, terms, lease)

    def _claim(self, job: str) -> str:
        """Claim a job against other runs here; return which one has it, empty if none does."""
        try:
            self._claims.take(job)
        except AlreadyClaimed as held:
            return str(held)
        return ""

    def _release(self, job: str, record: Mapping[str, object] | None) -> None:
        """Let other runs have a job, here and elsewhere, once its destination has kept a record of it."""
        self._claims.release(job)
        self._keeper.release(job, record)

    def _decide_group(self, group: str, gate: Gate, waiting: Sequence[str]) -> Mapping[str, str]:
        """Decide for a group at a gate, write that down for all members, and return why those do not go on."""
        states = {name: self._state_of(name) for name in self._groups[group].jobs}
        commits = self._options.phase is Phase.CUTOVER
        obstacles = settle(states, self._options.run_id, gate, now_text(), commits)
        for state in states.values():
            if state is not None:
                self.store.save(state)
        return {name: obstacles[name] for name in waiting}

    def _state_of(self, name: str) -> MigrationState | None:
        """Return the state of a job, None if it has none that can be read."""
        if name in self._workflows:
            return self._workflows[name].state
        try:
            return self.store.read(name)
        except (OSError, ValueError):
            return None

    def _transfer(
        self, job: Mapping[str, Any], hosts: MigrationHosts, check: bool, limit: int | None, collect: bool, verify: str
    ) -> Session:
        """Return a transfer of a job as its session; ``limit`` is the role's own limit of deletions.

        Its destination takes over, so nothing may be lost there with the power; and the less is not on its disk after
        a pass, the shorter the last one takes.
        """
        max_delete, sync = job.get("max_delete", limit), job.get("sync") or "data"
        own = {"verify": verify, "max_delete": max_delete, "sync": sync, "collect": collect}
        is_last = verify == (job.get("verify") or "checksum")  # the comparison after which nothing is compared
        state = self._state_of(job["name"])
        expects = state.passes[-1].files_total if state is not None and state.passes else 0
        return session_of(
            job, hosts, check, self._teller.speaker(job["name"]), self._memory, is_last, expects=expects, **own
        )

    def _write_report(self, report: Mapping[str, Any]) -> None:
        run = RunFacts(now_text(), self._options.started_by, self._options.phase.value)
        unwritten = self.store.report(report["name"], report, lambda: make_job_page(parse_report(report), run))
        self.hints += [unwritten] if unwritten else []

    def _report(self, report: Mapping[str, Any]) -> None:
        self._write_report(report)
        self._totals[report["name"]] = dict(report["totals"])
        failure = report["failure"]
        if not failure:  # else the end of the run says it, with why the job failed
            self.hints += [f"{report['name']}: {hint}" for hint in report["hints"]]
        if self._output is Output.VERBOSE or not (self._teller.is_many or failure or self._output is Output.QUIET):
            for line in render_summary(report):
                self._say(line)
            return
        # Why it failed stands at the end of the run, once, with those of all other jobs.
        ended = f"stopped in {failure['phase']}" if failure else ", ".join(report["phases"]) or "nothing done"
        self._say(f"{report['name']}: {ended}")
