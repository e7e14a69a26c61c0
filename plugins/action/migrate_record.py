# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_record: record where a job stands, here and at its destination."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.migrate_record import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.ansible_process import ansible_pid
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.claims import process_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import Claims
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.hosts import Hosts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.record import make_record
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import firmness
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.terms import lease_of


class ActionModule(ControlNodeAction):
    """Ask the destination whether the job is still ours, and keep there and here where it stands."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Write the record. A destination that cannot be reached is warned of, unless it is ``required``."""
        if not write:
            return {"kept": False}
        state = options["state"]
        name, folder = state["name"], options["folder"]
        try:
            lease = lease_of({**options, "job": name, "identity": state["identity"]}, firmness(state))
        except ValueError as error:
            return {"failed": True, "msg": str(error)}
        problem = self._ask(options, lease)
        if lease.lost and options["act"] == "begin":
            return {"failed": True, "msg": lease.lost, "lease_lost": True}
        if problem and options["required"]:
            return {"failed": True, "msg": problem}
        if options["saved"]:
            Store(folder, writes=True).save(name, options["saved"])
        if options["act"] == "end":
            Claims(folder, process_of(ansible_pid())).release(name)
        host = state["identity"]["dest_host"]
        warnings = [f"{host} keeps no record of job {name}: {problem}"] if problem and options["phase"] else []
        return {"kept": not problem, **({"warnings": warnings} if warnings else {})}

    def _ask(self, options: Mapping[str, Any], lease: Any) -> str:
        """Renew or release the lease, and keep the record where there is a phase; return why that failed."""
        state = options["state"]
        record = None
        if options["phase"]:
            record = make_record(state, options["phase"], options["now"], advice(state) if state["failure"] else "")
        try:
            hosts = Hosts(state["identity"], partial(HostRunner, self, task_vars=self.variables), lease.terms, lease)
        except HostFailed as error:
            return error.reason
        try:
            hosts.keep_now(record, releases=options["act"] == "end")
        finally:
            hosts.close()
        return "" if hosts.has_kept or record is None else hosts.not_kept

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"
