# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.backup_report: how all backups are, after those of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.modules.backup_report import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.health import find_sick, judge, summarize
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.metrics import write_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.planning import apply_defaults
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.report_text import render_overall, render_report
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_files import write_whole
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction, cannot_write
from ansible_collections.longhaul.fleet.plugins.plugin_utils.endpoint import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.prometheus import TEXTFILE_MODE
from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import now_text


class ActionModule(ControlNodeAction):
    """Write the report."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Write how all backups are, show those that are well, and return the others and the figures."""
        store = Store(options["folder"], writes=write)
        runs = make_runs(apply_defaults(options["jobs"], options["defaults"]), self.variables["groups"])
        made = [record["id"] for record in options["records"]]
        try:
            others = store.read_all(run["id"] for run in runs if run["id"] not in set(made))
        except Refusal as error:
            return {"failed": True, "msg": str(error)}
        health = judge(runs, [*others, *options["records"]], options["wanted"], made, time.time(), predicted=not write)
        at = now_text()
        store.report({"at": at, "jobs": health}, render_report(health, at))
        if options["textfile"] and write:
            try:
                write_whole(os.path.realpath(options["textfile"]), write_metrics(health), TEXTFILE_MODE)
            except OSError as error:
                return cannot_write(error, options["textfile"], "backup_textfile")
        path = store.path_of_report() if write else ""
        sick = find_sick(health)
        sick_ids = {one.name for one in sick}
        others_told = [one for one in health if one["id"] not in sick_ids]
        for line in render_overall(others_told, path) if not self._task.no_log else ():
            Display().display(line)
        summary = summarize(health, options["records"], sick, at, path, check_mode=not write)
        return {"summary": summary, "failures": [one._asdict() for one in sick]}

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of reports."""
        return options["folder"], "backup_report_dir"
