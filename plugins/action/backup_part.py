# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.backup_part: a part of a backup. See plugin_utils/backup/workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.backup_part import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.conduct import Conduct
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.jobs import Run
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.progress import Progress, parse_progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.workflow import BackupWorkflow, Part
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.conduct_action import ConductAction, Say
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import now_text
from ansible_collections.longhaul.fleet.plugins.plugin_utils.warm import prepare

prepare(transfer.DOCUMENTATION)


class ActionModule(ConductAction):
    """Make a part of a backup."""

    documentation = DOCUMENTATION

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Make the steps of the part that are left, and return how far the backup is then."""
        store, run = Store(options["folder"], writes=write), cast(Run, options["run"])
        progress = parse_progress(options["progress"]) if options["progress"] else Progress(now_text())
        conductor = Conduct(self, self.variables, say, interruption, store, 1)
        life = BackupWorkflow(
            run, progress, conductor.services, Part(options["part"]), store.read(run["id"]), options["makes_source"]
        )
        alone = Waiting(rank(0, 0, 0), run["id"], Pair(run["host"], run["repository"]["host"]))
        conductor.drive({run["id"]: life}, [alone], Limits())
        result = {
            "progress": life.progress.dump(),
            "steps": [step.value for step in life.left],
            "record": life.record or {},
            "changed": life.changed,
        }
        return self.with_diff(result, {run["id"]: life.diff})

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of claims and records."""
        return options["folder"], "backup_report_dir"
