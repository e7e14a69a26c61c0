# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.restore_dest_info: ask the host that receives the files of a restore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.restore_dest_info import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.ask import answer_of, look_at_dest


class ActionModule(FleetAction):
    """Check where a restore would arrive."""

    documentation = DOCUMENTATION

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Ask the host of the play."""
        own = variables["inventory_hostname"]
        return answer_of(self, own, variables, lambda runner: look_at_dest(runner, options))
