# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.transfer: options in, result out. Its steps are in plugin_utils/transfer/session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.pair_action import PairAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.trust import decide_trust
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import (
    TransferError,
    shorten_lists,
    show_changes,
    summary_line,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Session

prepare(DOCUMENTATION)


class ActionModule(PairAction):
    """Move one tree from one inventory host to another."""

    documentation = DOCUMENTATION
    mutually_exclusive = (("port", "port_range"),)

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        check = self._task.check_mode
        hosts = {runner.name: runner.variables for runner in (source, dest)}
        options = {**options, "trust": decide_trust(options["trust"], hosts)}
        try:
            session = Session(source, dest, options, check, say, self.interruption, Memory())
            result = session.run()
        except TransferError as error:
            if error.details is not None and not self._task.diff:
                shorten_lists(error.details)
            raise
        if not self._task.no_log:
            say(summary_line(session.label, result, check, session.joined))
        show_changes(result, self._task.diff)
        return result
