# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.snapshot: the module on the host, told what time it is on the control node."""

from __future__ import annotations

import time

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Run the module."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, object] | None = None) -> dict[str, object]:
        """Run the module with the arguments of the task and ``control_time``."""
        result: dict[str, object] = super().run(tmp, task_vars)
        wrap_async = bool(self._task.async_val) and not self._connection.has_native_async
        arguments = {**self._task.args, "control_time": int(time.time())}
        result.update(
            self._execute_module("longhaul.fleet.snapshot", arguments, task_vars=task_vars, wrap_async=wrap_async)
        )
        if not wrap_async:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
