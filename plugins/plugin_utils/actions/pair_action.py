# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions that work on a pair of hosts share: options, both ends, failures, cleaning up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.utils.display import Display

from ..common.refusal import Refusal
from ..hosts.host_runner import ControllerGone, HostRunner
from ..hosts.interruption import Interruption, find_ad_hoc_options
from ..transfer.comparison import ComparisonFailed
from ..transfer.report import TransferError
from .fleet_action import FleetAction


class PairAction(FleetAction):
    """A task that works on a source host and a destination host at once."""

    interruption: Interruption  # its words are for run_pair to set
    roles: tuple[str, ...] = ()  # whose variables no facts of the hosts may set

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        """Do the work and give the result."""
        raise NotImplementedError

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Work on both hosts, and turn what goes wrong into one clear failure."""
        runners: list[HostRunner] = []
        self.interruption = Interruption()
        try:
            with self.interruption:
                for option in ("src_host", "dest_host"):
                    host = options[option] or variables["inventory_hostname"]
                    runners.append(HostRunner(self, host, variables, self.roles))
                self.interruption.options = find_ad_hoc_options(
                    context.CLIARGS,
                    self._task,
                    [runner.variables for runner in runners],
                    str(variables.get("playbook_dir") or ""),
                )
                return self._run_pair(runners, options)
        except (Refusal, TransferError, ComparisonFailed, AnsibleError, ValueError) as error:
            return {**(getattr(error, "details", None) or {}), "failed": True, "msg": str(error)}
        finally:
            for runner in runners:
                runner.close()

    def _run_pair(self, runners: list[HostRunner], options: Mapping[str, Any]) -> Mapping[str, object]:
        try:
            return self.run_pair(runners[0], runners[1], options, Display().display)
        except ControllerGone:  # nobody reads the result
            self.interruption.tell()
            raise
