# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.nic_path_info: send packets from any inventory host, and parse what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.nic_path_info import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.network.path_problems import ask_path


class ActionModule(FleetAction):
    """Test a path."""

    documentation = DOCUMENTATION

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Test it from one host. Where another one was named that cannot do it, its path is untested."""
        host = options["from_host"] or self._task.delegate_to or variables["inventory_hostname"]
        runner = None
        try:
            runner = HostRunner(self, host, variables)
            found = ask_path(runner, options)
        except HostFailed as error:
            if options["from_host"] and not options["required"]:
                return {"changed": False, "passed": False, "verdict": "untested", "message": str(error)}
            return {"changed": False, "failed": True, "msg": str(error)}
        finally:
            if runner is not None:
                runner.close()
        if found["passed"] or not options["required"]:
            return {"changed": False, **found}
        largest = f" The largest that passes has {found['largest']} bytes." if found["largest"] else ""
        return {
            "changed": False,
            **found,
            "failed": True,
            "msg": f"to {options['address']}: {found['message']}.{largest}",
        }
