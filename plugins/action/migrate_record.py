# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_record: keep at the destination where a migration job stands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.migrate_record import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.hosts import Hosts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.record import make_record


class ActionModule(ControlNodeAction):
    """Keep a record; a destination that cannot be reached is only warned of."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Write the record."""
        if not write:
            return {"kept": False}
        state = options["state"]
        record = make_record(state, options["phase"], options["now"], advice(state) if state["failure"] else "")
        host = state["identity"]["dest_host"]
        try:
            hosts = Hosts(state["identity"], partial(HostRunner, self, task_vars=self.variables))
            hosts.keep_now(record)
            hosts.close()
        except HostFailed as error:
            return {"kept": False, "warnings": [f"{host} keeps no record of job {state['name']}: {error.reason}"]}
        if not hosts.has_kept:
            return {"kept": False, "warnings": [f"{host} keeps no record of job {state['name']}: {hosts.not_kept}"]}
        return {"kept": True}

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the job: nothing is written on the control node."""
        return str(options["state"]["name"]), "migrate_jobs"
