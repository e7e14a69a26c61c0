# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run asks of the hosts of a backup. Each function waits for its host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    optional,
)

from ..fleet.pair_hosts import PairHosts
from ..host_runner import HostFailed, HostRunner
from ..snapshot_answers import parse_answer
from .jobs import Run

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import SnapshotStep


class Hosts(PairHosts):
    """The client and the repository host of a backup."""

    def __init__(self, run: Run, runner: Callable[[str], HostRunner]) -> None:
        """Take the run, and what makes the runner of an inventory host. Raises HostFailed."""
        super().__init__(run["host"], run["repository"]["host"], runner)
        self._place = [run["repository"]["path"], run["host"], run["name"]]

    def snapshots(self, wishes: Mapping[str, Mapping[str, object]], check: bool) -> dict[str, Mapping[str, Any]]:
        """Do with the snapshots of the run what the module snapshot does; all in one execution.

        ``wishes`` are its actions, in their order, with their options; returned is what was said of each, up to the
        first that was refused. Of that is left which the later steps and the report need, ``changed``, the ``warnings``
        and the ``diff``. With ``check`` nothing changes. Raises HostFailed, also where the first of all was refused.
        """
        steps: list[SnapshotStep] = [
            {"do": "snapshot", "action": action, "place": self._place, "options": options, "check": check}
            for action, options in wishes.items()
        ]
        repository = self.runners["dest"]
        found: dict[str, Mapping[str, Any]] = {}
        try:
            for action, answer in zip(wishes, repository.run(*steps)):
                said = as_object(answer, "its answer")
                refused = optional(said, "refused", str)
                if refused is None:
                    found[action] = {**parse_answer(said), "diff": said.get("diff")}
                elif found:
                    break
                else:
                    raise HostFailed(refused, repository.name)
        except WrongShape as error:
            raise HostFailed(f"what it says of the snapshots cannot be read: {error}", repository.name) from error
        return found
