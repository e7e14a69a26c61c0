# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.restore_info: ask the repository host of a restore. See plugin_utils/restore/ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.restore_info import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.ask import answer_of, inspect, list_snapshots


class ActionModule(FleetAction):
    """List the snapshots, or look at a path in one."""

    documentation = DOCUMENTATION

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Ask the repository host."""
        ask = inspect if options["name"] else list_snapshots
        return answer_of(self, options["repository_host"], variables, lambda runner: ask(runner, options))
