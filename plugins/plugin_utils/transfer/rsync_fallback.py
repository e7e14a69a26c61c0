# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans with ``delta: rsync``: stream leaves the files whose content moved to a run of rsync after it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import refuse_trusting_method
from . import plan as plans
from .link_memory import UNKNOWN, KnownLine
from .plan import Plan
from .repair import rules_for


def make_plan(
    options: Mapping[str, Any],
    source: Endpoint,
    dest: Endpoint,
    check: bool,
    pull: bool = False,
    avoid: Mapping[str, str] | None = None,
    line: KnownLine = UNKNOWN,
) -> Plan:
    """Decide the whole transfer, as plan.make_plan does; where rsync cannot follow, stream keeps all files itself."""
    made = plans.make_plan(options, source, dest, check, pull, avoid, line)
    if made.settings["delta"] != "rsync":
        return made
    try:
        plan_by_rsync(made, options, source, dest, ())
    except Refusal as error:
        warning = f"delta is rsync, which cannot be used for this transfer, so stream compares blocks alone: {error}"
        return replace(made, settings={**made.settings, "delta": "blocks"}, warnings=(*made.warnings, warning))
    return made


def plan_by_rsync(
    made: Plan, options: Mapping[str, Any], source: Endpoint, dest: Endpoint, paths: Collection[str]
) -> Plan:
    """Plan the run of rsync, over ssh, that brings the files which stream named (as names.escape gives them).

    Raises Refusal if the hosts cannot, or are not trusted.
    """
    refuse_trusting_method("rsync", options["trust"], bool(options["link_dest"]))
    wanted = dict(
        options,
        method="rsync",
        delta="auto",
        compress="none" if options["compress"] == "none" else "auto",
        compress_level=None,
        port=None,  # that was stream's own
        delete=False,
        max_delete=None,
        preserve=list(made.settings["preserve"]),
    )
    by_rsync = plans.make_plan(wanted, source, dest, check=False, pull=made.driver == "dest")
    return replace(by_rsync, settings={**by_rsync.settings, "rules": rules_for(paths)})
