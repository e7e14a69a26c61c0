# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_conduct: all jobs of a run in one task. See plugin_utils/migrate/life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.migrate_conduct import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.conduct_action import ConductAction, Say
from ansible_collections.longhaul.fleet.plugins.plugin_utils.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.conduct import Run
from ansible_collections.longhaul.fleet.plugins.plugin_utils.warm import prepare

prepare(transfer.DOCUMENTATION)

_MOST_HINTS = 20  # that a run shows as warnings


class ActionModule(ConductAction):
    """Drive the jobs."""

    documentation = DOCUMENTATION

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Drive all jobs to the end of their steps."""
        run = Run(self, options, self.variables, say, interruption, write)
        records = run.conduct()
        result: dict[str, object] = {"jobs": records, "changed": any(one["changed"] for one in records)}
        if run.hints:
            left = len(run.hints) - _MOST_HINTS
            more = [f"{left} more of these are in the reports"] if left > 0 else []
            result["warnings"] = [*run.hints[:_MOST_HINTS], *more]
        return self.with_diff(result, run.diffs)

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"
