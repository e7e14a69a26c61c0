# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions that work on a pair of hosts share: options, both ends, failures, cleaning up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from .ansible_process import end_orphan, watch_for_end
from .argument_spec import spec_from_documentation
from .comparison import ComparisonFailed
from .endpoint import Refusal
from .host_runner import ControllerGone, HostRunner
from .interruption import Interruption
from .report import TransferError


class PairAction(ActionBase):
    """A task that works on a source host and a destination host at once."""

    documentation = ""  # of the module; its options are the action's argument spec
    mutually_exclusive: tuple[tuple[str, ...], ...] = ()

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    interruption: Interruption  # its words are for run_pair to set

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        """Do the work and give the result."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate the options, work on both hosts, and turn what goes wrong into one clear failure."""
        watch_for_end()
        task_vars = task_vars or {}
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec=spec_from_documentation(self.documentation), mutually_exclusive=self.mutually_exclusive
        )
        own = task_vars["inventory_hostname"]
        runners: list[HostRunner] = []
        self.interruption = Interruption()
        try:
            with self.interruption:
                for option in ("src_host", "dest_host"):
                    runners.append(HostRunner(self, options[option] or own, task_vars))
                result.update(self._run_pair(runners, options))
        except (Refusal, TransferError, ComparisonFailed, AnsibleError, ValueError) as error:
            result.update(getattr(error, "details", None) or {})
            result.update(failed=True, msg=str(error))
        finally:
            for runner in runners:
                runner.close()
            end_orphan()
        return result

    def _run_pair(self, runners: list[HostRunner], options: Mapping[str, Any]) -> Mapping[str, object]:
        try:
            return self.run_pair(runners[0], runners[1], options, Display().display)
        except ControllerGone:  # nobody reads the result
            self.interruption.tell()
            raise
