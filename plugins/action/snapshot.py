# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.snapshot: the module on the host, told who asks and the time on the control node."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.snapshot import DOCUMENTATION, RETURN
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import returned_names
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.host_text import harmless_data
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import started_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_action import read_answer

_KEPT = (
    *("changed", "failed", "msg", "diff", "module_stdout", "module_stderr"),
    *("ansible_job_id", "started", "finished", "results_file", "_ansible_suppress_tmpdir_delete"),  # with async
    *returned_names(RETURN),
)


_VERIFY = (
    "Nothing was done: there is no action verify. The action check compares snapshots with their manifests, and reads "
    "all contents: action=check with host and job"
)


class ActionModule(FleetAction):
    """Run the module, and take out of its answer what it documents."""

    documentation = DOCUMENTATION
    _said_warnings: list[str] = []
    _supports_async = True
    _requires_connection = True

    def refuse(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """Return what is wrong with the options, and the action that was meant by verify."""
        return _VERIFY if given.get("action") == "verify" else super().refuse(given, variables)

    def work(self, _options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Run the module with the arguments of the task, ``control_time`` and ``by``."""
        wrap_async = bool(self._task.async_val) and not self._connection.has_native_async
        arguments = {**self._task.args, "control_time": int(time.time()), "by": started_by(variables)}
        said: Mapping[str, Any] = self._execute_module(
            "longhaul.fleet.snapshot", arguments, task_vars=variables, wrap_async=wrap_async
        )
        if not wrap_async:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        paths = [said.get("path"), said.get("link_dest"), [one.get("path") for one in said.get("snapshots") or ()]]
        if harmless_data(paths) != paths:
            return {
                "failed": True,
                "msg": "the path of the repository has control characters. A result cannot show such a path as it "
                "is, and a shown one would be another: rename the folder",
            }
        return {**said, "warnings": self._said_warnings} if self._said_warnings else said

    def _parse_returned_data(self, res: Mapping[str, Any], *profile: Any) -> Any:
        """Return what ansible-core makes of the documented members of an answer. It gets no others."""
        said = read_answer(str(res.get("stdout") or ""), str(res.get("stderr") or ""))
        kept = {name: said[name] for name in _KEPT if name in said}
        warnings = said.get("warnings")
        self._said_warnings = (
            [text for one in warnings if (text := _text_of(one))] if isinstance(warnings, list) else []
        )
        return super()._parse_returned_data({**res, "stdout": json.dumps(kept), "stderr": ""}, *profile)


def _text_of(warning: object) -> str:
    """Return the text of a warning in an answer; since ansible-core 2.19 it is the message of an event. Untrusted."""
    if isinstance(warning, dict):
        event = warning.get("event")
        warning = event.get("msg") if isinstance(event, dict) else None
    return warning if isinstance(warning, str) else ""
