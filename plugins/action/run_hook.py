# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.run_hook: a hook of the user on a host of a job. See plugin_utils/hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible_collections.longhaul.fleet.plugins.modules.run_hook import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hooks import Hook, HookResult, check_host, let_go, run_hook
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_text import harmless_data


class ActionModule(ControlNodeAction):
    """Run the command or the module of a hook, or check the connection to its host."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Run it, and return the named values of its answer, fit to be shown."""
        host, command, module = options["host"], options["command"], options["module"] or ""
        if not write:
            return {"changed": bool(command or module)}
        try:
            runner = HostRunner(self, host, self.variables)
            try:
                hook = Hook("", tuple(command or ()), module, options["args"], timeout=options["timeout"] or None)
                said = run_hook(runner, hook) if command or module else check_host(runner, hook.timeout)
            finally:
                let_go(runner)
        except HostFailed as error:
            said = HookResult(failed=True, msg=str(error))
        if said.unreachable:
            said = said._replace(msg=f"{host} cannot be reached: {said.msg or 'no answer'}")
        # Not unreachable: Ansible would drop the host of the play, and with it what undoes the hook.
        shown = {name: value for name, value in said._asdict().items() if name != "unreachable" and value is not None}
        return {**harmless_data(shown), **({"cmd": command} if command else {})}

    def place(self, _options: Mapping[str, Any]) -> tuple[str, str]:
        """Return where Ansible's connections keep their files here, the only ones that are written."""
        return constants.DEFAULT_LOCAL_TMP, "ANSIBLE_LOCAL_TEMP"
