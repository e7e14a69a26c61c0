# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions have in common that drive many jobs from one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.utils.display import Display

from ..control_node_action import ControlNodeAction, refuse_unwritable
from ..endpoint import Refusal
from ..host_runner import ControllerGone, require_controller
from ..interruption import Interruption
from .limits import LimitError

_MOST_DIFF = 2000  # lines of a diff of all jobs: a terminal has to show them

Say = Callable[[str], None]


class ConductAction(ControlNodeAction):
    """An action that drives jobs. A job that fails is no failure of the task."""

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Drive the jobs to the end of their steps."""
        require_controller()
        refused = refuse_unwritable(*self.place(options)) if write else ""
        if refused:
            return {"failed": True, "msg": refused}
        say: Say = (lambda _line: None) if self._task.no_log else Display().display
        with Interruption() as interruption:
            try:
                return self.conduct(options, say, interruption, write)
            except ControllerGone:  # nobody reads the result
                interruption.tell()
                raise
            except (LimitError, Refusal) as error:
                return {"failed": True, "msg": str(error)}

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Drive the jobs, without ``write`` predict that, and return the result.

        ``say`` shows a line, and ``interruption`` has the last words. May raise OSError, LimitError and Refusal.
        """
        raise NotImplementedError

    def with_diff(self, result: Mapping[str, object], diffs: Mapping[str, list[str]]) -> Mapping[str, object]:
        """Return a result with the changes of all jobs as Ansible shows them, no more than a terminal has room for."""
        if not self._task.diff:
            return result
        shown, left = [], _MOST_DIFF
        for name, lines in diffs.items():
            if lines and left > 0:
                cut = [*lines[:left], *([f"... and {len(lines) - left} more"] if len(lines) > left else [])]
                shown.append({"header": name, "prepared": "".join(f"{line}\n" for line in cut)})
                left -= len(lines)
        return {**result, "diff": shown}
