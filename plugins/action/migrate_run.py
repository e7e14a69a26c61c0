# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_run: one part of a run of its role. See plugin_utils/jobs/migrate."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.migrate_run import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import ConductAction, Say
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.state_folder import find_benchmark_folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import now_text
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import started_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_facts import put_clean_first
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import ControllerGone
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import ReportedFailure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.jobs import (
    Job,
    Selection,
    read_agreed,
    refuse_jobs,
    refuse_selection,
    select_jobs,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.metrics_file import MetricsFile, states_in
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report import (
    JobRecord,
    MigrationSummary,
    find_failures,
    summarize,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import RunFacts, parse_reports
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_page import make_overview
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.run import MigrationRun
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.store import COMPARISONS, MigrationStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.verify import tell_found
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.verify_page import (
    make_verify_page,
    read_comparisons,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify import RunEvent
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify_delivery import RunMessages
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.selection import is_automated, read_names

prepare(transfer.DOCUMENTATION)

_MOST_HINTS = 20  # that a run shows as warnings


class ActionModule(ConductAction):
    """Do one part of a run."""

    documentation = DOCUMENTATION
    role = "migrate"
    users_own = ("hooks", "folder")  # paths and names of the user's, which the role uses
    folder_name = "longhaul-migrate"

    def refuse(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """Return what is wrong with the variables of the role, before any host is asked."""
        if given.get("part") != "check" or not isinstance(given.get("variables"), Mapping):
            return super().refuse(given, variables)
        written = {**given, **given["variables"]}
        return refuse_jobs(written, variables["groups"]["all"], is_automated(variables), variables)

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Do the part that the options name."""
        options = {
            **options,
            "allow_delete": read_agreed(options["allow_delete"]),
            "started_by": started_by(self.variables),
            "run_id": options["run_id"] or f"{now_text()}-{secrets.token_hex(8)}",
        }
        if options["part"] == "check":  # what is wrong was told before
            hosts = list(dict.fromkeys(str(job["dest_host"]) for job in select_jobs(options).jobs))
            return {"hosts": put_clean_first(hosts, self.variables, "migrate")}
        if options["part"] == "report":
            return self._report(options, say, write)
        store = MigrationStore(options["folder"], writes=False)
        states = []
        for name in read_names(options["back"]):
            try:
                states += [state] if (state := store.read(name)) else []
            except ValueError as error:
                path = store.state_path(name)
                return {"failed": True, "msg": f"Nothing was done: {path} cannot be read: {error}. Restore it"}
        selection = select_jobs(options, states)
        load = self._loader.load_from_file
        refused = refuse_selection(selection, options, load) if options["part"] == "begin" else ""
        if refused:
            return {"failed": True, "msg": refused}
        return self._run(options, selection, say, interruption, write)

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"

    def _run(
        self, options: Mapping[str, Any], selection: Selection, say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Drive jobs, or compare their trees."""
        jobs = selection.driven_by(options["hosts"], options["play_hosts"])
        known = {one["name"]: one for one in options["records"]}
        records = {job["name"]: known[job["name"]] for job in jobs if job["name"] in known}
        if options["part"] == "continue":
            jobs = [job for job in jobs if records[job["name"]]["left"]]
        benchmarks = find_benchmark_folder("", self.variables, self._templar.template)
        run = MigrationRun(self, options, self.variables, say, write, jobs, selection.groups, records, benchmarks)
        messages = RunMessages("migrate", options["notify"], options["started_by"], say, write)
        names = [job["name"] for job in jobs]
        try:
            if options["part"] == "compare":
                return self._compare(run, jobs, interruption, options, say, write)
            if options["part"] == "begin":
                messages.send(RunEvent.START, names)
            done, hooks = run.run(interruption)
        except ControllerGone:
            raise
        except Exception as error:  # else nobody would hear of the end of this run
            messages.send_end(names, [ReportedFailure("The run", "stopped", str(error))])
            raise
        finally:
            run.close()
        left = [one["name"] for one in done if one["left"]]
        drivers = [host for host in options["play_hosts"] if self._drives(selection, host, options, left)]
        result: dict[str, object] = {
            "jobs": done,
            "hooks": [one._asdict() for one in hooks],
            "run_id": options["run_id"],
            "folder": options["folder"],
            "changed": any(one["changed"] for one in done),
            "changed_hosts": list(dict.fromkeys(one["dest_host"] for one in done if one["changed"])),
            "left_hosts": drivers if left else [],
        }
        more = len(run.hints) - _MOST_HINTS
        told = [f"{more} more of these are in the reports"] if more > 0 else []
        warnings = [*run.hints[:_MOST_HINTS], *told, *filter(None, [run.metrics.warning]), *messages.wait()]
        if warnings:
            result["warnings"] = warnings
        return self.with_diff(result, run.diffs)

    def _compare(
        self,
        run: MigrationRun,
        jobs: Sequence[Job],
        interruption: Interruption,
        options: Mapping[str, Any],
        say: Say,
        write: bool,
    ) -> Mapping[str, object]:
        """Compare the trees of all jobs, and report on that."""
        began, results = now_text(), run.compare(interruption)
        found = tell_found(results, check_mode=not write)
        for line in found.lines:
            say(line)
        result = {"summary": found.summary, "failures": [one._asdict() for one in found.failures]}
        if not write:
            return result
        facts = RunFacts(now_text(), options["started_by"])
        compared = read_comparisons(results, {str(job["name"]): job for job in jobs}, facts.now)
        data = {"began": began, "at": facts.now, "by": facts.by, "jobs": [one.dump() for one in compared]}
        store = MigrationStore(options["folder"], writes=write)
        unwritten = store.report_comparisons(data, lambda earlier: make_verify_page(compared, facts, began, earlier))
        say(f"Report: {store.path_of_report(COMPARISONS)}")
        return {**result, **({"warnings": unwritten} if unwritten else {})}

    @staticmethod
    def _drives(selection: Selection, host: str, options: Mapping[str, Any], names: list[str]) -> bool:
        return any(job["name"] in names for job in selection.driven_by([host], options["play_hosts"]))

    def _report(self, options: Mapping[str, Any], say: Say, write: bool) -> Mapping[str, object]:
        """Write the report on all jobs, also those that this run left alone, and show all failures together."""
        records = list({one["name"]: one for one in options["records"]}.values())
        messages = RunMessages("migrate", options["notify"], options["started_by"], say, write)
        names = [one["name"] for one in records]
        try:
            reports, summary, warnings = self._write_report(options, records, say, write)
            failures = find_failures(records)
        except Exception as error:  # else nobody would hear of the end of this run
            messages.send_end(names, [ReportedFailure("The report", "failed", str(error))])
            raise
        warnings += messages.send_end(names, failures, summary=summary, report={"jobs": reports})
        return {
            "summary": summary,
            "failures": [one._asdict() for one in failures],
            **({"warnings": warnings} if warnings else {}),
        }

    @staticmethod
    def _write_report(
        options: Mapping[str, Any], records: Sequence[JobRecord], say: Say, write: bool
    ) -> tuple[Sequence[Mapping[str, Any]], MigrationSummary, list[str]]:
        """Write the pages and the metrics; return the reports of all jobs, the figures of the run, and warnings."""
        store = MigrationStore(options["folder"], writes=write)
        phase, back = options["phase"], read_names(options["back"])
        reports = []
        for name in dict.fromkeys([*(str(job["name"]) for job in options["jobs"]), *(one["name"] for one in records)]):
            with contextlib.suppress(OSError, ValueError):
                reports += [report] if (report := store.read_report(name)) else []
        shown, unread = parse_reports(reports)
        path = store.path_of_report() if write and reports else ""
        unwritten: list[str] = []
        if path:
            run = RunFacts(now_text(), options["started_by"], phase)
            unwritten = [*unread, *store.report_all(reports, lambda earlier: make_overview(shown, run, earlier))]
            say(f"Report: {path}")
        waiting = [one["name"] for one in records if not one["failure"] and not one["switched"]]
        if waiting and write and not back and phase in ("sync", "rehearse"):
            why = {
                "sync": "Stopped before the cutover, because migrate_phase is sync, the default.",
                "rehearse": "Rehearsed, and the sources serve again.",
            }[phase]
            say(
                f"{why} Not switched over: {', '.join(waiting)}. To switch over, in the change window, run the same "
                "command again with -e migrate_phase=cutover"
            )
        expected = {one.state.name: one.more.forecast.seconds for one in shown if one.more.forecast.seconds}
        textfile = options["textfile"] if write else ""
        metrics = MetricsFile(textfile, options["jobs"], states_in(store), lambda _states: expected)
        metrics.write(active=False)
        summary = summarize(records, phase, not write, now_text(), options["started_by"], path)
        return reports, summary, [*filter(None, [metrics.warning]), *unwritten]
