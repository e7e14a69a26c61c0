# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.backup_run: one part of a run of its role. See plugin_utils/jobs/backup."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.backup_run import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import (
    ConductAction,
    Say,
    cannot_write,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.state_folder import find_folder, find_inventory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import write_whole
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.prometheus import TEXTFILE_MODE
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import now_text
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.asking import HostQuestions, threads_for
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import started_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import ControllerGone, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.audit import make_audit, summarize_audit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.audit_page import make_audit_page, tell_audit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import (
    JobHealth,
    find_sick,
    judge,
    summarize,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.hosts import ask_for_audit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.job_problems import refuse_jobs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs, places_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.metrics import write_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.planning import (
    apply_defaults,
    find_defaults,
    plan,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_page import make_overview
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_text import render_overall
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.run import BackupRun
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import BackupRecord, parse_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.store import AUDIT, BackupStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import ReportedFailure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify import RunEvent
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify_delivery import RunMessages
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.selection import is_automated

prepare(transfer.DOCUMENTATION)


class ActionModule(ConductAction):
    """Do one part of a run."""

    documentation = DOCUMENTATION
    role = "backup"
    users_own = ("hooks", "folder", "hook_folder")  # paths and names of the user's, which the role uses

    def refuse(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """Return what is wrong with the variables of the role, before any host is asked."""
        if given.get("part") not in ("begin", "audit") or not isinstance(given.get("variables"), Mapping):
            return super().refuse(given, variables)
        written = {**given, **given["variables"]}
        return refuse_jobs(written, variables["groups"], is_automated(variables), variables)

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Do the part that the options name. The first one finds the folders, before any task of a hook runs."""
        folder, hook_folder = options["folder"], options["hook_folder"]
        if not folder:
            inventory = find_inventory(self.variables)
            hook_folder = inventory or os.environ.get("PWD") or os.getcwd()
            variables = {**self.variables, "inventory_dir": inventory}
            folder = find_folder("longhaul-backup", options["report_dir"], variables, self._templar.template)
        run_id = options["run_id"] or f"{now_text()}-{secrets.token_hex(8)}"
        known = {"folder": folder, "hook_folder": hook_folder, "run_id": run_id}
        result = super().act({**options, **known, "started_by": started_by(self.variables)}, write=write)
        return result if result.get("failed") else {**result, **known}

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Make backups, or report on them."""
        store = BackupStore(options["folder"], writes=write)
        if options["part"] == "report":
            return self._report(options, store, say)
        if options["part"] == "audit":
            return self._audit(options, store, say)
        load = self._loader.load_from_file if options["part"] == "begin" else None
        planned = plan(options, self.variables, store, load)
        run = BackupRun(self, options, self.variables, say, planned, store)
        messages = RunMessages("backup", options["notify"], options["started_by"], say, store.writes)
        try:
            if options["part"] == "begin":
                messages.send(RunEvent.START, list(planned.by_id))
            due = run.run(interruption)
        except ControllerGone:
            raise
        except Exception as error:  # else nobody would hear of the end of this run
            messages.send_end(list(planned.by_id), [ReportedFailure("The run", "stopped", str(error))])
            raise
        left = () if options["part"] == "continue" else planned.hooked
        result = {
            "jobs": [record.dump() for record in run.records],
            "wanted": list(planned.by_id),
            "left_hosts": list(dict.fromkeys(one.pair.dest for one in left)),
            "hooks": [one._asdict() for one in due],
            "busy": run.busy,
            "changed": run.changed,
        }
        lost = messages.wait()
        return self.with_diff({**result, "warnings": lost} if lost else result, run.diffs)

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of claims and records."""
        return options["folder"], "backup_report_dir"

    def _report(self, options: Mapping[str, Any], store: BackupStore, say: Say) -> Mapping[str, object]:
        """Write how all backups are, show those that are well, and return the others and the figures."""
        messages = RunMessages("backup", options["notify"], options["started_by"], say, store.writes)
        try:
            made, health = self._judge(options, store)
        except Exception as error:  # else nobody would hear of the end of this run
            messages.send_end(options["wanted"], [ReportedFailure("The report", "failed", str(error))])
            raise
        at = now_text()
        by = options["started_by"]
        report = {"at": at, "by": by, "jobs": [one.dump() for one in health]}
        warnings = store.report(report, lambda earlier: make_overview(health, at, by, earlier))
        sick = find_sick(health)
        path = store.path_of_report() if store.writes else ""
        summary = summarize(health, [] if options["drill_only"] else made, sick, at, path, check_mode=not store.writes)
        if options["textfile"] and store.writes:
            try:
                write_whole(os.path.realpath(options["textfile"]), write_metrics(health), TEXTFILE_MODE)
            except OSError as error:  # the backups are made, and what failed of them must be told
                warnings.append(str(cannot_write(error, options["textfile"], "backup_textfile")["msg"]))
        sick_ids = {one.name for one in sick}
        for line in render_overall([one for one in health if one.id not in sick_ids], path):
            say(line)
        warnings += messages.send_end(options["wanted"], sick, summary=summary, report=report)
        return {
            "summary": summary,
            "failures": [one._asdict() for one in sick],
            **({"warnings": warnings} if warnings else {}),
        }

    def _judge(self, options: Mapping[str, Any], store: BackupStore) -> tuple[list[BackupRecord], list[JobHealth]]:
        """Return the records of the backups that this run made, and how all backups are. Raises Refusal."""
        runs = make_runs(apply_defaults(options["jobs"], find_defaults(options)), self.variables["groups"])
        made = {record.id: record for record in map(parse_record, options["records"])}
        for record in store.read_all(run["id"] for run in runs if run["id"] not in made):
            if record.run_id == options["run_id"]:  # of a call whose result is lost
                made[record.id] = record
        others = store.read_all(run["id"] for run in runs if run["id"] not in made)
        health = judge(
            runs,
            [*others, *made.values()],
            options["wanted"],
            list(made),
            time.time(),
            predicted=not store.writes,
            busy={**options["busy"], **store.read_busy(options["wanted"], options["run_id"])},
            inventories=[str(one) for one in self.variables.get("ansible_inventory_sources") or ()],
        )
        return list(made.values()), health

    def _audit(self, options: Mapping[str, Any], store: BackupStore, say: Say) -> Mapping[str, object]:
        """Ask the repositories what they have, and all hosts for their time; write what an auditor wants to know."""
        runs = make_runs(apply_defaults(options["jobs"], options["defaults"]), self.variables["groups"])
        health = judge(runs, store.read_all(run["id"] for run in runs), [], [], time.time())
        repositories: dict[str, list[str]] = {run["host"]: [] for run in runs}
        for place in places_of(runs):
            paths = repositories.setdefault(place["host"], [])
            paths += [place["path"]] if place["path"] not in paths else []
        asked = HostQuestions(
            partial(HostRunner, self, task_vars=self.variables, roles=("backup",)),
            threads_for(int(self.variables.get("ansible_forks") or 5)),
            lambda runner: ask_for_audit(runner, repositories[runner.name]),
        )
        asked.ask(repositories)
        audit = make_audit(
            runs,
            health,
            self.variables["groups"],
            options["audit_exempt"],
            asked.answers,
            asked.failed,
            now_text(),
            options["started_by"],
        )
        warnings = store.report(audit.dump(), lambda earlier: make_audit_page(audit, earlier), AUDIT)
        path = store.path_of_report(AUDIT) if store.writes else ""
        for line in [*tell_audit(audit), *([f"Report: {path}"] if path else [])]:
            say(line)
        summary = summarize_audit(audit, path, check_mode=not store.writes)
        return {"summary": summary, **({"warnings": warnings} if warnings else {})}
