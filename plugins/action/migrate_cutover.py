# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_cutover: what a cutover does between its hooks. See migrate/cutover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.migrate_cutover import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.conduct_action import ConductAction, Say
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.cutover import Act, Asked, Cutover
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.outside import Outside
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.work import JobWork, Options
from ansible_collections.longhaul.fleet.plugins.plugin_utils.warm import prepare

prepare(transfer.DOCUMENTATION)

# The steps that the tags of the role leave out.
_TAGGED = {
    "migrate_cutover": (Step.CUTOVER, Step.REHEARSE, Step.SWITCH),
    "migrate_verify": (Step.VERIFY,),
}


class ActionModule(ConductAction):
    """Do the acts with one job."""

    documentation = DOCUMENTATION

    def conduct(
        self, options: Mapping[str, Any], say: Say, interruption: Interruption, write: bool
    ) -> Mapping[str, object]:
        """Do them to their end. An act that fails is a failure of the task, and its reason is recorded."""
        job, asked = options["job"], _asked(options)
        works: dict[str, JobWork] = {}
        outside = Outside(self, options, self.variables, say, not write, options["total"], works)
        cutover = Cutover(job, _options(options, outside), outside.services(continues=True), asked)
        works[job["name"]] = cutover
        alone = Waiting(rank(0, 0.0, 0), job["name"], Pair(job["src_host"], job["dest_host"]))
        outside.drive([alone], Limits(), interruption)
        record = cutover.record
        result: dict[str, object] = {
            "changed": record.changed,
            "hook": cutover.hook,
            "remedies": cutover.remedies,
            "failure": record.failure._asdict() if record.failure else {},
            "lease_lost": bool(cutover.state.get("failure", {}).get("lost")),
        }
        if cutover.stopped:
            result.update(failed=True, msg=cutover.stopped)
        if outside.hints:
            result["warnings"] = outside.hints
        return self.with_diff(result, {record.name: record.diff})

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"


def _asked(options: Mapping[str, Any]) -> Asked:
    return Asked(
        acts=[Act(one) for one in options["acts"]],
        stops=options["stops"],
        revives=options["revives"],
        ran=options["ran"],
        switches=options["switches"],
        hook=options["hook"],
        reason=options["reason"],
        lost=options["lost"],
    )


def _options(options: Mapping[str, Any], outside: Outside) -> Options:
    return Options(
        phase=Phase(options["phase"]),
        steps={step for tag, steps in _TAGGED.items() if outside.is_wanted(tag) for step in steps},
        compares_first=options["verify_when"] == "before_switch",
    )
