# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run asks of the hosts of a backup. Each function waits for its host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..fleet.pair_hosts import PairHosts
from ..host_runner import HostRunner
from ..wording import text_of_warning
from .jobs import Run

_KEPT = ("path", "link_dest", "resumed", "name", "figures", "snapshots", "kept", "removed", "checked", "sound")


class Hosts(PairHosts):
    """The client and the repository host of a backup."""

    def __init__(self, run: Run, runner: Callable[[str], HostRunner]) -> None:
        """Take the run, and what makes the runner of an inventory host. Raises HostFailed."""
        super().__init__(run["host"], run["repository"]["host"], runner)
        self._series = {"repository": run["repository"]["path"], "host": run["host"], "job": run["name"]}

    def snapshot(self, action: str, options: Mapping[str, object]) -> Mapping[str, Any]:
        """Do something with the snapshots of the run, and return what the module snapshot said. Raises HostFailed.

        Of its result that is left which the later steps and the report need, ``changed`` and the ``warnings``.
        """
        arguments = {**self._series, "action": action, **options}
        said = self.runners["dest"].run_module("longhaul.fleet.snapshot", arguments)
        kept = {name: said[name] for name in _KEPT if name in said}
        return {
            **kept,
            "changed": bool(said.get("changed")),
            "warnings": [text_of_warning(one) for one in said.get("warnings") or ()],
            "diff": said.get("diff"),
        }
