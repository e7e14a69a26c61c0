# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.verify: two trees are compared. See plugin_utils/transfer/tree_comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text
from ansible_collections.longhaul.fleet.plugins.modules.verify import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.pair_action import PairAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.tree_comparison import compare_trees

prepare(DOCUMENTATION)


class ActionModule(PairAction):
    """Compare two trees on two inventory hosts."""

    documentation = DOCUMENTATION

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        result = compare_trees(source, dest, options, say, Memory())
        total = result["differences_total"]
        if total and options["on_difference"] == "fail":
            first = next(iter(result["differences"]), {"path": "", "kind": "differs"})
            result["failed"] = True
            result["msg"] = (
                f"the trees differ in {entries_text(total)}, for example {first['path']!r} ({first['kind']}): see "
                "differences. Run the transfer again to fix the destination, or set on_difference: report"
            )
        return result
