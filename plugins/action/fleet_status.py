# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.fleet_status: where a fleet stands, from any machine with its inventory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.modules.fleet_status import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import write_whole
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.prometheus import TEXTFILE_MODE
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.exposition import render_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.overview import Overview, take_overview
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import Job, Row, Standing, State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.table import render_table
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_facts import find_set_by_facts, refuse_facts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_status import (
    merged,
    standing_of,
    standing_of_record,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.record import parse_record, record_id
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import Identity
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.store import MigrationStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import comparison_id

prepare(DOCUMENTATION)

_NEEDED = ("name", "src_host", "src", "dest_host", "dest")


class ActionModule(ControlNodeAction):
    """Show where the fleet stands."""

    documentation = DOCUMENTATION
    folder_name = "longhaul-migrate"

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Ask the hosts, show the table, write the textfile where one is asked for, and return it all."""
        refused = refuse_facts("the host of the play", find_set_by_facts(self.variables, "migrate", "status"))
        if refused:
            return {"failed": True, "msg": f"Nothing was done: {refused}"}
        try:
            jobs = read_jobs(options)
        except Refusal as error:
            return {"failed": True, "msg": str(error)}
        overview = take_overview(
            jobs,
            options["hosts"],
            partial(HostRunner, self, task_vars=self.variables),
            read_record,
            int(self.variables.get("ansible_forks") or 5),
            options["interval"],
        )
        width = options["width"] or terminal_width()
        table = render_table(overview.rows, overview.sums, width, options["max_rows"])
        if options["show"] and not self._task.no_log:
            for line in table:
                Display().display(line)
        result: dict[str, object] = {**_as_data(overview), "table": table}
        if options["textfile"]:
            result.update(self._textfile(options["textfile"], overview, write))
        if overview.unreachable and options["on_unreachable"] == "fail":
            names = ", ".join(overview.unreachable)
            result.update(failed=True, msg=f"hosts did not answer: {names}. See unreachable_hosts for what each said")
        return result

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the textfile, the only file that is written."""
        return options["textfile"] or "", "textfile"

    def _textfile(self, path: str, overview: Overview, write: bool) -> Mapping[str, object]:
        """Put the metrics in place where they differ; say so, and what the difference is in diff mode."""
        text = render_metrics(overview.rows, overview.sums, len(overview.unreachable))
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                before = stream.read()
        except FileNotFoundError:
            before = ""
        if write and before == text:
            os.utime(path)  # what watches the exporter goes by this time
        elif write:
            write_whole(path, text, TEXTFILE_MODE)
        result: dict[str, object] = {"changed": before != text}
        if self._task.diff and before != text:
            result["diff"] = {"before": before, "after": text, "before_header": path, "after_header": path}
        return result


def terminal_width() -> int:
    """Return the width of the terminal, or what COLUMNS says without one."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdecimal() and int(said) and not os.isatty(1) else Display().columns


def read_jobs(options: Mapping[str, Any]) -> list[Job]:
    """Return the jobs, with what the control node keeps of each. Raises Refusal for what is no job."""
    store = MigrationStore(options["folder"], writes=False)
    jobs: dict[str, Job] = {}
    for number, given in enumerate(options["jobs"]):
        job = {**options["defaults"], **given}
        name = str(job.get("name") or f"number {number + 1}")
        missing = [key for key in _NEEDED if not job.get(key)]
        if missing:
            raise Refusal(f"job {name} has no {' and no '.join(missing)}: give the jobs as in migrate_jobs")
        if name in jobs:
            raise Refusal(f"two jobs have the name {name}: give each a name of its own")
        src_host, src, dest_host, dest = (str(job[key]) for key in _NEEDED[1:])
        identity = record_id(Identity(src_host, src, dest_host, dest))
        known = (identity, comparison_id(identity), _standing(store, name))
        jobs[name] = Job(name, src_host, src, dest_host, dest, *known)
    return list(jobs.values())


def read_record(job: Job, found: object) -> Standing:
    """Return where a job stands by what is kept of it here, and by the record that its destination has."""
    kept = job.standing
    try:
        record = parse_record(job.dest_host, Identity(job.src_host, job.src, job.dest_host, job.dest), found)
    except ValueError as error:
        return replace(kept, error=kept.error or str(error))
    return kept if record is None else merged(kept, standing_of_record(record), job.dest_host)


def _standing(store: MigrationStore, name: str) -> Standing:
    """Return where a job stands by its state on the control node."""
    path = store.state_path(name)
    try:
        state = store.read(name)
        return standing_of(state, max(0.0, time.time() - os.stat(path).st_mtime)) if state else Standing()
    except (OSError, ValueError) as error:
        said = f"{path} cannot be read: {error}"
        return Standing(state=State.WAITING, error=said, next="Restore it, or remove it to begin the job again")


def _as_data(overview: Overview) -> Mapping[str, object]:
    sums = overview.sums
    return {
        "rows": [_row_data(row) for row in overview.rows],
        "sums": {
            "states": dict(sums.states),
            "bytes_done": sums.bytes_done,
            "bytes_total": sums.bytes_total,
            "bytes_sent": sums.bytes_sent,
            "bytes_apparent": sums.bytes_apparent,
            "unknown_sizes": sums.unknown,
            "rate": int(sums.rate),
            "eta": None if sums.eta is None else int(sums.eta),
        },
        "unreachable_hosts": [{"host": host, "reason": reason} for host, reason in overview.unreachable.items()],
    }


def _row_data(row: Row) -> Mapping[str, object]:
    whole = {name: None if value is None else int(value) for name, value in (("rate", row.rate), ("eta", row.eta))}
    age = None if row.age is None else round(row.age, 1)
    shown = {name: value for name, value in vars(row).items() if name != "is_job"}
    return {**shown, "state": row.state.value, **whole, "age": age}
