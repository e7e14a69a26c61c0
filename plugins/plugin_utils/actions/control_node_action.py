# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions that work on the control node alone have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.utils.display import Display

from ..common.refusal import Refusal
from ..fleet.limits import LimitError
from ..hosts.host_runner import ControllerGone, require_controller
from ..hosts.interruption import Interruption
from .fleet_action import FleetAction
from .state_folder import REPORTS, VARIABLE, find_folder, try_writing


class ControlNodeAction(FleetAction):
    """An action that writes on the control node: no connection, no become, and no host is changed."""

    variables: Mapping[str, Any]  # of the task, for act
    folder_name = ""  # of the folder of states, where the option "folder" is empty

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Do it, and say that nothing changed: what changed is on the hosts."""
        self.variables = variables
        if self.folder_name:
            folder = find_folder(self.folder_name, options["folder"], variables, self._templar.template)
            options = {**options, "folder": folder}
        try:
            return {"changed": False, **self.act(options, write=not self._task.check_mode)}
        except OSError as error:
            return {"changed": False, **cannot_write(error, *self.place(options))}

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Do what the options say, without ``write`` predict it; give what goes into the result. May raise OSError."""
        raise NotImplementedError

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return a path that is written, and the user's variable that sets it."""
        raise NotImplementedError


def cannot_write(error: OSError, path: str, variable: str) -> Mapping[str, object]:
    """Return the result of a task that could not write to a path, which the user's ``variable`` sets."""
    what = f"{error.filename or path} cannot be written here: {error.strerror}"
    names = f"{VARIABLE} or {variable}" if variable.endswith(REPORTS) else variable
    return {"failed": True, "msg": f"{what}. Name another place, with {names}"}


def refuse_unwritable(folder: str, variable: str) -> str:
    """Return why nothing may begin, since nothing can be written to the folder of reports; empty if it can.

    ``variable`` is the user's for this folder.
    """
    try:
        try_writing(folder)
    except OSError as error:
        return (
            f"Nothing was done: reports and states are kept in {folder} on the control node, and it cannot be written: "
            f"{error.strerror}. Set {VARIABLE} to a folder that can be written and that later runs find again, or "
            f"{variable} for this role alone"
        )
    return ""


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
