# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action role_variables: the variables of a role, read once. See plugin_utils/hosts/host_facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible_collections.longhaul.fleet.plugins.modules.role_variables import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_facts import (
    find_set_by_facts,
    put_clean_first,
    refuse_facts,
)


class ActionModule(ControlNodeAction):
    """Return values that facts of the host of the play have not set, and that no fact sets later."""

    documentation = DOCUMENTATION
    users_own = ("variables",)

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:  # noqa: ARG002 - as others have it
        """Return the values; Ansible has templated them from the same variables that are checked here."""
        names = find_set_by_facts(self.variables, *options["roles"])
        host = "this host" if "inventory_hostname" in names else str(self.variables.get("inventory_hostname"))
        refused = refuse_facts(host, names)
        if refused and not self._task.no_log:
            return {"failed": True, "msg": f"Nothing was done: {refused}"}
        hosts = put_clean_first(options["hosts"], self.variables, *options["roles"])
        return {"variables": {} if refused else options["variables"], "refused": refused, "hosts": hosts}

    def place(self, _options: Mapping[str, Any]) -> tuple[str, str]:
        """Return where Ansible keeps its own files here: nothing is written."""
        return constants.DEFAULT_LOCAL_TMP, "ANSIBLE_LOCAL_TEMP"
