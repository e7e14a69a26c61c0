# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.backup_conduct: all backups whose hooks are no files of tasks in one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.backup_conduct import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.conduct import Conduct
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.planning import plan
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.progress import Progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.workflow import BackupWorkflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.conduct_action import ConductAction, Say
from ansible_collections.longhaul.fleet.plugins.plugin_utils.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import now_text
from ansible_collections.longhaul.fleet.plugins.plugin_utils.warm import prepare

prepare(transfer.DOCUMENTATION)


class ActionModule(ConductAction):
    """Make the backups."""

    documentation = DOCUMENTATION

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Make all backups whose hooks are no files of tasks, and return the ids of the others."""
        store = Store(options["folder"], writes=write)
        planned = plan(options, self.variables, store)
        conductor = Conduct(self, self.variables, say, interruption, store, len(planned.runs))
        lives = {
            run["id"]: BackupWorkflow(
                run, Progress(now_text()), conductor.services, before=planned.known.get(run["id"])
            )
            for run in planned.runs
        }
        conductor.drive(lives, planned.waiting, planned.limits)
        result = {
            "jobs": [life.record for life in lives.values()],
            "wanted": planned.wanted,
            "hooked": [run["id"] for run in planned.hooked],
            "lanes": planned.lanes,
            "changed": any(life.changed for life in lives.values()),
        }
        return self.with_diff(result, {name: life.diff for name, life in lives.items()})

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of claims and records."""
        return options["folder"], "backup_report_dir"
