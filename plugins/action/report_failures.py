# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.report_failures: all failures of a run, at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.modules.report_failures import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import read_failures, render_failures, sum_up


class ActionModule(ControlNodeAction):
    """Show all failures, and fail if there are any."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Show them as lines, since Ansible shows the message of a failed task twice, and once on a single line."""
        failures = read_failures(options["failures"])
        if not failures:
            return {}
        for line in render_failures(failures) if not self._task.no_log else ():
            Display().display(line)
        report = options["report"] if write else ""  # in check mode there is none
        return {"failed": True, "msg": sum_up(failures, max(options["total"], len(failures)), report)}

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the report: nothing is written."""
        return options["report"], "longhaul_state_dir"
