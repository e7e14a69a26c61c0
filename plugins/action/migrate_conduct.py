# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_conduct: all jobs of a run in one task. See plugin_utils/migrate/life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.migrate_conduct import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.endpoint import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import LimitError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import ControllerGone
from ansible_collections.longhaul.fleet.plugins.plugin_utils.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.conduct import Run
from ansible_collections.longhaul.fleet.plugins.plugin_utils.warm import prepare

prepare(transfer.DOCUMENTATION)

_MOST_HINTS = 20  # that a run shows as warnings
_MOST_DIFF = 2000  # lines of a diff of all jobs: a terminal has to show them


class ActionModule(ControlNodeAction):
    """Drive the jobs."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Drive all jobs to the end of their steps; a job that fails is no failure of the task."""
        say = (lambda _line: None) if self._task.no_log else Display().display
        with Interruption() as interruption:
            try:
                run = Run(self, options, self.variables, say, interruption, write)
                records = run.conduct()
            except ControllerGone:  # nobody reads the result
                interruption.tell()
                raise
            except (LimitError, Refusal) as error:
                return {"failed": True, "msg": str(error)}
        result: dict[str, object] = {"jobs": records, "changed": any(one["changed"] for one in records)}
        if run.hints:
            left = len(run.hints) - _MOST_HINTS
            more = [f"{left} more of these are in the reports"] if left > 0 else []
            result["warnings"] = [*run.hints[:_MOST_HINTS], *more]
        if self._task.diff:
            result["diff"] = _diff(run.diffs)
        return result

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"


def _diff(diffs: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """Return the changes of all jobs as Ansible shows them, no more than a terminal has room for."""
    shown, left = [], _MOST_DIFF
    for name, lines in diffs.items():
        if lines and left > 0:
            cut = [*lines[:left], *([f"... and {len(lines) - left} more"] if len(lines) > left else [])]
            shown.append({"header": name, "prepared": "".join(f"{line}\n" for line in cut)})
            left -= len(lines)
    return shown
