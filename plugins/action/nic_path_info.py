# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.nic_path_info: send packets from any inventory host, and parse what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.nic_path_info import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed, HostRunner

_VERDICTS = ("passed", "local", "router", "black_hole", "unreachable")
_MEMBERS: Mapping[str, type] = {
    "passed": bool,
    **dict.fromkeys(("verdict", "message"), str),
    **dict.fromkeys(("mtu", "sent", "received"), int),
}
_MAYBE: Mapping[str, type] = {"largest": int, "link": str, "link_mtu": int, "source": str}


class ActionModule(FleetAction):
    """Test a path."""

    documentation = DOCUMENTATION

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Test it from one host. Where another one was named that cannot do it, its path is untested."""
        host = options["from_host"] or self._task.delegate_to or variables["inventory_hostname"]
        path = f"{host} to {options['destination'] or options['address']}"
        runner = None
        try:
            runner = HostRunner(self, host, variables)
            found = ask_path(runner, options)
        except HostFailed as error:
            if options["from_host"] and not options["required"]:
                message = str(error)
                untested = {"passed": False, "verdict": "untested", "message": message}
                return {"changed": False, **untested, "problem": f"{path}: {message}"}
            return {"changed": False, "failed": True, "msg": str(error)}
        finally:
            if runner is not None:
                runner.close()
        largest = f". The largest that passes has {found['largest']} bytes" if found["largest"] else ""
        problem = "" if found["passed"] else f"{path}: {found['message']}{largest}"
        result = {"changed": False, **found, "problem": problem}
        if problem and options["required"]:
            return {**result, "failed": True, "msg": f"to {options['address']}: {found['message']}{largest}."}
        return result


def ask_path(runner: HostRunner, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send packets from a host, and return what the module nic_path_info found. Raises HostFailed."""
    asked = {name: options[name] for name in ("address", "mtu", "count", "patience") if options[name] is not None}
    waits = options["patience"] + options["count"]
    found = runner.run_module("longhaul.fleet.nic_path_info", asked, _MEMBERS, _MAYBE, waits)
    if found["verdict"] not in _VERDICTS or found["passed"] != (found["verdict"] == "passed"):
        raise HostFailed(f"its answer cannot be read: the verdict {found['verdict']!r}", runner.name)
    return found
